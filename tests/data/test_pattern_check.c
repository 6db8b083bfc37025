#include "patterned.h"

/* Every cell of a plan, changed, is told by the check or by the digest. */
START_TEST_IN_CONTEXT(no_change_goes_unseen)
{
    hbp__rng rng = hbp__rng_make(9, 0, 0);
    hbp_cost *cost = keep(test_cost(context));
    hbp_lengths *lengths = draw_lengths(context, &rng, 40, 20000, 0);
    hbp_pattern_plan *plan;
    OK(context, hbp_plan_patterns(context, lengths, cost, NULL, &plan));
    keep(plan);
    for (int32_t c = 0; c < hbp__pattern_table.column_count; c++) {
        const hbp__member *column = &hbp__pattern_table.columns[c];
        const int64_t rows = hbp__table_rows(plan, column), size = (int64_t)hbp__cell_bytes(column->cell);
        for (int64_t row = 0; row < rows; row++)
            for (int64_t by = -1; by <= 1; by += 2) {
                char *cell = (char *)hbp__table_cells(plan, column) + row * size;
                int64_t value = 0;
                int32_t narrow;
                memcpy(&narrow, cell, sizeof narrow);
                if (size == 8)
                    memcpy(&value, cell, sizeof value);
                const int64_t wide = value + by;
                const int32_t other = narrow + (int32_t)by;
                memcpy(cell, size == 8 ? (const void *)&wide : (const void *)&other, (size_t)size);
                ck_assert_msg(hbp_pattern_plan_validate(context, plan, lengths, cost) == HBP_E_INVALID,
                              "%s %d", column->name, (int)row);
                memcpy(cell, size == 8 ? (const void *)&value : (const void *)&narrow, (size_t)size);
            }
    }
    OK(context, hbp_pattern_plan_validate(context, plan, lengths, cost));
}
END_TEST

/* The check of a plan of which one number is another. */
#define REFUSES(plan, field, value, text)                                                                    \
    do {                                                                                                     \
        hbp_pattern_plan *other = keep(hbp__pattern_plan_copy(&context->memory, plan));                      \
        other->field = (value);                                                                              \
        FAILS(context, HBP_E_INVALID, text, hbp__pattern_plan_check(context, other));                        \
    } while (0)

START_TEST_IN_CONTEXT(numbers_that_cannot_be_are_named)
{
    hbp__rng rng = hbp__rng_make(13, 0, 0);
    hbp_cost *cost = keep(test_cost(context)), *sets;
    hbp_cost_terms terms = {.struct_size = sizeof terms};
    hbp_pattern_plan *plan, *loss, *lockstep;
    OK(context, hbp_cost_get_terms(context, cost, &terms));
    terms.lockstep_ranks = 8;
    OK(context, hbp_cost_create_terms(context, &terms, &sets));
    keep(sets);
    hbp_lengths *lengths = draw_lengths(context, &rng, 300, 3000, 0);
    OK(context, hbp_plan_patterns(context, lengths, cost, NULL, &plan));
    keep(plan);
    OK(context, hbp_plan_patterns(context, lengths, sets, NULL, &lockstep));
    keep(lockstep);
    OK(context, hbp_plan_patterns(context, draw_lengths(context, &rng, 300, 3000, 1), cost, NULL, &loss));
    keep(loss);
    OK(context, hbp__pattern_plan_check(context, plan));
    OK(context, hbp__pattern_plan_check(context, lockstep));
    OK(context, hbp__pattern_plan_check(context, loss));
    const int64_t ns = plan->predicted_ns;
    REFUSES(plan, ranks, 2 * HBP_MAX_RANKS, "ranks is 524288; it lies in 1 to 262144");
    REFUSES(plan, domain_ranks, 17, "the number of ranks of a domain is 17; it must be 16");
    REFUSES(plan, shifted_loss, 2, "shifted_loss is 2; it lies in 0 to 1");
    REFUSES(plan, shifted_loss, 1 - plan->shifted_loss, "loss_tokens is");
    REFUSES(plan, is_bare, -1, "is_bare is -1");
    REFUSES(plan, lockstep_ranks, -1, "the number of ranks of a lockstep set is -1");
    REFUSES(plan, lockstep_ranks, 16, "the number of ranks of a lockstep set is 16; it must be 16");
    REFUSES(plan, lockstep_ranks, 3, "the number of ranks of a lockstep set is 3; it must be 16");
    REFUSES(plan, micro_batch_multiple, 65537, "micro_batch_multiple is 65537; it lies in 1 to 65536");
    REFUSES(plan, loss_tokens, -1, "loss_tokens is -1; it lies in 0 to");
    REFUSES(plan, loss_tokens, plan->loss_tokens - 1, "; the lengths make it");
    REFUSES(loss, loss_tokens, INT64_C(1) << 40, "loss_tokens is 1099511627776; the lengths make it at most");
    REFUSES(plan, histogram_digest, plan->histogram_digest + 1, "; the lengths make it");
    REFUSES(plan, dropped, plan->overlong_samples + 1, "dropped is 1; it lies in 0 to 0");
    REFUSES(plan, overlong_samples, -1, "overlong_samples is -1");
    REFUSES(plan, overlong_tokens, -2, "overlong_tokens is -2");
    REFUSES(plan, bound_ns, -1, "the bound on the time is -1 ns; it must lie between 0 and the predicted");
    REFUSES(plan, bound_ns, ns + 1, "the bound on the time is");
    REFUSES(plan, free_bound_ns, -3, "the bound on the time with steps left free is -3 ns");
    REFUSES(plan, free_bound_ns, ns + 1, "the bound on the time with steps left free is");
    REFUSES(plan, predicted_ns, ns + 1, "; the patterns make it");
    REFUSES(plan, step_ns, INT64_MAX, "the times of the micro-batches pass 2^63 ns");
    REFUSES(lockstep, step_ns, INT64_MAX, "the times of the micro-batches pass 2^63 ns");
    REFUSES(lockstep, predicted_ns, INT64_MAX, "; the patterns make it at most");
    REFUSES(plan, group_padding_bytes[0], -1, "group_padding_bytes 0 is -1");
    REFUSES(plan, group_sp[0], 3, "group_sp 0 is 3; it must divide the 16 ranks");
    REFUSES(lockstep, group_sp[0], 16, "group_sp 0 is 16, which crosses lockstep sets of 8 ranks");
    REFUSES(plan, pattern_bytes[0], -1, "pattern_bytes 0 is -1");
    plan->domain_ranks = 5;
    REFUSES(plan, group_sp[0], 2, "group_sp 0 is 2, which crosses domains of 5 ranks");
    lockstep->predicted_ns--;
    lockstep->digest = hbp__pattern_plan_digest(lockstep);
    FAILS(context, HBP_E_INVALID, "; the steps make it",
          hbp_pattern_plan_validate(context, lockstep, NULL, NULL));
}
END_TEST

TEST_MAIN("pattern_check", no_change_goes_unseen, numbers_that_cannot_be_are_named)
