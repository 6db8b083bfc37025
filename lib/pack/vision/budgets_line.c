/* From (4096 / u, 4096) in steps of (1, u), u tokens for each vision unit as the data have them, until a pack
 * holds more than samples + 1 on average; when no pair before that held `samples` at least, back from there.
 */
#include "base/methods.h"
#include "pack/vision/budgets.h"

#include <math.h>

#include "base/checked.h"
#include "data/packs/packs.h"
#include "pack/vision/dist_ratio.h"
#include "pack/vision/iterative_reference.h"

enum {
    START_TOKENS = 4096,
    TOKEN_BIN = 256, /* lengths count as the end of their bin in the mean */
    FULL_SLACK = 128
};

/* a // b of two positive doubles as Python and numpy have it, which differs from floor(a / b) where a / b is
 * rounded up to an integer. fmod and floor are exact. */
static double floor_divide(double a, double b)
{
    double quotient = (a - fmod(a, b)) / b, below = floor(quotient);
    return quotient - below > 0.5 ? below + 1 : below;
}

/* u; 0 when the data have fewer than 15 tokens for each vision unit. */
static int64_t tokens_per_unit(const hbp_lengths *lengths)
{
    double tokens = 0, vision = (double)lengths->vision_sum / (double)lengths->count;
    for (int64_t b = 0; b < lengths->bins; b++)
        tokens += (double)(hbp__round_up(lengths->bin_length[b], TOKEN_BIN) * lengths->bin_count[b]);
    double ratio = floor_divide(tokens / (double)lengths->count, vision > 1 ? vision : 1);
    return ((int64_t)ratio + 1) / HBP__BUDGETS_UNIT_MULTIPLE * HBP__BUDGETS_UNIT_MULTIPLE;
}

/* What packs come to under the budgets in *b; *samples is how many they hold. */
static hbp_status measure_pair(hbp_context *context, const hbp_lengths *lengths,
                               const hbp_budgets_options *options, hbp_budgets *b, int64_t *samples)
{
    hbp_iterative_fill_options fill = {.struct_size = sizeof fill,
                                       .method = hbp__iterative_fill_name(HBP__ITERATIVE_FILL_ISF),
                                       .rounds = options->rounds,
                                       .max_tokens = b->max_tokens,
                                       .max_vision = b->max_vision,
                                       .full_tokens = b->full_tokens,
                                       .full_vision = b->max_vision,
                                       .sequence_multiple = 1,
                                       .pack_multiple = 1,
                                       .seed = options->seed};
    hbp_packs *packs = NULL;
    HBP__TRY(hbp__fill_reference(context, lengths, &fill, &packs));
    int64_t tokens = 0, vision = 0;
    for (int64_t p = 0; p < packs->count; p++) {
        tokens += packs->tokens[p];
        vision += packs->vision[p];
    }
    double count = (double)packs->count;
    *samples = packs->samples;
    b->packs = packs->count;
    if (packs->count) {
        b->samples_per_pack = (double)packs->samples / count;
        b->dist_vision = hbp__dist_ratio(packs->vision, packs->count, options->ranks);
        b->dist_tokens = hbp__dist_ratio(packs->tokens, packs->count, options->ranks);
        b->unused_vision = 1 - (double)vision / (count * (double)b->max_vision);
        b->unused_tokens = 1 - (double)tokens / (count * (double)b->max_tokens);
        b->score = b->padding + b->dist_vision + b->dist_tokens;
    }
    hbp_packs_free(packs);
    return HBP_OK;
}

/* Smaller score, then more even vision units, tokens, then smaller budgets. */
static int is_better(const hbp_budgets *a, const hbp_budgets *b)
{
    if (a->score != b->score)
        return a->score < b->score;
    if (a->dist_vision != b->dist_vision)
        return a->dist_vision < b->dist_vision;
    if (a->dist_tokens != b->dist_tokens)
        return a->dist_tokens < b->dist_tokens;
    return a->max_vision < b->max_vision;
}

/* Pairs past a limit are passed over, from above or by ending the way up. The published search goes on for
 * ever where this one ends: upwards once one pack holds everything, downwards once packs hold fewer than
 * `samples` (budgets below would be met by leaving most samples out). */
static hbp_status walk_line(hbp_context *context, const hbp_lengths *lengths,
                            const hbp_budgets_options *options, int64_t unit, hbp_budgets *best)
{
    int64_t tokens = START_TOKENS, vision = START_TOKENS / unit;
    int32_t tried = 0, is_down = 0;
    while (tokens > 0 && vision > 0 && !(is_down && best->packs)) {
        hbp_budgets here = {.max_vision = vision, .max_tokens = tokens, .full_tokens = tokens - FULL_SLACK};
        int64_t samples = 0;
        if (tokens > options->max_tokens || vision > options->max_vision) {
            if (tried)
                break;
            is_down = 1;
        } else {
            tried++;
            HBP__TRY(measure_pair(context, lengths, options, &here, &samples));
            int is_few = samples < here.packs * options->samples || !here.packs;
            int is_many = samples > here.packs * ((int64_t)options->samples + 1);
            if (!is_few && !is_many && (!best->packs || is_better(&here, best)))
                *best = here;
            if (is_few && is_down)
                break;
            if (here.packs == 1 && !is_many)
                break;
            is_down |= is_many;
        }
        tokens += is_down ? -unit : unit;
        vision += is_down ? -1 : 1;
    }
    best->considered = tried;
    return HBP_OK;
}

hbp_status hbp__budgets_line(hbp_context *context, const hbp_lengths *lengths,
                             const hbp_budgets_options *options, hbp_budgets *out, hbp__no_budgets *why)
{
    hbp__no_budgets unasked;
    int64_t unit = tokens_per_unit(lengths);
    hbp_budgets best = {.packs = 0};
    HBP__TRY(hbp__reference_check(context, lengths, options->rounds, options->seed, "budgets"));
    why = why ? why : &unasked;
    if (!unit) {
        *why = (hbp__no_budgets){HBP__NO_BUDGETS_DIRECTION, .vision = lengths->vision_sum,
                                 .tokens = lengths->tokens};
        return HBP_E_INFEASIBLE;
    }
    HBP__TRY(walk_line(context, lengths, options, unit, &best));
    if (!best.packs) {
        *why = (hbp__no_budgets){HBP__NO_BUDGETS_LINE, best.considered, .tokens = unit};
        return HBP_E_INFEASIBLE;
    }
    *out = best;
    return HBP_OK;
}
