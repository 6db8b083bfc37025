/* Random permutations of any size in no room: where an element goes, in O(1).
 *
 * A Feistel network over pairs (Luby and Rackoff 1988) with halves of unlike sizes, walked until it ends
 * inside (Black and Rogaway 2002, section 4); of few elements a shuffle. Each element is as likely in each
 * place; two of them meet there as two independent draws would, one part in sqrt(count) off. Guards against
 * patterns in the data, not attacks. */
#ifndef HBP_BASE_PERMUTATION_H
#define HBP_BASE_PERMUTATION_H

#include <stdint.h>

/* Up to so many elements are shuffled: a network over so few is uneven. */
#define HBP__PERMUTATION_FEW 16
/* Elements whose places are drawn at once, by those who draw many. */
#define HBP__DRAWN 256

/* Of [0, count). */
typedef struct hbp__permutation {
    uint64_t count;
    uint64_t key;
    uint32_t rows; /* rows x columns >= count, by less than a row; 0: few */
    uint32_t columns;
} hbp__permutation;

/* What the permutations of a run have in common. */
uint64_t hbp__permutation_key(uint64_t seed, uint64_t epoch);

/* The permutation of a run and a stream; different streams of one run are unlike. 1 <= count <= 2^62. */
hbp__permutation hbp__permutation_make(uint64_t count, uint64_t key, uint64_t stream);

/* The same as `p` of another stream. */
hbp__permutation hbp__permutation_of_stream(const hbp__permutation *p, uint64_t key, uint64_t stream);

/* Where `index` goes; both in [0, count). */
uint64_t hbp__permutation_place(const hbp__permutation *p, uint64_t index);

/* Where elements go, each of a permutation of its own, side by side: place[i] [number] holds an index of the
 * permutation of count[i] and stream[i], and gets its place. */
void hbp__permutation_places(uint64_t key, const uint64_t *count, const uint64_t *stream, int64_t number,
                             uint64_t *place);

/* Where elements [first, first + number) of one permutation of at most 2^32 - 1 go. */
void hbp__permutation_range(const hbp__permutation *p, uint32_t first, int64_t number, uint32_t *place);

#endif
