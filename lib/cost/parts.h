/* What the predicted time of a pack is made of. */
#ifndef HBP_COST_PARTS_H
#define HBP_COST_PARTS_H

#include "cost/cost.h"

/* The parts of hbp__cost_pack_ns, to which they add up. */
hbp_pack_parts hbp__cost_pack_parts(const hbp_cost *cost, int32_t row, int32_t recompute, hbp__load load);

#endif
