/* The writer of JSON and of msgpack: maps, lists, texts and numbers by the same calls. */
#ifndef HBP_IO_VALUE_OUT_H
#define HBP_IO_VALUE_OUT_H

#include <stdint.h>

#include "io/json/json_out.h"

#define HBP__VALUE_DEPTH 8

/* Depths of JSON whose values have lines of their own. */
#define HBP__LINES_OUTER 2
#define HBP__LINES_ALL   HBP__VALUE_DEPTH

/* Zero but for `json.context`, `json.buffer`, whose memory is set, and `lines` to begin with. */
typedef struct hbp__value_out {
    hbp__json_out json; /* its buffer has failed when memory was short or something nests too deep */
    int lines;          /* HBP__LINES_*; 0: msgpack */
    int digits;         /* of doubles in JSON; 0: 17 */
    int lossy;          /* a double is not read back from so many bit for bit */
    int depth;
    int64_t left[HBP__VALUE_DEPTH]; /* values to come at each depth */
    int map[HBP__VALUE_DEPTH];
} hbp__value_out;

/* Begins a map of `count` keys with their values, or a list of `count` values; it ends by itself. */
void hbp__put_map(hbp__value_out *out, int64_t count);
void hbp__put_list(hbp__value_out *out, int64_t count);

/* In a map, before each value. */
void hbp__put_key(hbp__value_out *out, const char *key);

void hbp__put_text(hbp__value_out *out, const char *text);
void hbp__put_i64(hbp__value_out *out, int64_t value);

/* A finite double; in JSON whole numbers below 2^53 are written as such. */
void hbp__put_real(hbp__value_out *out, double value);

/* Writes what `put` makes of `object` to `path` as JSON in ASCII, whole or not at all: doubles with 15 digits
 * where all of them survive that, so that 0.45 is written as that, else with 17, which always do. `what` is
 * for messages. */
hbp_status hbp__json_save(hbp_context *context, const char *what,
                          void (*put)(hbp__value_out *out, const void *object), const void *object,
                          const char *path);

#endif
