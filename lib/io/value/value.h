/* What a JSON text or a msgpack object says, as one array of values: what a list or a map holds follows it.
 * Readers: io/json/json_tree.h, io/msgpack/msgpack_read.h. */
#ifndef HBP_IO_VALUE_H
#define HBP_IO_VALUE_H

#include <stdint.h>

#include "base/context.h"

typedef enum hbp__kind {
    HBP__NOTHING, /* null, nil */
    HBP__BOOLEAN,
    HBP__WHOLE,
    HBP__LARGE, /* above 2^63 - 1; msgpack's alone, as are bytes and extensions */
    HBP__REAL,
    HBP__TEXT,
    HBP__BYTES,
    HBP__EXTENSION,
    HBP__LIST,
    HBP__MAP, /* of pairs: a key, then its value */
} hbp__kind;

typedef struct hbp__value {
    hbp__kind kind;
    uint32_t count; /* of a list or, in pairs, of a map; bytes of a text or of bytes */
    uint64_t span;  /* values from this one to behind the last that it holds */
    union {
        int64_t whole; /* of a boolean: 0 or 1 */
        uint64_t large;
        double real;
        const char *text;     /* ends with a 0 */
        const uint8_t *bytes; /* in what was read */
    } of;
} hbp__value;

/* Values and their texts. Zero but for `memory` to begin with. */
typedef struct hbp__document {
    hbp__memory memory;
    hbp__value *values; /* the first is all of it; NULL: nothing was read */
    char *texts;
} hbp__document;

void hbp__document_free(hbp__document *document);

static inline int hbp__value_is(const hbp__value *value, hbp__kind kind)
{
    return value && value->kind == kind;
}

static inline int hbp__value_is_number(const hbp__value *value)
{
    return hbp__value_is(value, HBP__WHOLE) || hbp__value_is(value, HBP__REAL);
}

/* Of a whole number, or a boolean; 0 of anything else. */
static inline int64_t hbp__value_whole(const hbp__value *value)
{
    return hbp__value_is(value, HBP__WHOLE) || hbp__value_is(value, HBP__BOOLEAN) ? value->of.whole : 0;
}

/* Of a number; 0 of anything else. */
static inline double hbp__value_real(const hbp__value *value)
{
    return hbp__value_is(value, HBP__REAL) ? value->of.real : (double)hbp__value_whole(value);
}

/* Elements of a list; 0 of anything else. */
static inline uint32_t hbp__value_count(const hbp__value *value)
{
    return hbp__value_is(value, HBP__LIST) ? value->count : 0;
}

/* NULL where it is no text. */
static inline const char *hbp__value_text(const hbp__value *value)
{
    return hbp__value_is(value, HBP__TEXT) ? value->of.text : NULL;
}

static inline int hbp__value_is_true(const hbp__value *value)
{
    return hbp__value_is(value, HBP__BOOLEAN) && value->of.whole;
}

/* What follows a value and all that it holds. */
static inline const hbp__value *hbp__value_next(const hbp__value *value)
{
    return value + value->span;
}

/* The value under `key`; NULL where there is none, or `map` is no map, or NULL. O(pairs). */
const hbp__value *hbp__value_find(const hbp__value *map, const char *key);

/* Element i of a list; NULL where it has none. O(i). */
const hbp__value *hbp__value_at(const hbp__value *list, uint32_t i);

/* Each element of a list, and each key of a map, none of anything else. The value is what follows the key:
 * key + 1 where keys are texts, which msgpack does not promise. */
#define HBP__EACH(list, at)                                                                                  \
    for (const hbp__value *at = hbp__value_is(list, HBP__LIST) ? (list) + 1 : NULL,                          \
                          *at##_end = at ? (list) + (list)->span : NULL;                                     \
         at < at##_end; at = hbp__value_next(at))
#define HBP__EACH_KEY(map, at)                                                                               \
    for (const hbp__value *at = hbp__value_is(map, HBP__MAP) ? (map) + 1 : NULL,                             \
                          *at##_end = at ? (map) + (map)->span : NULL;                                       \
         at < at##_end; at = hbp__value_next(hbp__value_next(at)))

/* A key that `map`, whose keys are texts, has twice, or NULL. HBP_E_NO_MEMORY. O(pairs) where they are many.
 */
hbp_status hbp__value_twice(hbp_context *context, const hbp__value *map, const char **key);

#endif
