#include "costs.h"
#include "data/pattern/pattern_plan.h"
#include "hbp/io.h"
#include "io/plan/pattern_file.h"
#include "table_files.h"

static hbp_pattern_plan *make(hbp_context *context, int64_t count, uint64_t seed)
{
    uint32_t *values = keep((uint32_t *)malloc((size_t)count * sizeof *values));
    hbp__rng rng = hbp__rng_make(seed, 0, 0);
    for (int64_t i = 0; i < count; i++)
        values[i] = 1 + hbp__rng_below(&rng, 20000);
    hbp_lengths *lengths;
    hbp_pattern_plan *plan;
    hbp_cost *cost = keep(test_cost(context));
    const hbp_epoch_options o = {.struct_size = sizeof o, .seed = seed, .micro_batch_multiple = 2};
    OK(context, hbp_lengths_create_u32(context, values, count, NULL, &lengths));
    keep(lengths);
    OK(context, hbp_plan_patterns(context, lengths, cost, &o, &plan));
    return keep(plan);
}

START_TEST_IN_CONTEXT(a_plan_comes_back_as_it_was)
{
    char folder[64], path[128];
    for (uint64_t seed = 0; seed < 20; seed++) {
        hbp_pattern_plan *plan = make(context, 1 + 40 * (int64_t)seed, seed), *back;
        folder_make(folder);
        folder_path(path, folder, "patterns");
        OK(context, hbp_pattern_plan_save(context, plan, path));
        OK(context, hbp_pattern_plan_load(context, path, &back));
        table_expect_same(&hbp__pattern_table, plan, keep(back));
        OK(context, hbp_pattern_plan_validate(context, back, NULL, NULL));
        folder_remove(folder);
    }
    hbp_pattern_plan *none;
    FAILS(context, HBP_E_SYSTEM, "no-such-file", hbp_pattern_plan_load(context, "/no-such-file", &none));
}
END_TEST

START_TEST_IN_CONTEXT(harm_is_found)
{
    table_bears_harm(context, &hbp__pattern_format, make(context, 12, 3));
}
END_TEST

TEST_MAIN("pattern_file", a_plan_comes_back_as_it_was, harm_is_found)
