/* A 64-bit digest of byte streams, the same on every machine of either byte order. Guards against accidents,
 * not attacks. */
#ifndef HBP_BASE_DIGEST_H
#define HBP_BASE_DIGEST_H

#include <stdint.h>

typedef struct hbp__digest {
    uint64_t lanes[4];
    uint64_t count; /* values so far */
} hbp__digest;

hbp__digest hbp__digest_begin(void);
void hbp__digest_u64(hbp__digest *digest, uint64_t value);

/* Columns: the values widened to 64 bits, in order; NULL counts as no values. The count is part of the
 * digest. */
void hbp__digest_column_i64(hbp__digest *digest, const int64_t *values, int64_t count);
void hbp__digest_column_i32(hbp__digest *digest, const int32_t *values, int64_t count);
void hbp__digest_column_u32(hbp__digest *digest, const uint32_t *values, int64_t count);

/* A part of a column, whose count was digested before its first one. */
void hbp__digest_values_u32(hbp__digest *digest, const uint32_t *values, int64_t count);

uint64_t hbp__digest_end(const hbp__digest *digest);

#endif
