/* Numbers out of text, read the same way in every locale. */
#ifndef HBP_BASE_NUMBER_H
#define HBP_BASE_NUMBER_H

#include <stdint.h>

/* text [bytes] is one whole number of decimal digits and nothing else. Returns 1, or 0 when it is not, or is
 * past INT64_MAX. */
int hbp__read_whole(const char *text, int64_t bytes, int64_t *out);

/* text [bytes] is one decimal number, [+-]digits[.digits][e[+-]digits], and nothing else: the nearest
 * double, as IEEE 754 asks. Returns 1, or 0 when it is no number or overflows. */
int hbp__read_decimal(const char *text, int64_t bytes, double *out);

/* The same times 10^power, |power| <= 100, rounded once. */
int hbp__read_scaled(const char *text, int64_t bytes, int32_t power, double *out);

/* Parses a whole number with optional sign and blanks around it, in decimal. 1: *out is set; 0: not a whole
 * number; -1: it does not fit. */
int hbp__read_i64(const char *text, int64_t bytes, int64_t *out);

#endif
