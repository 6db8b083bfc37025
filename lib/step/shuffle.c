/* Some micro-batches taken apart and built again at random, kept when that is no longer: what the orderly
 * ways do not see. */
#include <math.h>
#include <string.h>

#include "step/builder.h"
#include "step/tuning.h"

typedef struct shuffle {
    hbp__step_builder *b;
    hbp__rng *rng;
    hbp__step_board *board;
    int64_t taken[HBP__SHUFFLE_TAKEN];
    int32_t count;
    double old; /* sum of their makespans */
} shuffle;

static int64_t draw(const shuffle *s, int64_t below)
{
    return (int64_t)hbp__rng_below(s->rng, (uint64_t)below);
}

static void take(shuffle *s, int32_t count)
{
    s->count = 0;
    s->old = 0;
    while (s->count < count) {
        int64_t m = draw(s, s->board->micro_batches);
        int known = 0;
        for (int32_t i = 0; i < s->count; i++)
            known |= s->taken[i] == m;
        if (known)
            continue;
        s->taken[s->count++] = m;
        s->old += s->board->makespan[m];
    }
    hbp__step_pool_take(s->b, s->board, s->taken, count);
}

/* A makespan: what the longest takes on some degree, or about what a micro-batch taken apart took. */
static double draw_goal(const shuffle *s)
{
    const hbp__step_builder *b = s->b;
    const double *alone = &b->filler.alone[b->pool.member[0] * b->step->degrees];
    double least = hbp__step_longest_alone(b);
    int32_t degree = (int32_t)draw(s, b->step->degrees);
    double goal = alone[degree];
    if (goal < (double)INFINITY && !draw(s, 2)) {
        /* In company. */
        hbp__load load = hbp__step_load_least(b->step, b->pool.member[0]);
        for (int64_t i = draw(s, 2) + 1; i > 0; i--)
            load = hbp__step_load_sum(load,
                                      hbp__step_load_least(b->step, b->pool.member[draw(s, b->pool.count)]));
        if (load.tokens <= b->step->degree[degree].capacity)
            goal = hbp__step_group_time(b->step, degree, load);
    }
    if (!(goal < (double)INFINITY) || !draw(s, 3))
        goal = s->board->makespan[s->taken[draw(s, s->count)]] * (0.85 + 0.003 * (double)draw(s, 100));
    return goal > least ? goal : least;
}

static hbp__step_style draw_style(const shuffle *s)
{
    if (draw(s, 2))
        return hbp__step_plain;
    if (draw(s, 2))
        return (hbp__step_style){0, 0, hbp__rng_next(s->rng) & hbp__rng_next(s->rng)};
    return (hbp__step_style){(int32_t)draw(s, s->b->step->degrees), (int32_t)draw(s, 2), 0};
}

/* Fills micro-batch m of the trial board; some sequences, or a run of like ones, may have to wait for the
 * next. */
static void fill_some(shuffle *s, int32_t m, double goal)
{
    hbp__step_builder *b = s->b;
    int64_t held = 0, kept = 0;
    int64_t which = draw(s, 3), from = 1 + draw(s, b->pool.count), to = from + draw(s, b->pool.count) / 2;
    if (which) {
        for (int64_t i = 0; i < b->pool.count; i++) {
            int64_t k = b->pool.member[i];
            if (which == 1 ? i && !draw(s, 6) : i >= from && i < to)
                b->spare[held++] = k;
            else
                b->pool.member[kept++] = k;
        }
        b->pool.count = kept;
    }
    b->work += 8 * b->pool.count;
    hbp__step_fill(&b->filler, &b->pool, &b->trial, m, goal, draw_style(s));
    /* Both lists ascend. */
    int64_t at = b->pool.count + held - 1;
    from = b->pool.count - 1;
    b->pool.count += held;
    while (held) {
        int64_t last = b->spare[held - 1];
        if (from >= 0 && b->pool.member[from] > last) {
            b->pool.member[at--] = b->pool.member[from--];
        } else {
            b->pool.member[at--] = last;
            held--;
        }
    }
    hbp__step_pool_sum(b->step, &b->pool);
}

/* Builds `count` micro-batches of the pool on the trial board; their sum, INFINITY when it passes `most`. */
static double rebuild(shuffle *s, int32_t count, double most, double empty)
{
    hbp__step_builder *b = s->b;
    double sum = 0;
    for (int32_t m = 0; m < count; m++) {
        if (!b->pool.count) {
            b->trial.groups[m] = 0;
            b->trial.makespan[m] = empty;
        } else if (m < count - 1) {
            fill_some(s, m, draw_goal(s));
        } else if (!hbp__step_fill_all(b, &b->trial, m, most - sum, draw_style(s))) {
            return (double)INFINITY;
        }
        sum += b->trial.makespan[m];
        if (sum > most)
            return (double)INFINITY;
    }
    return sum;
}

/* One micro-batch filled again at random to take a little less, the rest squeezed in. */
static int jolt(shuffle *s)
{
    hbp__step_builder *b = s->b;
    int64_t m = draw(s, s->board->micro_batches);
    hbp__step_pool_take(b, s->board, &m, 1);
    if (!b->pool.count)
        return 0;
    double goal = s->board->makespan[m] * (1 - 0.001 * (double)(1 + draw(s, 30)));
    fill_some(s, 0, goal);
    int64_t extras = b->pool.count;
    memcpy(b->spare, b->pool.member, (size_t)extras * sizeof *b->spare);
    if (!b->trial.groups[0] ||
        !hbp__step_squeeze(&b->squeezer, &b->trial, 0, b->spare, extras, goal, HBP__SHUFFLE_MOVES))
        return 0;
    hbp__step_adopt(b, 0, s->board, m);
    return 1;
}

int hbp__step_shuffle(hbp__step_builder *b, hbp__step_board *board, int64_t most, double slack, hbp__rng *rng)
{
    shuffle s = {.b = b, .rng = rng, .board = board};
    const hbp_step_options *o = &b->step->options;
    int free = hbp__step_may_drop(b, board);
    int64_t luck = draw(&s, 8);
    if (luck < 2)
        return jolt(&s);
    int32_t count = (int32_t)draw(&s, 2) + 2, made;
    if (count > board->micro_batches)
        count = (int32_t)board->micro_batches;
    take(&s, count);
    made = count;
    if (free && luck < 4 && count > 1)
        made--;
    if (o->micro_batch_multiple == 1 && (luck == 4 || count == 1) && board->micro_batches < most)
        made++;
    double limit = s.old + slack;
    double sum = rebuild(&s, made, limit, free ? 0 : b->fixed);
    if (!(sum <= limit))
        return 0;
    if (made > count)
        s.taken[count] = board->micro_batches++;
    for (int32_t m = 0; m < made; m++)
        hbp__step_adopt(b, m, board, s.taken[m]);
    if (made < count)
        hbp__step_board_drop(board, s.taken[made]);
    return 1;
}
