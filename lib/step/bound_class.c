#include "step/bound_class.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "step/tuning.h"

typedef hbp__need need;
typedef hbp__ask ask;

hbp_status hbp__bound_class_open(const hbp__step *step, const hbp__ask *asks, hbp__bound_class *c)
{
    uint64_t count = (uint64_t)step->count;
    memset(c, 0, sizeof *c);
    c->step = step;
    c->ask = asks;
    c->ranks = step->ranks;
    c->row = hbp__take(step->context, count, sizeof *c->row);
    c->option = hbp__take(step->context, count * (uint64_t)step->degrees, 3 * sizeof *c->option);
    HBP__TRY(hbp__scratch_check(step->context, "the bound of the step"));
    for (int64_t k = 0; k < step->count; k++)
        c->row[k] = (hbp__bound_row){(double)INFINITY, 0, 0}; /* holds for nothing */
    return HBP_OK;
}

/* Adds a need to a hull by rising work and falling share; needs come in any order. */
static int64_t add_option(need *option, int64_t options, const need *at)
{
    int64_t place = options;
    while (place > 0 && (option[place - 1].work > at->work ||
                         (option[place - 1].work >= at->work && option[place - 1].share > at->share)))
        place--;
    if (place > 0 && option[place - 1].share <= at->share)
        return options;
    memmove(&option[place + 1], &option[place], (size_t)(options - place) * sizeof *option);
    option[place] = *at;
    int64_t kept = place + 1;
    for (int64_t i = kept; i <= options; i++)
        if (option[i].share < option[place].share)
            option[kept++] = option[i];
    return kept;
}

/* Leaves those that are the least at some mix of work and share. */
static int64_t keep_hull(need *option, int64_t options)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < options; i++) {
        while (kept > 1) {
            const need *a = &option[kept - 2], *b = &option[kept - 1], *c = &option[i];
            double with = (b->work - a->work) * (a->share - c->share);
            double without = (c->work - a->work) * (a->share - b->share);
            if (with < without)
                break;
            kept--;
        }
        option[kept++] = option[i];
    }
    return kept;
}

static void set_row(hbp__bound_class *c, int64_t k, double high)
{
    int32_t degrees = c->step->degrees;
    const ask *asks = &c->ask[k * degrees];
    hbp__bound_row *row = &c->row[k];
    need *option = &c->option[k * 3 * degrees];
    *row = (hbp__bound_row){-(double)INFINITY, (double)INFINITY, 0};
    for (int32_t j = 0; j < degrees; j++) {
        if (asks[j].alone > high) {
            row->until = asks[j].alone < row->until ? asks[j].alone : row->until;
            continue;
        }
        row->from = asks[j].alone > row->from ? asks[j].alone : row->from;
        for (int32_t n = 0; n < asks[j].needs; n++)
            row->options = add_option(option, row->options, &asks[j].need[n]);
    }
    row->options = keep_hull(option, row->options);
}

/* Whether to go on with row k. */
static int listen(hbp__bound_class *c, int64_t k)
{
    if (c->status >= 0 && (k + 1) % HBP__BOUND_TICK == 0)
        c->status = hbp__tick(c->step->context, "bound", k, c->step->count);
    return c->status >= 0;
}

/* Strikes out the degrees on which sequences take longer than `high`. */
static void set_high(hbp__bound_class *c, double high)
{
    for (int64_t k = 0; k < c->step->count && listen(c, k); k++)
        if (!(high >= c->row[k].from && high < c->row[k].until))
            set_row(c, k, high);
}

/* The bound for a top micro-batch that prices time at tau and memory at alpha. */
static hbp__tangent top_at(void *data, double alpha)
{
    hbp__bound_class *c = data;
    double sum = 0, plain = 0, shares = 0;
    double theta = c->theta, tau = c->tau, price = alpha + theta;
    for (int64_t k = 0; k < c->step->count && listen(c, k); k++) {
        const need *option = &c->option[k * 3 * c->step->degrees];
        double work = (double)INFINITY, least = (double)INFINITY, share = 0;
        for (int64_t o = 0; o < c->row[k].options; o++) {
            double apart = option[o].work + theta * option[o].share;
            double top = tau * option[o].work + price * option[o].share;
            work = apart < work ? apart : work;
            share = top <= least ? option[o].share : share;
            least = top <= least ? top : least;
        }
        plain += work;
        sum += work < least ? work : least;
        shares += work < least ? 0 : share;
    }
    c->plain = plain / c->ranks - theta * c->micro_batches;
    if (c->status < 0)
        return (hbp__tangent){alpha, 0, 0}; /* ends the search for the greatest */
    return (hbp__tangent){alpha, sum / c->ranks - theta * c->micro_batches + (1 - tau) * c->low - alpha,
                          shares / c->ranks - 1};
}

/* The bound without a top micro-batch, at a price of memory. */
static hbp__tangent plain_at(void *data, double theta)
{
    hbp__bound_class *c = data;
    double sum = 0, shares = 0;
    for (int64_t k = 0; k < c->step->count && listen(c, k); k++) {
        const need *option = &c->option[k * 3 * c->step->degrees];
        double least = (double)INFINITY, share = 0;
        for (int64_t o = 0; o < c->row[k].options; o++) {
            double here = option[o].work + theta * option[o].share;
            share = here <= least ? option[o].share : share;
            least = here <= least ? here : least;
        }
        sum += least;
        shares += share;
    }
    if (c->status < 0)
        return (hbp__tangent){theta, 0, 0};
    return (hbp__tangent){theta, sum / c->ranks - theta * c->micro_batches,
                          shares / c->ranks - c->micro_batches};
}

void hbp__bound_class_set_prices(hbp__bound_class *c, double micro_batches, const double *price, int prices)
{
    c->micro_batches = micro_batches;
    c->favourite = 0;
    c->prices = prices;
    for (int i = 0; i < prices; i++)
        c->price[i] = price[i];
}

double hbp__bound_class_set_best_price(hbp__bound_class *c, double micro_batches, double most)
{
    double highest = 0;
    for (int64_t i = 0; i < c->step->count * c->step->degrees; i++) {
        const ask *a = &c->ask[i];
        if (a->needs < 2)
            continue;
        double rise = a->need[a->needs - 1].work - a->need[0].work;
        double fall = a->need[0].share - a->need[a->needs - 1].share;
        highest = fall > 0 && rise / fall > highest ? rise / fall : highest;
    }
    c->micro_batches = micro_batches;
    set_high(c, most);
    hbp__tangent best = plain_at(c, 0);
    hbp__concave_aim aim = {
        .least = -(double)INFINITY, .enough = (double)INFINITY, .tries = HBP__BOUND_TRIES};
    if (highest > 0)
        best = hbp__concave_greatest(plain_at, c, best, plain_at(c, highest), &aim);
    hbp__bound_class_set_prices(c, micro_batches, &best.at, 1);
    return best.value;
}

int hbp__bound_class_allows(hbp__bound_class *c, double time)
{
    set_high(c, time);
    return plain_at(c, 0).value <= time;
}

/* The greatest bound over alpha and tau at one price of memory; any not below `enough` will do, none below
 * `least` is of use. */
static double greatest(hbp__bound_class *c, double least, double enough)
{
    static const double taus[] = {HBP__BOUND_TAUS};
    double best = least;
    for (size_t t = 0; t < sizeof taus / sizeof *taus && best < enough && c->status >= 0; t++) {
        c->tau = taus[t];
        hbp__tangent left = top_at(c, 0);
        best = c->plain > best ? c->plain : best;
        if (best >= enough)
            break;
        /* No alpha makes a sequence cost more than apart from the top micro-batch. */
        double highest = c->plain + (1 - c->tau) * c->low;
        hbp__tangent right = {highest + 1, -1, -1};
        hbp__concave_aim aim = {best, enough, HBP__BOUND_TRIES};
        hbp__tangent found = hbp__concave_greatest(top_at, c, left, right, &aim);
        best = found.value > best ? found.value : best;
    }
    return best;
}

/* A bound for the class with makespans in (low, high]; any not below `enough` will do. */
static double class_bound(hbp__bound_class *c, double low, double high, double enough)
{
    double best = low;
    int first = c->favourite;
    set_high(c, high);
    c->low = low;
    for (int i = 0; i < c->prices && best < enough && c->status >= 0; i++) {
        int which = (first + i) % c->prices; /* what served the last class best comes first */
        c->theta = c->price[which];
        double here = greatest(c, best, enough);
        if (here > best) {
            best = here;
            c->favourite = which;
        }
    }
    return best;
}

/* Some classes one after another. What bounds them together bounds each. */
typedef struct stretch {
    int from;
    int end;
    double bound;
} stretch;

/* The least over the classes of a stretch that may be below *least. */
static hbp_status search(hbp__bound_class *c, const double *edge, const stretch *s, double *least)
{
    HBP__TRY(hbp__tick(c->step->context, "bound", s->from, HBP__BOUND_CLASSES));
    if (s->bound >= *least)
        return HBP_OK;
    if (s->end - s->from == 1) {
        *least = s->bound;
        return HBP_OK;
    }
    int middle = s->from + (s->end - s->from) / 2;
    stretch part[2] = {{s->from, middle, 0}, {middle, s->end, 0}};
    for (int i = 0; i < 2; i++) {
        part[i].bound = class_bound(c, edge[part[i].from], edge[part[i].end], *least);
        part[i].bound = part[i].bound > s->bound ? part[i].bound : s->bound;
        HBP__TRY(c->status);
    }
    int first = part[1].bound < part[0].bound;
    HBP__TRY(search(c, edge, &part[first], least));
    return search(c, edge, &part[!first], least);
}

hbp_status hbp__bound_class_least(hbp__bound_class *c, double longest, double most, double *least)
{
    double edge[HBP__BOUND_CLASSES + 2], low = longest, stride = (most - longest) / HBP__BOUND_CLASSES;
    int classes = 0;
    *least = most;
    while (low < most && classes <= HBP__BOUND_CLASSES) {
        double high = low * 1.03 > low + stride ? low * 1.03 : low + stride;
        edge[classes++] = low;
        low = high > low && classes <= HBP__BOUND_CLASSES ? high : most;
    }
    edge[classes] = low;
    if (!classes)
        return HBP_OK;
    HBP__TRY(hbp__tick(c->step->context, "bound", 0, HBP__BOUND_CLASSES));
    stretch all = {0, classes, class_bound(c, longest, low, most)};
    HBP__TRY(c->status);
    return search(c, edge, &all, least);
}
