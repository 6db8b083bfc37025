/* Steps of one degree whose groups are balanced over all micro-batches at once: what the search, which fills
 * one micro-batch after another, finds badly where lengths are alike.
 *
 * Input: the problem, and the time of the best step known. Output: the shortest of these steps, if it is
 * shorter. For each degree that holds every sequence, and for numbers of micro-batches from the least that
 * memory allows on, the sequences are dealt to as many groups as there are: longest processing time first
 * (Graham 1969) and by differencing (Karmarkar and Karp 1982), each with and without equal numbers of
 * sequences, and forth and back in rows; and the longest is paired with the shortest. The slowest groups
 * share the first micro-batch, and so on. A number is left out where its rank-time alone takes as long as the
 * best. O(count log count) a try. Oracle: the same by plain loops (tests/step/test_even.c). */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "base/sort.h"
#include "step/builder.h"
#include "step/differencing.h"
#include "step/tuning.h"

enum { LPT, LPT_EQUAL, DIFFERENCES, DIFFERENCES_EQUAL, ROWS, WAYS };

typedef struct dealing {
    const hbp__step *step;
    hbp__step_builder *b;
    int32_t j;       /* the degree */
    int64_t at_once; /* groups of a micro-batch */
    double tokens;   /* of all on the degree */
    double squares;
    int64_t parts;      /* groups of all */
    int64_t *value;     /* [count] what is balanced, descending */
    uint32_t *order;    /* [count] the sequence of each value */
    int64_t *part;      /* [count] the group of each value */
    hbp__load *load;    /* [count] of groups */
    int64_t *sum;       /* [count] of groups: values, then minus their times */
    int64_t *heap;      /* [count] groups, the least sum on top */
    int64_t *dealt;     /* [count] sequences of groups */
    uint32_t *by_time;  /* [count] groups, the slowest first */
    double even_ns;     /* about what so many groups take at least */
    int64_t last_ns;    /* of the last whose groups hold theirs */
    int64_t best_ns;    /* of the best so far */
    int64_t *best_part; /* [count] the group of each sequence, the slowest first */
    int64_t best_parts; /* 0: none */
    int32_t best_degree;
} dealing;

/* Sets what is balanced: time, of groups that recompute as they do when all are alike, or tokens. */
static hbp_status set_values(dealing *d, int by_time)
{
    const hbp__step *step = d->step;
    const hbp__step_degree *degree = &step->degree[d->j];
    double tokens = 0, room = (double)degree->capacity;
    for (int64_t k = 0; k < step->count; k++)
        tokens += (double)degree->tokens[k];
    tokens /= (double)d->parts;
    const hbp__point *way =
        step->vision ? &degree->way[0] : hbp__step_find_way(degree, (int64_t)hbp__min_f64(tokens, room));
    int sorted = 1;
    for (int64_t k = 0; k < step->count; k++) {
        double ns = way->linear * (double)degree->tokens[k] + way->square * step->squares[k];
        if (step->vision)
            ns += way->vision * (double)step->vision[k];
        HBP__TRY(hbp__tick_row(step->context, "step", k, step->count));
        d->value[k] = by_time ? hbp__round_i64(ns) : degree->tokens[k];
        d->order[k] = (uint32_t)k;
        sorted = sorted && (!k || d->value[k] <= d->value[k - 1]);
    }
    if (sorted)
        return HBP_OK;
    for (int64_t k = 0; k < step->count; k++)
        d->part[k] = -d->value[k];
    HBP__TRY(hbp__order_by_i64(step->context, d->part, d->order, step->count, "the groups of the step"));
    for (int64_t i = 0; i < step->count; i++)
        d->value[i] = -d->part[d->order[i]];
    return HBP_OK;
}

static int is_before(const dealing *d, int64_t a, int64_t b)
{
    return d->sum[a] < d->sum[b] || (d->sum[a] == d->sum[b] && a < b);
}

static void sift(dealing *d, int64_t open)
{
    int64_t *heap = d->heap, at = 0, moved = heap[0];
    for (int64_t child; (child = 2 * at + 1) < open; at = child) {
        if (child + 1 < open && is_before(d, heap[child + 1], heap[child]))
            child++;
        if (!is_before(d, heap[child], moved))
            break;
        heap[at] = heap[child];
    }
    heap[at] = moved;
}

/* Each value to the group of the least sum, of those with fewer than `most` of them. */
static hbp_status deal_longest_first(dealing *d, int64_t most)
{
    int64_t open = d->parts;
    for (int64_t p = 0; p < d->parts; p++) {
        d->sum[p] = d->dealt[p] = 0;
        d->heap[p] = p;
    }
    for (int64_t i = 0; i < d->step->count; i++) {
        int64_t p = d->heap[0];
        HBP__TRY(hbp__tick_row(d->step->context, "step", i, d->step->count));
        d->part[i] = p;
        d->sum[p] = hbp__add_saturating(d->sum[p], d->value[i]);
        if (++d->dealt[p] == most)
            d->heap[0] = d->heap[--open];
        sift(d, open);
    }
    return HBP_OK;
}

/* Rows of one value for each group, every other one backwards. */
static void deal_rows(dealing *d)
{
    for (int64_t i = 0; i < d->step->count; i++) {
        int64_t at = i % d->parts;
        d->part[i] = i / d->parts % 2 ? d->parts - 1 - at : at;
    }
}

static hbp_status deal(dealing *d, int32_t way)
{
    const hbp__step *step = d->step;
    switch (way) {
    case LPT:
    case LPT_EQUAL:
        return deal_longest_first(d, way == LPT ? INT64_MAX : hbp__ceil_div(step->count, d->parts));
    case ROWS:
        deal_rows(d);
        return HBP_OK;
    default:
        return hbp__step_difference(step->context, d->value, step->count, d->parts, way != DIFFERENCES,
                                    d->part);
    }
}

/* Takes what is dealt for the best, if all groups hold theirs in less time; *held gets whether they do. */
static hbp_status judge(dealing *d, int *held)
{
    const hbp__step *step = d->step;
    *held = 1;
    memset(d->load, 0, (size_t)d->parts * sizeof *d->load);
    for (int64_t i = 0; i < step->count; i++)
        hbp__step_load_add(step, d->j, &d->load[d->part[i]], d->order[i], 1);
    for (int64_t p = 0; p < d->parts && *held; p++) {
        *held = hbp__step_holds(step, d->j, d->load[p]);
        d->by_time[p] = (uint32_t)p;
        if (*held)
            d->sum[p] = -hbp__step_group_ns(step, d->j, d->load[p]);
    }
    if (!*held)
        return HBP_OK;
    int64_t ns = 0, padding_ns = hbp__cost_padding_ns(step->cost);
    HBP__TRY(hbp__order_by_i64(step->context, d->sum, d->by_time, d->parts, "the groups of the step"));
    for (int64_t p = 0; p < d->parts; p += d->at_once)
        ns = hbp__add_saturating(ns, hbp__max_i64(-d->sum[d->by_time[p]], padding_ns));
    d->last_ns = ns;
    if (ns >= d->best_ns)
        return HBP_OK;
    d->best_ns = ns;
    d->best_parts = d->parts;
    d->best_degree = d->j;
    for (int64_t p = 0; p < d->parts; p++)
        d->heap[d->by_time[p]] = p;
    for (int64_t i = 0; i < step->count; i++)
        d->best_part[d->order[i]] = d->heap[d->part[i]];
    return HBP_OK;
}

/* Every way to deal to so many groups: time, which `value` has, and then tokens, longest first alone unless
 * time overfills groups. Nothing more where what was dealt takes far longer than the best, or is to be
 * planned soon and is nearly even. */
static hbp_status try_parts(dealing *d)
{
    int all_held = 1, is_far = 0;
    int64_t least = INT64_MAX;
    for (int by_tokens = 0; by_tokens < 2 && !is_far; by_tokens++) {
        int32_t ways = by_tokens && all_held ? DIFFERENCES : WAYS;
        if (by_tokens)
            HBP__TRY(set_values(d, 0));
        for (int32_t way = 0; way < ways && !is_far && hbp__step_listen(d->b); way++) {
            int held;
            HBP__TRY(deal(d, way));
            HBP__TRY(judge(d, &held));
            d->b->work += HBP__EVEN_WORK * d->step->count;
            all_held = all_held && held;
            least = held ? hbp__min_i64(least, d->last_ns) : least;
            is_far = !by_tokens && all_held && (double)least > (double)d->best_ns * HBP__EVEN_FAR;
            if (d->b->quick && held && (double)d->last_ns < d->even_ns * HBP__EVEN_NEAR)
                return hbp__step_status(d->b);
        }
    }
    return hbp__step_status(d->b);
}

/* The longest and the shortest in a group where it holds both, else the longest alone. */
static hbp_status try_pairs(dealing *d, int64_t most)
{
    const hbp__step *step = d->step;
    int held;
    d->parts = step->count;
    HBP__TRY(set_values(d, 1));
    d->parts = 0;
    for (int64_t first = 0, last = step->count - 1; first <= last; first++, d->parts++) {
        const hbp__load load = hbp__step_load_of(step, d->j, d->order[first]);
        d->part[first] = d->parts;
        if (first < last && hbp__step_takes(step, d->j, &load, d->order[last]))
            d->part[last--] = d->parts;
    }
    d->b->work += HBP__EVEN_WORK * step->count;
    return hbp__ceil_div(d->parts, d->at_once) <= most ? judge(d, &held) : HBP_OK;
}

/* The time of a micro-batch whose groups, `parts` in all, have the same of the sums of the sequences. Steps
 * of uneven groups take longer but for rounding, surely where all groups recompute alike. Vision units come
 * on top of it. */
static double even_time(const dealing *d, double parts)
{
    const hbp__step_degree *degree = &d->step->degree[d->j];
    double tokens = d->tokens / parts;
    const hbp__point *way = &degree->way[0];
    if (!d->step->vision)
        way = hbp__step_find_way(degree, (int64_t)hbp__min_f64(tokens, (double)degree->capacity));
    return (way->constant + way->linear * tokens + way->square * d->squares / parts) *
               (1 - hbp__bound_margin(d->step->count)) -
           0.5;
}

/* The same of `micro_batches` where the longest have groups of their own: of every so many, one is the
 * slowest of a micro-batch. */
static double longest_time(const dealing *d, int64_t micro_batches)
{
    double sum = 0;
    for (int64_t p = 0; p < d->parts; p += d->at_once)
        sum += (double)d->value[p];
    return sum * (1 - hbp__bound_margin(d->step->count)) +
           (double)micro_batches * (d->step->degree[d->j].constant - 1);
}

static int64_t least_micro_batches(const dealing *d)
{
    const hbp__step *step = d->step;
    double room = (double)step->degree[d->j].capacity * (double)d->at_once;
    int64_t least = hbp__max_i64((int64_t)ceil(d->tokens / room), hbp__step_fewest_for_caps(step));
    return hbp__step_whole(step, least);
}

/* As many micro-batches, unless balanced groups alone would take as long as the best; *idle gets one more
 * where that brings nothing. */
static hbp_status try_number(dealing *d, int64_t micro_batches, int64_t *idle)
{
    int64_t before = d->best_ns;
    d->parts = hbp__min_i64(micro_batches * d->at_once, d->step->count);
    double all = even_time(d, (double)(micro_batches * d->at_once));
    d->even_ns = all * (double)micro_batches;
    if (!(d->even_ns < (double)before))
        return HBP_OK;
    HBP__TRY(set_values(d, 1));
    if (!(longest_time(d, micro_batches) < (double)before))
        return HBP_OK;
    HBP__TRY(try_parts(d));
    *idle = d->best_ns < before ? 0 : *idle + 1;
    return HBP_OK;
}

/* Steps of one degree, with ever more micro-batches. */
static hbp_status try_degree(dealing *d, int64_t most)
{
    const hbp__step *step = d->step;
    const hbp__step_degree *degree = &step->degree[d->j];
    d->tokens = d->squares = 0;
    for (int64_t k = 0; k < step->count; k++) {
        d->tokens += (double)degree->tokens[k];
        d->squares += step->squares[k];
    }
    double least = (degree->linear * d->tokens + degree->square * d->squares) / (double)d->at_once;
    int64_t first = least_micro_batches(d), idle = 0;
    for (int64_t m = first; m <= most && idle < HBP__EVEN_NUMBERS; m += step->options.micro_batch_multiple) {
        int is_last = !(least + (double)m * (degree->constant - 0.5) < (double)d->best_ns) ||
                      (m > first && (m - 1) * d->at_once >= step->count);
        if (is_last || !hbp__step_listen(d->b))
            break;
        HBP__TRY(try_number(d, m, &idle));
    }
    int64_t pairs = hbp__ceil_div(hbp__ceil_div(step->count, 2), d->at_once);
    if (pairs <= most && even_time(d, (double)(pairs * d->at_once)) * (double)pairs < (double)d->best_ns)
        HBP__TRY(try_pairs(d, most));
    return hbp__step_status(d->b);
}

/* The best as a solution. */
static hbp_status write_best(const dealing *d, hbp__step_solution *solution)
{
    const hbp__step *step = d->step;
    int64_t at_once = step->ranks / step->degree[d->best_degree].degree;
    int64_t micro_batches = hbp__ceil_div(d->best_parts, at_once);
    HBP__TRY(hbp__step_solution_open(step, micro_batches, d->best_parts, solution));
    for (int64_t m = 0; m <= micro_batches; m++)
        solution->first[m] = hbp__min_i64(m * at_once, d->best_parts);
    for (int64_t p = 0; p < d->best_parts; p++)
        solution->degree[p] = d->best_degree;
    memcpy(solution->group, d->best_part, (size_t)step->count * sizeof *solution->group);
    return hbp__step_solution_price(step, solution);
}

hbp_status hbp__step_even(hbp__step_builder *b, int64_t most, int64_t below_ns, hbp__step_solution *solution)
{
    const hbp__step *step = b->step;
    hbp_context *context = step->context;
    int64_t mark = hbp__scratch_mark(context);
    uint64_t count = (uint64_t)step->count;
    dealing d = {.step = step, .b = b, .best_ns = below_ns};
    d.value = hbp__take(context, count, sizeof *d.value);
    d.order = hbp__take(context, count, sizeof *d.order);
    d.part = hbp__take(context, count, sizeof *d.part);
    d.load = hbp__take(context, count, sizeof *d.load);
    d.sum = hbp__take(context, count, sizeof *d.sum);
    d.heap = hbp__take(context, count, sizeof *d.heap);
    d.dealt = hbp__take(context, count, sizeof *d.dealt);
    d.by_time = hbp__take(context, count, sizeof *d.by_time);
    d.best_part = hbp__take(context, count, sizeof *d.best_part);
    HBP__TRY(hbp__scratch_check(context, "the groups of the step"));
    for (d.j = 0; d.j < step->degrees; d.j++) {
        d.at_once = step->ranks / step->degree[d.j].degree;
        if (d.at_once && hbp__step_holds_each(step, d.j)) /* a lockstep set may be narrower */
            HBP__TRY(try_degree(&d, most));
    }
    hbp_status status = d.best_parts ? write_best(&d, solution) : HBP_OK;
    hbp__scratch_release(context, mark);
    return status;
}
