/* Operating points: how one pack is run, a degree and a number of recomputed layers, with what a pack holds,
 * takes and needs then. Derived here, for everything above. */
#ifndef HBP_COST_POINT_H
#define HBP_COST_POINT_H

#include <stdint.h>

#include "cost/cost.h"

/* With S padded tokens, sum of squares Q and V vision units a pack takes constant + linear S + square Q +
 * vision V ns, which agrees with hbp__cost_ns but for rounding in the last places: for search, where
 * hbp__cost_pack_ns gives the integers of plans. */
typedef struct hbp__point {
    int64_t capacity; /* padded tokens of the whole pack, without vision units */
    int32_t row;      /* of the degree in the cost's tables */
    int32_t recompute;
    double constant; /* `latency` and pack_ns */
    double linear;
    double square;
    double vision;
    double latency; /* of the all-to-alls */
} hbp__point;

/* The point of a row of the cost's tables and a number of layers. O(log HBP_MAX_LENGTH). */
hbp__point hbp__point_make(const hbp_cost *cost, int32_t row, int32_t recompute);

/* Which points of a degree are listed. */
typedef struct hbp__point_range {
    int32_t first, last, stride; /* recomputed layers: each stride-th from `first`, and `last` */
    int64_t most;                /* tokens of a pack at most */
    int64_t multiple;            /* that capacities are brought down to */
    int keeps_equal;             /* of as many whole tokens, more layers may hold more vision units */
} hbp__point_range;

/* The useful points of a degree, fewer layers first: each holds more than the one before, or as much where
 * equal ones are kept; the first at least one token. `points` has room for one per listed number of layers;
 * returns how many there are. */
int32_t hbp__points_list(const hbp_cost *cost, int32_t row, const hbp__point_range *range,
                         hbp__point *points);

/* The most padded tokens that a pack holds beside so many vision units, in memory and by the cost's cap; 0
 * when not even one. */
int64_t hbp__cost_capacity(const hbp_cost *cost, int32_t row, int32_t recompute, int64_t vision);

/* The most vision units, up to `most`, that memory holds beside so many padded tokens, which it holds. */
int64_t hbp__cost_units(const hbp_cost *cost, int32_t row, int32_t recompute, int64_t tokens, int64_t most);

/* The fewest recomputed layers with which a pack holds so many padded tokens and vision units; -1: none do.
 * O(log layers). */
int32_t hbp__cost_fewest_layers(const hbp_cost *cost, int32_t row, int64_t tokens, int64_t vision);

/* The least tokens a rank with which memory, whatever the cost's cap, holds packs of so many tokens on some
 * degree; INT64_MAX when it holds none. O(degrees log layers). */
int64_t hbp__cost_least_per_rank(const hbp_cost *cost, int64_t pack_tokens);

#endif
