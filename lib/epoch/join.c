/* Plans of parts joined into one, and an epoch's plan sealed. */
#include <string.h>

#include "cost/plan_writer.h"
#include "epoch/join.h"

/* Samples of the parts joined between two looks at a request to cancel. */
#define TICK_ROWS (INT64_C(1) << 19)

/* Moves the offsets that a part brought, rows (at, at + rows], behind the `base` rows of the table they point
 * into. */
static void rebase_offsets(int64_t *offsets, int64_t at, int64_t rows, int64_t base)
{
    for (int64_t i = at + 1; i <= at + rows; i++)
        offsets[i] += base;
}

/* Copies a part's columns behind the rows counted in `at`, and counts them there. An optional column that the
 * part lacks stays as it is. */
static hbp_status append_part(hbp_context *context, hbp_plan *plan, const hbp_plan *part, hbp_plan *at)
{
#define APPEND(name, type, table, extra)                                                                     \
    if (part->table > TICK_ROWS)                                                                             \
        HBP__TRY(hbp__tick(context, "join", at->samples, plan->samples));                                    \
    if (plan->name && part->name)                                                                            \
        HBP__TRY(hbp__copy(context, plan->name + at->table + (extra), part->name + (extra),                  \
                           (uint64_t)part->table * sizeof *plan->name));
    HBP__PLAN_COLUMNS(APPEND)
#undef APPEND
    rebase_offsets(plan->step_offsets, at->steps, part->steps, at->micro_batches);
    rebase_offsets(plan->micro_batch_offsets, at->micro_batches, part->micro_batches, at->packs);
    rebase_offsets(plan->pack_offsets, at->packs, part->packs, at->samples);
    /* A part whose every token carries loss has no column for it. */
    for (int64_t i = 0; plan->sample_loss_tokens && !part->sample_loss_tokens && i < part->samples; i++)
        plan->sample_loss_tokens[at->samples + i] = part->sample_tokens[i];
    at->steps += part->steps;
    at->micro_batches += part->micro_batches;
    at->packs += part->packs;
    at->samples += part->samples;
    at->dropped += part->dropped;
    return HBP_OK;
}

hbp_status hbp__plan_join(hbp_context *context, hbp_plan *const *parts, int64_t count,
                          const hbp_lengths *lengths, hbp_plan **out)
{
    hbp_plan at = {0};
    int32_t optional = 0;
    at.dropped = lengths->dropped;
    for (int64_t i = 0; i < count; i++) {
        at.steps += parts[i]->steps;
        at.micro_batches += parts[i]->micro_batches;
        at.packs += parts[i]->packs;
        at.samples += parts[i]->samples;
        at.dropped += parts[i]->dropped;
        optional |= hbp__plan_optional(parts[i]);
    }
    hbp_plan *plan = hbp__plan_new(&context->memory, at.steps, at.micro_batches, at.packs, at.samples,
                                   at.dropped, optional);
    if (!plan)
        return hbp__fail_memory(context, "the joined plan");
    plan->ranks = parts[0]->ranks;
    plan->domain_ranks = parts[0]->domain_ranks;
    plan->complete = parts[0]->complete;
    plan->sequence_multiple = parts[0]->sequence_multiple;
    plan->pack_multiple = parts[0]->pack_multiple;
    plan->sequence_multiple_per_sp = parts[0]->sequence_multiple_per_sp;
    plan->pack_multiple_per_sp = parts[0]->pack_multiple_per_sp;
    plan->lockstep_ranks = parts[0]->lockstep_ranks;
    plan->shifted_loss = parts[0]->shifted_loss;
    plan->micro_batch_multiple = parts[0]->micro_batch_multiple;
    plan->epoch = parts[0]->epoch;
    memset(&at, 0, sizeof at);
    at.dropped = lengths->dropped;
    hbp_status status = hbp__plan_write_dropped(context, plan, lengths);
    for (int64_t i = 0, rows = 0; i < count && status >= 0; i++) {
        status = append_part(context, plan, parts[i], &at);
        rows += parts[i]->samples;
        if (rows < TICK_ROWS || status < 0)
            continue;
        rows = 0;
        status = hbp__tick(context, "join", i, count);
    }
    if (status >= 0)
        *out = plan;
    else
        hbp_plan_free(plan);
    return status;
}

hbp_status hbp__epoch_seal(const hbp__epoch *epoch, hbp_plan **out)
{
    hbp_plan *plan = *out;
    plan->overlong_samples = epoch->lengths->overlong_samples;
    plan->overlong_tokens = epoch->lengths->overlong_tokens;
    plan->lengths_digest = epoch->lengths->digest;
    plan->seed = epoch->options.seed;
    plan->epoch = epoch->options.epoch;
    hbp_status status = hbp__plan_seal_long(epoch->context, plan);
    if (status < 0) {
        hbp_plan_free(plan);
        *out = NULL;
    }
    return status;
}
