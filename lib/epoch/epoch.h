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

/* The options of the four moves that follow from the epoch's. */
void hbp__epoch_groups_options(const hbp_epoch_options *options, hbp_groups_options *groups);
void hbp__epoch_fill_options(const hbp_epoch_options *options, hbp_fill_options *fill);
void hbp__epoch_balance_options(const hbp_epoch_options *options, hbp_balance_options *balance);

/* Checks the options that the moves do not check themselves. */
hbp_status hbp__epoch_check(hbp_context *context, const hbp_epoch_options *options);

/* The lengths under max_length: a limited data set of the caller's, or NULL in *limited when there is nothing
 * to limit. */
hbp_status hbp__epoch_limit(hbp_context *context, const hbp_lengths *lengths,
                            const hbp_epoch_options *options, hbp_lengths **limited);

/* Plans window by window (samples_per_step or window_samples) and joins the plans. */
hbp_status hbp__epoch_windows(const hbp__epoch *epoch, hbp_plan **out);

/* Joins plans of parts of `lengths` end to end: steps keep their order, dropped samples add up, fields that
 * all parts share are the first one's. Not sealed yet. O(samples). */
hbp_status hbp__plan_join(hbp_context *context, hbp_plan *const *parts, int64_t count,
                          const hbp_lengths *lengths, hbp_plan **out);

#endif
