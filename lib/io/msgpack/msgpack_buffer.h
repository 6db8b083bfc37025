/* Bytes that grow, and msgpack written into them; what was read of it, by name. */
#ifndef HBP_IO_MSGPACK_BUFFER_H
#define HBP_IO_MSGPACK_BUFFER_H

#include <stdint.h>

#include "io/value/value.h"

/* Zero but for `memory` to begin with. */
typedef struct hbp__buffer {
    hbp__memory memory;
    uint8_t *data;
    uint64_t bytes;
    uint64_t room;
    int failed; /* memory was short; what is there is not whole */
} hbp__buffer;

void hbp__buffer_free(hbp__buffer *buffer);

/* Forgets the bytes, keeps the room. */
void hbp__buffer_clear(hbp__buffer *buffer);

/* Adds `bytes` to be written by the caller and returns where; NULL when memory is short. */
uint8_t *hbp__buffer_extend(hbp__buffer *buffer, uint64_t bytes);

/* The head of a map or a list, whose `count` entries follow. */
void hbp__pack_map(hbp__buffer *buffer, uint64_t count);
void hbp__pack_list(hbp__buffer *buffer, uint64_t count);

/* A value in as few bytes as it takes. */
void hbp__pack_i64(hbp__buffer *buffer, int64_t value);
void hbp__pack_u64(hbp__buffer *buffer, uint64_t value);
void hbp__pack_f64(hbp__buffer *buffer, double value);
void hbp__pack_text(hbp__buffer *buffer, const char *text);

/* Adds a bin of `bytes` to be written by the caller and returns where; NULL when memory is short. */
uint8_t *hbp__pack_bin(hbp__buffer *buffer, uint64_t bytes);

/* An entry of a map: the name, then the value. */
void hbp__pack_named_i64(hbp__buffer *buffer, const char *name, int64_t value);
void hbp__pack_named_double(hbp__buffer *buffer, const char *name, double value);

/* {"dtype": "<i8" or "<i4", "data": bin} under `name`, each value less `base`. */
void hbp__pack_column_i64(hbp__buffer *buffer, const char *name, const int64_t *values, int64_t count,
                          int64_t base);
void hbp__pack_column_i32(hbp__buffer *buffer, const char *name, const int32_t *values, int64_t count,
                          int64_t base);

/* Values under `key`, not negative: 1 when there is one of that type and range, else 0. */
int hbp__unpack_i32(const hbp__value *map, const char *key, int32_t *out);
int hbp__unpack_u64(const hbp__value *map, const char *key, uint64_t *out);
int hbp__unpack_i64(const hbp__value *map, const char *key, int64_t *out);

/* The one of them that suits what `to` points to. */
#define hbp__unpack_number(map, key, to)                                                                     \
    _Generic((to), int32_t *                                                                                 \
             : hbp__unpack_i32, int64_t *                                                                    \
             : hbp__unpack_i64, uint64_t *                                                                   \
             : hbp__unpack_u64)(map, key, to)

/* What is wrong with the entry of `whose` map under `key`, which was to be a `what` and was not unpacked: it
 * is not there, or is another value. */
void hbp__say_entry(char *text, size_t bytes, const hbp__value *map, const char *whose, const char *what,
                    const char *key);

/* The bytes of the column under `key`: `count` values of `size` bytes; NULL when there is no such column. */
const uint8_t *hbp__unpack_column(const hbp__value *map, const char *key, int64_t count, int size);

/* Copies such a column: 1, or 0 when there is none. */
int hbp__unpack_column_i64(const hbp__value *map, const char *key, int64_t count, int64_t *to);
int hbp__unpack_column_i32(const hbp__value *map, const char *key, int64_t count, int32_t *to);

#endif
