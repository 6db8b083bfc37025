/* Plans that keep samples near their place in the input (window_samples), or the number of samples in a step
 * (samples_per_step): the samples are cut into windows, each window is planned by itself with the same
 * groups, and the plans are joined. Tied samples share the window of the first of them, so a window may hold
 * a few samples more or fewer than asked for. */
#include "base/checked.h"
#include "base/rng.h"
#include "data/lengths_subset.h"
#include "data/plan.h"
#include "epoch/epoch.h"
#include "schedule/balance.h"
#include "schedule/even_kinds.h"

enum { STREAM_DRAW = 0x64726177 };

typedef struct windows {
    const hbp__epoch *epoch;
    uint32_t *sample; /* [count] all pieces, window by window */
    int64_t *first;   /* [parts + 1] into sample */
    int64_t parts;
    hbp_plan **part;
    int64_t steps; /* planned so far */
} windows;

/* Puts the pieces in input order, or for samples_per_step in an order drawn from the seed; tied pieces follow
 * the first of them. */
static hbp_status list_samples(windows *w)
{
    hbp_context *context = w->epoch->context;
    const hbp_lengths *lengths = w->epoch->lengths;
    const hbp__memory *memory = &context->memory;
    uint64_t rows = (uint64_t)lengths->count;
    uint32_t *draw = hbp__new(memory, rows, sizeof *draw);
    w->sample = hbp__new(memory, rows, sizeof *w->sample);
    uint32_t *head = lengths->tie ? hbp__new(memory, (uint64_t)lengths->ties, sizeof *head) : NULL;
    uint32_t *next = lengths->tie ? hbp__new(memory, rows, sizeof *next) : NULL;
    if (!draw || !w->sample || (lengths->tie && (!head || !next))) {
        hbp__delete(memory, draw);
        hbp__delete(memory, head);
        hbp__delete(memory, next);
        return hbp__fail_memory(context, "the windows");
    }
    for (int64_t i = 0; i < lengths->count; i++)
        draw[i] = (uint32_t)i;
    if (w->epoch->options.samples_per_step) {
        hbp__rng rng = hbp__rng_make(w->epoch->options.seed, w->epoch->options.epoch, STREAM_DRAW);
        hbp__rng_shuffle_u32(&rng, draw, rows);
    }
    for (int64_t t = 0; lengths->tie && t < lengths->ties; t++)
        head[t] = UINT32_MAX;
    for (int64_t i = lengths->count - 1; lengths->tie && i >= 0; i--) {
        uint32_t tie = lengths->tie[draw[i]];
        next[draw[i]] = UINT32_MAX;
        if (tie != HBP__FREE) {
            next[draw[i]] = head[tie];
            head[tie] = draw[i];
        }
    }
    int64_t at = 0;
    for (int64_t i = 0; i < lengths->count; i++) {
        uint32_t tie = lengths->tie ? lengths->tie[draw[i]] : HBP__FREE;
        if (tie == HBP__FREE)
            w->sample[at++] = draw[i];
        else if (head[tie] == draw[i])
            for (uint32_t s = draw[i]; s != UINT32_MAX; s = next[s])
                w->sample[at++] = s;
    }
    hbp__delete(memory, draw);
    hbp__delete(memory, head);
    hbp__delete(memory, next);
    return HBP_OK;
}

/* Windows of `size` pieces; a border inside a tie moves behind it. */
static hbp_status cut(windows *w, int64_t size)
{
    hbp_context *context = w->epoch->context;
    const hbp_lengths *lengths = w->epoch->lengths;
    int64_t most = hbp__ceil_div(lengths->count, size);
    w->first = hbp__new(&context->memory, (uint64_t)most + 1, sizeof *w->first);
    w->part = hbp__new_zero(&context->memory, (uint64_t)most, sizeof *w->part);
    if (!w->first || !w->part)
        return hbp__fail_memory(context, "the windows");
    for (int64_t at = 0; at < lengths->count;) {
        w->first[w->parts++] = at;
        at = hbp__min_i64(at + size, lengths->count);
        while (lengths->tie && at < lengths->count && lengths->tie[w->sample[at]] != HBP__FREE &&
               lengths->tie[w->sample[at]] == lengths->tie[w->sample[at - 1]])
            at++;
    }
    w->first[w->parts] = lengths->count;
    return HBP_OK;
}

static hbp_status plan_window(windows *w, int64_t i)
{
    const hbp__epoch *epoch = w->epoch;
    hbp_fill_options fill;
    hbp_balance_options balance;
    hbp__epoch_fill_options(&epoch->options, &fill);
    hbp__epoch_balance_options(&epoch->options, &balance);
    /* Each window draws for itself. */
    fill.seed = balance.seed = epoch->options.seed + (uint64_t)i * UINT64_C(0x9e3779b97f4a7c15);
    balance.curriculum_steps = hbp__max_i64(0, balance.curriculum_steps - w->steps);
    hbp_lengths *subset = NULL;
    hbp_packs *packs = NULL;
    hbp_status status = hbp__lengths_subset(epoch->context, epoch->lengths, w->sample + w->first[i],
                                            w->first[i + 1] - w->first[i], &subset);
    if (status >= 0)
        status = hbp_greedy_fill(epoch->context, subset, epoch->groups, &fill, &packs);
    if (status >= 0 && balance.modality_order)
        status = hbp__packs_even_kinds(epoch->context, epoch->groups, balance.seed, balance.epoch, packs);
    int one_step = epoch->options.samples_per_step > 0;
    if (status >= 0 && epoch->options.mode == HBP_EPOCH_MIXED)
        status = hbp__epoch_mix(epoch, subset, epoch->groups, packs, &fill, &balance, one_step, &w->part[i]);
    else if (status >= 0)
        status =
            hbp__balance(epoch->context, packs, epoch->groups, epoch->cost, &balance, one_step, &w->part[i]);
    if (status >= 0)
        w->steps += w->part[i]->steps;
    hbp_packs_free(packs);
    hbp_lengths_free(subset);
    return status;
}

hbp_status hbp__epoch_windows(const hbp__epoch *epoch, hbp_plan **out)
{
    windows w = {epoch, NULL, NULL, 0, NULL, 0};
    hbp_context *context = epoch->context;
    int64_t size =
        epoch->options.samples_per_step ? epoch->options.samples_per_step : epoch->options.window_samples;
    hbp_status status = list_samples(&w);
    if (status >= 0)
        status = cut(&w, size);
    for (int64_t i = 0; i < w.parts && status >= 0; i++) {
        status = hbp__tick(context, "windows", i, w.parts);
        if (status >= 0)
            status = plan_window(&w, i);
    }
    if (status >= 0)
        status = hbp__plan_join(context, w.part, w.parts, epoch->lengths, out);
    if (status >= 0)
        hbp__epoch_seal(epoch, *out);
    for (int64_t i = 0; i < w.parts; i++)
        hbp_plan_free(w.part[i]);
    hbp__delete(&context->memory, w.part);
    hbp__delete(&context->memory, w.first);
    hbp__delete(&context->memory, w.sample);
    return status;
}
