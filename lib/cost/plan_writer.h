/* Writes a plan row by row, in the order of its tables: samples, the pack that holds them, the micro-batch of
 * those packs, the step of those micro-batches. Sums, times and bytes come from what has been written. */
#ifndef HBP_COST_PLAN_WRITER_H
#define HBP_COST_PLAN_WRITER_H

#include "cost/cost.h"
#include "data/lengths/lengths.h"
#include "data/packs/padding.h"
#include "data/plan/lockstep.h"

/* Sums over the samples of a pack, as a plan records them. */
typedef struct hbp__pack_sums {
    int64_t tokens;
    int64_t padded; /* each sample, and in the end their sum */
    int64_t squares;
    int64_t loss;
    int64_t vision;
} hbp__pack_sums;

/* Adds the sample in row `i`, padded to `multiple`. */
static inline void hbp__pack_sums_add(hbp__pack_sums *sums, const hbp_plan *plan, int64_t i, int64_t multiple)
{
    int64_t tokens = plan->sample_tokens[i];
    sums->tokens += tokens;
    sums->padded += hbp__round_up(tokens, multiple);
    sums->squares += tokens * tokens;
    sums->loss += plan->sample_loss_tokens ? plan->sample_loss_tokens[i] : tokens;
    sums->vision += plan->sample_vision ? plan->sample_vision[i] : 0;
}

/* Records the sums of pack p, whose degree and layers are in place, and what it takes and needs with them. */
void hbp__plan_price_pack(hbp_plan *plan, const hbp_cost *cost, int64_t p, const hbp__pack_sums *sums);

typedef struct hbp__plan_writer {
    hbp_context *context;
    const hbp_cost *cost;
    const hbp_lengths *lengths;
    hbp_plan *plan;
    hbp__clock clock; /* scratch */
    int64_t step;     /* rows written so far, of each table */
    int64_t micro_batch;
    int64_t pack;
    int64_t sample;
    int64_t dropped;
} hbp__plan_writer;

/* How many rows a plan has. */
typedef struct hbp__plan_rows {
    int64_t steps;
    int64_t micro_batches;
    int64_t packs;
    int64_t samples;
    int64_t dropped; /* those that the lengths dropped, and more */
} hbp__plan_rows;

/* A plan without rows, with the columns that the lengths ask for and those that `optional` names
 * (HBP__PLAN_*), and the fields that cost and lengths tell; its multiples are the caller's to set. The caller
 * frees writer->plan, also after a failure. */
hbp_status hbp__plan_writer_open(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                                 const hbp__plan_rows *rows, int32_t optional, hbp__plan_writer *writer);

/* The next samples of the pack that comes; `brief` [count] has their lengths where it is not 0, NULL: nowhere
 * (data/packs/packs.h). */
void hbp__write_samples(hbp__plan_writer *w, const uint32_t *sample, const uint16_t *brief, int64_t count);

/* The sums of the samples written since the last pack, for a pack of `sp` ranks. */
hbp__pack_sums hbp__written_sums(const hbp__plan_writer *w, int32_t sp);

/* How a pack is run. */
typedef struct hbp__pack_place {
    int32_t rank; /* the first */
    int32_t sp;
    int32_t recompute;
    int64_t capacity;
    int64_t vision_capacity; /* read where the plan has vision units */
} hbp__pack_place;

/* The pack of the samples since the last one; none: a padding pack. */
void hbp__write_pack(hbp__plan_writer *w, const hbp__pack_place *place, const hbp__pack_sums *sums);

/* The micro-batch of the packs since the last one. */
void hbp__write_micro_batch(hbp__plan_writer *w);

/* The step of the micro-batches since the last one; returns its time, INT64_MAX when that passes 2^63 ns.
 * With an order of modalities its micro-batches of padding packs run the modalities of its first. */
int64_t hbp__write_step(hbp__plan_writer *w);

/* The samples that the lengths dropped, into the first of a plan's dropped rows; HBP_E_CANCELLED. */
hbp_status hbp__plan_write_dropped(hbp_context *context, hbp_plan *plan, const hbp_lengths *lengths);

/* Sample `sample` of the lengths, dropped for `reason`, in row `at`. */
void hbp__plan_write_drop(hbp_plan *plan, int64_t at, const hbp_lengths *lengths, uint32_t sample,
                          int32_t reason);

#endif
