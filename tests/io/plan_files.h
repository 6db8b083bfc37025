/* Plans of every shape, and files of them. */
#ifndef HBP_TESTS_IO_PLAN_FILES_H
#define HBP_TESTS_IO_PLAN_FILES_H

#include "failing.h"
#include "files.h"
#include "hbp/io.h"
#include "plans.h"

#include "io/plan/plan_file.h"

/* A plan drawn from `seed` of about `count` samples: the bits choose loss tokens, links, split, drop,
 * left-overs; its remainders by 5 and 7 a second size, an order of modalities, a sample lost. */
static inline hbp_plan *drawn_plan(hbp_context *context, uint64_t seed, int64_t count)
{
    int32_t kinds = seed % 5 == 1 || seed % 5 == 3 ? 3 : 0;
    hbp_lengths *all =
        plans_vision_lengths(context, seed, count, 1000, (seed & 1) != 0, (seed & 2) != 0, kinds);
    int32_t policy = seed % 3 == 0   ? HBP_OVERLONG_SPLIT
                     : seed % 3 == 1 ? HBP_OVERLONG_DROP
                                     : HBP_OVERLONG_TRUNCATE;
    hbp_lengths *lengths = NULL;
    OK(context, hbp_lengths_limit(context, all, seed & 2 ? 2000 : 700, policy, &lengths));
    plans_shape shape = plans_draw(seed);
    shape.left_over = seed & 2 ? 0 : (int64_t)(seed % 4);
    shape.modality_order = seed % 5 == 1 && !(seed & 2);
    hbp_plan *plan = plans_make(&shape, lengths);
    if (seed % 7 == 6 && plan->dropped) {
        plan->dropped_reasons[plan->dropped - 1] = HBP_DROPPED_LOST;
        hbp__plan_seal(plan);
    }
    hbp_lengths_free(all);
    hbp_lengths_free(lengths);
    OK(context, hbp__plan_check(context, plan));
    return plan;
}

/* Every field and column, one by one: the digest is compared apart. */
static inline void expect_same(const hbp_plan *a, const hbp_plan *b)
{
    hbp_plan_summary x, y;
    hbp__plan_summarise(a, &x);
    hbp__plan_summarise(b, &y);
    ck_assert(hbp__plan_same_summary(&x, &y));
#define SAME(name, type, table, extra)                                                                       \
    ck_assert_int_eq(a->name == NULL, b->name == NULL);                                                      \
    ck_assert(!a->name || memcmp(a->name, b->name, (size_t)(a->table + (extra)) * sizeof(type)) == 0);
    HBP__PLAN_COLUMNS(SAME)
#undef SAME
}

/* Saves the plan and returns the file's bytes; the test frees them. */
static inline uint8_t *saved(hbp_context *context, const hbp_plan *plan, const hbp_plan_save_options *options,
                             size_t *bytes)
{
    char folder[64], path[128];
    folder_make(folder);
    folder_path(path, folder, "plan.msgpack");
    OK(context, hbp_plan_save(context, plan, path, options));
    ck_assert_int_eq(folder_count(folder), 1);
    uint8_t *data = (uint8_t *)file_read(path, bytes);
    folder_remove(folder);
    return data;
}

/* hbp_plan_load from memory. */
static inline hbp_status load_memory(hbp_context *context, const void *data, size_t bytes, hbp_plan **out)
{
    hbp_plan_file *file = NULL;
    *out = NULL;
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__plan_file_open_memory(context, data, (int64_t)bytes, &file));
    hbp_status status = hbp__plan_file_load(context, file, out);
    hbp_plan_file_free(file);
    return status;
}

#endif
