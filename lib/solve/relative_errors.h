/* Relative errors |predicted - measured| / measured, gathered and then asked for quantiles. */
#ifndef HBP_SOLVE_RELATIVE_ERRORS_H
#define HBP_SOLVE_RELATIVE_ERRORS_H

#include <stdint.h>

#include "base/context.h"
#include "base/memory.h"

typedef struct hbp__relative_errors {
    uint64_t *bits; /* [room] doubles >= 0 by their bits, which order as they do */
    uint32_t *order;
    int64_t count;
    int64_t room;
} hbp__relative_errors;

/* Room for `room` >= 0 errors. 0 when memory is short; to be ended all the same. */
int hbp__relative_errors_begin(const hbp__memory *memory, int64_t room, hbp__relative_errors *errors);

/* Adds one more than there were, of `measured` > 0; there is room. */
void hbp__relative_errors_add(hbp__relative_errors *errors, double predicted, double measured);

/* To be called after the last one and before quantiles. HBP_E_NO_MEMORY names `what`; HBP_E_CANCELLED.
 * O(count).
 */
hbp_status hbp__relative_errors_sort(hbp_context *context, hbp__relative_errors *errors, const char *what);

/* The smallest error that at least a share percent/100 of all, percent in 1..100, do not exceed; 0 of none.
 */
double hbp__relative_errors_quantile(const hbp__relative_errors *errors, int64_t percent);

void hbp__relative_errors_end(const hbp__memory *memory, hbp__relative_errors *errors);

#endif
