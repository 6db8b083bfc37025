/* hbp_choose_budgets: checks the options and chooses the search. */
#include "pack/vision/budgets.h"
#include "base/checked.h"
#include "base/methods.h"
#include "base/options.h"
#include "base/scratch.h"
#include "data/lengths/lengths.h"
#include "hbp/pack.h"
#include "pack/fill/fill.h"

enum { SAMPLES = 4, RANKS = 8, ROUNDS = 50, EFFORT = 1, TOKEN_MULTIPLE = 64 };

static hbp_status check_options(hbp_context *context, hbp_budgets_options *o)
{
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
                         "budgets: most_samples is %g; it must be in %d (samples)..%d, or 0", o->most_samples,
                         (int)o->samples, INT32_MAX);
    return HBP_OK;
}

hbp_status hbp__no_budgets_fail(hbp_context *context, const hbp_budgets_options *o,
                                const hbp__no_budgets *why)
{
    long long vision = why->vision, tokens = why->tokens;
    switch (why->reason) {
    case HBP__NO_BUDGETS_LIMITS:
        return hbp__fail(context, HBP_E_INFEASIBLE,
                         "budgets: the largest samples have %lld vision units and %lld tokens; budgets may "
                         "be %lld and %lld",
                         vision, tokens, (long long)o->max_vision, (long long)o->max_tokens);
    case HBP__NO_BUDGETS_LARGEST:
        return hbp__fail(context, HBP_E_INFEASIBLE,
                         "budgets: packs that hold the largest samples, %lld vision units and %lld tokens, "
                         "hold %.2f samples on average; %d to %g were asked for",
                         vision, tokens, why->held, (int)o->samples, o->most_samples);
    case HBP__NO_BUDGETS_DIRECTION:
        return hbp__fail(context, HBP_E_INFEASIBLE,
                         "budgets: %lld tokens are fewer than %d for each of %lld vision units; the line "
                         "has no direction",
                         tokens, HBP__BUDGETS_UNIT_MULTIPLE - 1, vision);
    case HBP__NO_BUDGETS_LINE:
        return hbp__fail(context, HBP_E_INFEASIBLE,
                         "budgets: none of %d pairs along the line, %lld tokens a vision unit, gives packs "
                         "of %d to %d samples within %lld tokens and %lld vision units",
                         (int)why->considered, tokens, (int)o->samples, (int)o->samples + 1,
                         (long long)o->max_tokens, (long long)o->max_vision);
    default:
        return hbp__fail(context, HBP_E_INFEASIBLE,
                         "budgets: none of %d pairs gives packs of %d to %g samples; the nearest, %lld "
                         "vision units and %lld tokens, gives %.2f",
                         (int)why->considered, (int)o->samples, o->most_samples, vision, tokens, why->held);
    }
}

/* `options` become those with every default filled in. */
static hbp_status choose_budgets(hbp_context *context, const hbp_lengths *lengths,
                                 hbp_budgets_options *options, hbp_budgets *budgets, hbp__no_budgets *why)
{
    HBP__TRY(check_options(context, options));
    if (!lengths->vision)
        return hbp__fail(context, HBP_E_INVALID,
                         "budgets: the lengths have no vision units; tokens alone need no pair of budgets");
    hbp_budgets chosen = {.struct_size = sizeof chosen};
    HBP__TRY(hbp__budgets_method(options->method) == HBP__BUDGETS_LINE
                 ? hbp__budgets_line(context, lengths, options, &chosen, why)
                 : hbp__budgets_plane(context, lengths, options, &chosen, why));
    return hbp__struct_write(context, budgets, &chosen, sizeof chosen, "hbp_budgets");
}

hbp_status hbp__choose_budgets(hbp_context *context, const hbp_lengths *lengths,
                               const hbp_budgets_options *options, hbp_budgets *out)
{
    hbp_budgets_options all = *options;
    int64_t mark = hbp__scratch_mark(context);
    return hbp__leave(context, mark, choose_budgets(context, lengths, &all, out, NULL));
}

hbp_status hbp_choose_budgets(hbp_context *context, const hbp_lengths *lengths,
                              const hbp_budgets_options *options, hbp_budgets *budgets)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require_samples(context, lengths, "lengths"));
    HBP__TRY(hbp__require(context, budgets, "budgets"));
    hbp_budgets_options all;
    hbp__no_budgets why = {0};
    HBP__TRY(hbp__options_read(context, &all, sizeof all, options, "hbp_budgets_options"));
    int64_t mark = hbp__scratch_mark(context);
    hbp_status status = choose_budgets(context, lengths, &all, budgets, &why);
    if (status == HBP_E_INFEASIBLE)
        hbp__no_budgets_fail(context, &all, &why);
    return hbp__leave(context, mark, status);
}
