/* Hierarchies under consideration, and what an epoch over one is estimated to take from the histogram alone.
 */
#ifndef HBP_PACK_HIERARCHY_H
#define HBP_PACK_HIERARCHY_H

#include <stdint.h>

#include "base/context.h"
#include "cost/cost.h"
#include "data/groups.h"
#include "data/lengths.h"

/* One way to run packs: length, degree, layers, and how many micro-batches of it make a step. */
typedef struct hbp__level {
    int64_t threshold; /* longest sample; set once the level is part of a hierarchy */
    int64_t pack_length;
    int32_t sp;
    int32_t row; /* of sp in the cost's tables */
    int32_t recompute;
    int64_t packs;         /* in a micro-batch */
    int64_t micro_batches; /* in a step */
} hbp__level;

typedef struct hbp__hierarchy {
    int64_t count;
    hbp__level level[HBP__MAX_GROUPS]; /* ascending in threshold */
    int64_t epoch_ns;                  /* estimate */
} hbp__hierarchy;

typedef struct hbp__estimator {
    const hbp_lengths *lengths;
    const hbp_cost *cost;
    int64_t longest; /* tokens of the longest sample, or of tied samples together, with padding */
    int64_t tokens_per_step;
    int64_t pack_multiple;
    int64_t step_slack;     /* percent of tokens_per_step that a step may lack */
    double *squares_before; /* [bins + 1] prefix sums over the histogram */
    int64_t *tokens_before;
    int32_t degrees;
    double *ragged_before; /* [degrees][bins + 1] squares that packs of unlike samples wait for, see
                              hierarchy.c */
} hbp__estimator;

/* Checks the options and fills in those that say how long packs are: the multiples, and max_length, the pack
 * length that holds everything. *longest gets the tokens of the longest sample, or of tied samples together,
 * with padding. HBP_E_INVALID when it is longer than a given max_length. O(samples) with ties, else O(1). */
hbp_status hbp__groups_lengths(hbp_context *context, const hbp_lengths *lengths, hbp_groups_options *options,
                               int64_t *longest);

/* Prefix sums for `lengths`; O(bins x degrees). Close releases them, also after a failed open. */
hbp_status hbp__estimator_open(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                               int64_t tokens_per_step, hbp__estimator *estimator);
void hbp__estimator_close(hbp_context *context, hbp__estimator *estimator);

/* Bins of the histogram with lengths <= `length`. */
int64_t hbp__estimator_bin(const hbp__estimator *estimator, int64_t length);

/* Completes a level from its degree and pack length: fewest layers, packs of a micro-batch, and micro-batches
 * of a step where they are given as 0. Returns 0 when it does not fit. */
int hbp__level_make(const hbp_cost *cost, int64_t tokens_per_step, int32_t sp, int64_t pack_length,
                    int64_t micro_batches, hbp__level *level);

/* Time of the samples in bins [low, high) when they run at `level`, in ns. */
double hbp__level_ns(const hbp__estimator *estimator, const hbp__level *level, int64_t low, int64_t high);

/* Sets the hierarchy's estimate from its levels and their thresholds. */
void hbp__hierarchy_estimate(const hbp__estimator *estimator, hbp__hierarchy *hierarchy);

/* The two choosers. Each writes the hierarchies it considered, best first; *count is room in, number out. */
hbp_status hbp__groups_paper(hbp_context *context, const hbp__estimator *estimator, int64_t min_length,
                             int64_t max_length, hbp__hierarchy *out);
hbp_status hbp__groups_optimal(hbp_context *context, const hbp__estimator *estimator, int64_t min_length,
                               int64_t max_length, int32_t max_groups, hbp__hierarchy *out, int64_t *count);

#endif
