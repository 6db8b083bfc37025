/* Every step of one group. */
#ifndef HBP_EPOCH_HIERARCHY_H
#define HBP_EPOCH_HIERARCHY_H

#include "epoch/epoch.h"

/* The groups and packs of the least time, every step of one group; without a bound. HBP_E_INFEASIBLE. */
hbp_status hbp__epoch_plan_hierarchy(const hbp__epoch *epoch, hbp_plan **out);

/* Records the tokens of a step of such groups: those asked for, which given groups may let pass, or the
 * groups', which published steps pass where micro_batch_multiple asks for more. HBP_E_INFEASIBLE where one
 * passes those asked for. */
hbp_status hbp__epoch_record_tokens(const hbp__epoch *epoch, const hbp_groups *groups, hbp_plan *plan);

#endif
