/* How many GPUs each MetaOp of a level gets (Spindle, section 3.3). */
#ifndef HBP_TASKS_ALLOCATE_H
#define HBP_TASKS_ALLOCATE_H

#include <stdint.h>

#include "tasks/problem.h"

/* `count` operators of a MetaOp on `gpus` GPUs. */
typedef struct hbp__tuple {
    int32_t meta_op;
    int32_t gpus;
    int32_t count;
} hbp__tuple;

/* Two valid sizes around the share n* and how many operators run on each, before rounding: low + high = L and
 * T(high) high_count + T(low) low_count = C*. low_gpus 0 is a dummy that runs nothing: n* lies below the
 * least size. */
typedef struct hbp__two_points {
    int32_t high_gpus;
    int32_t low_gpus;
    double high_count;
    double low_count;
} hbp__two_points;

hbp__two_points hbp__two_points_of(const hbp__curve *curve, int32_t operators, double optimum_ns,
                                   double share);

/* Rounds: exactly L operators in all; at most two tuples, the one of more GPUs first; returns how many. */
int32_t hbp__round_tuples(const hbp__two_points *points, int32_t operators, int32_t meta_op,
                          hbp__tuple tuple[2]);

/* Both for the MetaOps [first, end) of `problem` run side by side on N GPUs: *optimum_ns is C*; `tuples` gets
 * at most 2 (end - first), *count of them, by MetaOp. */
hbp_status hbp__allocate_level(hbp_context *context, const hbp__task_problem *problem, int32_t first,
                               int32_t end, double *optimum_ns, hbp__tuple *tuples, int32_t *count);

#endif
