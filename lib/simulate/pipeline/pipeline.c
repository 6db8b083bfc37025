/* A schedule walked through: when each operation begins, once all it waits for has ended. */
#include "simulate/pipeline/pipeline.h"

#include "base/checked.h"

static int32_t row_of(const int32_t *order, int32_t place)
{
    return order ? order[place] : place;
}

void hbp__pipeline_begin(hbp__schedule *schedule)
{
    for (int32_t s = 0; s < schedule->stages; s++)
        schedule->free_at[s] = schedule->waited[s] = 0;
    for (int32_t p = 0; p < schedule->micro_batches; p++)
        schedule->ready_forward[p] = 0; /* stage 0 has its inputs */
}

void hbp__pipeline_advance(hbp__schedule *schedule, const hbp__stage_times *times, const int32_t *order,
                           int32_t first, int32_t end)
{
    int64_t count = schedule->micro_batches, columns = times->micro_batches;
    int64_t *there = schedule->ready_forward, *back = schedule->ready_backward;
    const hbp__operation *stop = schedule->line + schedule->segment[end];
    for (const hbp__operation *o = schedule->line + schedule->segment[first]; o < stop; o++) {
        int64_t cell = o->chunk * count + o->place, time = o->chunk * columns + row_of(order, o->place);
        int64_t *free_at = &schedule->free_at[o->stage];
        int forward = o->direction == HBP_FORWARD;
        int64_t ready = forward ? there[cell] : back[cell], start = hbp__max_i64(*free_at, ready);
        schedule->waited[o->stage] += start - *free_at;
        if (forward) {
            int64_t done = hbp__add_saturating(start, times->forward[time]);
            if (o->chunk == schedule->chunks - 1) {
                back[cell] = *free_at = done;
                continue;
            }
            there[cell + count] = hbp__add_saturating(done, times->transfer[time]);
            *free_at = hbp__add_saturating(done, times->sending[time]);
        } else {
            int64_t done = hbp__add_saturating(start, times->backward[time]);
            if (!o->chunk) {
                *free_at = done;
                continue;
            }
            back[cell - count] = hbp__add_saturating(done, times->transfer[time - columns]);
            *free_at = hbp__add_saturating(done, times->sending[time - columns]);
        }
    }
}

/* What the stage has to do for all micro-batches. */
static int64_t stage_busy(const hbp__schedule *schedule, const hbp__stage_times *times, const int32_t *order,
                          int32_t stage)
{
    int64_t columns = times->micro_batches, busy = 0;
    for (int64_t k = stage; k < schedule->chunks; k += schedule->stages)
        for (int32_t p = 0; p < schedule->micro_batches; p++) {
            int64_t time = k * columns + row_of(order, p);
            busy = hbp__add_saturating(busy, times->forward[time]);
            busy = hbp__add_saturating(busy, times->backward[time]);
            if (k < schedule->chunks - 1)
                busy = hbp__add_saturating(busy, times->sending[time]);
            if (k > 0)
                busy = hbp__add_saturating(busy, times->sending[time - columns]);
        }
    return busy;
}

/* The most that the stage holds over its states; INT64_MAX when that is more. */
static int64_t stage_held(const hbp__schedule *schedule, const hbp__stage_times *times, const int32_t *order,
                          int32_t stage)
{
    int64_t each = 2 * (int64_t)schedule->micro_batches * (schedule->chunks / schedule->stages);
    const hbp__operation *o = schedule->slot + stage * each;
    int64_t held = 0, most = 0;
    for (const hbp__operation *end = o + each; o < end; o++) {
        int64_t cell = (int64_t)o->chunk * times->micro_batches + row_of(order, o->place);
        if (o->direction == HBP_FORWARD) {
            if (!hbp__add_i64(held, times->kept[cell], &held))
                return INT64_MAX;
            most = hbp__max_i64(most, held);
        } else {
            most = hbp__max_i64(most, hbp__add_saturating(held, times->working[cell]));
            held -= times->kept[cell];
        }
    }
    return most;
}

void hbp__pipeline_peak(const hbp__schedule *schedule, const hbp__stage_times *times, const int32_t *order,
                        int64_t *peak)
{
    for (int32_t s = 0; s < schedule->stages; s++) {
        peak[s] = stage_held(schedule, times, order, s);
        for (int32_t k = s; k < schedule->chunks; k += schedule->stages)
            peak[s] = hbp__add_saturating(peak[s], times->state[k]);
    }
}

int64_t hbp__pipeline_time(hbp__schedule *schedule, const hbp__stage_times *times, const int32_t *order,
                           int64_t *busy, int64_t *peak)
{
    hbp__pipeline_begin(schedule);
    hbp__pipeline_advance(schedule, times, order, 0, schedule->micro_batches);
    for (int32_t s = 0; busy && s < schedule->stages; s++)
        busy[s] = stage_busy(schedule, times, order, s);
    if (peak)
        hbp__pipeline_peak(schedule, times, order, peak);
    return schedule->free_at[0]; /* every other stage's last backward came before stage 0's */
}
