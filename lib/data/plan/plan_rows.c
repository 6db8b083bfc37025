#include "data/plan/plan_rows.h"

#include "base/checked.h"

hbp_status hbp__plan_rows_open(hbp_context *context, const hbp_lengths *lengths, const hbp__plan_frame *frame,
                               const hbp__plan_rows *rows, int32_t optional, hbp__plan_writer *writer)
{
    const int loss = lengths && (lengths->loss || lengths->shifted_loss);
    optional |= (lengths && lengths->first ? HBP__PLAN_SPLIT : 0) | (loss ? HBP__PLAN_LOSS : 0) |
                (lengths && lengths->vision ? HBP__PLAN_VISION : 0);
    *writer = (hbp__plan_writer){.context = context,
                                 .lengths = lengths,
                                 .step_ns = frame->step_ns,
                                 .end_step = -1,
                                 .end_micro_batch = -1,
                                 .end_pack = -1};
    hbp_plan *plan = writer->plan = hbp__plan_new(&context->memory, rows->steps, rows->micro_batches,
                                                  rows->packs, rows->samples, rows->dropped, optional);
    if (!plan)
        return hbp__fail(
            context, HBP_E_NO_MEMORY,
            "out of memory for the plan, which lists %lld samples in %lld packs; hbp_plan_patterns "
            "lists none",
            (long long)rows->samples, (long long)rows->packs);
    writer->has_beside = plan->sample_first_tokens || plan->sample_loss_tokens || plan->sample_vision ||
                         plan->sample_modalities || (lengths && lengths->origin);
    plan->ranks = frame->ranks;
    plan->domain_ranks = frame->domain_ranks;
    plan->lockstep_ranks = frame->lockstep_ranks;
    if (lengths) {
        plan->overlong_samples = lengths->overlong_samples;
        plan->overlong_tokens = lengths->overlong_tokens;
        plan->lengths_digest = lengths->digest;
        plan->shifted_loss = lengths->shifted_loss;
    }
    return hbp__clock_open(context, plan->ranks, plan->lockstep_ranks, &writer->clock);
}

/* What stands beside ids and lengths, of `count` samples in rows from `at` on: a loop each without a choice
 * inside. */
static void write_beside(hbp__plan_writer *w, const uint32_t *sample, int64_t at, int64_t count)
{
    const hbp_lengths *lengths = w->lengths;
    hbp_plan *plan = w->plan;
    for (int64_t i = 0; plan->sample_first_tokens && i < count; i++)
        plan->sample_first_tokens[at + i] = lengths->first ? lengths->first[sample[i]] : 0;
    for (int64_t i = 0; plan->sample_loss_tokens && i < count; i++)
        plan->sample_loss_tokens[at + i] =
            (int32_t)hbp__lengths_loss(lengths, sample[i], plan->sample_tokens[at + i]);
    for (int64_t i = 0; plan->sample_vision && i < count; i++)
        plan->sample_vision[at + i] = (int32_t)lengths->vision[sample[i]];
    for (int64_t i = 0; plan->sample_modalities && i < count; i++)
        plan->sample_modalities[at + i] = hbp__lengths_modality(lengths, sample[i]);
}

/* Without lengths all tokens carry loss but the first of a sample. */
static void write_shifted(hbp__plan_writer *w, int64_t at, int64_t count)
{
    for (int64_t i = at; i < at + count; i++)
        w->plan->sample_loss_tokens[i] = w->plan->sample_tokens[i] - 1;
}

void hbp__write_samples(hbp__plan_writer *w, const uint32_t *sample, const uint16_t *brief, int64_t count)
{
    const hbp_lengths *lengths = w->lengths;
    int64_t at = w->sample;
    int64_t *id = w->plan->sample_ids + at;
    int32_t *tokens = w->plan->sample_tokens + at;
    if (lengths->origin)
        for (int64_t i = 0; i < count; i++)
            id[i] = lengths->origin[sample[i]];
    else
        for (int64_t i = 0; i < count; i++)
            id[i] = sample[i];
    for (int64_t i = 0; i < count; i++)
        tokens[i] = brief && brief[i] ? brief[i] : (int32_t)hbp__lengths_get(lengths, sample[i]);
    write_beside(w, sample, at, count);
    w->sample = at + count;
}

static void resolve(hbp__plan_writer *w, const uint32_t *sample, int64_t from, int64_t count)
{
    const hbp_lengths *lengths = w->lengths;
    int64_t *id = w->plan->sample_ids + from;
    for (int64_t i = 0; sample && i < count; i++)
        id[i] = sample[id[i]];
    if (!lengths && w->plan->sample_loss_tokens)
        write_shifted(w, from, count);
    if (!lengths || !w->has_beside)
        return;
    for (int64_t i = 0; i < count; i++) {
        const uint32_t piece = (uint32_t)id[i];
        write_beside(w, &piece, from + i, 1);
        id[i] = lengths->origin ? lengths->origin[piece] : piece;
    }
}

hbp_status hbp__resolve_samples(hbp__plan_writer *w, const uint32_t *sample, int64_t from)
{
    if (!sample && !w->has_beside)
        return HBP_OK;
    for (int64_t at = from; at < w->sample; at += HBP__TICK_ROWS) {
        if (at > from)
            HBP__TRY(hbp__tick(w->context, "plan", at, w->plan->samples));
        resolve(w, sample, at, hbp__min_i64(HBP__TICK_ROWS, w->sample - at));
    }
    return HBP_OK;
}

void hbp__plan_set_sums(hbp_plan *plan, int64_t p, const hbp__pack_sums *sums)
{
    plan->pack_tokens[p] = sums->tokens;
    plan->pack_padded_tokens[p] = sums->padded;
    plan->pack_squares[p] = sums->squares;
    plan->pack_loss_tokens[p] = sums->loss;
    if (plan->pack_vision)
        plan->pack_vision[p] = sums->vision;
}

int64_t hbp__write_pack_row(hbp__plan_writer *w, const hbp__pack_place *place)
{
    hbp_plan *plan = w->plan;
    int64_t at = w->pack++;
    if (at + 1 != w->end_pack)
        plan->pack_offsets[at + 1] = w->sample;
    plan->pack_ranks[at] = place->rank;
    plan->pack_sp[at] = place->sp;
    plan->pack_recompute[at] = place->recompute;
    plan->pack_capacity[at] = place->capacity;
    if (plan->pack_vision_capacity)
        plan->pack_vision_capacity[at] = place->vision_capacity;
    return at;
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
    if (at + 1 != w->end_micro_batch)
        plan->micro_batch_offsets[at + 1] = w->pack;
    plan->micro_batch_ns[at] = slowest;
    if (plan->micro_batch_modalities)
        plan->micro_batch_modalities[at] = modalities;
}

static void end_step(hbp__plan_writer *w)
{
    if (w->step + 1 != w->end_step)
        w->plan->step_offsets[w->step + 1] = w->micro_batch;
}

int64_t hbp__write_step_row(hbp__plan_writer *w, const hbp__step_sums *sums)
{
    hbp_plan *plan = w->plan;
    end_step(w);
    const int64_t at = w->step++, pack = plan->micro_batch_offsets[plan->step_offsets[at]];
    plan->step_ns[at] = hbp__add_saturating(sums->ns, w->step_ns);
    plan->step_tokens[at] = sums->tokens;
    plan->step_loss_tokens[at] = sums->loss;
    plan->step_samples[at] = w->sample - plan->pack_offsets[pack];
    return plan->step_ns[at];
}

int64_t hbp__write_step(hbp__plan_writer *w)
{
    hbp_plan *plan = w->plan;
    const int64_t first = plan->step_offsets[w->step];
    int64_t *modalities = plan->micro_batch_modalities;
    hbp__step_sums sums = {0};
    for (int64_t m = first; modalities && m < w->micro_batch; m++)
        modalities[m] = modalities[m] ? modalities[m] : modalities[first];
    for (int64_t p = plan->micro_batch_offsets[first]; p < w->pack; p++) {
        sums.tokens += plan->pack_tokens[p];
        sums.loss += plan->pack_loss_tokens[p];
    }
    end_step(w); /* the clock walks it */
    sums.ns = hbp__clock_step(&w->clock, plan, w->step);
    return hbp__write_step_row(w, &sums);
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
