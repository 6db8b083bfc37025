/* The bound of hbp__cut_rounds: Lagrange's relaxation takes a mean of the workers' loads for the largest, and
 * is solved by a recurrence over cuts, O(parts items^2); the mean's weights follow Polyak's subgradient
 * steps. */
#include "solve/chain/rounds_search.h"

#include "base/checked.h"
#include "base/scratch.h"

#define STEPS 60 /* of the multipliers, most of whose gain comes in half as many; chosen */

/* Fills a table from behind, with the part's cost taken `scale` times and its load share[worker] times (NULL:
 * not at all); search->next gets the cuts by which it comes. */
static hbp_status fill_table(hbp__rounds_search *s, int64_t scale, const int64_t *share, int64_t *table)
{
    const hbp__chain *chain = s->rounds->chain;
    int32_t items = chain->items, parts = chain->parts;
    int64_t row = items + 1;
    for (int32_t a = 0; a <= items; a++)
        table[parts * row + a] = a == items ? 0 : INT64_MAX;
    for (int32_t p = parts - 1; p >= 0; p--) {
        const int64_t *onward = table + (p + 1) * row;
        int64_t load_share = share ? share[p % s->rounds->workers] : 0;
        HBP__TRY(hbp__tick(s->context, "partition", parts - p, parts));
        for (int32_t a = 0; a <= items; a++) {
            int32_t reach = hbp__chain_reach(chain, p, a), last = items - (parts - 1 - p), next = -1;
            int64_t least = INT64_MAX;
            last = reach < last ? reach : last;
            for (int32_t b = a + 1; b <= last && a >= p; b++) {
                if (onward[b] == INT64_MAX)
                    continue;
                int64_t cost = hbp__chain_cost(chain, p, a, b);
                int64_t sum = scale * (cost + chain->toll[b]) + onward[b] +
                              load_share * (cost + chain->side[a] + chain->side[b]);
                if (sum < least) {
                    least = sum;
                    next = b;
                }
            }
            *s->work -= last > a ? last - a : 1;
            table[p * row + a] = least;
            s->next[p * row + a] = next;
        }
    }
    return HBP_OK;
}

static void follow_table(hbp__rounds_search *s, int32_t *cuts)
{
    const hbp__chain *chain = s->rounds->chain;
    cuts[0] = 0;
    for (int32_t p = 0; p < chain->parts; p++)
        cuts[p + 1] = s->next[p * (int64_t)(chain->items + 1) + cuts[p]];
}

/* As fine as values allow. */
static int64_t choose_scale(const hbp__rounds_search *s)
{
    const hbp__chain *chain = s->rounds->chain;
    int64_t toll = 0, side = 0, cost = 0, scale = 1024;
    for (int32_t c = 0; c <= chain->items; c++) {
        toll = hbp__max_i64(toll, chain->toll[c]);
        side = hbp__max_i64(side, chain->side[c]);
    }
    for (int32_t p = 0; p < chain->parts; p++)
        cost = hbp__max_i64(cost, hbp__chain_cost(chain, p, 0, chain->items));
    int64_t load = hbp__add_saturating(cost, hbp__mul_saturating(2 * (int64_t)chain->parts, side));
    int64_t most = hbp__mul_saturating(chain->weight + chain->parts, hbp__add_saturating(load, toll));
    while (scale > 1 && most > (INT64_C(1) << 62) / scale)
        scale /= 2;
    return scale;
}

/* Hands scale x weight out in proportion to wish [workers], which is not negative. */
static void hand_out(hbp__rounds_search *s, const double *wish)
{
    int32_t workers = s->rounds->workers;
    int64_t all = s->scale * s->rounds->chain->weight, left = all;
    double sum = 0;
    for (int32_t w = 0; w < workers; w++)
        sum += wish[w];
    for (int32_t w = 0; w < workers; w++) {
        int64_t share = sum > 0 ? (int64_t)(wish[w] / sum * (double)all) : 0;
        s->share[w] = hbp__min_i64(share, left);
        left -= s->share[w];
    }
    for (int32_t w = 0; w < workers; w++)
        s->share[w] += left / workers + (w < left % workers);
}

/* Polyak's step towards the loads: a worker above the mean counts more. */
static void step_shares(hbp__rounds_search *s, const int64_t *load, double gap, double length, double *wish)
{
    int32_t workers = s->rounds->workers;
    double mean = 0, squares = 0;
    for (int32_t w = 0; w < workers; w++)
        mean += (double)load[w] / workers;
    for (int32_t w = 0; w < workers; w++)
        squares += ((double)load[w] - mean) * ((double)load[w] - mean);
    for (int32_t w = 0; w < workers; w++) {
        double move = squares > 0 ? length * gap * ((double)load[w] - mean) / squares : 0;
        wish[w] = (double)s->share[w] / (double)s->scale + move;
        wish[w] = wish[w] > 0 ? wish[w] : 0;
    }
}

static hbp_status run_steps(hbp__rounds_search *s, int64_t end, int64_t *load, int64_t *best, double *wish)
{
    int32_t workers = s->rounds->workers, worse = 0;
    int64_t value = INT64_MAX;
    double length = 1;
    for (int32_t w = 0; w < workers; w++)
        wish[w] = 1;
    hand_out(s, wish);
    for (int32_t i = 0; i < STEPS; i++) {
        HBP__TRY(fill_table(s, s->scale, s->share, s->mean));
        if (s->mean[0] == INT64_MAX)
            return HBP_OK;
        int64_t bound = hbp__ceil_div(s->mean[0], s->scale);
        worse = bound > s->bound ? 0 : worse + 1;
        if (bound > s->bound || i == 0) {
            s->bound = hbp__max_i64(bound, s->bound);
            for (int32_t w = 0; w < workers; w++)
                best[w] = s->share[w];
        }
        follow_table(s, s->cuts);
        hbp__rounds_value(s->rounds, s->cuts, load);
        value = hbp__min_i64(value, hbp__rounds_offer(s, s->cuts));
        if (worse && worse % 5 == 0)
            length /= 2;
        if (*s->work < end || value <= s->bound || s->rounds->chain->weight == 0)
            break;
        double aim = value < INT64_MAX ? (double)value : (double)bound * 1.05;
        step_shares(s, load, aim - (double)bound, length, wish);
        hand_out(s, wish);
    }
    for (int32_t w = 0; w < workers; w++)
        s->share[w] = best[w];
    return fill_table(s, s->scale, s->share, s->mean);
}

hbp_status hbp__rounds_relax(hbp__rounds_search *s, int64_t work)
{
    uint64_t workers = (uint64_t)s->rounds->workers;
    int64_t end = *s->work - work;
    s->scale = choose_scale(s);
    HBP__TRY(fill_table(s, 1, NULL, s->plain));
    s->bound = s->plain[0];
    if (s->bound == INT64_MAX)
        return HBP_OK; /* some part alone has no room */
    int64_t mark = hbp__scratch_mark(s->context);
    int64_t *load = hbp__take(s->context, workers, sizeof *load);
    int64_t *best = hbp__take(s->context, workers, sizeof *best);
    double *wish = hbp__take(s->context, workers, sizeof *wish);
    HBP__TRY(hbp__scratch_check(s->context, "the search for cuts"));
    HBP__TRY(run_steps(s, end, load, best, wish));
    hbp__scratch_release(s->context, mark);
    return HBP_OK;
}
