/* Next fit, first fit, best fit and the like: one rule each, on the histogram or on samples in a row. */
#include "pack/fill/classic.h"

#include "base/checked.h"
#include "base/methods.h"
#include "base/rng.h"
#include "base/scratch.h"
#include "base/sort.h"
#include "hbp/epoch.h"
#include "pack/fill/class_fill.h"
#include "pack/fill/fill.h"
#include "pack/fill/item_fill.h"
#include "solve/packing/packer.h"
#include "solve/packing/sequence_pack.h"

enum { FIT_STREAM = 0x636c6173, SHUFFLE_STREAM = 0x72616e64 };

/* On the histogram. */
static hbp_status fill_by_rule(hbp_context *context, const hbp_lengths *lengths, const hbp_groups *groups,
                               hbp__pack_rule rule, const hbp_fill_options *options, hbp_packs **out)
{
    hbp__class_fill fill;
    hbp_status status = hbp__class_fill_open(context, lengths, groups, options, &fill);
    if (status == HBP_OK)
        status = hbp__histogram_pack(context, &fill.classes, hbp__class_fill_room(&fill, 0), rule,
                                     &fill.patterns[0]);
    if (status == HBP_OK)
        status = hbp__class_fill_name(&fill, out);
    hbp__class_fill_close(&fill);
    return status;
}

/* Items as the samples come; linked samples where the first of them does. */
static hbp_status given_order(hbp_context *context, const hbp__items *items, uint32_t *order)
{
    int64_t mark = hbp__scratch_mark(context);
    uint64_t *first = hbp__take(context, (uint64_t)items->count, sizeof *first);
    HBP__TRY(hbp__scratch_check(context, "the order of samples"));
    for (int64_t i = 0; i < items->count; i++) {
        HBP__TRY(hbp__tick_row(context, "fill", i, items->count));
        first[i] = items->sample[i];
        for (uint32_t s = items->next ? items->next[items->sample[i]] : HBP__NO_SAMPLE; s != HBP__NO_SAMPLE;
             s = items->next[s])
            first[i] = s < first[i] ? s : first[i];
    }
    HBP__TRY(hbp__order_by_u64(context, first, order, items->count, "the order of samples"));
    hbp__scratch_release(context, mark);
    return HBP_OK;
}

/* One item at a time. `order` and `pack_of` are [items]. */
static hbp_status fill_in_order(hbp_context *context, const hbp__items *items, const uint32_t *weight,
                                hbp__room room, int32_t method, const hbp_fill_options *options,
                                uint32_t *order, uint32_t *pack_of, int64_t *packs)
{
    for (int64_t i = 0; i < items->count; i++) {
        HBP__TRY(hbp__tick_row(context, "fill", i, items->count));
        order[i] = (uint32_t)i;
    }
    if (method != HBP__EPOCH_SORTED)
        HBP__TRY(given_order(context, items, order));
    hbp__sequence sequence = {items->count, order, items->size, weight};
    if (method == HBP__EPOCH_RANDOM || method == HBP__EPOCH_FIRST_FIT_SHUFFLED) {
        hbp__rng rng = hbp__rng_make(options->seed, options->epoch, SHUFFLE_STREAM);
        HBP__TRY(hbp__shuffle(context, &rng, order, items->count));
    }
    if (method == HBP__EPOCH_FIRST_FIT_SHUFFLED)
        return hbp__first_fit(context, &sequence, room, pack_of, packs);
    if (method == HBP__EPOCH_NEXT_FIT || method == HBP__EPOCH_RANDOM)
        return hbp__next_fit(context, &sequence, room, pack_of, packs);
    if (method == HBP__EPOCH_ISF) {
        hbp__rng rng = hbp__rng_make(options->seed, options->epoch, FIT_STREAM);
        return hbp__iterative_fit(context, &sequence, room, HBP__ISF_ROUNDS, &rng, pack_of, packs);
    }
    for (int64_t i = 0; i < items->count; i++) {
        HBP__TRY(hbp__tick_row(context, "fill", i, items->count));
        pack_of[order[i]] = (uint32_t)i;
    }
    *packs = items->count;
    return HBP_OK;
}

static hbp_status fill_items(hbp_context *context, const hbp__items *items, hbp__room room, int32_t method,
                             const hbp_fill_options *options, hbp_packs **out)
{
    uint32_t *weight;
    HBP__TRY(hbp__items_weights(context, items, &weight));
    HBP__TRY(hbp__items_check_weights(context, items, weight, room.max_weight));
    uint32_t *order = hbp__take(context, (uint64_t)items->count, sizeof *order);
    uint32_t *pack_of = hbp__take(context, (uint64_t)items->count, sizeof *pack_of);
    HBP__TRY(hbp__scratch_check(context, "the order of samples"));
    int64_t packs = 0;
    HBP__TRY(fill_in_order(context, items, weight, room, method, options, order, pack_of, &packs));
    return hbp__item_fill_name(context, items, pack_of, packs, NULL, out);
}

static hbp_status fill_by_item(hbp_context *context, const hbp_lengths *lengths, const hbp_groups *groups,
                               int32_t method, const hbp_fill_options *options, hbp_packs **out)
{
    int64_t capacity[HBP_MAX_GROUPS], largest[HBP_MAX_GROUPS];
    hbp__fill_limits(groups, options, capacity, largest);
    hbp__room room = {capacity[0], options->max_samples ? options->max_samples : INT64_MAX};
    hbp__items items;
    hbp_status status = hbp__items_open(context, lengths, options->sequence_multiple, capacity[0],
                                        options->seed, options->epoch, &items);
    if (status == HBP_OK)
        status = fill_items(context, &items, room, method, options, out);
    hbp__items_close(&items);
    return status;
}

hbp_status hbp__fill_classic(hbp_context *context, const hbp_lengths *lengths, const hbp_groups *groups,
                             int32_t method, const hbp_fill_options *options, hbp_packs **out)
{
    hbp_fill_options all = *options;
    all.sequence_multiple = hbp__max_i64(all.sequence_multiple, 1);
    all.pack_multiple = hbp__max_i64(all.pack_multiple, 1);
    if (groups->count != 1)
        return hbp__fail(context, HBP_E_INVALID, "method %s packs one group, not %lld",
                         hbp__epoch_name(method), (long long)groups->count);
    int64_t mark = hbp__scratch_mark(context);
    switch (method) {
    case HBP__EPOCH_BEST_FIT_DECREASING:
        HBP__TRY(fill_by_rule(context, lengths, groups, HBP__BEST_FIT, &all, out));
        break;
    case HBP__EPOCH_FIRST_FIT_DECREASING:
        HBP__TRY(fill_by_rule(context, lengths, groups, HBP__FIRST_FIT, &all, out));
        break;
    case HBP__EPOCH_SPFHP:
        HBP__TRY(fill_by_rule(context, lengths, groups, HBP__WORST_FIT, &all, out));
        break;
    case HBP__EPOCH_NO_PACKING:
    case HBP__EPOCH_SORTED:
    case HBP__EPOCH_NEXT_FIT:
    case HBP__EPOCH_RANDOM:
    case HBP__EPOCH_FIRST_FIT_SHUFFLED:
    case HBP__EPOCH_ISF:
        HBP__TRY(fill_by_item(context, lengths, groups, method, &all, out));
        break;
    default:
        return hbp__fail(context, HBP_E_INVALID, "method %s does not pack", hbp__epoch_name(method));
    }
    hbp__scratch_release(context, mark);
    hbp_status status = hbp__packs_finish(context, groups, &all, *out);
    if (status < 0) {
        hbp_packs_free(*out);
        *out = NULL;
    }
    return status;
}
