/* The searches for a pair of budgets; hbp_choose_budgets chooses one. */
#ifndef HBP_PACK_BUDGETS_H
#define HBP_PACK_BUDGETS_H

#include "base/context.h"
#include "data/lengths/lengths.h"
#include "hbp/pack.h"

/* Why there is no pair of budgets. */
enum {
    HBP__NO_BUDGETS_LIMITS,    /* the largest samples, `vision` and `tokens`, pass the limits */
    HBP__NO_BUDGETS_LARGEST,   /* packs that hold the largest samples hold `held` on average */
    HBP__NO_BUDGETS_PLANE,     /* this pair of those considered comes nearest */
    HBP__NO_BUDGETS_DIRECTION, /* all samples' vision units and tokens give the line no slope */
    HBP__NO_BUDGETS_LINE       /* no pair considered, `tokens` for each vision unit, will do */
};

typedef struct hbp__no_budgets {
    int32_t reason; /* HBP__NO_BUDGETS_* */
    int32_t considered;
    int64_t vision;
    int64_t tokens;
    double held;
} hbp__no_budgets;

/* hbp_choose_budgets, within a call; HBP_E_INFEASIBLE, when there is no pair, is without a message. */
hbp_status hbp__choose_budgets(hbp_context *context, const hbp_lengths *lengths,
                               const hbp_budgets_options *options, hbp_budgets *out);

/* HBP__BUDGETS_LINE of hbp_choose_budgets; `options` are checked and have no zeros left, *out lacks nothing
 * but its size. HBP_E_INFEASIBLE without a message: *why says why; NULL: nobody asks. O(pairs x rounds x
 * samples). */
hbp_status hbp__budgets_line(hbp_context *context, const hbp_lengths *lengths,
                             const hbp_budgets_options *options, hbp_budgets *out, hbp__no_budgets *why);

/* The same for HBP__BUDGETS_PLANE; what `why` is given may take one more fill. */
hbp_status hbp__budgets_plane(hbp_context *context, const hbp_lengths *lengths,
                              const hbp_budgets_options *options, hbp_budgets *out, hbp__no_budgets *why);

/* The message of `why`; HBP_E_INFEASIBLE. */
hbp_status hbp__no_budgets_fail(hbp_context *context, const hbp_budgets_options *options,
                                const hbp__no_budgets *why);

/* HBP__BUDGETS_LINE wants at least so many tokens for each vision unit, less one. */
#define HBP__BUDGETS_UNIT_MULTIPLE 16

#endif
