/* Items into classes of one size, and patterns of classes back into packs of items. */
#include "pack/fill/class_fill.h"

#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "base/sort.h"
#include "pack/fill/fill.h"
#include "pack/fill/item_fill.h"

void hbp__class_fill_close(hbp__class_fill *fill)
{
    hbp__items_close(&fill->items);
    for (int64_t g = 0; g < fill->groups->count; g++)
        hbp__patterns_close(&fill->patterns[g]);
}

static int64_t item_at(const hbp__class_fill *fill, int64_t i)
{
    return fill->order ? fill->order[i] : i;
}

/* Orders items of one size by their number of samples; only linked samples under a cap need it. */
static hbp_status order_by_weight(hbp__class_fill *fill)
{
    hbp_context *context = fill->context;
    uint64_t rows = (uint64_t)fill->items.count;
    fill->order = hbp__take(context, rows, sizeof *fill->order);
    int64_t mark = hbp__scratch_mark(context);
    uint64_t *keys = hbp__take(context, rows, sizeof *keys);
    HBP__TRY(hbp__scratch_check(context, "the order of linked samples"));
    for (int64_t i = 0; i < fill->items.count; i++) {
        HBP__TRY(hbp__tick_row(context, "fill", i, fill->items.count));
        fill->order[i] = (uint32_t)i;
        keys[i] = (uint64_t)fill->items.size[i] << 32 | (uint64_t)hbp__items_members(&fill->items, i);
    }
    HBP__TRY(hbp__order_by_u64(context, keys, fill->order, fill->items.count, "the order of linked samples"));
    hbp__scratch_release(context, mark);
    return HBP_OK;
}

/* Whether item `i` begins a class, in the order of classes. */
static int begins_class(const hbp__class_fill *fill, int64_t i)
{
    if (!i)
        return 1;
    int64_t a = item_at(fill, i - 1), b = item_at(fill, i);
    return fill->items.size[a] != fill->items.size[b] ||
           (fill->order && hbp__items_members(&fill->items, a) != hbp__items_members(&fill->items, b));
}

/* A class for all lengths that are padded to the same size. */
static hbp_status make_classes_of_bins(hbp__class_fill *fill)
{
    hbp_context *context = fill->context;
    const hbp_lengths *lengths = fill->items.lengths;
    const uint64_t rows = (uint64_t)lengths->bins;
    fill->size = hbp__take(context, rows, sizeof *fill->size);
    fill->number = hbp__take(context, rows, sizeof *fill->number);
    fill->draw = hbp__take(context, rows, sizeof *fill->draw);
    HBP__TRY(hbp__scratch_check(context, "classes of samples"));
    int64_t c = -1;
    for (int64_t bin = 0; bin < lengths->bins; bin++) {
        const int64_t size = hbp__round_up(lengths->bin_length[bin], fill->items.multiple);
        if (c < 0 || fill->size[c] != size) {
            fill->size[++c] = size;
            fill->number[c] = 0;
            fill->draw[c] = (hbp__class_draw){(uint32_t)lengths->bin_first[bin], (uint32_t)bin};
        }
        fill->number[c] += lengths->bin_count[bin];
    }
    fill->classes = (hbp__classes){c + 1, fill->size, fill->number, NULL};
    return HBP_OK;
}

static hbp_status make_classes(hbp__class_fill *fill)
{
    hbp_context *context = fill->context;
    int64_t count = 0;
    for (int64_t i = 0; i < fill->items.count; i++) {
        HBP__TRY(hbp__tick_row(context, "fill", i, fill->items.count));
        count += begins_class(fill, i);
    }
    uint64_t rows = (uint64_t)count;
    fill->size = hbp__take(context, rows, sizeof *fill->size);
    fill->number = hbp__take_zero(context, rows, sizeof *fill->number);
    fill->draw = hbp__take(context, rows, sizeof *fill->draw);
    fill->weight = fill->order ? hbp__take(context, rows, sizeof *fill->weight) : NULL;
    HBP__TRY(hbp__scratch_check(context, "classes of samples"));
    int64_t c = -1;
    for (int64_t i = 0; i < fill->items.count; i++) {
        HBP__TRY(hbp__tick_row(context, "fill", i, fill->items.count));
        if (begins_class(fill, i)) {
            fill->size[++c] = fill->items.size[item_at(fill, i)];
            fill->draw[c] = (hbp__class_draw){(uint32_t)i, 0};
            if (fill->weight)
                fill->weight[c] = hbp__items_members(&fill->items, item_at(fill, i));
        }
        fill->number[c]++;
    }
    fill->classes = (hbp__classes){count, fill->size, fill->number, fill->weight};
    return HBP_OK;
}

/* Linked samples past the cap on samples fit no pack. */
static hbp_status check_weights(const hbp__class_fill *fill)
{
    for (int64_t c = 0; c < fill->classes.count && fill->weight; c++)
        if (fill->weight[c] > fill->max_samples)
            return hbp__items_refuse_linked(fill->context, &fill->items, item_at(fill, fill->draw[c].next),
                                            fill->max_samples);
    return HBP_OK;
}

/* Where each group's classes begin. */
static void assign_groups(hbp__class_fill *fill)
{
    fill->from[0] = 0;
    for (int64_t g = 0; g < fill->groups->count; g++)
        fill->from[g + 1] = hbp__classes_from(&fill->classes, fill->largest[g] + 1);
}

hbp_status hbp__class_fill_open(hbp_context *context, const hbp_lengths *lengths, const hbp_groups *groups,
                                const hbp_fill_options *options, hbp__class_fill *fill)
{
    memset(fill, 0, sizeof *fill);
    fill->context = context;
    fill->groups = groups;
    fill->items.memory = context->memory;
    fill->max_samples = options->max_samples ? options->max_samples : INT64_MAX;
    hbp__fill_limits(groups, options, fill->capacity, fill->largest);
    for (int64_t g = 0; g < groups->count; g++)
        hbp__patterns_open(context, &fill->patterns[g]);
    const int64_t most = fill->capacity[groups->count - 1];
    if (lengths->link) {
        HBP__TRY(hbp__items_open(context, lengths, options->sequence_multiple, most, options->seed,
                                 options->epoch, &fill->items));
        if (options->max_samples)
            HBP__TRY(order_by_weight(fill));
        HBP__TRY(make_classes(fill));
        HBP__TRY(check_weights(fill));
    } else {
        HBP__TRY(hbp__items_open_order(context, lengths, options->sequence_multiple, most, options->seed,
                                       options->epoch, &fill->items));
        HBP__TRY(make_classes_of_bins(fill));
    }
    assign_groups(fill);
    return HBP_OK;
}

hbp__classes hbp__class_fill_own(const hbp__class_fill *fill, int64_t g)
{
    int64_t from = fill->from[g];
    return (hbp__classes){fill->from[g + 1] - from, fill->size + from, fill->number + from,
                          fill->weight ? fill->weight + from : NULL};
}

hbp__room hbp__class_fill_room(const hbp__class_fill *fill, int64_t g)
{
    return (hbp__room){fill->capacity[g], fill->max_samples};
}

void hbp__class_fill_shift(hbp__class_fill *fill, int64_t g)
{
    hbp__patterns *patterns = &fill->patterns[g];
    int64_t runs = patterns->count ? patterns->offsets[patterns->count] : 0;
    for (int64_t k = 0; k < runs; k++)
        patterns->run[k].class_index += (int32_t)fill->from[g];
}

/* The items of a run, linked or not, and the tokens that they take. */
static int64_t name_items(hbp__class_fill *fill, hbp__run run, uint32_t *out)
{
    int64_t at = 0;
    for (int32_t i = 0; i < run.number; i++) {
        const int64_t item = item_at(fill, fill->draw[run.class_index].next++);
        at += hbp__items_write(&fill->items, item, out + at);
    }
    return at;
}

/* What a pack holds. */
typedef struct sums {
    int64_t tokens;
    int64_t squares;
} sums;

/* The samples of a run where nothing is linked, with their lengths: those of the class's bins one after the
 * other. */
static void name_run(hbp__class_fill *fill, hbp__run run, uint32_t *sample, uint16_t *brief, sums *held)
{
    const hbp_lengths *lengths = fill->items.lengths;
    hbp__class_draw *draw = &fill->draw[run.class_index];
    for (int64_t left = run.number, number; left > 0; left -= number, sample += number, brief += number) {
        const int64_t length = lengths->bin_length[draw->bin];
        const uint16_t shown = length <= UINT16_MAX ? (uint16_t)length : 0;
        const uint32_t *from = fill->items.sample + draw->next;
        number = hbp__min_i64(left, lengths->bin_first[draw->bin + 1] - draw->next);
        for (int64_t i = 0; i < number; i++) {
            sample[i] = from[i];
            brief[i] = shown;
        }
        held->tokens += number * length;
        held->squares += number * length * length;
        draw->next += (uint32_t)number;
        if (number < left)
            draw->bin++;
    }
}

/* Names the samples of one pack of a pattern, and measures it where nothing is linked; returns the tokens
 * that it holds, padded. */
static int64_t name_pack(hbp__class_fill *fill, const hbp__patterns *patterns, int64_t p, hbp_packs *packs,
                         int64_t pack)
{
    int64_t at = packs->offsets[pack], padded = 0;
    sums held = {0, 0};
    for (int64_t r = patterns->offsets[p]; r < patterns->offsets[p + 1]; r++) {
        const hbp__run run = patterns->run[r];
        padded += run.number * fill->size[run.class_index];
        if (packs->brief) {
            name_run(fill, run, packs->sample + at, packs->brief + at, &held);
            at += run.number;
        } else {
            at += name_items(fill, run, packs->sample + at);
        }
    }
    packs->tokens[pack] = held.tokens;
    packs->padded[pack] = padded;
    packs->squares[pack] = held.squares;
    packs->offsets[pack + 1] = at;
    return padded;
}

/* Names the samples of group g's packs, which begin at pack *pack; *held gets the tokens they hold, padded.
 */
static hbp_status name_samples(hbp__class_fill *fill, int64_t g, hbp_packs *packs, int64_t *pack,
                               int64_t *held)
{
    const hbp__patterns *patterns = &fill->patterns[g];
    *held = 0;
    for (int64_t p = 0; p < patterns->count; p++)
        for (int64_t k = 0; k < patterns->times[p]; k++, ++*pack) {
            HBP__TRY(hbp__tick_row(fill->context, "fill", *pack, packs->count));
            packs->group[*pack] = (int32_t)g;
            *held += name_pack(fill, patterns, p, packs, *pack);
        }
    return HBP_OK;
}

static hbp_status open_packs(const hbp__class_fill *fill, int64_t count, hbp_packs **out)
{
    const hbp_lengths *lengths = fill->items.lengths;
    hbp_packs *packs = hbp__packs_new(fill->context, lengths, count);
    if (packs && !lengths->link)
        packs->brief = hbp__new(&fill->context->memory, (uint64_t)packs->samples, sizeof *packs->brief);
    if (!packs || (!lengths->link && !packs->brief)) {
        hbp_packs_free(packs);
        return hbp__fail_memory(fill->context, "packs");
    }
    packs->groups = fill->groups->count;
    if (!lengths->link && !lengths->vision)
        packs->unmeasured = 0;
    *out = packs;
    return HBP_OK;
}

hbp_status hbp__class_fill_name(hbp__class_fill *fill, hbp_packs **out)
{
    int64_t count = 0, pack = 0;
    for (int64_t g = 0; g < fill->groups->count; g++)
        count += fill->patterns[g].packs;
    hbp_packs *packs = NULL;
    HBP__TRY(open_packs(fill, count, &packs));
    for (int64_t g = fill->groups->count - 1; g >= 0; g--) {
        int64_t held;
        hbp_status status = name_samples(fill, g, packs, &pack, &held);
        if (status < 0) {
            hbp_packs_free(packs);
            return status;
        }
        packs->bound[g] = held ? hbp__max_i64(fill->bound[g], hbp__ceil_div(held, fill->capacity[g])) : 0;
    }
    *out = packs;
    return HBP_OK;
}
