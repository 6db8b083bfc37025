/* Chains of items cut into consecutive parts: what a partition costs, and the best partitions where every
 * part has a worker of its own (hbp__cut_chain) or workers take parts in turns (hbp__cut_rounds): pipeline
 * stages of one chunk and of several. */
#ifndef HBP_SOLVE_CHAIN_H
#define HBP_SOLVE_CHAIN_H

#include <stdint.h>

#include "base/checked.h"
#include "base/context.h"

#define HBP__CHAIN_KINDS 3

/* Part p of items [a, b) costs round(sum over kinds of (prefix[k][b] - prefix[k][a]) x factor[p, k]); its
 * load is that and the `side` of both its ends; a cut at c adds toll[c] to the sum. A partition's value is
 *
 *   weight x max over parts of load + sum over parts of cost + sum over inner cuts of toll
 *
 * The caller sees to it that no value passes 2^62. Borrowed. */
typedef struct hbp__chain {
    int32_t items;
    int32_t parts;                           /* 1..items */
    int32_t kinds;                           /* 1..HBP__CHAIN_KINDS */
    const int64_t *prefix[HBP__CHAIN_KINDS]; /* [items + 1] each, ascending */
    const double *factor;                    /* [parts * kinds], >= 0 */
    const int64_t *toll;                     /* [items + 1]; 0 at both ends */
    const int64_t *side;                     /* [items + 1]; 0 at both ends */
    const int32_t *reach; /* [parts * (items + 1)] the farthest end of part p that begins at a, ascending in
                             a; NULL: no limit */
    int64_t weight;       /* >= 0 */
} hbp__chain;

/* Costs ascend as the part grows at either end: every step of it is monotone, rounding included. */
static inline int64_t hbp__chain_cost(const hbp__chain *chain, int32_t part, int32_t begin, int32_t end)
{
    const double *factor = chain->factor + (int64_t)part * chain->kinds;
    double cost = (double)(chain->prefix[0][end] - chain->prefix[0][begin]) * factor[0];
    for (int32_t k = 1; k < chain->kinds; k++)
        cost += (double)(chain->prefix[k][end] - chain->prefix[k][begin]) * factor[k];
    return hbp__round_i64(cost);
}

static inline int64_t hbp__chain_load(const hbp__chain *chain, int32_t part, int32_t begin, int32_t end)
{
    return hbp__chain_cost(chain, part, begin, end) + chain->side[begin] + chain->side[end];
}

static inline int32_t hbp__chain_reach(const hbp__chain *chain, int32_t part, int32_t begin)
{
    return chain->reach ? chain->reach[(int64_t)part * (chain->items + 1) + begin] : chain->items;
}

/* A partition's value; its largest load in *most, which may be NULL. O(parts). */
int64_t hbp__chain_value(const hbp__chain *chain, const int32_t *cuts, int64_t *most);

/* The best partitions known, by value and then by earlier cuts, none twice. */
typedef struct hbp__cut_list {
    hbp__memory memory;
    int32_t parts;
    int32_t room;
    int32_t count;
    int64_t *value; /* [room] */
    int32_t *cuts;  /* [room * (parts + 1)], a partition after another */
} hbp__cut_list;

hbp_status hbp__cut_list_open(hbp_context *context, int32_t parts, int32_t room, hbp__cut_list *list);
void hbp__cut_list_close(hbp__cut_list *list);

static inline const int32_t *hbp__cut_list_get(const hbp__cut_list *list, int32_t index)
{
    return list->cuts + (int64_t)index * (list->parts + 1);
}

/* Keeps a partition if it is new and among the best. O(room parts). */
void hbp__cut_list_add(hbp__cut_list *list, const int32_t *cuts, int64_t value);

/* The value that a partition must not pass to come in: that of the last of a full list. */
static inline int64_t hbp__cut_list_worst(const hbp__cut_list *list)
{
    return list->count < list->room ? INT64_MAX : list->value[list->room - 1];
}

/* Fills the list, which may hold some to begin with, with the best partitions that keep to `reach`; *bound is
 * at most the value of any partition that is not in it (of the last in it where that is less), so that a list
 * is right when its last value is no more than *bound. Ends early when *work, counted down by one for each
 * part looked at, is used up. HBP_E_INFEASIBLE without a message when there is no partition at all;
 * HBP_E_CANCELLED. docs/explanation/pipeline.md has the algorithm, its proof and its complexity. */
hbp_status hbp__cut_chain(hbp_context *context, const hbp__chain *chain, int64_t *work, hbp__cut_list *list,
                          int64_t *bound);

/* The partition of earliest cuts [parts + 1] that keeps to `reach`. O(parts items). 1; 0: there is none; < 0:
 * HBP_E_NO_MEMORY. */
int32_t hbp__chain_first(hbp_context *context, const hbp__chain *chain, int32_t *cuts);

/* Parts that workers take in turns, round after round: part p is worker p mod workers'. A worker's load is
 * the sum of its parts' loads; the value of a partition is the chain's weight x the largest load of a worker
 * + the sum of costs and tolls. */
typedef struct hbp__rounds {
    const hbp__chain *chain; /* reach: how far each part gets that is its worker's only one */
    int32_t workers;         /* divides the parts */
    /* By how much `worker` passes its room with those of its parts that are below `parts`; 0: not at all.
     * More parts and longer ones need no less. NULL: there is always room. */
    int64_t (*over)(const void *user, const int32_t *cuts, int32_t parts, int32_t worker);
    const void *user;
} hbp__rounds;

/* A partition's value; loads into load [workers]. O(parts). */
int64_t hbp__rounds_value(const hbp__rounds *rounds, const int32_t *cuts, int64_t *load);

/* Fills the list, which may hold some to begin with, with good partitions that have room: the first is the
 * best of all, the one of earlier cuts among equals, when its value is no more than *bound, which no
 * partition with room is below. Ends early when *work, counted down by one for each part looked at, is used
 * up. Finds none: HBP_E_INFEASIBLE without a message, and nearest [parts + 1] gets the one that was short of
 * room by least. docs/explanation/pipeline.md has the algorithm. */
hbp_status hbp__cut_rounds(hbp_context *context, const hbp__rounds *rounds, int64_t *work,
                           hbp__cut_list *list, int32_t *nearest, int64_t *bound);

#endif
