/* The pieces of the facade. */
#ifndef HBP_EPOCH_EPOCH_H
#define HBP_EPOCH_EPOCH_H

#include "base/context.h"
#include "data/groups.h"
#include "data/lengths.h"
#include "data/packs.h"
#include "hbp/epoch.h"

/* A call of hbp_plan_epoch with its options checked, the lengths limited and the groups chosen. */
typedef struct hbp__epoch {
    hbp_context *context;
    const hbp_lengths *lengths;
    const hbp_cost *cost;
    const hbp_groups *groups;
    hbp_epoch_options options;
} hbp__epoch;

/* A hierarchy, its packs, and what an epoch over them takes. Without groups where they are given. */
typedef struct hbp__trial {
    hbp_groups *groups;
    hbp_packs *packs;
    int64_t ns;
} hbp__trial;

void hbp__trial_close(hbp__trial *trial);

/* The groups with the least time, with their packs; where groups are given their packs alone. Tried are those
 * of the estimate, and for data sets that are soon filled also the published rule's and the best of fewer
 * levels. */
hbp_status hbp__epoch_choose(const hbp__epoch *epoch, hbp__trial *best);

/* Up to so many samples, other hierarchies are filled as well and the best is kept: the choice of groups
 * rests on an estimate, the score on packs. */
#define HBP__TRY_SAMPLES (INT64_C(1) << 17)

/* The options of the four moves that follow from the epoch's. */
void hbp__epoch_groups_options(const hbp_epoch_options *options, hbp_groups_options *groups);
void hbp__epoch_fill_options(const hbp_epoch_options *options, hbp_fill_options *fill);
void hbp__epoch_balance_options(const hbp_epoch_options *options, hbp_balance_options *balance);

/* Checks the options that the moves do not check themselves. */
hbp_status hbp__epoch_check(hbp_context *context, const hbp_epoch_options *options);

/* Refuses vision units that the cost charges where max_vision does not limit them: no other way of planning
 * counts them. `way` begins the message. */
hbp_status hbp__epoch_check_vision(const hbp__epoch *epoch, const char *way);

/* The lengths under max_length: a limited data set of the caller's, or NULL in *limited when there is nothing
 * to limit. */
hbp_status hbp__epoch_limit(hbp_context *context, const hbp_lengths *lengths,
                            const hbp_epoch_options *options, hbp_lengths **limited);

/* Plans window by window (samples_per_step or window_samples) and joins the plans. */
hbp_status hbp__epoch_windows(const hbp__epoch *epoch, hbp_plan **out);

/* Plans under max_vision. */
hbp_status hbp__epoch_vision(const hbp__epoch *epoch, hbp_plan **out);

/* Mode mixed: groups, packs and a layout that takes no longer than the hierarchy's. */
hbp_status hbp__epoch_mixed(const hbp__epoch *epoch, hbp_plan **out);

/* The same for given groups and the packs that the hierarchy would run. */
hbp_status hbp__epoch_mix(const hbp__epoch *epoch, const hbp_lengths *lengths, const hbp_groups *groups,
                          const hbp_packs *packs, const hbp_fill_options *fill,
                          const hbp_balance_options *balance, int one_step, hbp_plan **out);

/* Joins plans of parts of `lengths` end to end: steps keep their order, dropped samples add up, fields that
 * all parts share are the first one's. Not sealed yet. O(samples). */
hbp_status hbp__plan_join(hbp_context *context, hbp_plan *const *parts, int64_t count,
                          const hbp_lengths *lengths, hbp_plan **out);

/* Sets what the parts of a joined plan do not know, made as they were for parts of the data, and seals it. */
void hbp__epoch_seal(const hbp__epoch *epoch, hbp_plan *plan);

/* A plan of `steps` steps, each dealt its share of every stratum of lengths (tied samples together) and
 * planned by hbp_plan_step: O(samples log steps) and that many steps' planning. */
hbp_status hbp__strata_plan(const hbp__epoch *epoch, int64_t steps, hbp_plan **out);

/* About how long that plan takes, from `sample` of its steps; INT64_MAX when a step has more tokens than it
 * may. */
hbp_status hbp__strata_estimate(const hbp__epoch *epoch, int64_t steps, int64_t tokens_per_step,
                                int64_t sample, int64_t *ns);

/* An epoch in two parts; both NULL when one of them has no sample, or there is no group left to part. */
typedef struct hbp__parted {
    hbp_plan *longs;
    hbp_lengths *rest;
} hbp__parted;

/* Plans the samples longer than `longest`, with shorter ones that fill their packs, as the hierarchy's groups
 * would; the rest is what they leave. Close when done. */
hbp_status hbp__parted_open(const hbp__epoch *epoch, const hbp_groups *groups, const hbp_fill_options *fill,
                            const hbp_balance_options *balance, int64_t longest, hbp__parted *parted);
void hbp__parted_close(hbp__parted *parted);

/* One plan of both parts, `rest` being the second's: the steps of those are spread evenly over the others. */
hbp_status hbp__parted_join(const hbp__epoch *epoch, const hbp__parted *parted, const hbp_plan *rest,
                            hbp_plan **out);

/* Plans made so far, and what may replace them. */
typedef struct hbp__stratify {
    const hbp__epoch *epoch;
    const hbp_lengths *lengths; /* the epoch's, or a window's */
    const hbp_groups *groups;   /* of the best plan so far */
    const hbp_fill_options *fill;
    const hbp_balance_options *balance; /* checked */
    int64_t ns;                         /* of the best plan so far */
    int64_t micro_batches;              /* in it */
    int one_step;
} hbp__stratify;

/* Replaces *plan by one whose steps are planned one by one, all of them or all but those of the longest
 * samples, if it is faster, or within mixed_slack and closer to the mixture. */
hbp_status hbp__epoch_stratify(const hbp__stratify *s, hbp_plan **plan);

#endif
