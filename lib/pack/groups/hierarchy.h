/* Hierarchies under consideration, and what an epoch over one is estimated to take from the histogram alone.
 */
#ifndef HBP_PACK_HIERARCHY_H
#define HBP_PACK_HIERARCHY_H

#include <stdint.h>

#include "base/context.h"
#include "cost/point.h"
#include "data/lengths/lengths.h"
#include "data/packs/groups.h"

/* One way to run packs: length, degree, layers, and how many micro-batches of it make a step. */
typedef struct hbp__level {
    int64_t threshold; /* largest item; set once the level is part of a hierarchy */
    int64_t pack_length;
    int32_t sp;
    int32_t row; /* of sp in the cost's tables */
    int32_t recompute;
    int64_t packs;         /* in a micro-batch */
    int64_t micro_batches; /* in a step */
} hbp__level;

typedef struct hbp__hierarchy {
    int64_t count;
    hbp__level level[HBP_MAX_GROUPS]; /* ascending in threshold */
    int64_t epoch_ns;                 /* estimate */
} hbp__hierarchy;

/* What a level may be. */
typedef struct hbp__level_limits {
    int64_t tokens_per_step; /* of pack_length x packs x micro_batches */
    int64_t pack_multiple;
    int64_t step_slack;      /* percent of tokens_per_step that a step may lack */
    int64_t min_length;      /* of packs */
    int64_t max_length;      /* of packs */
    int64_t tokens_per_rank; /* pack_length / sp at most; INT64_MAX: no limit */
} hbp__level_limits;

/* The histogram of items, a sample or linked samples together being one, and sums over it. */
typedef struct hbp__estimator {
    const hbp_cost *cost;
    int64_t bins;
    int64_t *size;          /* [bins] ascending: tokens of an item with each sample padded */
    int64_t *items_before;  /* [bins + 1] prefix sums: items, */
    int64_t *tokens_before; /* tokens without padding, */
    int64_t *padded_before; /* and with it, */
    double *squares_before; /* squared lengths of samples */
    double *ragged_before;  /* [degrees][bins + 1] squares that packs of unlike items wait for, */
    double *excess;         /* and what of them is not a level's that begins here, see hierarchy.c */
    int32_t *joins;
} hbp__estimator;

/* Checks the options and fills in those that say how long packs are: the multiples, and max_length: the
 * longest pack of the published rule, which is max_pack_length if that is given, else max_length, or the
 * longest item rounded up to a power of two. *longest gets the tokens of the longest sample, or of linked
 * samples together, with padding. HBP_E_INVALID when a sample is longer than a given max_length, or an item
 * than a given pack. O(samples) with links, else O(1). */
hbp_status hbp__groups_lengths(hbp_context *context, const hbp_lengths *lengths, hbp_groups_options *options,
                               int64_t *longest);

/* The histogram of `lengths` by items and its prefix sums; O(bins x degrees), with links O(samples) more.
 * They are scratch. */
hbp_status hbp__estimator_open(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                               int64_t sequence_multiple, hbp__estimator *estimator);

/* Bins of the histogram with items of at most `size` tokens. */
int64_t hbp__estimator_bin(const hbp__estimator *estimator, int64_t size);

/* Completes a level from its degree and pack length: fewest layers, packs of a micro-batch, and micro-batches
 * of a step where they are given as 0. Returns 0 when it does not fit. */
int hbp__level_make(const hbp_cost *cost, int64_t tokens_per_step, int32_t sp, int64_t pack_length,
                    int64_t micro_batches, hbp__level *level);

/* The same within the limits: also 0 where a micro-batch would hold more than a step may, or a rank more than
 * it may. */
int hbp__level_allow(const hbp_cost *cost, const hbp__level_limits *limits, int32_t sp, int64_t pack_length,
                     int64_t micro_batches, hbp__level *level);

/* Time of the items in bins [low, high) when they run at `level`, in ns; *left gets the share of the items
 * below `low` that its packs have no room for. O(1). */
double hbp__level_ns(const hbp__estimator *estimator, const hbp__level *level, int64_t low, int64_t high,
                     double *left);

/* Sets the hierarchy's estimate from its levels and their thresholds: a level's time, and what it leaves of
 * the shorter levels' time. */
void hbp__hierarchy_estimate(const hbp__estimator *estimator, hbp__hierarchy *hierarchy);

/* Whether both have the same thresholds, pack lengths and degrees. */
int hbp__hierarchy_equals(const hbp__hierarchy *a, const hbp__hierarchy *b);

/* tokens_per_step where none is given: one pack of options->max_length on every SP group of the degree that
 * serves such packs best, but on each rank no fewer tokens than those at which a token takes least.
 * HBP_E_INFEASIBLE when no degree holds the longest item. O(degrees x layers). */
hbp_status hbp__groups_step_tokens(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                                   const hbp_groups_options *options, const hbp__level_limits *limits,
                                   int64_t longest, int64_t *tokens);

/* The published choice, with packs of up to limits->max_length. */
hbp_status hbp__groups_paper(hbp_context *context, const hbp__estimator *estimator,
                             const hbp__level_limits *limits, hbp__hierarchy *out);

/* The best hierarchies of at most max_groups levels, of each number and each level for the longest items the
 * best one; best first, distinct. *count is room in, number out: 0 where no level holds the longest item. */
hbp_status hbp__groups_optimal(hbp_context *context, const hbp__estimator *estimator,
                               const hbp__level_limits *limits, int32_t max_groups, hbp__hierarchy *out,
                               int64_t *count);

/* Groups by the cost of tokens alone. *out is set on success alone. */
hbp_status hbp__groups_choose(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                              const hbp_groups_options *options, hbp_groups **out);

/* The most tokens, each sample padded to `multiple`, and the most vision units of an item: a sample, or
 * samples that are linked. O(samples) with links, else O(1). */
hbp_status hbp__groups_largest(hbp_context *context, const hbp_lengths *lengths, int64_t multiple,
                               int64_t *tokens, int64_t *vision);

/* hbp_plan_groups and hbp_groups_create, within a call; packs of at most max_vision vision units, 0: what
 * memory holds. *out is set on success alone. */
hbp_status hbp__plan_groups(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                            const hbp_groups_options *options, int64_t max_vision, hbp_groups **out);
hbp_status hbp__groups_create(hbp_context *context, const hbp_cost *cost, int64_t count,
                              const int64_t *pack_length, const int32_t *sp, const int32_t *recompute,
                              int64_t tokens_per_step, hbp_groups **out);

/* Sets what tokens, squares and a pack take in each group, by this cost. */
void hbp__groups_price(const hbp_cost *cost, hbp_groups *groups);

/* The groups of row `index` of the table of candidates, made anew; without a table of their own but for that
 * row. */
hbp_status hbp__groups_candidate(hbp_context *context, const hbp_cost *cost, const hbp_groups *groups,
                                 int64_t index, hbp_groups **out);

#endif
