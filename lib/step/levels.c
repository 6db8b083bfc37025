/* A step of many micro-batches from nothing: each is made for the most work a ns, whatever their number comes
 * to. Sequences of like length ask for like makespans, so few are tried for most micro-batches. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "step/builder.h"
#include "step/tuning.h"

/* A makespan, and what is done within it a ns. */
typedef struct pick {
    double price; /* rank-time that a token in memory counts for */
    double goal;
    double rate;
} pick;

static double worth(const hbp__step_builder *b, double price)
{
    double sum = price * hbp__step_pool_room(b->step, &b->pool, 0, b->pool.count);
    for (int64_t i = 0; i < b->pool.count; i++)
        sum += b->filler.useful[b->pool.member[i]];
    return sum;
}

/* Fills the next micro-batch within `goal` for trial; nonzero when it could not take longer. */
static int try_goal(hbp__step_builder *b, hbp__step_board *board, double goal, pick *best)
{
    int64_t m = board->micro_batches;
    double before = hbp__step_pool_room(b->step, &b->pool, 0, b->pool.count);
    b->work += 4 * b->pool.count;
    double useful = hbp__step_fill(&b->filler, &b->pool, board, m, goal, hbp__step_plain);
    double tokens = before - hbp__step_pool_room(b->step, &b->pool, 0, b->pool.count);
    double time = board->makespan[m], rate = time > 0 ? (useful + best->price * tokens) / time : 0;
    int full = !b->pool.count || time < goal * HBP__LEVELS_LOOSE;
    hbp__step_restore(b);
    if (rate > best->rate || !(best->goal > 0)) {
        best->rate = rate;
        best->goal = goal;
    }
    return full;
}

/* The best of many makespans for a micro-batch of the pool: what the longest takes on some degree, longer and
 * longer ones until memory is full, and those next to the best of them. */
static void search_goals(hbp__step_builder *b, hbp__step_board *board, pick *best)
{
    static const double near[] = {HBP__LEVELS_NEAR};
    double goal[1 + HBP__STEP_DEGREES], alone = hbp__step_longest_alone(b);
    int32_t goals = hbp__step_list_goals(b, alone, HBP__LEVELS_LEAST, HBP__LEVELS_MOST, NULL, 0, goal);
    for (int32_t i = 0; i < goals && (!i || hbp__step_listen(b)); i++)
        try_goal(b, board, goal[i], best);
    double next = alone * HBP__LEVELS_STRIDE;
    for (int32_t i = 0; i < HBP__LEVELS_STRIDES && hbp__step_listen(b) && !try_goal(b, board, next, best);
         i++)
        next *= HBP__LEVELS_STRIDE;
    double middle = best->goal;
    for (int32_t i = 0; i < (int32_t)(sizeof near / sizeof *near) && hbp__step_listen(b); i++)
        if (middle * near[i] >= alone)
            try_goal(b, board, middle * near[i], best);
}

static void bring_back(hbp__step_builder *b, int64_t count)
{
    memcpy(b->pool.member, b->rest, (size_t)count * sizeof *b->rest);
    b->pool.count = count;
    hbp__step_pool_sum(b->step, &b->pool);
}

/* Builds what is left, of so many tokens, in `left` micro-batches, if that comes out. */
static int build_rest(hbp__step_builder *b, hbp__step_board *board, int64_t left, double tokens)
{
    double fill = tokens / (b->room * (double)left);
    double density = fill < HBP__BUILD_LOOSE ? HBP__BUILD_FREE : fill + (1 - fill) * HBP__LEVELS_TAIL_DENSITY;
    return hbp__step_build_rest(b, board, left, density < 1 ? density : 1);
}

/* Builds what is left in about `about` micro-batches, as many as are best. */
static int build_tail(hbp__step_builder *b, hbp__step_board *board, int64_t most, double about)
{
    int64_t first = board->micro_batches, count = b->pool.count, best = 0, work = 0, end = 0;
    int64_t low = hbp__max_i64((int64_t)about, 1), high = hbp__min_i64(low + 2, most - first);
    double tokens = hbp__step_pool_room(b->step, &b->pool, 0, count), least = (double)INFINITY;
    memcpy(b->rest, b->pool.member, (size_t)count * sizeof *b->rest);
    for (int64_t left = low; left <= high; left++) {
        if (b->quick && !hbp__step_may_be_shorter(b, left, least))
            break;
        const int64_t before = b->work;
        double sum = 0;
        end = 0;
        int built = build_rest(b, board, left, tokens);
        for (int64_t m = first; m < board->micro_batches; m++)
            sum += board->makespan[m];
        if (built && sum < least) {
            least = sum;
            best = left;
            end = board->micro_batches;
            work = b->work - before;
        }
        bring_back(b, count);
        board->micro_batches = first;
    }
    if (!end) /* the last that was built is not the best, or none is */
        return best && build_rest(b, board, best, tokens);
    b->work += work; /* as if it were built again */
    board->micro_batches = end;
    b->pool.count = 0;
    return 1;
}

/* Every `parts`-th sequence from `part` on joins the pool. */
static void add_part(hbp__step_builder *b, int64_t part, int64_t parts)
{
    hbp__step_pool *pool = &b->pool;
    int64_t waiting = pool->count, at = 0;
    memcpy(b->rest, pool->member, (size_t)waiting * sizeof *b->rest);
    pool->count = 0;
    for (int64_t k = part; k < b->step->count; k += parts) {
        while (at < waiting && b->rest[at] < k)
            pool->member[pool->count++] = b->rest[at++];
        pool->member[pool->count++] = k;
    }
    while (at < waiting)
        pool->member[pool->count++] = b->rest[at++];
    hbp__step_pool_sum(b->step, pool);
}

/* Fills micro-batches from the pool, one at least, until no more than `keep` of them are left in it; `tail`
 * gets how many. Zero when there is no room for them, or the search is over. */
static int fill_levels(hbp__step_builder *b, hbp__step_board *board, int64_t most, pick last, int64_t every,
                       double keep, double *tail)
{
    int64_t used = 0;
    for (int first = 1; b->pool.count; first = 0) {
        int64_t m = board->micro_batches;
        pick best = {last.price, 0, 0};
        double whole = first ? 0 : last.rate * board->makespan[m - 1];
        *tail = first ? 0 : whole > 0 ? worth(b, last.price) / whole : (double)INFINITY;
        if (!first && keep > 0 && *tail <= keep)
            return 1;
        if (m == most || !hbp__step_go_on(b))
            return 0;
        hbp__step_save(b);
        if (last.goal >= hbp__step_longest_alone(b))
            try_goal(b, board, last.goal, &best);
        if (!(best.goal > 0) || used >= every || best.rate < last.rate * HBP__LEVELS_WORSE) {
            search_goals(b, board, &best);
            used = 0;
            last = best;
        }
        used++;
        hbp__step_fill(&b->filler, &b->pool, board, m, best.goal, hbp__step_plain);
        board->micro_batches++;
    }
    return 1;
}

int64_t hbp__step_plain_least(const hbp__step *step)
{
    double room = 0;
    for (int32_t j = 0; j < step->degrees; j++) {
        const hbp__step_degree *d = &step->degree[j];
        double mine = (double)d->way[0].capacity / d->degree * step->ranks;
        room = mine > room ? mine : room;
    }
    double least = ceil((double)step->total_tokens / room);
    return least < (double)step->count ? hbp__max_i64((int64_t)least, 1) : step->count;
}

int hbp__step_build_levels(hbp__step_builder *b, hbp__step_board *board, int64_t most, double share,
                           int32_t round)
{
    int64_t parts = hbp__step_plain_least(b->step) / HBP__LEVELS_PART + 1;
    pick none = {share * b->fixed / b->room * b->step->ranks, 0, 0};
    int64_t every = HBP__LEVELS_EVERY / (round + 1);
    double tail = 0;
    b->pool.count = board->micro_batches = 0;
    for (int64_t part = 0; part < parts; part++) {
        add_part(b, part, parts);
        if (!fill_levels(b, board, most, none, every, HBP__LEVELS_TAIL, &tail))
            return 0;
    }
    return !b->pool.count || build_tail(b, board, most, tail) ||
           fill_levels(b, board, most, none, every, 0, &tail);
}
