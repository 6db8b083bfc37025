#include "data/tasks/rank_sets.h"

#include <string.h>

#include "base/digest.h"

#define FIRST_SETS 16

static uint64_t hash_ranks(const int32_t *ranks, int64_t count)
{
    hbp__digest digest = hbp__digest_begin();
    hbp__digest_column_i32(&digest, ranks, count);
    return hbp__digest_end(&digest);
}

static int64_t size_of(const hbp__rank_sets *sets, int32_t set)
{
    return sets->offset[set + 1] - sets->offset[set];
}

/* Where the set is, or the free slot where it would go. */
static int64_t find_slot(const hbp__rank_sets *sets, const int32_t *ranks, int64_t count)
{
    int64_t mask = sets->slots - 1;
    int64_t at = (int64_t)(hash_ranks(ranks, count) & (uint64_t)mask);
    for (; sets->slot[at]; at = (at + 1) & mask) {
        int32_t set = sets->slot[at] - 1;
        if (size_of(sets, set) == count &&
            memcmp(&sets->rank[sets->offset[set]], ranks, (size_t)count * sizeof *ranks) == 0)
            break;
    }
    return at;
}

/* Room for one more set of `count` ranks. */
static int grow_sets(hbp__rank_sets *sets, int64_t count)
{
    const hbp__memory *memory = &sets->memory;
    if (sets->count == sets->room || !sets->slot) {
        int32_t room = sets->room ? 2 * sets->room : FIRST_SETS;
        int64_t *offset = hbp__renew(memory, sets->offset, (uint64_t)room + 1, sizeof *offset);
        if (!offset)
            return 0;
        if (!sets->offset)
            offset[0] = 0;
        sets->offset = offset;
        int32_t *slot = hbp__new_zero(memory, 2 * (uint64_t)room, sizeof *slot);
        if (!slot)
            return 0;
        hbp__delete(memory, sets->slot);
        sets->slot = slot;
        sets->slots = 2 * (int64_t)room;
        sets->room = room;
        for (int32_t i = 0; i < sets->count; i++)
            slot[find_slot(sets, &sets->rank[offset[i]], size_of(sets, i))] = i + 1;
    }
    int64_t needed = sets->offset[sets->count] + count;
    if (needed > sets->rank_room) {
        int64_t room = 2 * sets->rank_room > needed ? 2 * sets->rank_room : needed;
        int32_t *rank = hbp__renew(memory, sets->rank, (uint64_t)room, sizeof *rank);
        if (!rank)
            return 0;
        sets->rank = rank;
        sets->rank_room = room;
    }
    return 1;
}

hbp_status hbp__rank_sets_add(hbp_context *context, hbp__rank_sets *sets, const int32_t *ranks, int64_t count,
                              int32_t *number)
{
    if (!sets->memory.alloc)
        sets->memory = context->memory;
    int64_t at = sets->slots ? find_slot(sets, ranks, count) : 0;
    if (!sets->slots || !sets->slot[at]) {
        if (!grow_sets(sets, count))
            return hbp__fail_memory(context, "groups of ranks");
        at = find_slot(sets, ranks, count);
        int64_t end = sets->offset[sets->count];
        memcpy(&sets->rank[end], ranks, (size_t)count * sizeof *ranks);
        sets->offset[++sets->count] = end + count;
        sets->slot[at] = sets->count;
    }
    *number = sets->slot[at] - 1;
    return HBP_OK;
}

void hbp__rank_sets_close(hbp__rank_sets *sets)
{
    if (!sets->memory.alloc)
        return;
    hbp__delete(&sets->memory, sets->offset);
    hbp__delete(&sets->memory, sets->rank);
    hbp__delete(&sets->memory, sets->slot);
    *sets = (hbp__rank_sets){.memory = sets->memory};
}
