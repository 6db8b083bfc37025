/* Steps that are each a draw from every stratum of lengths, for several numbers of them: what does not depend
 * on the number is found once. */
#ifndef HBP_EPOCH_DEAL_H
#define HBP_EPOCH_DEAL_H

#include "epoch/units.h"

typedef struct hbp__deal {
    hbp__units units;
    hbp__batches early; /* the curriculum's steps */
    int64_t rest;       /* single samples that samples_per_step leaves for a last step */
    int64_t count;      /* of units to be dealt */
    uint32_t *unit;     /* [count] items */
    int64_t *weight;    /* [count] rank-time at degree 1, without what packs pay once */
    int64_t *tokens;    /* [count] */
    uint32_t *order;    /* [count] rows of these, heaviest first */
    uint32_t *bin;      /* [count] the step of each */
} hbp__deal;

/* What is to be dealt beside the curriculum's steps, which are of samples of at most `shortest` tokens; to
 * numbers of steps, or (is_counted) to as many as samples_per_step asks for. The epoch is to outlive it.
 * Close in any case, in the place where it was opened: most of it is scratch. O(samples). */
hbp_status hbp__deal_open(const hbp__epoch *epoch, int64_t shortest, int is_counted, hbp__deal *deal);
void hbp__deal_close(hbp__deal *deal);

/* The batches of so many steps, the curriculum's among them (is_counted: 0). Close these in any case.
 * O(samples log steps). */
hbp_status hbp__deal_cut(hbp__deal *deal, int64_t steps, hbp__batches *batches);

#endif
