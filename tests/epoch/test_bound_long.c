#include "base/methods.h"
#include "cost/cost.h"
#include "costs.h"
#include "data/plan/plan.h"
#include "epoch/bound.h"
#include "epoch/tuning.h"
#include "failing.h"
#include "hbp/plan.h"
#include "keep.h"
#include "spreads.h"

/* The least time of a pack with this sample alone. */
static int64_t alone(const hbp_cost *cost, int64_t length)
{
    int64_t least = INT64_MAX;
    for (int32_t row = 0; row < cost->terms.degrees; row++)
        for (int32_t c = 0; c <= cost->terms.layers; c++) {
            if (length > hbp_cost_predict_capacity(cost, cost->degree[row], c))
                continue;
            int64_t ns = hbp_cost_predict_pack_ns(cost, cost->degree[row], c, length,
                                                  (double)length * (double)length, 0);
            least = ns < least ? ns : least;
        }
    return least;
}

/* What a step surely takes: its longest sample alone, or its work spread evenly. */
static int64_t step_ns(const spread *s, const hbp_lengths *lengths)
{
    int64_t work = 0;
    OK(s->context, hbp_bound_epoch(s->context, lengths, s->cost, 1, &work));
    int64_t waits = alone(s->cost, lengths->bin_length[lengths->bins - 1]) + (int64_t)s->cost->terms.step_ns;
    return waits > work ? waits : work;
}

static int64_t bound_of(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                        int64_t tokens_per_step, int64_t *plain)
{
    hbp__epoch epoch = {context, lengths, cost, cost, NULL, {0}, HBP__STEP_SEARCH};
    int64_t steps = (lengths->tokens + tokens_per_step - 1) / tokens_per_step;
    OK(context, hbp_bound_epoch(context, lengths, cost, steps, plain));
    int64_t bound = *plain;
    OK(context, hbp__epoch_bound_long(&epoch, tokens_per_step, &bound));
    return bound;
}

START_TEST_IN_CONTEXT(no_way_to_spread_samples_is_faster)
{
    int64_t raised = 0, exact = 0;
    for (uint64_t seed = 0; seed < TEST_ROUNDS(300); seed++) {
        hbp__rng rng = hbp__rng_make(seed, 0, 0);
        hbp_cost *cost = test_cost_ranks(context, (int32_t)(8 << hbp__rng_below(&rng, 3)));
        int64_t length[SPREAD_MOST], count = 2 + hbp__rng_below(&rng, seed % 4 ? 4 : 6), longest = 0, plain;
        for (int64_t i = 0; i < count; i++) {
            int64_t most = hbp__rng_below(&rng, 2) ? 3000 : 120000;
            length[i] = 1 + hbp__rng_below(&rng, (uint64_t)most);
            longest = length[i] > longest ? length[i] : longest;
        }
        spread s = {context, cost,      length, count, longest + hbp__rng_below(&rng, 120000),
                    step_ns, INT64_MAX, {0},    {0}};
        hbp_lengths *lengths = spread_lengths(context, length, count);
        spread_all(&s, 0, 0);
        int64_t bound = bound_of(context, lengths, cost, s.tokens_per_step, &plain);
        ck_assert_int_ge(bound, plain);
        ck_assert_msg(bound <= s.best, "seed %d: %lld above %lld", (int)seed, (long long)bound,
                      (long long)s.best);
        raised += bound > plain;
        exact += bound == s.best;
        hbp_lengths_free(lengths);
        hbp_cost_free(cost);
    }
    ck_assert_int_gt(raised, TEST_ROUNDS(300) / 8);
    ck_assert_int_gt(exact, TEST_ROUNDS(300) / 8);
}
END_TEST

/* One giant among short samples: its step ends no sooner than it does, and holds few of the others. */
START_TEST_IN_CONTEXT(a_giant_is_waited_for)
{
    hbp_cost *cost = keep(test_cost_ranks(context, 32));
    int64_t length[2] = {250, 120000}, count[2] = {8000, 1}, plain, short_ns;
    hbp_lengths *lengths = NULL, *shorts = NULL;
    MAKES(context, lengths, hbp_lengths_create_histogram(context, length, count, 2, &lengths));
    int64_t bound = bound_of(context, lengths, cost, 250000, &plain);
    count[0] -= 1000; /* at most so many beside it */
    MAKES(context, shorts, hbp_lengths_create_histogram(context, length, count, 1, &shorts));
    OK(context, hbp_bound_epoch(context, shorts, cost, 8, &short_ns));
    ck_assert_int_gt(bound, plain);
    ck_assert_int_ge(bound, alone(cost, 120000) + short_ns);
    /* A step that holds all lets them run beside it. */
    ck_assert_int_eq(bound_of(context, lengths, cost, 3000000, &plain), plain);
}
END_TEST

/* More giants than are looked at one by one: as many steps as their tokens fill wait for them. */
START_TEST_IN_CONTEXT(many_giants_are_waited_for)
{
    hbp_cost *cost = keep(test_cost_ranks(context, 64));
    int64_t length[2] = {250, 90000}, count[2] = {8000, 60}, plain;
    hbp_lengths *lengths = NULL;
    MAKES(context, lengths, hbp_lengths_create_histogram(context, length, count, 2, &lengths));
    const int64_t bound = bound_of(context, lengths, cost, 200000, &plain);
    const int64_t each = alone(cost, 90000) + (int64_t)cost->terms.step_ns;
    ck_assert_int_gt(bound, plain);
    ck_assert_int_ge(bound, 27 * each);
    /* Two giants a step, and the others in steps of their own. */
    int64_t short_ns;
    hbp_lengths *shorts = NULL;
    MAKES(context, shorts, hbp_lengths_create_histogram(context, length, count, 1, &shorts));
    OK(context, hbp_bound_epoch(context, shorts, cost, 10, &short_ns));
    ck_assert_int_le(bound, 30 * each + short_ns);
}
END_TEST

/* More distinct lengths than are looked at one by one, beside a plan of them. */
START_TEST_IN_CONTEXT(many_lengths_are_few)
{
    enum { LENGTHS = HBP__BOUND_BINS + 5000 };
    hbp_cost *cost = keep(test_cost_ranks(context, 64));
    int64_t *length = malloc(LENGTHS * sizeof *length), plain;
    for (int64_t i = 0; i < LENGTHS; i++)
        length[i] = 1 + i + i / 8 * 9; /* up to 80,000 */
    hbp_lengths *lengths = NULL;
    MAKES(context, lengths, hbp_lengths_create_i64(context, length, LENGTHS, NULL, &lengths));
    free(length);
    hbp_epoch_options options = {
        .struct_size = sizeof options, .composition = HBP_COMPOSITION_HIERARCHY, .tokens_per_step = 200000};
    hbp_plan *plan = NULL;
    MAKES(context, plan, hbp_plan_epoch(context, lengths, cost, &options, &plan));
    const int64_t bound = bound_of(context, lengths, cost, 200000, &plain), ns = hbp__plan_ns(plan);
    ck_assert_int_gt(bound, plain + plain / 10);
    ck_assert_int_le(bound, ns);
    ck_assert_int_gt(bound, ns - ns / 8);
}
END_TEST

typedef struct inputs {
    hbp_lengths *lengths;
    hbp_cost *cost;
} inputs;

static hbp_status bound_once(hbp_context *context, void *user)
{
    inputs *in = user;
    hbp__epoch epoch = {context, in->lengths, in->cost, in->cost, NULL, {0}, HBP__STEP_SEARCH};
    int64_t bound = 1;
    return hbp__epoch_bound_long(&epoch, 250000, &bound);
}

START_TEST_IN_CONTEXT(nothing_is_left_behind)
{
    inputs in = {keep(spread_lengths(context, (int64_t[]){120000, 5, 250, 90000, 90000}, 5)),
                 keep(test_cost(context))};
    failing_sweep(bound_once, &in);
}
END_TEST

TEST_MAIN("bound_long", no_way_to_spread_samples_is_faster, a_giant_is_waited_for, many_giants_are_waited_for,
          many_lengths_are_few, nothing_is_left_behind)
