/* One micro-batch made shorter: other groups, other members. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "step/builder.h"
#include "step/tuning.h"

/* Fills the first micro-batch of the trial board within `goal`, squeezing in what is left over. The pool is
 * as before. */
static int try_goal(hbp__step_builder *s, double goal, hbp__step_style style, int64_t moves)
{
    s->work += 4 * s->pool.count;
    const int64_t extras =
        hbp__step_fill_most(&s->filler, &s->pool, &s->trial, 0, goal, style, s->pool.count / 4 + 2);
    return extras >= 0 && hbp__step_squeeze(&s->squeezer, &s->trial, 0, s->filler.left, extras, goal, moves);
}

/* Tries given groups in both orders of choice. */
static int try_groups(hbp__step_builder *s, const int32_t *count, double goal, int64_t moves)
{
    return hbp__step_go_on(s) &&
           (hbp__step_configure(s, count, goal, 0, moves) || hbp__step_configure(s, count, goal, 1, moves));
}

/* Tries the groups that the bound of one micro-batch asks for, the ranks it leaves as groups of each degree
 * that is enough for the rest. */
static int try_bound(hbp__step_builder *s, double goal, int64_t moves)
{
    static const double weights[] = {HBP__SINGLE_WEIGHTS};
    hbp__step sub = *s->step;
    double least[HBP__STEP_DEGREES];
    int32_t count[HBP__STEP_DEGREES];
    sub.count = s->pool.count;
    for (size_t w = 0; w < sizeof weights / sizeof *weights; w++) {
        s->work += sub.count * sub.degrees * sub.degrees;
        if (!hbp__bound_one_allows(&sub, s->pool_ask, goal - s->step->cost->terms.pack_ns, weights[w], NULL,
                                   NULL, s->scratch, least))
            return 0;
        for (int32_t grain = 0; grain < s->step->degrees; grain++) {
            int32_t ranks = s->step->ranks;
            for (int32_t j = s->step->degrees - 1; j >= 0; j--) {
                double mine = least[j] - (j + 1 < s->step->degrees ? least[j + 1] : 0);
                count[j] = (int32_t)(mine / s->step->degree[j].degree + 0.5);
                if (j <= grain)
                    count[j] = ranks / s->step->degree[j].degree;
                ranks -= count[j] * s->step->degree[j].degree;
            }
            if (grain && s->step->degree[grain].degree > HBP__SINGLE_COARSE)
                break;
            if (ranks >= 0 && try_groups(s, count, goal, moves))
                return 1;
        }
    }
    return 0;
}

/* Groups of each degree in micro-batch m, ranks without a group as groups of the least degree. */
static void count_groups(const hbp__step *step, const hbp__step_board *board, int64_t m, int32_t *count)
{
    int32_t ranks = step->ranks;
    for (int32_t j = 0; j < step->degrees; j++)
        count[j] = 0;
    for (int64_t i = 0; i < board->groups[m]; i++) {
        int32_t j = board->group[m * board->ranks + i].degree;
        count[j]++;
        ranks -= step->degree[j].degree;
    }
    count[0] += ranks / step->degree[0].degree;
}

/* Turns groups of degree j into the next larger (sign 1) or smaller ones; zero when there are too few. */
static int merge(const hbp__step *step, int32_t *count, int32_t j, int sign)
{
    if (j + sign < 0 || j + sign >= step->degrees)
        return 0;
    int32_t parts = step->degree[sign > 0 ? j + 1 : j].degree / step->degree[sign > 0 ? j : j - 1].degree;
    if (count[j] < (sign > 0 ? parts : 1))
        return 0;
    count[j] -= sign > 0 ? parts : 1;
    count[j + sign] += sign > 0 ? 1 : parts;
    return 1;
}

/* Turns all groups below degree j into groups of it. */
static void coarsen(const hbp__step *step, int32_t *count, int32_t j)
{
    int32_t ranks = 0;
    for (int32_t i = 0; i < j; i++) {
        ranks += count[i] * step->degree[i].degree;
        count[i] = 0;
    }
    for (int32_t i = j; i >= 0; i--) {
        count[i] += ranks / step->degree[i].degree;
        ranks %= step->degree[i].degree;
    }
}

/* Tries the groups next to those of micro-batch m: the smaller ones all merged, one merged or split, or two.
 */
static int try_neighbours(hbp__step_builder *s, const hbp__step_board *board, int64_t m, double goal,
                          int64_t moves)
{
    const hbp__step *step = s->step;
    int32_t count[HBP__STEP_DEGREES], once[HBP__STEP_DEGREES], twice[HBP__STEP_DEGREES];
    size_t bytes = (size_t)step->degrees * sizeof *count;
    count_groups(step, board, m, count);
    for (int32_t j = 1; j < step->degrees && step->degree[j].degree <= step->ranks / 2; j++) {
        memcpy(once, count, bytes);
        coarsen(step, once, j);
        if (try_groups(s, once, goal, moves))
            return 1;
    }
    for (int32_t a = -1; a < 2 * step->degrees; a++) {
        memcpy(once, count, bytes);
        if (a >= 0 && !merge(step, once, a / 2, a % 2 ? 1 : -1))
            continue;
        for (int32_t c = -1; c < (a < 0 ? 0 : a); c++) {
            memcpy(twice, once, bytes);
            if (c >= 0 && !merge(step, twice, c / 2, c % 2 ? 1 : -1))
                continue;
            if (try_groups(s, twice, goal, moves))
                return 1;
        }
    }
    return 0;
}

/* One of the ways to reach `goal` with other groups; the trial board's first micro-batch has them then. */
static int try_others(hbp__step_builder *s, const hbp__step_board *board, int64_t m, double goal,
                      int64_t moves)
{
    const hbp__step *step = s->step;
    /* Without groups of one degree, or of two. */
    for (int32_t j = 0; j < step->degrees && (!j || step->degree[j].degree * 4 <= step->ranks); j++)
        for (int32_t i = 0; i < 3; i++) {
            if (!hbp__step_go_on(s))
                return 0;
            uint64_t skip = j ? (i < 2 ? UINT64_C(1) << j : UINT64_C(3) << j) : 0;
            if (try_goal(s, goal, (hbp__step_style){i == 1 ? j : 0, i == 0, skip}, moves))
                return 1;
        }
    return step->chain && ((s->ask && try_bound(s, goal, moves)) || try_neighbours(s, board, m, goal, moves));
}

void hbp__step_shorten(hbp__step_builder *s, hbp__step_board *board, int64_t m, int32_t round)
{
    const hbp__step *step = s->step;
    hbp__step_pool_take(s, board, &m, 1);
    if (!s->pool.count)
        return;
    for (int64_t i = 0; s->ask && i < s->pool.count; i++)
        memcpy(s->pool_ask + i * step->degrees, s->ask + s->pool.member[i] * step->degrees,
               (size_t)step->degrees * sizeof *s->ask);
    double low = hbp__step_estimate(step, &s->pool, 0, s->pool.count, 1), part = HBP__SINGLE_PART;
    int64_t moves = HBP__SINGLE_MOVES * (int64_t)(round + 1);
    int32_t fails = 0;
    while (hbp__step_go_on(s) && !(s->quick && fails == HBP__SINGLE_QUICK_FAILS)) {
        double high = board->makespan[m], stride = (high - low) * part, goal = high - stride;
        if (!(stride > high * HBP__SINGLE_PRECISE / (round + 1)))
            return;
        if (try_others(s, board, m, goal, moves))
            hbp__step_adopt(s, 0, board, m);
        else if (!hbp__step_squeeze(&s->squeezer, board, m, NULL, 0, goal, 2 * moves)) {
            part *= HBP__SINGLE_LESS;
            fails++;
        }
    }
}
