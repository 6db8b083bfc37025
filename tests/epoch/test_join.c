/* Plans of parts of the data, joined: every column moves behind the rows before it, the second size and the
 * kinds among them, however the epoch was parted. */
#include "data/lengths/lengths_subset.h"
#include "epoch/join.h"
#include "failing.h"
#include "keep.h"
#include "methods.h"
#include "planned.h"
#include "plans.h"

/* Lengths with units and kinds, and two halves of them. */
typedef struct halves {
    hbp_lengths *whole;
    hbp_lengths *half[2];
    hbp_plan *part[2];
} halves;

static halves halves_open(hbp_context *context, uint64_t seed, int32_t modality_order)
{
    halves h = {.whole = plans_vision_lengths(context, seed, 90, 500, seed % 2, 0, 3)};
    uint32_t sample[90];
    for (uint32_t i = 0; i < 90; i++)
        sample[i] = i % 2 * 45 + i / 2;
    for (int k = 0; k < 2; k++) {
        plans_shape shape = plans_draw(seed);
        shape.seed += (uint64_t)k;
        shape.modality_order = modality_order;
        OK(context, hbp__lengths_subset(context, h.whole, sample + 45 * k, 45, &h.half[k]));
        h.part[k] = plans_make(&shape, h.half[k]);
    }
    return h;
}

static void halves_close(halves *h)
{
    for (int k = 0; k < 2; k++) {
        hbp_plan_free(h->part[k]);
        hbp_lengths_free(h->half[k]);
    }
    hbp_lengths_free(h->whole);
}

START_TEST_IN_CONTEXT(columns_of_parts_stand_end_to_end)
{
    for (uint64_t seed = 0; seed < 20; seed++) {
        halves h = halves_open(context, seed, (int32_t)(seed / 2 % 2));
        hbp_plan *plan = NULL;
        OK(context, hbp__plan_join(context, h.part, 2, h.whole, &plan));
        plan->lengths_digest = h.whole->digest;
        hbp__plan_seal(plan);
        OK(context, hbp_plan_validate(context, plan, h.whole, NULL));
        ck_assert_int_eq(hbp__plan_optional(plan), hbp__plan_optional(h.part[0]));
        ck_assert_ptr_nonnull(plan->pack_vision);
        for (int k = 0; k < 2; k++) {
            hbp_plan *slice;
            int64_t first = k ? h.part[0]->steps : 0;
            OK(context, hbp__plan_slice(context, plan, first, h.part[k]->steps, &slice));
#define SAME(name, type, table, extra)                                                                       \
    ck_assert_int_eq(slice->name != NULL, h.part[k]->name != NULL);                                          \
    for (int64_t i = 0; slice->name && i < slice->table + (extra); i++)                                      \
        ck_assert_int_eq(slice->name[i], h.part[k]->name[i]);
            HBP__PLAN_COLUMNS(SAME)
#undef SAME
            hbp_plan_free(slice);
        }
        hbp_plan_free(plan);
        halves_close(&h);
    }
}
END_TEST

/* Whatever cuts an epoch into parts, vision units that cost nothing come along. */
START_TEST_IN_CONTEXT(every_way_of_planning_keeps_vision_units)
{
    hbp_cost *cost = keep(test_cost(context));
    hbp_lengths *lengths = keep(plans_vision_lengths(context, 7, 1500, 30000, 0, 0, 2));
    const hbp_epoch_options ways[] = {{.method = hbp__epoch_name(HBP__EPOCH_SEARCH)},
                                      {.method = hbp__epoch_name(HBP__EPOCH_HBP)},
                                      {.composition = HBP_COMPOSITION_STRATIFIED},
                                      {.composition = HBP_COMPOSITION_HIERARCHY},
                                      {.window_samples = 400},
                                      {.samples_per_step = 300},
                                      {.max_length = 20000, .over_long = HBP_OVERLONG_SPLIT}};
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        hbp_epoch_options options = ways[w];
        hbp_plan *plan = NULL;
        hbp_plan_summary summary = {.struct_size = sizeof summary};
        options.struct_size = sizeof options;
        OK(context, hbp_plan_epoch(context, lengths, cost, &options, &plan));
        OK(context, hbp_plan_validate(context, plan, lengths, cost));
        OK(context, hbp_plan_get_summary(context, plan, &summary));
        ck_assert_int_eq(summary.vision, lengths->vision_sum);
        ck_assert_int_eq(summary.modalities, 0);
        hbp_plan_free(plan);
    }
    for (int32_t method = HBP__EPOCH_HBP; method < HBP__EPOCH_METHOD_COUNT; method++) {
        hbp_plan *plan = NULL;
        if (method == HBP__EPOCH_PATTERNS)
            continue; /* knows a sample by its length alone */
        hbp_plan_summary summary = {.struct_size = sizeof summary};
        OK(context, test_plan_by(context, lengths, cost, method, NULL, &plan));
        OK(context, hbp_plan_validate(context, plan, lengths, cost));
        OK(context, hbp_plan_get_summary(context, plan, &summary));
        ck_assert_int_eq(summary.vision, lengths->vision_sum);
        hbp_plan_free(plan);
    }
}
END_TEST

/* Where units cost time or memory, epochs count them, with a limit or without; baselines, which do not, say
 * so. */
START_TEST_IN_CONTEXT(units_that_cost_something_are_counted_or_refused)
{
    hbp_cost *plain = keep(test_cost(context)), *cost = NULL;
    hbp_lengths *lengths = keep(plans_vision_lengths(context, 7, 100, 3000, 0, 0, 2));
    hbp_lengths *text = keep(plans_lengths(context, 7, 100, 3000, 0, 0));
    hbp_plan *plan = NULL;
    hbp_cost_terms terms = {.struct_size = sizeof terms};
    OK(context, hbp_cost_get_terms(context, plain, &terms));
    for (int k = 0, mark = keep_mark(); k < 2; keep_release(mark), k++) {
        terms.ns_per_vision = k ? 0 : 0.5;
        terms.vision_bytes = k ? 0.5 : 0;
        MAKES(context, cost, hbp_cost_create_terms(context, &terms, &cost));
        MAKES(context, plan, hbp_plan_epoch(context, lengths, cost, NULL, &plan));
        OK(context, hbp_plan_validate(context, plan, lengths, cost));
        hbp_plan_summary summary = {.struct_size = sizeof summary};
        OK(context, hbp_plan_get_summary(context, plan, &summary));
        ck_assert_int_eq(summary.samples, lengths->count);
        ck_assert_int_eq(summary.vision, lengths->vision_sum);
        plan = NULL;
        char text_of[160];
        snprintf(text_of, sizeof text_of,
                 "method spfhp: the cost charges vision units and the lengths have %lld, which this method "
                 "does not count",
                 (long long)lengths->vision_sum);
        FAILS(context, HBP_E_INVALID, text_of,
              test_plan_by(context, lengths, cost, HBP__EPOCH_SPFHP, NULL, &plan));
        ck_assert_ptr_null(plan);
        MAKES(context, plan, hbp_plan_epoch(context, text, cost, NULL, &plan));
    }
}
END_TEST

static hbp_status join_once(hbp_context *context, void *user)
{
    halves *h = user;
    hbp_plan *plan = NULL;
    hbp_status status = hbp__plan_join(context, h->part, 2, h->whole, &plan);
    ck_assert_int_eq(status == HBP_OK, plan != NULL);
    hbp_plan_free(plan);
    return status;
}

START_TEST_IN_CONTEXT(nothing_is_left_behind)
{
    halves h = halves_open(context, 3, 1);
    failing_sweep(join_once, &h);
    halves_close(&h);
}
END_TEST

TEST_MAIN("join", columns_of_parts_stand_end_to_end, every_way_of_planning_keeps_vision_units,
          units_that_cost_something_are_counted_or_refused, nothing_is_left_behind)
