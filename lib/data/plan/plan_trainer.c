/* What a trainer asks of one step: a rank's part of it, borders of the samples in a pack, weights of their
 * losses. */
#include "base/checked.h"
#include "base/options.h"
#include "data/packs/padding.h"

/* Row `index` of a table of `rows`; HBP_E_INVALID names `what` otherwise. */
static hbp_status check_row(hbp_context *context, const char *what, int64_t index, int64_t rows)
{
    if (index < 0 || index >= rows)
        return hbp__fail(context, HBP_E_INVALID, "%s %lld; the plan has %lld", what, (long long)index,
                         (long long)rows);
    return HBP_OK;
}

static hbp_status check_room(hbp_context *context, const char *what, int64_t needed, int64_t capacity,
                             const void *values)
{
    if (capacity < needed || (needed && !values))
        return hbp__fail(context, HBP_E_INVALID, "%s: the buffer holds %lld values; %lld are needed", what,
                         (long long)(values ? capacity : 0), (long long)needed);
    return HBP_OK;
}

static hbp_rank_pack rank_pack(const hbp_plan *plan, int64_t micro_batch, int64_t pack, int32_t rank)
{
    int64_t first = plan->pack_offsets[pack], samples = plan->pack_offsets[pack + 1] - first;
    return (hbp_rank_pack){.struct_size = sizeof(hbp_rank_pack),
                           .sp = plan->pack_sp[pack],
                           .first_rank = plan->pack_ranks[pack],
                           .sp_rank = rank - plan->pack_ranks[pack],
                           .recompute = plan->pack_recompute[pack],
                           .is_padding = samples == 0,
                           .pack = pack,
                           .first_sample = first,
                           .samples = samples,
                           .tokens = plan->pack_tokens[pack],
                           .padded_tokens = plan->pack_padded_tokens[pack],
                           .loss_tokens = plan->pack_loss_tokens[pack],
                           .vision = plan->pack_vision ? plan->pack_vision[pack] : 0,
                           .modalities =
                               plan->micro_batch_modalities ? plan->micro_batch_modalities[micro_batch] : 0};
}

hbp_status hbp_plan_copy_rank_packs(hbp_context *context, const hbp_plan *plan, int64_t step, int32_t rank,
                                    hbp_rank_pack *packs, uint32_t pack_size, int64_t capacity,
                                    int64_t *count)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, plan, "plan"));
    HBP__TRY(hbp__require(context, count, "count"));
    if (step < 0 || step >= plan->steps)
        return hbp__fail(context, HBP_E_INVALID, "step %lld; the plan has %lld", (long long)step,
                         (long long)plan->steps);
    if (rank < 0 || rank >= plan->ranks)
        return hbp__fail(context, HBP_E_INVALID, "rank %d; the plan is for %d ranks", (int)rank,
                         (int)plan->ranks);
    *count = plan->step_offsets[step + 1] - plan->step_offsets[step];
    if (capacity < *count || !packs)
        return hbp__fail(context, HBP_E_INVALID, "packs of rank %d: the buffer holds %lld; %lld are needed",
                         (int)rank, (long long)(packs ? capacity : 0), (long long)*count);
    if (pack_size < sizeof packs->struct_size || pack_size > HBP__MOST_STRUCT)
        return hbp__fail(context, HBP_E_INVALID, "pack_size is %u; pass sizeof(hbp_rank_pack)",
                         (unsigned)pack_size);
    for (int64_t m = 0; m < *count; m++) {
        int64_t pack = hbp_plan_get_rank_pack(plan, step, m, rank);
        hbp_rank_pack mine = rank_pack(plan, plan->step_offsets[step] + m, pack, rank);
        unsigned char *place = (unsigned char *)packs + (uint64_t)m * pack_size;
        hbp__struct_init(place, pack_size);
        HBP__TRY(hbp__struct_write(context, place, &mine, sizeof mine, "hbp_rank_pack"));
    }
    return HBP_OK;
}

/* Tokens of a pack's samples, each padded to `multiple`. */
static int64_t samples_end(const hbp_plan *plan, int64_t pack, int64_t multiple)
{
    int64_t end = 0;
    for (int64_t i = plan->pack_offsets[pack]; i < plan->pack_offsets[pack + 1]; i++)
        end += hbp__round_up(plan->sample_tokens[i], multiple);
    return end;
}

hbp_status hbp_plan_copy_cu_seqlens(hbp_context *context, const hbp_plan *plan, int64_t pack, int32_t padded,
                                    int32_t *borders, int64_t capacity, int64_t *count)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, plan, "plan"));
    HBP__TRY(hbp__require(context, count, "count"));
    HBP__TRY(check_row(context, "pack", pack, plan->packs));
    int64_t multiple = padded ? hbp__plan_sequence_multiple(plan, plan->pack_sp[pack]) : 1;
    int64_t first = plan->pack_offsets[pack];
    int64_t samples = plan->pack_offsets[pack + 1] - first, end = samples_end(plan, pack, multiple);
    int64_t total = padded ? hbp__max_i64(end, plan->pack_padded_tokens[pack]) : end;
    *count = samples + 1 + (total > end);
    if (total > INT32_MAX)
        return hbp__fail(context, HBP_E_OVERFLOW, "pack %lld has %lld tokens; cu_seqlens hold at most %d",
                         (long long)pack, (long long)total, INT32_MAX);
    HBP__TRY(check_room(context, "cu_seqlens", *count, capacity, borders));
    borders[0] = 0;
    for (int64_t i = 0; i < samples; i++)
        borders[i + 1] = borders[i] + (int32_t)hbp__round_up(plan->sample_tokens[first + i], multiple);
    if (total > end)
        borders[samples + 1] = (int32_t)total;
    return HBP_OK;
}

static int64_t loss_tokens(const hbp_plan *plan, int64_t sample)
{
    return plan->sample_loss_tokens ? plan->sample_loss_tokens[sample] : plan->sample_tokens[sample];
}

/* What is averaged over: packs or samples of the step that carry loss. */
static int64_t count_with_loss(const hbp_plan *plan, int32_t normaliser, int64_t first_pack, int64_t end_pack)
{
    int64_t count = 0;
    for (int64_t p = first_pack; p < end_pack; p++) {
        if (normaliser == HBP_LOSS_LOCAL_TOKEN)
            count += plan->pack_loss_tokens[p] > 0;
        for (int64_t i = plan->pack_offsets[p];
             normaliser == HBP_LOSS_SAMPLE && i < plan->pack_offsets[p + 1]; i++)
            count += loss_tokens(plan, i) > 0;
    }
    return count;
}

hbp_status hbp_plan_copy_loss_weights(hbp_context *context, const hbp_plan *plan, int64_t step,
                                      int32_t normaliser, double *weights, int64_t capacity, int64_t *count)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, plan, "plan"));
    HBP__TRY(hbp__require(context, count, "count"));
    HBP__TRY(check_row(context, "step", step, plan->steps));
    if (normaliser < HBP_LOSS_TOKEN || normaliser > HBP_LOSS_SUM)
        return hbp__fail(context, HBP_E_INVALID, "normaliser %d is not one of HBP_LOSS_*", (int)normaliser);
    int64_t first_pack = plan->micro_batch_offsets[plan->step_offsets[step]];
    int64_t end_pack = plan->micro_batch_offsets[plan->step_offsets[step + 1]];
    int64_t first = plan->pack_offsets[first_pack];
    *count = plan->pack_offsets[end_pack] - first;
    HBP__TRY(check_room(context, "loss weights", *count, capacity, weights));
    int64_t shares = count_with_loss(plan, normaliser, first_pack, end_pack);
    for (int64_t p = first_pack; p < end_pack; p++)
        for (int64_t i = plan->pack_offsets[p]; i < plan->pack_offsets[p + 1]; i++) {
            double denominator = 1;
            if (normaliser == HBP_LOSS_TOKEN)
                denominator = (double)plan->step_loss_tokens[step];
            else if (normaliser == HBP_LOSS_LOCAL_TOKEN)
                denominator = (double)shares * (double)plan->pack_loss_tokens[p];
            else if (normaliser == HBP_LOSS_SAMPLE)
                denominator = (double)shares * (double)loss_tokens(plan, i);
            weights[i - first] = loss_tokens(plan, i) || normaliser == HBP_LOSS_SUM ? 1 / denominator : 0;
        }
    return HBP_OK;
}
