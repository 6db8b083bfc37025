#include "base/checked.h"
#include "base/sort.h"
#include "pack/fill.h"
#include "pack/items.h"
#include "solve/packer.h"
#include "solve/tight_pack.h"

/* Everything a tight fill holds while it works. */
typedef struct tight {
    hbp_context *context;
    const hbp_groups *groups;
    hbp__items items;
    uint32_t *order; /* [items] items by class; NULL: items are in that order already */
    hbp__classes classes;
    int64_t *size, *number, *weight; /* [classes]; number: items not packed yet */
    int64_t *next;                   /* [classes] the next item to name, an index into `order` */
    int64_t multiple, pack_multiple, max_samples;
    int32_t effort;
    int64_t capacity[HBP__MAX_GROUPS]; /* of a pack, a multiple of pack_multiple */
    int64_t from[HBP__MAX_GROUPS + 1]; /* first class of a group */
    int64_t bound[HBP__MAX_GROUPS];
    hbp__patterns patterns[HBP__MAX_GROUPS]; /* of a group's packs, over all classes */
} tight;

static void tight_close(tight *t)
{
    const hbp__memory *memory = &t->context->memory;
    hbp__items_close(&t->items);
    hbp__delete(memory, t->order);
    hbp__delete(memory, t->size);
    hbp__delete(memory, t->number);
    hbp__delete(memory, t->weight);
    hbp__delete(memory, t->next);
    for (int64_t g = 0; g < t->groups->count; g++)
        hbp__patterns_close(&t->patterns[g]);
}

static int64_t item_at(const tight *t, int64_t i)
{
    return t->order ? t->order[i] : i;
}

/* Orders items of one size by their number of samples; only tied samples under a cap need it. */
static hbp_status order_by_weight(tight *t)
{
    const hbp__memory *memory = &t->context->memory;
    uint64_t rows = (uint64_t)t->items.count;
    t->order = hbp__new(memory, rows, sizeof *t->order);
    uint64_t *keys = hbp__new(memory, rows, sizeof *keys);
    int done = t->order && keys;
    for (int64_t i = 0; i < t->items.count && done; i++) {
        t->order[i] = (uint32_t)i;
        keys[i] = (uint64_t)t->items.size[i] << 32 | (uint64_t)hbp__items_members(&t->items, i);
    }
    done = done && hbp__sort_by_u64(memory, keys, t->order, t->items.count);
    hbp__delete(memory, keys);
    return done ? HBP_OK : hbp__fail_memory(t->context, "the order of tied samples");
}

/* Whether item `i` begins a class, in the order of classes. */
static int begins_class(const tight *t, int64_t i)
{
    if (!i)
        return 1;
    int64_t a = item_at(t, i - 1), b = item_at(t, i);
    return t->items.size[a] != t->items.size[b] ||
           (t->order && hbp__items_members(&t->items, a) != hbp__items_members(&t->items, b));
}

static hbp_status make_classes(tight *t)
{
    const hbp__memory *memory = &t->context->memory;
    int64_t count = 0;
    for (int64_t i = 0; i < t->items.count; i++)
        count += begins_class(t, i);
    uint64_t rows = (uint64_t)count;
    t->size = hbp__new(memory, rows, sizeof *t->size);
    t->number = hbp__new_zero(memory, rows, sizeof *t->number);
    t->next = hbp__new(memory, rows, sizeof *t->next);
    if (t->order)
        t->weight = hbp__new(memory, rows, sizeof *t->weight);
    if (!t->size || !t->number || !t->next || (t->order && !t->weight))
        return hbp__fail_memory(t->context, "classes of samples");
    int64_t c = -1;
    for (int64_t i = 0; i < t->items.count; i++) {
        if (begins_class(t, i)) {
            t->size[++c] = t->items.size[item_at(t, i)];
            t->next[c] = i;
            if (t->weight)
                t->weight[c] = hbp__items_members(&t->items, item_at(t, i));
        }
        t->number[c]++;
    }
    t->classes = (hbp__classes){count, t->size, t->number, t->weight};
    return HBP_OK;
}

/* Tied samples past the cap on samples fit no pack. */
static hbp_status check_weights(const tight *t)
{
    for (int64_t c = 0; c < t->classes.count && t->weight; c++) {
        if (t->weight[c] <= t->max_samples)
            continue;
        uint32_t sample = t->items.sample[item_at(t, t->next[c])];
        const hbp_lengths *lengths = t->items.lengths;
        return hbp__fail(t->context, HBP_E_INFEASIBLE,
                         "sample %lld is tied to %lld others; a pack holds at most %lld samples",
                         (long long)(lengths->origin ? lengths->origin[sample] : sample),
                         (long long)t->weight[c] - 1, (long long)t->max_samples);
    }
    return HBP_OK;
}

/* A group's classes are those up to its threshold that fit its packs; the last group takes what is left. */
static void assign_groups(tight *t)
{
    int64_t last = t->groups->count - 1;
    t->from[0] = 0;
    for (int64_t g = 0; g < last; g++) {
        int64_t limit = hbp__min_i64(t->groups->threshold[g], t->capacity[g]);
        t->from[g + 1] = hbp__max_i64(t->from[g], hbp__classes_from(&t->classes, limit + 1));
    }
    t->from[last + 1] = t->classes.count;
}

/* Fills the gaps of a group's packs with samples of shorter groups, longest first, best fit. */
static hbp_status fill_gaps(tight *t, int64_t g)
{
    hbp__patterns *patterns = &t->patterns[g];
    hbp__room room = {t->capacity[g], t->max_samples};
    hbp__packer packer;
    hbp__packer_open(t->context, HBP__BEST_FIT, room, &packer);
    hbp_status status = HBP_OK;
    for (int64_t p = 0; p < patterns->count && status == HBP_OK; p++)
        status =
            hbp__packer_take(&packer, &t->classes, patterns->times[p], patterns->run + patterns->offsets[p],
                             patterns->offsets[p + 1] - patterns->offsets[p]);
    for (int64_t c = t->from[g] - 1; c >= 0 && status == HBP_OK; c--) {
        if (c % 1024 == 0)
            status = hbp__tick(t->context, "fill", t->from[g] - c, t->from[g]);
        if (status == HBP_OK)
            status = hbp__packer_place(&packer, &t->classes, c, t->number[c], &t->number[c]);
    }
    if (status == HBP_OK) {
        hbp__patterns_clear(patterns);
        status = hbp__packer_write(&packer, patterns);
    }
    hbp__packer_close(&packer);
    return status;
}

static hbp_status fill_group(tight *t, int64_t g)
{
    int64_t from = t->from[g], count = t->from[g + 1] - from;
    hbp__classes own = {count, t->size + from, t->number + from, t->weight ? t->weight + from : NULL};
    hbp__room room = {t->capacity[g], t->max_samples};
    hbp__patterns *patterns = &t->patterns[g];
    HBP__TRY(hbp__tight_pack(t->context, &own, room, t->effort, patterns, &t->bound[g]));
    int64_t runs = patterns->count ? patterns->offsets[patterns->count] : 0;
    for (int64_t k = 0; k < runs; k++)
        patterns->run[k].class_index += (int32_t)from;
    return g && patterns->count ? fill_gaps(t, g) : HBP_OK;
}

/* Names the samples of group g's packs, which begin at pack *pack; returns the tokens they hold, padded. */
static int64_t name_samples(tight *t, int64_t g, hbp_packs *packs, int64_t *pack)
{
    const hbp__patterns *patterns = &t->patterns[g];
    int64_t held = 0;
    for (int64_t p = 0; p < patterns->count; p++) {
        for (int64_t k = 0; k < patterns->times[p]; k++) {
            int64_t at = packs->offsets[*pack];
            for (int64_t r = patterns->offsets[p]; r < patterns->offsets[p + 1]; r++) {
                hbp__run run = patterns->run[r];
                held += run.number * t->size[run.class_index];
                for (int32_t i = 0; i < run.number; i++) {
                    int64_t item = item_at(t, t->next[run.class_index]++);
                    at += hbp__items_write(&t->items, item, packs->sample + at);
                }
            }
            packs->group[*pack] = (int32_t)g;
            packs->offsets[++*pack] = at;
        }
    }
    return held;
}

static hbp_status name_packs(tight *t, hbp_packs **out)
{
    int64_t count = 0, pack = 0;
    for (int64_t g = 0; g < t->groups->count; g++)
        count += t->patterns[g].packs;
    hbp_packs *packs = hbp__packs_new(t->context, t->items.lengths, count);
    if (!packs)
        return hbp__fail_memory(t->context, "packs");
    packs->groups = t->groups->count;
    packs->sequence_multiple = t->multiple;
    packs->pack_multiple = t->pack_multiple;
    for (int64_t g = t->groups->count - 1; g >= 0; g--) {
        int64_t held = name_samples(t, g, packs, &pack);
        packs->bound[g] = held ? hbp__max_i64(t->bound[g], hbp__ceil_div(held, t->capacity[g])) : 0;
    }
    hbp__packs_measure(packs);
    *out = packs;
    return HBP_OK;
}

/* Sets what the options and the groups say. */
static void tight_open(tight *t, const hbp_fill_options *options)
{
    int64_t last = t->groups->count - 1;
    t->multiple = hbp__max_i64(options->sequence_multiple, 1);
    t->pack_multiple = hbp__max_i64(options->pack_multiple, 1);
    t->max_samples = options->max_samples ? options->max_samples : INT64_MAX;
    t->effort = options->effort;
    for (int64_t g = 0; g <= last; g++) {
        t->capacity[g] = t->groups->pack_length[g] / t->pack_multiple * t->pack_multiple;
        hbp__patterns_open(t->context, &t->patterns[g]);
    }
}

hbp_status hbp__fill_tight(hbp_context *context, const hbp_lengths *lengths, const hbp_groups *groups,
                           const hbp_fill_options *options, hbp_packs **out)
{
    tight t = {.context = context, .groups = groups};
    t.items.memory = context->memory;
    tight_open(&t, options);
    hbp_status status = hbp__items_open(context, lengths, t.multiple, t.capacity[groups->count - 1],
                                        options->seed, options->epoch, &t.items);
    if (status == HBP_OK && t.items.next && options->max_samples)
        status = order_by_weight(&t);
    if (status == HBP_OK)
        status = make_classes(&t);
    if (status == HBP_OK)
        status = check_weights(&t);
    if (status == HBP_OK)
        assign_groups(&t);
    for (int64_t g = groups->count - 1; g >= 0 && status == HBP_OK; g--)
        status = fill_group(&t, g);
    if (status == HBP_OK)
        status = name_packs(&t, out);
    tight_close(&t);
    return status;
}
