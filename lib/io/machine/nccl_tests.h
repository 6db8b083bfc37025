/* What nccl-tests printed, as points of bytes and time. */
#ifndef HBP_IO_NCCL_TESTS_H
#define HBP_IO_NCCL_TESTS_H

#include <stdint.h>

#include "data/machine/machine.h"

typedef struct hbp__timings {
    hbp__timing *rows; /* sizes and times above 0, in the order of the file */
    int64_t count;
    int64_t room;
    char source[64]; /* "nccl-tests 2.19" */
} hbp__timings;

/* Reads text or JSON; the caller deletes `rows`, also on failure. HBP_E_FORMAT names the line. */
hbp_status hbp__nccl_read(hbp_context *context, const char *data, int64_t bytes, hbp__timings *timings);

#endif
