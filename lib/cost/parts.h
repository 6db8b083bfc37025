/* What the predicted time of a pack is made of, in whole nanoseconds that add up to it (docs: cost model). */
#ifndef HBP_COST_PARTS_H
#define HBP_COST_PARTS_H

#include <stdint.h>

#include "cost/cost.h"

typedef struct hbp__pack_parts {
    int64_t vision_ns;     /* of vision units */
    int64_t all_to_all_ns; /* of sequence parallelism, where compute does not hide it */
    int64_t fixed_ns;      /* pack_ns: ZeRO traffic that is not hidden, launches */
    int64_t compute_ns;    /* the rest: tokens, attention, recomputation */
} hbp__pack_parts;

/* The parts of hbp__cost_pack_ns, to which they add up. */
hbp__pack_parts hbp__cost_pack_parts(const hbp_cost *cost, int32_t row, int32_t recompute, hbp__load load);

#endif
