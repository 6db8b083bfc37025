/* From a solution to the columns of a plan. O(samples + ranks x micro-batches). */
#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "data/lockstep.h"
#include "data/padding.h"
#include "step/step.h"

#define NOBODY (-1)

typedef struct finish {
    const hbp__step *step;
    const hbp__step_solution *solution;
    int64_t *begin;   /* [groups + 1] into `member` */
    uint32_t *member; /* [count] sequences by group */
    int32_t *rank;    /* [groups] first rank */
    int64_t *owner;   /* [ranks] scratch: the group that begins at a rank, or NOBODY */
    hbp__clock clock;
    hbp_plan *plan;
    int64_t pack; /* rows written so far */
    int64_t sample;
} finish;

static hbp_status sort_members(finish *f)
{
    const hbp__step_solution *s = f->solution;
    for (int64_t i = 0; i < f->step->count; i++) {
        HBP__TRY(hbp__tick_row(f->step->context, "plan", i, f->step->count));
        f->begin[s->group[i] + 1]++;
    }
    for (int64_t g = 0; g < s->groups; g++)
        f->begin[g + 1] += f->begin[g];
    for (int64_t i = 0; i < f->step->count; i++) {
        HBP__TRY(hbp__tick_row(f->step->context, "plan", i, f->step->count));
        f->member[f->begin[s->group[i]]++] = (uint32_t)i;
    }
    for (int64_t g = s->groups; g > 0; g--)
        f->begin[g] = f->begin[g - 1];
    f->begin[0] = 0;
    return HBP_OK;
}

static int is_empty(const finish *f, int64_t group)
{
    return f->begin[group] == f->begin[group + 1];
}

/* Places the groups of every micro-batch; *packs gets the number of packs, a dummy for each idle rank. */
static hbp_status place_groups(finish *f, int64_t micro_batches, int64_t *packs)
{
    const hbp__step_solution *s = f->solution;
    *packs = micro_batches * f->step->ranks;
    for (int64_t m = 0; m < s->micro_batches; m++) {
        int64_t first = s->first[m];
        if (s->rank)
            memcpy(f->rank + first, s->rank + first, (size_t)(s->first[m + 1] - first) * sizeof *f->rank);
        else if (!hbp__step_place(f->step, s->degree + first, s->first[m + 1] - first, f->rank + first))
            return hbp__fail(f->step->context, HBP_E_INTERNAL, "the groups of micro-batch %lld have no place",
                             (long long)m);
        for (int64_t g = first; g < s->first[m + 1]; g++)
            if (!is_empty(f, g))
                *packs -= f->step->degree[s->degree[g]].degree - 1;
    }
    return HBP_OK;
}

static void write_samples(finish *f, int64_t group)
{
    const hbp_lengths *lengths = f->step->lengths;
    hbp_plan *plan = f->plan;
    for (int64_t i = f->begin[group]; i < f->begin[group + 1]; i++) {
        int64_t item = hbp__step_item(f->step, (int64_t)f->member[i]);
        uint32_t sample = f->step->items.sample[item];
        while (sample != HBP__NO_SAMPLE) {
            int64_t at = f->sample++;
            plan->sample_ids[at] = lengths->origin ? lengths->origin[sample] : sample;
            plan->sample_tokens[at] = (int32_t)hbp__lengths_get(lengths, sample);
            if (plan->sample_first_tokens)
                plan->sample_first_tokens[at] = lengths->first ? lengths->first[sample] : 0;
            if (plan->sample_loss_tokens)
                plan->sample_loss_tokens[at] = (int32_t)lengths->loss[sample];
            if (plan->sample_vision)
                plan->sample_vision[at] = (int32_t)lengths->vision[sample];
            sample = f->step->items.next ? f->step->items.next[sample] : HBP__NO_SAMPLE;
        }
    }
}

/* The next row of the packs: `group`, or a dummy, from `rank` on. Returns its ranks. */
static int32_t write_pack(finish *f, int64_t group, int32_t rank)
{
    const hbp__step *step = f->step;
    const hbp_cost *cost = step->cost;
    hbp_plan *plan = f->plan;
    int64_t at = f->pack++, first = f->sample, tokens = 0, padded = 0, squares = 0, loss = 0;
    int32_t row = group == NOBODY ? 0 : step->degree[f->solution->degree[group]].row, recompute = 0;
    int64_t capacity = 0, multiple = hbp__plan_sequence_multiple(plan, cost->degree[row]);
    if (group != NOBODY)
        write_samples(f, group);
    for (int64_t i = first; i < f->sample; i++) {
        int64_t length = plan->sample_tokens[i];
        tokens += length;
        padded += hbp__round_up(length, multiple);
        squares += length * length;
        loss += plan->sample_loss_tokens ? plan->sample_loss_tokens[i] : length;
    }
    padded = hbp__round_up(padded, hbp__plan_pack_multiple(plan, cost->degree[row]));
    hbp__load load = {.tokens = padded, .squares = (double)squares};
    for (int64_t i = first; plan->sample_vision && i < f->sample; i++)
        load.vision += plan->sample_vision[i];
    if (group != NOBODY) {
        int32_t j = f->solution->degree[group];
        const hbp__point *way = hbp__step_way_of(step, j, load);
        recompute = way->recompute;
        capacity = hbp__step_vision_capacity(step, j, way, load.vision);
    }
    if (plan->pack_vision) {
        plan->pack_vision[at] = load.vision;
        plan->pack_vision_capacity[at] = step->most_vision;
    }
    plan->pack_offsets[at + 1] = f->sample;
    plan->pack_ranks[at] = rank;
    plan->pack_sp[at] = cost->degree[row];
    plan->pack_recompute[at] = recompute;
    plan->pack_capacity[at] = capacity;
    plan->pack_tokens[at] = tokens;
    plan->pack_padded_tokens[at] = padded;
    plan->pack_squares[at] = squares;
    plan->pack_loss_tokens[at] = loss;
    plan->pack_ns[at] = hbp__cost_pack_ns(cost, row, recompute, load);
    plan->pack_bytes[at] = hbp__cost_pack_bytes(cost, row, recompute, load);
    return plan->pack_sp[at];
}

/* Micro-batch m of the solution, or one of dummies past its last. */
static void write_micro_batch(finish *f, int64_t m)
{
    const hbp__step_solution *s = f->solution;
    int64_t slowest = 0;
    for (int32_t rank = 0; rank < f->step->ranks; rank++)
        f->owner[rank] = NOBODY;
    for (int64_t g = m < s->micro_batches ? s->first[m] : 0; m < s->micro_batches && g < s->first[m + 1]; g++)
        if (!is_empty(f, g))
            f->owner[f->rank[g]] = g;
    for (int32_t rank = 0; rank < f->step->ranks;) {
        rank += write_pack(f, f->owner[rank], rank);
        slowest = hbp__max_i64(slowest, f->plan->pack_ns[f->pack - 1]);
    }
    f->plan->micro_batch_ns[m] = slowest;
    f->plan->micro_batch_offsets[m + 1] = f->pack;
}

static void set_fields(finish *f)
{
    const hbp__step *step = f->step;
    const hbp_lengths *lengths = step->lengths;
    hbp_plan *plan = f->plan;
    plan->ranks = step->ranks;
    plan->domain_ranks = step->domain;
    plan->lockstep_ranks = step->cost->terms.lockstep_ranks;
    plan->complete = f->solution->complete;
    plan->sequence_multiple = step->options.sequence_multiple;
    plan->pack_multiple = step->options.pack_multiple;
    plan->micro_batch_multiple = step->options.micro_batch_multiple;
    plan->sequence_multiple_per_sp = step->options.sequence_multiple_per_sp;
    plan->pack_multiple_per_sp = step->options.pack_multiple_per_sp;
    plan->overlong_samples = lengths->overlong_samples;
    plan->overlong_tokens = lengths->overlong_tokens;
    plan->lengths_digest = lengths->digest;
}

static hbp_status write_step(finish *f)
{
    const hbp__step *step = f->step;
    const hbp_lengths *lengths = step->lengths;
    hbp_plan *plan = f->plan;
    int64_t ns = hbp__round_i64(step->cost->terms.step_ns);
    plan->bound_ns = f->solution->bound_ns ? hbp__add_saturating(f->solution->bound_ns, ns) : 0;
    for (int64_t m = 0, written = 0; m < plan->micro_batches; m++) {
        write_micro_batch(f, m);
        if (f->sample + f->pack < written)
            continue;
        HBP__TRY(hbp__tick(step->context, "plan", f->sample, plan->samples));
        written = f->sample + f->pack + HBP__TICK_ROWS;
    }
    plan->step_offsets[1] = plan->micro_batches;
    plan->step_ns[0] = hbp__add_saturating(ns, hbp__clock_step(&f->clock, plan, 0));
    plan->step_samples[0] = plan->samples;
    plan->step_tokens[0] = plan->step_loss_tokens[0] = 0;
    for (int64_t p = 0; p < plan->packs; p++) {
        plan->step_tokens[0] += plan->pack_tokens[p];
        plan->step_loss_tokens[0] += plan->pack_loss_tokens[p];
    }
    for (int64_t i = 0; i < lengths->dropped; i++) {
        plan->dropped_ids[i] = lengths->dropped_id[i];
        plan->dropped_reasons[i] = lengths->dropped_reason[i];
    }
    return HBP_OK;
}

static hbp_status build(finish *f)
{
    const hbp__step *step = f->step;
    const hbp__step_solution *s = f->solution;
    hbp_context *context = step->context;
    const hbp_lengths *lengths = step->lengths;
    int64_t micro_batches = hbp__step_whole(step, s->micro_batches), packs;
    f->begin = hbp__take_zero(context, (uint64_t)s->groups + 1, sizeof *f->begin);
    f->member = hbp__take(context, (uint64_t)step->count, sizeof *f->member);
    f->rank = hbp__take(context, (uint64_t)s->groups, sizeof *f->rank);
    f->owner = hbp__take(context, (uint64_t)step->ranks, sizeof *f->owner);
    HBP__TRY(hbp__scratch_check(context, "the plan"));
    HBP__TRY(sort_members(f));
    HBP__TRY(place_groups(f, micro_batches, &packs));
    f->plan = hbp__plan_new(&context->memory, 1, micro_batches, packs, lengths->count, lengths->dropped,
                            (lengths->first ? HBP__PLAN_SPLIT : 0) | (lengths->loss ? HBP__PLAN_LOSS : 0) |
                                (lengths->vision ? HBP__PLAN_VISION : 0));
    if (!f->plan)
        return hbp__fail_memory(context, "the plan");
    set_fields(f);
    HBP__TRY(hbp__clock_open(context, f->plan->ranks, f->plan->lockstep_ranks, &f->clock));
    HBP__TRY(write_step(f));
    if (f->plan->step_ns[0] == INT64_MAX)
        return hbp__fail(context, HBP_E_OVERFLOW, "the predicted time of the step passes 2^63 ns");
    return hbp__plan_seal_long(context, f->plan);
}

hbp_status hbp__step_finish(const hbp__step *step, const hbp__step_solution *solution, hbp_plan **out)
{
    int64_t mark = hbp__scratch_mark(step->context);
    finish f = {.step = step, .solution = solution};
    hbp_status status = build(&f);
    if (status >= 0)
        *out = f.plan;
    else
        hbp_plan_free(f.plan);
    return hbp__leave(step->context, mark, status);
}
