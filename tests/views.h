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

/* The digest that the summary has. */
#define TEST_DIGEST(object, summary)                                                                         \
    static inline uint64_t object##_digest(const hbp_##object *from)                                         \
    {                                                                                                        \
        hbp_context *context = NULL;                                                                         \
        summary found = {.struct_size = sizeof found};                                                       \
        ck_assert_int_eq(hbp_context_create(NULL, &context), HBP_OK);                                        \
        ck_assert_int_eq(hbp_##object##_get_summary(context, from, &found), HBP_OK);                         \
        hbp_context_free(context);                                                                           \
        return found.digest;                                                                                 \
    }

TEST_VIEW(graph)
TEST_VIEW(layers)
TEST_VIEW(lengths)
TEST_VIEW(packs)
TEST_VIEW(groups)
TEST_VIEW(layer_partition)
TEST_VIEW(partition)
TEST_VIEW(pipeline_run)
TEST_VIEW(task_run)
TEST_VIEW(vlm_plan)
TEST_VIEW(plan)
TEST_VIEW(task_schedule)

TEST_DIGEST(plan, hbp_plan_summary)
TEST_DIGEST(task_schedule, hbp_task_summary)

#endif
