/* The tokens of a step where the caller gives none. */
#include "base/checked.h"
#include "base/methods.h"
#include "base/quantity.h"
#include "cost/shortage.h"
#include "pack/groups/hierarchy.h"
#include "pack/tuning.h"

/* Packs of `length` tokens, one on every SP group of the degree with the least time: *packs of them. 0 when
 * no degree holds one. Degrees that stay on fast links come first: a better network should not make steps
 * smaller. The published rule knows no links. */
static int best_degree(const hbp_cost *cost, const hbp__level_limits *limits, int32_t method,
                       double squares_per_token, int64_t length, int64_t *packs)
{
    double best_ns = -1;
    for (int32_t row = 0; row < cost->terms.degrees; row++) {
        hbp__level level;
        if (method != HBP__GROUPS_HBP && best_ns >= 0 && cost->degree[row] > cost->terms.domain_ranks)
            break;
        if (!hbp__level_allow(cost, limits, cost->degree[row], length, 1, &level))
            continue;
        double ns = (double)level.sp * hbp__cost_ns(cost, row, level.recompute, (double)length,
                                                    squares_per_token * (double)length, 0);
        if (best_ns < 0 || ns < best_ns) {
            best_ns = ns;
            *packs = level.packs;
        }
    }
    return best_ns >= 0;
}

/* Tokens on a rank at which a token takes least: what a pack pays once is then shared by many, and no more
 * layers are recomputed than that is worth. Those are capacities: between two of them every token more is a
 * gain, until what is paid once is a HBP__STEP_ONCE_SHARE of the time. */
static int64_t best_rank_tokens(const hbp_cost *cost, const hbp__level_limits *limits)
{
    double best_ns = -1;
    int64_t best = 0;
    for (int32_t row = 0; row < cost->terms.degrees; row++)
        for (int32_t c = 0; c <= cost->terms.layers; c++) {
            int64_t sp = cost->degree[row];
            int64_t length = hbp__cost_capacity(cost, row, c, 0);
            length = hbp__min_i64(length, limits->max_length);
            if (limits->tokens_per_rank < length / sp)
                length = limits->tokens_per_rank * sp;
            length = length / limits->pack_multiple * limits->pack_multiple;
            if (length < 1)
                continue;
            double tokens = (double)length;
            double ns = (double)sp * hbp__cost_ns(cost, row, c, tokens, 0, 0) / tokens;
            if (best_ns < 0 || ns < best_ns) {
                double once = hbp__cost_ns(cost, row, c, 0, 0, 0), each = ns / (double)sp - once / tokens;
                double enough = (HBP__STEP_ONCE_SHARE - 1) * once;
                best_ns = ns;
                best = enough < each * tokens ? hbp__round_i64(enough / each) / sp : length / sp;
            }
        }
    return best;
}

/* Rank-time of a token, without attention, where each rank has so many; -1 where no degree holds them. */
static double token_ns(const hbp_cost *cost, const hbp__level_limits *limits, int64_t rank_tokens)
{
    double best_ns = -1;
    for (int32_t row = 0; row < cost->terms.degrees && rank_tokens <= limits->tokens_per_rank; row++) {
        int32_t sp = cost->degree[row];
        int64_t length = hbp__mul_saturating(rank_tokens, sp);
        int32_t c = length <= limits->max_length ? hbp__cost_fewest_layers(cost, row, length, 0) : -1;
        if (c < 0)
            continue;
        double ns = hbp__cost_ns(cost, row, c, (double)length, 0, 0) / (double)rank_tokens;
        if (best_ns < 0 || ns < best_ns)
            best_ns = ns;
    }
    return best_ns;
}

/* Whether a token takes little longer than at its best where a step has so many, in `count` micro-batches or
 * one more. */
static int costs_little(const hbp_cost *cost, const hbp__level_limits *limits, int64_t tokens, int64_t count,
                        int64_t best)
{
    const int64_t rank_tokens = hbp__ceil_div(tokens, cost->terms.ranks);
    const double least = token_ns(cost, limits, best) * (100 + HBP__STEP_MOST_LOSS) / 100;
    for (int64_t more = count; more <= count + 1; more++) {
        const double ns = token_ns(cost, limits, hbp__ceil_div(rank_tokens, more));
        if (ns >= 0 && ns <= least)
            return 1;
    }
    return 0;
}

/* The larger of a micro-batch of longest packs and the best tokens of all ranks. Few of the former are made
 * whole, to the nearest number, where that costs little. A step of longest packs that is no whole number of
 * micro-batches of the best tokens, nor within the slack of one, nor cut well by another number, is made one.
 */
static int64_t whole_batches(const hbp_cost *cost, const hbp__level_limits *limits, int64_t batch,
                             int64_t best)
{
    const int64_t all = hbp__mul_saturating(best, cost->terms.ranks);
    if (all > batch) {
        const int64_t whole = (all + batch / 2) / batch * batch;
        return all / batch < HBP__STEP_WHOLE && costs_little(cost, limits, whole, 1, best) ? whole : all;
    }
    if (best < 1)
        return batch;
    const int64_t fewer = batch / all;
    return fewer * all >= batch - hbp__percent(batch, limits->step_slack) ||
                   costs_little(cost, limits, batch, fewer, best)
               ? batch
               : hbp__mul_saturating(fewer + 1, all);
}

hbp_status hbp__groups_step_tokens(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                                   const hbp_groups_options *options, const hbp__level_limits *limits,
                                   int64_t longest, int64_t *tokens)
{
    hbp__level_limits any_step = *limits;
    double squares_per_token = lengths->sum_squares / (double)lengths->tokens;
    int64_t length = options->max_length, packs = 0;
    any_step.tokens_per_step = INT64_MAX;
    int fits =
        best_degree(cost, &any_step, hbp__groups_method(options->method), squares_per_token, length, &packs);
    if (!fits && hbp__groups_method(options->method) != HBP__GROUPS_HBP) {
        length = hbp__round_up(longest, limits->pack_multiple);
        fits = best_degree(cost, &any_step, hbp__groups_method(options->method), squares_per_token, length,
                           &packs);
    }
    int is_sample = length <= hbp__round_up(longest, limits->pack_multiple);
    const char *why = is_sample ? "the longest sample" : "`max_length`";
    int64_t per_rank = fits ? 0 : hbp__cost_least_per_rank(cost, length);
    if (!fits && limits->tokens_per_rank < INT64_MAX && per_rank < INT64_MAX)
        return hbp__fail(context, HBP_E_INFEASIBLE,
                         "no SP degree holds a pack of %lld tokens (%s) on %d rank%s in memory and within "
                         "tokens_per_rank, which is %lld (%lld would do)",
                         (long long)length, why, (int)cost->terms.ranks, hbp__ending(cost->terms.ranks),
                         (long long)limits->tokens_per_rank, (long long)per_rank);
    if (!fits)
        return hbp__cost_refuse_pack(context, cost, length, why);
    *tokens = hbp__mul_saturating(length, packs);
    if (hbp__groups_method(options->method) != HBP__GROUPS_HBP)
        *tokens = whole_batches(cost, limits, *tokens, best_rank_tokens(cost, limits));
    return HBP_OK;
}
