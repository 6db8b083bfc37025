#include "base/methods.h"
#include "base/scratch.h"
#include "batched.h"
#include "epoch/deal.h"
#include "failing.h"
#include "keep.h"

/* Each step has its share of the samples, long ones and short ones. */
START_TEST_IN_CONTEXT(steps_are_dealt_their_share)
{
    hbp_cost *cost = keep(test_cost(context));
    for (uint64_t seed = 0; seed < 12; seed++) {
        hbp_lengths *lengths = test_long_tail(context, seed, 150 + 100 * (int64_t)seed, 30000);
        hbp__epoch epoch = {context, lengths, cost, cost, NULL, {.seed = seed}, HBP__STEP_SEARCH};
        int64_t steps = 3 + (int64_t)seed;
        hbp__batches b;
        OK(context, hbp__batches_deal(&epoch, steps, INT64_MAX, &b));
        batched_check(&b, lengths);
        ck_assert_int_eq(b.steps, steps);
        ck_assert_int_eq(b.first[steps], lengths->count);
        int64_t bin = lengths->bins - 1, longest = 0, at_least = 0;
        while (longest < steps) /* so many longest samples are one a step */
            longest += lengths->bin_count[bin--];
        at_least = lengths->bin_length[bin + 1];
        for (int64_t s = 0; s < steps; s++) {
            int64_t longs = 0;
            ck_assert_int_ge(batched_samples(&b, s), lengths->count / steps);
            ck_assert_int_le(batched_samples(&b, s), lengths->count / steps + 1);
            for (int64_t i = b.first[s]; i < b.first[s + 1]; i++)
                longs += hbp__lengths_get(lengths, b.sample[i]) >= at_least;
            ck_assert_int_ge(longs, 1);
        }
        hbp__batches_close(&b);
        hbp_lengths_free(lengths);
    }
}
END_TEST

START_TEST_IN_CONTEXT(steps_hold_the_samples_asked_for)
{
    hbp_cost *cost = keep(test_cost(context));
    hbp_lengths *lengths = keep(test_long_tail(context, 3, 1000, 30000));
    for (int drop = 0; drop < 2; drop++)
        for (int64_t size = 1; size < 1200; size = 3 * size + 2) {
            hbp__epoch epoch = {
                context,         lengths, cost, cost, NULL, {.samples_per_step = size, .drop_last = drop},
                HBP__STEP_SEARCH};
            hbp__batches b;
            OK(context, hbp__batches_deal(&epoch, 0, INT64_MAX, &b));
            batched_check(&b, lengths);
            int64_t full = 1000 / size, rest = 1000 % size;
            ck_assert_int_eq(b.steps, full + (rest && (!drop || !full)));
            for (int64_t s = 0; s < full; s++)
                ck_assert_int_eq(batched_samples(&b, s), size);
            hbp__batches_close(&b);
        }
}
END_TEST

START_TEST_IN_CONTEXT(linked_samples_stay_together)
{
    hbp_cost *cost = keep(test_cost(context));
    for (uint64_t seed = 0; seed < 30; seed++) {
        hbp_lengths *lengths = batched_linked(context, seed, 200, 3000, 4);
        hbp__epoch epoch = {
            context,         lengths, cost, cost, NULL, {.samples_per_step = seed % 2 ? 25 : 0, .seed = seed},
            HBP__STEP_SEARCH};
        hbp__batches b;
        OK(context, hbp__batches_deal(&epoch, seed % 2 ? 0 : 9, INT64_MAX, &b));
        batched_check(&b, lengths);
        ck_assert_int_eq(b.steps, seed % 2 ? 8 : 9);
        ck_assert_int_eq(b.first[b.steps], 200);
        hbp__batches_close(&b);
        hbp_lengths_free(lengths);
    }
}
END_TEST

START_TEST_IN_CONTEXT(a_curriculum_comes_first)
{
    hbp_cost *cost = keep(test_cost(context));
    hbp_lengths *lengths = keep(test_long_tail(context, 3, 2000, 30000));
    hbp__epoch epoch = {
        context,         lengths, cost, cost, NULL, {.samples_per_step = 20, .curriculum_steps = 5},
        HBP__STEP_SEARCH};
    hbp__batches b;
    OK(context, hbp__batches_deal(&epoch, 0, 500, &b));
    batched_check(&b, lengths);
    ck_assert_int_eq(b.steps, 100);
    for (int64_t i = 0; i < b.first[5]; i++)
        ck_assert_int_le(hbp__lengths_get(lengths, b.sample[i]), 500);
    hbp__batches_close(&b);
}
END_TEST

/* One deal cut into several numbers of steps, in any order, is each time what it is by itself. */
START_TEST_IN_CONTEXT(a_deal_is_cut_more_than_once)
{
    static const int64_t numbers[] = {40, 7, 200, 1, 7, 5000};
    hbp_cost *cost = keep(test_cost(context));
    for (uint64_t seed = 0; seed < 8; seed++) {
        hbp_lengths *lengths = seed % 2 ? batched_linked(context, seed, 200, 3000, 4)
                                        : test_long_tail(context, seed, 300, 30000);
        hbp__epoch epoch = {context, lengths, cost, cost, NULL, {.seed = seed}, HBP__STEP_SEARCH};
        epoch.options.tokens_per_step = 40000;
        epoch.options.curriculum_steps = seed % 4 < 2 ? 0 : 3;
        hbp__deal deal;
        int64_t mark = hbp__scratch_mark(context);
        OK(context, hbp__deal_open(&epoch, 500, 0, &deal));
        for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
            hbp__batches b, alone;
            OK(context, hbp__deal_cut(&deal, numbers[i], &b));
            OK(context, hbp__batches_deal(&epoch, numbers[i], 500, &alone));
            batched_check(&b, lengths);
            ck_assert_int_eq(b.steps, alone.steps);
            ck_assert_mem_eq(b.first, alone.first, (size_t)(b.steps + 1) * sizeof *b.first);
            ck_assert_mem_eq(b.sample, alone.sample, (size_t)lengths->count * sizeof *b.sample);
            hbp__batches_close(&alone);
            hbp__batches_close(&b);
        }
        hbp__deal_close(&deal);
        hbp__scratch_release(context, mark);
        hbp_lengths_free(lengths);
    }
}
END_TEST

/* Of fewer samples than a step holds, behind a curriculum or alone. */
START_TEST_IN_CONTEXT(drop_last_drops_what_is_no_step)
{
    hbp_cost *cost = keep(test_cost(context));
    const int64_t length[] = {1, 1, 1, 1, 1, 1, 9, 9, 9};
    hbp_lengths *lengths = NULL;
    MAKES(context, lengths, hbp_lengths_create_i64(context, length, 9, NULL, &lengths));
    hbp__epoch epoch = {context,         lengths, cost, cost, NULL, {.samples_per_step = 10, .drop_last = 1},
                        HBP__STEP_SEARCH};
    hbp__batches b;
    FAILS(context, HBP_E_INFEASIBLE,
          "drop_last leaves no step: there are 9 samples, and samples_per_step is 10",
          hbp__batches_deal(&epoch, 0, INT64_MAX, &b));
    hbp__batches_close(&b);
    epoch.options.samples_per_step = 6;
    epoch.options.curriculum_steps = 1;
    OK(context, hbp__batches_deal(&epoch, 0, 1, &b));
    batched_check(&b, lengths);
    ck_assert_int_eq(b.steps, 1);
    ck_assert_int_eq(b.first[1], 6);
    hbp__batches_close(&b);
}
END_TEST

/* The estimate from all steps is their time. */
START_TEST_IN_CONTEXT(all_steps_estimate_themselves)
{
    hbp_cost *cost = keep(test_cost(context));
    hbp_lengths *lengths = keep(test_long_tail(context, 2, 400, 30000));
    hbp__epoch epoch = {context, lengths, cost, cost, NULL, {.micro_batch_multiple = 2}, HBP__STEP_SEARCH};
    hbp__batches b;
    hbp_plan *plan = NULL;
    int64_t ns = 0, sum = 0;
    OK(context, hbp__batches_deal(&epoch, 5, INT64_MAX, &b));
    b.bounds = 1;
    MAKES(context, plan, hbp__batches_plan(&epoch, &b, &plan));
    OK(context, hbp_plan_validate(context, plan, lengths, cost));
    planned_check(context, plan, lengths);
    for (int64_t s = 0; s < 5; s++) {
        ck_assert_int_eq((plan->step_offsets[s + 1] - plan->step_offsets[s]) % 2, 0);
        sum += plan->step_ns[s];
    }
    OK(context, hbp__batches_estimate(&epoch, &b, 5, &ns));
    ck_assert_int_le(llabs(ns - sum), 1 + sum / 1000000);
    ck_assert_int_gt(plan->bound_ns, 0);
    ck_assert_int_le(plan->bound_ns, sum);
    hbp__batches_close(&b);
}
END_TEST

/* One of six steps waits for a sample as long as a hundred others: a step of the rest tells nothing of it. */
START_TEST_IN_CONTEXT(the_longest_sample_is_seen)
{
    hbp_cost *cost = keep(test_cost(context));
    uint32_t length[1201];
    for (int i = 0; i < 1200; i++)
        length[i] = 100 + (uint32_t)(i * 7 % 300);
    length[1200] = 100000;
    hbp_lengths *lengths = NULL;
    MAKES(context, lengths, hbp_lengths_create_u32(context, length, 1201, NULL, &lengths));
    hbp__epoch epoch = {context, lengths, cost, cost, NULL, {.seed = 1}, HBP__STEP_SEARCH};
    hbp__batches b;
    hbp_plan *plan = NULL;
    int64_t sum = 0;
    OK(context, hbp__batches_deal(&epoch, 6, INT64_MAX, &b));
    MAKES(context, plan, hbp__batches_plan(&epoch, &b, &plan));
    for (int64_t s = 0; s < 6; s++)
        sum += plan->step_ns[s];
    for (int64_t sample = 1; sample <= 6; sample++) {
        int64_t ns = 0;
        OK(context, hbp__batches_estimate(&epoch, &b, sample, &ns));
        ck_assert_msg(llabs(ns - sum) <= sum / 50, "%d steps: %lld, all %lld", (int)sample, (long long)ns,
                      (long long)sum);
    }
    hbp__batches_close(&b);
}
END_TEST

/* Steps that wait for a long sample and steps that do not are seen in their proportion, wherever they stand.
 */
START_TEST_IN_CONTEXT(steps_are_seen_by_their_longest)
{
    enum { STEPS = 66, EACH = 20, SAMPLE = 3 };
    hbp_cost *cost = keep(test_cost(context));
    for (int round = 0; round < 6; round++) {
        uint32_t length[STEPS * EACH];
        int64_t first[STEPS + 1], sum = 0, ns = 0;
        uint32_t sample[STEPS * EACH];
        for (int i = 0; i < STEPS * EACH; i++) {
            const int has_long = (i / EACH + 4 * round) % (STEPS / SAMPLE) < STEPS / SAMPLE / 3;
            length[i] = i % EACH == 7 && has_long ? 60000 : 100 + (uint32_t)(i * 7 % 300);
            sample[i] = (uint32_t)i;
        }
        for (int step = 0; step <= STEPS; step++)
            first[step] = (int64_t)step * EACH;
        hbp_lengths *lengths = NULL;
        hbp_plan *plan = NULL;
        OK(context, hbp_lengths_create_u32(context, length, STEPS * EACH, NULL, &lengths));
        hbp__epoch epoch = {context, lengths, cost, cost, NULL, {.seed = 1}, HBP__STEP_SEARCH};
        const hbp__batches b = {.how = HBP__BATCHES_BUILT, .steps = STEPS, .first = first, .sample = sample};
        OK(context, hbp__batches_plan(&epoch, &b, &plan));
        for (int step = 0; step < STEPS; step++)
            sum += plan->step_ns[step];
        OK(context, hbp__batches_estimate(&epoch, &b, SAMPLE, &ns));
        ck_assert_msg(llabs(ns - sum) <= sum / 30, "round %d: %lld, all %lld", round, (long long)ns,
                      (long long)sum);
        hbp_plan_free(plan);
        hbp_lengths_free(lengths);
    }
}
END_TEST

typedef struct inputs {
    hbp_lengths *lengths;
    hbp_cost *cost;
} inputs;

static hbp_status deal_once(hbp_context *context, void *user)
{
    const inputs *in = user;
    hbp__epoch epoch = {context,         in->lengths, in->cost, in->cost, NULL, {.samples_per_step = 4},
                        HBP__STEP_SEARCH};
    hbp__batches b;
    int64_t ns;
    hbp_status status = hbp__batches_deal(&epoch, 0, INT64_MAX, &b);
    if (status >= 0)
        status = hbp__batches_estimate(&epoch, &b, 2, &ns);
    hbp__batches_close(&b);
    return status;
}

START_TEST_IN_CONTEXT(nothing_is_left_behind)
{
    inputs in = {keep(test_long_tail(context, 1, 14, 9000)), keep(test_cost_ranks(context, 2))};
    failing_sweep(deal_once, &in);
}
END_TEST

TEST_MAIN("batches_deal", steps_are_dealt_their_share, steps_hold_the_samples_asked_for,
          linked_samples_stay_together, a_curriculum_comes_first, a_deal_is_cut_more_than_once,
          drop_last_drops_what_is_no_step, all_steps_estimate_themselves, the_longest_sample_is_seen,
          steps_are_seen_by_their_longest, nothing_is_left_behind)
