#include "step/differencing.h"

#include "base/checked.h"
#include "base/scratch.h"

enum { NONE = -1 };

/* A part of a deal: its sum, and a list of its values. */
typedef struct sum {
    int64_t value;
    int64_t head;
    int64_t tail;
    int64_t next; /* of the same list of parts */
} sum;

/* A partial deal. */
typedef struct deal {
    int64_t spread; /* largest sum less the smallest */
    int64_t count;  /* of parts that hold something */
    int64_t first;  /* of their list, while `count` is below the parts */
    int64_t last;
    int64_t *heap; /* [parts] sums, the smallest on top; NULL: a list */
    int64_t most;  /* the largest sum */
} deal;

typedef struct dealing {
    hbp_context *context;
    int64_t parts;
    sum *sums;
    int64_t used;  /* of `sums` */
    int64_t *next; /* [count] of the values of a part */
    deal *deals;
    int64_t *queue; /* deals, the widest spread on top */
    int64_t queued;
    int64_t *heaps; /* [heap][parts] */
    int64_t heaps_used;
    int64_t *spare; /* [2 parts] */
    int64_t ticks;
} dealing;

/* Whether sum a is on top of sum b: it is smaller, or as large and earlier. */
static int is_smaller(const dealing *d, int64_t a, int64_t b)
{
    return d->sums[a].value < d->sums[b].value || (d->sums[a].value == d->sums[b].value && a < b);
}

static void sift_sum(const dealing *d, int64_t *heap, int64_t at, int64_t count)
{
    int64_t moved = heap[at];
    for (int64_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && is_smaller(d, heap[child + 1], heap[child]))
            child++;
        if (!is_smaller(d, heap[child], moved))
            break;
        heap[at] = heap[child];
    }
    heap[at] = moved;
}

static void make_heap(const dealing *d, int64_t *heap, int64_t count)
{
    for (int64_t at = count / 2 - 1; at >= 0; at--)
        sift_sum(d, heap, at, count);
}

/* Makes a heap ascending. */
static void sort_heap(const dealing *d, int64_t *heap, int64_t count)
{
    for (int64_t last = count - 1; last > 0; last--) {
        int64_t top = heap[0];
        heap[0] = heap[last];
        heap[last] = top;
        sift_sum(d, heap, 0, last);
    }
    for (int64_t i = 0, k = count - 1; i < k; i++, k--) {
        int64_t other = heap[i];
        heap[i] = heap[k];
        heap[k] = other;
    }
}

static int is_wider(const dealing *d, int64_t a, int64_t b)
{
    return d->deals[a].spread > d->deals[b].spread || (d->deals[a].spread == d->deals[b].spread && a < b);
}

static void sift_deal(dealing *d, int64_t at)
{
    int64_t *queue = d->queue, moved = queue[at];
    for (int64_t child; (child = 2 * at + 1) < d->queued; at = child) {
        if (child + 1 < d->queued && is_wider(d, queue[child + 1], queue[child]))
            child++;
        if (!is_wider(d, queue[child], moved))
            break;
        queue[at] = queue[child];
    }
    queue[at] = moved;
}

/* A list of `count` parts as one of all, the others empty, in a heap. */
static void fill_up(dealing *d, deal *a)
{
    int64_t *heap = d->heaps + d->heaps_used++ * d->parts, count = 0;
    for (int64_t s = a->first; s != NONE; s = d->sums[s].next)
        heap[count++] = s;
    while (count < d->parts) {
        d->sums[d->used] = (sum){0, NONE, NONE, NONE};
        heap[count++] = d->used++;
    }
    make_heap(d, heap, d->parts);
    a->heap = heap;
    a->count = d->parts;
}

static void set_spread(const dealing *d, deal *a)
{
    a->spread = a->most - (a->heap ? d->sums[a->heap[0]].value : 0);
}

/* The values of sum b join those of a. */
static void join(dealing *d, int64_t a, int64_t b)
{
    sum *to = &d->sums[a];
    const sum *from = &d->sums[b];
    if (from->head == NONE)
        return;
    if (to->head == NONE)
        to->head = from->head;
    else
        d->next[to->tail] = from->head;
    to->tail = from->tail;
    to->value = hbp__add_saturating(to->value, from->value);
}

/* The largest of the `count` sums of `other`, ascending, joins the smallest of a deal, and so on. */
static void join_all(dealing *d, deal *a, const int64_t *other, int64_t count)
{
    int64_t *smallest = d->spare + d->parts, left = d->parts;
    for (int64_t i = 0; i < count; i++) {
        smallest[i] = a->heap[0];
        a->heap[0] = a->heap[--left];
        if (left > 1)
            sift_sum(d, a->heap, 0, left);
    }
    if (count == d->parts)
        a->most = 0;
    for (int64_t i = 0; i < count; i++) {
        join(d, smallest[i], other[count - 1 - i]);
        a->most = hbp__max_i64(a->most, d->sums[smallest[i]].value);
    }
    /* Back into the heap, one by one from below. */
    for (int64_t i = 0; i < count; i++) {
        int64_t at = left++, put = smallest[i];
        for (; at && is_smaller(d, put, a->heap[(at - 1) / 2]); at = (at - 1) / 2)
            a->heap[at] = a->heap[(at - 1) / 2];
        a->heap[at] = put;
    }
}

/* Deal b joins deal a. */
static hbp_status merge(dealing *d, deal *a, deal *b)
{
    if (!a->heap && !b->heap && a->count + b->count <= d->parts) {
        d->sums[a->last].next = b->first;
        a->last = b->last;
        a->count += b->count;
        a->most = hbp__max_i64(a->most, b->most);
        if (a->count == d->parts)
            fill_up(d, a);
        set_spread(d, a);
        return HBP_OK;
    }
    if (!a->heap && b->heap) {
        deal other = *a;
        *a = *b;
        *b = other;
    }
    if (!a->heap)
        fill_up(d, a);
    int64_t *other = b->heap, count = b->count;
    if (!other) {
        other = d->spare;
        count = 0;
        for (int64_t s = b->first; s != NONE; s = d->sums[s].next)
            other[count++] = s;
        make_heap(d, other, count);
    }
    d->ticks += count;
    if (d->ticks > HBP__TICK_ROWS) {
        d->ticks = 0;
        HBP__TRY(hbp__tick(d->context, "step", 0, 0));
    }
    sort_heap(d, other, count);
    join_all(d, a, other, count);
    set_spread(d, a);
    return HBP_OK;
}

/* The first deals: values one by one, or in rows. */
static void deal_out(dealing *d, const int64_t *value, int64_t count, int rows)
{
    int64_t row = rows ? d->parts : 1;
    for (int64_t k = 0; k < count; k++) {
        d->sums[k] = (sum){value[k], k, k, (k + 1) % row && k + 1 < count ? k + 1 : NONE};
        d->next[k] = NONE;
    }
    d->used = count;
    for (int64_t k = 0; k < count; k += row) {
        int64_t end = hbp__min_i64(k + row, count);
        deal *a = &d->deals[d->queued];
        *a = (deal){0, end - k, k, end - 1, NULL, value[k]};
        if (a->count == d->parts)
            fill_up(d, a);
        set_spread(d, a);
        d->queue[d->queued] = d->queued;
        d->queued++;
    }
    for (int64_t at = d->queued / 2 - 1; at >= 0; at--)
        sift_deal(d, at);
}

/* Numbers the parts of the last deal. */
static void write_parts(const dealing *d, int64_t *part)
{
    const deal *a = &d->deals[d->queue[0]];
    int64_t s = a->first;
    for (int64_t p = 0; p < a->count; p++) {
        int64_t from = a->heap ? a->heap[p] : s;
        for (int64_t k = d->sums[from].head; k != NONE; k = d->next[k])
            part[k] = p;
        if (!a->heap)
            s = d->sums[s].next;
    }
}

hbp_status hbp__step_difference(hbp_context *context, const int64_t *value, int64_t count, int64_t parts,
                                int rows, int64_t *part)
{
    int64_t mark = hbp__scratch_mark(context);
    /* A deal is filled up where it holds as many values as there are parts, which no other such has. */
    uint64_t heaps = (uint64_t)(count / parts + 1), all = (uint64_t)count;
    dealing d = {.context = context, .parts = parts};
    d.sums = hbp__take(context, all + heaps * (uint64_t)parts, sizeof *d.sums);
    d.next = hbp__take(context, all, sizeof *d.next);
    d.deals = hbp__take(context, all, sizeof *d.deals);
    d.queue = hbp__take(context, all, sizeof *d.queue);
    d.heaps = hbp__take(context, heaps * (uint64_t)parts, sizeof *d.heaps);
    d.spare = hbp__take(context, (uint64_t)parts, 2 * sizeof *d.spare);
    HBP__TRY(hbp__scratch_check(context, "the parts of the step"));
    deal_out(&d, value, count, rows);
    for (int64_t i = 0; d.queued > 1; i++) {
        HBP__TRY(hbp__tick_row(context, "step", i, count));
        int64_t a = d.queue[0], right = d.queued > 2 && is_wider(&d, d.queue[2], d.queue[1]) ? 2 : 1;
        int64_t b = d.queue[right];
        d.queue[right] = d.queue[--d.queued];
        if (right < d.queued)
            sift_deal(&d, right);
        HBP__TRY(merge(&d, &d.deals[a], &d.deals[b]));
        sift_deal(&d, 0);
    }
    write_parts(&d, part);
    hbp__scratch_release(context, mark);
    return HBP_OK;
}
