/* Steps of few samples: no slower than with exactly some number of micro-batches, nor with more effort. */
#include "costs.h"
#include "failing.h"
#include "keep.h"

static hbp_status plan_summary(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                               const hbp_step_options *options, hbp_plan_summary *summary)
{
    hbp_plan *plan = NULL;
    hbp_status status = hbp_plan_step(context, lengths, cost, options, &plan);
    if (status < 0)
        return status;
    OK(context, hbp_plan_validate(context, plan, lengths, cost));
    *summary = (hbp_plan_summary){.struct_size = sizeof *summary};
    OK(context, hbp_plan_get_summary(context, plan, summary));
    ck_assert_int_le(summary->bound_ns, summary->predicted_ns);
    hbp_plan_free(plan);
    return HBP_OK;
}

/* Up to three samples a rank, under a cap. */
START_TEST_IN_CONTEXT(no_number_of_micro_batches_is_shorter)
{
    int64_t others = 0;
    for (uint64_t seed = 0; seed < TEST_ROUNDS(24); seed++) {
        hbp__rng rng = hbp__rng_make(seed, 0, 4);
        int32_t ranks = 4 << hbp__rng_below(&rng, 3);
        hbp_cost *cost = test_cost_ranks(context, ranks);
        int64_t count = 10 + hbp__rng_below(&rng, 3 * (uint64_t)ranks);
        hbp_lengths *lengths = test_long_tail(context, seed, count, 4000 + hbp__rng_below(&rng, 56000));
        hbp_step_options o = {.struct_size = sizeof o, .max_samples = 1 + (int32_t)hbp__rng_below(&rng, 3)};
        hbp_plan_summary free, exact;
        OK(context, plan_summary(context, lengths, cost, &o, &free));
        int32_t found = (int32_t)free.micro_batches;
        for (int32_t m = found > 1 ? found - 1 : 1; m <= found + 2; m++) {
            o.min_micro_batches = o.max_micro_batches = m;
            if (plan_summary(context, lengths, cost, &o, &exact) < 0 ||
                exact.padding_packs > free.padding_packs)
                continue;
            ck_assert_msg(1000 * free.predicted_ns <= 1005 * exact.predicted_ns, "seed %d: %lld, %lld in %d",
                          (int)seed, (long long)free.predicted_ns, (long long)exact.predicted_ns, (int)m);
            others += m != found;
        }
        hbp_lengths_free(lengths);
        hbp_cost_free(cost);
    }
    ck_assert_int_gt(others, 0);
}
END_TEST

/* Two micro-batches for up to two samples a rank: as with one sample in a group, where that can be. */
START_TEST_IN_CONTEXT(samples_are_scarce_from_the_start)
{
    int64_t alone = 0;
    for (uint64_t seed = 0; seed < TEST_ROUNDS(24); seed++) {
        hbp__rng rng = hbp__rng_make(seed, 0, 5);
        int32_t ranks = 4 << hbp__rng_below(&rng, 3);
        hbp_cost *cost = test_cost_ranks(context, ranks);
        int64_t count = 10 + hbp__rng_below(&rng, 2 * (uint64_t)ranks);
        hbp_lengths *lengths = test_long_tail(context, seed, count, 1000 + hbp__rng_below(&rng, 2000));
        hbp_step_options o = {.struct_size = sizeof o, .micro_batch_multiple = 2, .max_sp = 1};
        hbp_plan_summary loose, strict;
        OK(context, plan_summary(context, lengths, cost, &o, &loose));
        o.max_samples = 1;
        if (plan_summary(context, lengths, cost, &o, &strict) >= 0 &&
            strict.padding_packs <= loose.padding_packs && strict.micro_batches == 2) {
            ck_assert_msg(1000 * loose.predicted_ns <= 1005 * strict.predicted_ns, "seed %d: %lld, %lld",
                          (int)seed, (long long)loose.predicted_ns, (long long)strict.predicted_ns);
            alone++;
        }
        hbp_lengths_free(lengths);
        hbp_cost_free(cost);
    }
    ck_assert_int_gt(alone, 0);
}
END_TEST

START_TEST_IN_CONTEXT(more_effort_is_never_slower)
{
    hbp_cost *cost = keep(test_cost_ranks(context, 8));
    for (uint64_t seed = 0; seed < TEST_ROUNDS(24); seed++) {
        hbp__rng rng = hbp__rng_make(seed, 0, 6);
        hbp_lengths *lengths = test_long_tail(context, seed, 10 + hbp__rng_below(&rng, 30), 30000);
        hbp_step_options o = {.struct_size = sizeof o, .max_samples = 1 + (int32_t)hbp__rng_below(&rng, 2)};
        if (seed % 3)
            o = (hbp_step_options){.struct_size = sizeof o, .micro_batch_multiple = seed % 3 == 1 ? 3 : 0};
        int64_t before = INT64_MAX;
        for (o.effort = 1; o.effort <= 3; o.effort++) {
            hbp_plan_summary s;
            OK(context, plan_summary(context, lengths, cost, &o, &s));
            ck_assert_msg(s.predicted_ns <= before, "seed %d, effort %d: %lld, and %lld before", (int)seed,
                          (int)o.effort, (long long)s.predicted_ns, (long long)before);
            before = s.predicted_ns;
        }
        hbp_lengths_free(lengths);
    }
}
END_TEST

typedef struct inputs {
    hbp_lengths *lengths;
    hbp_cost *cost;
} inputs;

static hbp_status plan_once(hbp_context *context, void *user)
{
    const inputs *in = user;
    hbp_step_options o = {.struct_size = sizeof o, .max_samples = 2, .micro_batch_multiple = 2};
    hbp_plan *plan = NULL;
    hbp_status status = hbp_plan_step(context, in->lengths, in->cost, &o, &plan);
    hbp_plan_free(plan);
    return status;
}

START_TEST_IN_CONTEXT(nothing_is_left_behind)
{
    /* Few enough for the exact way of tiny steps, which allocates little. */
    inputs in = {keep(test_long_tail(context, 1, 9, 8000)), keep(test_cost_ranks(context, 4))};
    failing_sweep(plan_once, &in);
    ck_assert_int_gt(cancel_sweep(plan_once, &in), 4);
}
END_TEST

TEST_MAIN("scarce", no_number_of_micro_batches_is_shorter, samples_are_scarce_from_the_start,
          more_effort_is_never_slower, nothing_is_left_behind)
