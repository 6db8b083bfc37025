/* Quantities as people write them: "192GiB", "400Gb/s", "989TFLOPS", "20us", "45%", "128K". */
#ifndef HBP_BASE_QUANTITY_H
#define HBP_BASE_QUANTITY_H

#include <stdint.h>

#include "base/context.h"

/* What a number counts. */
typedef enum hbp__quantity {
    HBP__OF_ITEMS, /* layers, nodes: no unit */
    HBP__OF_TOKENS,
    HBP__OF_BYTES,
    HBP__OF_BYTES_PER_S,
    HBP__OF_FLOPS_PER_S,
    HBP__OF_NS,
    HBP__OF_SHARE
} hbp__quantity;

/* What the field of that name counts, which the end of its name says. */
hbp__quantity hbp__quantity_of(const char *field);

/* text [bytes] is a decimal number and, blanks before it or not, one of the quantity's units or none: *value
 * in the unit of fields, the nearest double, and whole bytes of a size with a unit. Returns 1; 0 where it is
 * no such text, or overflows; -1 where it rounds to 0 and is not 0. */
int hbp__read_quantity(const char *text, int64_t bytes, hbp__quantity quantity, double *value);

/* What text may say: "a number of bytes, or one with a unit: ...". Static. */
const char *hbp__quantity_says(hbp__quantity quantity);

/* Reads what `text` [bytes] gives `field`. HBP_E_INVALID names both, and the units that there are. */
hbp_status hbp__read_quantity_of(hbp_context *context, const char *field, const char *text, int64_t bytes,
                                 double *value);

/* Bytes for a message, one digit behind the point: "75.9 GiB"; below 1 MiB "1000 bytes". */
typedef struct hbp__said {
    char text[32];
} hbp__said;
hbp__said hbp__say_bytes(int64_t bytes);

/* The ending of a noun that so many are of, in a message: "%d rank%s". */
static inline const char *hbp__ending(int64_t count)
{
    return count == 1 ? "" : "s";
}

#endif
