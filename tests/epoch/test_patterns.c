/* Plans by patterns: listed, they are plans like others; a part of one is the same part of the whole; what is
 * said of them without a list is what is said of the list. */
#include "epoch/patterns.h"

#include "epoch/planned.h"
#include "epoch/tuning.h"
#include "failing.h"
#include "io/plan/plan_format.h"
#include "keep.h"
#include "patterned.h"

static void draw_options(hbp__rng *rng, hbp_epoch_options *o)
{
    *o = defaults();
    o->seed = hbp__rng_below(rng, 100);
    o->epoch = hbp__rng_below(rng, 3);
    o->micro_batch_multiple = (int32_t)hbp__rng_below(rng, 4);
    o->max_samples = hbp__rng_below(rng, 3) ? 0 : 3 + (int32_t)hbp__rng_below(rng, 20);
    o->max_groups = (int32_t)hbp__rng_below(rng, 4);
    o->effort = (int32_t)hbp__rng_below(rng, 3);
    if (!hbp__rng_below(rng, 3)) {
        o->sequence_multiple = 1 + hbp__rng_below(rng, 16);
        o->pack_multiple = 1 + hbp__rng_below(rng, 16);
    }
    if (!hbp__rng_below(rng, 4)) {
        o->sequence_multiple_per_sp = 2;
        o->pack_multiple_per_sp = 1 + hbp__rng_below(rng, 3);
    }
    if (!hbp__rng_below(rng, 3))
        o->composition = HBP_COMPOSITION_STRATIFIED;
    if (!hbp__rng_below(rng, 4))
        o->tokens_per_step = 3000000;
}

static hbp_plan *expand(hbp_context *context, const hbp_pattern_plan *plan, const hbp_length_index *index,
                        int64_t first, int64_t steps)
{
    hbp_plan *listed;
    OK(context, hbp_pattern_plan_expand(context, plan, index, first, steps, &listed));
    ck_assert_int_eq(listed->epoch_steps, steps < plan->steps ? plan->steps : 0);
    return keep(listed);
}

/* Any part is that of the whole. */
static void check_parts(hbp_context *context, hbp__rng *rng, const hbp_pattern_plan *plan,
                        const hbp_length_index *index, const hbp_plan *whole)
{
    for (int i = 0; i < 3; i++) {
        const int64_t first = hbp__rng_below(rng, (uint64_t)plan->steps),
                      steps = 1 + hbp__rng_below(rng, (uint64_t)(plan->steps - first));
        hbp_plan *slice;
        OK(context, hbp__plan_slice(context, whole, first, steps, &slice));
        keep(slice);
        if (steps < plan->steps)
            ck_assert_uint_eq(expand(context, plan, index, first, steps)->digest, slice->digest);
    }
}

static void check_summary(hbp_context *context, const hbp_pattern_plan *plan, const hbp_plan *whole)
{
    hbp_plan_summary a = {.struct_size = sizeof a}, b = a;
    OK(context, hbp_pattern_plan_get_summary(context, plan, &a));
    OK(context, hbp_plan_get_summary(context, whole, &b));
    ck_assert_uint_ne(a.digest, b.digest);
    a.digest = b.digest;
    ck_assert(hbp__plan_same_summary(&a, &b));
}

static void check_report(hbp_context *context, const hbp_pattern_plan *plan, const hbp_plan *whole,
                         const hbp_cost *cost)
{
    const hbp_simulate_options options = {.struct_size = sizeof options};
    hbp_report a = {.struct_size = sizeof a}, b = a;
    OK(context, hbp_pattern_plan_simulate(context, plan, cost, &options, &a));
    OK(context, hbp_simulate(context, whole, cost, &options, &b));
    ck_assert_mem_eq(&a, &b, sizeof a);
}

START_TEST_IN_CONTEXT(listed_they_are_plans_like_others)
{
    hbp__rng rng = hbp__rng_make(2, 0, 0);
    int planned = 0;
    for (int round = 0, mark = keep_mark(); round < TEST_ROUNDS(60); round++, keep_release(mark)) {
        hbp_cost *cost = keep(test_cost_ranks(context, 1 << hbp__rng_below(&rng, 5)));
        hbp_lengths *lengths =
            draw_lengths(context, &rng, 1 + hbp__rng_below(&rng, 3000), 1 + hbp__rng_below(&rng, 60000),
                         (int)hbp__rng_below(&rng, 3) == 0);
        hbp_epoch_options o;
        hbp_pattern_plan *plan;
        hbp_length_index *index;
        draw_options(&rng, &o);
        hbp_status status = hbp_plan_patterns(context, lengths, cost, &o, &plan);
        if (status == HBP_E_INFEASIBLE)
            continue;
        OK(context, status);
        keep(plan);
        OK(context, hbp_length_index_create(context, lengths, &index));
        keep(index);
        planned++;
        OK(context, hbp_pattern_plan_validate(context, plan, lengths, cost));
        const hbp_plan *whole = expand(context, plan, index, 0, plan->steps);
        OK(context, hbp_plan_validate(context, whole, lengths, cost));
        planned_check(context, whole, lengths);
        for (int64_t s = 0; s < whole->steps; s++)
            ck_assert_int_le(whole->step_tokens[s], plan->tokens_per_step);
        check_parts(context, &rng, plan, index, whole);
        check_summary(context, plan, whole);
        check_report(context, plan, whole, cost);
        hbp_plan *listed;
        o.method = "patterns";
        o.threads = round % 4;
        OK(context, hbp_plan_epoch(context, lengths, cost, &o, &listed));
        ck_assert_uint_eq(keep(listed)->digest, whole->digest);
    }
    ck_assert_int_gt(planned, TEST_ROUNDS(60) / 2);
}
END_TEST

/* A limit that is an option: the plan is of the limited lengths, and says so to those of others. */
static void check_limit_given(hbp_context *context, const hbp_lengths *lengths, const hbp_lengths *limited,
                              const hbp_cost *cost, const hbp_epoch_options *options)
{
    hbp_pattern_plan *plan, *same;
    hbp_length_index *index, *whole;
    hbp_epoch_options o = *options;
    OK(context, hbp_plan_patterns(context, lengths, cost, &o, &plan));
    keep(plan);
    o.max_length = 0;
    OK(context, hbp_plan_patterns(context, limited, cost, &o, &same));
    ck_assert_uint_eq(plan->lengths_digest, keep(same)->lengths_digest);
    OK(context, hbp_pattern_plan_validate(context, plan, limited, cost));
    FAILS(context, HBP_E_INVALID, "take what hbp_lengths_limit makes of yours",
          hbp_pattern_plan_validate(context, plan, lengths, cost));
    OK(context, hbp_length_index_create(context, lengths, &whole));
    FAILS(context, HBP_E_INVALID, "take what hbp_lengths_limit makes of yours",
          hbp_pattern_plan_expand(context, plan, keep(whole), 0, 1, &(hbp_plan *){NULL}));
    OK(context, hbp_length_index_create(context, limited, &index));
    const hbp_plan *listed = expand(context, plan, keep(index), 0, plan->steps);
    OK(context, hbp_plan_validate(context, listed, lengths, cost));
}

/* Lengths under a limit, whose pieces and dropped samples the index knows. */
START_TEST_IN_CONTEXT(limits_are_those_of_the_listed_plan)
{
    static const int32_t policies[] = {HBP_OVERLONG_DROP, HBP_OVERLONG_TRUNCATE, HBP_OVERLONG_SPLIT};
    hbp__rng rng = hbp__rng_make(3, 0, 0);
    hbp_cost *cost = keep(test_cost(context));
    for (int round = 0, mark = keep_mark(); round < TEST_ROUNDS(24); round++, keep_release(mark)) {
        hbp_lengths *lengths = draw_lengths(context, &rng, 1500, 40000, round % 2), *limited;
        hbp_pattern_plan *plan;
        hbp_length_index *index;
        OK(context, hbp_lengths_limit(context, lengths, 9000, policies[round % 3], &limited));
        keep(limited);
        OK(context, hbp_plan_patterns(context, limited, cost, NULL, &plan));
        keep(plan);
        OK(context, hbp_length_index_create(context, limited, &index));
        keep(index);
        const hbp_plan *whole = expand(context, plan, index, 0, plan->steps);
        OK(context, hbp_plan_validate(context, whole, limited, cost));
        OK(context, hbp_plan_validate(context, whole, lengths, cost));
        check_parts(context, &rng, plan, index, whole);
        check_summary(context, plan, whole);
        if (!plan->is_bare)
            FAILS(context, HBP_E_INVALID, "give the index of their lengths",
                  hbp_pattern_plan_expand(context, plan, NULL, 0, 1, &(hbp_plan *){NULL}));
        /* The limit as an option. */
        hbp_epoch_options o = defaults();
        hbp_plan *listed;
        o.max_length = 9000;
        o.over_long = policies[round % 3];
        o.method = "patterns";
        OK(context, hbp_plan_epoch(context, lengths, cost, &o, &listed));
        OK(context, hbp_plan_validate(context, keep(listed), lengths, cost));
        check_limit_given(context, lengths, limited, cost, &o);
    }
}
END_TEST

/* A histogram that a limit leaves one: listed, its plan and that of an array of the same lengths by their
 * places are of the limited histogram, and of the one that was limited. */
START_TEST_IN_CONTEXT(limited_histograms_are_known_when_listed)
{
    static const int32_t policies[] = {HBP_OVERLONG_DROP, HBP_OVERLONG_TRUNCATE};
    enum { BINS = 60 };
    hbp__rng rng = hbp__rng_make(15, 0, 0);
    hbp_cost *cost = keep(test_cost(context));
    for (int round = 0, mark = keep_mark(); round < TEST_ROUNDS(24); round++, keep_release(mark)) {
        int64_t length[BINS], count[BINS], at = 0;
        uint32_t values[BINS * 40];
        for (int64_t b = 0, last = 0; b < BINS; b++) {
            length[b] = last += 1 + hbp__rng_below(&rng, 400);
            count[b] = 1 + hbp__rng_below(&rng, 40);
            for (int64_t i = 0; i < count[b]; i++)
                values[at++] = (uint32_t)length[b];
        }
        const int64_t limit = length[1] + hbp__rng_below(&rng, (uint64_t)(length[BINS - 1] - length[1]));
        const int32_t policy = policies[round % 2];
        hbp_lengths *given, *limited, *array, *limited_array;
        hbp_pattern_plan *of_array, *plan;
        hbp_plan *planned;
        hbp_epoch_options o = defaults();
        OK(context, hbp_lengths_create_histogram(context, length, count, BINS, &given));
        OK(context, hbp_lengths_create_u32(context, values, at, NULL, &array));
        OK(context, hbp_lengths_limit(context, keep(given), limit, policy, &limited));
        OK(context, hbp_lengths_limit(context, keep(array), limit, policy, &limited_array));
        OK(context, hbp_plan_patterns(context, keep(limited_array), cost, &o, &of_array));
        o.max_length = limit;
        o.over_long = policy;
        OK(context, hbp_plan_patterns(context, given, cost, &o, &plan));
        o.method = "patterns";
        OK(context, hbp_plan_epoch(context, given, cost, &o, &planned));
        const hbp_plan *listed = expand(context, keep(plan), NULL, 0, plan->steps);
        ck_assert_uint_eq(listed->digest, keep(planned)->digest);
        OK(context, hbp_plan_validate(context, listed, given, cost));
        OK(context, hbp_plan_validate(context, listed, keep(limited), cost));
        if (keep(of_array)->is_bare) { /* dropped samples leave ids of their own */
            const hbp_plan *by_place = expand(context, of_array, NULL, 0, of_array->steps);
            OK(context, hbp_plan_validate(context, by_place, given, cost));
            OK(context, hbp_plan_validate(context, by_place, limited, cost));
        }
        FAILS(context, HBP_E_INVALID, "the plan was made for lengths with digest",
              hbp_plan_validate(context, listed, array, cost));
    }
}
END_TEST

/* More samples than stand for all: packs, time and mixture are those of the usual plan. */
START_TEST_IN_CONTEXT(very_many_samples_are_planned_as_few)
{
    enum { SAMPLES = 3 * HBP__PATTERN_SAMPLES };
    hbp__rng rng = hbp__rng_make(4, 0, 0);
    hbp_cost *cost = keep(test_cost(context));
    hbp_lengths *lengths = draw_lengths(context, &rng, SAMPLES, 40000, 0);
    hbp_pattern_plan *plan;
    hbp_length_index *index;
    hbp_plan *usual;
    OK(context, hbp_plan_patterns(context, lengths, cost, NULL, &plan));
    keep(plan);
    OK(context, hbp_pattern_plan_validate(context, plan, lengths, cost));
    OK(context, hbp_length_index_create(context, lengths, &index));
    const hbp_plan *whole = expand(context, plan, keep(index), 0, plan->steps);
    OK(context, hbp_plan_validate(context, whole, lengths, cost));
    check_summary(context, plan, whole);
    OK(context, hbp_plan_epoch(context, lengths, cost, NULL, &usual));
    ck_assert_double_lt((double)plan->predicted_ns, 1.005 * (double)hbp__plan_ns(keep(usual)));
    const hbp_simulate_options options = {.struct_size = sizeof options, .no_bound = 1};
    hbp_report a = {.struct_size = sizeof a}, b = a;
    OK(context, hbp_pattern_plan_simulate(context, plan, cost, &options, &a));
    OK(context, hbp_simulate(context, usual, cost, &options, &b));
    ck_assert_double_lt(a.mixture_distance, b.mixture_distance + .05);
    ck_assert_double_lt(a.idle, b.idle + .01);
}
END_TEST

/* 10^10 samples, none of which is listed. */
START_TEST_IN_CONTEXT(histograms_of_any_size_are_planned)
{
    enum { BINS = 2000 };
    int64_t length[BINS], count[BINS];
    hbp__rng rng = hbp__rng_make(5, 0, 0);
    for (int64_t i = 0; i < BINS; i++) {
        length[i] = 1 + 20 * i;
        count[i] = 1 + INT64_C(10000000000) / (1 + i) / 8 - hbp__rng_below(&rng, 1000);
        count[i] = count[i] < 1 ? 1 : count[i];
    }
    hbp_lengths *lengths;
    hbp_pattern_plan *plan;
    hbp_cost *cost = keep(test_cost(context));
    OK(context, hbp_lengths_create_histogram(context, length, count, BINS, &lengths));
    keep(lengths);
    ck_assert_int_gt(lengths->count, INT64_C(9000000000));
    OK(context, hbp_plan_patterns(context, lengths, cost, NULL, &plan));
    keep(plan);
    OK(context, hbp_pattern_plan_validate(context, plan, lengths, cost));
    const int64_t last = plan->steps - 1;
    const hbp_plan *step = expand(context, plan, NULL, last, 1);
    OK(context, hbp__plan_check(context, step));
    for (int64_t i = 0; i < step->samples; i++)
        ck_assert_int_eq(step->sample_tokens[i], hbp_lengths_get_length(lengths, step->sample_ids[i]));
    FAILS(context, HBP_E_OVERFLOW, "at most 4294967294 can be listed",
          hbp_plan_epoch(context, lengths, cost, NULL, &(hbp_plan *){NULL}));
    FAILS(context, HBP_E_OVERFLOW, "an index of",
          hbp_length_index_builder_create(context, lengths, &(hbp_length_index_builder *){NULL}));
}
END_TEST

/* Without an index samples are those of the histogram: an array's in the order of its lengths, and no others
 * though the plan is of them. */
START_TEST_IN_CONTEXT(no_index_is_that_of_samples_in_order)
{
    enum { SAMPLES = 900 };
    uint32_t values[SAMPLES];
    for (uint32_t i = 0; i < SAMPLES; i++)
        values[i] = 1 + i * i / 40;
    hbp_lengths *lengths;
    hbp_pattern_plan *plan;
    hbp_length_index *index;
    hbp_cost *cost = keep(test_cost(context));
    OK(context, hbp_lengths_create_u32(context, values, SAMPLES, NULL, &lengths));
    keep(lengths);
    OK(context, hbp_plan_patterns(context, lengths, cost, NULL, &plan));
    keep(plan);
    OK(context, hbp_length_index_create(context, lengths, &index));
    keep(index);
    const hbp_plan *placed = expand(context, plan, NULL, 0, plan->steps),
                   *indexed = expand(context, plan, index, 0, plan->steps);
    ck_assert_mem_eq(placed->sample_ids, indexed->sample_ids, SAMPLES * sizeof *placed->sample_ids);
    ck_assert_mem_eq(placed->sample_tokens, indexed->sample_tokens, SAMPLES * sizeof *placed->sample_tokens);
    int64_t bin[SAMPLES], count[SAMPLES];
    for (int64_t b = 0; b < lengths->bins; b++) {
        bin[b] = lengths->bin_length[b];
        count[b] = lengths->bin_count[b];
    }
    hbp_lengths *histogram;
    OK(context, hbp_lengths_create_histogram(context, bin, count, lengths->bins, &histogram));
    keep(histogram);
    OK(context, hbp_plan_validate(context, placed, histogram, cost));
    FAILS(context, HBP_E_INVALID, "digest", hbp_plan_validate(context, placed, lengths, cost));
    OK(context, hbp_plan_validate(context, indexed, lengths, cost));
    /* A plan of lengths alone is of any order of them. */
    hbp_pattern_plan *of_histogram;
    OK(context, hbp_plan_patterns(context, histogram, cost, NULL, &of_histogram));
    keep(of_histogram);
    OK(context, hbp_pattern_plan_validate(context, of_histogram, lengths, cost));
    OK(context, hbp_pattern_plan_validate(context, plan, histogram, cost));
}
END_TEST

START_TEST_IN_CONTEXT(another_epoch_is_another_draw)
{
    hbp__rng rng = hbp__rng_make(6, 0, 0);
    hbp_cost *cost = keep(test_cost(context));
    hbp_lengths *lengths = draw_lengths(context, &rng, 4000, 30000, 0);
    hbp_epoch_options o = defaults();
    hbp_pattern_plan *first, *second, *drawn;
    OK(context, hbp_plan_patterns(context, lengths, cost, &o, &first));
    keep(first);
    o.seed = 7;
    o.epoch = 8;
    OK(context, hbp_plan_patterns(context, lengths, cost, &o, &second));
    keep(second);
    OK(context, hbp_pattern_plan_redraw(context, first, 7, 8, &drawn));
    keep(drawn);
    ck_assert_int_eq(drawn->steps, first->steps);
    const hbp_plan *a = expand(context, first, NULL, 0, first->steps),
                   *b = expand(context, drawn, NULL, 0, drawn->steps);
    OK(context, hbp_pattern_plan_validate(context, drawn, lengths, cost));
    ck_assert_uint_ne(a->digest, b->digest);
    int64_t equal = 0;
    for (int64_t i = 0; i < a->samples; i++)
        equal += a->sample_ids[i] == b->sample_ids[i];
    ck_assert_int_lt(equal, a->samples / 10);
    uint8_t cursor[HBP_CURSOR_BYTES];
    int64_t step = 0;
    OK(context, hbp_pattern_plan_save_cursor(context, drawn, NULL, drawn->steps - 1, cursor));
    OK(context, hbp_pattern_plan_load_cursor(context, drawn, NULL, cursor, &step));
    ck_assert_int_eq(step, drawn->steps - 1);
    FAILS(context, HBP_E_INVALID, "the cursor is of seed 7, epoch 8",
          hbp_pattern_plan_load_cursor(context, first, NULL, cursor, &step));
}
END_TEST

/* Times that traffic hides, and sets of ranks that do not wait for each other. */
START_TEST_IN_CONTEXT(bending_costs_and_lockstep_sets_are_timed)
{
    hbp__rng rng = hbp__rng_make(7, 0, 0);
    hbp_cost *plain = keep(test_cost(context)), *cost;
    hbp_cost_terms terms = {.struct_size = sizeof terms};
    OK(context, hbp_cost_get_terms(context, plain, &terms));
    for (int k = 0; k < 3; k++) {
        hbp_cost_terms t = terms;
        t.lockstep_ranks = k == 1 ? 8 : k ? 1 : 0;
        t.traffic_ns = k < 2 ? 3e7 : 0;
        t.compute_overlap = .5;
        OK(context, hbp_cost_create_terms(context, &t, &cost));
        keep(cost);
        hbp_lengths *lengths = draw_lengths(context, &rng, 2000, 20000, 0);
        hbp_pattern_plan *plan;
        OK(context, hbp_plan_patterns(context, lengths, cost, NULL, &plan));
        keep(plan);
        OK(context, hbp_pattern_plan_validate(context, plan, lengths, cost));
        const hbp_plan *whole = expand(context, plan, NULL, 0, plan->steps);
        ck_assert_int_eq(hbp__plan_ns(whole), plan->predicted_ns);
        check_report(context, plan, whole, cost);
    }
}
END_TEST

/* The tokens of the fullest step. */
static int64_t fullest(const hbp_plan *whole)
{
    int64_t most = 0;
    for (int64_t s = 0; s < whole->steps; s++)
        most = whole->step_tokens[s] > most ? whole->step_tokens[s] : most;
    return most;
}

/* A limit is held against what packs hold: all tokens are one step, and a limit that units keep to is enough
 * for steps of one unit. */
START_TEST_IN_CONTEXT(steps_keep_to_their_tokens)
{
    hbp__rng rng = hbp__rng_make(14, 0, 0);
    int planned = 0;
    for (int round = 0, mark = keep_mark(); round < TEST_ROUNDS(60); round++, keep_release(mark)) {
        hbp_cost *cost = keep(test_cost_ranks(context, 1 << hbp__rng_below(&rng, 5)));
        hbp_lengths *lengths =
            draw_lengths(context, &rng, 1 + hbp__rng_below(&rng, 1000), 1 + hbp__rng_below(&rng, 20000), 0);
        hbp_epoch_options o = defaults();
        hbp_pattern_plan *plan;
        o.micro_batch_multiple = (int32_t)hbp__rng_below(&rng, 4);
        o.tokens_per_step = lengths->tokens;
        OK(context, hbp_plan_patterns(context, lengths, cost, &o, &plan));
        ck_assert_int_eq(keep(plan)->steps, 1);
        /* As one unit of these groups has. */
        hbp__pattern_sizes sizes;
        OK(context, hbp__pattern_sizes_open(context, plan, &sizes));
        o.tokens_per_step = 0;
        for (int64_t i = 0; i < sizes.ranges; i++)
            o.tokens_per_step = hbp__max_i64(o.tokens_per_step, sizes.range[i].tokens);
        hbp__scratch_release(context, 0);
        OK(context, hbp_plan_patterns(context, lengths, cost, &o, &plan));
        ck_assert_int_le(fullest(expand(context, keep(plan), NULL, 0, plan->steps)), o.tokens_per_step);
        o.tokens_per_step = 1 + hbp__rng_below(&rng, (uint64_t)(2 * lengths->tokens / plan->steps));
        if (o.tokens_per_step < lengths->bin_length[lengths->bins - 1])
            continue;
        hbp_status status = hbp_plan_patterns(context, lengths, cost, &o, &plan);
        if (status == HBP_E_INFEASIBLE)
            continue;
        OK(context, status);
        ck_assert_int_le(fullest(expand(context, keep(plan), NULL, 0, plan->steps)), o.tokens_per_step);
        planned++;
    }
    ck_assert_int_gt(planned, TEST_ROUNDS(60) / 4);
}
END_TEST

START_TEST_IN_CONTEXT(what_patterns_do_not_keep_is_refused)
{
    hbp__rng rng = hbp__rng_make(8, 0, 0);
    hbp_cost *cost = keep(test_cost(context));
    hbp_lengths *lengths = draw_lengths(context, &rng, 300, 3000, 0), *linked, *seeing;
    hbp_pattern_plan *plan = NULL;
    hbp_epoch_options o;
#define REFUSED(status, text, set)                                                                           \
    do {                                                                                                     \
        o = defaults();                                                                                      \
        set;                                                                                                 \
        FAILS(context, status, text, hbp_plan_patterns(context, lengths, cost, &o, &plan));                  \
        ck_assert_ptr_null(plan);                                                                            \
    } while (0)
    REFUSED(HBP_E_INVALID, "`samples_per_step` is for methods all but patterns", o.samples_per_step = 4);
    REFUSED(HBP_E_INVALID, "`drop_last` is for methods", o.drop_last = 1);
    REFUSED(HBP_E_INVALID, "`mixture_slack` is 5, which is for composition auto", o.mixture_slack = 5);
    REFUSED(HBP_E_INVALID, "`mixture_slack` is -1, which", o.mixture_slack = -1);
    REFUSED(HBP_E_INVALID, "composition hierarchy is for", o.composition = HBP_COMPOSITION_HIERARCHY);
    REFUSED(HBP_E_INVALID, "`window_samples` is for", o.window_samples = 100);
    REFUSED(HBP_E_INVALID, "`curriculum_steps` is for", o.curriculum_steps = 1);
    REFUSED(HBP_E_INVALID, "`equal_samples` is for", o.equal_samples = 1);
    REFUSED(HBP_E_INVALID, "method hbp lists its samples", o.method = "hbp");
    REFUSED(HBP_E_INFEASIBLE, "tokens", o.tokens_per_step = 3000);
#undef REFUSED
    uint32_t two[] = {5, 6}, units[] = {1, 0};
    int64_t links[] = {1, 1};
    hbp_lengths_options with = {.struct_size = sizeof with, .links = links};
    OK(context, hbp_lengths_create_u32(context, two, 2, &with, &linked));
    FAILS(context, HBP_E_INVALID, "the lengths have links",
          hbp_plan_patterns(context, keep(linked), cost, NULL, &plan));
    with = (hbp_lengths_options){.struct_size = sizeof with, .vision = units};
    OK(context, hbp_lengths_create_u32(context, two, 2, &with, &seeing));
    FAILS(context, HBP_E_INVALID, "the lengths have a second size",
          hbp_plan_patterns(context, keep(seeing), cost, NULL, &plan));
    OK(context, hbp_plan_patterns(context, lengths, cost, NULL, &plan));
    keep(plan);
    hbp_plan *listed;
    FAILS(context, HBP_E_INVALID, "; the plan has",
          hbp_pattern_plan_expand(context, plan, NULL, -1, 1, &listed));
    FAILS(context, HBP_E_INVALID, "; the plan has",
          hbp_pattern_plan_expand(context, plan, NULL, 0, 0, &listed));
    FAILS(context, HBP_E_INVALID, "; the plan has",
          hbp_pattern_plan_expand(context, plan, NULL, plan->steps, 1, &listed));
    FAILS(context, HBP_E_INVALID, "; the plan has",
          hbp_pattern_plan_expand(context, plan, NULL, 0, INT64_MAX, &listed));
    hbp_length_index *other;
    OK(context, hbp_length_index_create(context, draw_lengths(context, &rng, 300, 3000, 0), &other));
    FAILS(context, HBP_E_INVALID, "the index is of other lengths",
          hbp_pattern_plan_expand(context, plan, keep(other), 0, 1, &listed));
}
END_TEST

/* Plans, lists and simulates; for sweeps. */
static hbp_status plan_all(hbp_context *context, void *user)
{
    const planned_inputs *in = user;
    hbp_pattern_plan *plan = NULL, *drawn = NULL;
    hbp_length_index *index = NULL;
    hbp_plan *listed = NULL;
    hbp_report report = {.struct_size = sizeof report};
    hbp_status status = hbp_plan_patterns(context, in->lengths, in->cost, &in->options, &plan);
    if (status >= 0)
        status = hbp_length_index_create(context, in->lengths, &index);
    if (status >= 0)
        status = hbp_pattern_plan_redraw(context, plan, 1, 2, &drawn);
    if (status >= 0)
        status = hbp_pattern_plan_expand(context, plan, index, 0, plan->steps, &listed);
    if (status >= 0)
        status = hbp_pattern_plan_validate(context, plan, in->lengths, in->cost);
    if (status >= 0)
        status = hbp_pattern_plan_simulate(context, plan, in->cost, NULL, &report);
    hbp_plan_free(listed);
    hbp_length_index_free(index);
    hbp_pattern_plan_free(drawn);
    hbp_pattern_plan_free(plan);
    return status;
}

START_TEST(failures_leave_nothing_behind)
{
    hbp_context *context = test_context();
    uint32_t values[120];
    hbp__rng rng = hbp__rng_make(10, 0, 0);
    draw_values(&rng, values, 120, 20000);
    planned_inputs in = {.cost = test_cost(context), .options = defaults()};
    OK(context, hbp_lengths_create_u32(context, values, 120, NULL, &in.lengths));
    failing_sweep(plan_all, &in);
    ck_assert_int_gt(cancel_sweep(plan_all, &in), 4);
    hbp_lengths_free(in.lengths);
    hbp_cost_free(in.cost);
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("patterns", listed_they_are_plans_like_others, limits_are_those_of_the_listed_plan,
          limited_histograms_are_known_when_listed, very_many_samples_are_planned_as_few,
          histograms_of_any_size_are_planned, no_index_is_that_of_samples_in_order,
          another_epoch_is_another_draw, bending_costs_and_lockstep_sets_are_timed,
          steps_keep_to_their_tokens, what_patterns_do_not_keep_is_refused, failures_leave_nothing_behind)
