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
    fill->next = hbp__take(context, rows, sizeof *fill->next);
    fill->weight = fill->order ? hbp__take(context, rows, sizeof *fill->weight) : NULL;
    HBP__TRY(hbp__scratch_check(context, "classes of samples"));
    int64_t c = -1;
    for (int64_t i = 0; i < fill->items.count; i++) {
        HBP__TRY(hbp__tick_row(context, "fill", i, fill->items.count));
        if (begins_class(fill, i)) {
            fill->size[++c] = fill->items.size[item_at(fill, i)];
            fill->next[c] = i;
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
            return hbp__items_refuse_linked(fill->context, &fill->items, item_at(fill, fill->next[c]),
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
    HBP__TRY(hbp__items_open(context, lengths, options->sequence_multiple, fill->capacity[groups->count - 1],
                             options->seed, options->epoch, &fill->items));
    if (fill->items.next && options->max_samples)
        HBP__TRY(order_by_weight(fill));
    HBP__TRY(make_classes(fill));
    HBP__TRY(check_weights(fill));
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

/* Names the samples of group g's packs, which begin at pack *pack; *held gets the tokens they hold, padded.
 */
static hbp_status name_samples(hbp__class_fill *fill, int64_t g, hbp_packs *packs, int64_t *pack,
                               int64_t *held)
{
    const hbp__patterns *patterns = &fill->patterns[g];
    *held = 0;
    for (int64_t p = 0; p < patterns->count; p++) {
        for (int64_t k = 0; k < patterns->times[p]; k++) {
            HBP__TRY(hbp__tick_row(fill->context, "fill", *pack, packs->count));
            int64_t at = packs->offsets[*pack];
            for (int64_t r = patterns->offsets[p]; r < patterns->offsets[p + 1]; r++) {
                hbp__run run = patterns->run[r];
                *held += run.number * fill->size[run.class_index];
                for (int32_t i = 0; i < run.number; i++) {
                    int64_t item = item_at(fill, fill->next[run.class_index]++);
                    at += hbp__items_write(&fill->items, item, packs->sample + at);
                }
            }
            packs->group[*pack] = (int32_t)g;
            packs->offsets[++*pack] = at;
        }
    }
    return HBP_OK;
}

hbp_status hbp__class_fill_name(hbp__class_fill *fill, hbp_packs **out)
{
    int64_t count = 0, pack = 0;
    for (int64_t g = 0; g < fill->groups->count; g++)
        count += fill->patterns[g].packs;
    hbp_packs *packs = hbp__packs_new(fill->context, fill->items.lengths, count);
    if (!packs)
        return hbp__fail_memory(fill->context, "packs");
    packs->groups = fill->groups->count;
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
