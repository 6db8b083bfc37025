/* Records: what the public headers say of each field of each open struct, read by the library itself. They
 * come from the headers (records.awk), so that ranges, defaults and texts are written once. */
#ifndef HBP_BASE_RECORDS_H
#define HBP_BASE_RECORDS_H

#include <stdint.h>

#include "base/context.h"

/* How a field is checked. */
enum { HBP__CHECK_NONE = 0, HBP__CHECK_FLAG = 1, HBP__CHECK_RANGE = 2, HBP__CHECK_METHOD = 3 };

typedef struct hbp__record {
    const char *of;   /* the struct */
    const char *name; /* NULL: the struct itself, before its fields */
    const char *declared;
    const char *choices;
    const char *shape;
    const char *text;
    int32_t type; /* HBP_FIELD_* */
    int32_t check;
    uint32_t offset;
    uint32_t bytes;
    double least, most; /* exact where the field is a double */
    int64_t least_whole, most_whole;
} hbp__record;

/* The struct's own row, its fields following it up to the next row without a name; NULL where there is no
 * such struct. */
const hbp__record *hbp__record_of(const char *structure);

/* A constant that fields of `of` may be. */
typedef struct hbp__choice {
    int32_t value;
    const char *name, *constant, *text, *of;
} hbp__choice;

/* Row `index` of all records, and of all constants; NULL for no such row. */
const hbp__record *hbp__record_at(int64_t index);
const hbp__choice *hbp__choice_at(int64_t index);

#endif
