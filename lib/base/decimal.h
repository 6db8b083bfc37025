/* Decimal numbers and doubles, each from the other, the same in every locale. */
#ifndef HBP_BASE_DECIMAL_H
#define HBP_BASE_DECIMAL_H

#include <stdint.h>

/* Digits that decide which double is nearest: no two neighbours' middle has more than 767. */
#define HBP__DECIMAL_DIGITS 800

#define HBP__DECIMAL_BYTES 32

/* The double nearest to the number `digits` [count], each 0 to 9, x 10^exponent, ties to even, as IEEE 754
 * asks; infinity past the largest. count is at most HBP__DECIMAL_DIGITS + 1. Long division by bits: O(64 w)
 * for numbers of w words. */
double hbp__decimal_nearest(const uint8_t *digits, int32_t count, int64_t exponent);

/* Writes a finite double with `digits` [1, 17] significant digits, zeros behind the point left out: "0.1",
 * "12.0", "1.5e-7"; always with a point or an exponent. 17 digits are read back bit for bit. Returns the
 * bytes. */
int hbp__decimal_print(double value, int digits, char text[HBP__DECIMAL_BYTES]);

/* The same with the fewest of 15, 16 and 17 digits that are read back bit for bit. */
int hbp__decimal_shortest(double value, char text[HBP__DECIMAL_BYTES]);

#endif
