/* The published choice of groups (HBP, Algorithms 1, 3 and 4). Input: candidate lengths, powers of two times
 * the shortest up to max_length. Each is timed at its fastest feasible (sp, c) for a step of tokens_per_step,
 * all with the same documents, since packing leaves a document's attention as it is; l_best is the fastest
 * length. The groups are the sorted unique of {l_best / sp_best at SP 1, l_best, l_max / sp_max at SP 1,
 * l_max}; l_max / sp_max is dropped when it is below l_best. */
#include "base/quantity.h"
#include "hbp/pack.h"
#include "pack/groups/hierarchy.h"
#include "parallel/choose_sp.h"

/* Adds a level for packs of `length` on `sp` ranks, in ascending order, unless its length is there already.
 */
static hbp_status add_level(hbp_context *context, const hbp__estimator *estimator,
                            const hbp__level_limits *limits, int64_t length, int32_t sp, hbp__hierarchy *out)
{
    hbp__level level;
    if (!hbp__level_allow(estimator->cost, limits, sp, length, 0, &level))
        return hbp__fail(context, HBP_E_INFEASIBLE,
                         "a pack of %lld tokens does not fit on %d rank%s, even with every layer recomputed",
                         (long long)length, (int)sp, hbp__ending(sp));
    int64_t at = out->count;
    while (at > 0 && out->level[at - 1].pack_length > length)
        at--;
    if (at > 0 && out->level[at - 1].pack_length == length)
        return HBP_OK;
    for (int64_t i = out->count; i > at; i--)
        out->level[i] = out->level[i - 1];
    out->level[at] = level;
    out->count++;
    return HBP_OK;
}

/* Squares per token of the samples that fit packs of any candidate length; one document a pack where there is
 * none. */
static double short_squares_per_token(const hbp__estimator *estimator, int64_t min_length)
{
    int64_t bin = hbp__estimator_bin(estimator, min_length);
    return bin ? estimator->squares_before[bin] / (double)estimator->tokens_before[bin] : (double)min_length;
}

/* The degrees that the limits allow packs of `length` tokens are the larger ones: a rear part of the tables,
 * which *rear borrows. 0 when there are none. */
static int allowed_degrees(const hbp__estimator *estimator, const hbp__level_limits *limits, int64_t length,
                           hbp_cost *rear)
{
    hbp__level level;
    *rear = *estimator->cost;
    while (rear->terms.degrees &&
           !hbp__level_allow(estimator->cost, limits, rear->degree[0], length, 0, &level)) {
        rear->terms.degrees--;
        rear->degree++;
        rear->sp_latency_ns++;
        rear->sp_ns_per_token++;
    }
    return rear->terms.degrees > 0;
}

/* The degree of the longest packs, which there must be. */
static hbp_status choose_longest(hbp_context *context, const hbp__estimator *estimator,
                                 const hbp__level_limits *limits, const hbp_sp_options *options,
                                 hbp_sp_choice *choice)
{
    const hbp_cost *cost = estimator->cost;
    int64_t length = limits->max_length;
    int32_t widest = cost->terms.degrees - 1;
    hbp_cost rear;
    if (allowed_degrees(estimator, limits, length, &rear))
        return hbp__choose_sp(context, &rear, length, options, choice);
    if (hbp__cost_fewest_layers(cost, widest, length, 0) < 0)
        return hbp__choose_sp(context, cost, length, options, choice);
    return hbp__fail(context, HBP_E_INFEASIBLE,
                     "a pack of %lld tokens on every SP group of %d rank%s passes what a step "
                     "(%lld tokens) or a rank may hold",
                     (long long)length, (int)cost->degree[widest], hbp__ending(cost->degree[widest]),
                     (long long)limits->tokens_per_step);
}

hbp_status hbp__groups_paper(hbp_context *context, const hbp__estimator *estimator,
                             const hbp__level_limits *limits, hbp__hierarchy *out)
{
    int64_t min_length = limits->min_length, max_length = limits->max_length;
    int64_t largest = estimator->size[estimator->bins - 1];
    hbp_sp_options options = {.struct_size = sizeof options};
    options.tokens_per_step = limits->tokens_per_step;
    options.squares_per_token = short_squares_per_token(estimator, min_length);
    hbp_sp_choice best, choice, longest;
    HBP__TRY(choose_longest(context, estimator, limits, &options, &longest));
    best = longest;
    int64_t best_length = max_length;
    for (int64_t length = hbp__min_i64(min_length, max_length); length < max_length; length *= 2) {
        hbp_cost rear;
        int fits;
        if (!allowed_degrees(estimator, limits, length, &rear))
            continue;
        HBP__TRY(hbp__find_sp(context, &rear, length, &options, &choice, &fits));
        if (!fits)
            continue;
        if (choice.step_ns < best.step_ns) {
            best = choice;
            best_length = length;
        }
    }
    out->count = 0;
    HBP__TRY(add_level(context, estimator, limits, max_length, longest.sp, out));
    HBP__TRY(add_level(context, estimator, limits, best_length, best.sp, out));
    if (best.sp > 1 && best_length >= best.sp)
        HBP__TRY(add_level(context, estimator, limits, best_length / best.sp, 1, out));
    if (longest.sp > 1 && max_length >= longest.sp && max_length / longest.sp >= best_length)
        HBP__TRY(add_level(context, estimator, limits, max_length / longest.sp, 1, out));
    for (int64_t g = 0; g < out->count; g++)
        out->level[g].threshold = hbp__min_i64(out->level[g].pack_length, largest);
    hbp__hierarchy_estimate(estimator, out);
    return HBP_OK;
}
