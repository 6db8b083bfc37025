/* hbp_choose_budgets: checks the options and chooses the search. */
#include "pack/vision/budgets.h"
#include "base/checked.h"
#include "base/options.h"
#include "base/scratch.h"
#include "data/lengths/lengths.h"
#include "hbp/iterative_fill.h"
#include "pack/fill/fill.h"

enum { SAMPLES = 4, RANKS = 8, ROUNDS = 50, EFFORT = 1, TOKEN_MULTIPLE = 64 };

void hbp_budgets_options_init(hbp_budgets_options *options, uint32_t struct_size)
{
    hbp__struct_init(options, struct_size);
}

static hbp_status check_options(hbp_context *context, hbp_budgets_options *o)
{
    if (o->mode != HBP_BUDGETS_PLANE && o->mode != HBP_BUDGETS_LINE)
        return hbp__fail(context, HBP_E_INVALID, "budgets: mode %d is not one of HBP_BUDGETS_*",
                         (int)o->mode);
    HBP__CHECK_RANGE(context, "budgets: ", o, samples, 0, INT32_MAX - 1);
    HBP__CHECK_RANGE(context, "budgets: ", o, ranks, 0, INT32_MAX);
    HBP__CHECK_RANGE(context, "budgets: ", o, rounds, 0, INT32_MAX);
    HBP__CHECK_RANGE(context, "budgets: ", o, effort, 0, 9);
    HBP__CHECK_RANGE(context, "budgets: ", o, max_tokens, 0, HBP_MAX_LENGTH);
    HBP__CHECK_RANGE(context, "budgets: ", o, max_vision, 0, HBP_MAX_VISION);
    HBP__CHECK_RANGE(context, "budgets: ", o, token_multiple, 0, HBP__MAX_MULTIPLE);
    o->samples = o->samples ? o->samples : SAMPLES;
    o->ranks = o->ranks ? o->ranks : RANKS;
    o->rounds = o->rounds ? o->rounds : ROUNDS;
    o->effort = o->effort ? o->effort : EFFORT;
    o->max_tokens = o->max_tokens ? o->max_tokens : HBP_MAX_LENGTH;
    o->max_vision = o->max_vision ? o->max_vision : HBP_MAX_VISION;
    o->token_multiple = o->token_multiple ? o->token_multiple : TOKEN_MULTIPLE;
    if (o->most_samples == 0)
        o->most_samples = (double)o->samples + 1;
    if (!hbp__lies_in(o->most_samples, o->samples, INT32_MAX))
        return hbp__fail(context, HBP_E_INVALID,
                         "budgets: most_samples is %g; it must lie in %d (samples)..%d, or 0",
                         o->most_samples, (int)o->samples, INT32_MAX);
    return HBP_OK;
}

static hbp_status choose_budgets(hbp_context *context, const hbp_lengths *lengths,
                                 const hbp_budgets_options *options, hbp_budgets *budgets)
{
    HBP__TRY(hbp__require(context, lengths, "lengths"));
    HBP__TRY(hbp__require(context, budgets, "budgets"));
    hbp_budgets_options all;
    HBP__TRY(hbp__options_read(context, &all, sizeof all, options, "hbp_budgets_options"));
    HBP__TRY(check_options(context, &all));
    if (!lengths->vision)
        return hbp__fail(context, HBP_E_INVALID,
                         "budgets: the lengths have no vision units; tokens alone need no pair of budgets");
    hbp_budgets chosen = {.struct_size = sizeof chosen};
    HBP__TRY(all.mode == HBP_BUDGETS_LINE ? hbp__budgets_line(context, lengths, &all, &chosen)
                                          : hbp__budgets_plane(context, lengths, &all, &chosen));
    return hbp__struct_write(context, budgets, &chosen, sizeof chosen, "hbp_budgets");
}

hbp_status hbp_choose_budgets(hbp_context *context, const hbp_lengths *lengths,
                              const hbp_budgets_options *options, hbp_budgets *budgets)
{
    HBP__TRY(hbp__enter(context));
    int64_t mark = hbp__scratch_mark(context);
    return hbp__leave(context, mark, choose_budgets(context, lengths, options, budgets));
}
