/* Samples to items: what is over-long, what is linked, what each weighs, which class it is of. */
#include "base/checked.h"
#include "base/scratch.h"
#include "base/sort.h"
#include "data/lengths/lengths_make.h"
#include "pack/partition/partition.h"

#define STAGE "samples"

/* What is known of each sample on the way. */
typedef struct drafting {
    hbp__partition_call *call;
    uint32_t *leader;       /* [count] the first sample that it is linked with, itself when free */
    uint32_t *class_leader; /* [count] the first sample of its class */
    int64_t *total;         /* [count] of a leader: tokens of those linked with it, cut where they are */
    uint8_t *has_over;      /* [count] of a leader: one of them is over-long by itself */
} drafting;

static int is_over(const hbp__partition_call *c, int64_t i)
{
    return c->length[i] > c->capacity;
}

static hbp_status check_lengths(const hbp__partition_call *c)
{
    int64_t sum = 0;
    for (int64_t i = 0; i < c->count; i++) {
        HBP__TRY(hbp__tick_row(c->context, STAGE, i, c->count));
        if (c->length[i] < 1)
            return hbp__fail(c->context, HBP_E_INVALID,
                             "sample %lld has %lld tokens; it must have at least 1", (long long)i,
                             (long long)c->length[i]);
        if (!hbp__add_i64(sum, c->length[i], &sum) || sum > HBP__MOST_WEIGHT)
            return hbp__fail(c->context, HBP_E_OVERFLOW,
                             "up to sample %lld lengths come to more than 2^62 tokens", (long long)i);
        if (c->options->weights && c->options->weights[i] < 0)
            return hbp__fail(c->context, HBP_E_INVALID, "`weights` of sample %lld is %lld; it is at least 0",
                             (long long)i, (long long)c->options->weights[i]);
        if (c->options->links)
            HBP__TRY(hbp__lengths_check_link(c->context, i, c->options->links[i]));
    }
    return HBP_OK;
}

/* The first sample of each value: leader [count]; those with a value below `least` lead themselves. */
static hbp_status find_leaders(const hbp__partition_call *c, const int64_t *value, int64_t least,
                               uint32_t *leader)
{
    int64_t mark = hbp__scratch_mark(c->context);
    uint32_t *order = hbp__take(c->context, (uint64_t)c->count, sizeof *order);
    HBP__TRY(hbp__scratch_check(c->context, STAGE));
    for (int64_t i = 0; i < c->count; i++)
        leader[i] = order[i] = (uint32_t)i;
    HBP__TRY(hbp__order_by_i64(c->context, value, order, c->count, STAGE));
    for (int64_t i = 1; i < c->count; i++) /* stable: of equals the first comes first */
        if (value[order[i]] >= least && value[order[i]] == value[order[i - 1]])
            leader[order[i]] = leader[order[i - 1]];
    hbp__scratch_release(c->context, mark);
    return HBP_OK;
}

static hbp_status refuse_over(const hbp__partition_call *c)
{
    int64_t first = -1, over = 0;
    for (int64_t i = 0; i < c->count; i++)
        if (is_over(c, i)) {
            first = first < 0 ? i : first;
            over++;
        }
    return hbp__fail(c->context, HBP_E_INVALID,
                     "%lld of %lld samples %s longer than `capacity`, %lld tokens; the first is sample %lld "
                     "with %lld; `over_long` alone, drop, truncate or split would take them",
                     (long long)over, (long long)c->count, over == 1 ? "is" : "are", (long long)c->capacity,
                     (long long)first, (long long)c->length[first]);
}

/* Sums of those that are linked, and what stands against them. */
static hbp_status check_links(drafting *d)
{
    const hbp__partition_call *c = d->call;
    int32_t policy = c->options->over_long;
    int64_t samples_mark = hbp__scratch_mark(c->context);
    int64_t *number = hbp__take_zero(c->context, (uint64_t)c->count, sizeof *number);
    HBP__TRY(hbp__scratch_check(c->context, STAGE));
    for (int64_t i = 0; i < c->count; i++) {
        uint32_t at = d->leader[i];
        HBP__TRY(hbp__tick_row(c->context, STAGE, i, c->count));
        if (is_over(c, i) && policy == HBP_OVERLONG_ERROR)
            return refuse_over(c);
        d->has_over[at] |= (uint8_t)is_over(c, i);
        d->total[at] +=
            policy == HBP_OVERLONG_TRUNCATE ? hbp__min_i64(c->length[i], c->capacity) : c->length[i];
        number[at]++;
        if (c->options->classes && c->options->classes[i] != c->options->classes[at])
            return hbp__fail(c->context, HBP_E_INVALID,
                             "samples %lld and %lld are linked and of two classes, %lld and %lld",
                             (long long)at, (long long)i, (long long)c->options->classes[at],
                             (long long)c->options->classes[i]);
    }
    for (int64_t i = 0; i < c->count; i++) {
        int is_dropped = policy == HBP_OVERLONG_DROP && d->has_over[i];
        if (number[i] > 1 && d->total[i] > c->capacity && policy != HBP_OVERLONG_ALONE && !is_dropped)
            return hbp__fail(
                c->context, HBP_E_INVALID,
                "the %lld samples linked with sample %lld have %lld tokens together; `capacity` is "
                "%lld",
                (long long)number[i], (long long)i, (long long)d->total[i], (long long)c->capacity);
        if (number[i] > c->most_samples && !is_dropped)
            return hbp__fail(c->context, HBP_E_INVALID,
                             "%lld samples are linked with sample %lld; `max_samples` is %lld",
                             (long long)number[i], (long long)i, (long long)c->most_samples);
    }
    hbp__scratch_release(c->context, samples_mark);
    return HBP_OK;
}

static int is_dropped(const drafting *d, int64_t i)
{
    return d->call->options->over_long == HBP_OVERLONG_DROP && d->has_over[d->leader[i]];
}

static int64_t pieces_of(const drafting *d, int64_t i)
{
    const hbp__partition_call *c = d->call;
    return c->options->over_long == HBP_OVERLONG_SPLIT ? hbp__ceil_div(c->length[i], c->capacity) : 1;
}

static hbp_status weigh(hbp__partition_call *c, int64_t i, int64_t tokens, int64_t *weight)
{
    const hbp_partition_options *o = c->options;
    int64_t square, fits = 1;
    if (o->weights) {
        *weight = o->weights[i];
    } else if (!o->linear && !o->square) {
        *weight = tokens;
    } else {
        *weight = 0;
        if (o->linear)
            fits = hbp__mul_i64(o->linear, tokens, weight);
        if (fits && o->square)
            fits = hbp__mul_i64(tokens, tokens, &square) && hbp__mul_i64(o->square, square, &square) &&
                   hbp__add_i64(*weight, square, weight);
    }
    if (!fits || !hbp__add_i64(c->weight_sum, *weight, &c->weight_sum) || c->weight_sum > HBP__MOST_WEIGHT)
        return hbp__fail(c->context, HBP_E_OVERFLOW, "up to sample %lld weights come to more than 2^62",
                         (long long)i);
    return HBP_OK;
}

/* Entries, and the item of each: a leader's first entry opens one. */
static hbp_status list_entries(drafting *d, int64_t *weight, uint32_t *item_of)
{
    hbp__partition_call *c = d->call;
    int64_t entry = 0;
    for (int64_t i = 0; i < c->count; i++) {
        HBP__TRY(hbp__tick_row(c->context, STAGE, i, c->count));
        if (is_dropped(d, i)) {
            c->dropped_id[c->dropped++] = i;
            continue;
        }
        int64_t pieces = pieces_of(d, i), left = c->length[i];
        for (int64_t piece = 0; piece < pieces; piece++, entry++) {
            int64_t most =
                c->options->over_long == HBP_OVERLONG_ALONE ? left : hbp__min_i64(left, c->capacity);
            c->id[entry] = i;
            c->first[entry] = c->length[i] - left;
            c->tokens[entry] = most;
            left -= most;
            HBP__TRY(weigh(c, i, most, &weight[entry]));
            if (d->leader[i] == i) /* a sample that is split is not linked */
                item_of[i] = (uint32_t)c->items++;
            c->item[entry] = item_of[d->leader[i]];
        }
    }
    return HBP_OK;
}

/* Numbers the items anew, class by class, and sums what they hold. `first_entry` [items], `weight` [entries].
 */
static hbp_status group_items(drafting *d, const int64_t *weight, const int64_t *first_entry)
{
    hbp__partition_call *c = d->call;
    uint64_t items = (uint64_t)c->items;
    int64_t *class_of = hbp__take(c->context, items, sizeof *class_of);
    uint32_t *number = hbp__take(c->context, items, sizeof *number);
    uint32_t *class_number = hbp__take(c->context, (uint64_t)c->count, sizeof *class_number);
    HBP__TRY(hbp__scratch_check(c->context, "the items"));
    for (int64_t i = 0; i < c->count; i++)
        class_number[i] = UINT32_MAX;
    for (int64_t j = 0; j < c->items; j++) {
        int64_t sample = c->id[first_entry[j]];
        uint32_t leader = d->class_leader[sample];
        HBP__TRY(hbp__tick_row(c->context, "the items", j, c->items));
        if (c->options->over_long == HBP_OVERLONG_ALONE && d->total[sample] > c->capacity)
            class_of[j] = c->classes++;
        else {
            if (class_number[leader] == UINT32_MAX)
                class_number[leader] = (uint32_t)c->classes++;
            class_of[j] = class_number[leader];
        }
    }
    c->class_first = hbp__take_zero(c->context, (uint64_t)c->classes + 1, sizeof *c->class_first);
    HBP__TRY(hbp__scratch_check(c->context, "the classes"));
    for (int64_t j = 0; j < c->items; j++)
        c->class_first[class_of[j] + 1]++;
    for (int64_t k = 0; k < c->classes; k++)
        c->class_first[k + 1] += c->class_first[k];
    for (int64_t j = 0; j < c->items; j++)
        number[j] = (uint32_t)c->class_first[class_of[j]]++;
    for (int64_t k = c->classes; k > 0; k--)
        c->class_first[k] = c->class_first[k - 1];
    c->class_first[0] = 0;
    for (int64_t e = 0; e < c->entries; e++) {
        uint32_t item = number[c->item[e]];
        c->item[e] = item;
        c->weight[item] += weight[e];
        c->size[item] += c->tokens[e];
        c->samples[item]++;
    }
    return HBP_OK;
}

static hbp_status count_entries(drafting *d)
{
    hbp__partition_call *c = d->call;
    for (int64_t i = 0; i < c->count; i++) {
        c->entries += is_dropped(d, i) ? 0 : pieces_of(d, i);
        if (c->entries > HBP_MAX_SAMPLES)
            return hbp__fail(c->context, HBP_E_OVERFLOW, "`over_long` split makes more than %lld pieces",
                             (long long)HBP_MAX_SAMPLES);
    }
    if (!c->entries)
        return hbp__fail(
            c->context, HBP_E_INVALID,
            "no sample is left: all %lld are longer than `capacity`, %lld tokens, or linked with "
            "one that is",
            (long long)c->count, (long long)c->capacity);
    return HBP_OK;
}

static hbp_status open_draft(drafting *d)
{
    hbp__partition_call *c = d->call;
    uint64_t rows = (uint64_t)c->count;
    d->leader = hbp__take(c->context, rows, sizeof *d->leader);
    d->class_leader = hbp__take_zero(c->context, rows, sizeof *d->class_leader);
    d->total = hbp__take_zero(c->context, rows, sizeof *d->total);
    d->has_over = hbp__take_zero(c->context, rows, sizeof *d->has_over);
    HBP__TRY(hbp__scratch_check(c->context, STAGE));
    for (int64_t i = 0; i < c->count; i++)
        d->leader[i] = (uint32_t)i;
    if (c->options->links)
        HBP__TRY(find_leaders(c, c->options->links, 0, d->leader));
    if (c->options->classes)
        HBP__TRY(find_leaders(c, c->options->classes, INT64_MIN, d->class_leader));
    return HBP_OK;
}

hbp_status hbp__partition_items(hbp__partition_call *c)
{
    drafting d = {.call = c};
    HBP__TRY(check_lengths(c));
    HBP__TRY(open_draft(&d));
    HBP__TRY(check_links(&d));
    HBP__TRY(count_entries(&d));
    uint64_t rows = (uint64_t)c->entries;
    c->id = hbp__take(c->context, rows, sizeof *c->id);
    c->first = hbp__take(c->context, rows, sizeof *c->first);
    c->tokens = hbp__take(c->context, rows, sizeof *c->tokens);
    c->item = hbp__take(c->context, rows, sizeof *c->item);
    c->weight = hbp__take_zero(c->context, rows, sizeof *c->weight);
    c->size = hbp__take_zero(c->context, rows, sizeof *c->size);
    c->samples = hbp__take_zero(c->context, rows, sizeof *c->samples);
    c->dropped_id = hbp__take(c->context, (uint64_t)c->count, sizeof *c->dropped_id);
    int64_t *weight = hbp__take(c->context, rows, sizeof *weight);
    int64_t *first_entry = hbp__take(c->context, rows, sizeof *first_entry);
    uint32_t *item_of = hbp__take(c->context, (uint64_t)c->count, sizeof *item_of);
    HBP__TRY(hbp__scratch_check(c->context, STAGE));
    HBP__TRY(list_entries(&d, weight, item_of));
    for (int64_t e = c->entries; e-- > 0;)
        first_entry[c->item[e]] = e;
    HBP__TRY(group_items(&d, weight, first_entry));
    c->has_links = c->items < c->entries;
    c->has_sizes = c->options->weights || c->options->linear || c->options->square;
    return HBP_OK;
}
