/* The plain call: samples into parts (packs, micro-batches, ranks) by their lengths alone, with no model, no
 * machine and no cost.
 *
 * Stability: stable. */
#ifndef HBP_PARTITION_H
#define HBP_PARTITION_H

#include <stdint.h>

#include "hbp/lengths.h"

HBP_BEGIN_DECLS

/* The most parts. */
#define HBP_MAX_PARTS INT32_MAX

typedef struct hbp_partition hbp_partition;

/* Every bound holds for every part. */
typedef struct hbp_partition_options {
    uint32_t struct_size;
    int32_t over_long;   /* [HBP_OVERLONG_*] for samples longer than `capacity` */
    int64_t parts;       /* [0..HBP_MAX_PARTS] how many; 0: as few as are found that keep to capacity and
                            max_samples, then as many more as min_parts, multiple_of and equal_count ask for */
    int64_t min_parts;   /* [0..HBP_MAX_PARTS] where `parts` is 0: at least so many */
    int64_t multiple_of; /* [0..HBP_MAX_PARTS] where `parts` is 0: a multiple of it; 0: 1 */
    int64_t capacity; /* [0..INT64_MAX] tokens of a part, where `parts` is 0 at most HBP_MAX_LENGTH; 0: any */
    int64_t max_samples; /* [0..INT64_MAX] samples of a part; 0: any number */
    int32_t equal_count; /* [flag] nonzero: all parts hold the same number of samples */
    int32_t allow_empty; /* [flag] nonzero: there may be more parts than samples; the last are empty */
    int32_t
        effort; /* [0..9] where `parts` is 0: 0 packs greedily, 1..9 search for fewer parts at growing cost */
    const int64_t *weights; /* [count] >= 0, all 0: no balance; NULL: in what the next two say */
    int64_t linear;         /* [0..INT64_MAX] a sample of L tokens weighs linear L + square L^2; both 0: L */
    int64_t square;         /* [0..INT64_MAX] */
    const int64_t *links;   /* [count] samples of one value >= 0 share a part; -1: free; NULL: all free */
    const int64_t *classes; /* [count] samples of two values never share a part; NULL: all are of one */
} hbp_partition_options;

/* Puts samples of `lengths` [count] tokens into parts, the heaviest of which is to be light. All in one call,
 * without a context: free the partition with hbp_partition_free. Memory comes from malloc.
 *
 * Over-long samples are an error, dropped, truncated or split as hbp_lengths_limit does it (a piece counts as
 * a sample), or alone: in a part that holds nothing else and is over `capacity`. Linked samples that are
 * longer together are alone, too, or an error.
 *
 * The number of parts is found by bin packing, the balance by Graham's rule of the longest processing time
 * (1969) and exchanges between parts; view.least_parts and view.bound say how far from the best it may be.
 * The same answer every time. O(n log n).
 *
 * HBP_E_INVALID for a count or length below 1, options out of range or that exclude each other, counts that
 * do not divide, more parts than samples, over-long samples where they are an error; HBP_E_INFEASIBLE where
 * no such parts exist or, with links, classes or a tight capacity, none were found; HBP_E_OVERFLOW where
 * lengths or weights pass 2^62 in all or pieces HBP_MAX_SAMPLES; HBP_E_NO_MEMORY. On failure *out is NULL and
 * `why` [why_bytes] gets the message, cut where it does not fit; `why` may be NULL. Thread: any. */
HBP_API hbp_status hbp_partition_samples(const int64_t *lengths, int64_t count,
                                         const hbp_partition_options *options, hbp_partition **out, char *why,
                                         int64_t why_bytes);

/* Frees the partition; NULL is allowed. Thread: any. */
HBP_API void hbp_partition_free(hbp_partition *partition);

/* The parts (docs: views), in the order of their first sample; the samples of part k are those from
 * part_offsets[k] up to part_offsets[k + 1], ascending. */
typedef struct hbp_partition_view {
    uint32_t struct_size;
    int64_t parts;
    int64_t samples;             /* in all parts; pieces count */
    int64_t dropped;             /* samples that over_long left out */
    int64_t least_parts;         /* no partition under capacity, max_samples, links, classes, min_parts and
                                    multiple_of         has fewer parts */
    int64_t heaviest;            /* weight of the heaviest part */
    int64_t bound;               /* no partition into as many parts has a lighter heaviest one */
    const int64_t *part_offsets; /* [parts + 1] */
    const int64_t *part_tokens;  /* [parts] */
    const int64_t *part_weights; /* [parts] */
    const int64_t *sample_ids;   /* [samples] places in `lengths` */
    const int64_t *sample_first_tokens; /* [samples] 0 but for pieces of split samples */
    const int64_t *sample_tokens;       /* [samples] */
    const int64_t *dropped_ids;         /* [dropped] */
} hbp_partition_view;

/* Fills *view, whose columns are owned by the partition. Thread: shareable. */
HBP_API hbp_status hbp_partition_get_view(const hbp_partition *partition, hbp_partition_view *view);

HBP_END_DECLS

#endif
