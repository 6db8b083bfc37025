#include "base/digest.h"

#include <stddef.h>

#define MULTIPLIER_A UINT64_C(0x9fb21c651e98df25)
#define MULTIPLIER_B UINT64_C(0xd6e8feb86659fd93)

static inline uint64_t rotate(uint64_t x, int bits)
{
    return (x << bits) | (x >> (64 - bits));
}

/* Full avalanche of one word (two multiplications, two xor-shifts). */
static inline uint64_t mix(uint64_t x)
{
    x ^= x >> 32;
    x *= MULTIPLIER_B;
    x ^= x >> 29;
    x *= MULTIPLIER_A;
    return x ^ (x >> 32);
}

/* One lane takes one word: depends on every earlier word of the lane and on their order. */
static inline uint64_t absorb(uint64_t lane, uint64_t value)
{
    return rotate(lane ^ (value * MULTIPLIER_A), 29) * MULTIPLIER_B + 1;
}

hbp__digest hbp__digest_begin(void)
{
    return (hbp__digest){{UINT64_C(0x243f6a8885a308d3), UINT64_C(0x13198a2e03707344),
                          UINT64_C(0xa4093822299f31d0), UINT64_C(0x082efa98ec4e6c89)},
                         0};
}

void hbp__digest_u64(hbp__digest *digest, uint64_t value)
{
    uint64_t *lane = &digest->lanes[digest->count++ & 3];
    *lane = absorb(*lane, value);
}

/* Four independent lanes, so that the multiplications overlap; the same result as one value at a time. */
#define DIGEST_VALUES(digest, values, number)                                                                \
    do {                                                                                                     \
        const int64_t n = (number);                                                                          \
        int64_t i = 0;                                                                                       \
        for (; i < n && ((digest)->count & 3); i++)                                                          \
            hbp__digest_u64(digest, (uint64_t)(int64_t)(values)[i]);                                         \
        uint64_t a = (digest)->lanes[0], b = (digest)->lanes[1];                                             \
        uint64_t c = (digest)->lanes[2], d = (digest)->lanes[3];                                             \
        int64_t blocks = (n - i) / 4;                                                                        \
        for (int64_t block = 0; block < blocks; block++, i += 4) {                                           \
            a = absorb(a, (uint64_t)(int64_t)(values)[i]);                                                   \
            b = absorb(b, (uint64_t)(int64_t)(values)[i + 1]);                                               \
            c = absorb(c, (uint64_t)(int64_t)(values)[i + 2]);                                               \
            d = absorb(d, (uint64_t)(int64_t)(values)[i + 3]);                                               \
        }                                                                                                    \
        (digest)->lanes[0] = a, (digest)->lanes[1] = b, (digest)->lanes[2] = c, (digest)->lanes[3] = d;      \
        (digest)->count += (uint64_t)blocks * 4;                                                             \
        for (; i < n; i++)                                                                                   \
            hbp__digest_u64(digest, (uint64_t)(int64_t)(values)[i]);                                         \
    } while (0)

#define DIGEST_COLUMN(digest, values, count)                                                                 \
    do {                                                                                                     \
        const int64_t rows = (values) ? (count) : 0;                                                         \
        hbp__digest_u64(digest, (uint64_t)rows);                                                             \
        DIGEST_VALUES(digest, values, rows);                                                                 \
    } while (0)

void hbp__digest_values_u32(hbp__digest *digest, const uint32_t *values, int64_t count)
{
    DIGEST_VALUES(digest, values, count);
}

void hbp__digest_column_i64(hbp__digest *digest, const int64_t *values, int64_t count)
{
    DIGEST_COLUMN(digest, values, count);
}

void hbp__digest_column_i32(hbp__digest *digest, const int32_t *values, int64_t count)
{
    DIGEST_COLUMN(digest, values, count);
}

void hbp__digest_column_u32(hbp__digest *digest, const uint32_t *values, int64_t count)
{
    DIGEST_COLUMN(digest, values, count);
}

uint64_t hbp__digest_end(const hbp__digest *digest)
{
    uint64_t x = mix(digest->lanes[0] ^ digest->count);
    for (int i = 1; i < 4; i++)
        x = mix(x ^ digest->lanes[i]);
    return x;
}
