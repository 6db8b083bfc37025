/* Slices on a board of ranks: who holds what, what flows between them, and what it costs to exchange ranks.
 * Every method of placement works on one. */
#ifndef HBP_TASKS_PLACE_BOARD_H
#define HBP_TASKS_PLACE_BOARD_H

#include <stdint.h>

#include "base/bits.h"
#include "tasks/problem.h"
#include "tasks/tuning.h"

/* An output handed from one slice to another. */
typedef struct hbp__board_flow {
    int32_t from;
    int32_t to;
    int64_t bytes; /* scaled */
    int64_t cost;
} hbp__board_flow;

/* Weights that several slices run, always the same slices: as one. */
typedef struct hbp__bundle {
    int64_t first; /* in users */
    int64_t end;
    int64_t gradient;    /* bytes, scaled */
    int64_t reuse_first; /* in reuses */
    int64_t reuse_end;
    int64_t cost;
    int32_t is_uniform; /* all its operators' states have the same sizes */
} hbp__bundle;

/* A slice that runs a bundle: bytes that its states take on each of the slice's ranks. Of several on a rank
 * the largest counts. */
typedef struct hbp__user {
    int32_t slice;
    int64_t bytes;
} hbp__user;

/* Of a slice: a bundle, and the bytes as in hbp__user. */
typedef struct hbp__slice_bundle {
    int32_t bundle;
    int64_t bytes;
} hbp__slice_bundle;

/* States that ranks of a group of the schedule before held. */
typedef struct hbp__reuse {
    int32_t group;
    int64_t bytes; /* scaled, and divided by HBP__REUSE_STEPS */
} hbp__reuse;

typedef struct hbp__board {
    hbp_context *context;
    const hbp__task_problem *problem;
    const hbp__task_slice *slice;
    int32_t count; /* slices */
    int32_t gpus;
    int32_t domain_gpus;
    int32_t domains;
    int32_t *domain_of; /* [gpus] */
    int64_t words;      /* of a set of ranks */
    int32_t shift;      /* bytes are divided by 2^shift so that no cost overflows */

    uint32_t *order; /* [count] slices by start */
    int32_t *at;     /* [count] place of a slice in it */
    int32_t *low;    /* [count] by slice: those that overlap it in time are order[low] .. order[high - 1], */
    int32_t *high;   /* [count] some that do not among them */

    uint64_t *set;       /* [count x words] ranks of each slice; none: not placed */
    int32_t *in_domain;  /* [count x domains] how many of them in each domain */
    int64_t *rank_bytes; /* [gpus] */
    int64_t over_bytes;  /* above limit_bytes, summed over ranks */
    int64_t cost;
    int64_t least_cost; /* no placement costs less */

    hbp__board_flow *flow; /* [flows] */
    int64_t flows;
    int64_t *flow_first; /* [count + 1] flow_of[flow_first[s] ..]: flows that begin or end in slice s */
    int64_t *flow_of;

    int64_t *own_bytes;    /* [count] on each of its ranks: activations, states of weights that no other slice
                              runs */
    int64_t *own_gradient; /* [count] gradients of those weights, scaled */
    int64_t *own_span;     /* [count] what a slice pays for a domain more, scaled */
    int64_t *own_cost;     /* [count] domains that it spans, less what it reuses */
    int64_t *reuse_first;  /* [count + 1] reuses of a slice's own weights */
    hbp__reuse *reuse;
    int64_t reuses;
    uint64_t *group_set; /* [groups x words] ranks of groups of the schedule before */
    hbp__bundle *bundle; /* [bundles] */
    int32_t bundles;
    hbp__user *user;
    int64_t *share_first; /* [count + 1] share[share_first[s] ..]: bundles of a slice */
    hbp__slice_bundle *share;

    /* What costs count: flows always; the rest when nonzero. */
    int32_t counts_weights;

    /* Scratch of moves (place_move.c). */
    int32_t *moved;        /* [count] slices that a move changes */
    int64_t *changed;      /* [count] number of the last exchange kept that changed a slice */
    int64_t changes;       /* exchanges kept */
    uint32_t *seen;        /* [count] number of the move that last saw a slice */
    uint32_t *flow_seen;   /* [flows] */
    uint32_t *bundle_seen; /* [bundles] */
    int32_t *bundles_hit;  /* [bundles] */
    int64_t *old_cost;     /* [flows + bundles + count] */
    int64_t *flow_hit;     /* [flows] */
    int64_t *old_bytes;    /* [gpus] */
    uint64_t *mask;        /* [2 x words] */
    int64_t *held;         /* [gpus] zeros between calls */
    uint32_t stamp;
    int64_t work; /* done so far, in words looked at: what bounds searches */
} hbp__board;

/* Ranks first[i] and second[i] change places; all 2 pairs of them are different. */
typedef struct hbp__exchange {
    const int32_t *first;
    const int32_t *second;
    int32_t pairs;
} hbp__exchange;

/* Which slices an exchange begins with; those that would collide with them follow. */
enum {
    HBP__REACH_ONE = 0,    /* the slice */
    HBP__REACH_AFTER = 1,  /* it and all that start later */
    HBP__REACH_BEFORE = 2, /* it and all that start before */
    HBP__REACHES = 3
};

/* Opens a board, in scratch, with nothing placed. HBP_E_INVALID when slices need more than `gpus` GPUs at
 * some time; the message names the slice that finds too few. */
hbp_status hbp__board_open(hbp_context *context, const hbp__task_problem *problem,
                           const hbp__task_slices *slices, const hbp_task_schedule *previous,
                           hbp__board *board);

/* place_weights.c: own_bytes, own_gradient, bundles and reuses. For hbp__board_open. */
hbp_status hbp__board_weigh(hbp__board *board, const hbp_task_schedule *previous);

/* Puts slice s on `ranks` [gpus of the slice], in place of those that it had. Costs and bytes are those of
 * the last hbp__board_measure. O(words + domains). */
void hbp__board_put(hbp__board *board, int32_t s, const int32_t *ranks);
void hbp__board_clear(hbp__board *board);

/* Computes rank_bytes, over_bytes and all costs anew. Slices that are not placed take and cost nothing. */
void hbp__board_measure(hbp__board *board);

/* The same of rank_bytes and over_bytes alone. */
void hbp__board_measure_bytes(hbp__board *board);

/* Bytes that bundle k takes on rank r. */
int64_t hbp__board_held(const hbp__board *board, int32_t k, int32_t r);

/* Bytes that rank r would take more with slice s. */
int64_t hbp__board_added(const hbp__board *board, int32_t s, int32_t r);

/* Adds to added[r], of each of `ranks` [count], what it would take more of one bundle of a slice. O(ranks +
 * those of the bundle's users). */
void hbp__board_add_bundle(hbp__board *board, const hbp__slice_bundle *share, const int32_t *ranks,
                           int32_t count, int64_t *added);

/* Bytes that slice s takes on a rank that holds nothing. */
int64_t hbp__board_alone(const hbp__board *board, int32_t s);

/* Flows' cost by data/tasks/flow.h, in bytes: moved + (HBP__CROSSING - 1) crossing; saturates. */
int64_t hbp__board_flow_cost(const hbp__board *board, const int32_t *ranks);

/* All ranks, as hbp__place_slices writes them. */
void hbp__board_write(const hbp__board *board, int32_t *ranks);

/* Ranks that slices on the board use while slice s runs: `used` [words]. */
void hbp__board_used(const hbp__board *board, int32_t s, uint64_t *used);

/* Exchanges ranks in slice s and those that `reach` says, and in whatever overlaps these in time and runs on
 * exactly one rank of a pair, and so on: after that still no rank runs two slices at a time. Keeps it, and
 * returns 1, when over_bytes falls, or stays and the cost falls; else undoes it and returns 0. */
int32_t hbp__board_try(hbp__board *board, const hbp__exchange *exchange, int32_t s, int32_t reach);

/* The same, kept in any case as long as over_bytes does not grow. */
int32_t hbp__board_force(hbp__board *board, const hbp__exchange *exchange, int32_t s, int32_t reach);

/* place_cost.c: divides bytes so that no cost overflows, and finds least_cost. For hbp__board_open. */
void hbp__board_scale(hbp__board *board);

/* Cost parts, for hbp__board_measure and moves. */
int64_t hbp__board_cost_flow(const hbp__board *board, const hbp__board_flow *flow);
int64_t hbp__board_cost_bundle(hbp__board *board, const hbp__bundle *bundle);
int64_t hbp__board_cost_own(const hbp__board *board, int32_t s);

static inline uint64_t *hbp__board_set(const hbp__board *board, int32_t s)
{
    return board->set + s * board->words;
}

static inline int32_t *hbp__board_domains(const hbp__board *board, int32_t s)
{
    return board->in_domain + (int64_t)s * board->domains;
}

static inline int32_t hbp__has_rank(const uint64_t *set, int32_t r)
{
    return (int32_t)(set[r >> 6] >> (r & 63) & 1);
}

static inline void hbp__flip_rank(uint64_t *set, int32_t r)
{
    set[r >> 6] ^= UINT64_C(1) << (r & 63);
}

/* Bits set in a word (Hacker's Delight, section 5-1). */
static inline int32_t hbp__count_bits(uint64_t word)
{
    word -= word >> 1 & UINT64_C(0x5555555555555555);
    word = (word & UINT64_C(0x3333333333333333)) + (word >> 2 & UINT64_C(0x3333333333333333));
    word = (word + (word >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    return (int32_t)(word * UINT64_C(0x0101010101010101) >> 56);
}

static inline int32_t hbp__count_common(const uint64_t *a, const uint64_t *b, int64_t words)
{
    int32_t common = 0;
    for (int64_t w = 0; w < words; w++)
        common += hbp__count_bits(a[w] & b[w]);
    return common;
}

#endif
