/* From packs, micro-batches and steps to the columns of a plan. O(samples). */
#include <string.h>

#include "base/checked.h"
#include "base/quantity.h"
#include "base/scratch.h"
#include "cost/plan_writer.h"
#include "schedule/microbatch.h"

typedef struct assembly {
    hbp_context *context;
    const hbp_packs *packs;
    const hbp_groups *groups;
    const hbp_cost *cost;
    const hbp__micro_batches *batches;
    const hbp__steps *steps;
    int64_t *scratch; /* with an order of modalities: twice the samples of the fullest pack */
    hbp__plan_writer writer;
} assembly;

/* Group of the padding packs of a step's micro-batch; a micro-batch of padding packs takes the group of the
 * step's first.
 */
static int32_t group_of(const assembly *a, int64_t step, int64_t at)
{
    uint32_t m = a->steps->micro_batch[at];
    if (m == HBP__PADDING_PACK)
        m = a->steps->micro_batch[a->steps->first[step]];
    return a->batches->group[m];
}

/* Packs of micro-batch `m`, or of one of padding packs of group `g`. */
static int64_t places_of(const assembly *a, uint32_t m, int32_t g)
{
    return m == HBP__PADDING_PACK ? a->groups->packs[g] : a->batches->first[m + 1] - a->batches->first[m];
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

/* Sorts rows [at, at + count) of the samples by kind; those of one kind keep their order. O(count +
 * modalities).
 */
static void sort_kinds(assembly *a, int64_t at, int64_t count)
{
    hbp_plan *plan = a->writer.plan;
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

/* Writes the next row of the packs: pack `p` of group `g` on the ranks from `rank` on; returns how many they
 * are. Sums are taken from the samples just written: the packs' own rows lie far apart in memory in the order
 * of a plan. */
static int32_t write_pack(assembly *a, uint32_t p, int32_t g, int32_t rank)
{
    hbp__plan_writer *w = &a->writer;
    const hbp_packs *packs = a->packs;
    const hbp_groups *groups = a->groups;
    hbp__pack_place place = {rank, groups->sp[g], groups->recompute[g], groups->pack_length[g],
                             packs->max_vision[g]};
    hbp__pack_sums sums = {0};
    if (p != HBP__PADDING_PACK) {
        int64_t at = w->sample, first = packs->offsets[p], count = packs->offsets[p + 1] - first;
        hbp__write_samples(w, packs->sample + first, packs->brief ? packs->brief + first : NULL, count);
        if (w->plan->sample_modalities)
            sort_kinds(a, at, count);
        sums = hbp__written_sums(w, place.sp);
    }
    hbp__write_pack(w, &place, &sums);
    return place.sp;
}

static void write_micro_batch(assembly *a, uint32_t m, int32_t g)
{
    int64_t places = places_of(a, m, g);
    int32_t rank = 0;
    for (int64_t i = 0; i < places; i++) {
        uint32_t p = m == HBP__PADDING_PACK ? HBP__PADDING_PACK : a->batches->place[a->batches->first[m] + i];
        rank += write_pack(a, p, p == HBP__PADDING_PACK ? g : a->packs->group[p], rank);
    }
    hbp__write_micro_batch(&a->writer);
}

static hbp_status write_step(assembly *a, int64_t step)
{
    for (int64_t i = a->steps->first[step]; i < a->steps->first[step + 1]; i++)
        write_micro_batch(a, a->steps->micro_batch[i], group_of(a, step, i));
    if (hbp__write_step(&a->writer) == INT64_MAX)
        return hbp__fail(a->context, HBP_E_OVERFLOW, "the predicted time of step %lld passes 2^63 ns",
                         (long long)step);
    return HBP_OK;
}

/* Samples that the fill left out and those of packs that no step took, after those that the lengths' limit
 * dropped. */
static hbp_status write_dropped(assembly *a, const uint8_t *used)
{
    const hbp_packs *packs = a->packs;
    const hbp_lengths *lengths = packs->lengths;
    hbp_plan *plan = a->writer.plan;
    int64_t at = lengths->dropped;
    HBP__TRY(hbp__plan_write_dropped(a->context, plan, lengths));
    for (int64_t i = 0; i < packs->dropped; i++) {
        HBP__TRY(hbp__tick_row(a->context, "plan", i, packs->dropped));
        hbp__plan_write_drop(plan, at++, lengths, packs->dropped_sample[i], packs->dropped_reason[i]);
    }
    for (int64_t p = 0; p < packs->count; p++) {
        HBP__TRY(hbp__tick_row(a->context, "plan", p, packs->count));
        for (int64_t i = packs->offsets[p]; !used[p] && i < packs->offsets[p + 1]; i++)
            hbp__plan_write_drop(plan, at++, lengths, packs->sample[i], HBP_DROPPED_LEFTOVER);
    }
    return HBP_OK;
}

/* Rows of each table; marks the packs that a step takes. */
static hbp_status count_rows(const assembly *a, hbp__plan_rows *rows, uint8_t *used)
{
    *rows = (hbp__plan_rows){.steps = a->steps->count, .micro_batches = a->steps->first[a->steps->count]};
    for (int64_t s = 0; s < a->steps->count; s++)
        for (int64_t i = a->steps->first[s]; i < a->steps->first[s + 1]; i++) {
            HBP__TRY(hbp__tick_row(a->context, "plan", i, a->steps->first[a->steps->count]));
            uint32_t m = a->steps->micro_batch[i];
            rows->packs += places_of(a, m, group_of(a, s, i));
            if (m == HBP__PADDING_PACK)
                continue;
            for (int64_t j = a->batches->first[m]; j < a->batches->first[m + 1]; j++) {
                uint32_t p = a->batches->place[j];
                if (p == HBP__PADDING_PACK)
                    continue;
                used[p] = 1;
                rows->samples += a->packs->offsets[p + 1] - a->packs->offsets[p];
            }
        }
    rows->dropped = a->packs->lengths->dropped + a->packs->dropped + a->packs->samples - rows->samples;
    return HBP_OK;
}

static void set_fields(const assembly *a, const hbp_balance_options *options)
{
    hbp_plan *plan = a->writer.plan;
    const hbp__padding *padding = &a->packs->padding;
    int is_own = padding->sequence_multiple > 0;
    plan->sequence_multiple = is_own ? padding->sequence_multiple : a->packs->sequence_multiple;
    plan->pack_multiple = is_own ? padding->pack_multiple : a->packs->pack_multiple;
    plan->sequence_multiple_per_sp = padding->sequence_multiple_per_sp;
    plan->pack_multiple_per_sp = padding->pack_multiple_per_sp;
    plan->micro_batch_multiple = options->micro_batch_multiple;
    plan->seed = options->seed;
    plan->epoch = options->epoch;
}

/* A plan with room for everything, and what writing it needs besides. */
static hbp_status open_plan(assembly *a, const hbp_balance_options *options, uint8_t *used)
{
    const hbp_lengths *lengths = a->packs->lengths;
    int64_t fullest = 0;
    hbp__plan_rows rows;
    HBP__TRY(count_rows(a, &rows, used));
    for (int64_t p = 0; options->modality_order && p < a->packs->count; p++)
        fullest = hbp__max_i64(fullest, a->packs->offsets[p + 1] - a->packs->offsets[p]);
    a->scratch = hbp__take(a->context, (uint64_t)fullest, 2 * sizeof *a->scratch);
    HBP__TRY(hbp__scratch_check(a->context, "the plan"));
    int32_t optional = (lengths->first && rows.dropped > lengths->dropped ? HBP__PLAN_PIECES : 0) |
                       (options->modality_order ? HBP__PLAN_MODALITIES : 0);
    HBP__TRY(hbp__plan_writer_open(a->context, lengths, a->cost, &rows, optional, &a->writer));
    set_fields(a, options);
    return HBP_OK;
}

/* Vision units are not part of what a group's packs were sized for. */
static hbp_status check_memory(const assembly *a)
{
    const hbp_plan *plan = a->writer.plan;
    int64_t limit = a->cost->terms.limit_bytes;
    for (int64_t p = 0; plan->pack_vision && a->cost->terms.vision_bytes > 0 && p < plan->packs; p++)
        if (plan->pack_vision[p] && plan->pack_bytes[p] > limit)
            return hbp__fail(
                a->context, HBP_E_INFEASIBLE,
                "a pack of %lld tokens and %lld vision units needs %s at SP %d; a GPU has %s, %s short",
                (long long)plan->pack_tokens[p], (long long)plan->pack_vision[p],
                hbp__say_bytes(plan->pack_bytes[p]).text, (int)plan->pack_sp[p], hbp__say_bytes(limit).text,
                hbp__say_bytes(plan->pack_bytes[p] - limit).text);
    return HBP_OK;
}

static hbp_status assemble_plan(assembly *a, const hbp_balance_options *options)
{
    hbp_context *context = a->context;
    uint8_t *used = hbp__take_zero(context, (uint64_t)a->packs->count, sizeof *used);
    HBP__TRY(hbp__scratch_check(context, "the plan"));
    HBP__TRY(open_plan(a, options, used));
    for (int64_t s = 0; s < a->steps->count; s++) {
        HBP__TRY(write_step(a, s));
        if (s % 64 == 0)
            HBP__TRY(hbp__tick(context, "plan", s, a->steps->count));
    }
    HBP__TRY(check_memory(a));
    HBP__TRY(write_dropped(a, used));
    return hbp__plan_seal_long(context, a->writer.plan);
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
    hbp_status status = assemble_plan(&a, options);
    if (status < 0) {
        hbp_plan_free(a.writer.plan);
        return status;
    }
    hbp__scratch_release(context, mark);
    *out = a.writer.plan;
    return HBP_OK;
}
