/* Steps of like samples, where no groups keep to the tokens of a step. */
#include "base/methods.h"
#include "base/rng.h"
#include "epoch/weigh.h"
#include "failing.h"
#include "keep.h"
#include "planned.h"
#include "spreads.h"

static hbp_epoch_options with(int32_t composition, int64_t tokens_per_step)
{
    return (hbp_epoch_options){.struct_size = sizeof(hbp_epoch_options),
                               .composition = composition,
                               .tokens_per_step = tokens_per_step,
                               .seed = 3};
}

static hbp_plan *plan_with(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                           const hbp_epoch_options *options)
{
    hbp_plan *plan = planned_with(context, lengths, cost, options);
    for (int64_t s = 0; s < plan->steps && options->tokens_per_step; s++)
        ck_assert_int_le(plan->step_tokens[s], options->tokens_per_step);
    return plan;
}

/* Many short samples, and one in `rare` of up to 90,000 tokens. */
static hbp_lengths *long_and_short(hbp_context *context, uint64_t seed, int64_t count, int64_t rare)
{
    uint32_t *length = malloc((size_t)count * sizeof *length);
    hbp__rng rng = hbp__rng_make(seed, 0, 0);
    for (int64_t i = 0; i < count; i++)
        length[i] = 1 + (uint32_t)hbp__rng_below(&rng, hbp__rng_below(&rng, (uint64_t)rare) ? 3000 : 90000);
    hbp_lengths *lengths = NULL;
    OK(context, hbp_lengths_create_u32(context, length, count, NULL, &lengths));
    free(length);
    return lengths;
}

/* A micro-batch of the longest samples, one on each of eight SP groups, is more than a step may hold. A
 * shuffled sampler's steps then wait for a long sample each. */
START_TEST_IN_CONTEXT(few_steps_wait_for_long_samples)
{
    hbp_cost *cost = keep(test_cost_ranks(context, 64));
    int64_t drawn_ns = 0, sorted_ns = 0, bound_ns = 0;
    for (uint64_t seed = 0; seed < TEST_ROUNDS(6); seed++) {
        const int mark = keep_mark();
        hbp_lengths *lengths = keep(long_and_short(context, seed, 600, 9));
        const int64_t tokens = 120000 + 40000 * (int64_t)(seed % 4);
        hbp_epoch_options options = with(HBP_COMPOSITION_RANDOM, tokens);
        const hbp_plan *drawn = keep(plan_with(context, lengths, cost, &options));
        options = with(HBP_COMPOSITION_HIERARCHY, tokens);
        hbp_plan *sorted = keep(plan_with(context, lengths, cost, &options));
        ck_assert_int_eq(sorted->composition, HBP_COMPOSITION_HIERARCHY);
        ck_assert_int_eq(sorted->tokens_per_step, tokens);
        ck_assert_int_ge(hbp__plan_ns(sorted), sorted->bound_ns);
        ck_assert_int_ge(hbp__plan_ns(drawn), sorted->bound_ns);
        options = with(HBP_COMPOSITION_AUTO, tokens);
        hbp_plan *plan = keep(plan_with(context, lengths, cost, &options));
        ck_assert_int_eq(plan->hierarchy_ns, hbp__plan_ns(sorted));
        ck_assert_int_le(hbp__plan_ns(plan), hbp__plan_ns(sorted) + hbp__plan_ns(sorted) / 100);
        drawn_ns += hbp__plan_ns(drawn);
        sorted_ns += hbp__plan_ns(sorted);
        bound_ns += sorted->bound_ns;
        keep_release(mark);
    }
    ck_assert_int_lt(sorted_ns, drawn_ns / 5 * 4);
    ck_assert_int_lt(sorted_ns, bound_ns / 10 * 13);
}
END_TEST

static int64_t step_ns(const spread *s, const hbp_lengths *lengths)
{
    hbp_plan *plan = NULL;
    OK(s->context, hbp_plan_step(s->context, lengths, s->cost, NULL, &plan));
    const int64_t ns = hbp__plan_ns(plan);
    hbp_plan_free(plan);
    return ns;
}

/* Beside the best of all spreads of few samples. */
START_TEST_IN_CONTEXT(sorted_steps_are_near_the_best_spread)
{
    enum { MOST = 6 };
    hbp_cost *cost = keep(test_cost_ranks(context, 64));
    double ratio = 0;
    int64_t best = 0, rounds = TEST_ROUNDS(24);
    for (int64_t seed = 0; seed < rounds; seed++) {
        const int mark = keep_mark();
        hbp__rng rng = hbp__rng_make((uint64_t)seed, 0, 0);
        int64_t length[MOST], longest = 0;
        for (int i = 0; i < MOST; i++) {
            length[i] = 1 + (int64_t)hbp__rng_below(&rng, hbp__rng_below(&rng, 2) ? 4000 : 90000);
            longest = hbp__max_i64(longest, length[i]);
        }
        spread s = {context, cost,      length, MOST, longest + (int64_t)hbp__rng_below(&rng, 60000),
                    step_ns, INT64_MAX, {0},    {0}};
        spread_all(&s, 0, 0);
        hbp_lengths *lengths = spread_lengths(context, length, MOST);
        hbp_epoch_options options = with(HBP_COMPOSITION_HIERARCHY, s.tokens_per_step);
        const hbp_plan *plan = keep(plan_with(context, keep(lengths), cost, &options));
        const double over = (double)hbp__plan_ns(plan) / (double)s.best;
        ck_assert_msg(over < 1.3, "seed %d: %.3f", (int)seed, over);
        ck_assert_int_le(plan->bound_ns, s.best);
        best += over < 1.0001;
        ratio += over;
        keep_release(mark);
    }
    ck_assert_double_lt(ratio / (double)rounds, 1.04);
    ck_assert_int_gt(best, rounds / 2);
}
END_TEST

START_TEST_IN_CONTEXT(options_are_kept)
{
    hbp_cost *cost = keep(test_cost_ranks(context, 64));
    hbp_lengths *lengths = keep(long_and_short(context, 5, 400, 9));
    hbp_epoch_options options = with(HBP_COMPOSITION_HIERARCHY, 150000);
    const hbp_plan *plan = keep(plan_with(context, lengths, cost, &options));
    options.threads = 3;
    ck_assert(keep(plan_with(context, lengths, cost, &options))->digest == plan->digest);
    options.seed = 4;
    ck_assert(keep(plan_with(context, lengths, cost, &options))->digest != plan->digest);
    /* A curriculum's steps come first. */
    options.curriculum_steps = 2;
    plan = keep(plan_with(context, lengths, cost, &options));
    int64_t longest[2] = {0, 0};
    for (int64_t s = 0, p = 0; s < plan->steps; s++)
        for (; p < plan->micro_batch_offsets[plan->step_offsets[s + 1]]; p++)
            for (int64_t i = plan->pack_offsets[p]; i < plan->pack_offsets[p + 1]; i++)
                longest[s > 1] = hbp__max_i64(longest[s > 1], plan->sample_tokens[i]);
    ck_assert_int_lt(longest[0], longest[1]);
    options.curriculum_steps = 0;
    options.max_samples = 5;
    keep(plan_with(context, lengths, cost, &options));
    /* A last step that is not full is left over; auto prefers such steps to drawn ones here, too. */
    options.max_samples = 0;
    options.composition = HBP_COMPOSITION_AUTO;
    options.drop_last = 1;
    plan = keep(plan_with(context, lengths, cost, &options));
    ck_assert_int_eq(plan->composition, HBP_COMPOSITION_HIERARCHY);
    ck_assert_int_gt(plan->mixture_ns, plan->hierarchy_ns);
    for (int64_t s = 0; s < plan->steps; s++)
        ck_assert_int_ge(plan->step_tokens[s], 150000 / 4 * 3);
    options.drop_last = 0;
    options.composition = HBP_COMPOSITION_HIERARCHY;
    /* What steps of like samples keep to neither, groups refuse. */
    hbp_plan *none = NULL;
    options.tokens_per_rank = 3000;
    FAILS(context, HBP_E_INFEASIBLE, "tokens_per_rank",
          hbp_plan_epoch(context, lengths, cost, &options, &none));
}
END_TEST

START_TEST_IN_CONTEXT(nothing_is_left_behind)
{
    planned_inputs in = {keep(long_and_short(context, 7, 40, 6)), keep(test_cost_ranks(context, 64)),
                         with(HBP_COMPOSITION_HIERARCHY, 120000)};
    failing_sweep(planned_once, &in);
}
END_TEST

TEST_MAIN("sort", few_steps_wait_for_long_samples, sorted_steps_are_near_the_best_spread, options_are_kept,
          nothing_is_left_behind)
