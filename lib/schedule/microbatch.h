/* Packs put into micro-batches, and micro-batches into steps: what a plan is built from. */
#ifndef HBP_SCHEDULE_MICROBATCH_H
#define HBP_SCHEDULE_MICROBATCH_H

#include <stdint.h>

#include "base/context.h"
#include "cost/cost.h"
#include "data/packs/groups.h"
#include "data/packs/packs.h"
#include "hbp/epoch.h"

/* Fills a place in a micro-batch that no pack takes. */
#define HBP__PADDING_PACK UINT32_MAX

/* Every micro-batch of an epoch: places that cover the ranks from rank 0 on. Packs of one group,
 * `groups->packs[g]` places each, unless mix.h made them. */
typedef struct hbp__micro_batches {
    hbp__memory memory;
    int64_t count;
    int32_t *group;  /* [count] of the micro-batch; at least of its padding packs */
    int64_t *first;  /* [count + 1] into place */
    uint32_t *place; /* packs, or HBP__PADDING_PACK */
    int64_t
        group_first[HBP_MAX_GROUPS + 1]; /* micro-batches of group g: [group_first[g], group_first[g + 1]) */
} hbp__micro_batches;

/* Cuts each group's packs, and with an order of modalities each set of modalities of them, into micro-batches
 * in the way `hbp__balance_method(options->method)` says; padding packs complete the last micro-batch of
 * each. The time-balanced way sorts by predicted time, in classes of 1/1024 of the longest so that packs
 * alike in time change places at random, and cuts from the slowest: the slowest pack then sets each
 * micro-batch's time, and the sum of those is the least for these packs up to the classes. The way of vision
 * is vision.h's. O(packs), of vision O(packs log packs); with an order of modalities O(samples). Close in any
 * case. */
hbp_status hbp__micro_batches_open(hbp_context *context, const hbp_packs *packs, const hbp_groups *groups,
                                   const hbp_cost *cost, const hbp_balance_options *options,
                                   hbp__micro_batches *batches);
void hbp__micro_batches_close(hbp__micro_batches *batches);

/* Steps: which micro-batches each holds, in the order of the epoch. */
typedef struct hbp__steps {
    hbp__memory memory;
    int64_t count;
    int64_t *first;        /* [count + 1] into micro_batch */
    uint32_t *micro_batch; /* rows of hbp__micro_batches; HBP__PADDING_PACK for a micro-batch of padding packs
                              alone */
} hbp__steps;

/* Orders the epoch: each group's micro-batches are drawn at random into steps of the group's size (dealt, so
 * that each step is a small copy of the group, in method vision and with an order of modalities), and steps
 * of all groups are interleaved (deal.h). With `one_step`, everything is a single step instead. Close in any
 * case. */
hbp_status hbp__steps_open(hbp_context *context, const hbp__micro_batches *batches, const hbp_groups *groups,
                           const hbp_balance_options *options, int one_step, hbp__steps *steps);
void hbp__steps_close(hbp__steps *steps);

/* Builds the plan. Copies what it needs. */
hbp_status hbp__assemble(hbp_context *context, const hbp_packs *packs, const hbp_groups *groups,
                         const hbp_cost *cost, const hbp_balance_options *options,
                         const hbp__micro_batches *batches, const hbp__steps *steps, hbp_plan **out);

#endif
