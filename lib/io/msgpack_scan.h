/* Reads msgpack in place, without memory of its own: msgpack-c's unpacker reserves what a hostile header of
 * five bytes declares. Every count and length is at most the bytes that are left, nesting is at most
 * HBP__SCAN_DEPTH deep, and each object costs a byte, so that any input is walked in linear time. */
#ifndef HBP_IO_MSGPACK_SCAN_H
#define HBP_IO_MSGPACK_SCAN_H

#include <stdint.h>

#define HBP__SCAN_DEPTH 8

typedef struct hbp__scan {
    const unsigned char *data;
    int64_t bytes;
    int64_t at; /* the next object; after a failure, the object that failed */
} hbp__scan;

/* Each takes one object and returns 1, or returns 0 when the next object is another, damaged, or cut off. */
int hbp__scan_map(hbp__scan *scan, int64_t *pairs);
int hbp__scan_text(hbp__scan *scan, const char **text, int64_t *bytes); /* no NUL at its end */
int hbp__scan_bin(hbp__scan *scan, const unsigned char **data, int64_t *bytes);
int hbp__scan_i64(hbp__scan *scan, int64_t *value);
int hbp__scan_u64(hbp__scan *scan, uint64_t *value);
int hbp__scan_skip(hbp__scan *scan);

/* From a map, finds the value of the text `key` and stands before it. Takes O(map); `map` is left as it is.
 */
int hbp__scan_find(const hbp__scan *map, const char *key, hbp__scan *value);

#endif
