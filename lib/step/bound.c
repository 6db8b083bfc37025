/* docs/explanation/step-bound.md states the bound and proves it; the names here are the ones used there. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "step/bound.h"

#define CLASSES 48

/* Numbers of micro-batches looked at one by one, and the share of the plan's time that is worth it. */
#define CASES   3
#define PRECISE 0.002

/* With more micro-batches than this, one more or less tells little. */
#define FEW_BATCHES 16

/* Prices of memory tried for a class. */
#define PRICES 3

typedef hbp__need need;
typedef hbp__ask ask;

typedef struct bounding {
    const hbp__step *step;
    double fixed; /* B' */
    double loss;  /* that rounding takes off all micro-batches where B is below 1/2 */
    double margin;
    double ranks;
    double micro_batches; /* M', at least so many, or the very number */
    ask *ask;             /* [count x degrees] */
    int prices;
    double price[PRICES]; /* thetas to try: at most B' where there may be more micro-batches */
    int favourite;        /* the one that served the last class best */
    /* of the class at hand */
    double theta; /* ns that the memory of a micro-batch costs by itself */
    double plain; /* D without a top micro-batch */
    double *work; /* [count] least */
    int64_t options;
    int64_t *first;  /* [count + 1] into the options */
    need *option;    /* [3 count x degrees] */
    double *scratch; /* [3 count] */
} bounding;

/* The way with the fewest layers that holds `tokens`. Where there are more layers than ways are kept, the one
 * found may have a few too many; times are linear in layers. */
static hbp__step_way least_way(const hbp__step *step, int32_t j, int64_t tokens)
{
    const hbp__step_degree *d = &step->degree[j];
    hbp__step_way way = *hbp__step_find_way(d, tokens);
    if (d->ways == 1 || step->cost->terms.layers <= HBP__STEP_WAYS - 2)
        return way;
    tokens = hbp__round_up(tokens, d->pack_multiple);
    int32_t layers = hbp_cost_predict_recompute(step->cost, d->degree, tokens);
    const hbp__step_way *first = &d->way[0], *last = &d->way[d->ways - 1];
    double part = (double)(layers - first->recompute) / (double)(last->recompute - first->recompute);
    way.recompute = layers;
    way.constant = first->constant + (last->constant - first->constant) * part;
    way.linear = first->linear + (last->linear - first->linear) * part;
    way.square = first->square + (last->square - first->square) * part;
    return way;
}

static void set_ask(const hbp__step *step, int32_t j, int64_t tokens, double squares, ask *a)
{
    const hbp__step_degree *d = &step->degree[j];
    const hbp_cost_terms *t = &step->cost->terms;
    a->alone = (double)INFINITY;
    a->needs = 0;
    if (tokens > d->capacity)
        return;
    hbp__step_way ways[3] = {least_way(step, j, tokens)};
    int32_t count = 1;
    double size = (double)tokens, limit = (double)t->limit_bytes;
    double room = limit + 0.5 - t->static_bytes + limit / 1125899906842624.0;
    if (tokens <= d->way[0].capacity && d->ways > 1)
        ways[count++] = least_way(step, j, d->way[0].capacity + 1);
    if (ways[count - 1].recompute < d->way[d->ways - 1].recompute)
        ways[count++] = d->way[d->ways - 1];
    a->alone = ways[0].constant - t->pack_ns + ways[0].linear * size + ways[0].square * squares;
    for (int32_t i = 0; i < count; i++) {
        need *n = &a->need[a->needs++];
        n->work = d->degree * (ways[i].linear * size + ways[i].square * squares);
        n->share = d->ways == 1
                       ? d->degree * size / (double)d->capacity
                       : hbp__cost_bytes_per_token(step->cost, d->row, ways[i].recompute) * size / room;
    }
}

void hbp__bound_ask(const hbp__step *step, hbp__ask *asks)
{
    for (int64_t k = 0; k < step->count; k++)
        for (int32_t j = 0; j < step->degrees; j++)
            set_ask(step, j, step->degree[j].tokens[k], step->squares[k], &asks[k * step->degrees + j]);
}

/* The options of a class: what each sequence takes on the degrees that finish within its longest makespan. */
static void set_class(bounding *b, double high, double theta)
{
    const hbp__step *step = b->step;
    b->theta = theta;
    b->options = 0;
    b->plain = 0;
    for (int64_t k = 0; k < step->count; k++) {
        const ask *asks = &b->ask[k * step->degrees];
        int64_t first = b->options;
        double work = (double)INFINITY;
        for (int32_t j = 0; j < step->degrees; j++)
            for (int32_t n = 0; asks[j].alone <= high && n < asks[j].needs; n++) {
                const need *at = &asks[j].need[n];
                int64_t o = first;
                while (o < b->options && (b->option[o].work > at->work || b->option[o].share > at->share))
                    o++;
                double price = at->work + theta * at->share;
                work = price < work ? price : work;
                if (o == b->options)
                    b->option[b->options++] = *at;
            }
        b->first[k] = first;
        b->work[k] = work;
        b->plain += work;
    }
    b->first[step->count] = b->options;
    b->plain = b->plain / b->ranks - theta * b->micro_batches;
}

/* D for a top micro-batch that prices time at tau and memory at alpha. */
static double value(const bounding *b, double low, double tau, double alpha)
{
    double sum = 0;
    for (int64_t k = 0; k < b->step->count; k++) {
        double least = b->work[k];
        for (int64_t o = b->first[k]; o < b->first[k + 1]; o++) {
            double price = tau * b->option[o].work + (alpha + b->theta) * b->option[o].share;
            least = price < least ? price : least;
        }
        sum += least;
    }
    return sum / b->ranks - b->theta * b->micro_batches + (1 - tau) * low - alpha;
}

/* Greatest D over some alpha and tau; any D not below `enough` will do. D is concave in alpha: golden
 * section. */
static double greatest(const bounding *b, double low, double enough)
{
    static const double taus[] = {0, 0.5};
    double best = b->plain;
    for (int t = 0; t < 2 && best < enough; t++) {
        double from = 0, to = 2 * low + 1, ratio = 0.6180339887498949;
        double a = to - ratio * (to - from), c = from + ratio * (to - from);
        double at_a = value(b, low, taus[t], a), at_c = value(b, low, taus[t], c);
        for (int i = 0; i < 14 && best < enough; i++) {
            best = at_a > best ? at_a : best;
            best = at_c > best ? at_c : best;
            if (at_a >= at_c) {
                to = c;
                c = a;
                at_c = at_a;
                a = to - ratio * (to - from);
                at_a = value(b, low, taus[t], a);
            } else {
                from = a;
                a = c;
                at_a = at_c;
                c = from + ratio * (to - from);
                at_c = value(b, low, taus[t], c);
            }
        }
    }
    return best;
}

/* Greatest D over some prices, for the class with makespans in (low, high]; any D not below `enough` will do.
 */
static double class_bound(bounding *b, double low, double high, double enough)
{
    double best = low;
    int first = b->favourite;
    for (int i = 0; i < b->prices && best < enough; i++) {
        int which = (first + i) % b->prices; /* what served the last class best comes first */
        set_class(b, high, b->price[which]);
        double here = greatest(b, low, enough);
        if (here > best) {
            best = here;
            b->favourite = which;
        }
    }
    return best;
}

static int may_recompute(const bounding *b)
{
    for (int32_t j = 0; j < b->step->degrees; j++)
        if (b->step->degree[j].ways > 1)
            return 1;
    return 0;
}

/* Prices for `micro_batches` or more of them: where layers may be recomputed to save some, what these cost by
 * themselves. */
static void set_prices(bounding *b, double micro_batches)
{
    b->micro_batches = micro_batches;
    b->favourite = 0;
    b->prices = may_recompute(b) ? 3 : 1;
    b->price[0] = 0;
    b->price[1] = b->fixed;
    b->price[2] = b->fixed / 2;
}

/* The plain bound at a price of memory, for makespans up to `most`. */
static double plain_at(bounding *b, double most, double price)
{
    set_class(b, most, price);
    return b->plain;
}

/* The price for just `micro_batches`: what makes the plain bound of makespans up to `most` greatest, found by
 * golden section. Free memory is what the bound of any number has tried. */
static void set_exact_price(bounding *b, double micro_batches, double most)
{
    double from = 0, to = 0, ratio = 0.6180339887498949;
    b->micro_batches = micro_batches;
    b->favourite = 0;
    b->prices = 1;
    for (int64_t k = 0; k < b->step->count; k++) {
        const ask *a = &b->ask[k * b->step->degrees];
        for (int32_t j = 0; j < b->step->degrees; j++) {
            const need *n = a[j].need;
            double rise = a[j].needs > 1 ? n[a[j].needs - 1].work - n[0].work : 0;
            double fall = a[j].needs > 1 ? n[0].share - n[a[j].needs - 1].share : 0;
            to = fall > 0 && rise / fall > to ? rise / fall : to;
        }
    }
    double a = to - ratio * (to - from), c = from + ratio * (to - from);
    double at_a = to > 0 ? plain_at(b, most, a) : 0, at_c = to > 0 ? plain_at(b, most, c) : 0;
    for (int i = 0; i < 12 && to > 0; i++) {
        if (at_a >= at_c) {
            to = c;
            c = a;
            at_c = at_a;
            a = to - ratio * (to - from);
            at_a = plain_at(b, most, a);
        } else {
            from = a;
            a = c;
            at_a = at_c;
            c = from + ratio * (to - from);
            at_c = plain_at(b, most, c);
        }
    }
    b->price[0] = from + (to - from) / 2;
}

/* Micro-batches that memory asks for, and pairs that exclude each other. */
static double least_micro_batches(const bounding *b, double *longest)
{
    const hbp__step *step = b->step;
    double share = 0;
    int64_t large = 0, widest = hbp__step_capacity(step);
    *longest = 0;
    for (int64_t k = 0; k < step->count; k++) {
        double least = (double)INFINITY, alone = (double)INFINITY;
        int32_t narrow = INT32_MAX;
        for (int32_t j = 0; j < step->degrees; j++) {
            const ask *a = &b->ask[k * step->degrees + j];
            if (a->needs && narrow == INT32_MAX)
                narrow = step->degree[j].degree;
            alone = a->alone < alone ? a->alone : alone;
            for (int32_t n = 0; n < a->needs; n++)
                least = a->need[n].share < least ? a->need[n].share : least;
        }
        large += step->tokens[k] > widest / 2 && narrow > step->ranks / 2;
        *longest = alone > *longest ? alone : *longest;
        share += least;
    }
    double needed = ceil(share / b->ranks * (1 - b->margin));
    double counted = (double)hbp__step_fewest_for_samples(step);
    needed = needed > (double)large ? needed : (double)large;
    needed = needed > counted ? needed : counted;
    needed =
        needed > (double)step->options.min_micro_batches ? needed : (double)step->options.min_micro_batches;
    double multiple = step->options.micro_batch_multiple;
    return ceil(needed / multiple) * multiple;
}

/* Whether nothing rules out one micro-batch of all within `time`, looked at closely or not. */
static int allows(bounding *b, double time, int closely)
{
    static const double weights[] = {1, 0, 0.5, 0.75, 0.25};
    double least[HBP__STEP_DEGREES] = {0}, here[HBP__STEP_DEGREES];
    set_class(b, time, 0);
    if (b->plain > time)
        return 0;
    for (int i = 0; i < 5; i++) {
        if (!hbp__bound_one_allows(b->step, b->ask, time, weights[i], b->scratch, here))
            return 0;
        for (int32_t j = 0; j < b->step->degrees; j++)
            least[j] = here[j] > least[j] ? here[j] : least[j];
    }
    return !closely || hbp__bound_one_allows_both(b->step, b->ask, time, least, b->scratch);
}

static hbp_status open(const hbp__step *step, bounding *b)
{
    const hbp__memory *memory = &step->context->memory;
    uint64_t count = (uint64_t)step->count, asks = count * (uint64_t)step->degrees;
    memset(b, 0, sizeof *b);
    b->step = step;
    b->ranks = step->ranks;
    b->margin = hbp__bound_margin(step->count);
    double least_ns = step->cost->terms.pack_ns - 0.5;
    b->fixed = least_ns > 0 ? least_ns : 0;
    int64_t most = step->options.max_micro_batches;
    most = most ? hbp__min_i64(most, step->count) : step->count;
    b->loss = (double)most * (b->fixed - least_ns);
    b->ask = hbp__new(memory, asks, sizeof *b->ask);
    b->work = hbp__new(memory, count, sizeof *b->work);
    b->first = hbp__new(memory, count + 1, sizeof *b->first);
    b->option = hbp__new(memory, asks, 3 * sizeof *b->option);
    b->scratch = hbp__new(memory, count, 3 * sizeof *b->scratch);
    if (!b->ask || !b->work || !b->first || !b->option || !b->scratch)
        return hbp__fail_memory(step->context, "the bound of the step");
    hbp__bound_ask(step, b->ask);
    return HBP_OK;
}

static void close(bounding *b)
{
    const hbp__memory *memory = &b->step->context->memory;
    hbp__delete(memory, b->ask);
    hbp__delete(memory, b->work);
    hbp__delete(memory, b->first);
    hbp__delete(memory, b->option);
    hbp__delete(memory, b->scratch);
}

/* The least over the classes of the longest micro-batch, whose makespan is above `longest` and at most
 * `most`: sums of all makespans, each less B'. */
static hbp_status least_sum(bounding *b, double longest, double most, double *least)
{
    double low = longest, stride = (most - longest) / CLASSES;
    *least = (double)INFINITY;
    for (int64_t i = 0; low < most; i++) {
        double high = low * 1.03 > low + stride ? low * 1.03 : low + stride;
        if (!(high > low))
            high = most;
        double here = class_bound(b, low, high, *least);
        *least = here < *least ? here : *least;
        low = high;
        HBP__TRY(hbp__tick(b->step->context, "bound", hbp__min_i64(i, CLASSES), CLASSES));
    }
    return HBP_OK;
}

/* The least makespan of one micro-batch of all, less B', that nothing here rules out. */
static hbp_status least_one(bounding *b, double longest, double most, double *least)
{
    *least = longest;
    for (int closely = 0; closely < 2; closely++) {
        double high = most, precision = closely ? 1e-4 : 1e-3;
        for (int i = 0; i < 40 && high - *least > precision * high; i++) {
            double middle = *least + (high - *least) / 2;
            if (allows(b, middle, closely))
                high = middle;
            else
                *least = middle;
            HBP__TRY(hbp__tick(b->step->context, "bound", i, 40));
        }
    }
    return HBP_OK;
}

/* Ways of looking at the number of micro-batches. */
enum { AT_LEAST, JUST };

/* A bound on the sum over micro-batches, B' of each counted, for `micro_batches` or more of them, or just as
 * many; `upper` at most. */
static hbp_status bound_case(bounding *b, int number, double micro_batches, double longest, double upper,
                             double *bound)
{
    double most = upper - micro_batches * b->fixed, least = 0, one = 0;
    *bound = upper;
    if (!(most > longest))
        return HBP_OK;
    if (number == JUST)
        set_exact_price(b, micro_batches, most);
    else
        set_prices(b, micro_batches);
    HBP__TRY(least_sum(b, longest, most, &least));
    if (number == JUST && micro_batches < 2)
        HBP__TRY(least_one(b, longest, most, &one));
    least = least > one ? least : one;
    *bound = (least < most ? least : most) + micro_batches * b->fixed;
    return HBP_OK;
}

/* The least over the numbers of micro-batches there may be: some one by one, the rest together. A number is
 * looked at by itself where the bound of all from it on leaves something to be won. */
static hbp_status bound_cases(bounding *b, double upper, double *bound)
{
    double longest, first = least_micro_batches(b, &longest),
                    multiple = b->step->options.micro_batch_multiple;
    double most = b->step->options.max_micro_batches, rest, just, done = upper;
    int allowed = b->step->options.max_micro_batches > 0;
    HBP__TRY(bound_case(b, AT_LEAST, first, longest, upper, &rest));
    int cases = first <= FEW_BATCHES ? CASES : 0;
    for (int i = 0; i < cases && rest < done && rest < upper * (1 - PRECISE); i++, first += multiple) {
        HBP__TRY(bound_case(b, JUST, first, longest, upper, &just));
        just = just > rest ? just : rest; /* both hold for this number */
        done = just < done ? just : done;
        if (allowed && first + multiple > most) {
            rest = upper; /* there are no more */
            break;
        }
        double before = rest;
        HBP__TRY(bound_case(b, AT_LEAST, first + multiple, longest, upper, &rest));
        rest = rest > before ? rest : before;
    }
    *bound = rest < done ? rest : done;
    return HBP_OK;
}

hbp_status hbp__step_bound(const hbp__step *step, int64_t upper_ns, int64_t *bound_ns)
{
    bounding b;
    double least = 0;
    hbp_status status = open(step, &b);
    if (status >= 0)
        status = bound_cases(&b, (double)upper_ns + b.loss, &least);
    if (status >= 0) {
        double bound = least * (1 - b.margin) - b.loss - 1;
        *bound_ns = bound > 0 ? (int64_t)bound : 0;
    }
    close(&b);
    return status;
}
