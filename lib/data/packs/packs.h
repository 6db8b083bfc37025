/* The inside of packs; made by pack/. */
#ifndef HBP_DATA_PACKS_H
#define HBP_DATA_PACKS_H

#include <stdint.h>

#include "base/context.h"
#include "data/lengths/lengths.h"
#include "data/packs/groups.h"
#include "data/packs/padding.h"
#include "hbp/pack.h"

struct hbp_packs {
    hbp__memory memory;
    hbp_lengths *lengths; /* retained */
    int64_t count;
    int64_t samples;  /* of all packs */
    int64_t *offsets; /* [count + 1] into sample */
    int32_t *group;   /* [count] */
    int64_t *tokens;  /* [count] */
    int64_t *padded;  /* [count] */
    int64_t *squares; /* [count] sum of squared lengths */
    int64_t *vision;  /* [count] vision units; NULL: no second size */
    uint32_t *sample; /* [samples] pieces */
    /* [samples] lengths of the pieces in `sample`, 0 for one past 65535; NULL where the fill did not have
     * them at hand. Looking a length up by its piece is a cache miss, and a plan needs every one. */
    uint16_t *brief;
    int64_t unmeasured; /* packs before this one lack tokens, padded, squares and vision; all new ones do */
    int64_t max_vision[HBP_MAX_GROUPS]; /* that a pack of the group may hold; INT64_MAX: no limit */
    int64_t dropped; /* pieces that the fill left out; samples + dropped = lengths->count */
    uint32_t *dropped_sample;
    int32_t *dropped_reason;       /* HBP_DROPPED_* */
    int64_t bound[HBP_MAX_GROUPS]; /* lower bound on the packs of a group */
    int64_t groups;
    int64_t sequence_multiple; /* >= 1 */
    int64_t pack_multiple;     /* >= 1 */
    /* What a plan of these packs records, each by its group's degree; the fill's multiples must be common
     * multiples of that for every group. All 0: the fill's own. */
    hbp__padding padding;
};

/* Packs with room for `count` packs and every piece of `lengths` (which it retains), columns uninitialised,
 * nothing dropped, no limit on vision units; NULL when memory is short. */
hbp_packs *hbp__packs_new(hbp_context *context, const hbp_lengths *lengths, int64_t count);

/* Makes room for `count` packs, what is there is kept; 0 when memory is short. Sets no count. */
int hbp__packs_reserve(hbp_packs *packs, int64_t count);

/* Fills tokens, padded, squares and vision from offsets, sample and the lengths; HBP_OK or HBP_E_CANCELLED.
 * O(samples). */
hbp_status hbp__packs_measure(hbp_context *context, hbp_packs *packs);
/* The same of the packs that are still unmeasured, and of one pack. */
hbp_status hbp__packs_measure_rest(hbp_context *context, hbp_packs *packs);
void hbp__packs_measure_pack(hbp_packs *packs, int64_t pack);

/* A length as a row of `brief`. */
static inline uint16_t hbp__brief_of(int64_t length)
{
    return length <= UINT16_MAX ? (uint16_t)length : 0;
}

/* Length of the i-th sample of the packs. */
static inline int64_t hbp__packs_length(const hbp_packs *packs, int64_t i)
{
    return packs->brief && packs->brief[i] ? packs->brief[i]
                                           : hbp__lengths_get(packs->lengths, packs->sample[i]);
}

#endif
