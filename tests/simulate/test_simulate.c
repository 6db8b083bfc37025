#include "hbp/plan.h"

#include "keep.h"
#include "simulate/small.h"

#define NEAR(a, b) ck_assert_double_eq_tol(a, b, 1e-14)

static hbp_report simulate(hbp_context *context, const small_plan *from, const hbp_cost *cost)
{
    hbp_plan *plan = small_make(from, cost->terms.ranks);
    hbp_report report = {.struct_size = sizeof report};
    OK(context, hbp_simulate(context, plan, cost, NULL, &report));
    hbp_plan_free(plan);
    return report;
}

/* 4 ranks, 2 layers, every term in use. */
static void all_terms(small_terms *t)
{
    small_terms_init(t, 4, 2, 1500);
    t->all.ns_per_token = 100;
    t->all.ns_per_token_squared = 1;
    t->all.recompute_linear = 0.5;
    t->all.recompute_attention = 0.25;
    t->all.recompute_communication = 1;
    t->all.pack_ns = 40;
    t->all.step_ns = 7;
    t->all.static_bytes = 1000;
    t->all.activation_bytes = 10;
    t->all.recomputed_bytes = 2;
    t->all.working_bytes = 3;
    t->all.logits_bytes = 1;
    t->all.sp_buffer_bytes = 4;
    t->latency[1] = 10;
    t->per_token[1] = 2;
    t->latency[2] = 20;
    t->per_token[2] = 3;
}

static void mixed_plan(small_plan *plan)
{
    small_init(plan);
    plan->sequence_multiple = 4;
    small_step(plan);
    small_micro_batch(plan);
    small_pack(plan, 0, 1, 0, 16, 2, 8, 4); /* 1200 + 80 + 40 = 1320 ns */
    small_pack(plan, 1, 1, 0, 16, 1, 5);    /* padded to 8: 800 + 25 + 40 = 865 */
    small_pack(plan, 2, 1, 0, 16, 1, 16);   /* 1600 + 256 + 40 = 1896 */
    small_pack(plan, 3, 1, 0, 16, 0);       /* 40 */
    small_micro_batch(plan);
    small_pack(plan, 0, 4, 2, 64, 2, 30,
               6); /* (4000 x 1.5 + 936 x 1.25) / 4 + (20 + 120) x 2 + 40 = 2112.5 */
    small_step(plan);
    small_micro_batch(plan);
    small_pack(plan, 0, 2, 0, 32, 2, 20, 10); /* (3200 + 500) / 2 + (10 + 64) + 40 = 1964 */
    small_pack(plan, 2, 2, 1, 32, 1, 3); /* (400 x 1.25 + 9 x 1.125) / 2 + (10 + 8) x 1.5 + 40 = 322.06 */
}

START_TEST_IN_CONTEXT(a_small_plan_is_measured_as_by_hand)
{
    small_terms terms;
    all_terms(&terms);
    hbp_cost *cost = keep(small_cost(context, &terms));
    small_plan plan;
    mixed_plan(&plan);
    hbp_report report = simulate(context, &plan, cost);
    ck_assert_uint_eq(report.struct_size, sizeof report);
    ck_assert_int_eq(report.ranks, 4);
    ck_assert_int_eq(report.steps, 2);
    ck_assert_int_eq(report.epoch_ns, 1896 + 2113 + 1964 + 2 * 7);
    ck_assert_int_eq(report.tokens, 102);
    ck_assert_int_eq(report.peak_bytes, 1000 + 25 * 32 / 2);
    NEAR(report.idle,
         (4.0 * 1896 - (1320 + 865 + 1896 + 40) + 2 * (1964 - 322)) / (4 * (1896 + 2113 + 1964)));
    NEAR(report.dbr, (31.0 / 64 + 0 + 27.0 / 60) / 3);
    NEAR(report.padding, 10.0 / 112); /* 12 + 8 + 16 + 40 + 32 + 4 tokens are computed */
    NEAR(report.abr, (1 - 361.0 / 1024 + 0 + 0.491) / 3);
    NEAR(report.abr_paper, 0);
    NEAR(report.cr, 69.0 / 102);
    NEAR(report.ave_tokens, 102.0 / 8);
    ck_assert_double_eq_tol(report.tokens_per_s_per_gpu, 102e9 / (4 * 5987), 1e-6);
    NEAR(report.communication, (4 * 280 + 2 * 74 + 2 * 27) / (4.0 * 5987));
    /* 6 and 3 samples; 69 and 33 tokens: 15, 8, 46 from 4, 8, 16 on; 3, 10, 20 from 2, 8, 16 on. */
    NEAR(report.samples_cv, 1.5 / 4.5);
    NEAR(report.mixture_distance, ((1 - 81.0 / 102 - 8.0 / 69) + (1 - 21.0 / 102 - 20.0 / 33)) / 2);
    ck_assert_int_eq(report.step_samples_p5, 3);
    ck_assert_int_eq(report.step_samples_median, 3);
    ck_assert_int_eq(report.step_samples_p95, 3);
    ck_assert_int_eq(report.step_tokens_p5, 33);
    ck_assert_int_eq(report.step_tokens_median, 33);
    ck_assert_int_eq(report.step_tokens_p95, 33);
    ck_assert_int_eq(report.vision, -1);
    ck_assert_double_eq(report.dist_vision, 0);
    ck_assert_double_eq(report.vision_padding, 0);
    NEAR(report.dist_tokens, (1 - 36.0 / 64 + 0 + 1 - 36.0 / 64) / 3);
    ck_assert_int_gt(report.bound_ns, 0);
    ck_assert_int_le(report.bound_ns, report.epoch_ns);
    NEAR(report.gap, 5987.0 / (double)report.bound_ns - 1);
}
END_TEST

/* The plan above with vision units: 5 and 1 in the first pack, 2 in the second, 4 in the third, a dummy; 3
 * and 0 in the wide one; 7, 1 and 2 in the last. */
START_TEST_IN_CONTEXT(vision_units_are_measured_as_by_hand)
{
    static const int32_t vision[] = {5, 1, 2, 4, 3, 0, 7, 1, 2};
    static const int64_t capacity[] = {6, 8, INT64_MAX, 8, 3, 10, INT64_MAX};
    small_terms terms;
    all_terms(&terms);
    terms.all.ns_per_vision = 30;
    terms.all.recompute_vision = 0.5;
    terms.all.vision_bytes = 6;
    hbp_cost *cost = keep(small_cost(context, &terms));
    small_plan plan;
    mixed_plan(&plan);
    plan.has_vision = 1;
    memcpy(plan.vision, vision, sizeof vision);
    memcpy(plan.vision_capacity, capacity, sizeof capacity);
    hbp_report report = simulate(context, &plan, cost);
    ck_assert_int_eq(report.vision, 25);
    /* 1896 + 4 x 30; 2112.5 + 3 x 30 x 1.5 / 4; 1964 + 8 x 30 / 2 */
    ck_assert_int_eq(report.epoch_ns, 2016 + 2146 + 2084 + 2 * 7);
    ck_assert_int_eq(report.peak_bytes, 1000 + (25 * 32 + 6 * 8) / 2);
    NEAR(report.dist_vision, (1 - 12.0 / 24 + 0 + 1 - 10.0 / 16) / 3);
    NEAR(report.dist_tokens, (1 - 36.0 / 64 + 0 + 1 - 36.0 / 64) / 3);
    NEAR(report.vision_padding, 1 - (6.0 + 2 + 0 + 3 + 8) / (6 + 8 + 8 + 3 + 10));
    ck_assert_int_gt(report.bound_ns, 0);
    ck_assert_int_le(report.bound_ns, report.epoch_ns);
    NEAR(report.dbr, (31.0 / 64 + 0 + 27.0 / 60) / 3);

    /* Units that cost nothing are counted, and change no time. */
    all_terms(&terms);
    cost = keep(small_cost(context, &terms));
    report = simulate(context, &plan, cost);
    ck_assert_int_eq(report.epoch_ns, 5987);
    ck_assert_int_eq(report.vision, 25);
}
END_TEST

START_TEST_IN_CONTEXT(the_papers_abr_sees_blocks_of_the_largest_degree)
{
    small_terms terms;
    all_terms(&terms);
    hbp_cost *cost = keep(small_cost(context, &terms));
    small_plan plan;
    small_init(&plan);
    small_step(&plan);
    small_micro_batch(&plan);
    small_pack(&plan, 0, 1, 0, 16, 1, 2);
    small_pack(&plan, 1, 1, 0, 16, 1, 2);
    small_pack(&plan, 2, 1, 0, 16, 1, 2);
    small_pack(&plan, 3, 1, 0, 16, 3, 2, 2, 2);
    small_step(&plan);
    small_micro_batch(&plan);
    small_pack(&plan, 0, 2, 0, 32, 1, 5);
    small_pack(&plan, 2, 2, 0, 32, 1, 7);
    hbp_report report = simulate(context, &plan, cost);
    NEAR(report.abr, (1 - 24.0 / 48 + 1 - 74.0 / 98) / 2);
    NEAR(report.abr_paper, (1 - 24.0 / 32 + 1 - 74.0 / 98) / 2);

    /* Degrees that do not divide one another: a pack's squares are spread over the blocks it touches. */
    small_terms_init(&terms, 6, 1, 1000);
    terms.all.degrees = 3;
    terms.degree[2] = 3;
    cost = keep(small_cost(context, &terms));
    small_init(&plan);
    small_step(&plan);
    small_micro_batch(&plan);
    small_pack(&plan, 0, 2, 0, 32, 1, 1);
    small_pack(&plan, 2, 2, 0, 32, 1, 4);
    small_pack(&plan, 4, 2, 0, 32, 1, 6);
    small_micro_batch(&plan);
    small_pack(&plan, 0, 3, 0, 32, 1, 3);
    small_pack(&plan, 3, 3, 0, 32, 1, 3);
    report = simulate(context, &plan, cost);
    NEAR(report.abr_paper, (1 - (1.0 + 16 + 36) / (2 * (8 + 36)) + 0) / 2);
}
END_TEST

START_TEST_IN_CONTEXT(options_turn_the_bound_off_or_set_its_steps)
{
    small_terms terms;
    all_terms(&terms);
    terms.all.step_ns = 1e6;
    hbp_cost *cost = keep(small_cost(context, &terms));
    small_plan from;
    mixed_plan(&from);
    hbp_plan *plan = keep(small_make(&from, 4));
    hbp_simulate_options options = {.struct_size = sizeof options};
    hbp_report own, one, eight, off;
    own = (hbp_report){.struct_size = sizeof own};
    one = eight = off = own;
    OK(context, hbp_simulate(context, plan, cost, &options, &own));
    options.tokens_per_step = 102;
    OK(context, hbp_simulate(context, plan, cost, &options, &one));
    options.tokens_per_step = 14;
    OK(context, hbp_simulate(context, plan, cost, &options, &eight));
    ck_assert_int_eq(own.bound_ns / 1000000, 2);
    ck_assert_int_eq(one.bound_ns / 1000000, 1);
    ck_assert_int_eq(eight.bound_ns / 1000000, 8);
    ck_assert_double_gt(own.gap, 0);
    options.no_bound = 1;
    OK(context, hbp_simulate(context, plan, cost, &options, &off));
    ck_assert_int_eq(off.bound_ns, 0);
    ck_assert_double_nan(off.gap);
    ck_assert_int_eq(off.epoch_ns, own.epoch_ns);

    /* An older caller's report ends before the metrics. */
    union {
        hbp_report report;
        unsigned char bytes[sizeof(hbp_report)];
    } old;
    memset(&old, 0xee, sizeof old);
    uint32_t size = offsetof(hbp_report, gap);
    memcpy(old.bytes, &size, sizeof size);
    OK(context, hbp_simulate(context, plan, cost, NULL, &old.report));
    ck_assert_int_eq(old.report.epoch_ns, own.epoch_ns);
    for (size_t i = size; i < sizeof old; i++)
        ck_assert_uint_eq(old.bytes[i], 0xee);
}
END_TEST

START_TEST_IN_CONTEXT(a_plan_that_overflows_memory_is_measured_without_a_bound)
{
    small_terms terms;
    all_terms(&terms);
    terms.all.limit_bytes = 1050; /* 12 bytes a token: 50 x 4 / 12 = 16 tokens at most */
    hbp_cost *cost = keep(small_cost(context, &terms));
    small_plan plan;
    mixed_plan(&plan);
    hbp_report report = simulate(context, &plan, cost);
    ck_assert_int_eq(report.epoch_ns, 5987);
    ck_assert_int_eq(report.peak_bytes, 1400);
    ck_assert_int_eq(report.bound_ns, 0);
    ck_assert_double_nan(report.gap);
    ck_assert_str_eq(hbp_context_message(context), "");
}
END_TEST

START_TEST_IN_CONTEXT(an_empty_plan_measures_zero)
{
    small_terms terms;
    all_terms(&terms);
    hbp_cost *cost = keep(small_cost(context, &terms));
    small_plan plan;
    small_init(&plan);
    small_step(&plan);
    small_micro_batch(&plan);
    small_pack(&plan, 0, 4, 0, 10, 0);
    hbp_report report = simulate(context, &plan, cost);
    ck_assert_int_eq(report.epoch_ns, 47);
    ck_assert_int_eq(report.bound_ns, 0);
    ck_assert_double_eq(report.padding, 0);
    ck_assert_double_eq(report.cr, 0);
    ck_assert_double_eq(report.idle, 0);
    ck_assert_double_eq(report.dbr, 0);
}
END_TEST

/* A random micro-batch over [rank, rank + ranks): aligned packs of any degree, each within memory. */
static void draw_packs(hbp__rng *rng, small_plan *plan, const hbp_cost *cost, int32_t rank, int32_t ranks)
{
    if (ranks > 1 && hbp__rng_below(rng, 3)) {
        draw_packs(rng, plan, cost, rank, ranks / 2);
        draw_packs(rng, plan, cost, rank + ranks / 2, ranks / 2);
        return;
    }
    int32_t recompute = (int32_t)hbp__rng_below(rng, (uint64_t)cost->terms.layers + 1), tokens[8];
    int64_t capacity = hbp_cost_predict_capacity(cost, ranks, recompute), left = capacity;
    int count = 0;
    while (count < 8 && left > plan->sequence_multiple && hbp__rng_below(rng, 6)) {
        uint64_t most = (uint64_t)(left / plan->sequence_multiple * plan->sequence_multiple);
        tokens[count] = 1 + (int32_t)hbp__rng_below(rng, hbp__rng_below(rng, 2) ? most : (most + 9) / 10);
        left -= hbp__round_up(tokens[count++], plan->sequence_multiple);
    }
    small_pack_array(plan, rank, ranks, recompute, capacity, count, tokens);
}

START_TEST_IN_CONTEXT(random_plans_never_beat_the_bound)
{
    hbp__rng rng = hbp__rng_make(6, 0, 0);
    small_plan *from = keep(malloc(sizeof *from));
    for (int trial = 0, mark = keep_mark(); trial < 1500; keep_release(mark), trial++) {
        small_terms terms;
        all_terms(&terms);
        terms.all.ranks = terms.all.domain_ranks = 4;
        terms.all.pack_ns = hbp__rng_below(&rng, 2) ? hbp__rng_below(&rng, 3000) : 0.2;
        terms.all.ns_per_token = hbp__rng_below(&rng, 100) / 10.0;
        terms.all.ns_per_token_squared = hbp__rng_below(&rng, 10) / 100.0;
        terms.all.limit_bytes = 1100 + hbp__rng_below(&rng, 2000);
        terms.all.ns_per_vision = hbp__rng_below(&rng, 3000) / 10.0;
        terms.all.recompute_vision = hbp__rng_below(&rng, 3) / 2.0;
        hbp_cost *cost = keep(small_cost(context, &terms));
        small_init(from);
        from->has_vision = trial % 2;
        for (int i = 0; i < SMALL_ROWS; i++) {
            from->vision[i] = (int32_t)hbp__rng_below(&rng, 6);
            from->vision_capacity[i] = i % 3 ? INT64_MAX : 100;
        }
        from->sequence_multiple = 1 + hbp__rng_below(&rng, 4);
        int64_t steps = 1 + hbp__rng_below(&rng, 5), expected = steps * 7;
        for (int64_t s = 0; s < steps; s++) {
            small_step(from);
            int micro_batches = 1 + (int)hbp__rng_below(&rng, 3);
            for (int m = 0; m < micro_batches; m++) {
                small_micro_batch(from);
                draw_packs(&rng, from, cost, 0, 4);
            }
        }
        hbp_plan *plan = keep(small_make(from, 4));
        hbp_report report = {.struct_size = sizeof report};
        OK(context, hbp_simulate(context, plan, cost, NULL, &report));
        for (int64_t m = 0; m < plan->micro_batches; m++) {
            int64_t slowest = 0;
            for (int64_t p = plan->micro_batch_offsets[m]; p < plan->micro_batch_offsets[m + 1]; p++)
                slowest = hbp__max_i64(
                    slowest,
                    hbp_cost_predict_pack_ns(cost, plan->pack_sp[p], plan->pack_recompute[p],
                                             plan->pack_padded_tokens[p], (double)plan->pack_squares[p],
                                             plan->pack_vision ? plan->pack_vision[p] : 0));
            expected += slowest;
        }
        ck_assert_int_eq(report.epoch_ns, expected);
        ck_assert_int_le(report.peak_bytes, terms.all.limit_bytes);
        ck_assert_msg(report.bound_ns <= report.epoch_ns, "trial %d: bound %lld, epoch %lld", trial,
                      (long long)report.bound_ns, (long long)report.epoch_ns);
        ck_assert_int_eq(report.bound_ns > 0, report.tokens > 0);
        const double shares[] = {
            report.idle,        report.dbr,           report.padding,          report.abr,
            report.cr,          report.communication, report.mixture_distance, report.abr_paper,
            report.dist_vision, report.dist_tokens,   report.vision_padding};
        for (size_t i = 0; i < sizeof shares / sizeof *shares; i++)
            ck_assert_msg(shares[i] >= 0 && shares[i] <= 1, "trial %d: share %d is %g", trial, (int)i,
                          shares[i]);
    }
}
END_TEST

START_TEST_IN_CONTEXT(what_does_not_fit_together_is_named)
{
    small_terms terms;
    all_terms(&terms);
    hbp_cost *cost = keep(small_cost(context, &terms));
    small_plan from;
    mixed_plan(&from);
    hbp_plan *plan = keep(small_make(&from, 4));
    hbp_report report = {.struct_size = sizeof report};
    report.epoch_ns = -7;
    FAILS(context, HBP_E_INVALID, "plan is NULL", hbp_simulate(context, NULL, cost, NULL, &report));
    FAILS(context, HBP_E_INVALID, "cost is NULL", hbp_simulate(context, plan, NULL, NULL, &report));
    FAILS(context, HBP_E_INVALID, "report is NULL", hbp_simulate(context, plan, cost, NULL, NULL));
    ck_assert_int_eq(hbp_simulate(NULL, plan, cost, NULL, &report), HBP_E_INVALID);
    hbp_simulate_options options = {.struct_size = sizeof options, .tokens_per_step = -2};
    FAILS(context, HBP_E_INVALID, "`tokens_per_step` is -2; it must be in 0..9223372036854775807",
          hbp_simulate(context, plan, cost, &options, &report));
    options.struct_size = 1;
    FAILS(context, HBP_E_INVALID, "struct_size is 1", hbp_simulate(context, plan, cost, &options, &report));

    terms.all.degrees = 2;
    hbp_cost *other = small_cost(context, &terms);
    FAILS(context, HBP_E_INVALID, "pack 4 has SP degree 4",
          hbp_simulate(context, plan, other, NULL, &report));
    hbp_cost_free(other);
    terms.all.degrees = 3;
    terms.all.layers = 1;
    other = small_cost(context, &terms);
    FAILS(context, HBP_E_INVALID, "pack 4 recomputes 2 layers; the cost has 1",
          hbp_simulate(context, plan, other, NULL, &report));
    hbp_cost_free(other);
    terms.all.ranks = 8;
    other = small_cost(context, &terms);
    FAILS(context, HBP_E_INVALID, "the plan is for 4 ranks, the cost for 8",
          hbp_simulate(context, plan, other, NULL, &report));
    hbp_cost_free(other);
    all_terms(&terms);
    terms.all.ns_per_token = 1e18;
    other = small_cost(context, &terms);
    FAILS(context, HBP_E_OVERFLOW, "the time of the epoch",
          hbp_simulate(context, plan, other, NULL, &report));
    hbp_cost_free(other);
    hbp_context_cancel(context);
    FAILS(context, HBP_E_CANCELLED, "cancelled", hbp_simulate(context, plan, cost, NULL, &report));
    ck_assert_int_eq(report.epoch_ns, -7);
}
END_TEST

typedef struct simulation {
    const hbp_plan *plan;
    const hbp_cost *cost;
} simulation;

static hbp_status simulate_one(hbp_context *context, void *user)
{
    const simulation *s = user;
    hbp_report report = {.struct_size = sizeof report};
    hbp_status status = hbp_simulate(context, s->plan, s->cost, NULL, &report);
    ck_assert_int_eq(status == HBP_OK, report.epoch_ns > 0);
    return status;
}

START_TEST_IN_CONTEXT(failures_leave_nothing_behind)
{
    small_terms terms;
    all_terms(&terms);
    hbp_cost *cost = keep(small_cost(context, &terms));
    small_plan from;
    mixed_plan(&from);
    hbp_plan *plan = keep(small_make(&from, 4));
    simulation s = {plan, cost};
    failing_sweep(simulate_one, &s);
    ck_assert_int_ge(cancel_sweep(simulate_one, &s), 5);
}
END_TEST

TEST_MAIN("simulate", a_small_plan_is_measured_as_by_hand, vision_units_are_measured_as_by_hand,
          the_papers_abr_sees_blocks_of_the_largest_degree, options_turn_the_bound_off_or_set_its_steps,
          a_plan_that_overflows_memory_is_measured_without_a_bound, an_empty_plan_measures_zero,
          random_plans_never_beat_the_bound, what_does_not_fit_together_is_named,
          failures_leave_nothing_behind)
