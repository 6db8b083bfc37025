/* Where to resume, of plans of any form. */
#ifndef HBP_DATA_CURSOR_H
#define HBP_DATA_CURSOR_H

#include <stdint.h>

#include "base/context.h"

/* What a cursor holds a plan to. */
typedef struct hbp__cursor_of {
    int64_t steps;
    int32_t ranks;
    uint64_t digest;
    uint64_t lengths_digest;
    uint64_t seed;
    uint64_t epoch;
} hbp__cursor_of;

/* hbp_plan_save_cursor and hbp_plan_load_cursor within a call. */
hbp_status hbp__cursor_save(hbp_context *context, const hbp__cursor_of *of, int64_t step, uint8_t *cursor);
hbp_status hbp__cursor_load(hbp_context *context, const hbp__cursor_of *of, const uint8_t *cursor,
                            int64_t *step);

#endif
