/* Plans of parts of an epoch as one. */
#ifndef HBP_EPOCH_JOIN_H
#define HBP_EPOCH_JOIN_H

#include "epoch/epoch.h"

/* Joins plans of parts of `lengths` end to end: steps keep their order, dropped samples add up, fields that
 * all parts share are the first one's. Not sealed yet. O(samples). */
hbp_status hbp__plan_join(hbp_context *context, hbp_plan *const *parts, int64_t count,
                          const hbp_lengths *lengths, hbp_plan **out);

/* Sets what the parts of a joined plan do not know, made as they were for parts of the data, and seals it. */
hbp_status hbp__epoch_seal(const hbp__epoch *epoch, hbp_plan **plan);

#endif
