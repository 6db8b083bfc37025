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
 * with n the least number of steps, m from the least number that holds the j longest to j. Of several m at
 * once the sum is that of the least and the bound that of the most. Tried are the first few j, and those of
 * all samples longer than some lengths. O(bins) for each pair that is tried; a j is left as soon as one m
 * says no more than is known. Oracle: every way to spread few samples over steps
 * (tests/epoch/test_bound_long.c). */
#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "cost/point.h"
#include "epoch/batches.h"
#include "epoch/bound.h"
#include "epoch/tuning.h"
#include "simulate/plan/bound.h"

typedef struct longest {
    const hbp__epoch *epoch;
    int64_t tokens_per_step;
    int64_t steps; /* at least */
    /* The lengths, ascending, those that are nearly equal as the shortest of them: no bound rises by that. */
    int64_t bins;
    int64_t *length;   /* [bins] */
    int64_t *number;   /* [bins] samples */
    int64_t *alone_ns; /* [bins] of a sample alone, with the step's own time; 0: not known yet */
    int64_t *left;     /* [bins] scratch */
} longest;

/* As many steps as hold some of the longest samples at least, and what they wait for those. */
typedef struct tops {
    int64_t steps;
    int64_t ns;
    int64_t last_ns; /* one step more: the last of the samples alone */
} tops;

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

/* A sample of a bin alone, with the step's own time. It fits somewhere if the longest does. */
static int64_t alone_ns(const longest *l, int64_t bin)
{
    const hbp_cost *cost = l->epoch->bending;
    if (!l->alone_ns[bin])
        l->alone_ns[bin] = hbp__add_saturating(hbp__epoch_alone_ns(cost, l->length[bin]),
                                               hbp__round_i64(cost->terms.step_ns));
    return l->alone_ns[bin];
}

/* Of the `count` longest: the step that begins behind i T tokens of them waits for one no shorter than the
 * sample there. O(bins + steps). */
static tops tops_of(const longest *l, int64_t count)
{
    tops t = {.steps = 0};
    int64_t bin = l->bins, tokens = 0, left = count;
    while (left > 0) {
        const int64_t samples = hbp__min_i64(left, l->number[--bin]);
        left -= samples;
        tokens += samples * l->length[bin];
        for (; t.steps * l->tokens_per_step < tokens; t.steps++)
            t.ns = hbp__add_saturating(t.ns, alone_ns(l, bin));
    }
    t.last_ns = alone_ns(l, bin);
    return t;
}

/* The longest length of which a full step of such samples works longer than one of them takes alone; 0: none.
 */
static int64_t waits_past(const longest *l)
{
    const hbp__epoch *epoch = l->epoch;
    const double share = (double)l->tokens_per_step / (double)epoch->cost->terms.ranks;
    for (int64_t b = l->bins - 1; b >= 0; b--) {
        const double length = (double)l->length[b];
        if ((double)alone_ns(l, b) < share * hbp__epoch_work(epoch, 1, length, 0))
            return l->length[b];
    }
    return 0;
}

/* Samples of more than `length` tokens. */
static int64_t count_longer(const longest *l, int64_t length)
{
    int64_t count = 0;
    for (int64_t b = l->bins - 1; b >= 0 && l->length[b] > length; b--)
        count += l->number[b];
    return count;
}

/* The bound of what is left when so many steps are filled with the longest samples; *is_empty when nothing
 * is. */
static hbp_status bound_rest(const longest *l, int64_t steps, int64_t *ns, int *is_empty)
{
    int64_t bins = l->bins, taken = hbp__mul_saturating(steps, l->tokens_per_step);
    memcpy(l->left, l->number, (size_t)bins * sizeof *l->left);
    while (bins > 0 && taken > 0) {
        int64_t length = l->length[bins - 1];
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
    return bins ? hbp__bound(l->epoch->context, l->epoch->bending, bins, l->length, l->left, 1, 0,
                             hbp__max_i64(0, l->steps - steps), ns)
                : HBP_OK;
}

/* Raises the bound by what the `count` longest samples say. Numbers of steps past the least are taken some at
 * once, by the waits of the first and the rest of the last of them. */
static hbp_status raise_bound(const longest *l, int64_t count, int64_t *pairs, int64_t *bound_ns)
{
    const tops t = tops_of(l, count);
    int64_t least = INT64_MAX, rest, last;
    int is_empty = 0;
    for (int64_t m = t.steps; m <= count && !is_empty; m = last + 1) {
        if (--*pairs < 0)
            return HBP_OK;
        last = hbp__min_i64(m + (m - t.steps) / HBP__BOUND_AT_ONCE, count);
        HBP__TRY(bound_rest(l, last, &rest, &is_empty));
        const int64_t waits = hbp__add_saturating(t.ns, hbp__mul_saturating(m - t.steps, t.last_ns));
        least = hbp__min_i64(least, hbp__add_saturating(waits, rest));
        if (least <= *bound_ns)
            return HBP_OK;
    }
    *bound_ns = least;
    return HBP_OK;
}

static hbp_status raise_bounds(const longest *l, int64_t *bound_ns)
{
    int64_t pairs = HBP__BOUND_PAIRS;
    for (int64_t count = 1; count <= hbp__min_i64(HBP__BOUND_LONGEST, l->epoch->lengths->count) && pairs > 0;
         count++)
        HBP__TRY(raise_bound(l, count, &pairs, bound_ns));
    pairs = hbp__min_i64(HBP__BOUND_WAIT_PAIRS, HBP__BOUND_WAIT_BINS / l->bins);
    pairs = hbp__max_i64(pairs, HBP__BOUND_PAIRS);
    /* Of how long samples most is known depends on how well the others fill their steps. */
    const int64_t most = l->length[l->bins - 1];
    int64_t length = waits_past(l);
    for (; length < most && pairs > 0; length += 1 + length / HBP__BOUND_NEXT + most / HBP__BOUND_LENGTHS) {
        const int64_t count = count_longer(l, length);
        if (count > HBP__BOUND_LONGEST)
            HBP__TRY(raise_bound(l, count, &pairs, bound_ns));
    }
    return HBP_OK;
}

/* Many lengths are few once those that differ by a HBP__BOUND_NEARLY-th are one, but for the longest. */
static hbp_status list_lengths(longest *l)
{
    const hbp_lengths *lengths = l->epoch->lengths;
    const int64_t exact =
        lengths->bins > HBP__BOUND_BINS ? lengths->bins - HBP__BOUND_LONGEST : 0; /* from here on */
    l->length = hbp__take(l->epoch->context, (uint64_t)lengths->bins, sizeof *l->length);
    l->number = hbp__take(l->epoch->context, (uint64_t)lengths->bins, sizeof *l->number);
    l->left = hbp__take(l->epoch->context, (uint64_t)lengths->bins, sizeof *l->left);
    l->alone_ns = hbp__take_zero(l->epoch->context, (uint64_t)lengths->bins, sizeof *l->alone_ns);
    HBP__TRY(hbp__scratch_check(l->epoch->context, "the bound of long samples"));
    for (int64_t b = 0; b < lengths->bins; b++) {
        const int64_t length = lengths->bin_length[b], last = l->bins ? l->length[l->bins - 1] : 0;
        if (!l->bins || b >= exact || length - last > last / HBP__BOUND_NEARLY) {
            l->length[l->bins] = length;
            l->number[l->bins++] = 0;
        }
        l->number[l->bins - 1] += lengths->bin_count[b];
    }
    return HBP_OK;
}

hbp_status hbp__epoch_bound_long(const hbp__epoch *epoch, int64_t tokens_per_step, int64_t *bound_ns)
{
    const hbp_lengths *lengths = epoch->lengths;
    longest l = {.epoch = epoch, .tokens_per_step = tokens_per_step};
    const int64_t mark = hbp__scratch_mark(epoch->context), most = lengths->bin_length[lengths->bins - 1];
    const int64_t most_ns = hbp__epoch_alone_ns(epoch->bending, most);
    if (tokens_per_step < most || lengths->vision_sum > 0 || most_ns < 0)
        return HBP_OK;
    l.steps = hbp__ceil_div(lengths->tokens, tokens_per_step);
    if (hbp__add_saturating(most_ns, hbp__round_i64(epoch->bending->terms.step_ns)) <= *bound_ns / l.steps)
        return HBP_OK; /* no longer than a step's share */
    HBP__TRY(list_lengths(&l));
    HBP__TRY(raise_bounds(&l, bound_ns));
    hbp__scratch_release(epoch->context, mark);
    return HBP_OK;
}
