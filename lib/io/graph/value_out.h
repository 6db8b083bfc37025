/* Maps, lists, texts and whole numbers, written as JSON or msgpack by the same calls. */
#ifndef HBP_IO_VALUE_OUT_H
#define HBP_IO_VALUE_OUT_H

#include <stdint.h>

#include "io/msgpack/msgpack_buffer.h"

#define HBP__VALUE_DEPTH 8

/* Zero but for `buffer.memory` and `json` to begin with. */
typedef struct hbp__value_out {
    hbp__buffer buffer; /* failed when memory was short or something nests deeper than HBP__VALUE_DEPTH */
    int json;           /* nonzero: JSON, a line for each member of the outer map, and for each of theirs */
    int depth;
    int64_t left[HBP__VALUE_DEPTH]; /* values to come at each depth */
    int map[HBP__VALUE_DEPTH];
} hbp__value_out;

/* Begins a map of `count` keys with their values, or a list of `count` values; it ends by itself. */
void hbp__value_map(hbp__value_out *out, int64_t count);
void hbp__value_list(hbp__value_out *out, int64_t count);

/* In a map, before each value. */
void hbp__value_key(hbp__value_out *out, const char *key);

/* `text` is UTF-8 without control characters. */
void hbp__value_text(hbp__value_out *out, const char *text);
void hbp__value_i64(hbp__value_out *out, int64_t value);

#endif
