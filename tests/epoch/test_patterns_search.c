/* Plans by patterns beside those of the search: as few steps, and the search itself of very many samples. */
#include "epoch/patterns.h"

#include "base/scratch.h"

#include "epoch/planned.h"
#include "epoch/tuning.h"
#include "keep.h"
#include "patterned.h"

/* A step of the longest samples has fewer micro-batches, and does not make all others so. */
START_TEST_IN_CONTEXT(steps_are_as_few_as_those_of_the_search)
{
    hbp__rng rng = hbp__rng_make(16, 0, 0);
    hbp_cost *cost = keep(test_cost_ranks(context, 8));
    int fewer = 0;
    for (int round = 0, mark = keep_mark(); round < TEST_ROUNDS(6); round++, keep_release(mark)) {
        enum { SAMPLES = 20000 };
        uint32_t values[SAMPLES];
        hbp_lengths *lengths;
        hbp_pattern_plan *plan;
        hbp_plan *usual;
        for (int i = 0; i < SAMPLES; i++)
            values[i] = 1 + hbp__rng_below(&rng, i % 500 ? 3000 : 90000);
        OK(context, hbp_lengths_create_u32(context, values, SAMPLES, NULL, &lengths));
        hbp_epoch_options o = defaults();
        o.tokens_per_step = 95000;
        OK(context, hbp_plan_patterns(context, keep(lengths), cost, &o, &plan));
        o.tokens_per_step = 0;
        /* Room for two units of the shortest, or one of the longest. */
        hbp__pattern_sizes sizes;
        OK(context, hbp__pattern_sizes_open(context, keep(plan), &sizes));
        for (int64_t i = 0; i < sizes.ranges; i++) {
            const int64_t units = sizes.range[i].first < plan->group_first_units[plan->groups - 1] ? 1 : 2;
            o.tokens_per_step = hbp__max_i64(o.tokens_per_step, units * sizes.range[i].tokens);
        }
        hbp__scratch_release(context, 0);
        OK(context, hbp_plan_patterns(context, lengths, cost, &o, &plan));
        OK(context, hbp_plan_epoch(context, lengths, cost, &o, &usual));
        keep(plan);
        keep(usual);
        ck_assert_int_le(plan->steps, usual->steps * 11 / 10 + 1);
        const int64_t units = hbp__pattern_units(plan);
        fewer += plan->steps < units && units % plan->steps;
    }
    ck_assert_int_gt(fewer, 0);
}
END_TEST

/* Past HBP__SEARCHED_SAMPLES the search is by patterns, but for what needs a list, and with effort no slower.
 */
START_TEST_IN_CONTEXT(very_many_samples_are_searched_by_patterns)
{
    const int64_t length[] = {100, 700, 3000, 30000};
    int64_t count[] = {HBP__SEARCHED_SAMPLES - 20400, 20000, 350, 50};
    hbp_cost *cost = keep(test_cost(context));
    for (int more = 0; more < 2; more++, count[0]++) {
        hbp_lengths *lengths;
        hbp_plan *plan, *listed, *searched;
        hbp_epoch_options o = defaults();
        OK(context, hbp_lengths_create_histogram(context, length, count, 4, &lengths));
        OK(context, hbp_plan_epoch(context, keep(lengths), cost, NULL, &plan));
        o.method = "patterns";
        OK(context, hbp_plan_epoch(context, lengths, cost, &o, &listed));
        ck_assert_int_eq(keep(plan)->digest == keep(listed)->digest, more);
        if (!more)
            continue;
        OK(context, hbp_plan_validate(context, plan, lengths, cost));
        o = defaults();
        o.effort = 1;
        OK(context, hbp_plan_epoch(context, lengths, cost, &o, &searched));
        ck_assert_int_le(hbp__plan_ns(keep(searched)), hbp__plan_ns(plan));
        o = defaults();
        o.composition = HBP_COMPOSITION_HIERARCHY;
        OK(context, hbp_plan_epoch(context, lengths, cost, &o, &searched));
        ck_assert_int_eq(keep(searched)->composition, HBP_COMPOSITION_HIERARCHY);
        /* As with few samples, an option that no plan keeps to is told by the search. */
        o = defaults();
        o.tokens_per_step = 20000;
        FAILS(context, HBP_E_INVALID, "20000", hbp_plan_epoch(context, lengths, cost, &o, &searched));
    }
}
END_TEST

TEST_MAIN("patterns_search", steps_are_as_few_as_those_of_the_search,
          very_many_samples_are_searched_by_patterns)
