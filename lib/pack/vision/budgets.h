/* The searches for a pair of budgets; hbp_choose_budgets chooses one. */
#ifndef HBP_PACK_BUDGETS_H
#define HBP_PACK_BUDGETS_H

#include "base/context.h"
#include "data/lengths/lengths.h"
#include "hbp/iterative_fill.h"

/* HBP_BUDGETS_LINE of hbp_choose_budgets; `options` are checked and have no zeros left, *out lacks nothing
 * but its size. O(pairs x rounds x samples). */
hbp_status hbp__budgets_line(hbp_context *context, const hbp_lengths *lengths,
                             const hbp_budgets_options *options, hbp_budgets *out);

/* HBP_BUDGETS_PLANE of hbp_choose_budgets; `options` are checked and have no zeros left. */
hbp_status hbp__budgets_plane(hbp_context *context, const hbp_lengths *lengths,
                              const hbp_budgets_options *options, hbp_budgets *out);

#endif
