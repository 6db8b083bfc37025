/* docs/explanation/pipeline.md states the bound and proves it; the names here are the ones used there. */
#include "base/checked.h"
#include "base/scratch.h"
#include "base/sort.h"
#include "simulate/pipeline/pipeline.h"

typedef struct stage_bound {
    const hbp__stage_times *times;
    const int32_t *column; /* [M] NULL: all in turn */
    int64_t count;         /* M */
    int64_t *way_in;   /* [chunks * M] ns of a micro-batch alone until its forward on the chunk may start */
    int64_t *way_back; /* [chunks * M] from the end of that until its backward there may start */
    int64_t *way_out;  /* [chunks * M] from the end of that to its end */
    int64_t *before;   /* [M] a(m): the stage's least wait ahead of its first backward, m being the first */
    int64_t *after;    /* [M] z(m): the same behind its last forward, m being the last */
    int64_t *ahead;    /* [M] scratch: the most the stage does ahead of that backward; then its way in */
    int64_t *behind;   /* [M] the same behind that forward; then its way out */
    uint32_t *order;   /* [M] scratch */
} stage_bound;

static int64_t sending(const hbp__stage_times *t, int64_t chunk, int64_t m)
{
    return chunk < t->chunks - 1 ? t->sending[chunk * t->micro_batches + m] : 0;
}

/* What one operation keeps its stage busy for. */
static int64_t busy_ns(const hbp__stage_times *t, int32_t direction, int64_t chunk, int64_t m)
{
    int64_t cell = chunk * t->micro_batches + m;
    if (direction == HBP_FORWARD)
        return hbp__add_saturating(t->forward[cell], sending(t, chunk, m));
    return hbp__add_saturating(t->backward[cell], chunk ? sending(t, chunk - 1, m) : 0);
}

static int64_t column_of(const stage_bound *b, int64_t m)
{
    return b->column ? b->column[m] : m;
}

/* Adds to most[m] the largest busy times of `operations` operations on `chunk`, m's among them. */
static hbp_status add_largest(hbp_context *context, stage_bound *b, int32_t direction, int64_t chunk,
                              int64_t operations, int64_t *keys, int64_t *most)
{
    if (!operations)
        return HBP_OK;
    for (int64_t m = 0; m < b->count; m++) {
        keys[m] = busy_ns(b->times, direction, chunk, column_of(b, m));
        b->order[m] = (uint32_t)m;
    }
    if (!hbp__sort_by_i64(&context->memory, keys, b->order, b->count))
        return hbp__fail_memory(context, "the bound of a pipeline");
    int64_t others = 0, first = b->count - operations; /* of the largest, in ascending order */
    for (int64_t i = first + 1; i < b->count; i++)
        others = hbp__add_saturating(others, keys[b->order[i]]);
    for (int64_t i = 0; i < b->count; i++) {
        int64_t m = b->order[i], own = i > first ? keys[b->order[first]] : keys[m];
        most[m] = hbp__add_saturating(most[m], hbp__add_saturating(others, own));
    }
    return HBP_OK;
}

/* Operations of chunk `chunk` ahead of its stage's first backward, or behind its last forward. Returns
 * whether that backward comes before that forward. */
static int count_ends(const hbp__schedule *schedule, int32_t chunk, int64_t *ahead, int64_t *behind)
{
    int64_t each = 2 * (int64_t)schedule->micro_batches * (schedule->chunks / schedule->stages);
    const hbp__operation *slot = schedule->slot + chunk % schedule->stages * each;
    int64_t first = 0, last = each - 1;
    *ahead = *behind = 0;
    for (; slot[first].direction == HBP_FORWARD; first++)
        *ahead += slot[first].chunk == chunk;
    for (; slot[last].direction == HBP_BACKWARD; last--)
        *behind += slot[last].chunk == chunk;
    return first < last;
}

/* The two least values of a column and where the least stands. */
typedef struct least {
    int64_t first;
    int64_t second;
    int64_t at;
} least;

static least least_of(const int64_t *column, int64_t count)
{
    least l = {INT64_MAX, INT64_MAX, 0};
    for (int64_t m = 0; m < count; m++) {
        if (column[m] < l.first) {
            l.second = l.first;
            l.first = column[m];
            l.at = m;
        } else {
            l.second = hbp__min_i64(l.second, column[m]);
        }
    }
    return l;
}

/* Least x(m) + y(n) over m != n; for at least two rows. */
static int64_t least_pair(const int64_t *x, const int64_t *y, int64_t count)
{
    least a = least_of(x, count), b = least_of(y, count);
    if (a.at != b.at)
        return hbp__add_saturating(a.first, b.first);
    return hbp__min_i64(hbp__add_saturating(a.first, b.second), hbp__add_saturating(a.second, b.first));
}

/* The ways of every micro-batch alone, from the times of the chunks on them. */
static void fill_ways(stage_bound *b)
{
    const hbp__stage_times *t = b->times;
    int64_t count = b->count, last = t->chunks - 1;
    for (int64_t m = 0; m < count; m++) {
        b->way_in[m] = b->way_out[m] = 0;
        b->way_back[last * count + m] = 0;
    }
    for (int64_t k = 0; k < last; k++)
        for (int64_t m = 0; m < count; m++) {
            int64_t i = k * count + m, cell = k * t->micro_batches + column_of(b, m);
            int64_t there = hbp__add_saturating(t->forward[cell], t->transfer[cell]);
            int64_t back = hbp__add_saturating(t->backward[cell], t->transfer[cell]);
            b->way_in[i + count] = hbp__add_saturating(b->way_in[i], there);
            b->way_out[i + count] = hbp__add_saturating(b->way_out[i], back);
        }
    for (int64_t k = last - 1; k >= 0; k--)
        for (int64_t m = 0; m < count; m++) {
            int64_t i = k * count + m, cell = k * t->micro_batches + column_of(b, m);
            int64_t next = cell + t->micro_batches;
            int64_t ns = hbp__add_saturating(t->forward[next], t->backward[next]);
            ns = hbp__add_saturating(ns, hbp__mul_saturating(2, t->transfer[cell]));
            b->way_back[i] = hbp__add_saturating(b->way_back[i + count], ns);
        }
}

/* Time of a micro-batch alone, from its start to its end. */
static int64_t alone_ns(const stage_bound *b, int64_t m)
{
    const hbp__stage_times *t = b->times;
    int64_t last = t->chunks - 1, i = last * b->count + m, cell = last * t->micro_batches + column_of(b, m);
    int64_t there = hbp__add_saturating(b->way_in[i], t->forward[cell]);
    int64_t back = hbp__add_saturating(b->way_out[i], t->backward[cell]);
    return hbp__add_saturating(there, back);
}

static hbp_status bound_stage(hbp_context *context, stage_bound *b, const hbp__schedule *schedule,
                              int32_t stage, int64_t *bound_ns)
{
    const hbp__stage_times *t = b->times;
    int32_t last = t->chunks - t->stages + stage; /* of the stage: that of its first backward */
    int64_t work = 0;
    int apart = 0;
    for (int64_t m = 0; m < b->count; m++)
        b->ahead[m] = b->behind[m] = 0;
    for (int32_t k = stage; k < t->chunks; k += t->stages) {
        int64_t ahead, behind; /* operations */
        apart = count_ends(schedule, k, &ahead, &behind);
        /* before and after are free until the loop below */
        HBP__TRY(add_largest(context, b, HBP_FORWARD, k, ahead, b->before, b->ahead));
        HBP__TRY(add_largest(context, b, HBP_BACKWARD, k, behind, b->after, b->behind));
        for (int64_t m = 0; m < b->count; m++) {
            work = hbp__add_saturating(work, busy_ns(t, HBP_FORWARD, k, column_of(b, m)));
            work = hbp__add_saturating(work, busy_ns(t, HBP_BACKWARD, k, column_of(b, m)));
        }
    }
    for (int64_t m = 0; m < b->count; m++) {
        int64_t column = column_of(b, m), cell = last * t->micro_batches + column;
        int64_t i = last * b->count + m, back = b->way_back[i];
        int64_t start = hbp__add_saturating(b->way_in[i], hbp__add_saturating(t->forward[cell], back));
        int64_t rest = hbp__add_saturating(b->way_out[i], hbp__add_saturating(t->backward[cell], back));
        int64_t head = b->way_in[stage * b->count + m];
        int64_t tail = b->way_out[stage * b->count + m] - (stage ? sending(t, stage - 1, column) : 0);
        b->before[m] = hbp__max_i64(start - b->ahead[m], head);
        b->after[m] = hbp__max_i64(rest - hbp__add_saturating(b->behind[m], sending(t, last, column)), tail);
        b->ahead[m] = head;
        b->behind[m] = tail;
    }
    int64_t wait;
    if (apart)
        wait = least_pair(b->before, b->after, b->count);
    else
        wait = hbp__max_i64(least_pair(b->before, b->behind, b->count),
                            least_pair(b->ahead, b->after, b->count));
    *bound_ns = hbp__add_saturating(work, wait);
    return HBP_OK;
}

static hbp_status bound_stages(hbp_context *context, stage_bound *b, const hbp__schedule *schedule,
                               int64_t *bound_ns)
{
    int64_t bound = 0;
    fill_ways(b);
    for (int64_t m = 0; m < b->count; m++)
        bound = hbp__max_i64(bound, alone_ns(b, m));
    for (int32_t s = 0; s < schedule->stages && b->count > 1; s++) {
        int64_t here;
        HBP__TRY(bound_stage(context, b, schedule, s, &here));
        bound = hbp__max_i64(bound, here);
    }
    *bound_ns = bound;
    return HBP_OK;
}

hbp_status hbp__pipeline_bound(hbp_context *context, const hbp__schedule *schedule,
                               const hbp__stage_times *times, const int32_t *column, int64_t *bound_ns)
{
    int64_t mark = hbp__scratch_mark(context);
    uint64_t rows = (uint64_t)schedule->micro_batches, cells = rows * (uint64_t)schedule->chunks;
    stage_bound b = {.times = times, .column = column, .count = schedule->micro_batches};
    int64_t **columns[] = {&b.before, &b.after, &b.ahead, &b.behind, &b.way_in, &b.way_back, &b.way_out};
    b.order = hbp__take(context, rows, sizeof *b.order);
    for (int i = 0; i < 7; i++)
        *columns[i] = hbp__take(context, i < 4 ? rows : cells, sizeof **columns[i]);
    HBP__TRY(hbp__scratch_check(context, "the bound of a pipeline"));
    HBP__TRY(bound_stages(context, &b, schedule, bound_ns));
    hbp__scratch_release(context, mark);
    return HBP_OK;
}
