#include "epoch_settings.h"
#include "methods.h"

#include "costs.h"

static int64_t plan_ns(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                       int32_t baseline, const hbp_epoch_options *options)
{
    hbp_plan *plan = NULL;
    hbp_plan_summary summary = {.struct_size = sizeof summary};
    hbp_status status = test_plan_by(context, lengths, cost, baseline, options, &plan);
    if (status == HBP_E_INFEASIBLE || status == HBP_E_INVALID)
        return INT64_MAX;
    OK(context, status);
    OK(context, hbp_plan_get_summary(context, plan, &summary));
    hbp_plan_free(plan);
    return summary.predicted_ns;
}

static int64_t least_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The fastest on every degree, with packs from the longest sample on in steps of 2 %, by default of 4 % and
 * with sanitizers doubled, with as few layers recomputed as memory allows, 4 more and all. */
static int64_t fine_packs(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                          int32_t baseline, const hbp_epoch_options *options, int64_t longest)
{
    int64_t best = INT64_MAX;
    hbp_cost_terms t = {.struct_size = sizeof t};
    OK(context, hbp_cost_get_terms(context, cost, &t));
    for (int32_t i = 0; i < t.degrees; i++) {
        int32_t sp = t.degree[i];
        int64_t share = options->tokens_per_step / t.ranks * sp;
        for (double value = (double)longest; value <= (double)share;
             value *= TEST_LONG ? 1.02 : TEST_FEW(1.04, 2)) {
            int64_t length = (int64_t)value;
            int32_t least = 0;
            while (least <= t.layers && hbp_cost_predict_capacity(cost, sp, least) < length)
                least++;
            for (int32_t c = least; c <= t.layers; c += c == least ? 4 : t.layers) {
                hbp_epoch_options o = *options;
                hbp_groups *groups = NULL;
                OK(context,
                   hbp_groups_create(context, cost, 1, &length, &sp, &c, o.tokens_per_step, &groups));
                o.groups = groups;
                best = least_of(best, plan_ns(context, lengths, cost, baseline, &o));
                hbp_groups_free(groups);
            }
        }
    }
    return best;
}

/* The fastest of 64 values in even steps of 5 %, by default of 32 and with sanitizers of 8 as far, downwards
 * from what a rank holds. */
static int64_t fine_per_rank(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                             int32_t baseline, const hbp_epoch_options *options)
{
    int64_t best = INT64_MAX;
    hbp_cost_terms t = {.struct_size = sizeof t};
    OK(context, hbp_cost_get_terms(context, cost, &t));
    double value = (double)hbp_cost_predict_capacity(cost, 1, t.layers);
    int values = TEST_LONG ? 64 : TEST_FEW(32, 8);
    for (int i = 0; i < values; i++, value /= TEST_LONG ? 1.05 : TEST_FEW(1.1025, 1.48)) {
        hbp_epoch_options o = *options;
        *(baseline == HBP__EPOCH_HYBRID_CP ? &o.sequence_tokens_per_rank : &o.tokens_per_rank) =
            (int64_t)value;
        best = least_of(best, plan_ns(context, lengths, cost, baseline, &o));
    }
    return best;
}

static void check_near(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                       int32_t baseline, const hbp_epoch_options *options, int64_t longest)
{
    hbp_plan *plan = NULL;
    hbp_plan_summary summary = {.struct_size = sizeof summary};
    epoch_setting setting;
    hbp_epoch_options by = *options;
    by.method = hbp__epoch_name(baseline);
    OK(context, epoch_settings_plan(context, lengths, cost, &by, &setting, &plan));
    OK(context, hbp_plan_validate(context, plan, lengths, cost));
    OK(context, hbp_plan_get_summary(context, plan, &summary));
    int per_rank = baseline == HBP__EPOCH_HYBRID_CP || baseline == HBP__EPOCH_DYNAMIC_CP;
    int chooses =
        baseline == HBP__EPOCH_HBP || baseline == HBP__EPOCH_PATTERNS || baseline == HBP__EPOCH_FLEXSP;
    ck_assert_int_eq(setting.tokens_per_rank > 0, per_rank);
    ck_assert_int_eq(setting.pack_length > 0, !per_rank && !chooses);
    ck_assert_int_eq(setting.sp > 0, !per_rank && !chooses);
    ck_assert_int_le(summary.predicted_ns, plan_ns(context, lengths, cost, baseline, options));
    for (int64_t s = 0; s < summary.steps && baseline > HBP__EPOCH_SORTED; s++)
        ck_assert_int_le(plan_view(plan).step_tokens[s], options->tokens_per_step);
    hbp_plan_free(plan);
    if (chooses)
        return;
    int64_t fine = per_rank ? fine_per_rank(context, lengths, cost, baseline, options)
                            : fine_packs(context, lengths, cost, baseline, options, longest);
    ck_assert_msg((double)summary.predicted_ns <= 1.01 * (double)fine, "%s: %.4f of a fine sweep's",
                  hbp__epoch_name(baseline), (double)summary.predicted_ns / (double)fine);
}

START_TEST(the_best_is_near_that_of_a_fine_sweep)
{
    hbp_context *context = test_context();
    hbp_cost *cost = test_cost_ranks(context, 32);
    for (uint64_t seed = 0; seed < TEST_ROUNDS(2); seed++) {
        hbp_lengths *lengths = test_long_tail(context, seed, 3000, seed % 2 ? 60000 : 20000);
        hbp_lengths_summary l = {.struct_size = sizeof l};
        OK(context, hbp_lengths_get_summary(context, lengths, &l));
        hbp_epoch_options options = {
            .struct_size = sizeof options, .seed = seed, .tokens_per_step = seed % 2 ? 524288 : 262144};
        for (int32_t b = HBP__EPOCH_HBP; b < HBP__EPOCH_METHOD_COUNT; b++)
            check_near(context, lengths, cost, b, &options, l.max_length);
        hbp_lengths_free(lengths);
    }
    hbp_cost_free(cost);
    hbp_context_free(context);
}
END_TEST

/* Samples a step are samples a step where each is a pack or drawn, and else their tokens on average. */
START_TEST(the_contract_is_kept)
{
    enum { SAMPLES = 1152, STEP = 96 };
    hbp_context *context = test_context();
    hbp_cost *cost = test_cost(context);
    hbp_lengths *lengths = test_long_tail(context, 3, SAMPLES, 9000);
    hbp_lengths_summary l = {.struct_size = sizeof l};
    OK(context, hbp_lengths_get_summary(context, lengths, &l));
    int64_t offsets[SAMPLES / STEP + 1], samples[SAMPLES];
    for (int64_t i = 0; i < SAMPLES; i++)
        samples[i] = i * 7 % SAMPLES;
    for (int64_t i = 0; i <= SAMPLES / STEP; i++)
        offsets[i] = i * STEP;
    for (int given = 0; given < 2; given++)
        for (int32_t b = HBP__EPOCH_HBP; b < HBP__EPOCH_METHOD_COUNT; b++) {
            hbp_epoch_options options = {.struct_size = sizeof options,
                                         .method = hbp__epoch_name(b),
                                         .samples_per_step = given ? 0 : STEP};
            if (given) {
                options.batches = SAMPLES / STEP;
                options.batch_offsets = offsets;
                options.batch_samples = samples;
            }
            hbp_plan *plan = NULL;
            epoch_setting setting;
            OK(context, epoch_settings_plan(context, lengths, cost, &options, &setting, &plan));
            hbp_plan_summary summary = {.struct_size = sizeof summary};
            OK(context, hbp_plan_get_summary(context, plan, &summary));
            if (b == HBP__EPOCH_NO_PACKING || b == HBP__EPOCH_SORTED || b >= HBP__EPOCH_FLEXSP)
                ck_assert_int_eq(summary.steps, SAMPLES / STEP);
            if (b >= HBP__EPOCH_FLEXSP && given)
                ck_assert_int_eq(summary.composition, HBP_COMPOSITION_GIVEN);
            for (int64_t s = 0; s < summary.steps; s++)
                if (b > HBP__EPOCH_SORTED && b < HBP__EPOCH_FLEXSP && b != HBP__EPOCH_HBP)
                    ck_assert_double_le((double)plan_view(plan).step_tokens[s],
                                        (double)l.tokens * STEP / SAMPLES * 17 / 16 + 1);
            hbp_plan_free(plan);
        }
    hbp_lengths_free(lengths);
    hbp_cost_free(cost);
    hbp_context_free(context);
}
END_TEST

/* A part of many samples is swept, the plan is of all; what no setting can do is said as the library says it.
 */
START_TEST(large_data_sets_are_swept_by_a_part)
{
    hbp_context *context = test_context();
    hbp_cost *cost = test_cost(context);
    hbp_lengths *lengths = test_long_tail(context, 9, 60000, 9000);
    hbp_epoch_options options = {.struct_size = sizeof options, .tokens_per_step = 200000};
    hbp_plan *plan = NULL;
    epoch_setting setting;
    options.method = "isf";
    OK(context, epoch_settings_plan(context, lengths, cost, &options, &setting, &plan));
    OK(context, hbp_plan_validate(context, plan, lengths, cost));
    hbp_plan_free(plan);
    plan = NULL;
    options.method = "dynamic-cp";
    options.tokens_per_rank = 10;
    ck_assert_int_eq(epoch_settings_plan(context, lengths, cost, &options, &setting, &plan),
                     HBP_E_INFEASIBLE);
    ck_assert_ptr_null(plan);
    ck_assert_ptr_nonnull(strstr(hbp_context_message(context), "tokens_per_rank 10"));
    hbp_lengths_free(lengths);
    hbp_cost_free(cost);
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("epoch_settings", the_best_is_near_that_of_a_fine_sweep, the_contract_is_kept,
          large_data_sets_are_swept_by_a_part)
