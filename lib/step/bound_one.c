/* One micro-batch: how many ranks must belong to groups of at least some degree. The proof is in
 * docs/explanation/step-bound.md, the names here are the ones used there. */
#include <math.h>

#include "base/checked.h"
#include "solve/concave.h"
#include "step/bound.h"
#include "step/tuning.h"

/* What loads ranks, and how much of a load rounding may be. */
typedef struct judging {
    const hbp__step *step;
    const hbp__ask *ask;
    double time;
    double weight; /* lambda: of time; the rest is memory's, or that of `room` */
    double margin;
    const double *room;            /* [degrees] NULL: memory */
    const hbp__bound_count *count; /* NULL: none */
} judging;

/* What sequence k takes of a group of degree j by its count. */
static double counted(const hbp__step *step, const hbp__bound_count *count, int64_t k, int32_t j)
{
    if (k >= count->longs)
        return 0;
    double tokens = (double)step->degree[j].tokens[k];
    if (tokens > count->degree[j].room)
        return (double)INFINITY;
    double here = count->degree[j].base + count->degree[j].slope * (tokens - count->degree[j].edge);
    here = here < count->degree[j].most ? here : count->degree[j].most;
    return here > 0 ? here : 0;
}

/* Ranks that a sequence loads on a degree; INFINITY: it does not finish in time there. */
static double load(const judging *l, int64_t k, int32_t j, double weight)
{
    const hbp__ask *a = &l->ask[k * l->step->degrees + j];
    double least = (double)INFINITY, by_work = weight / l->time, held = 0;
    if (l->room) {
        if (!(l->room[j] > 0))
            return (double)INFINITY;
        held = l->step->degree[j].degree * (double)l->step->degree[j].tokens[k] / l->room[j];
    }
    for (int32_t n = 0; a->alone <= l->time && n < a->needs; n++) {
        double here = by_work * a->need[n].work + (1 - weight) * (l->room ? held : a->need[n].share);
        least = here < least ? here : least;
    }
    if (l->count)
        least = (1 - l->count->share) * least + l->count->share * counted(l->step, l->count, k, j);
    return least;
}

/* The least over the degrees [from, to). */
static double least_load(const judging *l, int64_t k, int32_t from, int32_t to, double weight)
{
    double least = (double)INFINITY;
    for (int32_t j = from; j < to; j++) {
        double here = load(l, k, j, weight);
        least = here < least ? here : least;
    }
    return least;
}

/* A knapsack of some room above: sequences that it takes no longer load the ranks below. */
typedef struct knapsack {
    int64_t count;
    double room;
    const double *below; /* [count] what each is worth; INFINITY: it is not to be taken */
    const double *above; /* [count] what each weighs */
} knapsack;

/* What it takes at most at a price of room, negated. */
static hbp__tangent taken_at(void *data, double price)
{
    const knapsack *s = data;
    double value = price * s->room, slope = s->room;
    for (int64_t k = 0; k < s->count; k++)
        if (s->below[k] < (double)INFINITY && s->above[k] < (double)INFINITY &&
            s->below[k] > price * s->above[k]) {
            value += s->below[k] - price * s->above[k];
            slope -= s->above[k];
        }
    return (hbp__tangent){price, -value, -slope};
}

/* At most so much of the loads below can be taken by `room` above: the least over prices of room up to
 * `highest`. *price gets the one it comes from, at which it holds for any room. */
static double saving(const judging *l, double room, const double *below, const double *above, double highest,
                     double *price)
{
    knapsack s = {l->step->count, room, below, above};
    hbp__concave_aim aim = {.least = -(double)INFINITY, .enough = 0, .tries = HBP__BOUND_SAVINGS};
    hbp__tangent best = hbp__concave_greatest(taken_at, &s, taken_at(&s, 0), taken_at(&s, highest), &aim);
    *price = best.at;
    return -best.value;
}

double hbp__bound_unit(const hbp__step *step, int32_t j)
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

double hbp__bound_round_up(const hbp__step *step, double ranks, double unit)
{
    return ceil(ranks * (1 - hbp__bound_margin(step->count)) / unit) * unit;
}

static double positive(double x)
{
    return x > 0 ? x : 0;
}

/* at[j] [count]: loads on step->degree[j]; before[j] [count]: the least on those below it. */
static void set_loads(const judging *l, double *at, double *before)
{
    int64_t count = l->step->count;
    for (int32_t j = 0; j < l->step->degrees; j++)
        for (int64_t i = j * count, k = 0; k < count; i++, k++) {
            at[i] = load(l, k, j, l->weight);
            before[i] = (double)INFINITY;
            if (j > 0)
                before[i] = at[i - count] < before[i - count] ? at[i - count] : before[i - count];
        }
}

static int allows(const judging *l, double *scratch, double *least)
{
    const hbp__step *step = l->step;
    int64_t count = step->count;
    double ranks = step->ranks, used = 0, must_before = 0, price;
    double *above = scratch, *mine = above + count, *at = mine + count, *before = at + count * step->degrees;
    set_loads(l, at, before);
    for (int64_t k = 0; k < count; k++)
        above[k] = (double)INFINITY;
    for (int32_t j = step->degrees - 1; j >= 0; j--) {
        double must = 0, rest = 0, own = 0, taken = 0;
        double *below = &before[j * count], *here = &at[j * count];
        for (int64_t k = 0; k < count; k++) {
            mine[k] = (double)INFINITY;
            if (!(below[k] < (double)INFINITY)) {
                /* Of this level's own: what the groups above have no room for. */
                must += here[k] < above[k] ? here[k] : above[k];
                if (here[k] < (double)INFINITY) {
                    mine[k] = above[k] < here[k] ? above[k] : here[k];
                    own += mine[k];
                }
            }
        }
        if (!(must < (double)INFINITY))
            return 0;
        if (used > must_before && own > 0)
            taken = saving(l, used - must_before, mine, above, 1, &price);
        double needed = used + positive(own - taken);
        used = hbp__bound_round_up(step, needed > must ? needed : must, hbp__bound_unit(step, j));
        least[j] = used;
        if (used > ranks * (1 + l->margin))
            return 0;
        for (int64_t k = 0; k < count; k++) {
            above[k] = here[k] < above[k] ? here[k] : above[k];
            if (below[k] < (double)INFINITY) {
                below[k] = above[k] < below[k] ? above[k] : below[k];
                rest += below[k];
            }
        }
        if (rest > 0 && rest - saving(l, positive(used - must), below, above, 1, &price) >
                            ranks - used + ranks * l->margin)
            return 0;
        must_before = must;
    }
    return 1;
}

/* No group of degree j that is done in time takes less when it holds so much. */
static double least_time(const hbp__step *step, int32_t j, double tokens, double squares)
{
    hbp__point scratch;
    const hbp__point *way = hbp__bound_least_way(step, j, (int64_t)tokens, &scratch);
    return way->constant - step->cost->terms.pack_ns + way->linear * tokens + way->square * squares;
}

/* The most tokens of long sequences, each with at least `density` squares a token, that a group of degree j
 * is done with in time; 0: none. */
static double most_tokens(const hbp__step *step, int32_t j, double time, double density)
{
    double low = 0, high = (double)step->degree[j].capacity;
    if (least_time(step, j, high, density * high) <= time)
        return high;
    for (int i = 0; i < 40; i++) {
        double middle = low + (high - low) / 2;
        if (least_time(step, j, middle, density * middle) <= time)
            low = middle;
        else
            high = middle;
    }
    return high; /* no less than what is done in time */
}

int hbp__bound_has_rooms(const hbp__step *step)
{
    for (int32_t j = 0; j < step->degrees; j++)
        if (step->degree[j].pack_multiple > 1)
            return 1;
    return 0;
}

/* The fewest squares a token of degree j among the first `longs` sequences. */
static double least_density(const hbp__step *step, int32_t j, int64_t longs)
{
    double density = (double)INFINITY;
    for (int64_t k = 0; k < longs; k++) {
        const double here = step->squares[k] / (double)step->degree[j].tokens[k];
        density = here < density ? here : density;
    }
    return density;
}

void hbp__bound_one_rooms(const hbp__step *step, double time, double *room)
{
    const double enough = time * (1 + hbp__bound_margin(step->count)) + 1;
    for (int32_t j = 0; j < step->degrees; j++) {
        const hbp__step_degree *d = &step->degree[j];
        const double density = least_density(step, j, step->count);
        /* So many multiples are done in time, and one more is not: a group of so many is full but for one. */
        int64_t low = 0, high = d->capacity / d->pack_multiple + 1;
        while (high - low > 1) {
            const int64_t middle = low + (high - low) / 2, tokens = middle * d->pack_multiple;
            if (least_time(step, j, (double)tokens, density * (double)(tokens - d->pack_multiple)) <= enough)
                low = middle;
            else
                high = middle;
        }
        room[j] = (double)(low * d->pack_multiple);
    }
}

/* Sets what a group of each degree has room for of the first `longs` sequences, and the shortest of these. */
static void set_rooms(const hbp__step *step, double time, int64_t longs, hbp__bound_count *count)
{
    double density = (double)INFINITY;
    count->longs = longs;
    count->time = time;
    for (int32_t j = 0; j < step->degrees; j++) {
        const double here = least_density(step, j, longs);
        density = here < density ? here : density;
    }
    for (int32_t j = 0; j < step->degrees; j++) {
        int64_t shortest = INT64_MAX;
        for (int64_t k = 0; k < longs; k++)
            shortest = hbp__min_i64(shortest, step->degree[j].tokens[k]);
        count->degree[j].shortest = shortest;
        count->degree[j].room = most_tokens(step, j, time, density);
    }
}

double hbp__bound_one_count(const hbp__step *step, double time, int64_t longs, int64_t full,
                            hbp__bound_count *count)
{
    double sum = 0;
    if (count->time != time || count->longs != longs)
        set_rooms(step, time, longs, count);
    for (int32_t j = 0; j < step->degrees; j++) {
        const hbp__step_degree *d = &step->degree[j];
        double room = count->degree[j].room, fit = floor(room / (double)count->degree[j].shortest);
        fit = fit > 1 ? fit : 1;
        double base = d->degree / fit, most = base, slope = 0;
        double edge = room / fit * (1 + hbp__bound_margin(step->count)); /* no less than their mean */
        /* Of longer ones a group holds one fewer: from one number to the next by the tokens. */
        if (fit > 1 && (double)d->tokens[full] > edge) {
            slope = d->degree / (fit * (fit - 1)) / ((double)d->tokens[full] - edge);
            most = d->degree / (fit - 1);
        }
        count->degree[j].edge = edge;
        count->degree[j].base = base;
        count->degree[j].slope = slope;
        count->degree[j].most = most;
    }
    for (int64_t k = 0; k < longs; k++) {
        double least = (double)INFINITY;
        for (int32_t j = 0; j < step->degrees; j++) {
            double here = counted(step, count, k, j);
            least = here < least ? here : least;
        }
        sum += least;
    }
    return sum;
}

int64_t hbp__bound_one_longs(const hbp__step *step, double time, int32_t j, int64_t fit)
{
    double n = (double)(fit + 1);
    int64_t low = 0;
    for (int64_t high = step->count + 1; high - low > 1;) {
        int64_t middle = low + (high - low) / 2;
        double tokens = n * (double)step->degree[j].tokens[middle - 1];
        if (tokens > (double)step->degree[j].capacity ||
            least_time(step, j, tokens, n * step->squares[middle - 1]) > time)
            low = middle;
        else
            high = middle;
    }
    return low;
}

uint64_t hbp__bound_one_room(const hbp__step *step)
{
    return 2 * (uint64_t)step->count * (1 + (uint64_t)step->degrees);
}

int hbp__bound_one_allows(const hbp__step *step, const hbp__ask *ask, double time, double weight,
                          const double *room, const hbp__bound_count *count, double *scratch, double *least)
{
    judging l = {step, ask, time, weight, hbp__bound_margin(step->count), room, count};
    return allows(&l, scratch, least);
}

/* Whether, with groups of degree j and above judged by `weight_above` as the share of time and those below by
 * `weight_below`, some number of ranks above, no less than `least`, is enough. The price found for one number
 * bounds what remains for the ranks below at every other, so numbers that it rules out are passed over. */
static int allows_both(const judging *l, int32_t j, double least, double weight_above, double weight_below,
                       double *scratch)
{
    const hbp__step *step = l->step;
    double *below = scratch, *above = scratch + step->count, must = 0, rest = 0, price = 0;
    double ranks = step->ranks, unit = hbp__bound_unit(step, j);
    for (int64_t k = 0; k < step->count; k++) {
        below[k] = least_load(l, k, 0, j, weight_below);
        above[k] = least_load(l, k, j, step->degrees, weight_above);
        if (below[k] < (double)INFINITY)
            rest += below[k];
        else
            must += above[k];
    }
    double own = hbp__bound_round_up(step, must, unit), used = least > own ? least : own;
    while (used <= ranks * (1 + l->margin)) {
        double left = ranks - used - rest + saving(l, positive(used - must), below, above, 4, &price);
        if (left >= -(ranks + rest) * l->margin)
            return 1;
        if (price <= 1)
            return 0;
        double next = used + hbp__bound_round_up(step, -left / (price - 1), unit);
        used = next > used + unit ? next : used + unit;
    }
    return 0;
}

hbp_status hbp__bound_one_allows_both(const hbp__step *step, const hbp__ask *ask, double time,
                                      const double *least, double *scratch, int *allowed)
{
    static const double weight[][2] = {HBP__BOUND_PAIR_WEIGHTS};
    judging l = {step, ask, time, 0, hbp__bound_margin(step->count), NULL, NULL};
    *allowed = 1;
    for (int32_t j = 1; j < step->degrees && *allowed; j++)
        for (size_t i = 0; i < sizeof weight / sizeof *weight && *allowed; i++) {
            HBP__TRY(hbp__tick(step->context, "bound", j, step->degrees));
            *allowed = allows_both(&l, j, least[j], weight[i][0], weight[i][1], scratch);
        }
    return HBP_OK;
}
