/* Decimal numbers in text, whatever the locale says. */
#ifndef HBP_BASE_NUMBER_H
#define HBP_BASE_NUMBER_H

#include <stdint.h>

/* Reads all of `text` [bytes] as [+-] digits [. digits] [e [+-] digits] with at least one digit before the
 * exponent. Returns 1, or 0 when it is something else or past the range of a double. Exact for at most 15
 * significant digits and a power of ten within 10^-22..10^22; else within a few units of the last place, the
 * same on every machine. */
int hbp__parse_decimal(const char *text, int64_t bytes, double *out);

/* Reads all of `text` [bytes] as an unsigned whole number in base 10, or 16 with digits of either case; 1 or
 * 0. */
int hbp__parse_unsigned(const char *text, int64_t bytes, uint32_t base, uint64_t *out);

#endif
