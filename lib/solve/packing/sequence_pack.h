/* Packers that take items one at a time, in an order given. */
#ifndef HBP_SOLVE_SEQUENCE_PACK_H
#define HBP_SOLVE_SEQUENCE_PACK_H

#include "base/rng.h"
#include "solve/packing/patterns.h"

/* Items in the order of packing; each fits a pack. */
typedef struct hbp__sequence {
    int64_t count;
    const uint32_t *item;   /* [count] which item comes when */
    const uint32_t *size;   /* by item */
    const uint32_t *weight; /* by item; NULL: 1 */
} hbp__sequence;

/* Each writes pack_of[item] for the items of the sequence, packs numbered from *packs on in order of opening,
 * and advances *packs. */

/* Next fit: a pack is closed for good when the next item does not fit. O(count). */
hbp_status hbp__next_fit(hbp_context *context, const hbp__sequence *sequence, hbp__room room,
                         uint32_t *pack_of, int64_t *packs);

/* First fit: the first pack opened that has room. O(count log packs). */
hbp_status hbp__first_fit(hbp_context *context, const hbp__sequence *sequence, hbp__room room,
                          uint32_t *pack_of, int64_t *packs);

/* Iterative sampling and filtering (OmniBal, arXiv 2407.20761) on sizes alone: next fit over a shuffle, full
 * packs are kept, the items of the others are shuffled and packed again, `rounds` times in all. A pack is
 * full that lacks at most 128, or 1/32 of small capacities. No item is lost. O(count rounds) at worst. */
hbp_status hbp__iterative_fit(hbp_context *context, const hbp__sequence *sequence, hbp__room room,
                              int64_t rounds, hbp__rng *rng, uint32_t *pack_of, int64_t *packs);

#define HBP__ISF_ROUNDS 50

#endif
