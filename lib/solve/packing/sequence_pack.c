/* Next fit O(count), first fit O(count log packs) over a tree of what packs hold, and OmniBal's iterative
 * sampling and filtering O(count rounds) (arXiv 2407.20761). */
#include "solve/packing/sequence_pack.h"

#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "base/sort.h"
#include "solve/fit_tree.h"

#define FULL_SLACK 128
#define TICK       8192

static int64_t weight_of(const hbp__sequence *sequence, uint32_t item)
{
    return sequence->weight ? sequence->weight[item] : 1;
}

hbp_status hbp__next_fit(hbp_context *context, const hbp__sequence *sequence, hbp__room room,
                         uint32_t *pack_of, int64_t *packs)
{
    hbp__room left = {0, 0};
    for (int64_t i = 0; i < sequence->count; i++) {
        if (i % TICK == 0)
            HBP__TRY(hbp__tick(context, "pack", i, sequence->count));
        uint32_t item = sequence->item[i];
        int64_t size = sequence->size[item], weight = weight_of(sequence, item);
        if (!i || size > left.capacity || weight > left.max_weight) {
            left = room;
            ++*packs;
        }
        left.capacity -= size;
        left.max_weight -= weight;
        pack_of[item] = (uint32_t)(*packs - 1);
    }
    return HBP_OK;
}

/* Packs opened so far: what they hold in a tree, what weight they can still take beside it. */
typedef struct open_packs {
    hbp__fit_tree used;
    int64_t *weight; /* [used.leaves]; NULL: no cap */
    int64_t count;
} open_packs;

/* The pack for an item, opened when need be; -1 when memory is short. */
static int64_t first_pack(hbp_context *context, open_packs *open, hbp__room room, int64_t size,
                          int64_t weight)
{
    uint32_t limit = (uint32_t)(room.capacity - size);
    int64_t pack = hbp__fit_tree_first(&open->used, 0, limit);
    while (pack >= 0 && open->weight && open->weight[pack] < weight)
        pack = hbp__fit_tree_first(&open->used, pack + 1, limit);
    if (pack >= 0)
        return pack;
    if (open->count == open->used.leaves) {
        if (!hbp__fit_tree_grow(&open->used, open->count * 2))
            return -1;
        if (open->weight) {
            int64_t *more =
                hbp__renew(&context->memory, open->weight, (uint64_t)open->count * 2, sizeof *more);
            if (!more)
                return -1;
            open->weight = more;
        }
    }
    hbp__fit_tree_set(&open->used, open->count, 0);
    if (open->weight)
        open->weight[open->count] = room.max_weight;
    return open->count++;
}

static hbp_status first_fit_open(hbp_context *context, const hbp__sequence *sequence, hbp__room room,
                                 open_packs *open, uint32_t *pack_of, int64_t packs)
{
    for (int64_t i = 0; i < sequence->count; i++) {
        if (i % TICK == 0)
            HBP__TRY(hbp__tick(context, "pack", i, sequence->count));
        uint32_t item = sequence->item[i];
        int64_t size = sequence->size[item], weight = weight_of(sequence, item);
        int64_t pack = first_pack(context, open, room, size, weight);
        if (pack < 0)
            return hbp__fail_memory(context, "open packs");
        uint32_t used = hbp__fit_tree_get(&open->used, pack) + (uint32_t)size;
        if (open->weight && !(open->weight[pack] -= weight))
            used = HBP__ABSENT;
        hbp__fit_tree_set(&open->used, pack, used);
        pack_of[item] = (uint32_t)(packs + pack);
    }
    return HBP_OK;
}

hbp_status hbp__first_fit(hbp_context *context, const hbp__sequence *sequence, hbp__room room,
                          uint32_t *pack_of, int64_t *packs)
{
    open_packs open = {.count = 0};
    hbp_status status = HBP_OK;
    if (!hbp__fit_tree_open(&context->memory, 64, &open.used))
        status = hbp__fail_memory(context, "open packs");
    if (status == HBP_OK && room.max_weight < INT64_MAX) {
        open.weight = hbp__new(&context->memory, (uint64_t)open.used.leaves, sizeof *open.weight);
        if (!open.weight)
            status = hbp__fail_memory(context, "open packs");
    }
    if (status == HBP_OK)
        status = first_fit_open(context, sequence, room, &open, pack_of, *packs);
    if (status == HBP_OK)
        *packs += open.count;
    hbp__delete(&context->memory, open.weight);
    hbp__fit_tree_close(&open.used);
    return status;
}

/* Keeps the full packs of a round, which packed item[0..count) in order, and closes up the items of the
 * others at the front of `item`: the next round's. *packs counts the kept ones, numbered without gaps. */
static hbp_status keep_full(hbp_context *context, hbp__sequence *round, uint32_t *item, int64_t full,
                            uint32_t *pack_of, int64_t *packs)
{
    int64_t left = 0;
    for (int64_t i = 0, end, ticked = TICK; i < round->count; i = end) {
        int64_t sum = 0;
        if (i >= ticked) {
            HBP__TRY(hbp__tick(context, "pack", i, round->count));
            ticked = i + TICK;
        }
        for (end = i; end < round->count && pack_of[item[end]] == pack_of[item[i]]; end++)
            sum += round->size[item[end]];
        if (sum >= full) {
            uint32_t pack = (uint32_t)(*packs)++;
            /* Equal numbers stand together, so renumbering behind the scan is safe. */
            for (int64_t k = i; k < end; k++)
                pack_of[item[k]] = pack;
        } else {
            memmove(item + left, item + i, (size_t)(end - i) * sizeof *item);
            left += end - i;
        }
    }
    round->count = left;
    return HBP_OK;
}

hbp_status hbp__iterative_fit(hbp_context *context, const hbp__sequence *sequence, hbp__room room,
                              int64_t rounds, hbp__rng *rng, uint32_t *pack_of, int64_t *packs)
{
    int64_t mark = hbp__scratch_mark(context);
    uint32_t *item = hbp__take(context, (uint64_t)sequence->count, sizeof *item);
    HBP__TRY(hbp__scratch_check(context, "items to pack"));
    HBP__TRY(hbp__copy(context, item, sequence->item, (uint64_t)sequence->count * sizeof *item));
    int64_t full = room.capacity - hbp__min_i64(FULL_SLACK, room.capacity / 32);
    hbp__sequence round = *sequence;
    round.item = item;
    for (int64_t r = 1; round.count; r++) {
        int64_t kept = *packs, opened = *packs;
        HBP__TRY(hbp__shuffle(context, rng, item, round.count));
        HBP__TRY(hbp__next_fit(context, &round, room, pack_of, &opened));
        if (r >= rounds || opened - kept < 2) {
            *packs = opened;
            break;
        }
        HBP__TRY(keep_full(context, &round, item, full, pack_of, packs));
    }
    hbp__scratch_release(context, mark);
    return HBP_OK;
}
