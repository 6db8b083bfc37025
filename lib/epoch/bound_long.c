/* The bound of an epoch whose longest samples take longer than a step's share of the work.
 *
 * Let m steps hold the j longest samples, each step at most T tokens. A step lasts at least as long as its
 * longest sample alone, and the i-th of those steps has one no shorter than the sample behind the (i - 1) T
 * tokens of the longest ones, or the j-th. What those steps hold besides is at most m T tokens, and no tokens
 * are worth more in the area bound (docs: bound) than those of the longest samples: the other steps take no
 * less than the bound of what is left when m T tokens are taken off the longest. So for each j
 *
 *     epoch >= min over m of  sum over i <= m of (A_i + t_step)  +  area bound(the rest, n - m steps)
 *
 * with n the least number of steps, m from the least number that holds the j longest to j. O(bins) for each
 * pair that is tried; a j is left as soon as one m says no more than is known. Oracle: every way to spread
 * few samples over steps (tests/epoch/test_bound_long.c). */
#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "cost/point.h"
#include "epoch/bound.h"
#include "epoch/tuning.h"
#include "simulate/plan/bound.h"

typedef struct longest {
    const hbp__epoch *epoch;
    int64_t tokens_per_step;
    int64_t steps; /* at least */
    int64_t count;
    int64_t ns[HBP__BOUND_LONGEST];        /* alone, with the step's own time */
    int64_t tokens_to[HBP__BOUND_LONGEST]; /* of the longest up to this one */
    int64_t *left;                         /* [bins] scratch */
} longest;

int64_t hbp__epoch_alone_ns(const hbp_cost *cost, int64_t length)
{
    int64_t least = -1;
    for (int32_t row = 0; row < cost->terms.degrees; row++) {
        int32_t layers = hbp__cost_fewest_layers(cost, row, length, 0);
        if (layers < 0)
            continue;
        hbp__load load = {.tokens = length, .squares = (double)length * (double)length};
        int64_t ns = hbp__cost_pack_ns(cost, row, layers, load);
        least = least < 0 || ns < least ? ns : least;
    }
    return least;
}

/* Lists the longest samples; 0 when one fits nowhere. */
static int list_longest(longest *l)
{
    const hbp_lengths *lengths = l->epoch->lengths;
    const hbp_cost *cost = l->epoch->bending;
    int64_t step_ns = hbp__round_i64(cost->terms.step_ns), tokens = 0;
    for (int64_t b = lengths->bins - 1; b >= 0 && l->count < HBP__BOUND_LONGEST; b--) {
        int64_t ns = hbp__epoch_alone_ns(cost, lengths->bin_length[b]);
        if (ns < 0)
            return 0;
        for (int64_t i = 0; i < lengths->bin_count[b] && l->count < HBP__BOUND_LONGEST; i++) {
            tokens += lengths->bin_length[b];
            l->tokens_to[l->count] = tokens;
            l->ns[l->count++] = hbp__add_saturating(ns, step_ns);
        }
    }
    return 1;
}

/* The least that `steps` steps with the `count` longest samples take. */
static int64_t tops_ns(const longest *l, int64_t count, int64_t steps)
{
    int64_t sum = 0, at = 0;
    for (int64_t i = 0; i < steps; i++) {
        while (at < count - 1 && l->tokens_to[at] <= i * l->tokens_per_step)
            at++;
        sum = hbp__add_saturating(sum, l->ns[at]);
    }
    return sum;
}

/* The bound of what is left when so many steps are filled with the longest samples; *is_empty when nothing
 * is. */
static hbp_status bound_rest(const longest *l, int64_t steps, int64_t *ns, int *is_empty)
{
    const hbp_lengths *lengths = l->epoch->lengths;
    int64_t bins = lengths->bins, taken = hbp__mul_saturating(steps, l->tokens_per_step);
    memcpy(l->left, lengths->bin_count, (size_t)bins * sizeof *l->left);
    while (bins > 0 && taken > 0) {
        int64_t length = lengths->bin_length[bins - 1];
        int64_t samples = hbp__min_i64(hbp__ceil_div(taken, length), l->left[bins - 1]);
        l->left[bins - 1] -= samples;
        taken -= samples * length;
        if (l->left[bins - 1])
            break;
        bins--;
    }
    *is_empty = !bins;
    *ns = 0;
    /* As if samples were not padded: a token of a short one may be worth more than one of the longest then.
     */
    return bins ? hbp__bound(l->epoch->context, l->epoch->bending, bins, lengths->bin_length, l->left, 1, 0,
                             hbp__max_i64(0, l->steps - steps), ns)
                : HBP_OK;
}

/* Raises the bound by what the `count` longest samples say. */
static hbp_status raise_bound(const longest *l, int64_t count, int64_t *pairs, int64_t *bound_ns)
{
    int64_t least = INT64_MAX, rest;
    int is_empty = 0;
    for (int64_t m = hbp__ceil_div(l->tokens_to[count - 1], l->tokens_per_step); m <= count && !is_empty;
         m++) {
        if (--*pairs < 0)
            return HBP_OK;
        HBP__TRY(bound_rest(l, m, &rest, &is_empty));
        least = hbp__min_i64(least, hbp__add_saturating(tops_ns(l, count, m), rest));
        if (least <= *bound_ns)
            return HBP_OK;
    }
    *bound_ns = least;
    return HBP_OK;
}

hbp_status hbp__epoch_bound_long(const hbp__epoch *epoch, int64_t tokens_per_step, int64_t *bound_ns)
{
    longest l = {.epoch = epoch, .tokens_per_step = tokens_per_step};
    int64_t pairs = HBP__BOUND_PAIRS, mark = hbp__scratch_mark(epoch->context);
    if (tokens_per_step < 1 || epoch->lengths->vision_sum > 0 || !list_longest(&l))
        return HBP_OK;
    l.steps = hbp__ceil_div(epoch->lengths->tokens, tokens_per_step);
    if (l.ns[0] <= *bound_ns / l.steps || l.tokens_to[0] > tokens_per_step)
        return HBP_OK; /* no longer than a step's share */
    l.left = hbp__take(epoch->context, (uint64_t)epoch->lengths->bins, sizeof *l.left);
    HBP__TRY(hbp__scratch_check(epoch->context, "the bound of long samples"));
    for (int64_t count = 1; count <= l.count && pairs > 0; count++)
        HBP__TRY(raise_bound(&l, count, &pairs, bound_ns));
    hbp__scratch_release(epoch->context, mark);
    return HBP_OK;
}
