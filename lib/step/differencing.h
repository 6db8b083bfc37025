/* Numbers dealt to a given number of parts so that the parts' sums are near each other: the differencing
 * method (Karmarkar and Karp 1982) for several parts.
 *
 * Input: values in descending order, and the number of parts. Output: the part of each. What is dealt stands
 * in partial deals, at first one a value; the two that are furthest from balance become one, the largest sum
 * of either joining the smallest of the other. In rows (balanced differencing, Michiels, Korst and Aarts
 * 2003) the first deals are the values by rows of one for each part, so that parts get the same number of
 * values, or one less. Deals that leave parts empty are lists, the others heaps. O(n log n). Oracle: every
 * deal tried, and the method by sorted tuples (tests/step/test_differencing.c). */
#ifndef HBP_STEP_DIFFERENCING_H
#define HBP_STEP_DIFFERENCING_H

#include <stdint.h>

#include "base/context.h"

/* Writes the part [count] of each of the values (>= 0, their sum below 2^63); ties go to the earlier deal. */
hbp_status hbp__step_difference(hbp_context *context, const int64_t *value, int64_t count, int64_t parts,
                                int rows, int64_t *part);

#endif
