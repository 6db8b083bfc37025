/* From packs, micro-batches and steps to the columns of a plan. O(samples). */
#include <string.h>

#include "base/checked.h"
#include "data/plan.h"
#include "schedule/microbatch.h"

typedef struct assembly {
    hbp_context *context;
    const hbp_packs *packs;
    const hbp_groups *groups;
    const hbp_cost *cost;
    const hbp__micro_batches *batches;
    const hbp__steps *steps;
    hbp_plan *plan;
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
    a->sample = at + count;
}

/* Writes the next row of the packs: pack `p` of group `g` on the ranks from `rank` on; returns how many they
 * are. Sums are taken from the samples just written: the packs' own rows lie far apart in memory in the order
 * of a plan. */
static int32_t write_pack(assembly *a, uint32_t p, int32_t g, int32_t rank)
{
    hbp_plan *plan = a->plan;
    const hbp_groups *groups = a->groups;
    int64_t at = a->pack++, first = a->sample, tokens = 0, padded = 0, squares = 0, loss = 0;
    int32_t row = hbp__cost_row(a->cost, groups->sp[g]);
    if (p != HBP__DUMMY)
        write_samples(a, a->packs->offsets[p], a->packs->offsets[p + 1]);
    for (int64_t i = first; i < a->sample; i++) {
        int64_t length = plan->sample_tokens[i];
        tokens += length;
        padded += hbp__round_up(length, plan->sequence_multiple);
        squares += length * length;
        loss += plan->sample_loss_tokens ? plan->sample_loss_tokens[i] : length;
    }
    padded = hbp__round_up(padded, plan->pack_multiple);
    plan->pack_offsets[at + 1] = a->sample;
    plan->pack_ranks[at] = rank;
    plan->pack_sp[at] = groups->sp[g];
    plan->pack_recompute[at] = groups->recompute[g];
    plan->pack_capacity[at] = groups->pack_length[g];
    plan->pack_tokens[at] = tokens;
    plan->pack_padded_tokens[at] = padded;
    plan->pack_squares[at] = squares;
    plan->pack_loss_tokens[at] = loss;
    plan->pack_ns[at] = hbp__cost_pack_ns(a->cost, row, groups->recompute[g], padded, (double)squares);
    plan->pack_bytes[at] = hbp__cost_pack_bytes(a->cost, row, groups->recompute[g], padded);
    return groups->sp[g];
}

static int64_t write_micro_batch(assembly *a, uint32_t m, int32_t g)
{
    int64_t slowest = 0, places = places_of(a, m, g);
    int32_t rank = 0;
    for (int64_t i = 0; i < places; i++) {
        uint32_t p = m == HBP__DUMMY ? HBP__DUMMY : a->batches->place[a->batches->first[m] + i];
        rank += write_pack(a, p, p == HBP__DUMMY ? g : a->packs->group[p], rank);
        slowest = hbp__max_i64(slowest, a->plan->pack_ns[a->pack - 1]);
    }
    a->plan->micro_batch_ns[a->micro_batch++] = slowest;
    a->plan->micro_batch_offsets[a->micro_batch] = a->pack;
    return slowest;
}

static void write_step(assembly *a, int64_t step)
{
    hbp_plan *plan = a->plan;
    int64_t pack = a->pack, sample = a->sample;
    int64_t ns = hbp__round_i64(a->cost->terms.step_ns), tokens = 0, loss = 0;
    for (int64_t i = a->steps->first[step]; i < a->steps->first[step + 1]; i++)
        ns = hbp__add_saturating(ns, write_micro_batch(a, a->steps->micro_batch[i], group_of(a, step, i)));
    for (; pack < a->pack; pack++) {
        tokens += plan->pack_tokens[pack];
        loss += plan->pack_loss_tokens[pack];
    }
    plan->step_offsets[step + 1] = a->micro_batch;
    plan->step_ns[step] = ns;
    plan->step_tokens[step] = tokens;
    plan->step_loss_tokens[step] = loss;
    plan->step_samples[step] = a->sample - sample;
}

/* Samples of packs that no step took, after those that the lengths' limit dropped. */
static void write_dropped(assembly *a, const uint8_t *used)
{
    const hbp_lengths *lengths = a->packs->lengths;
    hbp_plan *plan = a->plan;
    int64_t at = lengths->dropped;
    for (int64_t i = 0; i < at; i++) {
        plan->dropped_ids[i] = lengths->dropped_id[i];
        plan->dropped_reasons[i] = lengths->dropped_reason[i];
    }
    for (int64_t p = 0; p < a->packs->count; p++)
        for (int64_t i = a->packs->offsets[p]; !used[p] && i < a->packs->offsets[p + 1]; i++, at++) {
            uint32_t sample = a->packs->sample[i];
            plan->dropped_ids[at] = lengths->origin ? lengths->origin[sample] : sample;
            plan->dropped_reasons[at] = HBP_DROPPED_LEFTOVER;
        }
}

/* Rows of each table; marks the packs that a step takes. */
static void count_rows(const assembly *a, int64_t *packs, int64_t *samples, uint8_t *used)
{
    *packs = *samples = 0;
    for (int64_t s = 0; s < a->steps->count; s++)
        for (int64_t i = a->steps->first[s]; i < a->steps->first[s + 1]; i++) {
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
}

static void set_fields(const assembly *a, const hbp_balance_options *options)
{
    const hbp_lengths *lengths = a->packs->lengths;
    hbp_plan *plan = a->plan;
    plan->ranks = a->cost->terms.ranks;
    plan->domain_ranks = a->cost->terms.domain_ranks;
    plan->proven = 1;
    plan->sequence_multiple = a->packs->sequence_multiple;
    plan->pack_multiple = a->packs->pack_multiple;
    plan->micro_batch_multiple = options->micro_batch_multiple;
    plan->first_step = 0;
    plan->overlong_samples = lengths->overlong_samples;
    plan->overlong_tokens = lengths->overlong_tokens;
    plan->seed = options->seed;
    plan->epoch = options->epoch;
    plan->lengths_digest = lengths->digest;
}

hbp_status hbp__assemble(hbp_context *context, const hbp_packs *packs, const hbp_groups *groups,
                         const hbp_cost *cost, const hbp_balance_options *options,
                         const hbp__micro_batches *batches, const hbp__steps *steps, hbp_plan **out)
{
    assembly a = {context, packs, groups, cost, batches, steps, NULL, 0, 0, 0};
    const hbp_lengths *lengths = packs->lengths;
    uint8_t *used = hbp__new_zero(&context->memory, (uint64_t)packs->count, sizeof *used);
    if (!used)
        return hbp__fail_memory(context, "the plan");
    int64_t pack_rows, sample_rows;
    count_rows(&a, &pack_rows, &sample_rows, used);
    a.plan = hbp__plan_new(&context->memory, steps->count, steps->first[steps->count], pack_rows, sample_rows,
                           lengths->dropped + packs->samples - sample_rows,
                           (lengths->first ? HBP__PLAN_SPLIT : 0) | (lengths->loss ? HBP__PLAN_LOSS : 0));
    hbp_status status = a.plan ? HBP_OK : hbp__fail_memory(context, "the plan");
    if (a.plan)
        set_fields(&a, options);
    for (int64_t s = 0; s < steps->count && status == HBP_OK; s++) {
        write_step(&a, s);
        if (a.plan->step_ns[s] == INT64_MAX)
            status = hbp__fail(context, HBP_E_OVERFLOW, "the predicted time of step %lld passes 2^63 ns",
                               (long long)s);
        if (s % 64 == 0 && status == HBP_OK)
            status = hbp__tick(context, "plan", s, steps->count);
    }
    if (status == HBP_OK) {
        write_dropped(&a, used);
        hbp__plan_seal(a.plan);
        *out = a.plan;
    } else {
        hbp_plan_free(a.plan);
    }
    hbp__delete(&context->memory, used);
    return status;
}
