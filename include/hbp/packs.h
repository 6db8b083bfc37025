/* Which samples share a pack (HBP, Algorithms 2, 5 and 6). Immutable once made; shareable. */
#ifndef HBP_PACKS_H
#define HBP_PACKS_H

#include <stdint.h>

#include "hbp/context.h"
#include "hbp/groups.h"
#include "hbp/lengths.h"

enum {
    HBP_FILL_BALANCED =
        0,              /* packs of a micro-batch alike in tokens and squares, each step a mix (docs: fill) */
    HBP_FILL_TIGHT = 1, /* the fewest packs: never more than best fit decreasing */
    HBP_FILL_PAPER = 2  /* iterative fill, then first-fit greedy fill of the gaps, as published */
};

HBP_BEGIN_DECLS

typedef struct hbp_packs hbp_packs;

typedef struct hbp_fill_options {
    uint32_t struct_size;
    int32_t mode;   /* HBP_FILL_* */
    int32_t effort; /* 0 greedy, 1..9 search for fewer packs at growing cost; at least 1 in balanced mode,
                       where only data that pack badly are searched */
    int32_t max_samples; /* per pack; 0: no cap */
    int64_t
        sequence_multiple; /* each sample is padded to a multiple of it (context parallelism, FP8); 0: 1 */
    int64_t pack_multiple; /* each pack is padded to a multiple of it (tokens % sp); 0: 1 */
    uint64_t seed;
    uint64_t epoch; /* another epoch, another draw; the same (seed, epoch), the same packs */
} hbp_fill_options;

HBP_API void hbp_fill_options_init(hbp_fill_options *options, uint32_t struct_size);

/* Fills packs of every group, longest group first; gaps in long packs take samples of shorter groups. No
 * sample is lost; ties share a pack; capacity holds after padding. HBP_E_INFEASIBLE names a sample, or tied
 * samples, that fit no pack. Balanced mode: O(n + m log m) for n samples, m = n / packs of a micro-batch.
 * Thread: one per context. */
HBP_API hbp_status hbp_greedy_fill(hbp_context *context, const hbp_lengths *lengths, const hbp_groups *groups,
                                   const hbp_fill_options *options, hbp_packs **out);

HBP_API void hbp_packs_free(hbp_packs *packs);

/* The columns of packs (docs: views). */
typedef struct hbp_packs_view {
    uint32_t struct_size;
    int64_t packs;
    int64_t samples; /* (pieces) in packs */
    int64_t dropped; /* (pieces) that the fill left out; 0 for every fill but hbp_iterative_fill */
    const int64_t *pack_offsets;       /* [packs + 1] into the samples */
    const int32_t *pack_groups;        /* [packs] row of the groups */
    const int64_t *pack_tokens;        /* [packs] */
    const int64_t *pack_padded_tokens; /* [packs] */
    const int64_t *pack_squares;       /* [packs] sum of squared lengths */
    const int64_t *pack_vision;        /* [packs] vision units; NULL when the lengths have no second size */
    const uint32_t *sample_indices;    /* [samples] into the lengths, packs laid end to end */
    const uint32_t *dropped_indices;   /* [dropped] into the lengths */
    const int32_t *dropped_reasons;    /* [dropped] HBP_DROPPED_* */
} hbp_packs_view;

HBP_API hbp_status hbp_packs_get_view(const hbp_packs *packs, hbp_packs_view *view);

/* A lower bound on the number of packs in group `index` for the samples it holds: ceil(padded tokens / pack
 * length), or better where one is known; -1 for no such group. */
HBP_API int64_t hbp_packs_get_bound(const hbp_packs *packs, int64_t index);

HBP_END_DECLS

#endif
