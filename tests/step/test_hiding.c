/* Steps and epochs under a cost that hides traffic behind compute: against every plan of small steps, and
 * against plans made with constant overlap. */
#include "costs.h"
#include "hbp/glpk.h"
#include "keep.h"

#include "cost/straight.h"
#include "data/plan/plan.h"

enum { RANKS = 2, MOST = 5 };

static hbp_cost *hiding(hbp_context *context, int32_t ranks, double traffic, double overlap)
{
    hbp_cost *plain = test_cost_ranks(context, ranks), *cost = NULL;
    hbp_cost_terms terms = plain->terms;
    terms.traffic_ns = traffic;
    terms.compute_overlap = overlap;
    OK(context, hbp_cost_create_terms(context, &terms, &cost));
    hbp_cost_free(plain);
    return cost;
}

/* The least time of a pack; INT64_MAX where no number of layers makes it fit. */
static int64_t least_ns(const hbp_cost *cost, int32_t row, hbp__load load)
{
    int64_t least = INT64_MAX;
    for (int32_t c = 0; c <= cost->terms.layers; c++)
        if (hbp__cost_pack_bytes(cost, row, c, load) <= cost->terms.limit_bytes)
            least = hbp__min_i64(least, hbp__cost_pack_ns(cost, row, c, load));
    return least;
}

/* Every way to spread `count` samples over as many micro-batches of two ranks, each of two packs of degree 1
 * or one of degree 2: the least sum of slowest packs. */
static int64_t brute_force(const hbp_cost *cost, const uint32_t *tokens, int count)
{
    int64_t best = INT64_MAX, ways = 1;
    for (int i = 0; i < count; i++)
        ways *= RANKS * count;
    for (int64_t way = 0; way < ways; way++) {
        hbp__load load[MOST][RANKS] = {{{0}}};
        int64_t sum = 0, rest = way;
        for (int i = 0; i < count; i++, rest /= RANKS * count) {
            hbp__load *to = &load[rest % (RANKS * count) / RANKS][rest % RANKS];
            to->tokens += tokens[i];
            to->squares += (double)tokens[i] * tokens[i];
        }
        for (int m = 0; m < count && sum < best; m++) {
            const hbp__load *l = load[m];
            if (!l[0].tokens && !l[1].tokens)
                continue;
            const hbp__load both = {.tokens = l[0].tokens + l[1].tokens,
                                    .squares = l[0].squares + l[1].squares};
            const int64_t two = hbp__max_i64(least_ns(cost, 0, l[0]), least_ns(cost, 0, l[1]));
            const int64_t ns = hbp__min_i64(two, least_ns(cost, 1, both));
            sum = ns == INT64_MAX ? INT64_MAX : sum + ns;
        }
        best = hbp__min_i64(best, sum);
    }
    return best;
}

/* A plan's digest is that of its columns. */
static void check_seal(hbp_plan *plan)
{
    const uint64_t digest = plan->digest;
    hbp__plan_seal(plan);
    ck_assert_uint_eq(plan->digest, digest);
}

/* No plan is below the bound, the plan is one of those that there are. */
START_TEST_IN_CONTEXT(every_plan_of_a_small_step)
{
    hbp__rng rng = hbp__rng_make(17, 0, 0);
    const int trials = TEST_ROUNDS(80);
    int near = 0;
    for (int trial = 0; trial < trials; trial++) {
        uint32_t tokens[MOST];
        const int count = 1 + (int)hbp__rng_below(&rng, trial % 8 ? 4 : 5);
        for (int i = 0; i < count; i++)
            tokens[i] = 1 + hbp__rng_below(&rng, trial % 3 ? 4000 : 30000);
        hbp_cost *cost = hiding(context, RANKS, 1e6 * hbp__rng_below(&rng, 41), hbp__rng_below(&rng, 5) / 4.);
        hbp_lengths *lengths = NULL;
        hbp_plan *plan = NULL;
        OK(context, hbp_lengths_create_u32(context, tokens, count, NULL, &lengths));
        const int64_t step_ns = hbp__round_i64(cost->terms.step_ns);
        const int64_t least = brute_force(cost, tokens, count) + step_ns;
        OK(context, hbp_plan_step(context, lengths, cost, NULL, &plan));
        OK(context, hbp_plan_validate(context, plan, lengths, cost));
        check_seal(plan);
        ck_assert_int_le(plan->bound_ns, least);
        ck_assert_int_ge(hbp__plan_ns(plan), least);
        near += hbp__plan_ns(plan) <= least + least / 100;
        int64_t bound_ns = 0;
        OK(context, hbp_bound_epoch(context, lengths, cost, 1, &bound_ns));
        ck_assert_int_le(bound_ns, least);
        hbp_plan_free(plan);
        OK(context, hbp_plan_epoch(context, lengths, cost, NULL, &plan));
        OK(context, hbp_plan_validate(context, plan, lengths, cost));
        check_seal(plan);
        ck_assert_int_le(plan->free_bound_ns, least);
        hbp_plan_free(plan);
        hbp_lengths_free(lengths);
        hbp_cost_free(cost);
    }
    ck_assert_int_ge(near, trials * 9 / 10);
}
END_TEST

/* A plan is never slower than those that a constant share of hidden traffic makes. */
START_TEST_IN_CONTEXT(no_constant_overlap_is_better)
{
    for (uint64_t seed = 0; seed < (uint64_t)TEST_ROUNDS(8); seed++) {
        hbp_lengths *lengths = keep(test_long_tail(context, seed, 60, 20000));
        hbp_cost *cost = keep(hiding(context, 16, 1e7 * (double)(1 + seed), seed % 2 ? 1 : .5));
        hbp_plan *plan = NULL, *step = NULL;
        OK(context, hbp_plan_epoch(context, lengths, cost, NULL, &plan));
        OK(context, hbp_plan_validate(context, keep(plan), lengths, cost));
        OK(context, hbp_plan_step(context, lengths, cost, NULL, &step));
        OK(context, hbp_plan_validate(context, keep(step), lengths, cost));
        ck_assert_int_gt(plan->bound_ns, 0);
        ck_assert_int_le(plan->bound_ns, hbp__plan_ns(plan));
        ck_assert_int_gt(step->bound_ns, 0);
        ck_assert_int_le(step->bound_ns, hbp__plan_ns(step));
        for (int32_t i = 0; i < HBP__STRAIGHT_TRIES; i++) {
            const hbp_cost tried = hbp__cost_tried(cost, i);
            hbp_cost *constant = NULL;
            hbp_plan *other = NULL;
            OK(context, hbp_cost_create_terms(context, &tried.terms, &constant));
            OK(context, hbp_plan_epoch(context, lengths, constant, NULL, &other));
            OK(context, hbp__cost_time_plan(context, cost, keep(other)));
            ck_assert_int_le(hbp__plan_ns(plan), hbp__plan_ns(other));
            OK(context, hbp_plan_step(context, lengths, keep(constant), NULL, &other));
            OK(context, hbp__cost_time_plan(context, cost, keep(other)));
            ck_assert_int_le(hbp__plan_ns(step), hbp__plan_ns(other));
        }
    }
}
END_TEST

/* The same of the published methods, of steps that random sampling gives, and of lockstep sets. */
START_TEST_IN_CONTEXT(other_plans_hold)
{
    static const char *const methods[] = {"hbp", "isf", "no-packing", "hybrid-cp"};
    hbp_lengths *lengths = keep(test_long_tail(context, 3, 200, 20000));
    hbp_cost *cost = keep(hiding(context, 16, 3e7, 1));
    hbp_cost_terms terms = cost->terms;
    for (int i = 0; i < 4; i++) {
        hbp_epoch_options o = {.struct_size = sizeof o, .method = methods[i]};
        hbp_plan *plan = NULL;
        OK(context, hbp_plan_epoch(context, lengths, cost, &o, &plan));
        OK(context, hbp_plan_validate(context, keep(plan), lengths, cost));
    }
    for (int32_t set = 1; set <= 16; set *= 16) {
        hbp_cost *own = NULL;
        hbp_plan *plan = NULL;
        hbp_epoch_options o = {.struct_size = sizeof o, .samples_per_step = 32, .threads = 2};
        terms.lockstep_ranks = set;
        OK(context, hbp_cost_create_terms(context, &terms, &own));
        OK(context, hbp_plan_epoch(context, lengths, keep(own), &o, &plan));
        OK(context, hbp_plan_validate(context, keep(plan), lengths, own));
        ck_assert_int_le(plan->bound_ns, hbp__plan_ns(plan));
        ck_assert_int_gt(plan->bound_ns, 0);
    }
}
END_TEST

#ifdef HBP_TESTS_GLPK
/* The solver proves optima of linear costs: of one that bends nothing is proven until the bound says it. */
START_TEST_IN_CONTEXT(exact_proves_nothing)
{
    OK(context, hbp_context_set_solver(context, hbp_glpk_solver()));
    static const uint32_t tokens[] = {9000, 4000, 700};
    const hbp_step_options o = {.struct_size = sizeof o, .exact = 1};
    hbp_lengths *lengths = NULL;
    OK(context, hbp_lengths_create_u32(context, tokens, 3, NULL, &lengths));
    keep(lengths);
    for (int overlap = 0; overlap < 2; overlap++) {
        hbp_plan *plan = NULL;
        const hbp_cost *cost = keep(hiding(context, RANKS, 2e7, overlap));
        const hbp_status status = hbp_plan_step(context, lengths, cost, &o, &plan);
        const int64_t least = brute_force(cost, tokens, 3) + hbp__round_i64(cost->terms.step_ns);
        ck_assert_int_ge(hbp__plan_ns(keep(plan)), least);
        ck_assert_int_eq(status, overlap && plan->bound_ns < hbp__plan_ns(plan) ? HBP_NOT_PROVEN : HBP_OK);
        if (!overlap)
            ck_assert_int_le(hbp__plan_ns(plan), least + 8);
    }
}
END_TEST

TEST_MAIN("hiding", every_plan_of_a_small_step, no_constant_overlap_is_better, other_plans_hold,
          exact_proves_nothing)
#else
TEST_MAIN("hiding", every_plan_of_a_small_step, no_constant_overlap_is_better, other_plans_hold)
#endif
