/* Stable sorts: the library orders by integer keys only, ties by position. */
#ifndef HBP_BASE_SORT_H
#define HBP_BASE_SORT_H

#include <stdint.h>

#include "base/context.h"
#include "base/memory.h"
#include "base/rng.h"

/* Sorts `order` [count], which names rows of `keys`, ascending by keys[order[i]]; stable. LSD radix over the
 * bytes that differ; O(count) time, 32 bytes a row of scratch. Returns 0 when memory is short, order then
 * unchanged. */
int hbp__sort_by_u64(const hbp__memory *memory, const uint64_t *keys, uint32_t *order, int64_t count);

/* The same by signed keys. */
int hbp__sort_by_i64(const hbp__memory *memory, const int64_t *keys, uint32_t *order, int64_t count);

/* The same of very many rows, which may be cancelled. HBP_E_NO_MEMORY names `what`; order is unchanged after
 * a failure. */
hbp_status hbp__order_by_u64(hbp_context *context, const uint64_t *keys, uint32_t *order, int64_t count,
                             const char *what);
hbp_status hbp__order_by_i64(hbp_context *context, const int64_t *keys, uint32_t *order, int64_t count,
                             const char *what);

/* Sorts `rows` [count] of `bytes` each by the uint32_t that each begins with; stable. HBP_E_NO_MEMORY names
 * `what`; after a failure the rows are unchanged. O(count). */
hbp_status hbp__sort_rows_u32(hbp_context *context, void *rows, int64_t bytes, int64_t count,
                              const char *what);

/* hbp__rng_shuffle_u32 of very many values: HBP_E_CANCELLED leaves them half shuffled. */
hbp_status hbp__shuffle(hbp_context *context, hbp__rng *rng, uint32_t *values, int64_t count);

#endif
