/* The columns of a plan, from what is written into it. */
#include "cost/plan_writer.h"

hbp_status hbp__plan_writer_open(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                                 const hbp__plan_rows *rows, int32_t optional, hbp__plan_writer *writer)
{
    const int loss = lengths->loss || lengths->shifted_loss;
    optional |= (lengths->first ? HBP__PLAN_SPLIT : 0) | (loss ? HBP__PLAN_LOSS : 0) |
                (lengths->vision ? HBP__PLAN_VISION : 0);
    *writer = (hbp__plan_writer){.context = context, .cost = cost, .lengths = lengths};
    hbp_plan *plan = writer->plan = hbp__plan_new(&context->memory, rows->steps, rows->micro_batches,
                                                  rows->packs, rows->samples, rows->dropped, optional);
    if (!plan)
        return hbp__fail_memory(context, "the plan");
    plan->ranks = cost->terms.ranks;
    plan->domain_ranks = cost->terms.domain_ranks;
    plan->lockstep_ranks = cost->terms.lockstep_ranks;
    plan->overlong_samples = lengths->overlong_samples;
    plan->overlong_tokens = lengths->overlong_tokens;
    plan->lengths_digest = lengths->digest;
    plan->shifted_loss = lengths->shifted_loss;
    return hbp__clock_open(context, plan->ranks, plan->lockstep_ranks, &writer->clock);
}

/* Column by column: a loop each without a choice inside. */
void hbp__write_samples(hbp__plan_writer *w, const uint32_t *sample, const uint16_t *brief, int64_t count)
{
    const hbp_lengths *lengths = w->lengths;
    hbp_plan *plan = w->plan;
    int64_t at = w->sample;
    int64_t *id = plan->sample_ids + at;
    int32_t *tokens = plan->sample_tokens + at;
    if (lengths->origin)
        for (int64_t i = 0; i < count; i++)
            id[i] = lengths->origin[sample[i]];
    else
        for (int64_t i = 0; i < count; i++)
            id[i] = sample[i];
    for (int64_t i = 0; i < count; i++)
        tokens[i] = brief && brief[i] ? brief[i] : (int32_t)hbp__lengths_get(lengths, sample[i]);
    for (int64_t i = 0; plan->sample_first_tokens && i < count; i++)
        plan->sample_first_tokens[at + i] = lengths->first ? lengths->first[sample[i]] : 0;
    for (int64_t i = 0; plan->sample_loss_tokens && i < count; i++)
        plan->sample_loss_tokens[at + i] = (int32_t)hbp__lengths_loss(lengths, sample[i], tokens[i]);
    for (int64_t i = 0; plan->sample_vision && i < count; i++)
        plan->sample_vision[at + i] = (int32_t)lengths->vision[sample[i]];
    for (int64_t i = 0; plan->sample_modalities && i < count; i++)
        plan->sample_modalities[at + i] = hbp__lengths_modality(lengths, sample[i]);
    w->sample = at + count;
}

hbp__pack_sums hbp__written_sums(const hbp__plan_writer *w, int32_t sp)
{
    hbp__pack_sums sums = {0};
    int64_t multiple = hbp__plan_sequence_multiple(w->plan, sp);
    for (int64_t i = w->plan->pack_offsets[w->pack]; i < w->sample; i++)
        hbp__pack_sums_add(&sums, w->plan, i, multiple);
    sums.padded = hbp__round_up(sums.padded, hbp__plan_pack_multiple(w->plan, sp));
    return sums;
}

void hbp__plan_price_pack(hbp_plan *plan, const hbp_cost *cost, int64_t p, const hbp__pack_sums *sums)
{
    int32_t row = hbp__cost_row(cost, plan->pack_sp[p]), recompute = plan->pack_recompute[p];
    hbp__load load = {.tokens = sums->padded, .squares = (double)sums->squares, .vision = sums->vision};
    plan->pack_tokens[p] = sums->tokens;
    plan->pack_padded_tokens[p] = sums->padded;
    plan->pack_squares[p] = sums->squares;
    plan->pack_loss_tokens[p] = sums->loss;
    plan->pack_ns[p] = hbp__cost_pack_ns(cost, row, recompute, load);
    plan->pack_bytes[p] = hbp__cost_pack_bytes(cost, row, recompute, load);
    if (plan->pack_vision)
        plan->pack_vision[p] = sums->vision;
}

void hbp__write_pack(hbp__plan_writer *w, const hbp__pack_place *place, const hbp__pack_sums *sums)
{
    hbp_plan *plan = w->plan;
    int64_t at = w->pack++;
    plan->pack_offsets[at + 1] = w->sample;
    plan->pack_ranks[at] = place->rank;
    plan->pack_sp[at] = place->sp;
    plan->pack_recompute[at] = place->recompute;
    plan->pack_capacity[at] = place->capacity;
    if (plan->pack_vision_capacity)
        plan->pack_vision_capacity[at] = place->vision_capacity;
    hbp__plan_price_pack(plan, w->cost, at, sums);
}

void hbp__write_micro_batch(hbp__plan_writer *w)
{
    hbp_plan *plan = w->plan;
    int64_t at = w->micro_batch++, slowest = 0, modalities = 0;
    int64_t first = plan->micro_batch_offsets[at];
    for (int64_t p = first; p < w->pack; p++)
        slowest = hbp__max_i64(slowest, plan->pack_ns[p]);
    for (int64_t i = plan->pack_offsets[first]; plan->sample_modalities && i < w->sample; i++)
        modalities |= INT64_C(1) << plan->sample_modalities[i];
    plan->micro_batch_offsets[at + 1] = w->pack;
    plan->micro_batch_ns[at] = slowest;
    if (plan->micro_batch_modalities)
        plan->micro_batch_modalities[at] = modalities;
}

int64_t hbp__write_step(hbp__plan_writer *w)
{
    hbp_plan *plan = w->plan;
    int64_t at = w->step++, first = plan->step_offsets[at], pack = plan->micro_batch_offsets[first];
    int64_t *modalities = plan->micro_batch_modalities, tokens = 0, loss = 0;
    for (int64_t m = first; modalities && m < w->micro_batch; m++)
        modalities[m] = modalities[m] ? modalities[m] : modalities[first];
    for (int64_t p = pack; p < w->pack; p++) {
        tokens += plan->pack_tokens[p];
        loss += plan->pack_loss_tokens[p];
    }
    plan->step_offsets[at + 1] = w->micro_batch;
    plan->step_ns[at] =
        hbp__add_saturating(hbp__clock_step(&w->clock, plan, at), hbp__round_i64(w->cost->terms.step_ns));
    plan->step_tokens[at] = tokens;
    plan->step_loss_tokens[at] = loss;
    plan->step_samples[at] = w->sample - plan->pack_offsets[pack];
    return plan->step_ns[at];
}

hbp_status hbp__plan_write_dropped(hbp_context *context, hbp_plan *plan, const hbp_lengths *lengths)
{
    for (int64_t i = 0; i < lengths->dropped; i++) {
        HBP__TRY(hbp__tick_row(context, "plan", i, lengths->dropped));
        plan->dropped_ids[i] = lengths->dropped_id[i];
        plan->dropped_reasons[i] = lengths->dropped_reason[i];
        if (plan->dropped_tokens)
            plan->dropped_first_tokens[i] = plan->dropped_tokens[i] = 0;
    }
    return HBP_OK;
}

void hbp__plan_write_drop(hbp_plan *plan, int64_t at, const hbp_lengths *lengths, uint32_t sample,
                          int32_t reason)
{
    plan->dropped_ids[at] = lengths->origin ? lengths->origin[sample] : sample;
    plan->dropped_reasons[at] = reason;
    if (!plan->dropped_tokens)
        return;
    plan->dropped_first_tokens[at] = lengths->first[sample];
    plan->dropped_tokens[at] = (int32_t)hbp__lengths_get(lengths, sample);
}
