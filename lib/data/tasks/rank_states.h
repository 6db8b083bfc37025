/* What each rank holds under a schedule of tasks: weights with their states, and activations. */
#ifndef HBP_DATA_RANK_STATES_H
#define HBP_DATA_RANK_STATES_H

#include <stdint.h>

#include "data/tasks/task_schedule.h"

typedef struct hbp__rank_states {
    hbp__memory memory;
    const hbp_graph *graph;
    const hbp__meta_graph *meta;
    const hbp__task_slices *slices;
    int64_t *first; /* [ranks + 1] */
    int32_t *slice; /* slice[first[r]] .. slice[first[r + 1] - 1] run on rank r, in their order */
    int32_t last;   /* rank that was read last; -1: none */
    /* Of that rank: */
    int64_t *bytes; /* [parameters] states; -1: it does not hold these weights */
    int32_t *held;  /* [held_count] weights, as they came */
    int32_t held_count;
    int64_t activation_bytes; /* of all slices: none is given back before the backward pass */
} hbp__rank_states;

/* `slices` and `ranks` as in hbp__task_schedule_build, of `gpus` ranks. */
hbp_status hbp__rank_states_open(hbp_context *context, const hbp_graph *graph, const hbp__meta_graph *meta,
                                 const hbp__task_slices *slices, const int32_t *ranks, int32_t gpus,
                                 hbp__rank_states *states);
void hbp__rank_states_close(hbp__rank_states *states);

/* Reads one rank. O(operators that it runs), less where it runs what the one read before ran. */
void hbp__rank_states_read(hbp__rank_states *states, int32_t rank);

#endif
