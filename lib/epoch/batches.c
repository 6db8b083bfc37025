/* Samples drawn, given or cut into steps. Units are samples, or linked samples together. */
#include "epoch/batches.h"

#include <string.h>

#include "base/checked.h"
#include "base/rng.h"
#include "base/scratch.h"
#include "base/sort.h"
#include "data/lengths/lengths_subset.h"
#include "epoch/units.h"
#include "pack/tuning.h"

enum { STREAM_ORDER = 0x736f7274 };

hbp_status hbp__batches_open(const hbp__epoch *epoch, int64_t most_steps, hbp__batches *b)
{
    const hbp__memory *memory = &epoch->context->memory;
    memset(b, 0, sizeof *b);
    b->memory = *memory;
    uint64_t rows = (uint64_t)most_steps + 1;
    b->first = hbp__new(memory, rows, sizeof *b->first);
    b->sample = hbp__new(memory, (uint64_t)epoch->lengths->count, sizeof *b->sample);
    if (!b->first || !b->sample)
        return hbp__fail_memory(epoch->context, "the batches");
    return hbp__zero(epoch->context, b->first, rows * sizeof *b->first);
}

void hbp__batches_close(hbp__batches *b)
{
    if (!b->memory.release)
        return; /* never opened */
    hbp__delete(&b->memory, b->first);
    hbp__delete(&b->memory, b->sample);
    memset(b, 0, sizeof *b);
}

hbp_status hbp__batches_subset(const hbp__epoch *epoch, hbp_context *context, const hbp__batches *b,
                               int64_t step, hbp_lengths **out)
{
    return hbp__lengths_subset(context, epoch->lengths, b->sample + b->first[step],
                               b->first[step + 1] - b->first[step], out);
}

int64_t hbp__batches_tokens(const hbp__batches *b, const hbp_lengths *lengths, int64_t step)
{
    int64_t tokens = 0;
    for (int64_t i = b->first[step]; i < b->first[step + 1]; i++)
        tokens += hbp__lengths_get(lengths, b->sample[i]);
    return tokens;
}

hbp_status hbp__batches_most_tokens(hbp_context *context, const hbp__batches *b, const hbp_lengths *lengths,
                                    int64_t *most)
{
    *most = 0;
    for (int64_t s = 0, ticked = 0; s < b->steps; s++) {
        *most = hbp__max_i64(*most, hbp__batches_tokens(b, lengths, s));
        if (b->first[s + 1] - ticked < HBP__TICK_ROWS)
            continue;
        ticked = b->first[s + 1];
        HBP__TRY(hbp__tick(context, "batches", s, b->steps));
    }
    return HBP_OK;
}

/* Leaves a last step over that holds too little. */
static hbp_status drop_last_step(const hbp__epoch *epoch, hbp__batches *b)
{
    const hbp_epoch_options *o = &epoch->options;
    int64_t last = b->steps - 1, samples = b->first[b->steps] - b->first[last];
    int64_t tokens = hbp__batches_tokens(b, epoch->lengths, last);
    int64_t slack = o->step_slack ? hbp__max_i64(o->step_slack, 0) : HBP__GROUPS_SLACK;
    int is_short = o->samples_per_step
                       ? samples < o->samples_per_step
                       : tokens < o->tokens_per_step - hbp__percent(o->tokens_per_step, slack);
    if (!is_short)
        return HBP_OK;
    b->steps--;
    if (b->steps)
        return HBP_OK;
    if (o->samples_per_step)
        return hbp__fail(epoch->context, HBP_E_INFEASIBLE,
                         "drop_last leaves no step: there are %lld samples, and samples_per_step is %lld",
                         (long long)samples, (long long)o->samples_per_step);
    return hbp__fail(epoch->context, HBP_E_INFEASIBLE,
                     "drop_last leaves no step: there are %lld tokens, and tokens_per_step is %lld",
                     (long long)tokens, (long long)o->tokens_per_step);
}

/* No more steps than there are units. Two steps in a row that are cut by tokens hold more than one may; one
 * cut by samples of which none are linked is full. The last steps, of the curriculum and of all, may be less.
 */
static int64_t most_steps(const hbp__epoch *epoch, int64_t units)
{
    const hbp_epoch_options *o = &epoch->options;
    int64_t most = units;
    if (o->tokens_per_step)
        most = 2 * (epoch->lengths->tokens / o->tokens_per_step) + 4;
    else if (!epoch->lengths->link)
        most = epoch->lengths->count / o->samples_per_step + 2;
    return hbp__min_i64(most, units);
}

hbp_status hbp__batches_draw(const hbp__epoch *epoch, int64_t shortest, hbp__batches *b)
{
    hbp__units units;
    int64_t mark = hbp__scratch_mark(epoch->context);
    memset(b, 0, sizeof *b);
    hbp_status status = hbp__units_open(epoch, shortest, &units);
    if (status >= 0)
        status = hbp__batches_open(epoch, most_steps(epoch, units.count), b);
    if (status >= 0)
        status = hbp__units_draw(&units, epoch->options.curriculum_steps, INT64_MAX, b);
    if (status >= 0 && epoch->options.drop_last)
        status = drop_last_step(epoch, b);
    hbp__units_close(&units);
    return hbp__leave(epoch->context, mark, status);
}

/* Draws an order of the steps from `first_step` on. */
static hbp_status shuffle_steps(const hbp__epoch *epoch, int64_t first_step, hbp__batches *b)
{
    hbp_context *context = epoch->context;
    const int64_t steps = b->steps - first_step, base = b->first[first_step];
    const int64_t samples = b->first[b->steps] - base;
    uint32_t *order = hbp__take(context, (uint64_t)steps, sizeof *order);
    int64_t *first = hbp__take(context, (uint64_t)steps + 1, sizeof *first);
    uint32_t *sample = hbp__take(context, (uint64_t)samples, sizeof *sample);
    HBP__TRY(hbp__scratch_check(context, "the batches"));
    hbp__rng rng = hbp__rng_make(epoch->options.seed, epoch->options.epoch, STREAM_ORDER);
    for (int64_t s = 0; s < steps; s++)
        order[s] = (uint32_t)s;
    HBP__TRY(hbp__shuffle(context, &rng, order, steps));
    memcpy(first, b->first + first_step, ((size_t)steps + 1) * sizeof *first);
    memcpy(sample, b->sample + base, (size_t)samples * sizeof *sample);
    for (int64_t s = 0; s < steps; s++) {
        const int64_t from = first[order[s]], count = first[order[s] + 1] - from;
        const int64_t at = b->first[first_step + s];
        HBP__TRY(hbp__tick_row(context, "batches", s, steps));
        memcpy(b->sample + at, sample + (from - base), (size_t)count * sizeof *sample);
        b->first[first_step + s + 1] = at + count;
    }
    return HBP_OK;
}

hbp_status hbp__batches_sort(const hbp__epoch *epoch, int64_t shortest, int64_t longer_than, hbp__batches *b)
{
    hbp__units units;
    int64_t mark = hbp__scratch_mark(epoch->context), early = 0;
    memset(b, 0, sizeof *b);
    hbp_status status = hbp__units_open(epoch, shortest, &units);
    if (status >= 0)
        status = hbp__batches_open(epoch, most_steps(epoch, units.count), b);
    if (status >= 0 && epoch->options.curriculum_steps)
        status = hbp__units_draw(&units, epoch->options.curriculum_steps, 0, b);
    early = b->steps;
    if (status >= 0)
        status = hbp__units_sort(&units, longer_than, b);
    if (status >= 0 && epoch->options.drop_last && b->first[b->steps] == epoch->lengths->count)
        status = drop_last_step(epoch, b);
    if (status >= 0)
        status = shuffle_steps(epoch, early, b);
    hbp__units_close(&units);
    return hbp__leave(epoch->context, mark, status);
}

hbp_status hbp__batches_cut(const hbp__epoch *epoch, hbp__batches *b)
{
    const hbp_lengths *lengths = epoch->lengths;
    int64_t size = epoch->options.window_samples, at = 0, mark = hbp__scratch_mark(epoch->context);
    HBP__TRY(hbp__batches_open(epoch, hbp__ceil_div(lengths->count, size), b));
    uint64_t links = lengths->link ? (uint64_t)lengths->links : 0,
             rows = links ? (uint64_t)lengths->count : 0;
    uint32_t *head = hbp__take(epoch->context, links, sizeof *head);
    uint32_t *next = hbp__take(epoch->context, rows, sizeof *next);
    HBP__TRY(hbp__scratch_check(epoch->context, "the windows"));
    for (uint64_t t = 0; t < links; t++)
        head[t] = UINT32_MAX;
    for (int64_t i = (int64_t)rows - 1; i >= 0; i--) {
        HBP__TRY(hbp__tick_row(epoch->context, "windows", i, (int64_t)rows));
        uint32_t link = lengths->link[i];
        next[i] = UINT32_MAX;
        if (link != HBP__FREE) {
            next[i] = head[link];
            head[link] = (uint32_t)i;
        }
    }
    for (int64_t i = 0; i < lengths->count; i++) {
        HBP__TRY(hbp__tick_row(epoch->context, "windows", i, lengths->count));
        uint32_t link = links ? lengths->link[i] : HBP__FREE;
        if (link != HBP__FREE && head[link] != (uint32_t)i)
            continue; /* stands behind the first of them */
        if (at - b->first[hbp__max_i64(b->steps - 1, 0)] >= size || !b->steps)
            b->first[b->steps++] = at;
        for (uint32_t s = (uint32_t)i; s != UINT32_MAX; s = link == HBP__FREE ? UINT32_MAX : next[s])
            b->sample[at++] = s;
    }
    b->first[b->steps] = at;
    hbp__scratch_release(epoch->context, mark);
    return HBP_OK;
}
