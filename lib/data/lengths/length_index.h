/* The inside of an index of samples by length. */
#ifndef HBP_DATA_LENGTH_INDEX_H
#define HBP_DATA_LENGTH_INDEX_H

#include <stdint.h>

#include "data/lengths/lengths.h"
#include "hbp/pattern.h"

struct hbp_length_index {
    hbp__memory memory;
    hbp_lengths *lengths; /* retained: whose samples they are, or with is_counted the histogram of them */
    int is_counted;
    uint64_t histogram_digest;
    uint64_t lengths_digest; /* of the lengths in the order of the samples, however they came */
    uint32_t *sample; /* [count] ascending by length, then by index: bin b's from lengths->bin_first[b] on */
};

#endif
