/* Runs a pipeline schedule over times per chunk and micro-batch. */
#ifndef HBP_SIMULATE_PIPELINE_H
#define HBP_SIMULATE_PIPELINE_H

#include <stdint.h>

#include "base/context.h"
#include "simulate/stage_times.h"

/* The order of each stage's operations and scratch to run it, made once for (S, V, M) and used for many times
 * and orders. */
typedef struct hbp__schedule {
    hbp__memory memory;
    int32_t stages;
    int32_t chunks;
    int32_t micro_batches;
    int32_t *slot;  /* [S][2 M V] operations of a stage in its order: direction, chunk, place in the order */
    int64_t *ready; /* scratch */
    int64_t *free_at; /* scratch */
} hbp__schedule;

hbp_status hbp__schedule_open(hbp_context *context, int32_t stages, int32_t virtual_stages,
                              int32_t micro_batches, hbp__schedule *schedule);
void hbp__schedule_close(hbp__schedule *schedule);

/* Runs it: total time in ns (saturating); `order` [M] or NULL. `busy`, `peak` [S] may be NULL. An operation
 * starts when its stage is free and its input is there; its output is at the next chunk `transfer` later, and
 * `exposed` of the transfer keeps the sender busy. O(M chunks). */
int64_t hbp__pipeline_time(hbp__schedule *schedule, const hbp__stage_times *times, const int32_t *order,
                           int64_t *busy, int64_t *peak);

#endif
