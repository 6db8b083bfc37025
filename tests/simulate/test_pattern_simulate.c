#include "patterned.h"
#include "views.h"

/* The plan with an empty group of `sp` ranks before its others. */
static hbp_pattern_plan *with_empty_group(hbp_context *context, const hbp_pattern_plan *plan, int32_t sp)
{
    hbp_pattern_plan shape = *plan;
    shape.groups++;
    hbp_pattern_plan *wider = hbp__table_new(&context->memory, &hbp__pattern_table, &shape);
    ck_assert_ptr_nonnull(wider);
    for (int32_t i = 0; i < hbp__pattern_table.column_count; i++) {
        const hbp__member *column = &hbp__pattern_table.columns[i];
        const int64_t rows = hbp__table_rows(plan, column);
        hbp__column_copy(column, wider, hbp__table_rows(wider, column) - rows, plan, 0, rows);
    }
    wider->group_sp[0] = sp;
    wider->group_pack_lengths[0] = wider->group_pack_lengths[1];
    wider->group_padding_bytes[0] = wider->group_padding_bytes[1];
    wider->digest = hbp__pattern_plan_digest(wider);
    return keep(wider);
}

/* A device of the paper's ABR is as wide as the widest pack that there is. */
START_TEST_IN_CONTEXT(an_empty_group_counts_for_nothing)
{
    hbp__rng rng = hbp__rng_make(1, 0, 0);
    hbp_cost *cost = keep(test_cost(context));
    hbp_lengths *lengths = draw_lengths(context, &rng, 2000, 3000, 0);
    hbp_pattern_plan *plan;
    hbp_plan *listed;
    hbp_report a = {.struct_size = sizeof a}, b = a, c = a;
    OK(context, hbp_plan_patterns(context, lengths, cost, NULL, &plan));
    keep(plan);
    for (int64_t g = 0; g < plan->groups; g++)
        ck_assert_int_lt(plan->group_sp[g], 8);
    const hbp_pattern_plan *wider = with_empty_group(context, plan, 8);
    OK(context, hbp__pattern_plan_check(context, wider));
    OK(context, hbp_pattern_plan_expand(context, wider, NULL, 0, wider->steps, &listed));
    OK(context, hbp_simulate(context, keep(listed), cost, NULL, &a));
    OK(context, hbp_pattern_plan_simulate(context, wider, cost, NULL, &b));
    OK(context, hbp_pattern_plan_simulate(context, plan, cost, NULL, &c));
    ck_assert_mem_eq(&a, &b, sizeof a);
    ck_assert_mem_eq(&a, &c, sizeof a);
}
END_TEST

TEST_MAIN("pattern_simulate", an_empty_group_counts_for_nothing)
