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
    double margin;
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

/* At most so much of the loads below can be taken by `room` above: the least over prices of room up to
 * `highest`. *price gets the one it comes from, at which it holds for any room. */
static double saving(const level *l, double room, const double *below, const double *above, double highest,
                     double *price)
{
    double low = 0, high = highest, best = (double)INFINITY;
    for (int i = 0; i < 14; i++) {
        double at[2] = {low + (high - low) * 0.4, low + (high - low) * 0.6}, value[2];
        for (int t = 0; t < 2; t++) {
            value[t] = at[t] * room;
            for (int64_t k = 0; k < l->step->count; k++)
                if (below[k] < (double)INFINITY && below[k] > at[t] * above[k])
                    value[t] += below[k] - at[t] * above[k];
            if (value[t] < best) {
                best = value[t];
                *price = at[t];
            }
        }
        if (value[0] <= value[1])
            high = at[1];
        else
            low = at[0];
    }
    return best;
}

/* Ranks in groups of degree j and above are a multiple of this: the greatest common divisor. */
static double unit_of(const hbp__step *step, int32_t j)
{
    int32_t unit = 0;
    for (int32_t i = j; i < step->degrees; i++)
        for (int32_t rest = step->degree[i].degree; rest;) {
            int32_t next = unit % rest;
            unit = rest;
            rest = next;
        }
    return unit;
}

static double round_up(const level *l, double x, double unit)
{
    return ceil(x * (1 - l->margin) / unit) * unit;
}

static double positive(double x)
{
    return x > 0 ? x : 0;
}

static int allows(const level *l, double *scratch, double *least)
{
    const hbp__step *step = l->step;
    double ranks = step->ranks, used = 0, must_before = 0, price;
    double *below = scratch, *above = scratch + step->count, *mine = scratch + 2 * step->count;
    for (int32_t j = step->degrees - 1; j >= 0; j--) {
        double must = 0, rest = 0, own = 0, taken = 0;
        for (int64_t k = 0; k < step->count; k++) {
            below[k] = load(l, k, 0, j, l->weight);
            mine[k] = (double)INFINITY;
            if (below[k] < (double)INFINITY)
                continue;
            /* Of this level's own: what the groups above have no room for. */
            double here = load(l, k, j, j + 1, l->weight);
            above[k] = load(l, k, j + 1, step->degrees, l->weight);
            must += here < above[k] ? here : above[k];
            if (here < (double)INFINITY) {
                mine[k] = above[k] < here ? above[k] : here;
                own += mine[k];
            }
        }
        if (!(must < (double)INFINITY))
            return 0;
        if (used > must_before && own > 0)
            taken = saving(l, used - must_before, mine, above, 1, &price);
        double needed = used + positive(own - taken);
        used = round_up(l, needed > must ? needed : must, unit_of(step, j));
        least[j] = used;
        if (used > ranks * (1 + l->margin))
            return 0;
        for (int64_t k = 0; k < step->count; k++)
            if (below[k] < (double)INFINITY) {
                above[k] = load(l, k, j, step->degrees, l->weight);
                below[k] = above[k] < below[k] ? above[k] : below[k];
                rest += below[k];
            }
        if (rest > 0 && rest - saving(l, positive(used - must), below, above, 1, &price) >
                            ranks - used + ranks * l->margin)
            return 0;
        must_before = must;
    }
    return 1;
}

int hbp__bound_one_allows(const hbp__step *step, const hbp__ask *ask, double time, double weight,
                          double *scratch, double *least)
{
    level l = {step, ask, time, weight, hbp__bound_margin(step->count)};
    return allows(&l, scratch, least);
}

/* Whether, with groups of degree j and above judged by `weight_above` as the share of time and those below by
 * `weight_below`, some number of ranks above, no less than `least`, is enough. The price found for one number
 * bounds what remains for the ranks below at every other, so numbers that it rules out are passed over. */
static int allows_both(const level *l, int32_t j, double least, double weight_above, double weight_below,
                       double *scratch)
{
    const hbp__step *step = l->step;
    double *below = scratch, *above = scratch + step->count, must = 0, rest = 0, price = 0;
    double ranks = step->ranks, unit = unit_of(step, j);
    for (int64_t k = 0; k < step->count; k++) {
        below[k] = load(l, k, 0, j, weight_below);
        above[k] = load(l, k, j, step->degrees, weight_above);
        if (below[k] < (double)INFINITY)
            rest += below[k];
        else
            must += above[k];
    }
    double own = round_up(l, must, unit), used = least > own ? least : own;
    while (used <= ranks * (1 + l->margin)) {
        double left = ranks - used - rest + saving(l, positive(used - must), below, above, 4, &price);
        if (left >= -(ranks + rest) * l->margin)
            return 1;
        if (price <= 1)
            return 0;
        double next = used + round_up(l, -left / (price - 1), unit);
        used = next > used + unit ? next : used + unit;
    }
    return 0;
}

int hbp__bound_one_allows_both(const hbp__step *step, const hbp__ask *ask, double time, const double *least,
                               double *scratch)
{
    static const double weight[][2] = {{1, 0}, {0, 1}, {1, 0.5}, {0.5, 0}};
    level l = {step, ask, time, 0, hbp__bound_margin(step->count)};
    for (int32_t j = 1; j < step->degrees; j++)
        for (int i = 0; i < 4; i++)
            if (!allows_both(&l, j, least[j], weight[i][0], weight[i][1], scratch))
                return 0;
    return 1;
}
