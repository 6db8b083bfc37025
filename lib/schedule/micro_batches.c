#include "base/checked.h"
#include "base/rng.h"
#include "base/sort.h"
#include "schedule/microbatch.h"

#include <string.h>

/* Packs whose predicted times differ by less than this share of the group's longest count as alike. */
#define TIME_CLASSES 1024

/* Streams of the generator, one a use. */
enum { STREAM_PACKS = 0x7061636b };

/* Packs of one time class, `order` [count] ascending: deals them out as from `streams` stretches of the class
 * side by side, one from each in turn. Neighbours in memory were filled from the same runs of items, so a
 * micro-batch of neighbours is less of a mix than one of packs from all over; and a plan reads each stretch
 * in order. */
static void interleave(uint32_t *order, int64_t count, int64_t streams, uint32_t *scratch)
{
    int64_t rows = hbp__ceil_div(count, streams), at = 0;
    for (int64_t row = 0; row < rows; row++)
        for (int64_t from = row; from < count; from += rows)
            scratch[at++] = order[from];
    memcpy(order, scratch, (size_t)count * sizeof *order);
}

/* Interleaves each class of the sorted packs. */
static hbp_status mix_classes(hbp_context *context, const int64_t *key, uint32_t *order, int64_t count,
                              int64_t streams)
{
    uint32_t *scratch = hbp__new(&context->memory, (uint64_t)count, sizeof *scratch);
    if (!scratch)
        return hbp__fail_memory(context, "the order of packs");
    for (int64_t first = 0, end; first < count; first = end) {
        end = first + 1;
        while (end < count && key[order[end]] == key[order[first]])
            end++;
        interleave(order + first, end - first, streams, scratch);
    }
    hbp__delete(&context->memory, scratch);
    return HBP_OK;
}

static hbp_status order_packs(hbp_context *context, const hbp_packs *packs, const hbp_groups *groups,
                              int64_t g, const hbp_cost *cost, const hbp_balance_options *options,
                              uint32_t *order, int64_t count, int64_t *key)
{
    int32_t row = hbp__cost_row(cost, groups->sp[g]);
    int64_t longest = 0;
    for (int64_t i = 0; i < count; i++) {
        uint32_t p = order[i];
        key[p] = options->mode == HBP_BALANCE_SORTED
                     ? packs->squares[p]
                     : hbp__cost_pack_ns(cost, row, groups->recompute[g], packs->padded[p],
                                         (double)packs->squares[p]);
        longest = hbp__max_i64(longest, key[p]);
    }
    if (options->mode == HBP_BALANCE_RANDOM) {
        hbp__rng rng = hbp__rng_make(options->seed, options->epoch, STREAM_PACKS + (uint64_t)g);
        hbp__rng_shuffle_u32(&rng, order, (uint64_t)count);
    }
    if (options->mode == HBP_BALANCE_RANDOM)
        return HBP_OK;
    int64_t class_ns = options->mode == HBP_BALANCE_TIME ? longest / TIME_CLASSES + 1 : 1;
    for (int64_t i = 0; i < count; i++)
        key[order[i]] = (longest - key[order[i]]) / class_ns;
    if (!hbp__sort_by_i64(&context->memory, key, order, count))
        return hbp__fail_memory(context, "the order of packs");
    return options->mode == HBP_BALANCE_TIME ? mix_classes(context, key, order, count, groups->packs[g])
                                             : HBP_OK;
}

static hbp_status order_group(hbp_context *context, const hbp_packs *packs, const hbp_groups *groups,
                              int64_t g, const hbp_cost *cost, const hbp_balance_options *options,
                              hbp__micro_batches *batches, int64_t *key)
{
    int64_t first = batches->group_first[g], last = batches->group_first[g + 1];
    uint32_t *order = batches->place + batches->first[first];
    int64_t count = 0;
    for (int64_t p = 0; p < packs->count; p++)
        if (packs->group[p] == g)
            order[count++] = (uint32_t)p;
    if (options->mode != HBP_BALANCE_GIVEN)
        HBP__TRY(order_packs(context, packs, groups, g, cost, options, order, count, key));
    for (int64_t i = count; i < batches->first[last] - batches->first[first]; i++)
        order[i] = HBP__DUMMY;
    return HBP_OK;
}

hbp_status hbp__micro_batches_open(hbp_context *context, const hbp_packs *packs, const hbp_groups *groups,
                                   const hbp_cost *cost, const hbp_balance_options *options,
                                   hbp__micro_batches *batches)
{
    const hbp__memory *memory = &context->memory;
    int64_t count[HBP__MAX_GROUPS] = {0}, places = 0;
    memset(batches, 0, sizeof *batches);
    batches->memory = *memory;
    for (int64_t p = 0; p < packs->count; p++)
        count[packs->group[p]]++;
    for (int64_t g = 0; g < groups->count; g++) {
        batches->group_first[g] = batches->count;
        batches->count += hbp__ceil_div(count[g], groups->packs[g]);
        places += hbp__round_up(count[g], groups->packs[g]);
        batches->group_first[g + 1] = batches->count;
    }
    batches->group = hbp__new(memory, (uint64_t)batches->count, sizeof *batches->group);
    batches->first = hbp__new(memory, (uint64_t)batches->count + 1, sizeof *batches->first);
    batches->place = hbp__new(memory, (uint64_t)places, sizeof *batches->place);
    int64_t *key = hbp__new(memory, (uint64_t)packs->count, sizeof *key);
    hbp_status status = HBP_OK;
    if (!batches->group || !batches->first || !batches->place || !key)
        status = hbp__fail_memory(context, "the micro-batches");
    int64_t place = 0;
    for (int64_t g = 0; g < groups->count && status == HBP_OK; g++)
        for (int64_t m = batches->group_first[g]; m < batches->group_first[g + 1]; m++) {
            batches->group[m] = (int32_t)g;
            batches->first[m] = place;
            place += groups->packs[g];
        }
    if (status == HBP_OK)
        batches->first[batches->count] = place;
    for (int64_t g = 0; g < groups->count && status == HBP_OK; g++) {
        status = hbp__tick(context, "balance", g, groups->count);
        if (status == HBP_OK && count[g])
            status = order_group(context, packs, groups, g, cost, options, batches, key);
    }
    hbp__delete(memory, key);
    return status;
}

void hbp__micro_batches_close(hbp__micro_batches *batches)
{
    hbp__delete(&batches->memory, batches->group);
    hbp__delete(&batches->memory, batches->first);
    hbp__delete(&batches->memory, batches->place);
    hbp__delete(&batches->memory, batches->kinds);
    memset(batches, 0, sizeof *batches);
}
