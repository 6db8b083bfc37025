/* Steps of a shuffled sampler.
 *
 * With samples_per_step B a step takes units in the order drawn, but passes over those that would leave a
 * number of samples that no sum of units' sizes makes up, as far as they can be told without counting units:
 * with single samples or pairs and an even B every step holds exactly B. Of each size there is a queue, and
 * the next unit is the earliest head that leaves a number which can be made: O(sizes) a unit, O(sizes B) when
 * a queue runs dry. Oracle: brute force over orders (tests/epoch/test_units.c). */
#include "epoch/units.h"

#include <string.h>

#include "base/checked.h"
#include "base/rng.h"
#include "base/scratch.h"
#include "base/sort.h"
#include "epoch/batches.h"
#include "solve/union_find.h"

enum { STREAM_DRAW = 0x64726177 };

void hbp__units_close(hbp__units *u)
{
    if (u->items.memory.release)
        hbp__items_close(&u->items);
    memset(u, 0, sizeof *u);
}

static int is_short(const hbp__units *u, int64_t item, int64_t shortest)
{
    if (!u->items.next)
        return u->items.size[item] <= shortest;
    for (uint32_t s = u->items.sample[item]; s != HBP__NO_SAMPLE; s = u->items.next[s])
        if (hbp__lengths_get(u->items.lengths, s) > shortest)
            return 0;
    return 1;
}

hbp_status hbp__units_open(const hbp__epoch *epoch, int64_t shortest, hbp__units *u)
{
    hbp_context *context = epoch->context;
    const hbp_epoch_options *o = &epoch->options;
    memset(u, 0, sizeof *u);
    u->epoch = epoch;
    HBP__TRY(hbp__items_open(context, epoch->lengths, 1, INT64_MAX, o->seed, o->epoch, &u->items));
    u->count = u->items.count;
    uint64_t rows = (uint64_t)u->count;
    u->order = hbp__take(context, rows, sizeof *u->order);
    u->is_short = hbp__take(context, rows, sizeof *u->is_short);
    u->is_taken = hbp__take_zero(context, rows, sizeof *u->is_taken);
    HBP__TRY(hbp__scratch_check(context, "the batches"));
    for (int64_t i = 0; i < u->count; i++) {
        u->order[i] = (uint32_t)i;
        u->is_short[i] = (uint8_t)is_short(u, i, shortest);
        HBP__TRY(hbp__tick_row(context, "batches", i, u->count));
    }
    hbp__rng rng = hbp__rng_make(o->seed, o->epoch, STREAM_DRAW);
    return hbp__shuffle(context, &rng, u->order, u->count);
}

/* Writes a unit behind the last step that is complete. */
static int64_t put_unit(hbp__units *u, uint32_t item, hbp__batches *b, int64_t at)
{
    u->is_taken[item] = 1;
    u->drawn++;
    return at + hbp__items_write(&u->items, item, b->sample + at);
}

static const char *name_unit(const hbp__units *u, uint32_t item, long long *id)
{
    const hbp_lengths *lengths = u->items.lengths;
    uint32_t sample = u->items.sample[item];
    *id = lengths->origin ? lengths->origin[sample] : sample;
    return hbp__items_members(&u->items, item) > 1 ? " with those linked to it" : "";
}

/* Says that a unit has more tokens than a step may hold. Items ascend, so the last is the longest. */
static hbp_status refuse_tokens(const hbp__units *u, uint32_t item)
{
    long long id;
    const char *with = name_unit(u, item, &id);
    int64_t least = u->items.size[u->items.count - 1];
    return hbp__fail(u->epoch->context, HBP_E_INVALID,
                     "sample %lld%s has %lld tokens, and tokens_per_step is %lld; at least %lld would do", id,
                     with, (long long)u->items.size[item], (long long)u->epoch->options.tokens_per_step,
                     (long long)least);
}

hbp_status hbp__units_check_tokens(const hbp__epoch *epoch)
{
    const hbp_lengths *lengths = epoch->lengths;
    int64_t limit = epoch->options.tokens_per_step;
    if (!limit || lengths->tokens <= limit ||
        (!lengths->link && lengths->bin_length[lengths->bins - 1] <= limit))
        return HBP_OK;
    hbp__units u = {.epoch = epoch};
    hbp_status status = hbp__items_open(epoch->context, lengths, 1, INT64_MAX, epoch->options.seed,
                                        epoch->options.epoch, &u.items);
    if (status >= 0 && u.items.size[u.items.count - 1] > limit)
        status = refuse_tokens(&u, (uint32_t)u.items.count - 1);
    hbp__units_close(&u);
    return status;
}

/* Cuts the units of `list` [count] where the next would bring a step past tokens_per_step. With
 * `whole_alone` a step that the list ends is not made. */
static hbp_status draw_by_tokens(hbp__units *u, const uint32_t *list, int64_t count, int64_t most,
                                 int whole_alone, hbp__batches *b)
{
    int64_t limit = u->epoch->options.tokens_per_step, at = b->first[b->steps];
    for (int64_t i = 0; i < count && most > 0; most--) {
        int64_t tokens = 0, end = i;
        for (; end < count && tokens + u->items.size[list[end]] <= limit; end++)
            tokens += u->items.size[list[end]];
        if (end == i)
            return refuse_tokens(u, list[i]);
        if (end == count && whole_alone)
            return HBP_OK;
        for (; i < end; i++) {
            HBP__TRY(hbp__tick_row(u->epoch->context, "batches", i, count));
            at = put_unit(u, list[i], b, at);
        }
        b->first[++b->steps] = at;
    }
    return HBP_OK;
}

/* Queues of units by their number of samples. */
typedef struct queues {
    int64_t sizes;
    int64_t *size;  /* [sizes] ascending */
    int64_t *head;  /* [sizes] into unit */
    int64_t *end;   /* [sizes] */
    uint32_t *unit; /* places in the list, by size, each size in the list's order */
    uint8_t *makes; /* [B + 1] whether units of the sizes that are left sum up to so many samples */
    int64_t left;   /* samples in all queues */
} queues;

static void find_sums(queues *q, int64_t samples)
{
    memset(q->makes, 0, (size_t)samples + 1);
    q->makes[0] = 1;
    for (int64_t k = 0; k < q->sizes; k++)
        for (int64_t n = q->size[k]; n <= samples && q->head[k] < q->end[k]; n++)
            q->makes[n] |= q->makes[n - q->size[k]];
}

/* Sizes above samples_per_step are refused by the caller. O(count + samples). */
static hbp_status take_queues(const hbp__units *u, const uint32_t *list, int64_t count, int64_t samples,
                              queues *q)
{
    hbp_context *context = u->epoch->context;
    memset(q, 0, sizeof *q);
    q->makes = hbp__take(context, (uint64_t)samples + 1, sizeof *q->makes);
    q->unit = hbp__take(context, (uint64_t)count, sizeof *q->unit);
    int64_t *number = hbp__take_zero(context, (uint64_t)samples + 2, sizeof *number);
    HBP__TRY(hbp__scratch_check(context, "the batches"));
    for (int64_t i = 0; i < count; i++) {
        number[hbp__items_members(&u->items, list[i])]++;
        HBP__TRY(hbp__tick_row(context, "batches", i, count));
    }
    for (int64_t n = 1; n <= samples; n++)
        q->sizes += number[n] > 0;
    q->size = hbp__take(context, (uint64_t)q->sizes, sizeof *q->size);
    q->head = hbp__take(context, (uint64_t)q->sizes, sizeof *q->head);
    q->end = hbp__take(context, (uint64_t)q->sizes, sizeof *q->end);
    HBP__TRY(hbp__scratch_check(context, "the batches"));
    int64_t at = 0;
    for (int64_t n = 1, k = 0; n <= samples; n++)
        if (number[n]) {
            q->size[k] = n;
            q->head[k] = q->end[k] = at;
            at += number[n];
            q->left += n * number[n];
            number[n] = k++;
        }
    for (int64_t i = 0; i < count; i++) {
        q->unit[q->end[number[hbp__items_members(&u->items, list[i])]]++] = (uint32_t)i;
        HBP__TRY(hbp__tick_row(context, "batches", i, count));
    }
    find_sums(q, samples);
    return HBP_OK;
}

/* The queue of the earliest unit of at most `room` samples, of those that leave a sum which can be made where
 * there is one; -1 for none. */
static int64_t next_of(const queues *q, int64_t room)
{
    int64_t best = -1, any = -1;
    for (int64_t k = 0; k < q->sizes && q->size[k] <= room; k++) {
        if (q->head[k] == q->end[k])
            continue;
        uint32_t unit = q->unit[q->head[k]];
        if (any < 0 || unit < q->unit[q->head[any]])
            any = k;
        if (q->makes[room - q->size[k]] && (best < 0 || unit < q->unit[q->head[best]]))
            best = k;
    }
    return best < 0 ? any : best;
}

static hbp_status draw_by_samples(hbp__units *u, const uint32_t *list, int64_t count, int64_t most,
                                  int whole_alone, hbp__batches *b)
{
    hbp_context *context = u->epoch->context;
    int64_t mark = hbp__scratch_mark(context);
    int64_t samples = hbp__min_i64(u->epoch->options.samples_per_step, u->items.lengths->count);
    int64_t at = b->first[b->steps], drawn = 0;
    queues q;
    HBP__TRY(take_queues(u, list, count, samples, &q));
    for (int64_t s = 0; q.left && s < most; s++) {
        int64_t room = samples;
        if (q.left < room && whole_alone)
            break;
        for (int64_t k; room > 0 && (k = next_of(&q, room)) >= 0;) {
            HBP__TRY(hbp__tick_row(context, "batches", drawn++, count));
            at = put_unit(u, list[q.unit[q.head[k]++]], b, at);
            room -= q.size[k];
            q.left -= q.size[k];
            if (q.head[k] == q.end[k])
                find_sums(&q, samples);
        }
        b->first[++b->steps] = at;
    }
    hbp__scratch_release(context, mark);
    return HBP_OK;
}

static hbp_status check_links(const hbp__units *u)
{
    int64_t samples = u->epoch->options.samples_per_step, most = 0;
    uint32_t largest = 0;
    for (int64_t i = 0; u->items.next && samples && i < u->count; i++) {
        HBP__TRY(hbp__tick_row(u->epoch->context, "batches", i, u->count));
        if (hbp__items_members(&u->items, i) > most) {
            most = hbp__items_members(&u->items, i);
            largest = (uint32_t)i;
        }
    }
    if (most <= samples)
        return HBP_OK;
    long long id;
    name_unit(u, largest, &id);
    return hbp__fail(u->epoch->context, HBP_E_INVALID,
                     "sample %lld is linked to %lld other%s, and samples_per_step is %lld; a step holds "
                     "linked samples together, so at least %lld would do",
                     id, (long long)most - 1, most == 2 ? "" : "s", (long long)samples, (long long)most);
}

hbp_status hbp__units_draw(hbp__units *u, int64_t early, int64_t most, hbp__batches *b)
{
    const hbp_epoch_options *o = &u->epoch->options;
    hbp_context *context = u->epoch->context;
    int64_t mark = hbp__scratch_mark(context);
    HBP__TRY(check_links(u));
    uint32_t *list = hbp__take(context, (uint64_t)u->count, sizeof *list);
    HBP__TRY(hbp__scratch_check(context, "the batches"));
    for (int turn = early > 0 ? 0 : 1; turn < 2; turn++) {
        int64_t count = 0;
        for (int64_t i = 0; i < u->count; i++) {
            if (!u->is_taken[u->order[i]] && (turn || u->is_short[u->order[i]]))
                list[count++] = u->order[i];
            HBP__TRY(hbp__tick_row(context, "batches", i, u->count));
        }
        if (count)
            HBP__TRY((o->samples_per_step ? draw_by_samples : draw_by_tokens)(u, list, count,
                                                                              turn ? most : early, !turn, b));
    }
    hbp__scratch_release(context, mark);
    return HBP_OK;
}

hbp_status hbp__units_sort(hbp__units *u, int64_t longer_than, hbp__batches *b)
{
    hbp_context *context = u->epoch->context;
    const int64_t limit = u->epoch->options.tokens_per_step, mark = hbp__scratch_mark(context);
    /* Of units counted from 1, left[] leads to the nearest at or below that stands in no step, 0 for none. */
    uint32_t *left = hbp__take(context, (uint64_t)u->count + 1, sizeof *left);
    HBP__TRY(hbp__scratch_check(context, "the batches"));
    for (int64_t i = 0; i <= u->count; i++) {
        HBP__TRY(hbp__tick_row(context, "batches", i, u->count));
        left[i] = (uint32_t)(i && u->is_taken[i - 1] ? i - 1 : i);
    }
    uint32_t top = hbp__set_of_u32(left, (uint32_t)u->count);
    while (top && u->items.size[top - 1] > longer_than) {
        int64_t room = limit, at = b->first[b->steps];
        for (uint32_t found = top; found;) {
            if (u->items.size[found - 1] > room)
                return refuse_tokens(u, found - 1);
            HBP__TRY(hbp__tick_row(context, "batches", u->drawn, u->count));
            room -= u->items.size[found - 1];
            left[found] = found - 1;
            at = put_unit(u, found - 1, b, at);
            found = hbp__set_of_u32(left, (uint32_t)hbp__items_up_to(&u->items, found, room));
        }
        b->first[++b->steps] = at;
        top = hbp__set_of_u32(left, top);
    }
    int64_t at = b->first[b->steps];
    for (int64_t i = 0; i < u->count; i++) {
        HBP__TRY(hbp__tick_row(context, "batches", i, u->count));
        if (!u->is_taken[i])
            at += hbp__items_write(&u->items, i, b->sample + at);
    }
    hbp__scratch_release(context, mark);
    return HBP_OK;
}
