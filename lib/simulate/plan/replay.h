/* What a plan does step by step, measured from its samples: the numbers of a report, over a plan or over its
 * parts one after the other. docs/explanation/metrics.md defines each. */
#ifndef HBP_SIMULATE_REPLAY_H
#define HBP_SIMULATE_REPLAY_H

#include "cost/cost.h"
#include "data/plan/lockstep.h"

/* Sums over the parts of a plan. */
typedef struct hbp__replay {
    const hbp_plan *plan; /* the part at hand */
    const hbp_cost *cost;
    int64_t block_ranks; /* largest SP degree: a device of the paper's ABR */
    int64_t blocks;
    double *block; /* [blocks] scratch: squares in each */
    hbp__clock clock;
    int64_t sampled; /* samples since the last tick */
    int64_t steps;   /* of the parts so far */
    int64_t micro_batches;
    int has_vision;
    int64_t epoch_ns;
    int64_t tokens;
    int64_t sp_tokens;
    int64_t peak_bytes;
    int64_t vision;
    double vision_capacity; /* of packs that have a limit */
    double vision_held;     /* in those */
    double padded;          /* tokens that packs compute, padding among them */
    double dist_vision;
    double dist_tokens;
    double dbr;
    double abr;
    double abr_paper;
    double step_ranks_ns;    /* rank-time of steps without step_ns */
    double busy_ns;          /* rank-time of packs */
    double communication_ns; /* rank-time */
} hbp__replay;

/* A replay of no steps; `largest_sp` is the largest degree of any pack. It is scratch. */
hbp_status hbp__replay_open(hbp_context *context, const hbp_cost *cost, int64_t largest_sp,
                            hbp__replay *replay);

/* The next steps, a plan for as many ranks as the cost has. O(samples). */
hbp_status hbp__replay_add(hbp_context *context, hbp__replay *replay, const hbp_plan *part);

/* Ends the replay: all of the report but bound, gap and what is said of single steps. */
hbp_status hbp__replay_report(hbp_context *context, hbp__replay *replay, hbp_report *report);

#endif
