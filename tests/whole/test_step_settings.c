#include "base/methods.h"
#include "step_settings.h"

#include "costs.h"

/* Values of a fine sweep, and what lies between two of them. */
#define FINE      (TEST_LONG ? 64 : TEST_FEW(32, 8))
#define APART     (TEST_LONG ? 1.05 : TEST_FEW(1.1025, 1.48))
#define FAR_APART (TEST_LONG ? 1.2 : TEST_FEW(1.44, 4.3)) /* of a quarter as many */

/* Of the published planner. */
static const int32_t BUCKETS[] = {16, 64, -1};

static int64_t *swept(hbp_step_options *o)
{
    return hbp__step_method(o->method) == HBP__STEP_HYBRID_CP ? &o->sequence_tokens_per_rank
                                                              : &o->tokens_per_rank;
}

static int64_t plan_ns(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                       const hbp_step_options *options)
{
    hbp_plan *plan = NULL;
    hbp_plan_summary summary = {.struct_size = sizeof summary};
    hbp_status status = hbp_plan_step(context, lengths, cost, options, &plan);
    if (status == HBP_E_INFEASIBLE)
        return INT64_MAX;
    OK(context, status);
    OK(context, hbp_plan_get_summary(context, plan, &summary));
    hbp_plan_free(plan);
    return summary.predicted_ns;
}

/* The fastest of 64 values in even steps of 5 %, by default of 32 and with sanitizers of 8 as far, downwards
 * from what a rank holds, for each least degree of Megatron's two; of the published planner, which takes
 * long, of a quarter as many values and each number of buckets. */
static int64_t fine_ns(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost, int32_t mode)
{
    int64_t best = INT64_MAX;
    int is_paper = mode == HBP__STEP_FLEXSP,
        has_least = mode == HBP__STEP_HYBRID_CP || mode == HBP__STEP_DYNAMIC_CP;
    hbp_cost_terms terms = {.struct_size = sizeof terms};
    OK(context, hbp_cost_get_terms(context, cost, &terms));
    double value = (double)hbp_cost_predict_capacity(cost, 1, terms.layers);
    ck_assert(value > 0);
    for (int i = 0; i < (is_paper ? FINE / 4 : FINE); i++, value /= is_paper ? FAR_APART : APART)
        for (int32_t k = 0; k < (is_paper ? 3 : has_least ? terms.degrees : 1); k++) {
            hbp_step_options o = {.struct_size = sizeof o, .method = hbp__step_name(mode)};
            *swept(&o) = (int64_t)value;
            o.min_sp = has_least ? terms.degree[k] : 0;
            o.buckets = is_paper ? BUCKETS[k] : 0;
            int64_t ns = plan_ns(context, lengths, cost, &o);
            best = ns < best ? ns : best;
        }
    return best;
}

/* The fastest of the published planner with exactly as many micro-batches, or some more or fewer. */
static int64_t numbers_ns(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                          int64_t micro_batches)
{
    int64_t best = INT64_MAX;
    for (int32_t m = (int32_t)micro_batches - 1; m <= micro_batches + 2; m++)
        for (int32_t k = 0; k < 3 && m > 0; k++) {
            hbp_step_options o = {
                .struct_size = sizeof o, .method = hbp__step_name(HBP__STEP_FLEXSP), .buckets = BUCKETS[k]};
            o.min_micro_batches = o.max_micro_batches = m;
            int64_t ns = plan_ns(context, lengths, cost, &o);
            best = ns < best ? ns : best;
        }
    return best;
}

START_TEST(the_best_is_near_that_of_a_fine_sweep)
{
    hbp_context *context = test_context();
    hbp_cost *cost = test_cost_ranks(context, 64);
    for (uint64_t seed = 0; seed < TEST_ROUNDS(8); seed++) {
        hbp_lengths *lengths = test_long_tail(context, seed, seed < 4 ? 384 : 96, seed % 2 ? 120000 : 40000);
        for (int32_t mode = 0; mode < HBP__STEP_METHOD_COUNT; mode++) {
            if (!step_settings_swept(hbp__step_name(mode)))
                continue;
            hbp_step_options o = {.struct_size = sizeof o, .method = hbp__step_name(mode)}, plain = o;
            hbp_plan *plan = NULL;
            hbp_plan_summary summary = {.struct_size = sizeof summary};
            OK(context, step_settings_plan(context, lengths, cost, &o, &plan));
            OK(context, hbp_plan_get_summary(context, plan, &summary));
            hbp_plan_free(plan);
            ck_assert_int_eq(summary.predicted_ns, plan_ns(context, lengths, cost, &o));
            ck_assert_int_gt(*swept(&o), 0);
            ck_assert_int_eq(o.buckets != 0, mode == HBP__STEP_FLEXSP);
            ck_assert_int_le(summary.predicted_ns, plan_ns(context, lengths, cost, &plain));
            double fine = (double)fine_ns(context, lengths, cost, mode);
            ck_assert_msg((double)summary.predicted_ns <= 1.01 * fine, "%s, seed %d: %.4f of a fine sweep's",
                          hbp__step_name(mode), (int)seed, (double)summary.predicted_ns / fine);
            if (mode == HBP__STEP_FLEXSP)
                ck_assert_int_le(summary.predicted_ns,
                                 numbers_ns(context, lengths, cost, summary.micro_batches));
        }
        hbp_lengths_free(lengths);
    }
    hbp_cost_free(cost);
    hbp_context_free(context);
}
END_TEST

START_TEST(the_contract_is_kept)
{
    hbp_context *context = test_context();
    hbp_cost *cost = test_cost(context);
    hbp_lengths *lengths = test_long_tail(context, 3, 64, 40000);
    for (int32_t mode = 0; mode < HBP__STEP_METHOD_COUNT; mode++) {
        hbp_step_options o = {
            .struct_size = sizeof o, .method = hbp__step_name(mode), .max_sp = 8, .tokens_per_rank = 6000};
        hbp_plan *plan = NULL;
        OK(context, step_settings_plan(context, lengths, cost, &o, &plan));
        ck_assert_int_le(o.tokens_per_rank, 6000);
        ck_assert_int_le(o.sequence_tokens_per_rank, 6000);
        ck_assert_int_le(o.max_sp, 8);
        hbp_plan_free(plan);
        plan = NULL;
        o.tokens_per_rank = 100;
        ck_assert_int_eq(step_settings_plan(context, lengths, cost, &o, &plan), HBP_E_INFEASIBLE);
        ck_assert_ptr_null(plan);
        ck_assert_ptr_nonnull(strstr(hbp_context_message(context), "with tokens_per_rank 100"));
    }
    hbp_lengths_free(lengths);
    hbp_cost_free(cost);
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("step_settings", the_best_is_near_that_of_a_fine_sweep, the_contract_is_kept)
