/* The library's own random numbers: the same sequence everywhere. */
#ifndef HBP_BASE_RNG_H
#define HBP_BASE_RNG_H

#include <stdint.h>

/* xoshiro256** (Blackman and Vigna, 2018), seeded by splitmix64. */
typedef struct hbp__rng {
    uint64_t state[4];
} hbp__rng;

/* One step of splitmix64: advances *state, returns a mixed word. */
static inline uint64_t hbp__splitmix64(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* A generator for (seed, epoch, stream): different streams of one run never share a sequence. */
static inline hbp__rng hbp__rng_make(uint64_t seed, uint64_t epoch, uint64_t stream)
{
    uint64_t mix = seed;
    mix = hbp__splitmix64(&mix) ^ epoch;
    mix = hbp__splitmix64(&mix) ^ stream;
    hbp__rng rng;
    for (int i = 0; i < 4; i++)
        rng.state[i] = hbp__splitmix64(&mix);
    return rng;
}

static inline uint64_t hbp__rng_next(hbp__rng *rng)
{
    uint64_t *s = rng->state;
    uint64_t x = s[1] * 5;
    uint64_t result = ((x << 7) | (x >> 57)) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = (s[3] << 45) | (s[3] >> 19);
    return result;
}

/* Uniform in [0, n), n in [1, 2^32], without bias (Lemire 2019). */
static inline uint32_t hbp__rng_below(hbp__rng *rng, uint64_t n)
{
    uint64_t product = (hbp__rng_next(rng) >> 32) * n;
    uint32_t low = (uint32_t)product;
    if (low < n) {
        uint32_t threshold = (uint32_t)((UINT64_C(4294967296) - n) % n);
        while (low < threshold) {
            product = (hbp__rng_next(rng) >> 32) * n;
            low = (uint32_t)product;
        }
    }
    return (uint32_t)(product >> 32);
}

/* One exchange of Fisher-Yates: the last of `values` [count] with one of them all. */
static inline void hbp__rng_swap_u32(hbp__rng *rng, uint32_t *values, uint64_t count)
{
    uint32_t j = hbp__rng_below(rng, count);
    uint32_t t = values[count - 1];
    values[count - 1] = values[j];
    values[j] = t;
}

/* Fisher-Yates over `values` [count], count <= 2^32. */
static inline void hbp__rng_shuffle_u32(hbp__rng *rng, uint32_t *values, uint64_t count)
{
    for (uint64_t i = count; i > 1; i--)
        hbp__rng_swap_u32(rng, values, i);
}

#endif
