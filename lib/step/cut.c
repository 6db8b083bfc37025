/* A pool cut into micro-batches by estimates: runs of its sequences, the longest first.
 *
 * In: a pool, how many runs, and how full they may be. Out: the runs with the least sum of estimates, over a
 * few places to cut at. By dynamic programming over places and runs, O(places^2 runs) of additions; an
 * estimate of a run is made when the best sum so far is not sure to beat it, and kept for the next cut of the
 * same pool: a step is cut for several numbers of micro-batches. Oracle: all cuts of small pools.
 */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "step/builder.h"

/* Of a run nothing is known yet: it takes at least this, less than any limit. */
#define UNKNOWN (-1e-300)

hbp_status hbp__step_cuts_open(const hbp__step *step, int64_t places, int64_t runs, hbp__step_cuts *cuts)
{
    hbp_context *context = step->context;
    const uint64_t ends = (uint64_t)places + 1;
    *cuts = (hbp__step_cuts){.step = step, .most = places};
    cuts->member = hbp__take(context, (uint64_t)step->count, sizeof *cuts->member);
    cuts->place = hbp__take(context, ends + 1, sizeof *cuts->place);
    cuts->cost = hbp__take(context, ends * ends, sizeof *cuts->cost);
    cuts->best = hbp__take(context, ends * ((uint64_t)runs + 1), sizeof *cuts->best);
    cuts->from = hbp__take(context, ends * ((uint64_t)runs + 1), sizeof *cuts->from);
    return hbp__scratch_check(context, "the search");
}

/* Share of the tokens plus share of the work in the rows before `row`. */
static double share_before(const hbp__step_pool *pool, const hbp__point *way, double tokens, double work,
                           int64_t row)
{
    double t = pool->tokens_before[row];
    return t / tokens + (work > 0 ? (way->linear * t + way->square * pool->squares_before[row]) / work : 1);
}

/* Rows to cut at: each of the longest few, then where a mix of tokens and rank-time passes equal shares.
 * Returns how many, the first 0 and the last the pool's count. */
static int64_t list_places(const hbp__step *step, const hbp__step_pool *pool, int64_t cuts, int64_t *place)
{
    int64_t singles = hbp__min_i64(cuts / 3, pool->count), places = 0;
    for (int64_t i = 0; i < singles; i++)
        place[places++] = i;
    const hbp__point *way = &step->degree[0].way[0];
    double tokens = pool->tokens_before[pool->count];
    double work = way->linear * tokens + way->square * pool->squares_before[pool->count];
    int64_t left = cuts - singles, row = singles;
    double base = share_before(pool, way, tokens, work, row);
    for (int64_t i = 1; i <= left && row < pool->count; i++) {
        double goal = base + (2 - base) * (double)i / (double)left;
        while (row < pool->count && share_before(pool, way, tokens, work, row + 1) <= goal)
            row++;
        if (!places || place[places - 1] < row)
            place[places++] = row;
    }
    if (place[places - 1] < pool->count)
        place[places++] = pool->count;
    return places;
}

/* Lists the places of a pool that was not the last one cut. */
static void turn_to(hbp__step_cuts *cuts, const hbp__step_pool *pool, double density)
{
    const size_t bytes = (size_t)pool->count * sizeof *cuts->member;
    if (cuts->count == pool->count && cuts->density == density && !memcmp(cuts->member, pool->member, bytes))
        return;
    memcpy(cuts->member, pool->member, bytes);
    cuts->count = pool->count;
    cuts->density = density;
    cuts->places = list_places(cuts->step, pool, cuts->most, cuts->place);
    for (int64_t i = 0; i < cuts->places * cuts->places; i++)
        cuts->cost[i] = UNKNOWN;
}

/* The estimate of the run between two places, or INFINITY where that is at least `limit` and not known. */
static double cost_below(const hbp__step_cuts *cuts, const hbp__step_pool *pool, int64_t a, int64_t b,
                         double limit)
{
    double *cost = &cuts->cost[a * cuts->places + b];
    if (*cost < 0 && -*cost < limit)
        *cost =
            hbp__step_estimate_below(cuts->step, pool, cuts->place[a], cuts->place[b], cuts->density, limit);
    return *cost < 0 ? (double)INFINITY : *cost;
}

double hbp__step_cut(hbp__step_cuts *cuts, const hbp__step_pool *pool, int64_t runs, double density,
                     int64_t *end)
{
    const hbp__step *step = cuts->step;
    const double most = hbp__step_memory(step) * density * (1 + 1e-9);
    turn_to(cuts, pool, density);
    const int64_t places = cuts->places, *place = cuts->place;
    double *best = cuts->best;
    for (int64_t b = 0; b < places; b++)
        best[b] = b ? (double)INFINITY : 0;
    for (int64_t m = 1; m <= runs; m++)
        for (int64_t b = 0; b < places; b++) {
            double *mine = &best[m * places + b];
            *mine = (double)INFINITY;
            cuts->from[m * places + b] = 0;
            /* What is behind is to go into the runs behind. */
            if (hbp__step_pool_room(step, pool, place[b], pool->count) > (double)(runs - m) * most)
                continue;
            for (int64_t a = 0; a < b; a++) {
                const double before = best[(m - 1) * places + a];
                if (!(before < *mine))
                    continue;
                double sum = before + cost_below(cuts, pool, a, b, (*mine - before) * (1 + 1e-9));
                if (sum < *mine) {
                    *mine = sum;
                    cuts->from[m * places + b] = a;
                }
            }
        }
    double sum = best[runs * places + places - 1];
    if (!(sum < (double)INFINITY))
        return sum;
    int64_t at = places - 1;
    for (int64_t m = runs; m > 0; m--) {
        end[m - 1] = place[at];
        at = cuts->from[m * places + at];
    }
    return sum;
}
