/* What nccl-tests printed, as points of bytes and time. */
#ifndef HBP_IO_NCCL_TESTS_H
#define HBP_IO_NCCL_TESTS_H

#include <stdint.h>

#include "base/context.h"

typedef struct hbp__timing {
    double bytes;
    double ns;
} hbp__timing;

typedef struct hbp__timings {
    hbp__timing *rows; /* sizes and times above 0, in the order of the file */
    int64_t count;
    int64_t room;
    char source[64]; /* "nccl-tests 2.19" */
} hbp__timings;

/* Reads text or JSON; the caller deletes `rows`, also on failure. HBP_E_FORMAT names the line. */
hbp_status hbp__nccl_read(hbp_context *context, const char *data, int64_t bytes, hbp__timings *timings);

/* The line time = latency + moved / bandwidth, where moved = factor x bytes, that has the least sum of
 * squared relative errors, so that latency is fitted where it matters; latency is at least 0. HBP_E_INVALID
 * when the rows do not tell the two apart. O(count). */
hbp_status hbp__nccl_fit(hbp_context *context, const hbp__timings *timings, double factor, double *latency_ns,
                         double *bytes_per_s);

#endif
