/* Writes a plan row by row, in the order of its tables: samples, the pack that holds them, the micro-batch of
 * those packs, the step of those micro-batches. Sums and times of larger things come from what has been
 * written; what a pack takes is its writer's to say (cost/plan_writer.h). */
#ifndef HBP_DATA_PLAN_ROWS_H
#define HBP_DATA_PLAN_ROWS_H

#include "data/lengths/lengths.h"
#include "data/plan/lockstep.h"

/* Sums over the samples of a pack, as a plan records them. */
typedef struct hbp__pack_sums {
    int64_t tokens;
    int64_t padded; /* each sample, and in the end their sum */
    int64_t squares;
    int64_t loss;
    int64_t vision;
} hbp__pack_sums;

/* What a plan's ranks are, and what a step costs beside its micro-batches. */
typedef struct hbp__plan_frame {
    int32_t ranks;
    int32_t domain_ranks;
    int32_t lockstep_ranks;
    int64_t step_ns;
} hbp__plan_frame;

typedef struct hbp__plan_writer {
    hbp_context *context;
    const hbp_cost *cost; /* what packs are priced by; NULL: they come priced */
    const hbp_lengths *lengths;
    hbp_plan *plan;
    hbp__clock clock; /* scratch */
    int64_t step_ns;
    int has_beside; /* columns of samples beside ids and lengths, or ids that are no rows of the lengths */
    int64_t step;   /* rows written so far, of each table */
    int64_t micro_batch;
    int64_t pack;
    int64_t sample;
    int64_t dropped;
    /* Rows at which others write, whose offsets are there already; -1: none. Writers of parts of one plan,
     * each with a clock of its own, work side by side. */
    int64_t end_step;
    int64_t end_micro_batch;
    int64_t end_pack;
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
 * (HBP__PLAN_*), and the fields that frame and lengths tell; its multiples are the caller's to set. `lengths`
 * may be NULL where samples are written by their ids. The caller frees writer->plan, also after a failure. */
hbp_status hbp__plan_rows_open(hbp_context *context, const hbp_lengths *lengths, const hbp__plan_frame *frame,
                               const hbp__plan_rows *rows, int32_t optional, hbp__plan_writer *writer);

/* The next samples of the pack that comes; `brief` [count] has their lengths where it is not 0, NULL: nowhere
 * (data/packs/packs.h). */
void hbp__write_samples(hbp__plan_writer *w, const uint32_t *sample, const uint16_t *brief, int64_t count);

/* The next sample, of `length` tokens, by its place in an order: its id until hbp__resolve_samples. */
static inline void hbp__write_place(hbp__plan_writer *w, int64_t place, int32_t length)
{
    w->plan->sample_ids[w->sample] = place;
    w->plan->sample_tokens[w->sample++] = length;
}

/* Gives the samples in rows [from, w->sample) what stands at their places in the order `sample`, NULL:
 * samples are in that order as they are; and what stands beside ids and lengths. All at once, for each is
 * likely to miss the caches. HBP_E_CANCELLED. */
hbp_status hbp__resolve_samples(hbp__plan_writer *w, const uint32_t *sample, int64_t from);

/* How a pack is run. */
typedef struct hbp__pack_place {
    int32_t rank; /* the first */
    int32_t sp;
    int32_t recompute;
    int64_t capacity;
    int64_t vision_capacity; /* read where the plan has vision units */
} hbp__pack_place;

/* The pack of the samples since the last one, but for what hbp__plan_price_pack records; none: a padding
 * pack. Returns its row. */
int64_t hbp__write_pack_row(hbp__plan_writer *w, const hbp__pack_place *place);

/* The sums of pack p. */
void hbp__plan_set_sums(hbp_plan *plan, int64_t p, const hbp__pack_sums *sums);

/* The micro-batch of the packs since the last one. */
void hbp__write_micro_batch(hbp__plan_writer *w);

/* The step of the micro-batches since the last one; returns its time, INT64_MAX when that passes 2^63 ns.
 * With an order of modalities its micro-batches of padding packs run the modalities of its first. */
int64_t hbp__write_step(hbp__plan_writer *w);

/* The same from what its micro-batches come to, without an order of modalities. */
typedef struct hbp__step_sums {
    int64_t ns; /* of its micro-batches together, by the clock of a step */
    int64_t tokens;
    int64_t loss;
} hbp__step_sums;
int64_t hbp__write_step_row(hbp__plan_writer *w, const hbp__step_sums *sums);

/* The samples that the lengths dropped, into the first of a plan's dropped rows; HBP_E_CANCELLED. */
hbp_status hbp__plan_write_dropped(hbp_context *context, hbp_plan *plan, const hbp_lengths *lengths);

/* Sample `sample` of the lengths, dropped for `reason`, in row `at`. */
void hbp__plan_write_drop(hbp_plan *plan, int64_t at, const hbp_lengths *lengths, uint32_t sample,
                          int32_t reason);

#endif
