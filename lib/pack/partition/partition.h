/* Inside the plain call: samples become items, items get parts, parts become the caller's columns. */
#ifndef HBP_PACK_PARTITION_H
#define HBP_PACK_PARTITION_H

#include <stdint.h>

#include "base/context.h"
#include "hbp/partition.h"
#include "solve/multiway.h"

struct hbp_partition {
    hbp__memory memory;
    int64_t parts, samples, dropped, least_parts, heaviest, bound;
    int64_t *offsets;                           /* [parts + 1] */
    int64_t *part_tokens, *part_weights;        /* [parts] */
    int64_t *id, *first_tokens, *sample_tokens; /* [samples] */
    int64_t *dropped_id;                        /* [dropped] */
};

/* What no sum of lengths or weights passes. */
#define HBP__MOST_WEIGHT (INT64_C(1) << 62)

/* The samples of one call. All scratch. */
typedef struct hbp__partition_call {
    hbp_context *context;
    const hbp_partition_options *options;
    const int64_t *length; /* [count] the caller's */
    int64_t count;
    int64_t capacity; /* INT64_MAX: none */
    int64_t most_samples;
    /* What parts hold: samples, or pieces of them, in order. */
    int64_t entries;
    int64_t *id, *first, *tokens; /* [entries] */
    uint32_t *item;               /* [entries] */
    int64_t dropped;
    int64_t *dropped_id;
    /* Items: linked samples are one. Those of a class are neighbours, classes in the order of their first
     * sample; an item that is alone is a class of its own. */
    int64_t items, weight_sum;
    int64_t *weight, *size; /* [items] */
    int32_t *samples;       /* [items] */
    int64_t classes;
    int64_t *class_first; /* [classes + 1] */
    int has_links, has_sizes;
    /* Their parts. */
    int64_t parts;
    uint32_t *part; /* [items] */
    int64_t least_parts, bound;
} hbp__partition_call;

/* Checks the samples and makes entries and items of them. O(n). */
hbp_status hbp__partition_items(hbp__partition_call *call);

/* Gives each item a part, numbered 0..parts - 1. */
hbp_status hbp__partition_parts(hbp__partition_call *call);

/* hbp_partition_samples in a context. */
hbp_status hbp__partition_samples(hbp_context *context, const int64_t *lengths, int64_t count,
                                  const hbp_partition_options *options, hbp_partition **out);

#endif
