/* The inside of a data set. */
#ifndef HBP_DATA_LENGTHS_H
#define HBP_DATA_LENGTHS_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/context.h"
#include "hbp/lengths.h"

/* Not linked. */
#define HBP__FREE UINT32_MAX

struct hbp_lengths {
    hbp__memory memory;
    atomic_int references;
    int64_t count;          /* samples, or pieces after a limit */
    const uint32_t *length; /* [count]; NULL for a histogram: pieces are then in ascending order of length */
    uint32_t *owned;        /* what `length` points to, unless it is the caller's */
    uint32_t *loss;         /* [count] loss tokens, those of a shift not taken off; NULL: all tokens */
    uint32_t *link;         /* [count] link group in [0, links), or HBP__FREE; NULL: none */
    int64_t links;
    int64_t *link_value; /* [links] the caller's value of a link group */
    uint32_t *vision;    /* [count] vision units; NULL: no second size */
    uint8_t *modality;   /* [count] kind of sample; NULL: 1 with vision units, 0 without */
    uint32_t *origin;    /* [count] original sample of a piece; NULL: the piece itself */
    uint32_t *first;     /* [count] first token of a piece in its sample; NULL: 0, nothing was split */
    int64_t dropped;
    int64_t *dropped_id; /* [dropped] original samples left out */
    int32_t *dropped_reason;
    int64_t overlong_samples;
    int64_t overlong_tokens;
    int64_t bins;        /* the histogram, always there */
    int64_t *bin_length; /* [bins] distinct, ascending */
    int64_t *bin_count;  /* [bins] > 0 */
    int64_t *bin_first;  /* [bins + 1] pieces shorter than the bin's; the last is count */
    int64_t tokens;
    int64_t loss_tokens;
    double sum_squares;
    int64_t vision_sum; /* 0 without a second size, as the next two */
    int64_t min_vision;
    int64_t max_vision;
    int64_t modalities; /* mask of the kinds that occur */
    int32_t shifted_loss;
    const char *column; /* static: the name by which a file's lengths were found unasked; NULL: none */
    uint64_t digest;    /* of the original columns; a limit that cuts mixes itself in */
};

/* One more owner; hbp_lengths_free drops one. Lengths are shareable, so the count is atomic. */
hbp_lengths *hbp__lengths_retain(const hbp_lengths *lengths);

/* HBP_E_INVALID for NULL, HBP_E_OVERFLOW for a histogram of more samples than can be listed; `name` is the
 * argument's. */
hbp_status hbp__require_samples(hbp_context *context, const hbp_lengths *lengths, const char *name);

/* The digest of lengths and how often each occurs, whatever else the samples have: that of the histogram.
 * O(bins). */
uint64_t hbp__histogram_digest(const hbp_lengths *lengths);
uint64_t hbp__bins_digest(const int64_t *length, const int64_t *count, int64_t bins);

/* Whether a sample is no more than its length and its number. */
static inline int hbp__lengths_are_bare(const hbp_lengths *lengths)
{
    return !lengths->loss && !lengths->origin && !lengths->first && !lengths->modality;
}

/* Piece i's length; O(1) for arrays, O(log bins) for a histogram. */
int64_t hbp__lengths_get(const hbp_lengths *lengths, int64_t index);

/* Piece i's vision units, 0 without a second size, and its kind. O(1). */
static inline int64_t hbp__lengths_vision(const hbp_lengths *lengths, int64_t index)
{
    return lengths->vision ? lengths->vision[index] : 0;
}

/* Piece i's loss tokens, of `length`, which is its own: a shift takes one off where all carry loss. O(1). */
static inline int64_t hbp__lengths_loss(const hbp_lengths *lengths, int64_t index, int64_t length)
{
    int64_t loss = lengths->loss ? lengths->loss[index] : length;
    return lengths->shifted_loss && loss == length ? length - 1 : loss;
}

/* Vision units a token, of all the data. */
static inline double hbp__lengths_density(const hbp_lengths *lengths)
{
    return (double)lengths->vision_sum / (double)lengths->tokens;
}

static inline int32_t hbp__lengths_modality(const hbp_lengths *lengths, int64_t index)
{
    return lengths->modality ? lengths->modality[index] : hbp__lengths_vision(lengths, index) > 0;
}

/* The pieces in ascending order of length into a new array *order [count] (freed by the caller with the
 * context's memory); within one length their order is a draw from (seed, epoch). A histogram's order is the
 * identity. O(count); scratch is 4 bytes a piece. */
hbp_status hbp__lengths_order(hbp_context *context, const hbp_lengths *lengths, uint64_t seed, uint64_t epoch,
                              uint32_t **order);

#endif
