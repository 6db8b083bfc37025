/* One rank's part of a step. */
#include "base/options.h"
#include "data/plan/plan.h"

static hbp_rank_pack rank_pack(const hbp_plan *plan, int64_t micro_batch, int64_t pack, int32_t rank)
{
    int64_t first = plan->pack_offsets[pack], samples = plan->pack_offsets[pack + 1] - first;
    return (hbp_rank_pack){.struct_size = sizeof(hbp_rank_pack),
                           .sp = plan->pack_sp[pack],
                           .first_rank = plan->pack_ranks[pack],
                           .sp_rank = rank - plan->pack_ranks[pack],
                           .recompute = plan->pack_recompute[pack],
                           .is_dummy = samples == 0,
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
        return hbp__fail(context, HBP_E_INVALID, "packs of rank %d: room for %lld; %lld are needed",
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
