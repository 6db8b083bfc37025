#include "step/bound_region.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "step/tuning.h"

static const double start[] = {HBP__REGION_STARTS};
static const double move[] = {HBP__REGION_MOVES};

enum { STARTS = sizeof start / sizeof *start, MOVES = sizeof move / sizeof *move };

typedef hbp__bound_region region;
typedef hbp__bound_side side;
typedef hbp__bound_kind kind;

/* Whether two sequences are the same to every bound. */
static int are_alike(const hbp__step *step, int64_t k, int64_t other)
{
    int alike = step->squares[k] == step->squares[other] &&
                hbp__step_vision(step, k) == hbp__step_vision(step, other);
    for (int32_t j = 0; j < step->degrees && alike; j++)
        alike = step->degree[j].tokens[k] == step->degree[j].tokens[other];
    return alike;
}

hbp_status hbp__bound_region_open(const hbp__step *step, const hbp__ask *ask, region *r)
{
    memset(r, 0, sizeof *r);
    r->step = step;
    r->ask = ask;
    r->side = hbp__take(step->context, (uint64_t)step->degrees, 2 * sizeof *r->side);
    r->kind = hbp__take(step->context, (uint64_t)step->count, sizeof *r->kind);
    HBP__TRY(hbp__scratch_check(step->context, "the bound of the step"));
    for (int64_t k = 0; k < step->count; k++) {
        HBP__TRY(hbp__tick_row(step->context, "bound", k, step->count));
        if (!k || !are_alike(step, k - 1, k))
            r->kind[r->kinds++] = (hbp__bound_kind){.first = k};
        r->kind[r->kinds - 1].weight += 1;
    }
    return HBP_OK;
}

static const hbp__step_degree *degree_of(const region *r, const side *s)
{
    return &r->step->degree[s->degree];
}

/* A way that is no slower than any that holds more than way[w - 1] and no more than way[w]. */
static const hbp__point *fastest_way(const region *r, const side *s, int32_t w)
{
    int is_each = r->step->cost->terms.layers <= HBP__STEP_WAYS - 2;
    return &degree_of(r, s)->way[is_each || !w ? w : w - 1];
}

/* Time left by a group of nothing, a little more than rounding takes off. */
static double time_left(const region *r, const hbp__point *way)
{
    return r->time * (1 + hbp__bound_margin(r->step->count)) + r->step->cost->terms.pack_ns - way->constant;
}

/* The tokens at which a way is full by time where squares grow along a line. */
static double tokens_in_time(const hbp__point *way, double left, double base, double density)
{
    double per_token = way->linear + way->square * density;
    left -= way->square * base;
    return per_token > 0 ? left / per_token : left < 0 ? -1 : (double)INFINITY;
}

/* The most that S + slope Q comes to for S tokens and Q squares that a way is done with in time: it grows
 * with S until what is left of time bounds Q, and may fall from there on. */
static double most_of_way(const region *r, const side *s, int32_t w, double slope)
{
    const hbp__point *way = fastest_way(r, s, w);
    double left = time_left(r, way), most = 0;
    double end =
        hbp__min_f64((double)degree_of(r, s)->way[w].capacity, tokens_in_time(way, left, s->base, s->thin));
    double bend[] = {end, tokens_in_time(way, left, 0, s->dense), end};
    if (end < 0)
        return 0;
    if (s->top < (double)INFINITY)
        bend[2] = tokens_in_time(way, left, s->top, s->rise);
    for (int i = 0; i < 3; i++) {
        double tokens = bend[i] < 0 ? 0 : hbp__min_f64(bend[i], end), squares = s->dense * tokens;
        squares = hbp__min_f64(squares, s->top + s->rise * tokens);
        if (way->square > 0)
            squares = hbp__min_f64(squares, (left - way->linear * tokens) / way->square);
        most = hbp__max_f64(most, tokens + slope * hbp__max_f64(squares, s->base + s->thin * tokens));
    }
    return most;
}

void hbp__bound_side_set_slope(const region *r, side *s, double slope)
{
    double most = 0, ranks = degree_of(r, s)->degree;
    for (int32_t w = 0; w < s->ways && s->thin <= s->dense; w++)
        most = hbp__max_f64(most, most_of_way(r, s, w, slope));
    s->slope = slope;
    s->token_price = most > 0 ? ranks / most : 0;
    s->square_price = slope * s->token_price;
}

static int is_done(const region *r, const kind *k, int32_t j)
{
    return r->ask[k->first * r->step->degrees + j].alone <= r->time;
}

static double squares_of(const region *r, const kind *k)
{
    return r->step->squares[k->first];
}

static void set_capacity(const region *r, side *s)
{
    const hbp__point *last = &degree_of(r, s)->way[s->ways ? s->ways - 1 : 0];
    s->capacity = s->ways ? last->capacity : 0;
    s->unit = last->linear > 0 ? last->square / last->linear : 0;
}

/* All groups without the level's own. */
static void set_side(const region *r, int32_t j, side *s)
{
    const int64_t *size = r->step->degree[j].tokens;
    *s = (side){
        .degree = j, .ways = r->step->degree[j].ways, .thin = (double)INFINITY, .top = (double)INFINITY};
    for (const kind *k = r->kind; k < r->kind + r->kinds; k++)
        if (is_done(r, k, j) && !k->is_own) {
            double here = squares_of(r, k) / (double)size[k->first];
            s->thin = hbp__min_f64(s->thin, here);
            s->dense = hbp__max_f64(s->dense, here);
        }
    set_capacity(r, s);
}

/* Whether a way is done in time with so much. */
static int holds(const region *r, const hbp__point *way, double tokens, double squares)
{
    return way->linear * tokens + way->square * squares <= time_left(r, way);
}

/* The groups with one of the level's own at least, and all of them at most. */
static void set_side_of_own(const region *r, int32_t j, const side *others, side *s)
{
    const int64_t *size = r->step->degree[j].tokens;
    double tokens = (double)INFINITY, squares = (double)INFINITY, margin = hbp__bound_margin(r->step->count);
    *s = *others;
    s->rise = others->dense;
    s->top = 0;
    for (const kind *k = r->kind; k < r->kind + r->kinds; k++)
        if (k->is_own && is_done(r, k, j)) {
            double here = squares_of(r, k) / (double)size[k->first];
            tokens = hbp__min_f64(tokens, (double)size[k->first]);
            squares = hbp__min_f64(squares, squares_of(r, k));
            s->thin = hbp__min_f64(s->thin, here);
            s->dense = hbp__max_f64(s->dense, here);
            s->top += k->weight * hbp__max_f64(0, squares_of(r, k) - s->rise * (double)size[k->first]);
        }
    if (!(tokens < (double)INFINITY)) {
        s->ways = 0; /* none is done in time there */
        return;
    }
    for (const kind *k = r->kind; k < r->kind + r->kinds; k++)
        if (k->is_own && is_done(r, k, j) && (double)size[k->first] > tokens)
            s->thin = hbp__min_f64(s->thin, (squares_of(r, k) - squares) / ((double)size[k->first] - tokens));
    s->base = hbp__max_f64(0, squares * (1 - margin) - s->thin * tokens);
    s->top += margin * (s->top + s->rise * tokens);
    while (s->ways > 0 && !holds(r, fastest_way(r, s, s->ways - 1), tokens, squares))
        s->ways--;
    set_capacity(r, s);
}

int64_t hbp__bound_region_set(region *r, double time, int32_t level)
{
    const hbp__step *step = r->step;
    int64_t own = 0;
    r->time = time;
    r->level = level;
    r->held = 0;
    r->discount = level ? HBP__REGION_FIRST_DISCOUNT : 1;
    r->sides = step->degrees;
    for (kind *k = r->kind; k < r->kind + r->kinds; k++) {
        k->is_own = level > 0;
        for (int32_t j = 0; j < level; j++)
            k->is_own = k->is_own && !is_done(r, k, j);
        own += k->is_own;
    }
    for (int32_t j = 0; j < step->degrees; j++)
        set_side(r, j, &r->side[j]);
    for (int32_t j = level; own && j < step->degrees; j++) {
        set_side_of_own(r, j, &r->side[j], &r->side[r->sides]);
        r->sides += r->side[r->sides].ways > 0;
    }
    return own;
}

static double load(const region *r, const side *s, const kind *k)
{
    int64_t tokens = degree_of(r, s)->tokens[k->first];
    if (tokens > s->capacity || !is_done(r, k, s->degree))
        return (double)INFINITY;
    return s->token_price * (double)tokens + s->square_price * squares_of(r, k);
}

static int is_above(const region *r, int32_t i)
{
    return i >= r->step->degrees;
}

/* The least load of each kind on all sides but one, below and above. */
static void set_least(const region *r, int32_t but)
{
    for (kind *k = r->kind; k < r->kind + r->kinds; k++) {
        k->below = k->above = (double)INFINITY;
        for (int32_t i = 0; i < r->sides; i++) {
            double *least = is_above(r, i) ? &k->above : &k->below;
            if (i != but && (is_above(r, i) || !k->is_own))
                *least = hbp__min_f64(*least, load(r, &r->side[i], k));
        }
    }
}

/* The ranks that all sequences load, each where it loads least: groups with the level's own at a discount,
 * paid for by the ranks that they have anyway. */
static double sum_at(const region *r, double discount)
{
    double sum = (1 - discount) * r->held;
    for (const kind *k = r->kind; k < r->kind + r->kinds; k++)
        sum += k->weight * hbp__min_f64(k->below, discount * k->above);
    return sum;
}

/* The same with a side that is left out of `below` and `above`. */
static double sum_with(const region *r, int32_t i, const side *s)
{
    double sum = (1 - r->discount) * r->held, part = is_above(r, i) ? r->discount : 1;
    for (const kind *k = r->kind; k < r->kind + r->kinds; k++) {
        double least = hbp__min_f64(k->below, r->discount * k->above);
        if (is_above(r, i) || !k->is_own)
            least = hbp__min_f64(least, part * load(r, s, k));
        sum += k->weight * least;
    }
    return sum;
}

/* Moves the slope of a side by a factor for as long as that adds to the sum. Returns whether it did. */
static int move_slope(region *r, int32_t i, double factor, double *sum)
{
    int moved = 0;
    for (; moved < HBP__REGION_MOST_MOVES; moved++) {
        side other = r->side[i];
        hbp__bound_side_set_slope(r, &other, other.slope * factor);
        double here = sum_with(r, i, &other);
        if (!(here > *sum))
            break;
        *sum = here;
        r->side[i] = other;
    }
    return moved > 0;
}

static int move_discount(region *r, double factor, double *sum)
{
    int moved = 0;
    for (; moved < HBP__REGION_MOST_MOVES && r->discount * factor <= 1; moved++) {
        double here = sum_at(r, r->discount * factor);
        if (!(here > *sum))
            break;
        *sum = here;
        r->discount *= factor;
    }
    return moved > 0;
}

/* Groups with the level's own have the ranks that these load, rounded up to what their degrees divide. */
static void raise_held(region *r)
{
    double sum = 0;
    for (const kind *k = r->kind; k < r->kind + r->kinds; k++)
        sum += k->is_own ? k->weight * k->above : 0;
    if (sum < (double)INFINITY)
        r->held =
            hbp__max_f64(r->held, hbp__bound_round_up(r->step, sum, hbp__bound_unit(r->step, r->level)));
}

/* Moves slopes and discount one after another to where the sum is largest. *allowed tells whether that is
 * within the ranks. */
static hbp_status climb(region *r, int *allowed)
{
    double ranks = r->step->ranks * (1 + 2 * hbp__bound_margin(r->step->count)), sum = 0;
    for (int m = 0; m < MOVES && sum <= ranks; m++) {
        for (int32_t i = 0; i < r->sides && sum <= ranks; i++) {
            HBP__TRY(hbp__tick(r->step->context, "bound", i, r->sides));
            set_least(r, i);
            sum = sum_with(r, i, &r->side[i]);
            if (!move_slope(r, i, move[m], &sum))
                move_slope(r, i, 1 / move[m], &sum);
        }
        if (!r->level || sum > ranks)
            continue;
        set_least(r, -1);
        raise_held(r);
        sum = sum_at(r, r->discount);
        if (!move_discount(r, move[m], &sum))
            move_discount(r, 1 / move[m], &sum);
    }
    *allowed = sum <= ranks;
    return HBP_OK;
}

static hbp_status climb_from_starts(region *r, int *allowed)
{
    for (int i = 0; i < STARTS && *allowed; i++) {
        for (int32_t n = 0; n < r->sides; n++)
            hbp__bound_side_set_slope(r, &r->side[n], start[i] * r->side[n].unit);
        HBP__TRY(climb(r, allowed));
    }
    return HBP_OK;
}

hbp_status hbp__bound_region_allows(region *r, double time, int *allowed)
{
    int64_t before = 0;
    *allowed = 1;
    hbp__bound_region_set(r, time, 0);
    HBP__TRY(climb_from_starts(r, allowed));
    for (int32_t level = r->step->degrees - 1; level > 0 && *allowed; level--) {
        int64_t own = hbp__bound_region_set(r, time, level);
        if (own > before)
            HBP__TRY(climb_from_starts(r, allowed));
        before = own;
    }
    return HBP_OK;
}
