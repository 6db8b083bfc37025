/* The degree of a pack, for callers inside the library. */
#ifndef HBP_PARALLEL_CHOOSE_SP_H
#define HBP_PARALLEL_CHOOSE_SP_H

#include "base/context.h"
#include "hbp/pack.h"

/* As hbp_choose_sp, into a whole hbp_sp_choice; the options are checked here. */
hbp_status hbp__choose_sp(hbp_context *context, const hbp_cost *cost, int64_t pack_length,
                          const hbp_sp_options *options, hbp_sp_choice *choice);

/* The same for a candidate: *fits is 0, and no message made, when no degree runs the pack. */
hbp_status hbp__find_sp(hbp_context *context, const hbp_cost *cost, int64_t pack_length,
                        const hbp_sp_options *options, hbp_sp_choice *choice, int *fits);

#endif
