/* The generator of numpy.random.RandomState, for methods that are defined by it; everything else draws from
 * base/rng.h. */
#ifndef HBP_BASE_MT19937_H
#define HBP_BASE_MT19937_H

#include <stdint.h>

enum { HBP__MT_WORDS = 624 };

/* MT19937 (Matsumoto and Nishimura, 1998), a block of outputs at a time. */
typedef struct hbp__mt19937 {
    uint32_t state[HBP__MT_WORDS];
    uint32_t word[HBP__MT_WORDS]; /* the outputs of this state */
    int32_t next;                 /* the first of them that is not drawn yet */
} hbp__mt19937;

/* Seeds by init_genrand, as RandomState(seed) does for an integer. */
void hbp__mt_seed(hbp__mt19937 *mt, uint32_t seed);

/* The next 32 bits. */
uint32_t hbp__mt_next(hbp__mt19937 *mt);

/* RandomState.shuffle, or a part of it: for i = end - 1 down to max(stop, 1), values[i] and values[j] change
 * places, where j is drawn from 0..i by masked rejection. The whole shuffle is end = count, stop = 0; in
 * parts, each ends where the last one stopped. end <= 2^32. */
void hbp__mt_shuffle_u64(hbp__mt19937 *mt, uint64_t *values, uint64_t end, uint64_t stop);

#endif
