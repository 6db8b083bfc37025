/* Every step of one group. */
#ifndef HBP_EPOCH_HIERARCHY_H
#define HBP_EPOCH_HIERARCHY_H

#include "epoch/epoch.h"

/* The groups and packs of the least time, every step of one group. HBP_E_INFEASIBLE. */
hbp_status hbp__epoch_plan_hierarchy(const hbp__epoch *epoch, hbp_plan **out);

/* What a plan of such groups records besides its steps. HBP_E_INFEASIBLE where one passes the tokens asked
 * for.
 */
hbp_status hbp__epoch_describe(const hbp__epoch *epoch, const hbp_groups *groups, hbp_plan *plan);

#endif
