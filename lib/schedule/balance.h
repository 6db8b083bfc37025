/* hbp_balance_attention for callers inside the library. */
#ifndef HBP_SCHEDULE_BALANCE_H
#define HBP_SCHEDULE_BALANCE_H

#include "schedule/microbatch.h"

/* Checks the options, fills their defaults in, and checks that packs, groups and cost belong together. */
hbp_status hbp__balance_check(hbp_context *context, const hbp_packs *packs, const hbp_groups *groups,
                              const hbp_cost *cost, hbp_balance_options *options);

/* As hbp_balance_attention, with options read and checked; with `one_step` all packs make a single step. */
hbp_status hbp__balance(hbp_context *context, const hbp_packs *packs, const hbp_groups *groups,
                        const hbp_cost *cost, const hbp_balance_options *options, int one_step,
                        hbp_plan **out);

#endif
