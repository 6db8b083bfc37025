/* What a packer packs: a sample, or samples linked together, as one item with the size it takes in a pack. */
#ifndef HBP_DATA_ITEMS_H
#define HBP_DATA_ITEMS_H

#include <stdint.h>

#include "base/context.h"
#include "data/lengths/lengths.h"

/* Ends a chain of linked samples. */
#define HBP__NO_SAMPLE UINT32_MAX

typedef struct hbp__items {
    hbp__memory memory;
    int64_t count;
    uint32_t
        *size; /* [count] ascending: tokens padded to the sequence multiple, summed over linked samples */
    uint32_t *sample; /* [count] the sample, or the first of a chain */
    uint32_t *next;   /* [samples] the next sample of the chain; NULL when nothing is linked */
    const hbp_lengths *lengths;
    int64_t multiple;     /* sequence multiple */
    int is_size_borrowed; /* `size` is the caller's */
} hbp__items;

/* Items of `lengths` in ascending order of size, within a size in an order drawn from (seed, epoch).
 * HBP_E_INFEASIBLE when an item is larger than `capacity`, naming it. O(samples). Close releases them, also
 * after a failed open. */
hbp_status hbp__items_open(hbp_context *context, const hbp_lengths *lengths, int64_t sequence_multiple,
                           int64_t capacity, uint64_t seed, uint64_t epoch, hbp__items *items);
void hbp__items_close(hbp__items *items);

/* The same with the caller's column [samples] for the sizes, which it may write over once it has read them.
 */
hbp_status hbp__items_open_in(hbp_context *context, const hbp_lengths *lengths, int64_t sequence_multiple,
                              int64_t capacity, uint64_t seed, uint64_t epoch, uint32_t *size,
                              hbp__items *items);

/* The same without sizes, where nothing is linked: the order alone, whose sizes the histogram says. */
hbp_status hbp__items_open_order(hbp_context *context, const hbp_lengths *lengths, int64_t sequence_multiple,
                                 int64_t capacity, uint64_t seed, uint64_t epoch, hbp__items *items);

/* How many of the items [0, n) have at most this size. O(log n). */
int64_t hbp__items_up_to(const hbp__items *items, int64_t n, int64_t size);

/* Samples in item `i`, and the sum of their squared lengths (of its padded length when nothing is linked:
 * balance needs no more). O(1) when nothing is linked. */
int64_t hbp__items_members(const hbp__items *items, int64_t i);
int64_t hbp__items_squares(const hbp__items *items, int64_t i);

/* The sum of squared lengths without any padding. */
int64_t hbp__items_exact_squares(const hbp__items *items, int64_t i);

/* Writes the samples of item `i` to `out`; returns how many. */
int64_t hbp__items_write(const hbp__items *items, int64_t i, uint32_t *out);

#endif
