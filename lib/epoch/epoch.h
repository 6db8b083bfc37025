/* A call of hbp_plan_epoch: what every piece of it is given, and what follows from its options. The rest by
 * what it does: choose.h (groups), batches.h and units.h (which samples a step holds), stratify.h (steps
 * planned one by one), weigh.h (whole plans against each other), windows.h, mend.h (idle ranks), bound.h,
 * join.h; tuning.h has the numbers. */
#ifndef HBP_EPOCH_EPOCH_H
#define HBP_EPOCH_EPOCH_H

#include "base/context.h"
#include "data/cost/cost.h"
#include "data/lengths/lengths.h"
#include "data/packs/groups.h"
#include "data/packs/packs.h"
#include "data/packs/padding.h"
#include "hbp/epoch.h"
#include "hbp/step.h"
#include "pack/fill/fill.h"

/* A call of hbp_plan_epoch with its options checked, the lengths limited and the groups chosen. */
typedef struct hbp__epoch {
    hbp_context *context;
    const hbp_lengths *lengths;
    const hbp_cost *cost;    /* what is planned with: its times are linear (cost/straight.h) */
    const hbp_cost *bending; /* whose plan it is: what bounds are of */
    const hbp_groups *groups;
    hbp_epoch_options options;
    int32_t step_method; /* HBP__STEP_*: how steps are planned one by one; bounded by search alone */
} hbp__epoch;

/* A call's epoch and what it borrows; stays where it is. */
typedef struct hbp__epoch_call {
    hbp__epoch epoch;
    hbp_cost cost; /* under the cap of the options, as the next */
    hbp_cost bending;
    hbp_lengths *limited; /* NULL: nothing was past the limit */
} hbp__epoch_call;

/* Reads and checks the options and limits the lengths. Close in any case. */
hbp_status hbp__epoch_open(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                           const hbp_cost *bending, const hbp_epoch_options *options, hbp__epoch_call *call);
void hbp__epoch_close(hbp__epoch_call *call);

/* hbp_plan_epoch, within a call. */
hbp_status hbp__plan_epoch(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                           const hbp_epoch_options *options, hbp_plan **out);

/* The options of the four moves, and of a step, that follow from the epoch's. */
void hbp__epoch_groups_options(const hbp_epoch_options *options, hbp_groups_options *groups);
/* The same for lengths that hold the padding of the widest degree, which a fill may pad by. */
void hbp__epoch_widest_options(const hbp__epoch *epoch, hbp_groups_options *groups);
void hbp__epoch_fill_options(const hbp_epoch_options *options, hbp_fill_options *fill);
/* The epoch's padding, and that of a fill, which pads samples of all groups alike: by the widest degree, so
 * that capacities hold whatever the degree. */
hbp_status hbp__epoch_padding(const hbp__epoch *epoch, const hbp_groups *groups, hbp_fill_options *fill,
                              hbp__padding *padding);
/* A fill of `lengths` with these options, under both budgets where vision units count, and the padding of the
 * epoch's, which may depend on the degree of a pack. */
hbp_status hbp__epoch_fill(const hbp__epoch *epoch, const hbp_lengths *lengths, const hbp_groups *groups,
                           const hbp_fill_options *options, hbp_packs **out);
/* The same but for the search for fewer packs (hbp__fill_search), of which there is none under two budgets.
 */
hbp_status hbp__epoch_fill_begin(const hbp__epoch *epoch, const hbp_lengths *lengths,
                                 const hbp_groups *groups, const hbp_fill_options *options,
                                 const hbp__rival *rival, hbp__filling *filling);
/* The same of all lengths by a classic method, one group. */
hbp_status hbp__epoch_fill_classic(const hbp__epoch *epoch, const hbp_groups *groups, int32_t method,
                                   hbp_packs **out);
void hbp__epoch_balance_options(const hbp__epoch *epoch, hbp_balance_options *balance);
void hbp__epoch_step_options(const hbp_epoch_options *options, hbp_step_options *step);

/* Checks the options that the moves do not check themselves. */
hbp_status hbp__epoch_check(hbp_context *context, const hbp_epoch_options *options);

/* Refuses caps and memory that the longest sample, or group of linked samples, does not fit in, as the step
 * planner would the step that holds it: one message says what would do for all samples. */
hbp_status hbp__epoch_check_caps(const hbp__epoch *epoch);

/* Says that no plan keeps to the tokens of a step; `least` is the largest step of the one that was nearest,
 * INT64_MAX where there was none. */
hbp_status hbp__epoch_refuse_tokens(const hbp__epoch *epoch, int64_t tokens_per_step, int64_t least);

/* Whether vision units count: the cost charges them, or max_vision limits them. */
int hbp__epoch_counts_vision(const hbp__epoch *epoch);

/* Refuses vision units that the cost charges, for methods that count none. */
hbp_status hbp__epoch_check_vision(const hbp__epoch *epoch);

/* A plan by a method that is neither search nor hbp, lengths being limited; it has no bound. */
hbp_status hbp__epoch_plan_baseline(hbp__epoch *epoch, hbp_plan **out);

/* The lengths under max_length, and with over_long drop under max_vision: a limited data set of the caller's,
 * or NULL in *limited when there is nothing to limit. */
hbp_status hbp__epoch_limit(hbp_context *context, const hbp_lengths *lengths,
                            const hbp_epoch_options *options, hbp_lengths **limited);

/* Whether steps may hold packs of several groups: not with method hbp, in composition hierarchy or under an
 * order of modalities. */
int hbp__epoch_mixes(const hbp__epoch *epoch);

/* Whether steps may be planned one by one: the step planner knows no groups, windows, left-overs or order of
 * modalities. */
int hbp__epoch_may_plan_steps(const hbp__epoch *epoch);

#endif
