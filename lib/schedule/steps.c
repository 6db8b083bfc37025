/* Steps of one group each: cut from its micro-batches, put in order over the epoch. */
#include "base/checked.h"
#include "base/methods.h"
#include "base/rng.h"
#include "base/scratch.h"
#include "base/sort.h"
#include "schedule/deal.h"
#include "schedule/microbatch.h"
#include "schedule/vision.h"

#include <string.h>

enum { STREAM_STEPS = 0x73746570, STREAM_ORDER = 0x6f726465 };

/* Micro-batches of a step of group g, which has `mine`: no more than those, and a multiple of the caller's
 * factor. Where tokens_per_step has no room for so many, what it has room for, which padding packs complete.
 */
static int64_t step_size(const hbp_groups *groups, const hbp_balance_options *options, int64_t g,
                         int64_t mine)
{
    int64_t multiple = options->micro_batch_multiple,
            size = hbp__round_up(groups->micro_batches[g], multiple);
    if (options->tokens_per_step) {
        size = hbp__max_i64(1, options->tokens_per_step / groups->packs[g] / groups->pack_length[g]);
        size -= size > multiple ? size % multiple : 0;
    }
    return hbp__min_i64(size, hbp__round_up(hbp__max_i64(1, mine), multiple));
}

/* Random order of rows [first, last), unless the caller's order is to be kept. */
static hbp_status draw_rows(hbp_context *context, const hbp_balance_options *options, uint64_t stream,
                            int64_t first, int64_t last, uint32_t *rows)
{
    for (int64_t i = first; i < last; i++)
        rows[i - first] = (uint32_t)i;
    if (hbp__balance_method(options->method) == HBP__BALANCE_GIVEN)
        return HBP_OK;
    hbp__rng rng = hbp__rng_make(options->seed, options->epoch, stream);
    return hbp__shuffle(context, &rng, rows, last - first);
}

/* The rows of group g step by step: drawn, or dealt so that each step has its share of every kind. */
static hbp_status order_rows(hbp_context *context, const hbp__micro_batches *batches,
                             const hbp_groups *groups, const hbp_balance_options *options, int64_t g,
                             uint32_t *rows)
{
    int64_t first = batches->group_first[g], mine = batches->group_first[g + 1] - first;
    int is_dealt = hbp__balance_method(options->method) == HBP__BALANCE_VISION ||
                   (options->modality_order && hbp__balance_method(options->method) != HBP__BALANCE_GIVEN &&
                    hbp__balance_method(options->method) != HBP__BALANCE_RANDOM);
    if (is_dealt) {
        hbp__rng rng = hbp__rng_make(options->seed, options->epoch, STREAM_STEPS + (uint64_t)g);
        return hbp__deal_stretches(context, first, mine, step_size(groups, options, g, mine), &rng, rows);
    }
    return draw_rows(context, options, STREAM_STEPS + (uint64_t)g, first, first + mine, rows);
}

static int steps_alloc(hbp__steps *steps, int64_t count, int64_t micro_batches)
{
    steps->count = count;
    steps->first = hbp__new(&steps->memory, (uint64_t)count + 1, sizeof *steps->first);
    steps->micro_batch = hbp__new(&steps->memory, (uint64_t)micro_batches, sizeof *steps->micro_batch);
    return steps->first && steps->micro_batch;
}

static hbp_status open_one_step(hbp_context *context, const hbp__micro_batches *batches,
                                const hbp_balance_options *options, hbp__steps *steps)
{
    int64_t size = hbp__round_up(batches->count, options->micro_batch_multiple);
    if (!steps_alloc(steps, 1, size))
        return hbp__fail_memory(context, "the steps");
    steps->first[0] = 0;
    steps->first[1] = size;
    HBP__TRY(draw_rows(context, options, STREAM_STEPS, 0, batches->count, steps->micro_batch));
    for (int64_t i = batches->count; i < size; i++)
        steps->micro_batch[i] = HBP__PADDING_PACK;
    return HBP_OK;
}

/* Writes the steps in the order given by `order` (the group of each step). Group g's steps are cut from its
 * drawn micro-batches, in `rows`; its last, incomplete step comes at a random place among them. */
static hbp_status write_steps(hbp_context *context, const hbp__micro_batches *batches,
                              const hbp_groups *groups, const hbp_balance_options *options,
                              const int64_t *count, const int32_t *order, const uint32_t *rows,
                              const uint32_t *turn, hbp__steps *steps)
{
    int64_t done[HBP_MAX_GROUPS] = {0}, before[HBP_MAX_GROUPS + 1] = {0}, at = 0;
    for (int64_t g = 0; g < groups->count; g++)
        before[g + 1] = before[g] + count[g];
    for (int64_t s = 0; s < steps->count; s++) {
        HBP__TRY(hbp__tick_row(context, "steps", s, steps->count));
        int64_t g = order[s], mine = batches->group_first[g + 1] - batches->group_first[g];
        int64_t size = step_size(groups, options, g, mine);
        int64_t first = batches->group_first[g] + (int64_t)turn[before[g] + done[g]++] * size;
        int64_t end = hbp__min_i64(first + size, batches->group_first[g + 1]);
        steps->first[s] = at;
        for (int64_t m = first; m < end; m++)
            steps->micro_batch[at++] = rows[m];
        while ((at - steps->first[s]) % options->micro_batch_multiple)
            steps->micro_batch[at++] = HBP__PADDING_PACK;
    }
    steps->first[steps->count] = at;
    return HBP_OK;
}

hbp_status hbp__steps_open(hbp_context *context, const hbp__micro_batches *batches, const hbp_groups *groups,
                           const hbp_balance_options *options, int one_step, hbp__steps *steps)
{
    memset(steps, 0, sizeof *steps);
    steps->memory = context->memory;
    if (one_step)
        return open_one_step(context, batches, options, steps);
    int64_t count[HBP_MAX_GROUPS], total = 0, room = 0;
    for (int64_t g = 0; g < groups->count; g++) {
        int64_t mine = batches->group_first[g + 1] - batches->group_first[g];
        int64_t size = step_size(groups, options, g, mine);
        count[g] = options->drop_last ? mine / size : hbp__ceil_div(mine, size);
        total += count[g];
        room += count[g] * hbp__round_up(size, options->micro_batch_multiple);
    }
    if (!total)
        return hbp__fail(context, HBP_E_INFEASIBLE,
                         "drop_last leaves no step: every group has less than one");
    int64_t mark = hbp__scratch_mark(context), before = 0;
    int32_t *order = hbp__take(context, (uint64_t)total, sizeof *order);
    uint32_t *rows = hbp__take(context, (uint64_t)batches->count, sizeof *rows);
    uint32_t *turn = hbp__take(context, (uint64_t)total, sizeof *turn);
    HBP__TRY(hbp__scratch_check(context, "the steps"));
    if (!steps_alloc(steps, total, room))
        return hbp__fail_memory(context, "the steps");
    hbp__interleave(count, groups->count, options->curriculum_steps, order);
    for (int64_t g = 0; g < groups->count; g++) {
        HBP__TRY(order_rows(context, batches, groups, options, g, rows + batches->group_first[g]));
        HBP__TRY(draw_rows(context, options, STREAM_ORDER + (uint64_t)g, 0, count[g], turn + before));
        before += count[g];
    }
    HBP__TRY(write_steps(context, batches, groups, options, count, order, rows, turn, steps));
    hbp__scratch_release(context, mark);
    return HBP_OK;
}

void hbp__steps_close(hbp__steps *steps)
{
    if (!steps->memory.release)
        return; /* never opened */
    hbp__delete(&steps->memory, steps->first);
    hbp__delete(&steps->memory, steps->micro_batch);
    memset(steps, 0, sizeof *steps);
}
