/* What a run measured: a row for each pack that it ran, beside what the plan predicted. A trainer or the
 * executor writes it; hbp_cost_fit learns from it. Immutable once made; shareable. */
#ifndef HBP_TIMELINE_H
#define HBP_TIMELINE_H

#include <stdint.h>

#include "hbp/context.h"
#include "hbp/cost.h"
#include "hbp/plan.h"

HBP_BEGIN_DECLS

typedef struct hbp_timeline hbp_timeline;

/* Columns [count], a row a pack: the time is that of the SP group's slowest rank, from when all its ranks
 * could begin to its end. The columns that say so may be NULL: not known. Rows come in any order. */
typedef struct hbp_timeline_columns {
    uint32_t struct_size;
    int32_t ranks; /* of the run */
    int64_t count;
    const int64_t *step;        /* of the epoch */
    const int32_t *micro_batch; /* of the step, from 0 */
    const int32_t *first_rank;
    const int32_t *sp;
    const int32_t *recompute;
    const int64_t *samples; /* 0: a dummy; NULL: what has no tokens is one */
    const int64_t *tokens;  /* padding included: what was computed */
    const int64_t *sum_squares;
    const int64_t *start_ns;         /* since the run began; may be NULL */
    const int64_t *time_ns;          /* at least 1, a dummy's at least 0 */
    const int64_t *communication_ns; /* of it in all-to-alls, at most all of it; may be NULL */
    const int64_t *peak_bytes;       /* of the fullest rank; may be NULL */
    const char *device;              /* what it ran on, "NVIDIA H100 80GB HBM3"; NULL: not known */
    const char *date;                /* "2026-11-22"; NULL: not known */
} hbp_timeline_columns;

HBP_API void hbp_timeline_columns_init(hbp_timeline_columns *columns, uint32_t struct_size);

/* Copies the columns. HBP_E_INVALID names a row and a value that make no sense. Thread: one per context, as
 * for every function here that takes one. */
HBP_API hbp_status hbp_timeline_create(hbp_context *context, const hbp_timeline_columns *columns,
                                       hbp_timeline **out);

/* A timeline file is CSV: comment lines "# device: ...", "# date: ...", "# ranks: N", a header of column
 * names in any order, a line a pack; samples, start_ns, communication_ns and peak_bytes may be absent, times
 * and sizes may have other units (docs: timeline file). Saved atomically; HBP_E_FORMAT names line and column.
 */
HBP_API hbp_status hbp_timeline_load(hbp_context *context, const char *path, hbp_timeline **out);
HBP_API hbp_status hbp_timeline_save(hbp_context *context, const hbp_timeline *timeline, const char *path);

/* The columns, owned by the timeline. Thread: shareable. */
HBP_API hbp_status hbp_timeline_get_columns(hbp_context *context, const hbp_timeline *timeline,
                                            hbp_timeline_columns *columns);

/* The same rows for hbp_cost_fit, dummies left out; owned by the timeline. Thread: shareable. */
HBP_API hbp_status hbp_timeline_get_measurements(hbp_context *context, const hbp_timeline *timeline,
                                                 hbp_measurements *measurements);

HBP_API void hbp_timeline_free(hbp_timeline *timeline);

/* How far a cost's predictions are from what was measured: |predicted - measured| / measured. */
typedef struct hbp_timeline_report {
    uint32_t struct_size;
    int32_t ranks;
    int64_t packs; /* dummies left out */
    int64_t steps;
    double median_pack_error;
    double p95_pack_error;
    double max_pack_error;
    double
        median_step_error; /* of steps by their packs' times and the cost's lockstep sets, without step_ns */
    double p95_step_error;
    double max_step_error;
    double median_bytes_error; /* of peak bytes; 0 without that column */
    double max_bytes_error;
    int64_t measured_ns; /* sum over steps */
    int64_t predicted_ns;
    double measured_idle;  /* share of rank-time in steps without a pack: packs of the measured times, run
                              as the cost's lockstep sets let them (docs: lockstep) */
    double predicted_idle; /* the same of the predicted times */
} hbp_timeline_report;

HBP_API void hbp_timeline_report_init(hbp_timeline_report *report, uint32_t struct_size);

/* Compares each pack and step of a timeline with what `cost` predicts; of a step measured in part, the same
 * part. HBP_E_INVALID for an SP degree that the cost does not allow or more recomputed layers than it has.
 * O(count). */
HBP_API hbp_status hbp_timeline_compare(hbp_context *context, const hbp_timeline *timeline,
                                        const hbp_cost *cost, hbp_timeline_report *report);

/* Writes a Chrome trace of steps [first, first + count) of the plan, count 0: all, with every rank twice: as
 * predicted and as measured. Steps that the timeline lacks are shown as predicted alone; both begin at 0 with
 * the first step shown. HBP_E_INVALID when timeline and plan do not match (another SP degree, first rank,
 * number of samples or of ranks, a pack twice), naming the row. Atomic. */
HBP_API hbp_status hbp_plan_write_measured_trace(hbp_context *context, const hbp_plan *plan,
                                                 const hbp_timeline *timeline, int64_t first, int64_t count,
                                                 const char *path);

HBP_END_DECLS

#endif
