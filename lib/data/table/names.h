/* Distinct strings with numbers. */
#ifndef HBP_DATA_NAMES_H
#define HBP_DATA_NAMES_H

#include <stdint.h>

#include "base/memory.h"

/* Numbered as they came; found by hash in O(1). Zero to begin with. */
typedef struct hbp__names {
    char **name; /* [count] */
    int32_t count;
    int32_t room;
    int32_t *slot; /* [slots] number + 1, 0: free; open addressing */
    int64_t slots; /* a power of two, at least twice `count` */
} hbp__names;

/* The number of `text`; -1: it is not there. */
int32_t hbp__names_find(const hbp__names *names, const char *text);

/* Adds a copy of `text`, which is not there yet; its number is the count before. 0 when memory is short or
 * there are 2^31 - 1 names; then nothing has changed. */
int hbp__names_add(const hbp__memory *memory, hbp__names *names, const char *text);

/* Takes back all but the first `count`. O(those taken back). */
void hbp__names_cut(const hbp__memory *memory, hbp__names *names, int32_t count);

void hbp__names_free(const hbp__memory *memory, hbp__names *names);

#endif
