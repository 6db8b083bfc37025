/* From packs, micro-batches and steps to the columns of a plan. O(samples). */
#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "data/lockstep.h"
#include "schedule/microbatch.h"

typedef struct assembly {
    hbp_context *context;
    const hbp_packs *packs;
    const hbp_groups *groups;
    const hbp_cost *cost;
    const hbp__micro_batches *batches;
    const hbp__steps *steps;
    hbp_plan *plan;
    int64_t *scratch; /* with an order of modalities: twice the samples of the fullest pack */
    hbp__clock clock;
    int64_t micro_batch; /* rows written so far */
    int64_t pack;
    int64_t sample;
} assembly;

/* Group of the dummies of a step's micro-batch; a micro-batch of dummies takes the group of the step's first.
 */
static int32_t group_of(const assembly *a, int64_t step, int64_t at)
{
    uint32_t m = a->steps->micro_batch[at];
    if (m == HBP__DUMMY)
        m = a->steps->micro_batch[a->steps->first[step]];
    return a->batches->group[m];
}

/* Packs of micro-batch `m`, or of one of dummies of group `g`. */
static int64_t places_of(const assembly *a, uint32_t m, int32_t g)
{
    return m == HBP__DUMMY ? a->groups->packs[g] : a->batches->first[m + 1] - a->batches->first[m];
}

static void reorder_i64(int64_t *column, const int64_t *order, int64_t count, int64_t *scratch)
{
    for (int64_t i = 0; i < count; i++)
        scratch[i] = column[order[i]];
    for (int64_t i = 0; i < count; i++)
        column[i] = scratch[i];
}

static void reorder_i32(int32_t *column, const int64_t *order, int64_t count, int64_t *scratch)
{
    for (int64_t i = 0; i < count; i++)
        scratch[i] = column[order[i]];
    for (int64_t i = 0; i < count; i++)
        column[i] = (int32_t)scratch[i];
}

/* Sorts rows [at, at + count) of the samples by kind; those of one kind keep their order. O(count + kinds).
 */
static void sort_kinds(assembly *a, int64_t at, int64_t count)
{
    hbp_plan *plan = a->plan;
    int64_t *order = a->scratch, *scratch = a->scratch + count, next[HBP_MAX_MODALITIES + 1] = {0};
    const int32_t *kind = plan->sample_modalities + at;
    int is_sorted = 1;
    for (int64_t i = 0; i < count; i++) {
        next[kind[i] + 1]++;
        is_sorted &= i == 0 || kind[i - 1] <= kind[i];
    }
    if (is_sorted)
        return;
    for (int32_t k = 0; k < HBP_MAX_MODALITIES; k++)
        next[k + 1] += next[k];
    for (int64_t i = 0; i < count; i++)
        order[next[kind[i]]++] = i;
    reorder_i64(plan->sample_ids + at, order, count, scratch);
    reorder_i32(plan->sample_tokens + at, order, count, scratch);
    reorder_i32(plan->sample_modalities + at, order, count, scratch);
    if (plan->sample_first_tokens)
        reorder_i64(plan->sample_first_tokens + at, order, count, scratch);
    if (plan->sample_loss_tokens)
        reorder_i32(plan->sample_loss_tokens + at, order, count, scratch);
    if (plan->sample_vision)
        reorder_i32(plan->sample_vision + at, order, count, scratch);
}

static void write_samples(assembly *a, int64_t first, int64_t end)
{
    const hbp_lengths *lengths = a->packs->lengths;
    const uint32_t *sample = a->packs->sample + first;
    hbp_plan *plan = a->plan;
    int64_t at = a->sample, count = end - first;
    int64_t *id = plan->sample_ids + at;
    int32_t *tokens = plan->sample_tokens + at;
    if (lengths->origin)
        for (int64_t i = 0; i < count; i++)
            id[i] = lengths->origin[sample[i]];
    else
        for (int64_t i = 0; i < count; i++)
            id[i] = sample[i];
    for (int64_t i = 0; i < count; i++)
        tokens[i] = (int32_t)hbp__packs_length(a->packs, first + i);
    for (int64_t i = 0; plan->sample_first_tokens && i < count; i++)
        plan->sample_first_tokens[at + i] = lengths->first ? lengths->first[sample[i]] : 0;
    for (int64_t i = 0; plan->sample_loss_tokens && i < count; i++)
        plan->sample_loss_tokens[at + i] = (int32_t)lengths->loss[sample[i]];
    for (int64_t i = 0; plan->sample_vision && i < count; i++)
        plan->sample_vision[at + i] = (int32_t)lengths->vision[sample[i]];
    a->sample = at + count;
    if (plan->sample_modalities) {
        for (int64_t i = 0; i < count; i++)
            plan->sample_modalities[at + i] = hbp__lengths_modality(lengths, sample[i]);
        sort_kinds(a, at, count);
    }
}

/* Writes the next row of the packs: pack `p` of group `g` on the ranks from `rank` on; returns how many they
 * are. Sums are taken from the samples just written: the packs' own rows lie far apart in memory in the order
 * of a plan. */
static int32_t write_pack(assembly *a, uint32_t p, int32_t g, int32_t rank)
{
    hbp_plan *plan = a->plan;
    const hbp_groups *groups = a->groups;
    int64_t at = a->pack++, first = a->sample, tokens = 0, padded = 0, squares = 0, loss = 0, vision = 0;
    int32_t row = hbp__cost_row(a->cost, groups->sp[g]);
    int64_t multiple = hbp__plan_sequence_multiple(plan, groups->sp[g]);
    if (p != HBP__DUMMY)
        write_samples(a, a->packs->offsets[p], a->packs->offsets[p + 1]);
    for (int64_t i = first; i < a->sample; i++) {
        int64_t length = plan->sample_tokens[i];
        tokens += length;
        padded += hbp__round_up(length, multiple);
        squares += length * length;
        loss += plan->sample_loss_tokens ? plan->sample_loss_tokens[i] : length;
    }
    for (int64_t i = first; plan->pack_vision && i < a->sample; i++)
        vision += plan->sample_vision[i];
    padded = hbp__round_up(padded, hbp__plan_pack_multiple(plan, groups->sp[g]));
    plan->pack_offsets[at + 1] = a->sample;
    plan->pack_ranks[at] = rank;
    plan->pack_sp[at] = groups->sp[g];
    plan->pack_recompute[at] = groups->recompute[g];
    plan->pack_capacity[at] = groups->pack_length[g];
    plan->pack_tokens[at] = tokens;
    plan->pack_padded_tokens[at] = padded;
    plan->pack_squares[at] = squares;
    plan->pack_loss_tokens[at] = loss;
    if (plan->pack_vision) {
        plan->pack_vision[at] = vision;
        plan->pack_vision_capacity[at] = a->packs->max_vision;
    }
    hbp__load load = {.tokens = padded, .squares = (double)squares, .vision = vision};
    plan->pack_ns[at] = hbp__cost_pack_ns(a->cost, row, groups->recompute[g], load);
    plan->pack_bytes[at] = hbp__cost_pack_bytes(a->cost, row, groups->recompute[g], load);
    return groups->sp[g];
}

/* Kinds of the samples in rows [first, end). */
static int64_t kinds_of(const hbp_plan *plan, int64_t first, int64_t end)
{
    int64_t kinds = 0;
    for (int64_t i = first; i < end; i++)
        kinds |= INT64_C(1) << plan->sample_modalities[i];
    return kinds;
}

static void write_micro_batch(assembly *a, uint32_t m, int32_t g)
{
    int64_t sample = a->sample;
    int64_t slowest = 0, places = places_of(a, m, g);
    int32_t rank = 0;
    for (int64_t i = 0; i < places; i++) {
        uint32_t p = m == HBP__DUMMY ? HBP__DUMMY : a->batches->place[a->batches->first[m] + i];
        rank += write_pack(a, p, p == HBP__DUMMY ? g : a->packs->group[p], rank);
        slowest = hbp__max_i64(slowest, a->plan->pack_ns[a->pack - 1]);
    }
    if (a->plan->micro_batch_modalities)
        a->plan->micro_batch_modalities[a->micro_batch] = kinds_of(a->plan, sample, a->sample);
    a->plan->micro_batch_ns[a->micro_batch++] = slowest;
    a->plan->micro_batch_offsets[a->micro_batch] = a->pack;
}

static void write_step(assembly *a, int64_t step)
{
    hbp_plan *plan = a->plan;
    int64_t pack = a->pack, sample = a->sample, micro_batch = a->micro_batch;
    int64_t tokens = 0, loss = 0;
    for (int64_t i = a->steps->first[step]; i < a->steps->first[step + 1]; i++)
        write_micro_batch(a, a->steps->micro_batch[i], group_of(a, step, i));
    /* Micro-batches of dummies run the kinds of the step's first. */
    int64_t *kinds = plan->micro_batch_modalities;
    for (int64_t m = micro_batch; kinds && m < a->micro_batch; m++)
        kinds[m] = kinds[m] ? kinds[m] : kinds[micro_batch];
    for (; pack < a->pack; pack++) {
        tokens += plan->pack_tokens[pack];
        loss += plan->pack_loss_tokens[pack];
    }
    plan->step_offsets[step + 1] = a->micro_batch;
    plan->step_ns[step] =
        hbp__add_saturating(hbp__clock_step(&a->clock, plan, step), hbp__round_i64(a->cost->terms.step_ns));
    plan->step_tokens[step] = tokens;
    plan->step_loss_tokens[step] = loss;
    plan->step_samples[step] = a->sample - sample;
}

static void drop(assembly *a, int64_t at, uint32_t sample, int32_t reason)
{
    const hbp_lengths *lengths = a->packs->lengths;
    a->plan->dropped_ids[at] = lengths->origin ? lengths->origin[sample] : sample;
    a->plan->dropped_reasons[at] = reason;
    if (!a->plan->dropped_tokens)
        return;
    a->plan->dropped_first_tokens[at] = lengths->first[sample];
    a->plan->dropped_tokens[at] = (int32_t)hbp__lengths_get(lengths, sample);
}

/* Samples that the fill left out and those of packs that no step took, after those that the lengths' limit
 * dropped. */
static hbp_status write_dropped(assembly *a, const uint8_t *used)
{
    const hbp_lengths *lengths = a->packs->lengths;
    hbp_plan *plan = a->plan;
    int64_t at = lengths->dropped;
    for (int64_t i = 0; i < at; i++) {
        HBP__TRY(hbp__tick_row(a->context, "plan", i, at));
        plan->dropped_ids[i] = lengths->dropped_id[i];
        plan->dropped_reasons[i] = lengths->dropped_reason[i];
        if (plan->dropped_tokens)
            plan->dropped_first_tokens[i] = plan->dropped_tokens[i] = 0;
    }
    for (int64_t i = 0; i < a->packs->dropped; i++) {
        HBP__TRY(hbp__tick_row(a->context, "plan", i, a->packs->dropped));
        drop(a, at++, a->packs->dropped_sample[i], a->packs->dropped_reason[i]);
    }
    for (int64_t p = 0; p < a->packs->count; p++) {
        HBP__TRY(hbp__tick_row(a->context, "plan", p, a->packs->count));
        for (int64_t i = a->packs->offsets[p]; !used[p] && i < a->packs->offsets[p + 1]; i++)
            drop(a, at++, a->packs->sample[i], HBP_DROPPED_LEFTOVER);
    }
    return HBP_OK;
}

/* Rows of each table; marks the packs that a step takes. */
static hbp_status count_rows(const assembly *a, int64_t *packs, int64_t *samples, uint8_t *used)
{
    *packs = *samples = 0;
    for (int64_t s = 0; s < a->steps->count; s++)
        for (int64_t i = a->steps->first[s]; i < a->steps->first[s + 1]; i++) {
            HBP__TRY(hbp__tick_row(a->context, "plan", i, a->steps->first[a->steps->count]));
            uint32_t m = a->steps->micro_batch[i];
            *packs += places_of(a, m, group_of(a, s, i));
            if (m == HBP__DUMMY)
                continue;
            for (int64_t j = a->batches->first[m]; j < a->batches->first[m + 1]; j++) {
                uint32_t p = a->batches->place[j];
                if (p == HBP__DUMMY)
                    continue;
                used[p] = 1;
                *samples += a->packs->offsets[p + 1] - a->packs->offsets[p];
            }
        }
    return HBP_OK;
}

static void set_fields(const assembly *a, const hbp_balance_options *options)
{
    const hbp_lengths *lengths = a->packs->lengths;
    hbp_plan *plan = a->plan;
    plan->ranks = a->cost->terms.ranks;
    plan->domain_ranks = a->cost->terms.domain_ranks;
    plan->lockstep_ranks = a->cost->terms.lockstep_ranks;
    plan->complete = 1;
    const hbp__padding *padding = &a->packs->padding;
    int is_own = padding->sequence_multiple > 0;
    plan->sequence_multiple = is_own ? padding->sequence_multiple : a->packs->sequence_multiple;
    plan->pack_multiple = is_own ? padding->pack_multiple : a->packs->pack_multiple;
    plan->sequence_multiple_per_sp = padding->sequence_multiple_per_sp;
    plan->pack_multiple_per_sp = padding->pack_multiple_per_sp;
    plan->micro_batch_multiple = options->micro_batch_multiple;
    plan->first_step = 0;
    plan->overlong_samples = lengths->overlong_samples;
    plan->overlong_tokens = lengths->overlong_tokens;
    plan->seed = options->seed;
    plan->epoch = options->epoch;
    plan->lengths_digest = lengths->digest;
}

/* A plan with room for everything, and what writing it needs besides. */
static hbp_status open_plan(assembly *a, const hbp_balance_options *options, uint8_t *used)
{
    const hbp__memory *memory = &a->context->memory;
    const hbp_lengths *lengths = a->packs->lengths;
    int64_t pack_rows, sample_rows, fullest = 0;
    HBP__TRY(count_rows(a, &pack_rows, &sample_rows, used));
    for (int64_t p = 0; options->modality_order && p < a->packs->count; p++)
        fullest = hbp__max_i64(fullest, a->packs->offsets[p + 1] - a->packs->offsets[p]);
    a->scratch = hbp__take(a->context, (uint64_t)fullest, 2 * sizeof *a->scratch);
    HBP__TRY(hbp__scratch_check(a->context, "the plan"));
    int64_t left = a->packs->dropped + a->packs->samples - sample_rows;
    a->plan = hbp__plan_new(
        memory, a->steps->count, a->steps->first[a->steps->count], pack_rows, sample_rows,
        lengths->dropped + left,
        (lengths->first && left ? HBP__PLAN_PIECES : 0) | (lengths->first ? HBP__PLAN_SPLIT : 0) |
            (lengths->loss ? HBP__PLAN_LOSS : 0) | (lengths->vision ? HBP__PLAN_VISION : 0) |
            (options->modality_order ? HBP__PLAN_MODALITIES : 0));
    if (!a->plan)
        return hbp__fail_memory(a->context, "the plan");
    set_fields(a, options);
    return hbp__clock_open(a->context, a->plan->ranks, a->plan->lockstep_ranks, &a->clock);
}

/* Vision units are not part of what a group's packs were sized for. */
static hbp_status check_memory(const assembly *a)
{
    const hbp_plan *plan = a->plan;
    int64_t limit = a->cost->terms.limit_bytes;
    for (int64_t p = 0; plan->pack_vision && a->cost->terms.vision_bytes > 0 && p < plan->packs; p++)
        if (plan->pack_vision[p] && plan->pack_bytes[p] > limit)
            return hbp__fail(
                a->context, HBP_E_INFEASIBLE,
                "a pack of %lld tokens and %lld vision units needs %lld bytes at SP %d; a GPU has %lld",
                (long long)plan->pack_tokens[p], (long long)plan->pack_vision[p],
                (long long)plan->pack_bytes[p], (int)plan->pack_sp[p], (long long)limit);
    return HBP_OK;
}

static hbp_status assemble(assembly *a, const hbp_balance_options *options)
{
    hbp_context *context = a->context;
    uint8_t *used = hbp__take_zero(context, (uint64_t)a->packs->count, sizeof *used);
    HBP__TRY(hbp__scratch_check(context, "the plan"));
    HBP__TRY(open_plan(a, options, used));
    for (int64_t s = 0; s < a->steps->count; s++) {
        write_step(a, s);
        if (a->plan->step_ns[s] == INT64_MAX)
            return hbp__fail(context, HBP_E_OVERFLOW, "the predicted time of step %lld passes 2^63 ns",
                             (long long)s);
        if (s % 64 == 0)
            HBP__TRY(hbp__tick(context, "plan", s, a->steps->count));
    }
    HBP__TRY(check_memory(a));
    HBP__TRY(write_dropped(a, used));
    return hbp__plan_seal_long(context, a->plan);
}

hbp_status hbp__assemble(hbp_context *context, const hbp_packs *packs, const hbp_groups *groups,
                         const hbp_cost *cost, const hbp_balance_options *options,
                         const hbp__micro_batches *batches, const hbp__steps *steps, hbp_plan **out)
{
    assembly a = {.context = context,
                  .packs = packs,
                  .groups = groups,
                  .cost = cost,
                  .batches = batches,
                  .steps = steps};
    int64_t mark = hbp__scratch_mark(context);
    hbp_status status = assemble(&a, options);
    if (status < 0) {
        hbp_plan_free(a.plan);
        return status;
    }
    hbp__scratch_release(context, mark);
    *out = a.plan;
    return HBP_OK;
}
