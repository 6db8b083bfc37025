/* How a data set comes into being: a draft gets its columns, then it is sealed. */
#ifndef HBP_DATA_LENGTHS_MAKE_H
#define HBP_DATA_LENGTHS_MAKE_H

#include <stdint.h>

#include "base/context.h"
#include "base/digest.h"
#include "data/lengths/lengths.h"

/* Samples between two ticks; also the block of the digest, so it never changes. */
#define HBP__LENGTHS_BLOCK INT64_C(32768)

/* Lengths up to this get a slot of a direct table: few enough that the table stays small. */
int64_t hbp__lengths_table(int64_t count, int64_t max_length);

/* The longest of these lengths and of `longest` >= 1; 0 where one of them is 0. */
uint32_t hbp__lengths_longest(const uint32_t *length, int64_t count, uint32_t longest);

/* An empty data set with one owner, its columns to come from `memory`; hbp_lengths_free releases it. NULL,
 * and a message, when memory is short. */
hbp_lengths *hbp__lengths_draft(hbp_context *context, const hbp__memory *memory);

/* The failures of a single sample; `unit` is what the caller calls it ("sample"). */
hbp_status hbp__lengths_check(hbp_context *context, const char *unit, int64_t index, int64_t length);
hbp_status hbp__lengths_check_loss(hbp_context *context, int64_t index, int64_t loss, int64_t length);
hbp_status hbp__lengths_check_link(hbp_context *context, int64_t index, int64_t link);
hbp_status hbp__lengths_check_vision(hbp_context *context, int64_t index, int64_t vision);
hbp_status hbp__lengths_check_modality(hbp_context *context, int64_t index, int64_t modality);
hbp_status hbp__lengths_check_count(hbp_context *context, int64_t count);

/* HBP_E_INVALID: the caller's array changed between two looks at it. Whatever indexes by a length that it
 * reads again, or fills room counted by one, holds itself to its bounds and ends with this. */
hbp_status hbp__lengths_changed(hbp_context *context);

/* Sets link, links and link_value from the values [count], all >= -1. Groups are numbered by their first
 * sample, so that equal partitions get equal numbers whatever the values; a group of one sample is free.
 * O(count). */
hbp_status hbp__lengths_link(hbp_context *context, hbp_lengths *draft, const int64_t *links);

/* Room for `bins` bins, counts zeroed. */
hbp_status hbp__lengths_new_bins(hbp_context *context, hbp_lengths *draft, int64_t bins);

/* From count and the columns: bins, sums and digest. A loss column that covers every token is let go, as are
 * kinds that follow from the vision units. No length is above `longest`; 0: not known. O(count), one table of
 * at most 16 MiB beside the columns. */
hbp_status hbp__lengths_seal(hbp_context *context, hbp_lengths *draft, uint32_t longest);

/* The digest of a column of lengths that comes in pieces. */
typedef struct hbp__lengths_digest {
    hbp__digest digest;
    int64_t count; /* of the column */
    int64_t done;
} hbp__lengths_digest;

hbp__lengths_digest hbp__lengths_digest_begin(int64_t count);
/* The next `count` of the column, no more than it has. */
void hbp__lengths_digest_take(hbp__lengths_digest *digest, const uint32_t *length, int64_t count);
/* Of samples that have nothing but these lengths: the digest that hbp__lengths_seal gives them. */
uint64_t hbp__lengths_digest_bare(const hbp__lengths_digest *digest, int32_t shifted_loss);

/* The same for a histogram, from bins, bin_length and bin_count. O(bins). */
hbp_status hbp__lengths_seal_histogram(hbp_context *context, hbp_lengths *draft);

/* The functions of the same names within a call. */
hbp_status hbp__lengths_builder_create(hbp_context *context, hbp_lengths_builder **out);
hbp_status hbp__lengths_builder_append(hbp_context *context, hbp_lengths_builder *builder,
                                       const int64_t *lengths, const hbp_lengths_columns *columns,
                                       int64_t count);
hbp_status hbp__lengths_builder_finish(hbp_context *context, hbp_lengths_builder *builder, hbp_lengths **out);
hbp_status hbp__lengths_create_i64(hbp_context *context, const int64_t *lengths, int64_t count,
                                   const hbp_lengths_options *options, hbp_lengths **out);
hbp_status hbp__lengths_create_histogram(hbp_context *context, const int64_t *lengths, const int64_t *counts,
                                         int64_t bins, hbp_lengths **out);
hbp_status hbp__lengths_limit(hbp_context *context, const hbp_lengths *lengths, int64_t max_length,
                              int32_t policy, hbp_lengths **out);

/* Whether what a limit makes of the lengths is a histogram still: its digest is then that of its bins, as of
 * any histogram of the same ones; else hbp__limited_digest. */
int hbp__limit_keeps_histogram(const hbp_lengths *lengths, int32_t policy);
uint64_t hbp__limited_digest(const hbp_lengths *lengths, int64_t limit, int32_t policy);

#endif
