/* Plans written row by row keep what every plan promises, and have the prices of the cost. */
#include "traps.h"

#include "keep.h"

#include "base/rng.h"
#include "base/scratch.h"
#include "cost/plan_writer.h"

enum { RANKS = 4, SAMPLES = 40, LAYERS = 3 };

static hbp_cost *make_cost(hbp_context *context)
{
    hbp_cost_terms terms = {.struct_size = sizeof terms};
    terms.ranks = RANKS;
    terms.layers = LAYERS;
    terms.limit_bytes = INT64_C(1) << 40;
    terms.ns_per_token = 3;
    terms.ns_per_token_squared = .5;
    terms.recompute_linear = .5;
    terms.pack_ns = 100;
    terms.step_ns = 1000;
    terms.static_bytes = 500;
    terms.activation_bytes = 7;
    terms.ns_per_vision = 11;
    terms.vision_bytes = 13;
    terms.degrees = 2;
    terms.degree = (int32_t[]){1, 2};
    terms.sp_latency_ns = (double[]){0, 40};
    terms.sp_ns_per_token = (double[]){0, 1};
    hbp_cost *cost = NULL;
    OK(context, hbp_cost_create_terms(context, &terms, &cost));
    return cost;
}

static hbp_lengths *draw_lengths(hbp_context *context, hbp__rng *rng, int with_all)
{
    int64_t tokens[SAMPLES];
    uint32_t loss[SAMPLES], vision[SAMPLES];
    int32_t kind[SAMPLES];
    for (int i = 0; i < SAMPLES; i++) {
        tokens[i] = 1 + hbp__rng_below(rng, 90);
        loss[i] = hbp__rng_below(rng, (uint64_t)tokens[i] + 1);
        vision[i] = hbp__rng_below(rng, 9);
        kind[i] = 0;
    }
    hbp_lengths_options options = {.struct_size = sizeof options};
    if (with_all) {
        options.loss_tokens = loss;
        options.vision = vision;
        options.modalities = kind;
    }
    hbp_lengths *lengths = NULL;
    OK(context, hbp_lengths_create_i64(context, tokens, SAMPLES, &options, &lengths));
    return lengths;
}

/* A micro-batch on RANKS ranks of packs of one degree; the last pack is a dummy where samples run out. */
static void write_micro_batch(hbp__plan_writer *w, hbp__rng *rng, int64_t *next)
{
    for (int32_t rank = 0, sp = 1 + (int32_t)hbp__rng_below(rng, 2); rank < RANKS; rank += sp) {
        hbp__pack_place place = {rank, sp, (int32_t)hbp__rng_below(rng, LAYERS + 1), 1000, 100};
        uint32_t sample[4];
        int64_t count = 0, most = hbp__rng_below(rng, 4);
        for (; count < most && *next < SAMPLES - 1; count++)
            sample[count] = (uint32_t)(*next)++;
        if (count)
            hbp__write_samples(w, sample, NULL, count);
        hbp__pack_sums sums = hbp__written_sums(w, sp);
        hbp__write_pack(w, &place, &sums);
    }
    hbp__write_micro_batch(w);
}

static void check_prices(const hbp_plan *plan, const hbp_cost *cost)
{
    for (int64_t p = 0; p < plan->packs; p++) {
        int32_t row = hbp__cost_row(cost, plan->pack_sp[p]);
        hbp__load load = {.tokens = plan->pack_padded_tokens[p],
                          .squares = (double)plan->pack_squares[p],
                          .vision = plan->pack_vision ? plan->pack_vision[p] : 0};
        ck_assert_int_eq(plan->pack_ns[p], hbp__cost_pack_ns(cost, row, plan->pack_recompute[p], load));
        ck_assert_int_eq(plan->pack_bytes[p], hbp__cost_pack_bytes(cost, row, plan->pack_recompute[p], load));
    }
}

/* Counts of packs come with their degrees: the same draws first, without writing. */
static hbp__plan_rows count_rows(hbp__rng rng, int64_t steps)
{
    hbp__plan_rows rows = {.steps = steps, .micro_batches = 2 * steps, .dropped = 1};
    int64_t next = 0;
    for (int64_t m = 0; m < rows.micro_batches; m++)
        for (int32_t rank = 0, sp = 1 + (int32_t)hbp__rng_below(&rng, 2); rank < RANKS; rank += sp) {
            hbp__rng_below(&rng, LAYERS + 1);
            next = hbp__min_i64(next + hbp__rng_below(&rng, 4), SAMPLES - 1);
            rows.packs++;
        }
    rows.samples = next;
    return rows;
}

START_TEST_IN_CONTEXT(written_plans_keep_every_promise)
{
    hbp_cost *cost = keep(make_cost(context));
    int64_t dummies = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        hbp__rng rng = hbp__rng_make(seed, 0, 0);
        int with_all = seed % 2;
        hbp_lengths *lengths = draw_lengths(context, &rng, with_all);
        int64_t mark = hbp__scratch_mark(context), next = 0, packs = 0;
        hbp__plan_rows rows = count_rows(rng, 3);
        hbp__plan_writer w;
        OK(context, hbp__plan_writer_open(context, lengths, cost, &rows, 0, &w));
        w.plan->sequence_multiple = 1 + (int64_t)(seed % 3);
        w.plan->pack_multiple = 4;
        for (int64_t s = 0; s < rows.steps; s++) {
            write_micro_batch(&w, &rng, &next);
            write_micro_batch(&w, &rng, &next);
            int64_t ns = hbp__write_step(&w), slowest = w.plan->micro_batch_ns[2 * s];
            ck_assert_int_eq(ns, slowest + w.plan->micro_batch_ns[2 * s + 1] + 1000);
        }
        hbp__plan_write_drop(w.plan, 0, lengths, SAMPLES - 1, HBP_DROPPED_LEFTOVER);
        hbp__plan_seal(w.plan);
        OK(context, hbp__plan_check(context, w.plan));
        check_prices(w.plan, cost);
        ck_assert_int_eq(w.plan->dropped_ids[0], SAMPLES - 1);
        ck_assert_int_eq(w.plan->dropped_reasons[0], HBP_DROPPED_LEFTOVER);
        ck_assert_int_eq(w.plan->sample_vision != NULL, with_all);
        ck_assert_int_eq(w.plan->sample_loss_tokens != NULL, with_all);
        for (int64_t p = 0; p < w.plan->packs; p++) {
            dummies += w.plan->pack_offsets[p] == w.plan->pack_offsets[p + 1];
            packs++;
        }
        ck_assert_int_eq(packs, rows.packs);
        hbp_plan_free(w.plan);
        hbp__scratch_release(context, mark);
        hbp_lengths_free(lengths);
    }
    ck_assert_int_gt(dummies, 0);
}
END_TEST

START_TEST_IN_CONTEXT(lengths_in_brief_are_taken)
{
    hbp_cost *cost = keep(make_cost(context));
    hbp__rng rng = hbp__rng_make(5, 0, 0);
    hbp_lengths *lengths = keep(draw_lengths(context, &rng, 0));
    hbp__plan_rows rows = {.steps = 1, .micro_batches = 1, .packs = RANKS, .samples = 3};
    hbp__plan_writer w;
    OK(context, hbp__plan_writer_open(context, lengths, cost, &rows, 0, &w));
    keep(w.plan);
    hbp__write_samples(&w, (uint32_t[]){7, 8, 9}, (uint16_t[]){300, 0, 1}, 3);
    ck_assert_int_eq(w.plan->sample_tokens[0], 300);
    ck_assert_int_eq(w.plan->sample_tokens[1], hbp__lengths_get(lengths, 8));
    ck_assert_int_eq(w.plan->sample_tokens[2], 1);
    ck_assert_int_eq(w.plan->sample_ids[2], 9);
}
END_TEST

TEST_MAIN_WITH("plan_writer", traps_on, NULL, written_plans_keep_every_promise, lengths_in_brief_are_taken)
