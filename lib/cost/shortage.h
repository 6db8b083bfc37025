/* What memory lacks, for states and for the longest pack, and what would make room. */
#ifndef HBP_COST_SHORTAGE_H
#define HBP_COST_SHORTAGE_H

#include "cost/cost.h"

/* HBP_E_INFEASIBLE: the states of the model alone, terms->static_bytes, are more than terms->limit_bytes.
 * Names the ZeRO stage, the sharding or the least number of nodes that would hold them, where one would.
 * O(log nodes). */
hbp_status hbp__cost_refuse_states(hbp_context *context, const char *model, int32_t stage,
                                   const hbp__cost_origin *origin, const hbp_cost_terms *terms);

/* HBP_E_INFEASIBLE: no degree holds a pack of so many tokens, which is `why` ("the longest sample"), with
 * every layer recomputed. Names what a pack may hold, and what would hold this one. O(nodes tried x degrees).
 */
hbp_status hbp__cost_refuse_pack(hbp_context *context, const hbp_cost *cost, int64_t tokens, const char *why);

#endif
