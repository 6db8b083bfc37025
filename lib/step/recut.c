/* Two micro-batches made of what two micro-batches hold. */
#include <string.h>

#include "step/builder.h"
#include "step/tuning.h"

/* Within `goal`, then all that is left; the sum of both, or one that is no better than `most`. A second
 * micro-batch without sequences takes `empty`. */
static double divide(hbp__step_builder *b, double goal, double most, double empty)
{
    b->work += 4 * b->pool.count;
    hbp__step_fill(&b->filler, &b->pool, &b->trial, 0, goal, hbp__step_plain);
    if (!b->pool.count) { /* all went in */
        b->trial.groups[1] = 0;
        b->trial.makespan[1] = empty;
    } else if (!hbp__step_fill_all(b, &b->trial, 1, most - b->trial.makespan[0], hbp__step_plain)) {
        return most;
    }
    return b->trial.makespan[0] + b->trial.makespan[1];
}

int hbp__step_recut(hbp__step_builder *b, hbp__step_board *board, int64_t first, int64_t second,
                    int32_t round)
{
    static const double multiple[] = {HBP__RECUT_MULTIPLES};
    enum { MULTIPLES = sizeof multiple / sizeof *multiple };
    double a = board->makespan[first], c = board->makespan[second], old = a + c;
    double goal[MULTIPLES + HBP__STEP_DEGREES], best = old * (1 - 1e-6), best_goal = 0;
    double empty = hbp__step_may_drop(b, board) ? 0 : b->fixed;
    hbp__step_pool_take(b, board, (int64_t[]){first, second}, 2);
    if (!b->pool.count)
        return 0;
    double shift = 1 + HBP__RECUT_SHIFT * (round % 7 - 3) * (round > 0);
    int32_t goals = hbp__step_list_goals(b, (a > c ? a : c) * shift, HBP__RECUT_LEAST, HBP__RECUT_MOST,
                                         multiple, MULTIPLES, goal);
    int64_t count = b->pool.count;
    memcpy(b->spare, b->pool.member, (size_t)count * sizeof *b->spare);
    for (int32_t i = 0; i <= goals; i++) {
        if (i == goals ? !(best_goal > 0) : !hbp__step_listen(b))
            return 0;
        double sum = divide(b, i == goals ? best_goal : goal[i], i == goals ? 2 * old : best, empty);
        if (i < goals && sum < best) {
            best = sum;
            best_goal = goal[i];
        }
        memcpy(b->pool.member, b->spare, (size_t)count * sizeof *b->spare);
        b->pool.count = count;
        hbp__step_pool_sum(b->step, &b->pool);
    }
    hbp__step_adopt(b, 0, board, first);
    hbp__step_adopt(b, 1, board, second);
    return 1;
}
