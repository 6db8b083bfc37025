/* Packs under two budgets, of one kind (hbp_iterative_fill's method vector) or of groups: samples to items of
 * two sizes, filled by level_fill, and back. */
#include "pack/vision/vector_fill.h"

#include "base/checked.h"
#include "base/rng.h"
#include "base/scratch.h"
#include "base/sort.h"
#include "data/packs/items.h"
#include "pack/fill/fill.h"
#include "pack/fill/item_fill.h"
#include "pack/vision/level_fill.h"

/* The rng's stream of the draws and of the packs' order. */
#define STREAM         UINT64_C(0x766563746f72)
#define SAMPLES_A_TICK 65536

typedef struct vector_fill {
    hbp_context *context;
    const hbp_lengths *lengths;
    const hbp_iterative_fill_options *options;
    const hbp__vector_levels *levels;
    int64_t max_tokens; /* of the longest packs, as far as packs of the pack multiple can use it */
    int64_t max_vision;
    hbp__items items; /* without those that are dropped */
    uint8_t *over;    /* [samples] HBP_DROPPED_* of samples over a budget, and of those linked to one; NULL:
                         none */
    int64_t dropped;
    uint32_t *vision; /* [items] */
    uint32_t *weight; /* [items] samples; NULL: 1 */
    uint32_t *pack_of;
} vector_fill;

static hbp_status check(const vector_fill *f)
{
    return hbp__scratch_check(f->context, "packs under two budgets");
}

/* HBP_DROPPED_* of a sample over a budget, or 0. */
static uint8_t reason_of(const vector_fill *f, int64_t sample)
{
    if (hbp__round_up(hbp__lengths_get(f->lengths, sample), f->options->sequence_multiple) > f->max_tokens)
        return HBP_DROPPED_OVERLONG;
    return hbp__lengths_vision(f->lengths, sample) > f->max_vision ? HBP_DROPPED_OVERVISION : 0;
}

static long long id_of(const vector_fill *f, int64_t sample)
{
    return (long long)(f->lengths->origin ? f->lengths->origin[sample] : sample);
}

static hbp_status refuse_item(const vector_fill *f, int64_t count, int64_t first)
{
    int is_long = reason_of(f, first) == HBP_DROPPED_OVERLONG;
    int64_t size = is_long ? hbp__round_up(hbp__lengths_get(f->lengths, first), f->options->sequence_multiple)
                           : hbp__lengths_vision(f->lengths, first);
    return hbp__fail(f->context, HBP_E_INVALID,
                     "%lld samples are over a budget; the first, sample %lld, has %lld %s%s; "
                     "a pack holds %lld",
                     (long long)count, id_of(f, first), (long long)size, is_long ? "tokens" : "vision units",
                     is_long && f->options->sequence_multiple > 1 ? " with padding" : "",
                     (long long)(is_long ? f->max_tokens : f->max_vision));
}

/* Those linked to a dropped sample go with it, for the reason of the first. */
static hbp_status drop_linked(vector_fill *f)
{
    const hbp_lengths *lengths = f->lengths;
    int64_t mark = hbp__scratch_mark(f->context);
    uint8_t *link = hbp__take_zero(f->context, (uint64_t)lengths->links, sizeof *link);
    HBP__TRY(check(f));
    for (int64_t i = 0; i < lengths->count; i++)
        if (f->over[i] && lengths->link[i] != HBP__FREE && !link[lengths->link[i]])
            link[lengths->link[i]] = f->over[i];
    f->dropped = 0;
    for (int64_t i = 0; i < lengths->count; i++) {
        if (!f->over[i] && lengths->link[i] != HBP__FREE)
            f->over[i] = link[lengths->link[i]];
        f->dropped += f->over[i] != 0;
    }
    hbp__scratch_release(f->context, mark);
    return HBP_OK;
}

/* Finds samples over a budget: refuses them, or marks them to be dropped. */
static hbp_status find_over(vector_fill *f)
{
    const hbp_lengths *lengths = f->lengths;
    int64_t longest = hbp__round_up(lengths->bin_length[lengths->bins - 1], f->options->sequence_multiple);
    if (longest <= f->max_tokens && lengths->max_vision <= f->max_vision)
        return HBP_OK;
    int64_t first = -1;
    f->over = hbp__take_zero(f->context, (uint64_t)lengths->count, sizeof *f->over);
    HBP__TRY(check(f));
    for (int64_t i = 0; i < lengths->count; i++) {
        if (i % SAMPLES_A_TICK == 0)
            HBP__TRY(hbp__tick(f->context, "pack", i, lengths->count));
        f->over[i] = reason_of(f, i);
        if (f->over[i] && !f->dropped++)
            first = i;
    }
    if (f->options->over_long == HBP_OVERLONG_ERROR)
        return refuse_item(f, f->dropped, first);
    if (lengths->link)
        HBP__TRY(drop_linked(f));
    if (f->dropped == lengths->count)
        return hbp__fail(f->context, HBP_E_INVALID,
                         "none of %lld samples is within %lld tokens and %lld vision units",
                         (long long)lengths->count, (long long)f->max_tokens, (long long)f->max_vision);
    return HBP_OK;
}

/* Says that the longest packs do not hold an item. */
static hbp_status refuse_size(const vector_fill *f, uint32_t sample, int64_t tokens, int64_t vision)
{
    const char *linked =
        f->items.next && f->items.next[sample] != HBP__NO_SAMPLE ? " with its linked samples" : "";
    if (tokens > f->max_tokens)
        return hbp__fail(f->context, HBP_E_INFEASIBLE,
                         "sample %lld%s has %lld tokens with padding; a pack holds %lld", id_of(f, sample),
                         linked, (long long)tokens, (long long)f->max_tokens);
    return hbp__fail(
        f->context, HBP_E_INFEASIBLE, "sample %lld%s has %lld vision units; a pack of %lld tokens holds %lld",
        id_of(f, sample), linked, (long long)vision, (long long)f->max_tokens, (long long)f->max_vision);
}

/* Removes dropped items; computes the vision units of the others. */
static hbp_status measure_items(vector_fill *f)
{
    hbp__items *items = &f->items;
    int64_t kept = 0;
    f->vision = hbp__take_zero(f->context, (uint64_t)items->count, sizeof *f->vision);
    HBP__TRY(check(f));
    for (int64_t i = 0; i < items->count; i++) {
        uint32_t sample = items->sample[i];
        if (i % SAMPLES_A_TICK == 0)
            HBP__TRY(hbp__tick(f->context, "pack", i, items->count));
        if (f->over && f->over[sample])
            continue;
        int64_t vision = 0;
        items->sample[kept] = sample;
        items->size[kept] = items->size[i];
        if (!items->next)
            vision = hbp__lengths_vision(f->lengths, sample);
        for (uint32_t s = sample; items->next && s != HBP__NO_SAMPLE; s = items->next[s])
            vision += hbp__lengths_vision(f->lengths, s);
        if (items->size[kept] > f->max_tokens || vision > f->max_vision)
            return refuse_size(f, sample, items->size[kept], vision);
        f->vision[kept++] = (uint32_t)vision;
    }
    items->count = kept;
    return HBP_OK;
}

/* Draws a place for each pack. */
static hbp_status shuffle_packs(vector_fill *f, hbp__rng *rng, uint32_t *place, int64_t packs)
{
    for (int64_t p = 0; p < packs; p++)
        place[p] = (uint32_t)p;
    HBP__TRY(hbp__shuffle(f->context, rng, place, packs));
    for (int64_t i = 0; i < f->items.count; i++) {
        f->pack_of[i] = place[f->pack_of[i]];
        HBP__TRY(hbp__tick_row(f->context, "pack", i, f->items.count));
    }
    return HBP_OK;
}

static hbp_status list_dropped(const vector_fill *f, hbp_packs *packs)
{
    packs->samples = f->lengths->count - f->dropped;
    if (!f->dropped)
        return HBP_OK;
    packs->dropped_sample = hbp__new(&packs->memory, (uint64_t)f->dropped, sizeof *packs->dropped_sample);
    packs->dropped_reason = hbp__new(&packs->memory, (uint64_t)f->dropped, sizeof *packs->dropped_reason);
    if (!packs->dropped_sample || !packs->dropped_reason)
        return hbp__fail_memory(f->context, "packs under two budgets");
    for (int64_t i = 0; i < f->lengths->count; i++) {
        if (!f->over[i])
            continue;
        packs->dropped_sample[packs->dropped] = (uint32_t)i;
        packs->dropped_reason[packs->dropped++] = f->over[i];
    }
    return HBP_OK;
}

/* The group of each pack, in the places that they were drawn. */
static hbp_status list_groups(const vector_fill *f, const hbp__level_packing *packing, const uint32_t *place,
                              int32_t *group)
{
    int64_t p = 0;
    for (int64_t g = f->levels->count - 1; g >= 0; g--)
        for (int64_t end = p + packing->packs[g]; p < end; p++) {
            HBP__TRY(hbp__tick_row(f->context, "pack", p, end));
            group[place[p]] = (int32_t)g;
        }
    return HBP_OK;
}

static hbp_status name_packs(vector_fill *f, const hbp__level_packing *packing, int64_t count,
                             const int32_t *group, hbp_packs **out)
{
    hbp_packs *packs = NULL;
    HBP__TRY(hbp__item_fill_name(f->context, &f->items, f->pack_of, count, group, &packs));
    packs->groups = f->levels->count;
    packs->sequence_multiple = f->options->sequence_multiple;
    packs->pack_multiple = f->options->pack_multiple;
    for (int64_t g = 0; g < packs->groups; g++) {
        packs->bound[g] = packing->bound[g];
        if (packs->vision)
            packs->max_vision[g] = f->levels->level[g].vision;
    }
    hbp_status status = list_dropped(f, packs);
    if (status == HBP_OK)
        status = hbp__packs_measure(f->context, packs);
    if (status == HBP_OK)
        *out = packs;
    else
        hbp_packs_free(packs);
    return status;
}

static hbp_status fill_vectors(vector_fill *f, hbp_packs **out)
{
    const hbp_iterative_fill_options *o = f->options;
    hbp__level_packing packing = {{0}, {0}, NULL};
    int64_t packs = 0;
    HBP__TRY(hbp__items_open(f->context, f->lengths, o->sequence_multiple, UINT32_MAX, o->seed, o->epoch,
                             &f->items));
    HBP__TRY(measure_items(f));
    if (o->max_samples) {
        HBP__TRY(hbp__items_weights(f->context, &f->items, &f->weight));
        HBP__TRY(hbp__items_check_weights(f->context, &f->items, f->weight, o->max_samples));
    }
    f->pack_of = packing.pack_of = hbp__take(f->context, (uint64_t)f->items.count, sizeof *f->pack_of);
    HBP__TRY(check(f));
    hbp__vectors vectors = {.count = f->items.count,
                            .a = f->vision,
                            .b = f->items.size,
                            .weight = f->weight,
                            .max_weight = o->max_samples ? o->max_samples : INT64_MAX};
    hbp__rng rng = hbp__rng_make(o->seed, o->epoch, STREAM);
    HBP__TRY(hbp__level_fill(f->context, &vectors, f->levels, o->effort, &rng, &packing));
    for (int64_t g = 0; g < f->levels->count; g++)
        packs += packing.packs[g];
    uint32_t *place = hbp__take(f->context, (uint64_t)packs, sizeof *place);
    int32_t *group = hbp__take(f->context, (uint64_t)packs, sizeof *group);
    HBP__TRY(check(f));
    HBP__TRY(shuffle_packs(f, &rng, place, packs));
    HBP__TRY(list_groups(f, &packing, place, group));
    return name_packs(f, &packing, packs, group, out);
}

static vector_fill open_fill(hbp_context *context, const hbp_lengths *lengths,
                             const hbp_iterative_fill_options *options, const hbp__vector_levels *levels)
{
    const hbp__vector_level *last = &levels->level[levels->count - 1];
    return (vector_fill){.context = context,
                         .lengths = lengths,
                         .options = options,
                         .levels = levels,
                         .max_tokens = last->tokens,
                         .max_vision = last->vision};
}

hbp_status hbp__vector_fill(hbp_context *context, const hbp_lengths *lengths,
                            const hbp_iterative_fill_options *options, hbp_packs **out)
{
    int64_t mark = hbp__scratch_mark(context);
    int64_t tokens = options->max_tokens / options->pack_multiple * options->pack_multiple;
    hbp__vector_levels one = {1, {{tokens, tokens, options->max_vision, 1}}};
    vector_fill f = open_fill(context, lengths, options, &one);
    hbp_status status = find_over(&f);
    if (status >= 0)
        status = fill_vectors(&f, out);
    hbp__items_close(&f.items);
    return hbp__leave(context, mark, status);
}

/* What packs of the groups hold, and which items each is for. */
static void list_levels(const hbp_groups *groups, const int64_t *max_vision, const hbp_fill_options *options,
                        hbp__vector_levels *levels)
{
    int64_t capacity[HBP_MAX_GROUPS], largest[HBP_MAX_GROUPS];
    hbp__fill_limits(groups, options, capacity, largest);
    levels->count = groups->count;
    for (int64_t g = 0; g < groups->count; g++)
        levels->level[g] = (hbp__vector_level){largest[g], capacity[g], max_vision[g], groups->packs[g]};
}

hbp_status hbp__vector_fill_groups(hbp_context *context, const hbp_lengths *lengths, const hbp_groups *groups,
                                   const int64_t *max_vision, const hbp_fill_options *options,
                                   hbp_packs **out)
{
    int64_t mark = hbp__scratch_mark(context);
    hbp__vector_levels levels;
    hbp_iterative_fill_options own = {.struct_size = sizeof own,
                                      .effort = options->effort ? options->effort : 1,
                                      .max_samples = options->max_samples,
                                      .sequence_multiple = hbp__max_i64(1, options->sequence_multiple),
                                      .pack_multiple = hbp__max_i64(1, options->pack_multiple),
                                      .seed = options->seed,
                                      .epoch = options->epoch};
    hbp_fill_options padded = *options;
    padded.sequence_multiple = own.sequence_multiple;
    padded.pack_multiple = own.pack_multiple;
    list_levels(groups, max_vision, &padded, &levels);
    vector_fill f = open_fill(context, lengths, &own, &levels);
    hbp_status status = fill_vectors(&f, out);
    hbp__items_close(&f.items);
    return hbp__leave(context, mark, status);
}
