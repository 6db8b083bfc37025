/* With floating-point exceptions unmasked: steps with odd numbers divide by none of them. */
#include "traps.h"

/* Caps on a pack, and padding that depends on its degree, in every mode: against the optimum on small steps,
 * on larger ones against what the plan must keep to (stepped.h asks for all of it). */
#include <stddef.h>

#include "base/methods.h"
#include "failing.h"
#include "keep.h"
#include "modes.h"

/* Batches with few samples a pack, and the first of them. */
#define CAPPED       (TEST_LONG ? (TEST_SANITIZED ? 8 : 60) : TEST_FEW(12, 3))
#define FIRST_CAPPED 40

/* The oracle's two ways agree on what the limits allow. */
START_TEST(the_oracle_knows_the_limits)
{
    int64_t tried = 0, never = 0, felt = 0;
    for (uint64_t i = 0; i < 320; i++) {
        small_step s = small_open(i, (int)(i % SMALL_KINDS), 2 << (i / 9 % 3), 5, 5e6);
        exact_step free = small_exact(&s);
        small_limit(&s, i);
        exact_step e = small_exact(&s);
        int64_t ns = exact_step_ns(&e);
        ck_assert_msg(ns == exact_step_plain_ns(&e), "step %d: %lld ns, plainly %lld", (int)i, (long long)ns,
                      (long long)exact_step_plain_ns(&e));
        felt += ns != exact_step_ns(&free);
        never += ns == EXACT_NEVER;
        tried++;
        small_close(&s);
    }
    ck_assert_int_gt(felt, tried / 4);
    ck_assert_int_gt(never, 5);
    ck_assert_int_lt(never, tried / 2);
}
END_TEST

/* The default mode: up to 9 sequences the optimum, or where that has idle ranks that sequences could fill the
 * optimum without; more within a few percent of it on average. */
START_TEST(small_steps_are_near_the_optimum)
{
    int64_t exact = 0, others = 0, paid = 0, steps = TEST_LONG ? 320 : TEST_FEW(240, 120);
    double excess = 0, worst = 0;
    for (uint64_t i = 0; i < (uint64_t)steps; i++) {
        small_step s = small_open(i, (int)(i % SMALL_KINDS), 2 << (i / 9 % 4), 12, 2e5);
        small_limit(&s, i);
        if (i % 4 == 3)
            s.options.min_micro_batches = 2;
        exact_step e = small_exact(&s);
        int64_t best = exact_step_ns(&e);
        stepped plan = stepped_small(&s);
        ck_assert_int_eq(plan.status, best == EXACT_NEVER ? HBP_E_INFEASIBLE : HBP_OK);
        if (best != EXACT_NEVER) {
            double over = (double)plan.ns / (double)best - 1;
            ck_assert_int_ge(plan.ns, best);
            ck_assert_int_le(plan.bound_ns, best);
            int is_exact = e.count <= 9;
            if (is_exact) {
                e.no_idle = e.count >= e.ranks && best != plan.ns;
                int64_t busy = exact_step_ns(&e);
                ck_assert_int_eq(plan.ns, busy);
                paid += e.no_idle;
            }
            exact += is_exact;
            others += !is_exact;
            excess += over;
            worst = over > worst ? over : worst;
        }
        small_close(&s);
    }
    ck_assert_int_gt(exact, steps / 4);
    ck_assert_int_gt(others, steps / 8);
    ck_assert_int_gt(paid, 0);
    ck_assert_msg(excess / (double)others < .01 && worst < .3, "mean %g, worst %g", excess / (double)others,
                  worst);
}
END_TEST

/* Samples of a batch of `count`, about half of them linked, and limits that all of them meet. */
static hbp_lengths *draw_batch(hbp_context *context, uint64_t seed, int64_t count, hbp_step_options *o)
{
    uint32_t length[300];
    int64_t link[300], linked[100] = {0}, most = 0;
    hbp__rng rng = hbp__rng_make(seed, 2, 0);
    hbp_lengths *lengths = NULL;
    for (int64_t i = 0; i < count; i++) {
        length[i] = 1 + (uint32_t)hbp__rng_below(&rng, UINT64_C(64) << hbp__rng_below(&rng, 9));
        link[i] = seed % 2 && hbp__rng_below(&rng, 2) ? (int64_t)hbp__rng_below(&rng, 100) : -1;
        if (link[i] >= 0)
            most = exact_max(most, ++linked[link[i]]);
    }
    if (seed & 2)
        o->tokens_per_rank = 12000 + hbp__rng_below(&rng, 8000);
    if (seed & 4)
        o->max_pack_length = 60000 + hbp__rng_below(&rng, 60000);
    if (seed & 8)
        o->max_samples = (int32_t)(exact_max(most, 1) + hbp__rng_below(&rng, 20));
    if (seed & 16)
        o->sequence_multiple_per_sp = 1 + hbp__rng_below(&rng, 64);
    if (seed & 32)
        o->pack_multiple_per_sp = 1 + hbp__rng_below(&rng, 128);
    if (seed % 3 == 1)
        o->sequence_multiple = INT64_C(1) << hbp__rng_below(&rng, 7);
    if (seed % 5 == 1)
        o->pack_multiple = INT64_C(1) << hbp__rng_below(&rng, 9);
    hbp_lengths_options options = {.struct_size = sizeof options, .links = link};
    OK(context, hbp_lengths_create_u32(context, length, count, &options, &lengths));
    return lengths;
}

START_TEST_IN_CONTEXT(every_mode_keeps_to_the_limits)
{
    hbp_cost *cost = keep(test_cost(context));
    int64_t planned[HBP__STEP_METHOD_COUNT] = {0}, seeds = 0;
    for (uint64_t seed = 0; seed < 64;
         seed += TEST_LONG ? 1 : TEST_FEW(3, 21), seeds++) /* 63: all limits at once */
        for (int32_t mode = 0; mode < HBP__STEP_METHOD_COUNT; mode++) {
            hbp_step_options o = {.struct_size = sizeof o, .method = hbp__step_name(mode)};
            hbp_lengths *lengths = draw_batch(context, seed, 20 + (int64_t)(seed * 37 % 280), &o);
            stepped plan = stepped_plan(context, lengths, cost, &o);
            /* Only one degree for all may not do. */
            ck_assert_msg(plan.status >= 0 || mode == HBP__STEP_STATIC_SP || mode == HBP__STEP_HOMOGENEOUS_SP,
                          "seed %d, mode %d: %s", (int)seed, (int)mode, hbp_context_message(context));
            planned[mode] += plan.status >= 0;
            hbp_lengths_free(lengths);
        }
    for (int32_t mode = 0; mode < HBP__STEP_METHOD_COUNT; mode++)
        ck_assert_int_gt(planned[mode], seeds * 3 / 4);
}
END_TEST

typedef struct capped_tally {
    int64_t compared;
    int64_t slower; /* by more than 1 % */
    double worst;
} capped_tally;

static void compare_capped(const stepped *plan, const stepped *other, capped_tally *tally)
{
    if (other->status < 0)
        return;
    double ratio = (double)plan->ns / (double)other->ns;
    tally->compared++;
    tally->slower += ratio > 1.01;
    tally->worst = ratio > tally->worst ? ratio : tally->worst;
}

/* One batch with 4 to 16 samples a pack at most, without and with room to spare. */
static void plan_capped(hbp_context *context, uint64_t seed, capped_tally *paper, capped_tally *own)
{
    static const int64_t longest[] = {4000, 30000, 60000};
    hbp__rng rng = hbp__rng_make(seed, 3, 0);
    hbp_cost *cost = test_cost_ranks(context, 8 << hbp__rng_below(&rng, 3));
    hbp_step_options o = {.struct_size = sizeof o, .max_samples = 4 << hbp__rng_below(&rng, 3)};
    o.pack_multiple = hbp__rng_below(&rng, 2) ? 128 : 0;
    int64_t count = INT64_C(32) << hbp__rng_below(&rng, 3);
    hbp_lengths *lengths = test_long_tail(context, seed, count, longest[hbp__rng_below(&rng, 3)]);
    stepped plan = stepped_plan(context, lengths, cost, &o), other;
    ck_assert_int_eq(plan.status, HBP_OK);
    o.method = hbp__step_name(HBP__STEP_FLEXSP);
    o.buckets = -1;
    other = stepped_plan(context, lengths, cost, &o);
    compare_capped(&plan, &other, paper);
    o.method = hbp__step_name(HBP__STEP_SEARCH);
    for (int32_t m = 1; m <= plan.micro_batches + 1; m++) {
        o.min_micro_batches = o.max_micro_batches = m;
        other = stepped_plan(context, lengths, cost, &o);
        compare_capped(&plan, &other, own);
    }
    hbp_lengths_free(lengths);
    hbp_cost_free(cost);
}

/* The default mode takes no longer than the published planner, nor than itself in another number of
 * micro-batches, by much more than searches without caps differ. */
START_TEST_IN_CONTEXT(few_samples_a_pack_are_no_reason_to_be_slow)
{
    capped_tally paper = {.worst = 0}, own = {.worst = 0};
    for (uint64_t seed = FIRST_CAPPED; seed < FIRST_CAPPED + CAPPED; seed++)
        plan_capped(context, seed, &paper, &own);
    ck_assert_int_eq(paper.compared, CAPPED);
    ck_assert_int_gt(own.compared, 2 * CAPPED);
    ck_assert_msg(paper.worst < 1.01, "%g of the published planner", paper.worst);
    ck_assert_msg(own.slower <= 2 && own.worst < 1.03, "%d of %d numbers are faster, one %g times",
                  (int)own.slower, (int)own.compared, own.worst);
}
END_TEST

/* Packs of 8 samples on 8 GPUs hold the whole batch, nearly or quite: it takes one micro-batch, in which
 * long and short samples share packs. */
START_TEST_IN_CONTEXT(a_batch_that_fills_one_micro_batch_has_one)
{
    hbp_cost *cost = keep(test_cost_presets(context, "llama-3.1-8b", "h100"));
    hbp_step_options o = {.struct_size = sizeof o, .max_samples = 8};
    for (int32_t kind = 0; kind < 2; kind++) {
        uint32_t length[63];
        int64_t count = kind ? 63 : 60;
        double next = 40;
        for (int64_t i = 0; i < count; i++, next *= 1.08)
            length[i] = kind ? 4000 / (uint32_t)(i + 2) + 30 : (uint32_t)next;
        hbp_lengths *lengths = NULL;
        OK(context, hbp_lengths_create_u32(context, length, count, NULL, &lengths));
        stepped plan = stepped_plan(context, lengths, cost, &o);
        ck_assert_int_eq(plan.micro_batches, 1);
        ck_assert_msg((double)plan.ns < (kind ? 1.16 : 1.002) * (double)plan.bound_ns,
                      "batch %d: %lld ns, the bound is %lld", (int)kind, (long long)plan.ns,
                      (long long)plan.bound_ns);
        hbp_lengths_free(lengths);
    }
}
END_TEST

/* Limits that bind nobody change nothing but what the plan records of them. */
START_TEST_IN_CONTEXT(limits_that_nobody_meets_change_nothing)
{
    hbp_cost *cost = keep(test_cost(context));
    for (uint64_t seed = 0; seed < 6; seed++)
        for (int32_t mode = 0; mode < HBP__STEP_METHOD_COUNT; mode++) {
            hbp_step_options o = {.struct_size = sizeof o, .method = hbp__step_name(mode)};
            hbp_lengths *lengths = test_long_tail(context, seed, 150, 30000);
            stepped plain = stepped_plan(context, lengths, cost, &o);
            o.tokens_per_rank = o.max_pack_length = HBP_MAX_LENGTH;
            o.max_samples = 150;
            ck_assert_uint_eq(stepped_plan(context, lengths, cost, &o).digest, plain.digest);
            hbp_lengths_free(lengths);
        }
}
END_TEST

/* Samples linked or not, degrees that do not nest. */
START_TEST_IN_CONTEXT(any_degree_keeps_to_the_limits)
{
    hbp_cost *cost = keep(mode_uneven_cost(context, 15000));
    for (uint64_t seed = 0; seed < 64; seed += 3) {
        hbp_step_options o = {.struct_size = sizeof o, .any_degree = 1};
        o.method = hbp__step_name(seed % 2 ? HBP__STEP_SEARCH : HBP__STEP_DYNAMIC_CP);
        hbp_lengths *lengths = draw_batch(context, seed, 60, &o);
        stepped plan = stepped_plan(context, lengths, cost, &o);
        ck_assert_msg(plan.status >= 0, "%s", hbp_context_message(context));
        hbp_lengths_free(lengths);
    }
}
END_TEST

static void refuse(const uint32_t *length, const int64_t *link, int64_t count, const hbp_step_options *o,
                   hbp_status status, const char *text)
{
    hbp_context *context = test_context();
    hbp_cost *cost = mode_square_cost(context, 4);
    hbp_lengths_options options = {.struct_size = sizeof options, .links = link};
    hbp_lengths *lengths = NULL;
    hbp_plan *plan = NULL;
    OK(context, hbp_lengths_create_u32(context, length, count, &options, &lengths));
    for (int32_t mode = 0; mode < HBP__STEP_METHOD_COUNT; mode++) {
        hbp_step_options all = *o;
        all.struct_size = sizeof all;
        if (!all.exact)
            all.method = hbp__step_name(mode);
        FAILS(context, status, text, hbp_plan_step(context, lengths, cost, &all, &plan));
        ck_assert_ptr_null(plan);
    }
    hbp_lengths_free(lengths);
    hbp_cost_free(cost);
    hbp_context_free(context);
}

/* Whatever keeps a sequence out of every group is named, and what would let it in. */
START_TEST(what_keeps_a_sequence_out_is_named)
{
    const uint32_t length[] = {10, 401, 20};
    const int64_t link[] = {3, 3, 3};
    const hbp_status infeasible = HBP_E_INFEASIBLE;
    hbp_step_options o = {.tokens_per_rank = 100};
    refuse(length, NULL, 3, &o, infeasible,
           "sample 1 has 401 tokens with padding; the longest pack holds 400 with tokens_per_rank 100 (101 "
           "would do)");
    refuse(length, link, 3, &o, infeasible,
           "sample 0 with its linked samples has 431 tokens with padding; the longest pack holds 400 with "
           "tokens_per_rank 100 (108 would do)");
    o = (hbp_step_options){.max_pack_length = 400};
    refuse(length, NULL, 3, &o, infeasible,
           "the longest pack holds 400 with max_pack_length 400 (401 would do)");
    o = (hbp_step_options){.max_pack_length = 400, .tokens_per_rank = 90};
    refuse(length, NULL, 3, &o, infeasible,
           "the longest pack holds 360 with tokens_per_rank 90 (101 would do) and with max_pack_length 400 "
           "(401 would do)");
    /* On one rank it has 401 tokens, on four 432: together the caps leave no degree. */
    o = (hbp_step_options){.max_pack_length = 431, .tokens_per_rank = 400, .sequence_multiple_per_sp = 216};
    refuse(length, NULL, 3, &o, infeasible, "with both tokens_per_rank 400 and max_pack_length 431");
    o = (hbp_step_options){.max_samples = 2};
    refuse(length, link, 3, &o, infeasible, "sample 0 with its linked samples makes 3; max_samples is 2");
    o = (hbp_step_options){.max_samples = -1};
    refuse(length, NULL, 3, &o, HBP_E_INVALID, "`max_samples` is -1; it must be in 0..2147483647");
    o = (hbp_step_options){.max_pack_length = -1};
    refuse(length, NULL, 3, &o, HBP_E_INVALID, "`max_pack_length` is -1; it must be in 0..2147483647");
    o = (hbp_step_options){.sequence_multiple_per_sp = INT64_C(1) << 31};
    refuse(length, NULL, 3, &o, HBP_E_INVALID,
           "`sequence_multiple_per_sp` is 2147483648; it must be in 0..2147483647");
    o = (hbp_step_options){.pack_multiple_per_sp = -7};
    refuse(length, NULL, 3, &o, HBP_E_INVALID, "`pack_multiple_per_sp` is -7; it must be in 0..2147483647");
    o = (hbp_step_options){.exact = 1, .max_samples = 4};
    refuse(length, NULL, 3, &o, HBP_E_INVALID,
           "`exact` is set, which does not plan for max_samples; it is 4");
    o = (hbp_step_options){.exact = 1, .sequence_multiple_per_sp = 8};
    refuse(length, NULL, 3, &o, HBP_E_INVALID, "does not plan for sequence_multiple_per_sp; it is 8");
    o = (hbp_step_options){.exact = 1, .pack_multiple_per_sp = 8};
    refuse(length, NULL, 3, &o, HBP_E_INVALID, "does not plan for pack_multiple_per_sp; it is 8");
}
END_TEST

START_TEST_IN_CONTEXT(nothing_is_left_behind)
{
    for (int32_t mode = 0; mode < HBP__STEP_METHOD_COUNT; mode++) {
        mode_call call = {.options = {.struct_size = sizeof call.options, .method = hbp__step_name(mode)}};
        call.cost = test_cost(context);
        call.lengths = draw_batch(context, 63, 14, &call.options);
        failing_sweep(mode_plan, &call);
        hbp_lengths_free(call.lengths);
        hbp_cost_free(call.cost);
    }
}
END_TEST

TEST_MAIN_WITH("limits", traps_on, NULL, the_oracle_knows_the_limits, small_steps_are_near_the_optimum,
               every_mode_keeps_to_the_limits, few_samples_a_pack_are_no_reason_to_be_slow,
               a_batch_that_fills_one_micro_batch_has_one, limits_that_nobody_meets_change_nothing,
               any_degree_keeps_to_the_limits, what_keeps_a_sequence_out_is_named, nothing_is_left_behind)
