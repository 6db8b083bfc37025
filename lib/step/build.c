/* A step from nothing: micro-batch after micro-batch, the longest sequences first. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "step/builder.h"
#include "step/tuning.h"

/* Useful rank-time of the pool. */
static double useful_of(const hbp__step_builder *b)
{
    double sum = 0;
    for (int64_t i = 0; i < b->pool.count; i++)
        sum += b->filler.useful[b->pool.member[i]];
    return sum;
}

/* Whether the whole pool, which stays, goes into micro-batch m within `goal`. Where not, *short_by gets the
 * part of its rank-time that is left, about which the goal is too short by; NULL: that is not looked at. */
static int fills(hbp__step_builder *b, hbp__step_board *board, int64_t m, double goal, hbp__step_style style,
                 double *short_by)
{
    const hbp__step_filler *f = &b->filler;
    const hbp__step_pool *pool = &b->pool;
    const int64_t left =
        hbp__step_fill_most(&b->filler, pool, board, m, goal, style, short_by ? pool->count : 0);
    double rest = 0;
    if (left <= 0 || !short_by)
        return !left;
    for (int64_t i = 0; i < left; i++)
        rest += f->useful[f->left[i]];
    const double all = useful_of(b);
    *short_by = all > 0 && all < (double)INFINITY ? rest / all : 0;
    return 0;
}

int hbp__step_fill_all(hbp__step_builder *b, hbp__step_board *board, int64_t m, double limit,
                       hbp__step_style style)
{
    double goal = hbp__step_estimate(b->step, &b->pool, 0, b->pool.count, 1), stride = HBP__BUILD_ALL_STRIDE,
           fails = 0;
    int filled = 0;
    for (int i = 0; i < HBP__BUILD_ALL_STRIDES && !filled && goal < limit && hbp__step_listen(b); i++) {
        b->work += 4 * b->pool.count;
        double short_by = 0;
        filled = fills(b, board, m, goal, style, b->quick ? &short_by : NULL);
        if (filled)
            break;
        fails = goal;
        goal = goal * (1 + hbp__max_f64(stride, short_by)) + 1;
        stride *= HBP__BUILD_WIDER;
    }
    if (!filled)
        return 0;
    int again = 0;
    while (fails > 0 && goal - fails > goal * HBP__BUILD_ALL_PRECISE && hbp__step_listen(b)) {
        double middle = fails + (goal - fails) / 2;
        b->work += 4 * b->pool.count;
        again = !fills(b, board, m, middle, style, NULL);
        if (again)
            fails = middle;
        else
            goal = middle;
    }
    if (again)
        fills(b, board, m, goal, style, NULL);
    return 1;
}

/* Cuts the pool into so many runs; b->end gets their ends. Returns the sum of their estimates. */
static double cut(hbp__step_builder *b, int64_t runs)
{
    hbp__step_cuts *cuts = b->pool.count == b->step->count ? &b->whole : &b->part;
    return hbp__step_cut(cuts, &b->pool, runs, HBP__BUILD_OVERFULL, b->end);
}

/* About how long the next of `left` micro-batches should take; INFINITY when there is no way. */
static double guess(hbp__step_builder *b, int64_t left)
{
    const hbp__step_pool *pool = &b->pool;
    if (left <= HBP__STEP_AHEAD) {
        b->work += 4 * HBP__STEP_CUTS * HBP__STEP_CUTS * b->step->degrees;
        if (!(cut(b, left) < (double)INFINITY))
            return (double)INFINITY;
        return hbp__step_estimate(b->step, pool, 0, b->end[0], HBP__BUILD_OVERFULL);
    }
    double share = hbp__step_pool_room(b->step, pool, 0, pool->count) / (double)left;
    int64_t end = 1;
    while (end < pool->count && hbp__step_pool_room(b->step, pool, 0, end + 1) <= share)
        end++;
    return hbp__step_estimate(b->step, pool, 0, end, HBP__BUILD_OVERFULL);
}

int hbp__step_may_be_shorter(hbp__step_builder *b, int64_t micro_batches, double time)
{
    if (!(time < (double)INFINITY) || micro_batches > HBP__STEP_AHEAD)
        return 1;
    return useful_of(b) / b->step->ranks + (double)micro_batches * b->fixed < time &&
           cut(b, micro_batches) < time;
}

/* A micro-batch filled for trial. */
typedef struct trial {
    double density;
    int64_t m;
    int64_t left; /* micro-batches, this one counted */
    double rate;  /* useful rank-time a ns, of the best so far */
    double goal;
} trial;

/* Whether `left` micro-batches have groups for the samples and vision units of the pool. */
static int have_groups(const hbp__step_builder *b, int64_t left)
{
    const hbp__step *step = b->step;
    int64_t samples = 0, groups = left * (step->ranks / step->degree[0].degree);
    if (step->most_vision < INT64_MAX &&
        hbp__step_pool_vision(&b->pool, 0, b->pool.count) > (double)groups * (double)step->most_vision)
        return 0;
    for (int64_t i = 0; step->most_samples < INT64_MAX && i < b->pool.count; i++)
        samples += hbp__step_samples(step, b->pool.member[i]);
    return samples <= hbp__mul_saturating(groups, step->most_samples);
}

/* Whether the micro-batches to come can hold what a filling within `goal` leaves; keeps the best such goal.
 */
static int weigh_goal(hbp__step_builder *b, hbp__step_board *board, trial *t, double goal)
{
    b->work += 4 * b->pool.count;
    double useful = hbp__step_fill(&b->filler, &b->pool, board, t->m, goal, hbp__step_plain);
    int enough = hbp__step_pool_room(b->step, &b->pool, 0, b->pool.count) <=
                     b->room * (double)(t->left - 1) * t->density &&
                 have_groups(b, t->left - 1);
    hbp__step_restore(b);
    if (!enough)
        return 0;
    double time = board->makespan[t->m] - b->fixed, rate = time > 0 ? useful / time : (double)b->step->ranks;
    if (rate > t->rate || !(t->goal > 0)) {
        t->rate = rate;
        t->goal = goal;
    }
    return 1;
}

/* Fills micro-batch m, with `left` - 1 > 0 yet to come: of the makespans that leave these no more than they
 * can hold, the one with the most useful rank-time a ns. */
static int fill_next(hbp__step_builder *b, hbp__step_board *board, int64_t m, int64_t left, double density)
{
    static const double multiple[] = {HBP__BUILD_MULTIPLES};
    enum { MULTIPLES = sizeof multiple / sizeof *multiple };
    double goal[MULTIPLES + HBP__STEP_DEGREES], about = guess(b, left), low = 0, high = (double)INFINITY;
    trial t = {density, m, left, 0, 0};
    if (!(about < (double)INFINITY))
        return 0;
    int32_t goals =
        hbp__step_list_goals(b, about, HBP__BUILD_LEAST, HBP__BUILD_MOST, multiple, MULTIPLES, goal);
    hbp__step_save(b);
    for (int32_t i = 0; i < goals && hbp__step_listen(b); i++) {
        if (goal[i] <= low)
            continue;
        if (!weigh_goal(b, board, &t, goal[i]))
            low = goal[i];
        else if (goal[i] < high)
            high = goal[i];
    }
    for (double stride = HBP__BUILD_STRIDE; !(high < (double)INFINITY); stride *= HBP__BUILD_WIDER) {
        if (stride > HBP__BUILD_LAST_STRIDE || !hbp__step_listen(b))
            return 0;
        double next = low * (1 + stride) + 1;
        if (weigh_goal(b, board, &t, next))
            high = next;
        else
            low = next;
    }
    for (int i = 0; i < HBP__BUILD_HALVINGS && low > 0 && high - low > low * HBP__BUILD_PRECISE; i++) {
        double middle = low + (high - low) / 2;
        if (weigh_goal(b, board, &t, middle))
            high = middle;
        else
            low = middle;
    }
    hbp__step_fill(&b->filler, &b->pool, board, m, t.goal, hbp__step_plain);
    return 1;
}

int hbp__step_build_rest(hbp__step_builder *b, hbp__step_board *board, int64_t micro_batches, double density)
{
    int64_t first = board->micro_batches, end = first + micro_batches;
    for (int64_t m = first; m < end && b->pool.count; m++) {
        if (m > first && !hbp__step_go_on(b))
            return 0;
        if (end - m > 1) {
            if (!fill_next(b, board, m, end - m, density))
                return 0;
        } else {
            if (!hbp__step_fill_all(b, board, m, (double)INFINITY, hbp__step_plain))
                return 0;
            b->pool.count = 0;
        }
        board->micro_batches = m + 1;
    }
    return b->pool.count == 0;
}

int hbp__step_build(hbp__step_builder *b, hbp__step_board *board, int64_t micro_batches, double density)
{
    hbp__step_pool_all(b);
    board->micro_batches = 0;
    return hbp__step_build_rest(b, board, micro_batches, density);
}
