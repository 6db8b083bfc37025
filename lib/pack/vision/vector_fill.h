/* Packs under two budgets, vision units and tokens, by vector packing. */
#ifndef HBP_PACK_VECTOR_FILL_H
#define HBP_PACK_VECTOR_FILL_H

#include "base/context.h"
#include "data/lengths/lengths.h"
#include "data/packs/groups.h"
#include "data/packs/packs.h"
#include "hbp/pack.h"

/* hbp_iterative_fill, within a call. *out is set on success alone. */
hbp_status hbp__iterative_fill(hbp_context *context, const hbp_lengths *lengths,
                               const hbp_iterative_fill_options *options, hbp_packs **out);

/* Method vector of hbp_iterative_fill; `options` are checked and have no zeros left. */
hbp_status hbp__vector_fill(hbp_context *context, const hbp_lengths *lengths,
                            const hbp_iterative_fill_options *options, hbp_packs **out);

/* Packs of groups, with max_vision [groups] vision units (>= 1) at most in one of each: the greedy fill where
 * units count. Options have no caps to check; their method is not read. HBP_E_INFEASIBLE where the last group
 * does not hold a sample, or samples that are tied. */
hbp_status hbp__vector_fill_groups(hbp_context *context, const hbp_lengths *lengths, const hbp_groups *groups,
                                   const int64_t *max_vision, const hbp_fill_options *options,
                                   hbp_packs **out);

#endif
