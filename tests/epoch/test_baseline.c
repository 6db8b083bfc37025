#include "hbp/plan.h"
#include "keep.h"
#include "methods.h"
#include "planned.h"

START_TEST_IN_CONTEXT(every_baseline_is_a_sound_plan)
{
    hbp_cost *cost = keep(test_cost(context));
    hbp_lengths *lengths = keep(test_long_tail(context, 4, 1500, 50000));
    hbp_epoch_options options = {
        .struct_size = sizeof options, .max_length = 32768, .over_long = HBP_OVERLONG_DROP, .seed = 1};
    int64_t ns[HBP__EPOCH_METHOD_COUNT];
    for (int32_t b = HBP__EPOCH_HBP; b < HBP__EPOCH_METHOD_COUNT; b++) {
        hbp_plan *plan = NULL;
        OK(context, test_plan_by(context, lengths, cost, b, &options, &plan));
        planned_check(context, plan, lengths);
        hbp_plan_summary summary = {.struct_size = sizeof summary};
        OK(context, hbp_plan_get_summary(context, plan, &summary));
        ns[b] = summary.predicted_ns;
        if (b >= HBP__EPOCH_NO_PACKING && b < HBP__EPOCH_FLEXSP)
            for (int64_t p = 1; p < plan->packs; p++)
                ck_assert_int_eq(plan->pack_sp[p], plan->pack_sp[0]);
        if (b == HBP__EPOCH_NO_PACKING || b == HBP__EPOCH_SORTED)
            for (int64_t p = 0; p < plan->packs; p++)
                ck_assert_int_le(plan->pack_offsets[p + 1] - plan->pack_offsets[p], 1);
        hbp_report report = {.struct_size = sizeof report};
        OK(context, hbp_simulate(context, plan, cost, NULL, &report));
        ck_assert(report.padding == 0); /* nothing is a multiple of anything */
        ck_assert_ptr_nonnull(hbp__epoch_name(b));
        hbp_plan_free(plan);
    }
    ck_assert_int_lt(ns[HBP__EPOCH_SORTED], ns[HBP__EPOCH_NO_PACKING]);
    ck_assert_int_lt(ns[HBP__EPOCH_BEST_FIT_DECREASING], ns[HBP__EPOCH_SORTED]);
    ck_assert_int_lt(ns[HBP__EPOCH_HOMOGENEOUS_SP], ns[HBP__EPOCH_NEXT_FIT]);
}
END_TEST

/* Step for step what hbp_plan_step makes of the samples that the default's steps hold. */
START_TEST_IN_CONTEXT(steps_are_those_of_the_step_planner)
{
    static const int32_t mode[] = {HBP__STEP_FLEXSP, HBP__STEP_HYBRID_CP, HBP__STEP_DYNAMIC_CP};
    hbp_cost *cost = keep(test_cost(context));
    hbp_lengths *lengths = keep(test_long_tail(context, 5, 400, 40000));
    for (int contract = 0; contract < 3; contract += TEST_FEW(1, 2))
        for (int k = 0; k < 3; k++) {
            hbp_epoch_options options = {.struct_size = sizeof options,
                                         .seed = 7,
                                         .composition = contract == 1 ? HBP_COMPOSITION_STRATIFIED
                                                                      : HBP_COMPOSITION_RANDOM,
                                         .tokens_per_step = contract == 2 ? 100000 : 0,
                                         .samples_per_step = contract < 2 ? 64 : 0,
                                         .tokens_per_rank = k ? 9000 : 0};
            hbp_step_options step = {.struct_size = sizeof step,
                                     .method = hbp__step_name(mode[k]),
                                     .tokens_per_rank = options.tokens_per_rank};
            hbp_plan *ours = NULL, *plan = NULL;
            OK(context, hbp_plan_epoch(context, lengths, cost, &options, &ours));
            if (k == 1)
                options.sequence_tokens_per_rank = step.sequence_tokens_per_rank = 5000;
            OK(context, test_plan_by(context, lengths, cost, HBP__EPOCH_FLEXSP + k, &options, &plan));
            planned_check(context, plan, lengths);
            ck_assert_int_eq(plan->steps, ours->steps);
            ck_assert_int_eq(plan->composition, ours->composition);
            ck_assert_int_eq(plan->bound_ns, 0);
            for (int64_t s = 0; s < plan->steps; s++) {
                uint32_t batch[400];
                uint8_t held[400] = {0};
                int64_t count = 0;
                const hbp_plan *of[] = {ours, plan};
                for (int i = 0; i < 2; i++)
                    for (int64_t m = of[i]->step_offsets[s]; m < of[i]->step_offsets[s + 1]; m++)
                        for (int64_t p = of[i]->micro_batch_offsets[m]; p < of[i]->micro_batch_offsets[m + 1];
                             p++)
                            for (int64_t j = of[i]->pack_offsets[p]; j < of[i]->pack_offsets[p + 1]; j++)
                                held[of[i]->sample_ids[j]] |= (uint8_t)(1 << i);
                for (int64_t i = 0; i < 400; i++) {
                    ck_assert(held[i] == 0 || held[i] == 3);
                    if (held[i])
                        batch[count++] = (uint32_t)hbp_lengths_get_length(lengths, i);
                }
                hbp_lengths *own = NULL;
                hbp_plan *single = NULL;
                OK(context, hbp_lengths_create_u32(context, batch, count, NULL, &own));
                OK(context, hbp_plan_step(context, own, cost, &step, &single));
                ck_assert_int_eq(plan->step_ns[s], single->step_ns[0]);
                hbp_plan_free(single);
                hbp_lengths_free(own);
            }
            hbp_plan_free(plan);
            hbp_plan_free(ours);
        }
}
END_TEST

START_TEST_IN_CONTEXT(a_group_is_the_setting_of_classic_ways)
{
    hbp_cost *cost = keep(test_cost(context));
    hbp_lengths *lengths = keep(test_long_tail(context, 6, 500, 9000));
    hbp_groups *groups = NULL, *two = NULL;
    const int64_t length[] = {10000, 20000};
    const int32_t sp[] = {2, 4}, recompute[] = {0, 0};
    MAKES(context, groups, hbp_groups_create(context, cost, 1, length, sp, recompute, 80000, &groups));
    MAKES(context, two, hbp_groups_create(context, cost, 2, length, sp, recompute, 80000, &two));
    for (int32_t b = HBP__EPOCH_HBP; b < HBP__EPOCH_METHOD_COUNT; b++) {
        hbp_plan *plan = NULL;
        hbp_epoch_options options = {.struct_size = sizeof options, .groups = groups};
        int steps = b >= HBP__EPOCH_FLEXSP, own = b == HBP__EPOCH_HBP || b == HBP__EPOCH_PATTERNS;
        if (steps) {
            FAILS(context, HBP_E_INVALID,
                  "`groups` is for methods search, hbp, patterns and those whose packs are of one",
                  test_plan_by(context, lengths, cost, b, &options, &plan));
            continue;
        }
        OK(context, test_plan_by(context, lengths, cost, b, &options, &plan));
        planned_check(context, plan, lengths);
        for (int64_t p = 0; p < plan->packs && !own; p++) {
            ck_assert_int_eq(plan->pack_sp[p], 2);
            ck_assert_int_eq(plan->pack_capacity[p], 10000);
        }
        hbp_plan_free(plan);
        plan = NULL;
        options.groups = two;
        if (own)
            continue;
        FAILS(context, HBP_E_INVALID, "groups has 2 groups;",
              test_plan_by(context, lengths, cost, b, &options, &plan));
    }
}
END_TEST

static int keeps_refused(const hbp_context *context)
{
    return strstr(hbp_context_message(context), "does not keep it") != NULL;
}

/* The most of each that a step has, and the least micro-batches but in the last step. */
typedef struct most {
    int64_t samples, pack_tokens, rank_tokens, micro_batches, least_micro_batches, rest;
} most;

static most measure(const hbp_plan *plan, int64_t multiple)
{
    most m = {.least_micro_batches = INT64_MAX};
    for (int64_t p = 0; p < plan->packs; p++) {
        int64_t samples = plan->pack_offsets[p + 1] - plan->pack_offsets[p],
                tokens = plan->pack_padded_tokens[p];
        m.samples = samples > m.samples ? samples : m.samples;
        m.pack_tokens = tokens > m.pack_tokens ? tokens : m.pack_tokens;
        m.rank_tokens = tokens / plan->pack_sp[p] > m.rank_tokens ? tokens / plan->pack_sp[p] : m.rank_tokens;
    }
    for (int64_t s = 0; s < plan->steps; s++) {
        int64_t count = plan->step_offsets[s + 1] - plan->step_offsets[s];
        m.micro_batches = count > m.micro_batches ? count : m.micro_batches;
        m.least_micro_batches = count < m.least_micro_batches ? count : m.least_micro_batches;
        m.rest += count % multiple;
    }
    return m;
}

/* Options that say what a plan holds, one at a time, for every method. */
START_TEST_IN_CONTEXT(what_is_asked_for_is_kept_or_refused)
{
    static int64_t offsets[] = {0, 50, 60, 200}, samples[200];
    static const int32_t lone[] = {4};
    hbp_cost *cost = keep(test_cost(context));
    hbp_lengths *lengths = keep(test_long_tail(context, 9, 200, 9000));
    hbp_groups *groups = NULL;
    const int64_t length = 18432;
    const int32_t none = 0;
    MAKES(context, groups, hbp_groups_create(context, cost, 1, &length, lone, &none, 100000, &groups));
    for (int64_t i = 0; i < 200; i++)
        samples[i] = 199 - i;
    enum {
        PER_SP,
        MULTIPLE,
        EXACT,
        SAMPLES,
        LENGTH,
        RANK,
        GIVEN,
        EQUAL,
        WINDOWS,
        CURRICULUM,
        HIERARCHY,
        MIN_SP,
        TOKENS,
        ASKS
    };
    const hbp_epoch_options asked[ASKS] = {
        [PER_SP] = {.groups = groups, .sequence_multiple_per_sp = 16, .pack_multiple_per_sp = 64},
        [MULTIPLE] = {.tokens_per_step = 100000, .micro_batch_multiple = 3},
        [EXACT] = {.samples_per_step = 64, .micro_batches_per_step = 9},
        [SAMPLES] = {.samples_per_step = 50, .max_samples = 2},
        [LENGTH] = {.samples_per_step = 50, .max_pack_length = 9100},
        [RANK] = {.samples_per_step = 50, .tokens_per_rank = 4600},
        [GIVEN] = {.batches = 3, .batch_offsets = offsets, .batch_samples = samples},
        [EQUAL] = {.samples_per_step = 50, .equal_samples = 1},
        [WINDOWS] = {.window_samples = 50},
        [CURRICULUM] = {.samples_per_step = 50, .curriculum_steps = 1},
        [HIERARCHY] = {.composition = HBP_COMPOSITION_HIERARCHY},
        [MIN_SP] = {.samples_per_step = 50, .min_sp = 2},
        [TOKENS] = {.tokens_per_step = 90000},
    };
    int kept[ASKS] = {0}, refused[ASKS] = {0};
    for (int a = 0; a < ASKS; a++)
        for (int32_t method = 0; method < HBP__EPOCH_METHOD_COUNT; method++) {
            hbp_plan *plan = NULL;
            hbp_epoch_options options = asked[a];
            options.struct_size = sizeof options;
            options.method = hbp__epoch_name(method);
            if (a == PER_SP && method >= HBP__EPOCH_FLEXSP)
                options.groups = NULL;
            hbp_status status = hbp_plan_epoch(context, lengths, cost, &options, &plan);
            if (status < 0) {
                ck_assert_msg(status == HBP_E_INVALID && keeps_refused(context), "%s, %d: %s", options.method,
                              a, hbp_context_message(context));
                refused[a]++;
                continue;
            }
            kept[a]++;
            planned_check(context, plan, lengths);
            most m = measure(plan, a == MULTIPLE ? 3 : 1);
            ck_assert_msg(m.rest == 0, "%s", options.method);
            ck_assert_msg(a != EXACT || (m.micro_batches == 9 && m.least_micro_batches == 9), "%s: %d to %d",
                          options.method, (int)m.least_micro_batches, (int)m.micro_batches);
            ck_assert_msg(a != SAMPLES || m.samples <= 2, "%s", options.method);
            ck_assert_msg(a != LENGTH || m.pack_tokens <= 9100, "%s", options.method);
            ck_assert_msg(a != RANK || m.rank_tokens <= 4600, "%s", options.method);
            for (int64_t s = 0; a == TOKENS && s < plan->steps; s++)
                ck_assert_msg(plan->step_tokens[s] <= 90000 || method == HBP__EPOCH_NO_PACKING ||
                                  method == HBP__EPOCH_SORTED || method == HBP__EPOCH_HBP,
                              "%s", options.method);
            int is_one_sample = method == HBP__EPOCH_NO_PACKING || method == HBP__EPOCH_SORTED;
            ck_assert_msg(a != TOKENS || is_one_sample || plan->tokens_per_step > 0, "%s", options.method);
            for (int64_t s = 0; plan->tokens_per_step && method != HBP__EPOCH_HBP && s < plan->steps; s++)
                ck_assert_msg(plan->step_tokens[s] <= plan->tokens_per_step, "%s, %d", options.method, a);
            if (a == PER_SP) {
                ck_assert_int_eq(plan->sequence_multiple_per_sp, 16);
                for (int64_t p = 0; p < plan->packs; p++)
                    ck_assert_msg(plan->pack_sp[p] == 1 ||
                                      plan->pack_padded_tokens[p] % (64 * plan->pack_sp[p]) == 0,
                                  "%s", options.method);
            }
            for (int64_t s = 0; a == GIVEN && s < plan->steps; s++)
                ck_assert_int_eq(plan->step_samples[s], offsets[s + 1] - offsets[s]);
            hbp_plan_free(plan);
        }
    static const int keepers[ASKS] = {16, 16, 4, 15, 15, 15, 5, 1, 2, 5, 2, 2, 16};
    for (int a = 0; a < ASKS; a++) {
        ck_assert_msg(kept[a] == keepers[a], "%d: %d", a, kept[a]);
        ck_assert_int_eq(kept[a] + refused[a], HBP__EPOCH_METHOD_COUNT);
    }
    hbp_plan *plan = NULL;
    samples[0] = samples[1];
    hbp_epoch_options twice = asked[GIVEN];
    twice.struct_size = sizeof twice;
    FAILS(context, HBP_E_INVALID, "which is in batch 0 already",
          test_plan_by(context, lengths, cost, HBP__EPOCH_FLEXSP, &twice, &plan));
}
END_TEST

/* No step passes what the plan says of it; a micro-batch passes no tokens that were asked for. */
START_TEST_IN_CONTEXT(tokens_of_steps_are_what_is_recorded)
{
    hbp_cost *cost = keep(test_cost(context));
    hbp_lengths *lengths = keep(test_long_tail(context, 11, 300, 1000));
    hbp_groups *groups = NULL;
    const int64_t length = 1000;
    const int32_t one = 1, none = 0;
    MAKES(context, groups, hbp_groups_create(context, cost, 1, &length, &one, &none, 80000, &groups));
    const hbp_epoch_options asked[] = {{.groups = groups},
                                       {.groups = groups, .tokens_per_step = 200000},
                                       {.groups = groups, .tokens_per_step = 900},
                                       {.groups = groups, .tokens_per_step = 1500},
                                       {.samples_per_step = 1},
                                       {.tokens_per_step = 40000, .micro_batch_multiple = 4},
                                       {.micro_batch_multiple = 3}};
    for (size_t a = 0; a < sizeof asked / sizeof *asked; a++)
        for (int32_t method = HBP__EPOCH_HBP; method < HBP__EPOCH_FLEXSP; method++) {
            hbp_plan *plan = NULL;
            hbp_epoch_options options = asked[a];
            options.struct_size = sizeof options;
            int is_one_sample = method == HBP__EPOCH_NO_PACKING || method == HBP__EPOCH_SORTED;
            if (method == HBP__EPOCH_PATTERNS && asked[a].samples_per_step)
                continue; /* refused, see above */
            if (a == 2 || (a == 3 && !is_one_sample)) {
                FAILS(context, a == 2 ? HBP_E_INVALID : HBP_E_INFEASIBLE,
                      a == 2 ? "tokens_per_step is 900" : "1500",
                      test_plan_by(context, lengths, cost, method, &options, &plan));
                continue;
            }
            OK(context, test_plan_by(context, lengths, cost, method, &options, &plan));
            planned_check(context, plan, lengths);
            ck_assert_msg(is_one_sample == !plan->tokens_per_step || plan->samples_per_step, "%d, %d", (int)a,
                          (int)method);
            for (int64_t s = 0; plan->tokens_per_step && s < plan->steps; s++)
                ck_assert_msg(plan->step_tokens[s] <= plan->tokens_per_step, "%d, %d", (int)a, (int)method);
            hbp_plan_free(plan);
        }
}
END_TEST

START_TEST_IN_CONTEXT(unknown_baselines_are_named)
{
    hbp_cost *cost = keep(test_cost(context));
    hbp_lengths *lengths = keep(test_long_tail(context, 4, 50, 5000));
    hbp_plan *plan = NULL;
    hbp_epoch_options options = {.struct_size = sizeof options, .method = "next-fitt"};
    FAILS(context, HBP_E_INVALID,
          "`method` is 'next-fitt'; did you mean 'next-fit'? It must be one of search, hbp, patterns, "
          "no-packing,",
          hbp_plan_epoch(context, lengths, cost, &options, &plan));
    options.method = "";
    FAILS(context, HBP_E_INVALID, "`method` is ''", hbp_plan_epoch(context, lengths, cost, &options, &plan));
    ck_assert_ptr_null(plan);
}
END_TEST

TEST_MAIN("baseline", tokens_of_steps_are_what_is_recorded, what_is_asked_for_is_kept_or_refused,
          every_baseline_is_a_sound_plan, steps_are_those_of_the_step_planner,
          a_group_is_the_setting_of_classic_ways, unknown_baselines_are_named)
