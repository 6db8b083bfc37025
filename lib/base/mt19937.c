#include "base/mt19937.h"

enum {
    LAG = 397,  /* m of the recurrence */
    BATCH = 16, /* words looked at together */
    DRAWS = 512 /* positions drawn before any of them is used */
};

void hbp__mt_seed(hbp__mt19937 *mt, uint32_t seed)
{
    mt->state[0] = seed;
    for (uint32_t k = 1; k < HBP__MT_WORDS; k++)
        mt->state[k] = UINT32_C(1812433253) * (mt->state[k - 1] ^ mt->state[k - 1] >> 30) + k;
    mt->next = HBP__MT_WORDS;
}

static inline uint32_t twist(uint32_t here, uint32_t after, uint32_t far)
{
    uint32_t mixed = (here & UINT32_C(0x80000000)) | (after & UINT32_C(0x7fffffff));
    return far ^ mixed >> 1 ^ ((0 - (after & 1)) & UINT32_C(0x9908b0df));
}

/* The next state and its outputs, in loops without branches: compilers make vector code of them. */
static void refill(hbp__mt19937 *mt)
{
    uint32_t *s = mt->state;
    for (int k = 0; k < HBP__MT_WORDS - LAG; k++)
        s[k] = twist(s[k], s[k + 1], s[k + LAG]);
    for (int k = HBP__MT_WORDS - LAG; k < HBP__MT_WORDS - 1; k++)
        s[k] = twist(s[k], s[k + 1], s[k + LAG - HBP__MT_WORDS]);
    s[HBP__MT_WORDS - 1] = twist(s[HBP__MT_WORDS - 1], s[0], s[LAG - 1]);
    for (int k = 0; k < HBP__MT_WORDS; k++) {
        uint32_t y = s[k];
        y ^= y >> 11;
        y ^= y << 7 & UINT32_C(0x9d2c5680);
        y ^= y << 15 & UINT32_C(0xefc60000);
        mt->word[k] = y ^ y >> 18;
    }
    mt->next = 0;
}

uint32_t hbp__mt_next(hbp__mt19937 *mt)
{
    if (mt->next == HBP__MT_WORDS)
        refill(mt);
    return mt->word[mt->next++];
}

/* Sorts BATCH words into those that are positions for every i in top - BATCH .. top, which go to `position`,
 * and those that are for none. Their number, or -1 when that leaves some out. One word does not wait for the
 * answer to the one before it, and there is no branch that half of the time goes wrong. */
static int draw_batch(const uint32_t *word, uint64_t top, uint32_t mask, uint32_t *position)
{
    int drawn = 0;
    uint32_t lowest = (uint32_t)top - BATCH, doubtful = 0;
    for (int k = 0; k < BATCH; k++) {
        uint32_t j = word[k] & mask;
        position[drawn] = j;
        drawn += j <= lowest;
        doubtful |= j - lowest - 1 < BATCH;
    }
    return doubtful ? -1 : drawn;
}

/* Draws a position from 0..i for i = *top, *top - 1, ... >= lowest, DRAWS of them at most; the whole way the
 * mask is that of *top. Returns how many. */
static int draw(hbp__mt19937 *mt, uint64_t *top, uint64_t lowest, uint32_t mask, uint32_t *position)
{
    int drawn = 0;
    uint64_t i = *top, kept = i - lowest + 1 < DRAWS ? i - lowest + 1 : DRAWS, end = i - kept;
    while (i != end) {
        if (mt->next == HBP__MT_WORDS)
            refill(mt);
        while (i - end > BATCH && HBP__MT_WORDS - mt->next >= BATCH) {
            int batch = draw_batch(mt->word + mt->next, i, mask, position + drawn);
            if (batch < 0)
                break;
            mt->next += BATCH;
            drawn += batch;
            i -= (uint64_t)batch;
        }
        /* One by one: the next few, so that batches can go on after a doubt. */
        for (int k = 0; k < BATCH && mt->next < HBP__MT_WORDS && i != end; k++) {
            uint32_t j = mt->word[mt->next++] & mask;
            if (j <= i) {
                position[drawn++] = j;
                i--;
            }
        }
    }
    *top = i;
    return drawn;
}

/* Positions are drawn ahead of the swaps: their loads, far apart in a large array, then run side by side. */
void hbp__mt_shuffle_u64(hbp__mt19937 *mt, uint64_t *values, uint64_t end, uint64_t stop)
{
    uint32_t position[DRAWS];
    uint64_t last = stop > 1 ? stop : 1, mask = 1;
    if (end <= last)
        return;
    uint64_t i = end - 1;
    while (mask < i)
        mask = mask << 1 | 1;
    while (i >= last) {
        while (mask >> 1 >= i)
            mask >>= 1;
        uint64_t same = (mask >> 1) + 1, from = i;
        int drawn = draw(mt, &i, same > last ? same : last, (uint32_t)mask, position);
        for (int k = 0; k < drawn; k++) {
            uint64_t *a = values + (from - (uint64_t)k), *b = values + position[k], other = *b;
            *b = *a;
            *a = other;
        }
    }
}
