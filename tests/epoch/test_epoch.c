#include "base/methods.h"
#include "epoch/epoch.h"

#include "cost/cost.h"
#include "failing.h"
#include "keep.h"
#include "planned.h"

static hbp_plan *plan_with(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                           const hbp_epoch_options *options)
{
    hbp_plan *plan = NULL;
    OK(context, hbp_plan_epoch(context, lengths, cost, options, &plan));
    return plan;
}

START_TEST_IN_CONTEXT(every_policy_and_mode_keeps_the_promises)
{
    hbp_cost *cost = keep(test_cost(context));
    for (uint64_t seed = 0; seed < TEST_ROUNDS(6u); seed++) {
        hbp_lengths *lengths = test_long_tail(context, seed, 100 + 100 * (int64_t)seed, 60000);
        for (int32_t mode = 0; mode < 2; mode++)
            for (int32_t policy = HBP_OVERLONG_DROP; policy <= HBP_OVERLONG_SPLIT; policy++) {
                hbp_epoch_options options = {.struct_size = sizeof options,
                                             .method = hbp__epoch_name(mode),
                                             .over_long = policy,
                                             .max_length = 20000,
                                             .sequence_multiple = seed % 2 ? 8 : 0,
                                             .pack_multiple = seed % 2 ? 128 : 0,
                                             .seed = seed};
                hbp_plan *plan = plan_with(context, lengths, cost, &options);
                planned_check(context, plan, lengths);
                ck_assert_int_gt(plan->overlong_samples, 0);
                ck_assert_int_eq(plan->dropped > 0, policy == HBP_OVERLONG_DROP);
                hbp_plan_free(plan);
            }
        hbp_lengths_free(lengths);
    }
}
END_TEST

/* No sample is trained in part without a word: what is in no pack is listed piece by piece. */
START_TEST_IN_CONTEXT(pieces_that_drop_last_drops_are_told)
{
    hbp_cost *cost = keep(test_cost(context));
    int64_t in_part = 0, whole = 0;
    for (uint64_t seed = 0; seed < TEST_ROUNDS(4u); seed++) {
        hbp_lengths *lengths = test_long_tail(context, seed, 1500, 60000);
        int64_t *tokens = calloc(1500, sizeof *tokens);
        ck_assert_ptr_nonnull(tokens);
        for (int32_t way = 0; way < 4; way++) {
            hbp_epoch_options options = {.struct_size = sizeof options,
                                         .method =
                                             hbp__epoch_name(way == 1 ? HBP__EPOCH_HBP : HBP__EPOCH_SEARCH),
                                         .composition = way == 2 ? HBP_COMPOSITION_HIERARCHY : 0,
                                         .over_long = HBP_OVERLONG_SPLIT,
                                         .max_length = 10000,
                                         .tokens_per_step = way == 3 ? 80000 : 400000,
                                         .window_samples = way == 3 ? 500 : 0,
                                         .drop_last = 1,
                                         .seed = seed};
            hbp_plan *plan = plan_with(context, lengths, cost, &options);
            OK(context, hbp_plan_validate(context, plan, lengths, cost));
            ck_assert_int_eq(plan->dropped_tokens != NULL, plan->dropped > 0);
            memset(tokens, 0, 1500 * sizeof *tokens);
            for (int64_t i = 0; i < plan->samples; i++)
                tokens[plan->sample_ids[i]] += plan->sample_tokens[i];
            for (int64_t i = 0; i < plan->dropped; i++) {
                int64_t id = plan->dropped_ids[i];
                in_part += tokens[id] > 0;
                whole += plan->dropped_tokens[i] == hbp__lengths_get(lengths, id);
            }
            for (int64_t i = 0; i < plan->dropped; i++)
                tokens[plan->dropped_ids[i]] += plan->dropped_tokens[i];
            for (int64_t i = 0; i < 1500; i++)
                ck_assert_int_eq(tokens[i], hbp__lengths_get(lengths, i));
            hbp_plan_free(plan);
        }
        free(tokens);
        hbp_lengths_free(lengths);
    }
    ck_assert_int_gt(in_part, 0);
    ck_assert_int_gt(whole, 0);
}
END_TEST

START_TEST_IN_CONTEXT(the_default_is_never_slower_than_the_paper)
{
    hbp_cost *cost = keep(test_cost(context));
    int mark = keep_mark();
    for (uint64_t seed = 0; seed < TEST_ROUNDS(16u); keep_release(mark), seed++) {
        hbp_lengths *lengths =
            keep(test_long_tail(context, seed, 100 + 100 * (int64_t)seed, 3000 + 4000 * (int64_t)seed));
        hbp_epoch_options options = {.struct_size = sizeof options, .seed = seed, .mixture_slack = -1};
        hbp_plan *best = keep(plan_with(context, lengths, cost, &options));
        options.method = hbp__epoch_name(HBP__EPOCH_HBP);
        hbp_plan *paper = keep(plan_with(context, lengths, cost, &options));
        hbp_plan_summary a = {.struct_size = sizeof a}, b = a;
        OK(context, hbp_plan_get_summary(context, best, &a));
        OK(context, hbp_plan_get_summary(context, paper, &b));
        ck_assert_msg(a.predicted_ns <= b.predicted_ns, "seed %d: %lld against %lld", (int)seed,
                      (long long)a.predicted_ns, (long long)b.predicted_ns);
    }
}
END_TEST

START_TEST_IN_CONTEXT(a_plan_is_a_function_of_its_inputs)
{
    hbp_cost *cost = keep(test_cost(context));
    uint32_t length[4000];
    int64_t wide[4000];
    hbp__rng rng = hbp__rng_make(4, 0, 0);
    for (int i = 0; i < 4000; i++)
        wide[i] = length[i] = 1 + hbp__rng_below(&rng, hbp__rng_below(&rng, 9) ? 900 : 20000);
    hbp_lengths *a = NULL, *b = NULL;
    hbp_lengths_options borrow = {.struct_size = sizeof borrow, .borrow = 1};
    MAKES(context, a, hbp_lengths_create_u32(context, length, 4000, &borrow, &a));
    MAKES(context, b, hbp_lengths_create_i64(context, wide, 4000, NULL, &b));
    hbp_epoch_options options = {.struct_size = sizeof options, .seed = 1, .epoch = 2};
    hbp_plan *one = keep(plan_with(context, a, cost, &options)),
             *two = keep(plan_with(context, b, cost, &options));
    ck_assert_uint_eq(one->digest, two->digest);
    options.epoch = 3;
    hbp_plan *three = keep(plan_with(context, a, cost, &options));
    ck_assert_uint_ne(one->digest, three->digest);
}
END_TEST

/* A multiple of micro-batches brings no step past its tokens, asked for or chosen. */
START_TEST_IN_CONTEXT(tokens_hold_beside_a_multiple)
{
    hbp_cost *cost = keep(test_cost(context));
    for (uint64_t seed = 0; seed < TEST_ROUNDS(6); seed++)
        for (int32_t way = 0; way < 4; way++) {
            /* Composition auto searches each step: seconds for as many samples as the others get. */
            hbp_lengths *lengths = test_long_tail(context, seed, way == 2 ? 50 : 300, 60000);
            for (int32_t multiple = 2; multiple <= 4; multiple += TEST_FEW(1, 2)) {
                hbp_epoch_options options = {.struct_size = sizeof options,
                                             .micro_batch_multiple = multiple,
                                             .modality_order = way == 3,
                                             .tokens_per_step = way == 1 ? 0 : 250000};
                options.composition = way == 2 ? HBP_COMPOSITION_AUTO : HBP_COMPOSITION_HIERARCHY;
                hbp_plan_summary summary = {.struct_size = sizeof summary};
                hbp_plan *plan = NULL;
                OK(context, hbp_plan_epoch(context, lengths, cost, &options, &plan));
                OK(context, hbp_plan_get_summary(context, plan, &summary));
                planned_check(context, plan, lengths);
                if (way != 1)
                    ck_assert_int_eq(summary.tokens_per_step, 250000);
                for (int64_t s = 0; s < plan->steps; s++) {
                    ck_assert_int_le(plan->step_tokens[s], summary.tokens_per_step);
                    ck_assert_int_eq((plan->step_offsets[s + 1] - plan->step_offsets[s]) % multiple, 0);
                }
                ck_assert_int_gt(summary.bound_ns, 0);
                hbp_plan_free(plan);
            }
            hbp_lengths_free(lengths);
        }
}
END_TEST

/* No group keeps to these; steps do. */
START_TEST_IN_CONTEXT(what_groups_cannot_hold_steps_may)
{
    hbp_cost *cost = keep(test_cost(context));
    hbp_lengths *lengths = keep(test_long_tail(context, 7, 60, 3000));
    hbp_lengths_summary data = {.struct_size = sizeof data};
    OK(context, hbp_lengths_get_summary(context, lengths, &data));
    const hbp_epoch_options ways[] = {
        {.tokens_per_step = data.max_length, .pack_multiple = 5000, .curriculum_steps = 1},
        {.tokens_per_step = 2 * data.max_length, .pack_multiple_per_sp = 700},
        {.pack_multiple_per_sp = 700, .max_samples = 1, .max_pack_length = 3500},
        {.pack_multiple_per_sp = 700, .max_pack_length = data.max_length},
        {.pack_multiple_per_sp = 700, .tokens_per_rank = data.max_length},
        {.sequence_multiple_per_sp = 65536, .tokens_per_rank = data.max_length, .curriculum_steps = 1},
        {.pack_multiple_per_sp = 65536, .max_pack_length = data.max_length, .equal_samples = 1}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        hbp_epoch_options options = ways[i];
        hbp_plan *plan = NULL;
        options.struct_size = sizeof options;
        OK(context, hbp_plan_epoch(context, lengths, cost, &options, &plan));
        OK(context, hbp_plan_validate(context, plan, lengths, cost));
        planned_check(context, plan, lengths);
        for (int64_t s = 0; s < plan->steps && options.tokens_per_step; s++)
            ck_assert_int_le(plan->step_tokens[s], options.tokens_per_step);
        hbp_plan_free(plan);
    }
}
END_TEST

START_TEST_IN_CONTEXT(ties_and_loss_tokens_survive)
{
    hbp_cost *cost = keep(test_cost(context));
    static int64_t length[3000], link[3000];
    static uint32_t loss[3000];
    hbp__rng rng = hbp__rng_make(5, 0, 0);
    for (int i = 0; i < 3000; i++) {
        length[i] = 1 + hbp__rng_below(&rng, 2000);
        loss[i] = hbp__rng_below(&rng, (uint64_t)length[i] + 1);
        link[i] = i < 2000 ? i / 2 : -1;
    }
    hbp_lengths_options with = {.struct_size = sizeof with, .loss_tokens = loss, .links = link};
    hbp_lengths *lengths = NULL;
    MAKES(context, lengths, hbp_lengths_create_i64(context, length, 3000, &with, &lengths));
    for (int way = 0; way < 3; way++) {
        hbp_epoch_options options = {.struct_size = sizeof options,
                                     .samples_per_step = way == 1 ? 500 : 0,
                                     .window_samples = way == 2 ? 700 : 0};
        hbp_plan *plan = plan_with(context, lengths, cost, &options);
        planned_check(context, plan, lengths);
        planned_check_links(plan, link, 3000);
        for (int64_t i = 0; i < plan->samples; i++)
            ck_assert_int_eq(plan->sample_loss_tokens[i], loss[plan->sample_ids[i]]);
        hbp_plan_free(plan);
    }
}
END_TEST

START_TEST_IN_CONTEXT(a_histogram_is_enough)
{
    hbp_cost *cost = keep(test_cost(context));
    hbp_lengths *lengths = NULL;
    MAKES(context, lengths,
          hbp_lengths_create_histogram(context, (int64_t[]){300, 7000, 25000, 90},
                                       (int64_t[]){5000, 60, 9, 3000}, 4, &lengths));
    hbp_plan *plan = keep(plan_with(context, lengths, cost, NULL));
    planned_check(context, plan, lengths);
}
END_TEST

START_TEST_IN_CONTEXT(groups_may_be_given)
{
    hbp_cost *cost = keep(test_cost(context));
    hbp_lengths *lengths = keep(test_long_tail(context, 3, 2000, 16384));
    hbp_groups *groups = NULL;
    MAKES(context, groups,
          hbp_groups_create(context, cost, 2, (int64_t[]){2048, 16384}, (int32_t[]){1, 2}, NULL, 0, &groups));
    hbp_epoch_options options = {.struct_size = sizeof options, .groups = groups};
    hbp_plan *plan = keep(plan_with(context, lengths, cost, &options));
    for (int64_t p = 0; p < plan->packs; p++)
        ck_assert(plan->pack_capacity[p] == (plan->pack_sp[p] == 1 ? 2048 : 16384));
}
END_TEST

START_TEST_IN_CONTEXT(senseless_requests_are_named)
{
    hbp_cost *cost = keep(test_cost(context));
    hbp_lengths *lengths = keep(test_long_tail(context, 3, 500, 16384));
    hbp_plan *plan = (hbp_plan *)1;
    hbp_epoch_options options = {.struct_size = sizeof options, .max_length = 8192};
    FAILS(context, HBP_E_INVALID, "8192", hbp_plan_epoch(context, lengths, cost, &options, &plan));
    ck_assert_ptr_null(plan);
    options = (hbp_epoch_options){.struct_size = sizeof options, .method = "paper"};
    FAILS(context, HBP_E_INVALID, "`method` is 'paper'; it must be one of search, hbp, patterns, no-packing,",
          hbp_plan_epoch(context, lengths, cost, &options, &plan));
    options = (hbp_epoch_options){.struct_size = sizeof options, .max_length = -1};
    FAILS(context, HBP_E_INVALID, "`max_length` is -1",
          hbp_plan_epoch(context, lengths, cost, &options, &plan));
    options = (hbp_epoch_options){.struct_size = sizeof options, .over_long = 9, .max_length = 8192};
    FAILS(context, HBP_E_INVALID, "`over_long` is 9; it must be in 0..3",
          hbp_plan_epoch(context, lengths, cost, &options, &plan));
    options = (hbp_epoch_options){.struct_size = sizeof options, .window_samples = -5};
    FAILS(context, HBP_E_INVALID, "`window_samples` is -5",
          hbp_plan_epoch(context, lengths, cost, &options, &plan));
    options = (hbp_epoch_options){.struct_size = sizeof options, .window_samples = 5, .samples_per_step = 5};
    FAILS(context, HBP_E_INVALID, "samples_per_step and window_samples are both given",
          hbp_plan_epoch(context, lengths, cost, &options, &plan));
    int64_t offsets[2] = {0, 500};
    const struct {
        hbp_epoch_options options;
        const char *message;
    } wrong[] = {
        {{.samples_per_step = 5, .tokens_per_step = 9},
         "samples_per_step and tokens_per_step are both given"},
        {{.batches = 1, .samples_per_step = 5}, "samples_per_step and batches are both given"},
        {{.batches = 1, .tokens_per_step = 5}, "batches and tokens_per_step are both given"},
        {{.batches = 1, .window_samples = 5}, "batches and window_samples are both given"},
        {{.batches = 1, .composition = 1}, "composition random and batches exclude each other"},
        {{.batches = 1, .drop_last = 1}, "drop_last has no meaning where batches are given"},
        {{.batches = 1}, "batch_offsets is NULL"},
        {{.batches = 1, .batch_offsets = offsets}, "batch_samples is NULL"},
        {{.composition = HBP_COMPOSITION_GIVEN}, "`composition` is 4; it must be in 0..3"},
        {{.composition = HBP_COMPOSITION_HIERARCHY, .samples_per_step = 8},
         "composition hierarchy and samples_per_step exclude each other"},
        {{.composition = HBP_COMPOSITION_RANDOM, .window_samples = 8},
         "composition random and window_samples 8 exclude each other"},
        {{.micro_batches_per_step = 2, .method = hbp__epoch_name(HBP__EPOCH_HBP)},
         "`micro_batches_per_step` is for methods search, flexsp, hybrid-cp and dynamic-cp; hbp does not"},
        {{.equal_samples = 1, .window_samples = 9},
         "equal_samples asks for steps planned one by one; window_samples"},
        {{.threads = 1025}, "`threads` is 1025; it must be in 0..1024"},
        {{.micro_batches_per_step = -1}, "`micro_batches_per_step` is -1"},
        {{.micro_batches_per_step = 3, .micro_batch_multiple = 2},
         "`micro_batches_per_step` is 3, which micro_batch_multiple, 2, does not divide"},
        {{.effort = 10}, "`effort` is 10; it must be in 0..9"},
        {{.tokens_per_step = 9}, "tokens_per_step is 9; at least "},
        {{.tokens_per_step = 9, .composition = HBP_COMPOSITION_HIERARCHY}, "tokens_per_step is 9; at least "},
        {{.tokens_per_step = 9, .window_samples = 30}, "tokens_per_step is 9; at least "},
        {{.method = hbp__epoch_name(HBP__EPOCH_HBP), .composition = HBP_COMPOSITION_STRATIFIED},
         "composition stratified with method hbp needs samples_per_step"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        options = wrong[i].options;
        options.struct_size = sizeof options;
        FAILS(context, HBP_E_INVALID, wrong[i].message,
              hbp_plan_epoch(context, lengths, cost, &options, &plan));
        ck_assert_ptr_null(plan);
    }
    options =
        (hbp_epoch_options){.struct_size = sizeof options, .tokens_per_rank = 50, .samples_per_step = 500};
    FAILS(context, HBP_E_INFEASIBLE, "the longest pack holds 400 with tokens_per_rank 50 (",
          hbp_plan_epoch(context, lengths, cost, &options, &plan));
    options.samples_per_step = 0;
    FAILS(context, HBP_E_INFEASIBLE, "the longest pack holds 400 with tokens_per_rank 50 (",
          hbp_plan_epoch(context, lengths, cost, &options, &plan));
    options = (hbp_epoch_options){.struct_size = sizeof options, .tokens_per_step = -5};
    FAILS(context, HBP_E_INVALID, "`tokens_per_step` is -5",
          hbp_plan_epoch(context, lengths, cost, &options, &plan));
    FAILS(context, HBP_E_INVALID, "lengths is NULL", hbp_plan_epoch(context, NULL, cost, NULL, &plan));
    ck_assert_int_eq(hbp_plan_epoch(NULL, lengths, cost, NULL, &plan), HBP_E_INVALID);
}
END_TEST

/* Packs shorter than a degree, packs that fit no rank, times past 64 bits: refused or planned, never
 * undefined. */
START_TEST_IN_CONTEXT(extremes_are_planned_or_named)
{
    hbp_cost *cost = keep(test_cost(context));
    hbp_lengths *ones = NULL, *longs = NULL;
    hbp_plan *plan = NULL;
    MAKES(context, ones, hbp_lengths_create_i64(context, (int64_t[]){1, 1, 1}, 3, NULL, &ones));
    for (int32_t mode = 0; mode < 2; mode++) {
        hbp_epoch_options options = {
            .struct_size = sizeof options, .method = hbp__epoch_name(mode), .max_length = 1};
        OK(context, hbp_plan_epoch(context, ones, cost, &options, &plan));
        planned_check(context, plan, ones);
        hbp_plan_free(plan);
        plan = NULL;
    }
    MAKES(context, longs, hbp_lengths_create_i64(context, (int64_t[]){700000, 5, 5}, 3, NULL, &longs));
    for (int32_t mode = 0; mode < 2; mode++) {
        hbp_epoch_options options = {.struct_size = sizeof options, .method = hbp__epoch_name(mode)};
        FAILS(context, HBP_E_INFEASIBLE, "", hbp_plan_epoch(context, longs, cost, &options, &plan));
        ck_assert_ptr_null(plan);
    }
    hbp_cost_terms terms = {.struct_size = sizeof terms};
    OK(context, hbp_cost_get_terms(context, cost, &terms));
    terms.ns_per_token = 9e18;
    terms.pack_ns = 1e18;
    terms.step_ns = 1e18;
    hbp_cost *slow = NULL;
    MAKES(context, slow, hbp_cost_create_terms(context, &terms, &slow));
    hbp_lengths *tail = keep(test_long_tail(context, 1, 200, 9000));
    FAILS(context, HBP_E_OVERFLOW, "", hbp_plan_epoch(context, tail, slow, NULL, &plan));
    ck_assert_ptr_null(plan);
}
END_TEST

/* Groups made for longer steps than those asked for: kept and recorded, or refused. */
START_TEST_IN_CONTEXT(tokens_hold_beside_given_groups)
{
    hbp_cost *cost = keep(test_cost(context));
    int64_t length[64];
    for (int i = 0; i < 64; i++)
        length[i] = 3000;
    hbp_lengths *lengths = NULL;
    hbp_groups *groups = NULL;
    MAKES(context, lengths, hbp_lengths_create_i64(context, length, 64, NULL, &lengths));
    MAKES(context, groups,
          hbp_groups_create(context, cost, 1, (int64_t[]){9000}, (int32_t[]){1}, NULL, 1000000, &groups));
    const int32_t ranks = cost->terms.ranks;
    for (int way = 0; way < 4; way++)
        for (int64_t tokens = 3000; tokens <= 9000 * ranks; tokens += 9000 * ranks - 3000) {
            hbp_epoch_options options = {.struct_size = sizeof options, .groups = groups};
            hbp_plan *plan = NULL;
            options.tokens_per_step = tokens;
            options.composition = way == 1   ? HBP_COMPOSITION_STRATIFIED
                                  : way == 2 ? HBP_COMPOSITION_HIERARCHY
                                             : HBP_COMPOSITION_AUTO;
            options.window_samples = way == 3 ? 64 : 0;
            if (tokens == 3000) {
                FAILS(context, HBP_E_INFEASIBLE,
                      "no plan of steps of at most 3000 tokens was found; one with",
                      hbp_plan_epoch(context, lengths, cost, &options, &plan));
                ck_assert(strstr(hbp_context_message(context), "or no groups"));
                ck_assert_ptr_null(plan);
                continue;
            }
            plan = plan_with(context, lengths, cost, &options);
            planned_check(context, plan, lengths);
            ck_assert_int_eq(plan->tokens_per_step, tokens);
            for (int64_t i = 0; i < plan->steps; i++)
                ck_assert_int_le(plan->step_tokens[i], tokens);
            hbp_plan_free(plan);
        }
}
END_TEST

START_TEST_IN_CONTEXT(nothing_is_left_behind)
{
    planned_inputs in = {keep(test_long_tail(context, 1, 120, 30000)),
                         keep(test_cost(context)),
                         {.struct_size = sizeof in.options}};
    in.options.max_length = 16384;
    in.options.over_long = HBP_OVERLONG_SPLIT;
    in.options.composition = HBP_COMPOSITION_HIERARCHY;
    failing_sweep(planned_once, &in);
    ck_assert_int_gt(cancel_sweep(planned_once, &in), 4);
}
END_TEST

/* Where memory hardly limits a pack, what a plan takes follows its samples, not what a pack could hold. */
START_TEST(memory_follows_the_samples)
{
    static const uint32_t length[] = {3000, 10, 1, 1, 1, 3000, 1000, 10, 10};
    static const int32_t degree[] = {1};
    static const double none[] = {0};
    hbp_cost_terms terms = {.struct_size = sizeof terms,
                            .ranks = 1,
                            .layers = 2,
                            .ns_per_token_squared = 0.5,
                            .pack_ns = 1000,
                            .limit_bytes = 2000000000,
                            .degrees = 1,
                            .degree = degree,
                            .sp_latency_ns = none,
                            .sp_ns_per_token = none};
    failing f;
    hbp_context *context = failing_context(&f, NULL, NULL);
    hbp_cost *cost = NULL;
    hbp_lengths *lengths = NULL;
    OK(context, hbp_cost_create_terms(context, &terms, &cost));
    OK(context, hbp_lengths_create_u32(context, length, 9, NULL, &lengths));
    hbp_epoch_options options[] = {
        {.struct_size = sizeof *options, .composition = HBP_COMPOSITION_STRATIFIED, .max_samples = 65536},
        {.struct_size = sizeof *options, .curriculum_steps = 3, .tokens_per_step = INT32_MAX},
        {.struct_size = sizeof *options, .curriculum_steps = INT64_C(1) << 31},
        {.struct_size = sizeof *options, .composition = HBP_COMPOSITION_HIERARCHY, .effort = 3}};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        f.peak_bytes = f.bytes;
        hbp_plan_free(plan_with(context, lengths, cost, &options[i]));
        ck_assert_int_lt(f.peak_bytes, 10000000);
    }
    hbp_lengths_free(lengths);
    hbp_cost_free(cost);
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("epoch", memory_follows_the_samples, every_policy_and_mode_keeps_the_promises,
          pieces_that_drop_last_drops_are_told, the_default_is_never_slower_than_the_paper,
          a_plan_is_a_function_of_its_inputs, tokens_hold_beside_a_multiple,
          what_groups_cannot_hold_steps_may, ties_and_loss_tokens_survive, a_histogram_is_enough,
          groups_may_be_given, tokens_hold_beside_given_groups, extremes_are_planned_or_named,
          senseless_requests_are_named, nothing_is_left_behind)
