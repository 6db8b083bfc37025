/* What all searches of a micro-batch stand on: the pool of sequences left, the clock, the goals to try. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "step/builder.h"
#include "step/tuning.h"

/* Work between two looks at the clock and at whether to go on: well below a ms. */
#define WORK_A_REPORT 100000

static void take_pool(const hbp__step *step, uint64_t count, hbp__step_pool *pool)
{
    hbp_context *context = step->context;
    pool->member = hbp__take(context, count, sizeof *pool->member);
    pool->tokens_before = hbp__take(context, count + 1, sizeof *pool->tokens_before);
    pool->squares_before = hbp__take(context, count + 1, sizeof *pool->squares_before);
    pool->vision_before = step->vision ? hbp__take(context, count + 1, sizeof *pool->vision_before) : NULL;
}

hbp_status hbp__step_builder_open_quick(const hbp__step *step, hbp__step_builder *b)
{
    hbp_context *context = step->context;
    const uint64_t count = (uint64_t)step->count;
    memset(b, 0, sizeof *b);
    b->step = step;
    b->fixed = step->cost->terms.pack_ns;
    b->room = hbp__step_memory(step);
    HBP__TRY(hbp__step_filler_open(step, &b->filler));
    HBP__TRY(hbp__step_squeezer_open(step, &b->squeezer));
    HBP__TRY(hbp__step_board_open(step, 4, &b->trial));
    take_pool(step, count, &b->pool);
    take_pool(step, count, &b->saved);
    b->spare = hbp__take(context, count, sizeof *b->spare);
    b->rest = hbp__take(context, count, sizeof *b->rest);
    b->scratch = hbp__take(context, hbp__bound_one_room(step), sizeof *b->scratch);
    HBP__TRY(hbp__step_cuts_open(step, HBP__STEP_CUTS, HBP__STEP_AHEAD, &b->whole));
    HBP__TRY(hbp__step_cuts_open(step, HBP__STEP_CUTS, HBP__STEP_AHEAD, &b->part));
    b->end = hbp__take(context, HBP__STEP_AHEAD, sizeof *b->end);
    b->quick = b->squeezer.quick = 1;
    return hbp__scratch_check(context, "the search");
}

hbp_status hbp__step_builder_open(const hbp__step *step, hbp__step_builder *b)
{
    hbp_context *context = step->context;
    const uint64_t asks = (uint64_t)step->count * (uint64_t)step->degrees;
    HBP__TRY(hbp__step_builder_open_quick(step, b));
    b->quick = 0;
    b->squeezer.quick = 0;
    b->ask = hbp__take(context, asks, sizeof *b->ask);
    b->pool_ask = hbp__take(context, asks, sizeof *b->pool_ask);
    HBP__TRY(hbp__scratch_check(context, "the search"));
    return hbp__bound_ask(step, b->ask);
}

hbp_status hbp__step_status(hbp__step_builder *b)
{
    if (b->status >= 0)
        b->status = b->squeezer.status < 0 ? b->squeezer.status
                    : b->filler.status < 0 ? b->filler.status
                                           : b->pool.status;
    return b->status;
}

int hbp__step_listen(hbp__step_builder *b)
{
    if (hbp__step_status(b) < 0 || b->late)
        return 0;
    b->work += 4 * b->filler.again;
    b->filler.again = 0;
    int64_t done = b->work + b->squeezer.work;
    b->squeezer.before = b->work;
    b->squeezer.work_limit = b->work_limit;
    if (done >= b->next_report) {
        b->next_report = done + WORK_A_REPORT;
        b->status = hbp__tick(b->step->context, "step", hbp__min_i64(done, b->work_limit), b->work_limit);
        b->late = hbp__step_is_late(b->step);
    }
    return b->status >= 0 && !b->late;
}

int hbp__step_go_on(hbp__step_builder *b)
{
    return hbp__step_listen(b) && b->work + b->squeezer.work < b->work_limit;
}

void hbp__step_pool_all(hbp__step_builder *b)
{
    b->pool.count = b->step->count;
    for (int64_t k = 0; k < b->step->count; k++)
        b->pool.member[k] = k;
    hbp__step_pool_sum(b->step, &b->pool);
}

/* Copies the pool, its sums as well. */
static void copy_pool(const hbp__step_pool *from, hbp__step_pool *to)
{
    size_t count = (size_t)from->count;
    to->count = from->count;
    memcpy(to->member, from->member, count * sizeof *to->member);
    memcpy(to->tokens_before, from->tokens_before, (count + 1) * sizeof *to->tokens_before);
    memcpy(to->squares_before, from->squares_before, (count + 1) * sizeof *to->squares_before);
    if (from->vision_before)
        memcpy(to->vision_before, from->vision_before, (count + 1) * sizeof *to->vision_before);
}

void hbp__step_save(hbp__step_builder *b)
{
    copy_pool(&b->pool, &b->saved);
}

void hbp__step_restore(hbp__step_builder *b)
{
    copy_pool(&b->saved, &b->pool);
}

/* Moves row `at` of a heap down to its place among `count`; the largest is on top. */
static void sift(int64_t *heap, int64_t at, int64_t count)
{
    int64_t value = heap[at];
    for (int64_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && heap[child] < heap[child + 1])
            child++;
        if (heap[child] <= value)
            break;
        heap[at] = heap[child];
    }
    heap[at] = value;
}

static void sort(int64_t *value, int64_t count)
{
    for (int64_t at = count / 2 - 1; at >= 0; at--)
        sift(value, at, count);
    for (int64_t last = count - 1; last > 0; last--) {
        int64_t largest = value[0];
        value[0] = value[last];
        value[last] = largest;
        sift(value, 0, last);
    }
}

void hbp__step_pool_take(hbp__step_builder *b, const hbp__step_board *board, const int64_t *taken,
                         int32_t count)
{
    hbp__step_pool *pool = &b->pool;
    pool->count = 0;
    if (board->micro_batches < HBP__BUILD_SCATTERED * count) {
        for (int64_t k = 0; k < b->step->count; k++)
            for (int32_t i = 0; i < count; i++)
                if (board->home[k] / board->ranks == taken[i])
                    pool->member[pool->count++] = k;
        b->work += b->step->count;
    } else {
        for (int32_t i = 0; i < count; i++)
            for (int64_t g = taken[i] * board->ranks; g < taken[i] * board->ranks + board->groups[taken[i]];
                 g++)
                for (int64_t k = board->group[g].head; k != HBP__NONE; k = board->next[k])
                    pool->member[pool->count++] = k;
        sort(pool->member, pool->count);
        b->work += 4 * pool->count;
    }
    hbp__step_pool_sum(b->step, pool);
}

double hbp__step_longest_alone(const hbp__step_builder *b)
{
    const double *times = &b->filler.alone[b->pool.member[0] * b->step->degrees];
    double least = (double)INFINITY;
    for (int32_t j = 0; j < b->step->degrees; j++)
        least = times[j] < least ? times[j] : least;
    return least;
}

void hbp__step_adopt(const hbp__step_builder *b, int64_t from, hbp__step_board *board, int64_t m)
{
    const hbp__step_board *trial = &b->trial;
    board->groups[m] = trial->groups[from];
    board->makespan[m] = trial->makespan[from];
    for (int64_t i = 0; i < trial->groups[from]; i++) {
        int64_t g = m * board->ranks + i;
        board->group[g] = trial->group[from * trial->ranks + i];
        for (int64_t k = board->group[g].head; k != HBP__NONE; k = trial->next[k]) {
            board->home[k] = g;
            board->next[k] = trial->next[k];
        }
    }
}

int32_t hbp__step_list_goals(const hbp__step_builder *b, double guess, double low, double high,
                             const double *multiple, int32_t multiples, double *goal)
{
    const double *times = &b->filler.alone[b->pool.member[0] * b->step->degrees];
    double alone = hbp__step_longest_alone(b);
    int32_t goals = 0;
    for (int32_t i = 0; i < multiples; i++)
        if (guess * multiple[i] > alone)
            goal[goals++] = guess * multiple[i];
    for (int32_t j = 0; j < b->step->degrees; j++)
        if (times[j] == alone || (times[j] > guess * low && times[j] < guess * high))
            goal[goals++] = times[j];
    return goals;
}

int hbp__step_may_drop(const hbp__step_builder *b, const hbp__step_board *board)
{
    const hbp_step_options *o = &b->step->options;
    return o->micro_batch_multiple == 1 && o->min_micro_batches <= 1 && board->micro_batches > 1;
}
