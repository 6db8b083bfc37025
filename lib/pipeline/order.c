/* A flow shop through which every job passes twice, with the machines' turns fixed by 1F1B: only the order of
 * the jobs is free. Few micro-batches are ordered by branch and bound over all permutations; more by an
 * iterated local search, as is usual for permutation flow shops (Ruiz and Stuetzle, 2007). */
#include "pipeline/order.h"

#include <string.h>

#include "base/checked.h"
#include "base/options.h"
#include "base/rng.h"
#include "base/scratch.h"
#include "base/sort.h"
#include "data/pipeline/layers.h"

#define TICK_WORK (INT64_C(1) << 18)

/* A search. Snapshots are of the order `now`, ahead of each segment. */
typedef struct search {
    hbp_context *context;
    hbp__schedule *schedule;
    const hbp__stage_times *times;
    const int64_t *limit; /* NULL: none that counts */
    int32_t count;        /* M */
    int32_t stages;
    int64_t total; /* operations to spend */
    int64_t work;  /* left */
    int64_t next_tick;
    int64_t best_ns;
    int64_t now_ns;
    int64_t least_ns; /* no order has less */
    int32_t *best;    /* [M] */
    int32_t *now;
    int32_t *trial;
    int32_t *from;    /* where the last random moves began */
    int64_t *free_at; /* [M + 1][S] snapshots */
    int64_t *waited;
    int64_t *sure; /* [S] work of the stage and the least path from its last operation to the step's end */
    int64_t *peak; /* [S] scratch */
    int64_t *key;  /* [M] scratch */
    uint32_t *row;
} search;

static void keep_snapshot(search *s, int32_t segment)
{
    size_t bytes = (size_t)s->stages * sizeof *s->free_at;
    memcpy(s->free_at + (int64_t)segment * s->stages, s->schedule->free_at, bytes);
    memcpy(s->waited + (int64_t)segment * s->stages, s->schedule->waited, bytes);
}

static void back_to_snapshot(search *s, int32_t segment)
{
    size_t bytes = (size_t)s->stages * sizeof *s->free_at;
    memcpy(s->schedule->free_at, s->free_at + (int64_t)segment * s->stages, bytes);
    memcpy(s->schedule->waited, s->waited + (int64_t)segment * s->stages, bytes);
}

static void run_segment(search *s, const int32_t *order, int32_t segment)
{
    hbp__pipeline_advance(s->schedule, s->times, order, segment, segment + 1);
    s->work -= s->schedule->segment[segment + 1] - s->schedule->segment[segment];
}

/* A lower bound on the total of every order that begins with what has been run. */
static int64_t sure_ns(const search *s)
{
    int64_t most = 0;
    for (int32_t i = 0; i < s->stages; i++)
        most = hbp__max_i64(most, hbp__add_saturating(s->sure[i], s->schedule->waited[i]));
    return most;
}

/* Every stage is done no earlier than in the order `now`. */
static int as_late(const search *s, int32_t segment)
{
    const int64_t *now = s->free_at + (int64_t)segment * s->stages;
    for (int32_t i = 0; i < s->stages; i++)
        if (s->schedule->free_at[i] < now[i])
            return 0;
    return 1;
}

/* Time of `trial`, which is `now` but for places first .. last; INT64_MAX as soon as it is sure not to be
 * below `cutoff`. Segments before `first` must have been run last with the order `now`. For V = 1 whatever
 * is on its way between stages after a segment was sent by the last operation of its sender, so that stages
 * done no earlier than in `now`, with the same micro-batches on their way and to come, end no earlier. */
static int64_t time_of(search *s, int32_t first, int32_t last, int64_t cutoff)
{
    back_to_snapshot(s, first);
    for (int32_t p = first; p < s->count; p++) {
        run_segment(s, s->trial, p);
        if (sure_ns(s) >= cutoff)
            return INT64_MAX;
        if (s->schedule->chunks == s->stages && cutoff <= s->now_ns && p >= last + s->stages &&
            as_late(s, p + 1))
            return INT64_MAX;
    }
    int64_t ns = s->schedule->free_at[0];
    return ns < cutoff ? ns : INT64_MAX;
}

/* Runs `now` from segment `first` on, with snapshots. */
static void run_now(search *s, int32_t first)
{
    if (first)
        back_to_snapshot(s, first);
    else
        hbp__pipeline_begin(s->schedule);
    for (int32_t p = first; p < s->count; p++) {
        keep_snapshot(s, p);
        run_segment(s, s->now, p);
    }
    keep_snapshot(s, s->count);
    s->now_ns = s->schedule->free_at[0];
}

static int fits_limits(const search *s, const int32_t *order)
{
    if (!s->limit)
        return 1;
    hbp__pipeline_peak(s->schedule, s->times, order, s->peak);
    for (int32_t i = 0; i < s->stages; i++)
        if (s->peak[i] > s->limit[i])
            return 0;
    return 1;
}

static void copy_order(int32_t *to, const int32_t *from, int32_t count)
{
    memcpy(to, from, (size_t)count * sizeof *to);
}

static void swap_places(int32_t *order, int32_t i, int32_t j)
{
    int32_t t = order[i];
    order[i] = order[j];
    order[j] = t;
}

/* Takes what stands at `from` out and puts it in at `to`. */
static void move_place(int32_t *order, int32_t from, int32_t to)
{
    int32_t moved = order[from];
    if (from < to)
        memmove(order + from, order + from + 1, (size_t)(to - from) * sizeof *order);
    else
        memmove(order + to + 1, order + to, (size_t)(from - to) * sizeof *order);
    order[to] = moved;
}

static hbp_status tick_work(search *s)
{
    if (s->work > s->next_tick)
        return HBP_OK;
    s->next_tick = s->work - TICK_WORK;
    return hbp__tick(s->context, "order", hbp__min_i64(s->total - s->work, s->total), s->total);
}

/* 1: micro-batch `a` takes and holds the same as `b` on every chunk. */
static int are_alike(const search *s, int32_t a, int32_t b)
{
    const hbp__stage_times *t = s->times;
    for (int64_t k = 0; k < t->chunks; k++) {
        int64_t i = k * t->micro_batches + a, j = k * t->micro_batches + b;
        if (t->forward[i] != t->forward[j] || t->backward[i] != t->backward[j] || t->kept[i] != t->kept[j] ||
            t->working[i] != t->working[j])
            return 0;
        if (k < t->chunks - 1 && (t->transfer[i] != t->transfer[j] || t->sending[i] != t->sending[j]))
            return 0;
    }
    return 1;
}

/* Tries every micro-batch not yet placed at `place`, those in `now` behind it, in their order; of equal ones
 * the first. Depth M at most. */
static hbp_status branch_from(search *s, int32_t place)
{
    if (place == s->count) {
        if (s->schedule->free_at[0] < s->best_ns && fits_limits(s, s->now)) {
            s->best_ns = s->schedule->free_at[0];
            copy_order(s->best, s->now, s->count);
        }
        return HBP_OK;
    }
    HBP__TRY(tick_work(s));
    keep_snapshot(s, place);
    for (int32_t i = place; i < s->count; i++) {
        int again = 0;
        for (int32_t j = place; j < i && !again; j++)
            again = are_alike(s, s->now[j], s->now[i]);
        if (again)
            continue;
        move_place(s->now, i, place);
        back_to_snapshot(s, place);
        run_segment(s, s->now, place);
        hbp_status status = sure_ns(s) < s->best_ns ? branch_from(s, place + 1) : HBP_OK;
        move_place(s->now, place, i);
        HBP__TRY(status);
        if (s->best_ns <= s->least_ns)
            break;
    }
    return HBP_OK;
}

enum { MOVE_SWAP, MOVE_LATER, MOVE_EARLIER, MOVES };

static void make_move(int32_t *order, int move, int32_t i, int32_t j)
{
    if (move == MOVE_SWAP)
        swap_places(order, i, j);
    else if (move == MOVE_LATER)
        move_place(order, i, j);
    else
        move_place(order, j, i);
}

/* Makes the move on `now` if that is faster. */
static int try_move(search *s, int move, int32_t i, int32_t j)
{
    copy_order(s->trial + i, s->now + i, s->count - i);
    make_move(s->trial, move, i, j);
    if (time_of(s, i, j, s->now_ns) >= s->now_ns || !fits_limits(s, s->trial))
        return 0;
    copy_order(s->now + i, s->trial + i, s->count - i);
    run_now(s, i);
    return 1;
}

/* Local search on `now`: swaps and shifts of places within HBP__ORDER_REACH until none helps or the work is
 * spent. Later places first, so that what was run ahead of a place stays as it was. O(M reach) moves a round,
 * each a run of the places behind it. */
static hbp_status improve_order(search *s)
{
    run_now(s, 0);
    copy_order(s->trial, s->now, s->count);
    for (int better = 1; better && s->work > 0 && s->now_ns > s->least_ns;) {
        better = 0;
        for (int32_t i = s->count - 2; i >= 0 && s->work > 0; i--) {
            copy_order(s->trial, s->now, i);
            for (int32_t j = i + 1; j < s->count && j <= i + HBP__ORDER_REACH && s->work > 0; j++)
                for (int move = 0; move < (j > i + 1 ? MOVES : 1); move++)
                    better |= try_move(s, move, i, j);
            HBP__TRY(tick_work(s));
        }
        if (better)
            run_now(s, 0);
    }
    if (s->now_ns < s->best_ns) {
        s->best_ns = s->now_ns;
        copy_order(s->best, s->now, s->count);
    }
    return HBP_OK;
}

/* Ways to begin. */
enum { START_GIVEN, START_RISING, START_FALLING, START_HILL, START_VALLEY, STARTS };

/* Sorts micro-batches by the time they take alone into `row`. */
static hbp_status sort_by_time(search *s, const int32_t *given)
{
    const hbp__stage_times *t = s->times;
    for (int32_t m = 0; m < s->count; m++) {
        s->key[m] = 0;
        s->row[m] = (uint32_t)m;
        for (int64_t k = 0; k < t->chunks; k++) {
            int64_t cell = k * t->micro_batches + given[m];
            s->key[m] = hbp__add_saturating(s->key[m], t->forward[cell]);
            s->key[m] = hbp__add_saturating(s->key[m], t->backward[cell]);
        }
    }
    if (!hbp__sort_by_i64(&s->context->memory, s->key, s->row, s->count))
        return hbp__fail_memory(s->context, "the order of micro-batches");
    return HBP_OK;
}

/* A hill has the small ones at both ends, so that the pipeline fills and drains fast; neighbours are alike in
 * all but the given order, so that stages rarely wait for each other in between. */
static void make_start(const search *s, const int32_t *given, int which, int32_t *order)
{
    int32_t count = s->count;
    for (int32_t i = 0; i < count; i++) {
        int32_t rank = which == START_FALLING || which == START_VALLEY ? count - 1 - i : i;
        int32_t m = which == START_GIVEN ? i : (int32_t)s->row[rank];
        int32_t place = i;
        if (which == START_HILL || which == START_VALLEY)
            place = i % 2 ? count - 1 - i / 2 : i / 2;
        order[place] = given[m];
    }
}

/* From the fastest start down to a local optimum; then again and again a few random moves and down from
 * there, going back to where it was when that ends higher. */
static hbp_status search_order(search *s, const int32_t *given)
{
    HBP__TRY(sort_by_time(s, given));
    for (int which = START_RISING; which < STARTS; which++) {
        make_start(s, given, which, s->now);
        run_now(s, 0);
        if (s->now_ns < s->best_ns && fits_limits(s, s->now)) {
            s->best_ns = s->now_ns;
            copy_order(s->best, s->now, s->count);
        }
    }
    copy_order(s->now, s->best, s->count);
    HBP__TRY(improve_order(s));
    hbp__rng rng = hbp__rng_make(0, 0, 0);
    int64_t from_ns = s->now_ns, found_at = s->total - s->work;
    while (s->work > 0 && s->best_ns > s->least_ns &&
           (s->total - s->work - HBP__ORDER_PATIENCE_WORK) / HBP__ORDER_PATIENCE < found_at) {
        int64_t best_ns = s->best_ns;
        copy_order(s->from, s->now, s->count);
        for (int move = 0; move < HBP__ORDER_KICKS; move++) {
            int32_t i = (int32_t)hbp__rng_below(&rng, (uint64_t)s->count);
            int32_t j = (int32_t)hbp__rng_below(&rng, (uint64_t)s->count);
            move_place(s->now, i, j);
        }
        if (fits_limits(s, s->now))
            HBP__TRY(improve_order(s));
        else
            s->now_ns = INT64_MAX;
        s->work -= s->count;
        if (s->best_ns < best_ns)
            found_at = s->total - s->work;
        if (s->now_ns <= from_ns)
            from_ns = s->now_ns;
        else
            copy_order(s->now, s->from, s->count);
    }
    return HBP_OK;
}

/* From the end of micro-batch m's backward on chunk k > 0 to that of its backward on the chunk before. */
static int64_t way_to(const hbp__stage_times *t, int64_t k, int64_t m)
{
    int64_t cell = (k - 1) * t->micro_batches + m;
    return hbp__add_saturating(t->transfer[cell], t->backward[cell]);
}

/* Every stage's work and the least path from its last operation, the backward of its first chunk, to the end
 * of the step. */
static void fill_sure(search *s, const int32_t *given)
{
    const hbp__stage_times *t = s->times;
    for (int64_t i = 0; i < s->stages; i++) {
        int64_t work = 0, least = INT64_MAX;
        for (int32_t p = 0; p < s->count; p++) {
            int64_t m = given[p];
            for (int64_t k = i; k < t->chunks; k += s->stages) {
                int64_t cell = k * t->micro_batches + m;
                work = hbp__add_saturating(work, hbp__add_saturating(t->forward[cell], t->backward[cell]));
                if (k < t->chunks - 1)
                    work = hbp__add_saturating(work, t->sending[cell]);
                if (k > 0)
                    work = hbp__add_saturating(work, t->sending[cell - t->micro_batches]);
            }
            s->key[p] = i ? hbp__add_saturating(s->key[p], way_to(t, i, m)) : 0;
            int64_t sent = i ? t->sending[(i - 1) * t->micro_batches + m] : 0;
            least = hbp__min_i64(least, s->key[p] - sent);
        }
        s->sure[i] = hbp__add_saturating(work, least);
    }
}

static hbp_status run_search(search *s, int32_t *order, int64_t *before_ns, int64_t *after_ns)
{
    s->best_ns = hbp__pipeline_time(s->schedule, s->times, order, NULL, NULL);
    int64_t before = s->best_ns;
    copy_order(s->best, order, s->count);
    copy_order(s->now, order, s->count);
    if (!fits_limits(s, order))
        s->limit = NULL;
    fill_sure(s, order);
    HBP__TRY(hbp__pipeline_bound(s->context, s->schedule, s->times, order, &s->least_ns));
    if (s->best_ns > s->least_ns) {
        if (s->count <= HBP__ORDER_EXACT) {
            hbp__pipeline_begin(s->schedule);
            HBP__TRY(branch_from(s, 0));
        } else {
            HBP__TRY(search_order(s, order));
        }
    }
    copy_order(order, s->best, s->count);
    if (before_ns)
        *before_ns = before;
    if (after_ns)
        *after_ns = s->best_ns;
    return HBP_OK;
}

hbp_status hbp__order_micro_batches(hbp_context *context, hbp__schedule *schedule,
                                    const hbp__stage_times *times, const int64_t *limit_bytes, int64_t work,
                                    int32_t *order, int64_t *before_ns, int64_t *after_ns)
{
    uint64_t rows = (uint64_t)schedule->micro_batches, stages = (uint64_t)schedule->stages;
    int64_t mark = hbp__scratch_mark(context);
    search s = {.context = context, .schedule = schedule, .times = times, .limit = limit_bytes};
    s.count = schedule->micro_batches;
    s.stages = schedule->stages;
    s.total = s.work = s.next_tick = work;
    s.best = hbp__take(context, rows, sizeof *s.best);
    s.now = hbp__take(context, rows, sizeof *s.now);
    s.trial = hbp__take(context, rows, sizeof *s.trial);
    s.from = hbp__take(context, rows, sizeof *s.from);
    s.free_at = hbp__take(context, rows + 1, stages * sizeof *s.free_at);
    s.waited = hbp__take(context, rows + 1, stages * sizeof *s.waited);
    s.sure = hbp__take(context, stages, sizeof *s.sure);
    s.peak = hbp__take(context, stages, sizeof *s.peak);
    s.key = hbp__take(context, rows, sizeof *s.key);
    s.row = hbp__take(context, rows, sizeof *s.row);
    HBP__TRY(hbp__scratch_check(context, "the order of micro-batches"));
    HBP__TRY(run_search(&s, order, before_ns, after_ns));
    hbp__scratch_release(context, mark);
    return HBP_OK;
}

/* As hbp_order_micro_batches, its options read. */
static hbp_status order_given(hbp_context *context, const hbp_pipeline_options *p,
                              const hbp__stage_times *times, int32_t *order, int64_t *before_ns,
                              int64_t *after_ns)
{
    hbp__schedule schedule;
    int32_t *found = hbp__take(context, (uint64_t)p->micro_batches, sizeof *found);
    HBP__TRY(hbp__scratch_check(context, "the order of micro-batches"));
    HBP__TRY(hbp__schedule_open(context, p->stages, p->virtual_stages, p->micro_batches, &schedule));
    for (int32_t m = 0; m < p->micro_batches; m++)
        found[m] = m;
    hbp_status status = hbp__order_micro_batches(context, &schedule, times, p->limit_bytes, HBP__ORDER_WORK,
                                                 found, before_ns, after_ns);
    hbp__schedule_close(&schedule);
    HBP__TRY(status);
    copy_order(order, found, p->micro_batches);
    return HBP_OK;
}

static hbp_status order_micro_batches(hbp_context *context, const hbp_layers *layers, const int32_t *cuts,
                                      const hbp_pipeline_options *pipeline, int32_t *order,
                                      int64_t *before_ns, int64_t *after_ns)
{
    HBP__TRY(hbp__require(context, layers, "layers"));
    HBP__TRY(hbp__require(context, order, "order"));
    hbp_pipeline_options p;
    HBP__TRY(hbp__options_read(context, &p, sizeof p, pipeline, "hbp_pipeline_options"));
    hbp__stage_times times;
    HBP__TRY(hbp__stage_times_open(context, layers, cuts, &p, &times));
    hbp_status status = order_given(context, &p, &times, order, before_ns, after_ns);
    hbp__stage_times_close(&times);
    return status;
}

hbp_status hbp_order_micro_batches(hbp_context *context, const hbp_layers *layers, const int32_t *cuts,
                                   const hbp_pipeline_options *pipeline, int32_t *order, int64_t *before_ns,
                                   int64_t *after_ns)
{
    HBP__TRY(hbp__enter(context));
    int64_t mark = hbp__scratch_mark(context);
    return hbp__leave(context, mark,
                      order_micro_batches(context, layers, cuts, pipeline, order, before_ns, after_ns));
}
