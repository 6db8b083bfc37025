/* Replays a plan and measures it, independently of the planners; and the bound no plan can beat. */
#ifndef HBP_SIMULATE_H
#define HBP_SIMULATE_H

#include <stdint.h>

#include "hbp/context.h"
#include "hbp/cost.h"
#include "hbp/lengths.h"
#include "hbp/plan.h"

HBP_BEGIN_DECLS

/* Shares are in 0..1. Metrics as HBP and OmniBal define them (docs: metrics), means over micro-batches unless
 * said. */
typedef struct hbp_report {
    uint32_t struct_size;
    int32_t ranks;
    int64_t steps;
    int64_t epoch_ns; /* predicted */
    int64_t bound_ns; /* no plan in so many steps is faster under this cost; 0: not computed */
    int64_t tokens;
    int64_t peak_bytes; /* largest of any rank */
    double gap;         /* epoch_ns / bound_ns - 1; NaN when the bound is not known */
    double idle;        /* rank-time spent waiting inside micro-batches / all rank-time of micro-batches */
    double dbr;         /* data balance ratio over SP groups, in tokens */
    double padding;     /* tokens that are only padding / tokens computed: (padded - tokens) / padded */
    double abr;         /* attention balance ratio over true SP groups */
    double abr_paper;   /* at the paper's granularity, ranks / largest SP */
    double cr;          /* tokens in packs with SP > 1 / all tokens */
    double ave_tokens;  /* mean tokens per rank and step */
    double tokens_per_s_per_gpu;
    double communication;    /* share of rank-time in all-to-all */
    double samples_cv;       /* coefficient of variation of samples per step, over all steps */
    double mixture_distance; /* mean over steps of half the L1 distance of tokens by length class (powers of
                                two) to the mixture of the epoch */
    int64_t vision;          /* vision units; -1: no second size */
    double dist_vision;      /* OmniBal's DistRatio of vision units: mean over micro-batches of the sum over
                                packs, dummies included, of (most - own) / (most * packs) */
    double dist_tokens;      /* the same of padded tokens */
    double vision_padding;   /* (capacity - vision) / capacity over packs with a limit, dummies included */
    int64_t step_samples_p5; /* samples of a step: quantiles over the steps, the lower of two neighbours */
    int64_t step_samples_median;
    int64_t step_samples_p95;
    int64_t step_tokens_p5; /* the same of tokens */
    int64_t step_tokens_median;
    int64_t step_tokens_p95;
} hbp_report;

typedef struct hbp_simulate_options {
    uint32_t struct_size;
    int32_t bound;           /* nonzero: no bound; bound_ns is 0 */
    int64_t tokens_per_step; /* limit for the bound's number of steps; 0: the plan's own number of steps */
} hbp_simulate_options;

HBP_API void hbp_report_init(hbp_report *report, uint32_t struct_size);
HBP_API void hbp_simulate_options_init(hbp_simulate_options *options, uint32_t struct_size);

/* Recomputes every pack's time and memory from its samples and the cost, and from them everything in the
 * report; predictions stored in the plan are not used. *report is written on success. O(samples). Thread: one
 * per context. */
HBP_API hbp_status hbp_simulate(hbp_context *context, const hbp_plan *plan, const hbp_cost *cost,
                                const hbp_simulate_options *options, hbp_report *report);

/* The bound for a data set: no plan that runs these samples whole, in at least `steps` steps, is predicted to
 * take less than *bound_ns (docs: bound, with its proof). O(bins * degrees * layers). Thread: one per
 * context. */
HBP_API hbp_status hbp_bound_epoch(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                                   int64_t steps, int64_t *bound_ns);

HBP_END_DECLS

#endif
