/* Plans as JSON. */
#ifndef HBP_IO_PLAN_JSON_H
#define HBP_IO_PLAN_JSON_H

#include "data/plan/plan.h"
#include "io/json/json_out.h"

/* The plan's object but for the brace that ends it. */
hbp_status hbp__json_put_plan(hbp__json_out *out, const hbp_plan *plan);

#endif
