/* The time-cost trade-off of malleable MetaOps (Siemens 1971): the cheapest speed-up on a longest path, again
 * and again, then slack given back. O(MetaOps x hull x (MetaOps + edges)) of a connected part. */
#include "tasks/overlap/overlap_search.h"

#include "base/checked.h"
#include "base/scratch.h"
#include "solve/union_find.h"
#include "tasks/tuning.h"

/* MetaOps and edges looked at between two looks at whether to go on: some milliseconds. */
#define TICK_LOOKS 1000000

/* Lists MetaOps by part, in ascending order within each. `parent` is scratch. */
static void list_parts(hbp__allocation *a, int32_t *parent)
{
    int32_t *number = a->part_of;
    const hbp__scheduler *p = a->scheduler;
    for (int32_t m = 0; m < p->meta_ops; m++)
        parent[m] = m;
    for (int32_t m = 0; m < p->meta_ops; m++)
        for (int32_t k = p->next_first[m]; k < p->next_first[m + 1]; k++)
            hbp__join_sets(parent, m, p->next[k]);
    a->parts = 0;
    for (int32_t m = 0; m < p->meta_ops; m++)
        if (hbp__set_of(parent, m) == m) {
            a->part_first[a->parts] = 0;
            number[m] = a->parts++;
        }
    a->part_first[a->parts] = 0;
    for (int32_t m = 0; m < p->meta_ops; m++) {
        number[m] = number[hbp__set_of(parent, m)];
        a->part_first[number[m] + 1]++;
    }
    for (int32_t c = 0; c < a->parts; c++)
        a->part_first[c + 1] += a->part_first[c];
    for (int32_t c = 0; c < a->parts; c++)
        parent[c] = a->part_first[c];
    for (int32_t m = 0; m < p->meta_ops; m++)
        a->part[parent[number[m]]++] = m;
}

static const hbp__curve *curve_of(const hbp__allocation *a, int32_t m)
{
    return a->scheduler->curve[m];
}

static int64_t hull_time(const hbp__curve *c, int32_t step)
{
    return c->time_ns[c->hull[step]];
}

static int64_t hull_area(const hbp__curve *c, int32_t step)
{
    return c->size[c->hull[step]] * hull_time(c, step);
}

static void set_time(hbp__allocation *a, int32_t m)
{
    const hbp__curve *c = curve_of(a, m);
    const hbp__bi_point *s = &a->share[m];
    a->time_ns[m] = (a->count[m] - s->fast) * hull_time(c, s->step);
    if (s->fast > 0)
        a->time_ns[m] += s->fast * hull_time(c, s->step + 1);
}

hbp_status hbp__allocation_open(hbp_context *context, const hbp__scheduler *scheduler,
                                hbp__allocation *allocation)
{
    uint64_t count = (uint64_t)scheduler->meta_ops;
    *allocation = (hbp__allocation){.scheduler = scheduler, .context = context, .looks = INT64_MAX};
    allocation->count = hbp__take(context, count, sizeof *allocation->count);
    allocation->share = hbp__take_zero(context, count, sizeof *allocation->share);
    allocation->time_ns = hbp__take(context, count, sizeof *allocation->time_ns);
    allocation->head_ns = hbp__take(context, count, sizeof *allocation->head_ns);
    allocation->tail_ns = hbp__take(context, count, sizeof *allocation->tail_ns);
    allocation->part_first = hbp__take(context, count + 1, sizeof *allocation->part_first);
    allocation->part = hbp__take(context, count, sizeof *allocation->part);
    allocation->part_of = hbp__take(context, count, sizeof *allocation->part_of);
    int64_t mark = hbp__scratch_mark(context);
    int32_t *parent = hbp__take(context, count, sizeof *parent);
    HBP__TRY(hbp__scratch_check(context, "shares of MetaOps"));
    list_parts(allocation, parent);
    hbp__scratch_release(context, mark);
    for (int32_t m = 0; m < scheduler->meta_ops; m++) {
        allocation->count[m] = scheduler->problem->meta->meta_op[m].count;
        set_time(allocation, m);
    }
    return HBP_OK;
}

void hbp__allocation_look(hbp__allocation *allocation, int64_t more)
{
    allocation->looked += more;
    if (allocation->looked < allocation->tick || allocation->status < 0)
        return;
    allocation->tick = allocation->looked + TICK_LOOKS;
    allocation->status = hbp__tick(allocation->context, "first schedules", 0, 0);
    if (allocation->status < 0)
        allocation->looks = -1;
}

/* Heads and tails of a part; returns its longest path. */
static int64_t measure_paths(hbp__allocation *a, int32_t part)
{
    const hbp__scheduler *p = a->scheduler;
    int32_t begin = a->part_first[part], end = a->part_first[part + 1];
    int64_t longest = 0, edges = 0;
    for (int32_t i = begin; i < end; i++) {
        int32_t m = a->part[i];
        a->head_ns[m] = 0;
        edges += p->before_first[m + 1] - p->before_first[m];
        for (int32_t k = p->before_first[m]; k < p->before_first[m + 1]; k++) {
            int32_t b = p->before[k];
            a->head_ns[m] = hbp__max_i64(a->head_ns[m], a->head_ns[b] + a->time_ns[b]);
        }
        longest = hbp__max_i64(longest, a->head_ns[m] + a->time_ns[m]);
    }
    for (int32_t i = end; i > begin; i--) {
        int32_t m = a->part[i - 1];
        a->tail_ns[m] = 0;
        for (int32_t k = p->next_first[m]; k < p->next_first[m + 1]; k++) {
            int32_t b = p->next[k];
            a->tail_ns[m] = hbp__max_i64(a->tail_ns[m], a->tail_ns[b] + a->time_ns[b]);
        }
    }
    hbp__allocation_look(a, hbp__max_i64(end - begin, edges));
    return longest;
}

static int64_t path_through(const hbp__allocation *a, int32_t m)
{
    return a->head_ns[m] + a->time_ns[m] + a->tail_ns[m];
}

/* GPU time per time saved between hull sizes step and step + 1. */
static double hull_slope(const hbp__curve *c, int32_t step)
{
    return (double)(hull_area(c, step + 1) - hull_area(c, step)) /
           (double)(hull_time(c, step) - hull_time(c, step + 1));
}

/* Gives m more, for `operators` at most; within a hull segment. */
static void speed_up(hbp__allocation *a, int32_t m, int64_t operators)
{
    hbp__bi_point *s = &a->share[m];
    int32_t slow = a->count[m] - s->fast;
    s->fast += operators < slow ? (int32_t)operators : slow;
    if (s->fast == a->count[m]) {
        s->fast = 0;
        s->step++;
    }
    set_time(a, m);
}

static void slow_down(hbp__allocation *a, int32_t m, int64_t operators)
{
    hbp__bi_point *s = &a->share[m];
    if (s->fast == 0) {
        s->fast = a->count[m];
        s->step--;
    }
    s->fast -= operators < s->fast ? (int32_t)operators : s->fast;
    set_time(a, m);
}

/* While the part's longest path is too long: more for the MetaOp on it that gains most for its GPU time, a
 * part of its operators at most, for another path may then be the longest. */
static void shorten_paths(hbp__allocation *a, int32_t part, int64_t ns)
{
    for (int64_t longest; (longest = measure_paths(a, part)) > ns;) {
        int32_t best = -1;
        double least = 0;
        for (int32_t i = a->part_first[part]; i < a->part_first[part + 1]; i++) {
            int32_t m = a->part[i];
            const hbp__curve *c = curve_of(a, m);
            if (a->count[m] == 0 || path_through(a, m) < longest || a->share[m].step + 1 >= c->tight)
                continue;
            double s = hull_slope(c, a->share[m].step);
            if (best < 0 || s < least) {
                best = m;
                least = s;
            }
        }
        if (best < 0 || a->looked > a->looks)
            return;
        const hbp__curve *c = curve_of(a, best);
        int32_t step = a->share[best].step;
        int64_t need = hbp__ceil_div(longest - ns, hull_time(c, step) - hull_time(c, step + 1));
        speed_up(a, best, hbp__min_i64(need, hbp__ceil_div(a->count[best], HBP__SHARE_STEP)));
    }
}

/* Slack goes back where it saves most. */
static void give_slack_back(hbp__allocation *a, int32_t part, int64_t ns)
{
    for (;;) {
        int64_t longest = hbp__max_i64(measure_paths(a, part), ns), slack, operators = 0;
        int32_t best = -1;
        double most = 0;
        for (int32_t i = a->part_first[part]; i < a->part_first[part + 1]; i++) {
            int32_t m = a->part[i], step = a->share[m].step - (a->share[m].fast == 0);
            if (step < 0 || a->count[m] == 0)
                continue;
            const hbp__curve *c = curve_of(a, m);
            slack = (longest - path_through(a, m)) / (hull_time(c, step) - hull_time(c, step + 1));
            if (slack == 0)
                continue;
            double s = hull_slope(c, step);
            if (best < 0 || s > most) {
                best = m;
                most = s;
                operators = slack;
            }
        }
        if (best < 0 || a->looked > a->looks)
            return;
        slow_down(a, best, operators);
    }
}

void hbp__allocation_reach(hbp__allocation *allocation, int64_t ns)
{
    for (int32_t part = 0; part < allocation->parts; part++) {
        shorten_paths(allocation, part, ns);
        give_slack_back(allocation, part, ns);
    }
}

void hbp__allocation_reach_part(hbp__allocation *allocation, int32_t part, int64_t ns)
{
    for (int32_t i = allocation->part_first[part]; i < allocation->part_first[part + 1]; i++) {
        allocation->share[allocation->part[i]] = (hbp__bi_point){0, 0};
        set_time(allocation, allocation->part[i]);
    }
    shorten_paths(allocation, part, ns);
    give_slack_back(allocation, part, ns);
}

int64_t hbp__allocation_area(const hbp__allocation *allocation)
{
    int64_t sum = 0;
    for (int32_t m = 0; m < allocation->scheduler->meta_ops; m++) {
        const hbp__curve *c = curve_of(allocation, m);
        const hbp__bi_point *s = &allocation->share[m];
        int64_t area = (allocation->count[m] - s->fast) * hull_area(c, s->step);
        if (s->fast > 0)
            area += s->fast * hull_area(c, s->step + 1);
        sum = hbp__add_saturating(sum, area);
    }
    return sum;
}

int32_t hbp__allocation_size(const hbp__allocation *allocation, int32_t m, int fast)
{
    const hbp__bi_point *s = &allocation->share[m];
    return curve_of(allocation, m)->hull[s->step + (fast ? 1 : 0)];
}
