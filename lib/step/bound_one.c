/* One micro-batch: how many ranks must belong to groups of at least some degree. The proof is in
 * docs/explanation/step-bound.md, the names here are the ones used there. */
#include <math.h>

#include "step/bound.h"

/* Sequences seen from level j: what they load below it, and at it or above. */
typedef struct level {
    const hbp__step *step;
    const hbp__ask *ask;
    double time;
    double weight; /* lambda: of time; the rest is memory's */
} level;

/* Ranks that a sequence loads on the degrees [from, to) that finish in time; INFINITY: none does. */
static double load(const level *l, int64_t k, int32_t from, int32_t to, double weight)
{
    const hbp__ask *asks = &l->ask[k * l->step->degrees];
    double least = (double)INFINITY;
    for (int32_t j = from; j < to; j++)
        for (int32_t n = 0; asks[j].alone <= l->time && n < asks[j].needs; n++) {
            double here = weight * asks[j].need[n].work / l->time + (1 - weight) * asks[j].need[n].share;
            least = here < least ? here : least;
        }
    return least;
}

/* At most so much of the loads below [marked] can be taken by `room` above: the least over prices of room. */
static double saving(const level *l, double room, const double *below, const double *above)
{
    double low = 0, high = 4, best = (double)INFINITY;
    for (int i = 0; i < 14; i++) {
        double price[2] = {low + (high - low) * 0.4, low + (high - low) * 0.6}, value[2];
        for (int t = 0; t < 2; t++) {
            value[t] = price[t] * room;
            for (int64_t k = 0; k < l->step->count; k++)
                if (below[k] < (double)INFINITY && below[k] > price[t] * above[k])
                    value[t] += below[k] - price[t] * above[k];
            best = value[t] < best ? value[t] : best;
        }
        if (value[0] <= value[1])
            high = price[1];
        else
            low = price[0];
    }
    return best;
}

static double round_up(double x, double unit)
{
    double units = x * (1 - HBP__BOUND_MARGIN) / unit;
    return ceil(units) * unit;
}

static int allows(const level *l, double *scratch, double *least)
{
    const hbp__step *step = l->step;
    double ranks = step->ranks, used = 0, must_before = 0;
    double *below = scratch, *above = scratch + step->count, *class = scratch + 2 * step->count;
    for (int32_t j = step->degrees - 1; j >= 0; j--) {
        double must = 0, rest = 0, mine = 0, d = step->chain ? step->degree[j].degree : 1e-6;
        double room = used - must_before;
        for (int64_t k = 0; k < step->count; k++) {
            below[k] = load(l, k, 0, j, l->weight);
            above[k] = load(l, k, j, step->degrees, l->weight);
            if (below[k] < (double)INFINITY) {
                below[k] = above[k] < below[k] ? above[k] : below[k];
                rest += below[k];
                class[k] = (double)INFINITY;
                continue;
            }
            if (!(above[k] < (double)INFINITY))
                return 0;
            must += above[k];
            double upper = load(l, k, j + 1, step->degrees, l->weight),
                   here = load(l, k, j, j + 1, l->weight);
            /* Of this level's own: what the groups above have no room for. */
            class[k] = (double)INFINITY;
            if (here < (double)INFINITY) {
                class[k] = upper < here ? upper : here;
                mine += class[k];
            }
        }
        double taken = 0;
        if (room > 0 && mine > 0) {
            double *upper = above; /* of this level's own sequences, for a moment */
            for (int64_t k = 0; k < step->count; k++)
                if (class[k] < (double)INFINITY)
                    upper[k] = load(l, k, j + 1, step->degrees, l->weight);
            taken = saving(l, room, class, upper);
            for (int64_t k = 0; k < step->count; k++)
                if (class[k] < (double)INFINITY)
                    above[k] = load(l, k, j, step->degrees, l->weight);
        }
        double needed = used + (mine > taken ? mine - taken : 0);
        used = round_up(needed > must ? needed : must, d);
        least[j] = used;
        if (used > ranks * (1 + HBP__BOUND_MARGIN))
            return 0;
        if (rest > 0 &&
            rest - saving(l, used - must, below, above) > (ranks - used) * (1 + HBP__BOUND_MARGIN) + 1e-9)
            return 0;
        must_before = must;
    }
    return 1;
}

int hbp__bound_one_allows(const hbp__step *step, const hbp__ask *ask, double time, double weight,
                          double *scratch, double *least)
{
    level l = {step, ask, time, weight};
    return allows(&l, scratch, least);
}

/* Whether, with groups of degree j and above judged by `above` as the share of time and those below by
 * `below`, some number of ranks above, no less than `least`, is enough. What remains for the ranks below is
 * concave in the ranks above, so the search ends when it falls. */
static int allows_both(const level *l, int32_t j, double least, double weight_above, double weight_below,
                       double *scratch)
{
    const hbp__step *step = l->step;
    double *below = scratch, *above = scratch + step->count, must = 0, rest = 0, last = -(double)INFINITY;
    double ranks = step->ranks, d = step->chain ? step->degree[j].degree : 1;
    for (int64_t k = 0; k < step->count; k++) {
        below[k] = load(l, k, 0, j, weight_below);
        above[k] = load(l, k, j, step->degrees, weight_above);
        if (below[k] < (double)INFINITY)
            rest += below[k];
        else
            must += above[k];
    }
    double own = round_up(must, d);
    least = least > own ? least : own;
    for (double used = least; used <= ranks * (1 + HBP__BOUND_MARGIN); used += d) {
        double left = ranks - used - rest + saving(l, used - must, below, above);
        if (left >= -(1e-9 + ranks * HBP__BOUND_MARGIN))
            return 1;
        if (left < last)
            return 0;
        last = left;
    }
    return 0;
}

int hbp__bound_one_allows_both(const hbp__step *step, const hbp__ask *ask, double time, const double *least,
                               double *scratch)
{
    static const double weight[][2] = {{1, 0}, {0, 1}, {1, 0.5}, {0.5, 0}};
    level l = {step, ask, time, 0};
    for (int32_t j = 1; j < step->degrees; j++)
        for (int i = 0; i < 4; i++)
            if (!allows_both(&l, j, least[j], weight[i][0], weight[i][1], scratch))
                return 0;
    return 1;
}
