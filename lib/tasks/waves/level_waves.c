/* Waves of a level while they are made: O(1) to add an item, and a wave that repeats the one before is joined
 * to it. */
#include "tasks/waves/level_waves.h"

#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"

hbp_status hbp__level_waves_open(hbp_context *context, const hbp__task_problem *problem, int32_t level,
                                 hbp__level_waves *waves)
{
    *waves = (hbp__level_waves){.memory = context->memory,
                                .problem = problem,
                                .base = problem->meta->level_first[level],
                                .end = problem->meta->level_first[level + 1]};
    uint64_t own = (uint64_t)(waves->end - waves->base);
    waves->first = hbp__take(context, 2 * own + 1, sizeof *waves->first);
    waves->last = hbp__take(context, own, sizeof *waves->last);
    HBP__TRY(hbp__scratch_check(context, "waves"));
    hbp__level_waves_clear(waves);
    return HBP_OK;
}

void hbp__level_waves_close(hbp__level_waves *waves)
{
    hbp__delete(&waves->memory, waves->item);
    waves->item = NULL;
}

void hbp__level_waves_clear(hbp__level_waves *waves)
{
    for (int32_t m = 0; m < waves->end - waves->base; m++)
        waves->last[m] = -1;
    waves->used = 0;
    waves->count = 0;
    waves->first[0] = 0;
    waves->length_ns = 0;
}

hbp_status hbp__level_waves_reserve(hbp_context *context, hbp__level_waves *waves, int64_t most,
                                    hbp__wave_item **item)
{
    if (waves->used + most > waves->room) {
        int64_t room = 2 * (waves->used + most);
        hbp__wave_item *grown = hbp__renew(&waves->memory, waves->item, (uint64_t)room, sizeof *grown);
        if (!grown)
            return hbp__fail_memory(context, "waves");
        waves->item = grown;
        waves->room = room;
    }
    *item = waves->item + waves->used;
    return HBP_OK;
}

static int64_t longest_of(const hbp__level_waves *w, int32_t wave)
{
    int64_t longest = 0;
    for (int64_t i = w->first[wave]; i < w->first[wave + 1]; i++)
        longest = hbp__max_i64(longest, hbp__wave_item_time(&w->item[i]));
    return longest;
}

static int repeats_last(const hbp__level_waves *w, int32_t number)
{
    const hbp__wave_item *now = w->item + w->used;
    if (!w->count || w->used - w->first[w->count - 1] != number)
        return 0;
    for (int32_t i = 0; i < number; i++) {
        int64_t before = w->last[now[i].meta_op - w->base];
        if (before < w->first[w->count - 1] || w->item[before].size != now[i].size)
            return 0;
    }
    return 1;
}

void hbp__level_waves_push(hbp__level_waves *waves, int32_t number)
{
    hbp__wave_item *now = waves->item + waves->used;
    if (repeats_last(waves, number)) {
        waves->length_ns -= longest_of(waves, waves->count - 1);
        for (int32_t i = 0; i < number; i++)
            waves->item[waves->last[now[i].meta_op - waves->base]].count += now[i].count;
    } else {
        for (int32_t i = 0; i < number; i++)
            waves->last[now[i].meta_op - waves->base] = waves->used++;
        waves->first[++waves->count] = waves->used;
    }
    waves->length_ns += longest_of(waves, waves->count - 1);
}

hbp_status hbp__level_waves_append(hbp_context *context, hbp__level_waves *waves, hbp__task_slices *slices)
{
    int64_t start = slices->makespan_ns, *done = waves->last; /* operators so far */
    memset(done, 0, (size_t)(waves->end - waves->base) * sizeof *done);
    for (int32_t k = 0, wave = slices->waves; k < waves->count; k++, wave++) {
        for (int64_t i = waves->first[k]; i < waves->first[k + 1]; i++) {
            const hbp__wave_item *t = &waves->item[i];
            int64_t *first = &done[t->meta_op - waves->base];
            hbp__task_slice slice = {
                t->meta_op, (int32_t)*first, t->count, t->gpus, wave, start, start + hbp__wave_item_time(t)};
            HBP__TRY(hbp__task_slices_add(context, slices, &slice));
            *first += t->count;
        }
        start += longest_of(waves, k);
    }
    return HBP_OK;
}
