/* Positions of bits in a word. */
#ifndef HBP_BASE_BITS_H
#define HBP_BASE_BITS_H

#include <stdint.h>

/* Position of the only bit of a word (de Bruijn). */
static inline int64_t hbp__only_bit(uint64_t word)
{
    static const uint8_t position[64] = {0,  1,  2,  53, 3,  7,  54, 27, 4,  38, 41, 8,  34, 55, 48, 28,
                                         62, 5,  39, 46, 44, 42, 22, 9,  24, 35, 59, 56, 49, 18, 29, 11,
                                         63, 52, 6,  26, 37, 40, 33, 47, 61, 45, 43, 21, 23, 58, 17, 10,
                                         51, 25, 36, 32, 60, 20, 57, 16, 50, 31, 19, 15, 30, 14, 13, 12};
    return position[(word * UINT64_C(0x022fdd63cc95386d)) >> 58];
}

/* Position of the lowest, the highest bit of a word that is not 0. */
static inline int64_t hbp__lowest_bit(uint64_t word)
{
    return hbp__only_bit(word & (~word + 1));
}

static inline int64_t hbp__highest_bit(uint64_t word)
{
    for (int32_t shift = 1; shift < 64; shift *= 2)
        word |= word >> shift;
    return hbp__only_bit(word - (word >> 1));
}

#endif
