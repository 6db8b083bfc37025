/* Vision units in a step: what groups hold and take against the cost itself, plans and bounds of small steps
 * against the exact optimum, and every way of planning against the validator and the replay. */
#include <math.h>

#include "base/methods.h"
#include "keep.h"
#include "lockstep_steps.h"
#include "step/builder.h"
#include "stepped.h"

static small_step open_vision(uint64_t seed, int32_t most, double work)
{
    static const int32_t ranks[] = {2, 4, 8};
    small_step s = small_open(seed, (int)(seed % SMALL_KINDS), ranks[seed / SMALL_KINDS % 3], most, work);
    small_vision(&s, seed / 2);
    return s;
}

/* Time, layers and room of random loads, by trying every number of layers. */
START_TEST(groups_hold_and_take_what_the_cost_says)
{
    int64_t held = 0, full = 0;
    for (uint64_t seed = 0; seed < 90; seed++) {
        small_step s = open_vision(seed, 9, 1e5);
        hbp__rng rng = hbp__rng_make(seed, 3, 0);
        hbp__step step;
        if (hbp__step_open(s.context, s.lengths, s.cost, &s.options, &step) >= 0 && step.vision) {
            exact_step e = small_exact(&s);
            for (int i = 0; i < 60; i++) {
                int32_t j = (int32_t)hbp__rng_below(&rng, (uint64_t)step.degrees);
                hbp__load load = {.tokens = 1 + hbp__rng_below(&rng, (uint64_t)step.degree[j].capacity),
                                  .vision = hbp__rng_below(&rng, 30)};
                load.squares = (double)load.tokens * 900;
                int64_t right = exact_holds(&e, 0, load.vision)
                                    ? exact_load_ns(&e, j, load.tokens, load.squares, load.vision)
                                    : EXACT_NEVER;
                ck_assert_int_eq(hbp__step_group_ns(&step, j, load), right);
                ck_assert_int_eq(hbp__step_holds(&step, j, load), right != EXACT_NEVER);
                ck_assert((hbp__step_vision_excess(&step, j, load) > 0) == (right == EXACT_NEVER));
                full += right == EXACT_NEVER;
                if (right == EXACT_NEVER)
                    continue;
                double time = hbp__step_group_time(&step, j, load);
                ck_assert_double_eq_tol(time, (double)right, 1 + time * 1e-9);
                held++;
            }
        }
        hbp__step_close(&step);
        small_close(&s);
    }
    ck_assert_int_gt(held, 1000);
    ck_assert_int_gt(full, 300);
}
END_TEST

/* The one that takes longest comes first, with its own tokens, squares and vision units. */
START_TEST(sequences_are_ordered_by_what_they_take)
{
    for (uint64_t seed = 0; seed < 60; seed++) {
        small_step s = open_vision(seed, 20, 1e5);
        hbp__step step;
        if (hbp__step_open(s.context, s.lengths, s.cost, &s.options, &step) >= 0 && step.vision) {
            int64_t vision = 0, all = 0, room = 0;
            for (int64_t k = 0; k < step.count; k++) {
                int64_t units = 0, item = hbp__step_item(&step, k);
                for (uint32_t i = step.items.sample[item]; i != HBP__NO_SAMPLE;
                     i = step.items.next ? step.items.next[i] : HBP__NO_SAMPLE)
                    units += s.vision[i];
                ck_assert_int_eq(step.vision[k], units);
                ck_assert_int_eq(step.tokens[k], step.items.size[item]);
                ck_assert_double_eq(step.squares[k], (double)hbp__items_exact_squares(&step.items, item));
                ck_assert(!k || step.weight[k] <= step.weight[k - 1]);
                ck_assert_int_le(step.weight[k] ? 1 : 0, step.tokens[k]);
                vision += units;
                room += hbp__step_room(&step, k);
            }
            for (int64_t i = 0; i < s.count; i++)
                all += s.vision[i];
            ck_assert_int_eq(vision, all);
            ck_assert_int_eq(room, step.total_tokens);
        }
        hbp__step_close(&step);
        small_close(&s);
    }
}
END_TEST

START_TEST(plans_lie_between_optimum_and_bound)
{
    int64_t planned = 0, never = 0, capped = 0, seeds = TEST_FEW(450, 90);
    double over = 0, below = 0;
    for (uint64_t seed = 0; seed < (uint64_t)seeds; seed++) {
        small_step s = open_vision(seed, seed % 2 ? 9 : 12, 2e5);
        if (seed % 3 == 1)
            small_limit(&s, seed / 3);
        s.options.micro_batch_multiple = seed % 7 == 3 ? 2 : 0;
        exact_step e = small_exact(&s);
        int64_t best = exact_step_ns(&e);
        stepped plan = stepped_small(&s);
        if (plan.status < 0) {
            ck_assert_int_eq(plan.status, HBP_E_INFEASIBLE);
            ck_assert_int_eq(best, EXACT_NEVER);
            never++;
        } else {
            ck_assert_int_lt(best, EXACT_NEVER);
            ck_assert_int_le(plan.bound_ns, plan.ns);
            /* Micro-batches that complete a number may be of dummies in the bound's plans. */
            if (!s.options.micro_batch_multiple)
                ck_assert_int_ge(plan.ns, best);
            ck_assert_msg(plan.bound_ns <= best, "seed %d: bound %lld, optimum %lld", (int)seed,
                          (long long)plan.bound_ns, (long long)best);
            planned++;
            capped += s.options.max_vision > 0;
            over += (double)plan.ns / (double)best - 1;
            below += 1 - (double)plan.bound_ns / (double)best;
        }
        small_close(&s);
    }
    ck_assert_int_gt(planned, seeds * 5 / 9);
    ck_assert_int_gt(capped, seeds / 15);
    ck_assert_int_gt(never, seeds / 90);
    ck_assert_double_lt(over / (double)planned, .03); /* idle ranks filled and numbers completed included */
    ck_assert_double_lt(below / (double)planned, .05);
}
END_TEST

/* Larger than what is solved exactly by the library. */
START_TEST(searches_come_near_the_optimum)
{
    int64_t planned = 0;
    double over = 0, below = 0;
    for (uint64_t seed = 0; seed < TEST_ROUNDS(90); seed++) {
        small_step s = small_open(seed, seed % 3 ? SMALL_EQUAL : SMALL_RECOMPUTE, 8, 24, 3e6);
        small_vision(&s, seed);
        if (s.count < 10 || seed % 3 == 0) {
            small_close(&s);
            continue;
        }
        exact_step e = small_exact(&s);
        if (exact_step_work(&e) < 4e7) {
            int64_t best = exact_step_ns(&e);
            stepped plan = stepped_small(&s);
            ck_assert((plan.status < 0) == (best == EXACT_NEVER));
            if (plan.status >= 0) {
                ck_assert_int_ge(plan.ns, best);
                ck_assert_int_le(plan.bound_ns, best);
                over += (double)plan.ns / (double)best - 1;
                below += 1 - (double)plan.bound_ns / (double)best;
                planned++;
            }
        }
        small_close(&s);
    }
    ck_assert_int_gt(planned, TEST_ROUNDS(90) / 8);
    ck_assert_double_lt(over / (double)planned, .05);
    ck_assert_double_lt(below / (double)planned, .15);
}
END_TEST

/* Lengths with a long tail, and images that have nothing to do with them. */
static hbp_lengths *draw(hbp_context *context, uint64_t seed, int64_t count, const int64_t *link)
{
    hbp__rng rng = hbp__rng_make(seed, 4, 0);
    uint32_t length[600], vision[600];
    hbp_lengths *lengths = NULL;
    for (int64_t i = 0; i < count; i++) {
        length[i] = 64 + (uint32_t)(hbp__rng_below(&rng, 6000) >> hbp__rng_below(&rng, 5));
        vision[i] = hbp__rng_below(&rng, 3) ? (uint32_t)hbp__rng_below(&rng, 12) : 0;
    }
    hbp_lengths_options options = {.struct_size = sizeof options, .links = link, .vision = vision};
    OK(context, hbp_lengths_create_u32(context, length, count, &options, &lengths));
    return lengths;
}

static hbp_cost *charge(hbp_context *context, int32_t lockstep, int32_t uneven, double ns, double bytes)
{
    hbp_cost *plain = lockstep_cost(context, 8, lockstep, uneven, 4e7, 0), *cost = NULL;
    hbp_cost_terms terms = {.struct_size = sizeof terms};
    OK(context, hbp_cost_get_terms(context, plain, &terms));
    terms.ns_per_vision = terms.ns_per_token * ns;
    terms.recompute_vision = .3;
    terms.vision_bytes = (terms.activation_bytes * terms.layers + terms.logits_bytes) * bytes;
    OK(context, hbp_cost_create_terms(context, &terms, &cost));
    hbp_cost_free(plain);
    return cost;
}

START_TEST_IN_CONTEXT(every_way_of_planning_counts_vision_units)
{
    static const int32_t modes[] = {HBP__STEP_SEARCH, HBP__STEP_STATIC_SP, HBP__STEP_HOMOGENEOUS_SP,
                                    HBP__STEP_HYBRID_CP, HBP__STEP_DYNAMIC_CP};
    for (uint64_t seed = 0; seed < TEST_ROUNDS(24); seed++) {
        int32_t set = seed % 3 == 1 ? 1 : seed % 3 == 2 ? 4 : 0;
        hbp_cost *cost = charge(context, set, seed % 2 && set, 500, seed % 4 ? 300 : 0);
        hbp_lengths *lengths = draw(context, seed, 40 + (int64_t)seed * 7, NULL);
        int64_t bound_ns, bound = INT64_MAX, ns = INT64_MAX;
        for (int i = 0; i < 5; i++) {
            hbp_step_options o = {.struct_size = sizeof o, .method = hbp__step_name(modes[i])};
            o.max_vision = seed % 4 == 3 ? 30 : 0;
            int64_t here = lockstep_plan_ns(context, cost, lengths, &o, &bound_ns);
            bound = i ? bound : bound_ns;
            ns = i ? ns : here;
            ck_assert_int_le(ns, here); /* the default begins with all of them */
            ck_assert_int_le(bound, here);
        }
        ck_assert_int_gt(bound, 0);
        hbp_lengths_free(lengths);
        hbp_cost_free(cost);
    }
}
END_TEST

START_TEST_IN_CONTEXT(options_are_kept_beside_vision_units)
{
    hbp_cost *cost = keep(charge(context, 0, 0, 500, 200));
    int64_t link[120];
    for (int64_t i = 0; i < 120; i++)
        link[i] = i % 5 ? -1 : i / 10;
    for (uint64_t seed = 0; seed < 12; seed++) {
        hbp_lengths *lengths = draw(context, seed, 120, seed % 2 ? link : NULL);
        hbp_step_options o = {.struct_size = sizeof o, .max_vision = 40};
        o.tokens_per_rank = seed % 3 == 1 ? 4096 : 0;
        o.max_samples = seed % 4 == 1 ? 5 : 0;
        o.sequence_multiple_per_sp = seed % 5 == 1 ? 16 : 0;
        o.pack_multiple = seed % 5 == 2 ? 128 : 0;
        o.micro_batch_multiple = seed % 6 == 4 ? 3 : 0;
        o.equal_samples = seed % 6 == 5;
        stepped plan = stepped_plan(context, lengths, cost, &o);
        ck_assert_int_eq(plan.status, HBP_OK);
        ck_assert_int_gt(plan.bound_ns, 0);
        hbp_lengths_free(lengths);
    }
}
END_TEST

/* Without a charge and without a cap they change nothing; a charge of nothing is none. */
START_TEST_IN_CONTEXT(units_that_do_not_count_change_nothing)
{
    hbp_cost *plain = keep(charge(context, 0, 0, 0, 0));
    hbp_lengths *lengths = keep(draw(context, 3, 200, NULL));
    hbp_step_options o = {.struct_size = sizeof o};
    stepped with = stepped_plan(context, lengths, plain, &o);
    o.max_vision = 1000; /* more than all of a micro-batch */
    stepped capped = stepped_plan(context, lengths, plain, &o);
    ck_assert_double_eq_tol((double)with.ns, (double)capped.ns, (double)with.ns * .01);
    ck_assert_int_le(capped.bound_ns, with.ns);
}
END_TEST

START_TEST_IN_CONTEXT(what_holds_no_group_is_refused)
{
    hbp_cost *cost = keep(charge(context, 0, 0, 500, 300));
    hbp_lengths_options v = {.struct_size = sizeof v, .vision = (uint32_t[]){3, 9, 4, 5}};
    hbp_step_options o = {.struct_size = sizeof o, .max_vision = 5};
    hbp_lengths *lengths = NULL;
    hbp_plan *plan = NULL;
    OK(context, hbp_lengths_create_u32(context, (uint32_t[]){50, 20, 30, 40}, 4, &v, &lengths));
    FAILS(context, HBP_E_INFEASIBLE, "sample 1 has 9 vision units; max_vision is 5 (9 would do)",
          hbp_plan_step(context, lengths, cost, &o, &plan));
    hbp_lengths_free(lengths);
    lengths = NULL;
    v.links = (int64_t[]){7, -1, 7, -1};
    o.max_vision = 6;
    v.vision = (uint32_t[]){3, 1, 4, 5};
    OK(context, hbp_lengths_create_u32(context, (uint32_t[]){50, 20, 30, 40}, 4, &v, &lengths));
    FAILS(context, HBP_E_INFEASIBLE,
          "with its linked samples has 7 vision units; max_vision is 6 (7 would do)",
          hbp_plan_step(context, lengths, cost, &o, &plan));
    o.max_vision = -1;
    FAILS(context, HBP_E_INVALID, "`max_vision` is -1; it must be in 0..",
          hbp_plan_step(context, lengths, cost, &o, &plan));
    o.max_vision = 0;
    o.method = hbp__step_name(HBP__STEP_FLEXSP);
    FAILS(context, HBP_E_INVALID,
          "method flexsp does not plan for vision units, which the lengths have 13 of",
          hbp_plan_step(context, lengths, cost, &o, &plan));
    hbp_lengths_free(lengths);
    lengths = NULL;
    v = (hbp_lengths_options){.struct_size = sizeof v, .vision = (uint32_t[]){3, 2000000, 4, 5}};
    o.method = hbp__step_name(HBP__STEP_SEARCH);
    OK(context, hbp_lengths_create_u32(context, (uint32_t[]){50, 20, 30, 40}, 4, &v, &lengths));
    FAILS(context, HBP_E_INFEASIBLE,
          "sample 1 has 20 tokens with padding and 2000000 vision units; no SP group has memory for both",
          hbp_plan_step(context, lengths, cost, &o, &plan));
    ck_assert_ptr_null(plan);
    hbp_lengths_free(lengths);
}
END_TEST

/* Memory that is full but for some tokens or units, whose bytes the caller adds. */
static hbp_cost_terms scarce_memory(void)
{
    static const int32_t degree[] = {1, 2, 4, 8};
    static const double none[4] = {0};
    return (hbp_cost_terms){.struct_size = sizeof(hbp_cost_terms),
                            .ranks = 8,
                            .layers = 22,
                            .ns_per_token = 2,
                            .static_bytes = 51138300,
                            .limit_bytes = 51294011,
                            .degrees = 4,
                            .degree = degree,
                            .sp_latency_ns = none,
                            .sp_ns_per_token = none};
}

/* Whether one sample is planned: where its padded pack fits with all layers recomputed, and then validly. */
static int plans_what_fits(hbp_context *context, const hbp_cost *cost, uint32_t tokens, uint32_t units,
                           int64_t multiple)
{
    hbp_lengths *lengths = NULL;
    hbp_plan *plan = NULL;
    hbp_lengths_options with = {.struct_size = sizeof with, .vision = &units};
    hbp_step_options o = {.struct_size = sizeof o, .pack_multiple = multiple};
    hbp_cost_terms t = {.struct_size = sizeof t};
    OK(context, hbp_cost_get_terms(context, cost, &t));
    OK(context, hbp_lengths_create_u32(context, &tokens, 1, &with, &lengths));
    int64_t padded = hbp__round_up(tokens, multiple);
    int fits = hbp_cost_predict_pack_bytes(cost, 8, t.layers, padded, units) <= t.limit_bytes;
    ck_assert_int_eq(hbp_plan_step(context, lengths, cost, &o, &plan), fits ? HBP_OK : HBP_E_INFEASIBLE);
    if (fits)
        OK(context, hbp_plan_validate(context, plan, lengths, cost));
    hbp_plan_free(plan);
    hbp_lengths_free(lengths);
    return fits;
}

/* A pack's padding takes memory that units would need, and layers that no token asks for make room. */
START_TEST_IN_CONTEXT(padding_and_units_share_the_last_bytes)
{
    hbp_cost_terms t = scarce_memory();
    hbp_cost *cost = NULL;
    int64_t planned = 0, refused = 0;
    t.pack_ns = 1575;
    t.activation_bytes = 1539.18;
    t.recomputed_bytes = 336.135;
    t.vision_bytes = 1.61e5;
    MAKES(context, cost, hbp_cost_create_terms(context, &t, &cost));
    for (int64_t multiple = 16; multiple <= 256; multiple += 16)
        for (uint32_t units = 1; units <= 4; units++) {
            int fits = plans_what_fits(context, cost, 19, units, multiple);
            planned += fits;
            refused += !fits;
        }
    ck_assert_int_gt(planned, 10);
    ck_assert_int_gt(refused, 10);
}
END_TEST

/* Where a token takes much memory several numbers of layers hold as many: those with more hold more units. */
START_TEST_IN_CONTEXT(equal_capacities_hold_different_units)
{
    hbp_cost_terms t = scarce_memory();
    hbp_cost *cost = NULL;
    int64_t planned = 0, refused = 0, recomputed = 0;
    t.activation_bytes = 4000;
    t.recomputed_bytes = 3990;
    t.vision_bytes = 500;
    MAKES(context, cost, hbp_cost_create_terms(context, &t, &cost));
    for (uint32_t tokens = 1; tokens <= 20; tokens++)
        for (uint32_t units = 1; units < 3000; units += 1 + units / 40) {
            int fits = plans_what_fits(context, cost, tokens, units, 1);
            planned += fits;
            refused += !fits;
            recomputed += fits && hbp_cost_predict_pack_bytes(cost, 8, 0, tokens, units) > t.limit_bytes;
        }
    ck_assert_int_gt(planned, 100);
    ck_assert_int_gt(refused, 100);
    ck_assert_int_gt(recomputed, 5);
}
END_TEST

TEST_MAIN("vision", groups_hold_and_take_what_the_cost_says, sequences_are_ordered_by_what_they_take,
          plans_lie_between_optimum_and_bound, searches_come_near_the_optimum,
          every_way_of_planning_counts_vision_units, options_are_kept_beside_vision_units,
          units_that_do_not_count_change_nothing, padding_and_units_share_the_last_bytes,
          equal_capacities_hold_different_units, what_holds_no_group_is_refused)
