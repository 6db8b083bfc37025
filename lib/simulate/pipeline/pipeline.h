/* Runs a pipeline schedule over times per chunk and micro-batch. */
#ifndef HBP_SIMULATE_PIPELINE_H
#define HBP_SIMULATE_PIPELINE_H

#include <stdint.h>

#include "base/context.h"
#include "simulate/pipeline/stage_times.h"

/* One operation: the forward or backward of a chunk for the micro-batch at a place in the order. */
typedef struct hbp__operation {
    int32_t stage;
    int32_t chunk;
    int32_t place;
    int32_t direction; /* HBP_FORWARD, HBP_BACKWARD */
} hbp__operation;

/* The order of each stage's operations and scratch to run it, made once for (S, V, M) and used for many times
 * and orders. */
typedef struct hbp__schedule {
    hbp__memory memory;
    int32_t stages;
    int32_t chunks;
    int32_t micro_batches;
    hbp__operation *slot;   /* [S][2 M V] of each stage, in its order */
    hbp__operation *line;   /* [2 M S V] all of them: each behind its stage's former one and behind the one
                               whose output it needs */
    int64_t *segment;       /* [M + 1] line[segment[p] .. segment[p + 1] - 1] are those that may run once
                               places 0 .. p are known and not before */
    int64_t *ready_forward; /* [chunks * M] scratch: when the input of a chunk's forward is there, by place */
    int64_t *ready_backward; /* the same of its backward */
    int64_t *free_at;        /* [S] scratch: when the stage is done with what has been run of it */
    int64_t *waited;         /* [S] scratch: how much of that it waited */
} hbp__schedule;

/* V > 1 takes M to be a multiple of S. O(M chunks). */
hbp_status hbp__schedule_open(hbp_context *context, int32_t stages, int32_t virtual_stages,
                              int32_t micro_batches, hbp__schedule *schedule);
void hbp__schedule_close(hbp__schedule *schedule);

/* Runs it: total time in ns (saturating). `order` [M] names columns of `times`; NULL, where `times` has M of
 * them: as they come. `busy`, `peak` [S] may be NULL. An operation starts when its stage is free and its
 * input is there; its output is at the next chunk `transfer` later, and `sending` of the transfer keeps the
 * sender busy. Peak bytes are states, what is kept from the start of a forward to the end of its backward,
 * and the working bytes of the running backward. O(M chunks). */
int64_t hbp__pipeline_time(hbp__schedule *schedule, const hbp__stage_times *times, const int32_t *order,
                           int64_t *busy, int64_t *peak);

/* One operation of a run: micro_batch is a column of the times. */
typedef struct hbp__operation_run {
    int32_t stage;
    int32_t chunk;
    int32_t micro_batch;
    int32_t direction;
    int64_t start_ns;
    int64_t end_ns;
} hbp__operation_run;

/* Shows every operation of the run that hbp__pipeline_time has just made, by stage and start. */
void hbp__pipeline_walk(const hbp__schedule *schedule, const hbp__stage_times *times, const int32_t *order,
                        void (*visit)(void *user, int64_t row, const hbp__operation_run *run), void *user);

/* hbp_simulate_pipeline inside a call. */
hbp_status hbp__pipeline_run_open(hbp_context *context, const hbp_layers *layers, const int32_t *cuts,
                                  const hbp_pipeline_options *pipeline, const int32_t *order,
                                  hbp_pipeline_run **out);

/* hbp__pipeline_time in pieces, for searches over orders: sets free_at and waited to 0; runs the operations
 * of segments [first, end), whose places and all before are known, on from free_at and from what segments
 * before `first` left. A segment may be run again with another order of the places from `first` on, once
 * free_at and waited are put back. At the end free_at[0] is the total. */
void hbp__pipeline_begin(hbp__schedule *schedule);
void hbp__pipeline_advance(hbp__schedule *schedule, const hbp__stage_times *times, const int32_t *order,
                           int32_t first, int32_t end);

/* [S] peak bytes alone; they depend on the order, not on times. O(M chunks). */
void hbp__pipeline_peak(const hbp__schedule *schedule, const hbp__stage_times *times, const int32_t *order,
                        int64_t *peak);

/* A lower bound on hbp__pipeline_time over all orders of the micro-batches in `column` [M] of `times`, NULL:
 * all of them (docs/explanation/pipeline.md, "What no order beats"). O(M chunks), radix sorts. */
hbp_status hbp__pipeline_bound(hbp_context *context, const hbp__schedule *schedule,
                               const hbp__stage_times *times, const int32_t *column, int64_t *bound_ns);

#endif
