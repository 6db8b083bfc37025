/* Records: what the public headers say of each field of each open struct, read by the library itself. They
 * come from the headers (records.awk), so that ranges, defaults and texts are written once. */
#ifndef HBP_BASE_RECORDS_H
#define HBP_BASE_RECORDS_H

#include <stdint.h>

#include "base/context.h"

/* How a number is checked. */
enum { HBP__CHECK_NONE = 0, HBP__CHECK_FLAG = 1, HBP__CHECK_RANGE = 2 };

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

/* Checks every ranged field of a struct of `structure`, as the library knows it. HBP_E_INVALID: "`field` is
 * V; it must be in A..B". A struct that the headers do not have has nothing to check. */
hbp_status hbp__records_check(hbp_context *context, const char *structure, const void *options);

#endif
