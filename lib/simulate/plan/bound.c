/* docs/explanation/bound.md states the bound and proves it; the names here are the ones used there. */
#include "simulate/plan/bound.h"

#include "base/checked.h"
#include "base/scratch.h"
#include "base/sort.h"
#include "cost/point.h"
#include "cost/straight.h"
#include "data/lengths/lengths.h"
#include "hbp/plan.h"

/* Covers the rounding of every double operation between a plan's integer times and the bound's sum. */
#define MARGIN (1.0 / 1099511627776.0) /* 2^-40 */

#define TICK_BINS 32768

/* A point of degree d. A sample of s tokens, p <= capacity when padded, takes at least p linear + square s^2
 * ns of rank-time in a pack that is run so: a line of s^2 / p, times p. */
typedef struct bound_point {
    int64_t capacity;
    double linear; /* without the share of pack_ns */
    double share;  /* d / capacity: of pack_ns, per token */
    double square;
    int32_t row;
    int32_t recompute;
} bound_point;

typedef struct bound_line {
    double linear;
    double square;
} bound_line;

typedef struct bound_problem {
    const hbp_cost *cost;
    int64_t bins;
    const int64_t *length;
    const int64_t *count;
    int64_t multiple; /* that samples are padded to, at least */
    double vision_ns; /* rank-time that the vision units are sure to take */
    int64_t steps;
    int64_t capacity; /* of the point that holds most */
    int64_t points;
    bound_point *point; /* descending in capacity; only those that hold the shortest sample */
    bound_line *front;  /* [points] scratch: the lines that are least somewhere in the data's range */
    bound_line *active; /* [points] scratch: the lines that are least somewhere between two capacities */
    double pack_ns;     /* what each pack, padding packs included, is sure to pay once */
    double kept;        /* share of a pack's time that rounding leaves */
} bound_problem;

static double line_at(const bound_line *line, double tokens)
{
    return line->linear + line->square * tokens;
}

/* Adds a line to a list that keeps, of any two lines, only the lower one where one is lower at both ends of
 * [low, high]: being straight, it is then lower in between. Returns the new count. */
static int64_t insert_line(bound_line *lines, int64_t count, bound_line line, double low, double high)
{
    double at_low = line_at(&line, low), at_high = line_at(&line, high);
    int64_t kept = 0;
    for (int64_t i = 0; i < count; i++) {
        double other_low = line_at(&lines[i], low), other_high = line_at(&lines[i], high);
        if (other_low <= at_low && other_high <= at_high)
            return count; /* whatever the new line beats, this one beats, so nothing has been removed */
        if (other_low < at_low || other_high < at_high)
            lines[kept++] = lines[i];
    }
    lines[kept] = line;
    return kept + 1;
}

/* Neumaier's sum: the error is that of one rounding, whatever the number of terms. */
typedef struct bound_sum {
    double total;
    double lost;
} bound_sum;

static void sum_add(bound_sum *sum, double term)
{
    double total = sum->total + term;
    sum->lost += sum->total >= term ? (sum->total - total) + term : (term - total) + sum->total;
    sum->total = total;
}

static int64_t padded(const bound_problem *p, int64_t length)
{
    return hbp__round_up(length, p->multiple);
}

/* The square of a sample of `length` tokens, for each of the `tokens` that it has when padded. */
static double square_a_token(int64_t length, int64_t tokens)
{
    return tokens == length ? (double)length : (double)length * (double)length / (double)tokens;
}

/* No sample of so many tokens or more has less, as x^2 / (x + multiple - 1) rises. */
static double least_square_a_token(const bound_problem *p, int64_t length)
{
    return square_a_token(length, length + p->multiple - 1);
}

/* F(theta): ns of all micro-batches, with share theta of the packs' own time charged to tokens and the rest
 * to the steps. O(bins x lines), where few lines survive. */
static hbp_status sum_area(hbp_context *context, const bound_problem *p, double theta, double *ns)
{
    bound_sum sum = {p->vision_ns, 0};
    int64_t next = 0, fronts = 0, actives = 0;
    double shortest = least_square_a_token(p, p->length[0]), longest = (double)p->length[p->bins - 1];
    for (int64_t b = p->bins - 1; b >= 0; b--) {
        const int64_t tokens = padded(p, p->length[b]);
        const double square = square_a_token(p->length[b], tokens);
        if (next < p->points && p->point[next].capacity >= tokens) {
            for (; next < p->points && p->point[next].capacity >= tokens; next++) {
                const bound_point *point = &p->point[next];
                bound_line line = {point->linear + theta * p->pack_ns * point->share, point->square};
                fronts = insert_line(p->front, fronts, line, shortest, longest);
            }
            /* The samples up to the next point's capacity. */
            int64_t low = next < p->points ? p->point[next].capacity - p->multiple + 1 : p->length[0];
            double least = least_square_a_token(p, hbp__max_i64(low, p->length[0]));
            actives = 0;
            for (int64_t i = 0; i < fronts; i++)
                actives = insert_line(p->active, actives, p->front[i], least, (double)p->length[b]);
        }
        double least = line_at(&p->active[0], square);
        for (int64_t i = 1; i < actives; i++) {
            double other = line_at(&p->active[i], square);
            least = other < least ? other : least;
        }
        sum_add(&sum, (double)p->count[b] * (double)tokens * least);
        if (b % TICK_BINS == 0)
            HBP__TRY(hbp__tick(context, "bound", p->bins - b, p->bins));
    }
    double ranks = (double)p->cost->terms.ranks;
    *ns = p->kept * ((sum.total + sum.lost) / ranks + (1 - theta) * p->pack_ns * (double)p->steps);
    return HBP_OK;
}

/* The greatest F on multiples of 1/8. F is concave, so halving the stride around the best so far suffices. */
static hbp_status greatest_area(hbp_context *context, const bound_problem *p, double *ns)
{
    double best = 1;
    HBP__TRY(sum_area(context, p, best, ns));
    if (!(p->pack_ns > 0) || p->steps < 1)
        return HBP_OK;
    for (double stride = 1; stride >= 0.125; stride /= 2) {
        double centre = best;
        for (int side = -1; side <= 1; side += 2) {
            double theta = centre + side * stride, here;
            if (theta < 0 || theta > 1)
                continue;
            HBP__TRY(sum_area(context, p, theta, &here));
            if (here > *ns) {
                *ns = here;
                best = theta;
            }
        }
    }
    return HBP_OK;
}

/* Least predicted time of a pack that holds a sample of this length and maybe more; INT64_MAX when none holds
 * it. Also the same before rounding. */
static int64_t least_pack_ns(const bound_problem *p, int64_t length, double *unrounded)
{
    int64_t least = INT64_MAX;
    const double squares = (double)length * (double)length;
    const int64_t tokens = padded(p, length);
    *unrounded = 0;
    for (int64_t i = 0; i < p->points && p->point[i].capacity >= tokens; i++) {
        double ns = hbp__cost_ns(p->cost, p->point[i].row, p->point[i].recompute, (double)tokens, squares, 0);
        if (!i || ns < *unrounded) {
            *unrounded = ns;
            least = hbp__cost_pack_ns(p->cost, p->point[i].row, p->point[i].recompute,
                                      (hbp__load){.tokens = tokens, .squares = squares});
        }
    }
    return least;
}

static void add_point(bound_problem *p, const hbp__point *point)
{
    double degree = p->cost->degree[point->row], share = degree / (double)point->capacity;
    p->point[p->points++] = (bound_point){.capacity = point->capacity,
                                          .linear = degree * point->linear + point->latency * share,
                                          .share = share,
                                          .square = degree * point->square,
                                          .row = point->row,
                                          .recompute = point->recompute};
}

/* Every useful point that holds the shortest sample, by capacity. */
static hbp_status list_points(hbp_context *context, bound_problem *p)
{
    const hbp_cost_terms *t = &p->cost->terms;
    hbp__point_range range = {.last = t->layers, .stride = 1, .most = INT64_MAX, .multiple = 1};
    uint64_t most = (uint64_t)t->degrees * ((uint64_t)t->layers + 1);
    p->point = hbp__take(context, most, sizeof *p->point);
    p->front = hbp__take(context, most, sizeof *p->front);
    p->active = hbp__take(context, most, sizeof *p->active);
    int64_t mark = hbp__scratch_mark(context);
    hbp__point *of_degree = hbp__take(context, (uint64_t)t->layers + 1, sizeof *of_degree);
    bound_point *all = hbp__take(context, most, sizeof *all);
    int64_t *keys = hbp__take(context, most, sizeof *keys);
    uint32_t *order = hbp__take(context, most, sizeof *order);
    HBP__TRY(hbp__scratch_check(context, "the bound"));
    for (int32_t row = 0; row < t->degrees; row++) {
        int32_t count = hbp__points_list(p->cost, row, &range, of_degree);
        for (int32_t i = 0; i < count; i++) {
            p->capacity = hbp__max_i64(p->capacity, of_degree[i].capacity);
            if (of_degree[i].capacity >= padded(p, p->length[0]))
                add_point(p, &of_degree[i]);
        }
    }
    for (int64_t i = 0; i < p->points; i++) {
        all[i] = p->point[i];
        keys[i] = -all[i].capacity;
        order[i] = (uint32_t)i;
    }
    if (!hbp__sort_by_i64(&context->memory, keys, order, p->points))
        return hbp__fail_memory(context, "the bound");
    for (int64_t i = 0; i < p->points; i++)
        p->point[i] = all[order[i]];
    hbp__scratch_release(context, mark);
    return HBP_OK;
}

/* Adds `times` x `ns`. */
static int64_t add_times(int64_t sum, int64_t times, int64_t ns)
{
    int64_t product;
    return hbp__mul_i64(times, ns, &product) ? hbp__add_saturating(sum, product) : INT64_MAX;
}

static int64_t round_up_i64(double x)
{
    if (!(x < 9223372036854774784.0))
        return INT64_MAX;
    int64_t floor = (int64_t)x;
    return floor + ((double)floor < x);
}

static hbp_status solve_bound(hbp_context *context, bound_problem *p, int64_t *bound_ns)
{
    const hbp_cost_terms *t = &p->cost->terms;
    HBP__TRY(list_points(context, p));
    double shortest_ns, unused;
    int64_t longest = p->length[p->bins - 1];
    if (p->capacity < padded(p, longest))
        return hbp__fail(context, HBP_E_INFEASIBLE, "a sample has %lld tokens; the longest pack holds %lld",
                         (long long)padded(p, longest), (long long)p->capacity);
    int64_t longest_ns = least_pack_ns(p, longest, &unused);
    least_pack_ns(p, p->length[0], &shortest_ns);
    if (t->pack_ns >= 0.5) {
        p->pack_ns = t->pack_ns - 0.5;
        p->kept = 1;
    } else {
        p->pack_ns = 0;
        p->kept = shortest_ns > 0.5 ? 1 - 0.5 / shortest_ns : 0;
    }
    double area_ns;
    HBP__TRY(greatest_area(context, p, &area_ns));

    /* One micro-batch holds the longest sample; the others last at least a padding pack's time. */
    int64_t padding_ns = hbp__round_i64(t->pack_ns);
    int64_t path_ns = add_times(longest_ns, hbp__max_i64(p->steps - 1, 0), padding_ns);
    int64_t micro_batches_ns = hbp__max_i64(round_up_i64(area_ns * (1 - MARGIN)), path_ns);
    int64_t total = add_times(micro_batches_ns, p->steps, hbp__round_i64(t->step_ns));
    if (total == INT64_MAX)
        return hbp__fail(context, HBP_E_OVERFLOW, "the bound of the epoch's time is over 2^63 - 1 ns");
    *bound_ns = total;
    return HBP_OK;
}

/* The best of the linear costs that are never above the cost. */
hbp_status hbp__bound(hbp_context *context, const hbp_cost *cost, int64_t bins, const int64_t *length,
                      const int64_t *count, int64_t multiple, int64_t vision, int64_t steps,
                      int64_t *bound_ns)
{
    int64_t best_ns = 0;
    for (int32_t i = 0; i < hbp__cost_bounds(cost); i++) {
        const hbp_cost below = hbp__cost_below(cost, i);
        bound_problem problem = {.cost = &below,
                                 .bins = bins,
                                 .length = length,
                                 .count = count,
                                 .multiple = multiple,
                                 .steps = steps};
        problem.vision_ns = below.terms.ns_per_vision * (double)vision;
        int64_t mark = hbp__scratch_mark(context), ns = 0;
        HBP__TRY(hbp__leave(context, mark, solve_bound(context, &problem, &ns)));
        best_ns = hbp__max_i64(best_ns, ns);
    }
    *bound_ns = best_ns;
    return HBP_OK;
}

/* Lengths up to this are counted in a table; longer samples are few, so they are sorted. */
#define TABLE_LENGTHS (INT64_C(1) << 20)

hbp_status hbp__count_lengths(hbp_context *context, const hbp_plan *plan, int64_t *bins, int64_t **length,
                              int64_t **count)
{
    const hbp__memory *memory = &context->memory;
    int64_t longest = 0, tail = 0, used = 0;
    for (int64_t i = 0; i < plan->samples; i++) {
        longest = hbp__max_i64(longest, plan->sample_tokens[i]);
        tail += plan->sample_tokens[i] > TABLE_LENGTHS;
    }
    int64_t table = hbp__min_i64(longest, TABLE_LENGTHS);
    int64_t mark = hbp__scratch_mark(context);
    int64_t *counts = hbp__take_zero(context, (uint64_t)table + 1, sizeof *counts);
    uint64_t *keys = hbp__take(context, (uint64_t)tail, sizeof *keys);
    uint32_t *order = hbp__take(context, (uint64_t)tail, sizeof *order);
    HBP__TRY(hbp__scratch_check(context, "the histogram of the plan's samples"));
    for (int64_t i = 0; i < plan->samples; i++)
        if (plan->sample_tokens[i] <= TABLE_LENGTHS)
            used += !counts[plan->sample_tokens[i]]++;
    *length = hbp__new(memory, (uint64_t)(used + tail), sizeof **length);
    *count = hbp__new(memory, (uint64_t)(used + tail), sizeof **count);
    if (!*length || !*count)
        return hbp__fail_memory(context, "the histogram of the plan's samples");
    used = 0;
    for (int64_t tokens = 1; tokens <= table; tokens++)
        if (counts[tokens]) {
            (*length)[used] = tokens;
            (*count)[used++] = counts[tokens];
        }
    tail = 0;
    for (int64_t i = 0; i < plan->samples; i++)
        if (plan->sample_tokens[i] > TABLE_LENGTHS) {
            order[tail] = (uint32_t)tail;
            keys[tail++] = (uint64_t)plan->sample_tokens[i];
        }
    if (!hbp__sort_by_u64(memory, keys, order, tail))
        return hbp__fail_memory(context, "the histogram of the plan's samples");
    for (int64_t i = 0; i < tail; i++) {
        int64_t tokens = (int64_t)keys[order[i]];
        if (used && (*length)[used - 1] == tokens) {
            (*count)[used - 1]++;
        } else {
            (*length)[used] = tokens;
            (*count)[used++] = 1;
        }
    }
    *bins = used;
    hbp__scratch_release(context, mark);
    return HBP_OK;
}

hbp_status hbp_bound_epoch(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                           int64_t steps, int64_t *bound_ns)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, bound_ns, "bound_ns"));
    HBP__TRY(hbp__require(context, lengths, "lengths"));
    HBP__TRY(hbp__require(context, cost, "cost"));
    if (steps < 0)
        return hbp__fail(context, HBP_E_INVALID, "steps is %lld; it must not be negative", (long long)steps);
    int64_t mark = hbp__scratch_mark(context);
    return hbp__leave(context, mark,
                      hbp__bound(context, cost, lengths->bins, lengths->bin_length, lengths->bin_count, 1,
                                 lengths->vision_sum, steps, bound_ns));
}
