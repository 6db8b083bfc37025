/* The data set: a length in tokens per sample, or a histogram of lengths. Immutable once made; shareable.
 *
 * Stability: stable. */
#ifndef HBP_LENGTHS_H
#define HBP_LENGTHS_H

#include <stdint.h>

#include "hbp/base.h"

HBP_BEGIN_DECLS

/* The longest sample the library plans for, in tokens: cu_seqlens are int32 (FlashAttention). */
#define HBP_MAX_LENGTH INT32_MAX
/* The most vision units of one sample. */
#define HBP_MAX_VISION INT32_MAX
/* The most samples in one lengths object: orders are held in 32 bits per sample. */
#define HBP_MAX_SAMPLES INT64_C(4294967294)
/* The most of a histogram, of less than 2^63 tokens: what lists samples refuses more than the former, and
 * hbp_plan_patterns lists none. */
#define HBP_MAX_HISTOGRAM_SAMPLES (INT64_C(1) << 36)

/* What to do with samples longer than a limit. */
enum {
    HBP_OVERLONG_ERROR = 0,    /* HBP_E_INVALID; the message counts them and names the first */
    HBP_OVERLONG_DROP = 1,     /* left out, listed in the plan's dropped table */
    HBP_OVERLONG_TRUNCATE = 2, /* cut to the limit */
    HBP_OVERLONG_SPLIT = 3,    /* cut into pieces of at most the limit; pieces keep their order */
    HBP_OVERLONG_ALONE = 4     /* hbp_partition_samples alone: in a part that holds nothing else */
};

/* Why a sample is in the dropped table. */
enum {
    HBP_DROPPED_OVERLONG = 1,   /* longer than the limit */
    HBP_DROPPED_LEFTOVER = 2,   /* in an incomplete last step */
    HBP_DROPPED_OVERVISION = 3, /* more vision units than a pack may hold */
    HBP_DROPPED_LOST = 4        /* lost by a published method that loses samples (hbp_iterative_fill) */
};

/* Modalities are numbered 0..HBP_MAX_MODALITIES - 1. */
#define HBP_MAX_MODALITIES 62

typedef struct hbp_lengths hbp_lengths;
typedef struct hbp_lengths_builder hbp_lengths_builder;

typedef struct hbp_lengths_options {
    uint32_t struct_size;
    int32_t borrow; /* [flag] nonzero: hbp_lengths_create_u32 keeps `lengths` itself, which must outlive it
                       and stay as it is: a change that is noticed is HBP_E_INVALID, any other makes a wrong
                       plan, but nothing is written out of bounds */
    const uint32_t *loss_tokens; /* [count] tokens that carry loss, each <= its length; NULL: all tokens do */
    const int64_t *links; /* [count] samples of one value >= 0 share a pack; -1: free; NULL: all free */
    const uint32_t
        *vision; /* [count] the second size: vision units (images, tiles or vision tokens, whatever
                    the encoder's time is proportional to), 0 for text alone; NULL: no second size */
    const int32_t *modalities; /* [count] modality of sample, 0..HBP_MAX_MODALITIES - 1; NULL: 1 with vision
                                  units, 0 without */
    int32_t shifted_loss; /* [flag] nonzero: no token's loss is that of a sample's first token, which no token
                             of the sample comes before (labels shifted inside the model); of a sample or
                             piece of L tokens at most L - 1 carry loss, and plans record the flag */
} hbp_lengths_options;

/* Makes a data set from an array [count] of tokens per sample; sample i is lengths[i]. Copies, but for
 * u32 lengths with `borrow`. Returns HBP_E_INVALID for count <= 0, a length <= 0, a loss count over the
 * length, a link below -1 or a modality that is none of 0..HBP_MAX_MODALITIES - 1 (the message names the
 * index), HBP_E_OVERFLOW for a length over HBP_MAX_LENGTH, vision units over HBP_MAX_VISION or a count over
 * HBP_MAX_SAMPLES (under these limits no sum passes 2^63 - 1), HBP_E_NO_MEMORY. Thread: one per context. */
HBP_API hbp_status hbp_lengths_create_u32(hbp_context *context, const uint32_t *lengths, int64_t count,
                                          const hbp_lengths_options *options, hbp_lengths **out);
HBP_API hbp_status hbp_lengths_create_i32(hbp_context *context, const int32_t *lengths, int64_t count,
                                          const hbp_lengths_options *options, hbp_lengths **out);
HBP_API hbp_status hbp_lengths_create_i64(hbp_context *context, const int64_t *lengths, int64_t count,
                                          const hbp_lengths_options *options, hbp_lengths **out);

/* Makes a data set from a histogram: counts[i] samples of lengths[i] tokens, both [bins]; lengths need not be
 * sorted or distinct, and a bin with count 0 is skipped whatever its length. Samples are named by their
 * ordinal in ascending order of length. Errors as above, but for up to HBP_MAX_HISTOGRAM_SAMPLES samples. */
HBP_API hbp_status hbp_lengths_create_histogram(hbp_context *context, const int64_t *lengths,
                                                const int64_t *counts, int64_t bins, hbp_lengths **out);

/* Optional columns of a piece, each [count] or NULL; once given they must be given with every piece. */
typedef struct hbp_lengths_columns {
    uint32_t struct_size;
    const int64_t *loss_tokens;
    const int64_t *links;
    const int64_t *vision;
    const int32_t *modalities;
    int32_t shifted_loss; /* [flag] as in hbp_lengths_options; the same with every piece */
} hbp_lengths_columns;

/* Streaming: append pieces in order, `columns` NULL for lengths alone, then finish. finish moves the data
 * out, even when it fails; free the builder in any case. */
HBP_API hbp_status hbp_lengths_builder_create(hbp_context *context, hbp_lengths_builder **out);
HBP_API hbp_status hbp_lengths_builder_append(hbp_context *context, hbp_lengths_builder *builder,
                                              const int64_t *lengths, const hbp_lengths_columns *columns,
                                              int64_t count);
HBP_API hbp_status hbp_lengths_builder_finish(hbp_context *context, hbp_lengths_builder *builder,
                                              hbp_lengths **out);
HBP_API void hbp_lengths_builder_free(hbp_lengths_builder *builder);

/* The data set under a limit of `max_length` tokens per sample: over-long samples are refused, dropped,
 * truncated or split (HBP_OVERLONG_*). Splitting cuts pieces of `max_length` tokens and a rest; a sample's
 * loss tokens fill its pieces from the front, and its vision units stay with the first. Truncating keeps at
 * most `max_length` loss tokens and all vision units. Dropping a linked sample drops those linked to it;
 * linked samples longer than the limit together are otherwise refused. The result is a data set of its own;
 * ids still name the original samples. A histogram stays one unless it is split.
 *
 * Returns HBP_E_INVALID for a refusal, when no sample is left, and when `lengths` is split already and needs
 * another cut; HBP_E_OVERFLOW for more than HBP_MAX_SAMPLES pieces; HBP_E_NO_MEMORY. Thread: one per context.
 */
HBP_API hbp_status hbp_lengths_limit(hbp_context *context, const hbp_lengths *lengths, int64_t max_length,
                                     int32_t policy, hbp_lengths **out);

/* Frees the data set once nothing else (packs, plans) refers to it; NULL is allowed. Thread: any. */
HBP_API void hbp_lengths_free(hbp_lengths *lengths);

/* What a data set holds. After hbp_lengths_limit, `samples` counts pieces and the over-long fields say what
 * became of the samples past the limit. */
typedef struct hbp_lengths_summary {
    uint32_t struct_size;
    int32_t has_links;
    int64_t samples;
    int64_t tokens;
    int64_t loss_tokens;
    int64_t min_length;
    int64_t max_length;
    int64_t distinct_lengths;
    int64_t overlong_samples; /* samples that were past the limit */
    int64_t overlong_tokens;  /* tokens dropped or cut off, those of linked samples included; 0 for split */
    uint64_t digest;          /* of all columns in order: two equal data sets agree */
    double sum_squares;       /* of lengths, in tokens^2 (exact up to 2^53) */
    int64_t vision;           /* vision units in all; -1: the data set has no second size */
    int64_t min_vision;       /* of one sample */
    int64_t max_vision;
    int64_t modalities;   /* modalities that occur, bit k for modality k */
    int32_t shifted_loss; /* nonzero: as in hbp_lengths_options; loss_tokens counts no first token */
    int32_t is_histogram; /* nonzero: samples are those of a histogram, in order of length */
    const char *column;   /* the column or field of a file that hbp_lengths_load took for the length unasked,
                             as "tokens"; static text. NULL: the caller named it, or there are no names */
} hbp_lengths_summary;

/* Fills *summary. Thread: shareable. */
HBP_API hbp_status hbp_lengths_get_summary(hbp_context *context, const hbp_lengths *lengths,
                                           hbp_lengths_summary *summary);

/* The histogram of a data set (docs: views). */
typedef struct hbp_lengths_view {
    uint32_t struct_size;
    int64_t distinct_lengths;
    const int64_t *histogram_lengths; /* [distinct_lengths] ascending, tokens */
    const int64_t *histogram_counts;  /* [distinct_lengths] samples (pieces) of each */
} hbp_lengths_view;

/* Fills *view, whose columns are owned by the data set. Thread: shareable. */
HBP_API hbp_status hbp_lengths_get_view(const hbp_lengths *lengths, hbp_lengths_view *view);

/* The length of sample (piece) `index` in tokens, or -1 when there is none. Thread: shareable. */
HBP_API int64_t hbp_lengths_get_length(const hbp_lengths *lengths, int64_t index);

/* The vision units of sample (piece) `index`: 0 without a second size; a split sample has all of them in its
 * first piece. The modality: every piece has that of its sample. -1 when there is no such sample. Thread:
 * shareable. */
HBP_API int64_t hbp_lengths_get_vision(const hbp_lengths *lengths, int64_t index);
HBP_API int32_t hbp_lengths_get_modality(const hbp_lengths *lengths, int64_t index);

HBP_END_DECLS

#endif
