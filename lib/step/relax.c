/* A pool's sums, and estimates from them of what it takes, its sequences divisible among the groups. */
#include <math.h>

#include "base/checked.h"
#include "step/builder.h"
#include "step/tuning.h"

double hbp__step_memory(const hbp__step *step)
{
    double most = 0;
    for (int32_t j = 0; j < step->degrees; j++)
        most = hbp__max_f64(most, (double)step->degree[j].capacity / step->degree[j].degree * step->ranks);
    return most;
}

void hbp__step_pool_sum(const hbp__step *step, hbp__step_pool *p)
{
    p->tokens_before[0] = p->squares_before[0] = 0;
    for (int64_t i = 0; i < p->count; i++) {
        if (p->status >= 0)
            p->status = hbp__tick_row(step->context, "step", i, p->count);
        int64_t k = p->member[i];
        int counts = p->status >= 0; /* once cancelled nobody asks for the sums */
        p->tokens_before[i + 1] = p->tokens_before[i] + (counts ? (double)step->tokens[k] : 0);
        p->squares_before[i + 1] = p->squares_before[i] + (counts ? step->squares[k] : 0);
    }
    for (int64_t i = 0; p->vision_before && i <= p->count; i++)
        p->vision_before[i] = i ? p->vision_before[i - 1] + (double)step->vision[p->member[i - 1]] : 0;
}

/* What a degree makes of a stretch of the pool. */
typedef struct relax_degree {
    const hbp__point *way;
    double ranks;
    double capacity; /* 0: not to be used */
} relax_degree;

typedef struct relaxation {
    const hbp__step *step;
    const hbp__step_pool *pool;
    int64_t first;
    int64_t end;
    double fixed; /* of every micro-batch */
    relax_degree degree[HBP__STEP_DEGREES];
} relaxation;

/* The longest sequence that a degree runs within `makespan`. */
static double reach(const relax_degree *d, double makespan)
{
    const hbp__point *way = d->way;
    if (!(makespan < (double)INFINITY))
        return d->capacity; /* an infinite one below would be a quotient of none */
    double left = makespan - way->constant;
    if (left <= 0)
        return 0;
    double root = sqrt(way->linear * way->linear + 4 * way->square * left);
    double longest = way->linear + root > 0 ? 2 * left / (way->linear + root) : d->capacity;
    return longest < d->capacity ? longest : d->capacity;
}

/* First row in [low, high) whose sequence weighs at most `tokens`. */
static int64_t find_row(const relaxation *r, int64_t low, int64_t high, double tokens)
{
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if ((double)r->step->weight[r->pool->member[middle]] > tokens)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Rank-time of the rows at the least degrees that finish within `makespan`; INFINITY when some finish on
 * none. */
static double area(const relaxation *r, double makespan)
{
    const hbp__step_pool *pool = r->pool;
    double sum = 0;
    int64_t end = r->end;
    for (int32_t j = 0; j < r->step->degrees && end > r->first; j++) {
        const relax_degree *d = &r->degree[j];
        if (!(d->capacity > 0))
            continue;
        int64_t from = find_row(r, r->first, end, reach(d, makespan));
        double tokens = pool->tokens_before[end] - pool->tokens_before[from];
        double squares = pool->squares_before[end] - pool->squares_before[from];
        double ns = d->way->linear * tokens + d->way->square * squares;
        if (pool->vision_before)
            ns += d->way->vision * hbp__step_pool_vision(pool, from, end);
        sum += d->ranks * ns;
        end = from;
    }
    return end > r->first ? (double)INFINITY : sum;
}

double hbp__step_estimate_below(const hbp__step *step, const hbp__step_pool *pool, int64_t first, int64_t end,
                                double density, double limit)
{
    relaxation r = {.step = step, .pool = pool, .first = first, .end = end};
    double ranks = step->ranks, least = (double)INFINITY;
    r.fixed = step->cost->terms.pack_ns;
    if (first == end)
        return r.fixed;
    const hbp__load longest = hbp__step_load_least(step, pool->member[first]);
    double per_rank = hbp__step_pool_room(step, pool, first, end) / ranks;
    for (int32_t j = 0; j < step->degrees; j++) {
        const hbp__step_degree *d = &step->degree[j];
        double fill = per_rank * d->degree;
        int fits = fill <= (double)d->capacity * density;
        const hbp__point *way = fits ? hbp__step_find_way(d, (int64_t)fill) : &d->way[d->ways - 1];
        r.degree[j] = (relax_degree){way, d->degree, fits ? (double)d->capacity : 0};
        if (fits && hbp__step_holds(step, j, longest)) {
            double alone = hbp__step_group_time(step, j, longest);
            least = alone < least ? alone : least;
        }
    }
    double low = area(&r, (double)INFINITY) / ranks + r.fixed;
    low = low > least ? low : least;
    if (!(low < limit))
        return -low;
    double needed = area(&r, low) / ranks + r.fixed;
    if (needed <= low)
        return low;
    double high = needed;
    if (!(high < (double)INFINITY)) {
        /* Too short for some sequence: lengthen until none is. */
        high = low;
        for (int i = 0; i < 200 && area(&r, high) / ranks + r.fixed > high; i++)
            high = high * 1.25 + 1;
    }
    for (int i = 0; i < HBP__RELAX_HALVINGS && high - low > low * HBP__RELAX_PRECISE; i++) {
        double middle = low + (high - low) / 2;
        if (area(&r, middle) / ranks + r.fixed <= middle)
            high = middle;
        else
            low = middle;
    }
    return high;
}

double hbp__step_estimate(const hbp__step *step, const hbp__step_pool *pool, int64_t first, int64_t end,
                          double density)
{
    return fabs(hbp__step_estimate_below(step, pool, first, end, density, (double)INFINITY));
}
