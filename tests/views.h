/* Views of objects, in one expression. */
#ifndef HBP_TESTS_VIEWS_H
#define HBP_TESTS_VIEWS_H

#include <check.h>

#include "hbp/hbp.h"

#define TEST_VIEW(object)                                                                                    \
    static inline hbp_##object##_view object##_view(const hbp_##object *from)                                \
    {                                                                                                        \
        hbp_##object##_view view = {.struct_size = sizeof view};                                             \
        ck_assert_int_eq(hbp_##object##_get_view(from, &view), HBP_OK);                                      \
        return view;                                                                                         \
    }

TEST_VIEW(graph)
TEST_VIEW(layers)
TEST_VIEW(lengths)
TEST_VIEW(packs)
TEST_VIEW(groups)
TEST_VIEW(partition)
TEST_VIEW(pipeline_run)
TEST_VIEW(task_run)
TEST_VIEW(vlm_plan)
TEST_VIEW(plan)
TEST_VIEW(task_schedule)

#endif
