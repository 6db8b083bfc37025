/* Bytes that grow. A write that finds no memory is remembered, so that a writer checks once at its end. */
#ifndef HBP_IO_BUFFER_H
#define HBP_IO_BUFFER_H

#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"

typedef struct hbp__buffer {
    const hbp__memory *memory;
    unsigned char *data;
    int64_t bytes;
    int64_t room;
    int failed; /* memory was short; nothing is written any more */
} hbp__buffer;

/* Makes room for `more` bytes and returns where they go, to be counted in `bytes` by the caller; NULL when
 * memory is short. */
unsigned char *hbp__buffer_reserve(hbp__buffer *buffer, int64_t more);

/* Appends; 0, or -1 when memory is short. Of the type that msgpack_packer_init wants. */
int hbp__buffer_write(void *buffer, const char *data, size_t bytes);

void hbp__buffer_free(hbp__buffer *buffer);

#endif
