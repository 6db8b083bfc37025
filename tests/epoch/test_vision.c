#include "epoch/epoch.h"

#include "base/checked.h"
#include "cost/cost.h"
#include "failing.h"
#include "keep.h"
#include "planned.h"

/* `count` samples: text, images, films; `longest` tokens and 12 vision units at the most. */
static hbp_lengths *draw_lengths(hbp_context *context, uint64_t seed, int64_t count, uint32_t longest,
                                 int ties)
{
    hbp__rng rng = hbp__rng_make(seed, 0, 0);
    uint64_t rows = (uint64_t)count;
    uint32_t *length = malloc(rows * sizeof *length), *vision = malloc(rows * sizeof *vision);
    int32_t *kind = malloc(rows * sizeof *kind);
    int64_t *tie = malloc(rows * sizeof *tie);
    for (int64_t i = 0; i < count; i++) {
        kind[i] = (int32_t)hbp__rng_below(&rng, 3);
        vision[i] = kind[i] ? 1 + hbp__rng_below(&rng, 6 * (uint64_t)kind[i]) : 0;
        length[i] = 1 + hbp__rng_below(&rng, longest);
        tie[i] = i % 20 < 2 ? i / 20 : -1;
    }
    length[0] = longest;
    vision[1] = 12;
    kind[1] = 2;
    hbp_lengths_options options = {
        .struct_size = sizeof options, .vision = vision, .modalities = kind, .ties = ties ? tie : NULL};
    hbp_lengths *lengths = NULL;
    OK(context, hbp_lengths_create_u32(context, length, count, &options, &lengths));
    free(tie);
    free(kind);
    free(vision);
    free(length);
    return lengths;
}

/* test_cost_ranks with vision units of so many ns and bytes. */
static hbp_cost *vision_cost(hbp_context *context, int32_t ranks, double ns, double bytes)
{
    hbp_cost *plain = test_cost_ranks(context, ranks), *cost = NULL;
    hbp_cost_terms terms = {.struct_size = sizeof terms};
    OK(context, hbp_cost_get_terms(context, plain, &terms));
    terms.ns_per_vision = ns;
    terms.recompute_vision = 0.25;
    terms.vision_bytes = bytes;
    OK(context, hbp_cost_create_terms(context, &terms, &cost));
    hbp_cost_free(plain);
    return cost;
}

START_TEST_IN_CONTEXT(epochs_keep_every_promise)
{
    hbp_cost *cost = keep(vision_cost(context, 16, 4e6, 1e7));
    for (uint64_t seed = 0; seed < 16; seed++) {
        hbp_lengths *lengths = draw_lengths(context, seed, 40 + 150 * (int64_t)seed, 2000, seed % 3 == 1);
        hbp_epoch_options options = {.struct_size = sizeof options,
                                     .max_length = seed % 2 ? 4096 : 0,
                                     .max_vision = 24 + (int64_t)seed % 5,
                                     .tokens_per_step = 100000,
                                     .composition = HBP_COMPOSITION_HIERARCHY,
                                     .modality_order = seed % 4 > 1,
                                     .micro_batch_multiple = 1 + (int32_t)seed % 3,
                                     .max_samples = seed % 5 == 4 ? 6 : 0,
                                     .sequence_multiple = seed % 6 == 5 ? 8 : 0,
                                     .pack_multiple = seed % 6 == 5 ? 128 : 0,
                                     .seed = seed};
        hbp_plan *plan = NULL, *again = NULL;
        OK(context, hbp_plan_epoch(context, lengths, cost, &options, &plan));
        planned_check(context, plan, lengths);
        OK(context, hbp_plan_validate(context, plan, lengths, cost));
        ck_assert_int_eq(plan->samples, lengths->count);
        ck_assert_int_eq(plan->dropped, 0);
        ck_assert_int_eq(plan->composition, HBP_COMPOSITION_HIERARCHY);
        ck_assert_int_le(plan->bound_ns, hbp__plan_ns(plan));
        ck_assert_int_gt(plan->bound_ns, 0);
        ck_assert_int_eq(plan->tokens_per_step, options.tokens_per_step);
        for (int64_t s = 0; s < plan->steps; s++)
            ck_assert_int_le(plan->step_tokens[s], options.tokens_per_step);
        ck_assert_int_eq(plan->micro_batch_modalities != NULL, options.modality_order != 0);
        for (int64_t p = 0; p < plan->packs; p++) {
            ck_assert_int_eq(plan->pack_sp[p], plan->pack_sp[0]);
            ck_assert_int_eq(plan->pack_capacity[p], options.max_length ? 4096 : seed % 3 == 1 ? 4096 : 2048);
            ck_assert_int_le(plan->pack_vision[p], options.max_vision);
            ck_assert_int_eq(plan->pack_vision_capacity[p], options.max_vision);
            ck_assert_int_le(plan->pack_padded_tokens[p], plan->pack_capacity[p]);
            ck_assert(!options.max_samples || plan->pack_offsets[p + 1] - plan->pack_offsets[p] <= 6);
        }
        OK(context, hbp_plan_epoch(context, lengths, cost, &options, &again));
        ck_assert_uint_eq(hbp_plan_get_digest(plan), hbp_plan_get_digest(again));
        hbp_plan_free(again);
        options.epoch = 1;
        OK(context, hbp_plan_epoch(context, lengths, cost, &options, &again));
        ck_assert_uint_ne(hbp_plan_get_digest(plan), hbp_plan_get_digest(again));
        hbp_plan_free(again);
        hbp_plan_free(plan);
        hbp_lengths_free(lengths);
    }
}
END_TEST

START_TEST_IN_CONTEXT(over_long_samples_go_by_the_policy)
{
    hbp_cost *cost = keep(vision_cost(context, 16, 4e6, 1e7));
    hbp_lengths *lengths = keep(draw_lengths(context, 3, 1000, 6000, 0));
    int64_t over[2] = {0, 0};
    for (int64_t i = 0; i < 1000; i++) {
        over[0] += hbp__lengths_get(lengths, i) > 4096;
        over[1] += hbp__lengths_get(lengths, i) <= 4096 && hbp__lengths_vision(lengths, i) > 8;
    }
    hbp_epoch_options options = {.struct_size = sizeof options, .max_length = 4096, .max_vision = 8};
    hbp_plan *plan = NULL;
    FAILS(context, HBP_E_INVALID, "4096", hbp_plan_epoch(context, lengths, cost, &options, &plan));
    options.over_long = HBP_OVERLONG_TRUNCATE;
    FAILS(context, HBP_E_INVALID, "vision units", hbp_plan_epoch(context, lengths, cost, &options, &plan));
    options.over_long = HBP_OVERLONG_DROP;
    MAKES(context, plan, hbp_plan_epoch(context, lengths, cost, &options, &plan));
    OK(context, hbp_plan_validate(context, plan, lengths, cost));
    int64_t dropped[2] = {0, 0};
    for (int64_t i = 0; i < plan->dropped; i++) {
        int by_vision = plan->dropped_reasons[i] == HBP_DROPPED_OVERVISION;
        ck_assert(by_vision || plan->dropped_reasons[i] == HBP_DROPPED_OVERLONG);
        dropped[by_vision]++;
    }
    ck_assert_int_eq(dropped[0], over[0]);
    ck_assert_int_eq(dropped[1], over[1]);
    ck_assert_int_eq(plan->samples, 1000 - over[0] - over[1]);
    options.over_long = HBP_OVERLONG_SPLIT;
    options.max_vision = 12;
    MAKES(context, plan, hbp_plan_epoch(context, lengths, cost, &options, &plan));
    OK(context, hbp_plan_validate(context, plan, lengths, cost));
    ck_assert_int_eq(plan->samples, 1000 + over[0]);
}
END_TEST

START_TEST_IN_CONTEXT(what_does_not_go_together_is_refused)
{
    hbp_cost *cost = keep(vision_cost(context, 16, 4e6, 1e7));
    hbp_lengths *lengths = keep(draw_lengths(context, 3, 100, 2000, 0));
    hbp_lengths *plain = keep(test_long_tail(context, 1, 100, 2000));
    hbp_groups *two = NULL;
    MAKES(context, two,
          hbp_groups_create(context, cost, 2, (int64_t[]){1024, 4096}, (int32_t[]){1, 1}, NULL, 0, &two));
#define REFUSES(text, ...)                                                                                   \
    do {                                                                                                     \
        hbp_epoch_options options = {.struct_size = sizeof options, .max_vision = 18, __VA_ARGS__};          \
        hbp_plan *plan = NULL;                                                                               \
        FAILS(context, HBP_E_INVALID, text, hbp_plan_epoch(context, lengths, cost, &options, &plan));        \
        ck_assert_ptr_null(plan);                                                                            \
    } while (0)
    REFUSES("mode paper has a hierarchy", .mode = HBP_EPOCH_PAPER);
    REFUSES("3 groups; with max_vision 18 an epoch has one", .max_groups = 3);
    REFUSES("2 groups; with max_vision 18 an epoch has one", .groups = two);
    REFUSES("curriculum_steps asks for steps planned one by one; modality_order has packs of a group",
            .curriculum_steps = 5, .modality_order = 1);
    REFUSES("samples_per_step asks for steps planned one by one; modality_order", .samples_per_step = 7,
            .modality_order = 1);
    REFUSES("padding by a pack's degree asks for steps planned one by one; composition hierarchy",
            .sequence_multiple_per_sp = 7, .composition = HBP_COMPOSITION_HIERARCHY);
    REFUSES("composition stratified, drop_last and vision units with curriculum_steps", .drop_last = 1,
            .curriculum_steps = 2, .composition = HBP_COMPOSITION_STRATIFIED);
    REFUSES("max_samples is -1", .max_samples = -1);
    hbp_epoch_options options = {.struct_size = sizeof options, .max_vision = -2};
    hbp_plan *plan = NULL;
    FAILS(context, HBP_E_INVALID, "max_vision is -2",
          hbp_plan_epoch(context, lengths, cost, &options, &plan));
    options.max_vision = 18;
    FAILS(context, HBP_E_INVALID, "max_vision is 18, but the lengths have no vision units",
          hbp_plan_epoch(context, plain, cost, &options, &plan));
    options = (hbp_epoch_options){
        .struct_size = sizeof options, .composition = HBP_COMPOSITION_STRATIFIED, .modality_order = 1};
    FAILS(context, HBP_E_INVALID, "modality_order", hbp_plan_epoch(context, plain, cost, &options, &plan));
}
END_TEST

static hbp_plan *plan_with(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                           const hbp_epoch_options *options)
{
    hbp_plan *plan = NULL;
    OK(context, hbp_plan_epoch(context, lengths, cost, options, &plan));
    OK(context, hbp_plan_validate(context, plan, lengths, cost));
    return plan;
}

/* Whether some degree, with some layers recomputed, holds a pack with these units: by trying all. */
static int fits(const hbp_cost *cost, int32_t sp, int64_t tokens, int64_t vision, int32_t *recompute)
{
    for (*recompute = 0; *recompute <= 8; ++*recompute)
        if (hbp_cost_predict_vision_pack_bytes(cost, sp, *recompute, tokens, vision) <=
            cost->terms.limit_bytes)
            return 1;
    return 0;
}

/* The degree leaves room for max_vision units: the fewest layers recomputed that fit, a larger degree where
 * there are none, and a message where no degree does. */
START_TEST_IN_CONTEXT(there_is_room_for_vision_units)
{
    hbp_lengths *lengths = keep(draw_lengths(context, 5, 400, 8000, 0));
    int degrees[9] = {0}, infeasible = 0, recomputed = 0;
    for (int i = 0; i <= 60; i++) {
        hbp_cost *cost = vision_cost(context, 16, 1e6, 4e8 * i);
        hbp_epoch_options options = {.struct_size = sizeof options,
                                     .composition = HBP_COMPOSITION_HIERARCHY,
                                     .max_length = 8192,
                                     .max_vision = 60};
        int32_t recompute = 0;
        if (!fits(cost, 8, 8192, 60, &recompute)) {
            hbp_plan *plan = NULL;
            FAILS(context, HBP_E_INFEASIBLE, "a pack of 8192 tokens and 60 vision units",
                  hbp_plan_epoch(context, lengths, cost, &options, &plan));
            ck_assert_ptr_null(plan);
            infeasible++;
        } else {
            hbp_plan *plan = plan_with(context, lengths, cost, &options);
            ck_assert(fits(cost, plan->pack_sp[0], 8192, 60, &recompute));
            ck_assert_int_eq(plan->pack_recompute[0], recompute);
            degrees[plan->pack_sp[0]]++;
            recomputed += recompute > 0;
            hbp_plan_free(plan);
        }
        hbp_cost_free(cost);
    }
    ck_assert_int_gt(degrees[1], 0);
    ck_assert_int_gt(degrees[2] + degrees[4], 0);
    ck_assert_int_gt(degrees[8], 0);
    ck_assert_int_gt(infeasible, 0);
    ck_assert_int_gt(recomputed, 0);
}
END_TEST

/* The degree is the one with the least time of full packs that hold as many units as the data have for their
 * tokens, or as may be: by trying all. */
START_TEST_IN_CONTEXT(units_count_in_the_time_of_a_degree)
{
    static const double unit_ns[] = {0, 1, 3e5, 1e6, 3e6, 1e7};
    hbp_lengths *lengths = keep(draw_lengths(context, 5, 400, 8000, 0));
    double squares = lengths->sum_squares / (double)lengths->tokens;
    double units = 8192. * (double)lengths->vision_sum / (double)lengths->tokens;
    int64_t degrees[9] = {0}, moved = 0;
    for (int64_t most = 12; most <= 120; most *= 3)
        for (int i = 0; i < 30; i++) {
            hbp_cost *cost = vision_cost(context, 16, unit_ns[i / 5], (1 + i % 5) * 5e9 / (double)most);
            hbp_epoch_options options = {.struct_size = sizeof options,
                                         .composition = HBP_COMPOSITION_HIERARCHY,
                                         .max_length = 8192,
                                         .max_vision = most};
            int64_t vision = hbp__round_i64(units < (double)most ? units : (double)most);
            int64_t best = INT64_MAX, free_best = INT64_MAX;
            int32_t sp = 0, free_sp = 0, recompute;
            for (int32_t degree = 1; degree <= 8; degree *= 2) {
                if (!fits(cost, degree, 8192, most, &recompute))
                    continue;
                int64_t ns = degree * hbp_cost_predict_vision_pack_ns(cost, degree, recompute, 8192,
                                                                      squares * 8192, vision);
                int64_t free_ns = degree * hbp_cost_predict_vision_pack_ns(cost, degree, recompute, 8192,
                                                                           squares * 8192, 0);
                sp = ns < best ? degree : sp;
                best = hbp__min_i64(ns, best);
                free_sp = free_ns < free_best ? degree : free_sp;
                free_best = hbp__min_i64(free_ns, free_best);
            }
            hbp_plan *plan = plan_with(context, lengths, cost, &options);
            ck_assert_int_eq(plan->pack_sp[0], sp);
            degrees[sp]++;
            moved += sp != free_sp;
            hbp_plan_free(plan);
            hbp_cost_free(cost);
        }
    ck_assert_int_gt(degrees[1], 0);
    ck_assert_int_gt(degrees[2], 0);
    ck_assert_int_gt(moved, 0);
}
END_TEST

static hbp_cost *limited(hbp_context *context, hbp_cost *cost, int64_t limit_bytes)
{
    hbp_cost_terms terms = {.struct_size = sizeof terms};
    hbp_cost *out = NULL;
    OK(context, hbp_cost_get_terms(context, cost, &terms));
    terms.limit_bytes = limit_bytes;
    OK(context, hbp_cost_create_terms(context, &terms, &out));
    hbp_cost_free(cost);
    return out;
}

/* A pack that takes the last byte fits where units take none; where they take some, a byte too few is too
 * few. */
START_TEST_IN_CONTEXT(the_last_byte_counts)
{
    hbp_lengths *lengths = keep(draw_lengths(context, 5, 100, 5000, 0));
    for (int64_t most = 12; most <= 60; most++) {
        hbp_epoch_options options = {.struct_size = sizeof options,
                                     .composition = HBP_COMPOSITION_HIERARCHY,
                                     .max_length = 6000,
                                     .max_vision = most};
        for (int units = 0; units < 2; units++) {
            hbp_cost *cost = vision_cost(context, 1, 1e6, units ? 1e8 + .5 : 0);
            int64_t bytes = hbp_cost_predict_vision_pack_bytes(cost, 1, 2, 6000, most);
            int32_t recompute;
            cost = limited(context, cost, bytes - units);
            ck_assert(fits(cost, 1, 6000, most, &recompute));
            ck_assert_int_eq(recompute, 2 + units);
            hbp_plan *plan = plan_with(context, lengths, cost, &options);
            ck_assert_int_eq(plan->pack_recompute[0], recompute);
            hbp_plan_free(plan);
            hbp_cost_free(cost);
        }
    }
}
END_TEST

/* Without max_length packs are a power of two; of the longest sample's length where that alone fits. */
START_TEST_IN_CONTEXT(packs_are_as_long_as_fits)
{
    hbp_lengths *lengths = keep(draw_lengths(context, 5, 400, 4200, 0));
    hbp_epoch_options options = {
        .struct_size = sizeof options, .composition = HBP_COMPOSITION_HIERARCHY, .max_vision = 60};
    hbp_cost *cost = keep(vision_cost(context, 1, 1e6, 1e8));
    hbp_plan *plan = keep(plan_with(context, lengths, cost, &options));
    ck_assert_int_eq(plan->pack_capacity[0], 8192);
    cost = keep(vision_cost(context, 1, 1e6, 4.3e8));
    int32_t recompute;
    ck_assert(!fits(cost, 1, 8192, 60, &recompute) && fits(cost, 1, 4224, 60, &recompute));
    options.pack_multiple = 128;
    plan = keep(plan_with(context, lengths, cost, &options));
    ck_assert_int_eq(plan->pack_capacity[0], 4224);
    options.max_length = 8192;
    FAILS(context, HBP_E_INFEASIBLE, "a pack of 8192 tokens and 60 vision units",
          hbp_plan_epoch(context, lengths, cost, &options, &plan));
    /* A group that is given is used. */
    hbp_groups *given = NULL;
    cost = keep(vision_cost(context, 8, 1e6, 1e8));
    MAKES(context, given,
          hbp_groups_create(context, cost, 1, (int64_t[]){6400}, (int32_t[]){4}, NULL, 0, &given));
    options = (hbp_epoch_options){.struct_size = sizeof options, .max_vision = 60, .groups = given};
    plan = keep(plan_with(context, lengths, cost, &options));
    ck_assert_int_eq(plan->pack_capacity[0], 6400);
    ck_assert_int_eq(plan->pack_sp[0], 4);
}
END_TEST

/* With an order of modalities, windows and groups stay as they are, and there are no more dummies than the
 * last micro-batches need. */
START_TEST_IN_CONTEXT(an_order_of_modalities_costs_few_dummies)
{
    hbp_cost *cost = keep(vision_cost(context, 16, 0, 0));
    hbp_lengths *lengths = keep(draw_lengths(context, 2, 6000, 1500, 0));
    for (int way = 0; way < 4; way++) {
        hbp_epoch_options options = {.struct_size = sizeof options,
                                     .mode = way == 2 ? HBP_EPOCH_PAPER : HBP_EPOCH_DEFAULT,
                                     .max_length = 4096,
                                     .max_vision = way == 0 ? 30 : 0,
                                     .window_samples = way == 3 ? 3000 : 0,
                                     .modality_order = 1};
        hbp_plan *plan = plan_with(context, lengths, cost, &options);
        int64_t dummies = 0;
        for (int64_t p = 0; p < plan->packs; p++)
            dummies += plan->pack_offsets[p] == plan->pack_offsets[p + 1];
        ck_assert_int_eq(plan->samples, 6000);
        /* Measured: 5, 9, 8 of about 1,100 packs; 73 in two windows of two groups. */
        ck_assert_int_le(dummies * (way == 3 ? 15 : 100), plan->packs);
        hbp_plan_free(plan);
    }
}
END_TEST

/* Every contract, composition and promise, with packs limited by number and by memory: caps are kept, what a
 * step holds is what was asked for, and the bound is below. */
START_TEST_IN_CONTEXT(steps_are_planned_one_by_one)
{
    hbp_cost *cost = keep(vision_cost(context, 8, 4e6, 4e7));
    enum { COUNT = 96 };
    const int64_t count = COUNT;
    int64_t offsets[5], ids[COUNT];
    for (int64_t i = 0; i <= 4; i++)
        offsets[i] = 24 * i;
    for (int64_t i = 0; i < count; i++)
        ids[i] = (i * 7) % count;
    const hbp_epoch_options asked[] = {
        {.samples_per_step = 24},
        {.samples_per_step = 24, .composition = HBP_COMPOSITION_STRATIFIED},
        {.batches = 4, .batch_offsets = offsets, .batch_samples = ids},
        {.tokens_per_step = 60000, .composition = HBP_COMPOSITION_RANDOM},
        {.tokens_per_step = 60000, .composition = HBP_COMPOSITION_STRATIFIED},
        {.tokens_per_step = 60000},
        {.tokens_per_step = 90000, .micro_batches_per_step = 3},
        {.samples_per_step = 24, .equal_samples = 1},
        {.samples_per_step = 30, .curriculum_steps = 2},
        {.tokens_per_step = 60000, .curriculum_steps = 2},
        {.window_samples = 48, .tokens_per_step = 60000},
        {.tokens_per_step = 60000, .sequence_multiple_per_sp = 8, .pack_multiple_per_sp = 32},
        {.tokens_per_step = 60000, .drop_last = 1, .composition = HBP_COMPOSITION_RANDOM},
        {.samples_per_step = 24, .max_samples = 4, .tokens_per_rank = 4096, .threads = 2},
        {.max_samples = 9}};
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        hbp_lengths *lengths = draw_lengths(context, 11 + i, count, 2500, i % 3 == 1 && !asked[i].batches);
        hbp_epoch_options o = asked[i];
        o.struct_size = sizeof o;
        o.max_vision = i % 2 ? 40 : 0;
        hbp_plan *plan = plan_with(context, lengths, cost, &o), *again = NULL;
        hbp_report report = {.struct_size = sizeof report};
        planned_check(context, plan, lengths);
        OK(context, hbp_simulate(context, plan, cost, NULL, &report));
        ck_assert_int_eq(report.epoch_ns, hbp__plan_ns(plan));
        ck_assert_int_eq(plan->samples + plan->dropped, count);
        ck_assert(o.drop_last || !plan->dropped);
        ck_assert_int_le(plan->bound_ns, hbp__plan_ns(plan));
        ck_assert_int_gt(o.drop_last || o.window_samples || plan->bound_ns, 0);
        for (int64_t s = 0; s < plan->steps; s++) {
            ck_assert(!o.tokens_per_step || plan->step_tokens[s] <= o.tokens_per_step);
            ck_assert(!o.samples_per_step || plan->step_samples[s] <= o.samples_per_step + 1);
            ck_assert(!o.batches || plan->step_samples[s] == 24);
            ck_assert(!o.micro_batches_per_step ||
                      plan->step_offsets[s + 1] - plan->step_offsets[s] == o.micro_batches_per_step);
        }
        for (int64_t p = 0; p < plan->packs; p++) {
            ck_assert(!o.max_vision || plan->pack_vision[p] <= o.max_vision);
            ck_assert_int_le(plan->pack_vision[p], plan->pack_vision_capacity[p]);
            ck_assert_int_le(plan->pack_bytes[p], cost->terms.limit_bytes);
            ck_assert(!o.max_samples || plan->pack_offsets[p + 1] - plan->pack_offsets[p] <= o.max_samples);
        }
        o.threads = 3;
        OK(context, hbp_plan_epoch(context, lengths, cost, &o, &again));
        ck_assert_uint_eq(hbp_plan_get_digest(plan), hbp_plan_get_digest(again));
        hbp_plan_free(again);
        hbp_plan_free(plan);
        hbp_lengths_free(lengths);
    }
}
END_TEST

/* What a step of drawn samples holds does not depend on their vision units. */
START_TEST_IN_CONTEXT(a_shuffled_sampler_draws_the_same_steps)
{
    hbp_cost *charged = keep(vision_cost(context, 8, 4e6, 4e7)), *plain = keep(vision_cost(context, 8, 0, 0));
    hbp_lengths *lengths = keep(draw_lengths(context, 5, 200, 2500, 1));
    hbp_epoch_options o = {.struct_size = sizeof o, .samples_per_step = 20, .seed = 3};
    hbp_plan *with = keep(plan_with(context, lengths, charged, &o));
    hbp_plan *without = keep(plan_with(context, lengths, plain, &o));
    ck_assert_int_eq(with->steps, without->steps);
    for (int64_t s = 0; s < with->steps; s++) {
        ck_assert_int_eq(with->step_samples[s], without->step_samples[s]);
        ck_assert_int_eq(with->step_tokens[s], without->step_tokens[s]);
    }
}
END_TEST

/* What auto takes is never slower than the packs of one group, which composition hierarchy asks for by name.
 */
START_TEST_IN_CONTEXT(auto_takes_the_faster_of_both)
{
    int64_t faster = 0;
    for (uint64_t seed = 0; seed < 8; seed++) {
        hbp_cost *cost = vision_cost(context, 8, (double)(seed % 3) * 4e6, (double)(seed % 2) * 5e7);
        hbp_lengths *lengths = draw_lengths(context, seed, 60 + 10 * (int64_t)seed, 3000, seed % 4 == 1);
        hbp_epoch_options o = {.struct_size = sizeof o, .max_vision = 26, .seed = seed};
        o.composition = HBP_COMPOSITION_HIERARCHY;
        o.tokens_per_step = seed % 2 ? 80000 : 0;
        hbp_plan *group = plan_with(context, lengths, cost, &o);
        o.composition = seed % 5 ? HBP_COMPOSITION_AUTO : HBP_COMPOSITION_STRATIFIED;
        hbp_plan *best = plan_with(context, lengths, cost, &o);
        ck_assert_int_le(hbp__plan_ns(best), hbp__plan_ns(group));
        ck_assert_int_le(best->bound_ns, hbp__plan_ns(best));
        ck_assert_int_gt(best->bound_ns, 0);
        ck_assert_int_ne(best->composition, HBP_COMPOSITION_HIERARCHY);
        faster += hbp__plan_ns(best) < hbp__plan_ns(group);
        hbp_plan_free(best);
        hbp_plan_free(group);
        hbp_lengths_free(lengths);
        hbp_cost_free(cost);
    }
    ck_assert_int_gt(faster, 3);
}
END_TEST

/* 70,706 samples of four public sets (OmniBal's length files), 8 ranks. Bounds: the published fill needs
 * 15,523 and 42,315 packs; the published ratios are .000115 and .07005 at the first pair of budgets. */
START_TEST_IN_CONTEXT(public_data_are_even_in_both_sizes)
{
    FILE *file = fopen(HBP_DATA_DIR "/vlm_tokens.npy", "rb");
    if (!file) {
        fprintf(stderr, "skipped: no %s\n", HBP_DATA_DIR "/vlm_tokens.npy");
        return;
    }
    fclose(file);
    hbp_cost *cost = keep(vision_cost(context, 8, 3e6, 1e6));
    hbp_lengths_read_options read = {.struct_size = sizeof read,
                                     .vision_path = HBP_DATA_DIR "/vlm_images.npy"};
    hbp_lengths *lengths = NULL;
    MAKES(context, lengths, hbp_lengths_read(context, HBP_DATA_DIR "/vlm_tokens.npy", &read, &lengths));
    const int64_t max_vision[] = {18, 9}, max_tokens[] = {6016, 4096}, most[] = {15522, 42314};
    for (int i = 0; i < 2; i++) {
        hbp_epoch_options options = {.struct_size = sizeof options,
                                     .composition = HBP_COMPOSITION_HIERARCHY,
                                     .max_length = max_tokens[i],
                                     .max_vision = max_vision[i],
                                     .tokens_per_step = 16 * 8 * max_tokens[i]};
        hbp_plan *plan = plan_with(context, lengths, cost, &options);
        hbp_report report = {.struct_size = sizeof report};
        OK(context, hbp_simulate(context, plan, cost, NULL, &report));
        ck_assert_double_le(report.dist_vision, 0.001);
        ck_assert_double_le(report.dist_tokens, 0.001);
        int64_t packs = 0, waiting = 0, whole = 0;
        for (int64_t b = 0; b < plan->micro_batches; b++) {
            int64_t longest = 0, first = plan->micro_batch_offsets[b], end = plan->micro_batch_offsets[b + 1];
            for (int64_t p = first; p < end; p++) {
                packs += plan->pack_offsets[p] < plan->pack_offsets[p + 1];
                longest = longest > plan->pack_tokens[p] ? longest : plan->pack_tokens[p];
            }
            for (int64_t p = first; p < end; p++)
                waiting += longest - plan->pack_tokens[p];
            whole += longest * (end - first);
        }
        ck_assert_int_le(packs, most[i]);
        ck_assert_int_eq(plan->samples, 70706);
        ck_assert_double_le((double)waiting / (double)whole, 0.01); /* OmniBal's PadRatio */
        hbp_plan_free(plan);
    }
}
END_TEST

START_TEST_IN_CONTEXT(nothing_is_left_behind)
{
    planned_inputs in = {
        keep(draw_lengths(context, 1, 60, 2000, 0)), keep(vision_cost(context, 16, 4e6, 1e7)), {0}};
    in.options = (hbp_epoch_options){.struct_size = sizeof in.options, .max_vision = 24, .modality_order = 1};
    failing_sweep(planned_once, &in);
    ck_assert_int_gt(cancel_sweep(planned_once, &in), 3);
}
END_TEST

TEST_MAIN("vision", epochs_keep_every_promise, over_long_samples_go_by_the_policy,
          what_does_not_go_together_is_refused, there_is_room_for_vision_units,
          units_count_in_the_time_of_a_degree, the_last_byte_counts, packs_are_as_long_as_fits,
          steps_are_planned_one_by_one, a_shuffled_sampler_draws_the_same_steps,
          auto_takes_the_faster_of_both, an_order_of_modalities_costs_few_dummies,
          public_data_are_even_in_both_sizes, nothing_is_left_behind)
