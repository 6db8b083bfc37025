/* The reader of msgpack. */
#ifndef HBP_IO_MSGPACK_READ_H
#define HBP_IO_MSGPACK_READ_H

#include <stdint.h>

#include "io/value/value.h"

/* Maps and arrays inside each other. */
#define HBP__MSGPACK_DEPTH 8

/* What the first object of some bytes takes. */
typedef struct hbp__msgpack_extent {
    uint64_t bytes;   /* of it; where it is not sound, how far it is */
    uint64_t objects; /* itself included */
    uint64_t texts;   /* bytes of its texts, with a 0 behind each */
} hbp__msgpack_extent;

/* Walks the first object of `data` [bytes], keeping nothing; a count is believed only where as many bytes are
 * left. 1: it is whole, well-formed, no deeper than HBP__MSGPACK_DEPTH and of at most `max_objects` objects.
 * O(objects). */
int hbp__msgpack_scan(const uint8_t *data, uint64_t bytes, uint64_t max_objects, hbp__msgpack_extent *extent);

/* Reads the object that hbp__msgpack_scan has walked in place of what `document` held. Two allocations.
 * HBP_E_NO_MEMORY, with `what` in its message. O(bytes of texts + objects). */
hbp_status hbp__msgpack_read(hbp_context *context, const char *what, const uint8_t *data,
                             const hbp__msgpack_extent *extent, hbp__document *document);

#endif
