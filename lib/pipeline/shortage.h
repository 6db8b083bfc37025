/* What a stage lacks of its memory: the answer of those who cut or recompute layers when nothing fits. */
#ifndef HBP_PIPELINE_SHORTAGE_H
#define HBP_PIPELINE_SHORTAGE_H

#include <stdint.h>

#include "base/context.h"

typedef struct hbp__shortage {
    const char *how;     /* it was tried; says what was cut, or what was recomputed */
    int32_t stage;       /* that lacks most */
    int32_t first_layer; /* of its first chunk; -1: the cuts were given */
    int32_t last_layer;
    int32_t has_more; /* nonzero: further chunks */
    int64_t need_bytes;
    int64_t limit_bytes;
    const char *remedy; /* what may make room; NULL: more stages or memory */
} hbp__shortage;

/* Its message; HBP_E_INFEASIBLE. */
hbp_status hbp__shortage_fail(hbp_context *context, const hbp__shortage *shortage);

#endif
