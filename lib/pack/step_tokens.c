/* The tokens of a step where the caller gives none. */
#include "pack/hierarchy.h"

/* Packs of `length` tokens, one on every SP group of the degree with the least time: *packs of them. 0 when
 * no degree holds one. */
static int best_degree(const hbp_cost *cost, const hbp__level_limits *limits, double squares_per_token,
                       int64_t length, int64_t *packs)
{
    double best_ns = -1;
    for (int32_t row = 0; row < cost->terms.degrees; row++) {
        hbp__level level;
        if (!hbp__level_allow(cost, limits, cost->degree[row], length, 1, &level))
            continue;
        double ns = (double)level.sp * hbp__cost_ns(cost, row, level.recompute, (double)length,
                                                    squares_per_token * (double)length);
        if (best_ns < 0 || ns < best_ns) {
            best_ns = ns;
            *packs = level.packs;
        }
    }
    return best_ns >= 0;
}

/* What a pack pays once need be no less than this share of its time. */
#define SMALL_SHARE 20

/* Tokens on a rank at which a token takes least: what a pack pays once is then shared by many, and no more
 * layers are recomputed than that is worth. Those are capacities: between two of them every token more is a
 * gain, until what is paid once is a SMALL_SHARE of the time. */
static int64_t best_rank_tokens(const hbp_cost *cost, const hbp__level_limits *limits)
{
    double best_ns = -1;
    int64_t best = 0;
    for (int32_t row = 0; row < cost->terms.degrees; row++)
        for (int32_t c = 0; c <= cost->terms.layers; c++) {
            int64_t sp = cost->degree[row];
            int64_t length = hbp_cost_predict_capacity(cost, (int32_t)sp, c);
            length = hbp__min_i64(length, limits->max_length);
            if (limits->tokens_per_rank < length / sp)
                length = limits->tokens_per_rank * sp;
            length = length / limits->pack_multiple * limits->pack_multiple;
            if (length < 1)
                continue;
            double tokens = (double)length;
            double ns = (double)sp * hbp__cost_ns(cost, row, c, tokens, 0) / tokens;
            if (best_ns < 0 || ns < best_ns) {
                double once = hbp__cost_ns(cost, row, c, 0, 0), each = ns / (double)sp - once / tokens;
                double enough = (SMALL_SHARE - 1) * once;
                best_ns = ns;
                best = enough < each * tokens ? hbp__round_i64(enough / each) / sp : length / sp;
            }
        }
    return best;
}

/* Up to so many micro-batches of longest packs, a step holds whole ones of them: a part would be left over.
 */
#define FEW_BATCHES 3

/* The larger of a micro-batch of longest packs and the best tokens of all ranks; few of the former are made
 * whole, to the nearest number. */
static int64_t whole_batches(int64_t batch, int64_t best)
{
    if (best <= batch)
        return batch;
    return best / batch < FEW_BATCHES ? (best + batch / 2) / batch * batch : best;
}

hbp_status hbp__groups_step_tokens(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                                   const hbp_groups_options *options, const hbp__level_limits *limits,
                                   int64_t longest, int64_t *tokens)
{
    hbp__level_limits any_step = *limits;
    double squares_per_token = lengths->sum_squares / (double)lengths->tokens;
    int64_t length = options->max_length, packs = 0;
    any_step.tokens_per_step = INT64_MAX;
    int fits = best_degree(cost, &any_step, squares_per_token, length, &packs);
    if (!fits && options->mode != HBP_GROUPS_PAPER) {
        length = hbp__round_up(longest, limits->pack_multiple);
        fits = best_degree(cost, &any_step, squares_per_token, length, &packs);
    }
    if (!fits)
        return hbp__fail(context, HBP_E_INFEASIBLE,
                         "no SP degree holds a pack of %lld tokens on %d rank(s), even with every layer "
                         "recomputed",
                         (long long)length, (int)cost->terms.ranks);
    *tokens = hbp__mul_saturating(length, packs);
    if (options->mode != HBP_GROUPS_PAPER)
        *tokens = whole_batches(*tokens, best_rank_tokens(cost, limits) * cost->terms.ranks);
    return HBP_OK;
}
