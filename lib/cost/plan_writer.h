/* Writes a plan row by row (data/plan/plan_rows.h), packs priced by a cost. */
#ifndef HBP_COST_PLAN_WRITER_H
#define HBP_COST_PLAN_WRITER_H

#include "cost/cost.h"
#include "data/packs/padding.h"
#include "data/plan/plan_rows.h"

/* Adds the sample in row `i`, padded to `multiple`. */
static inline void hbp__pack_sums_add(hbp__pack_sums *sums, const hbp_plan *plan, int64_t i, int64_t multiple)
{
    int64_t tokens = plan->sample_tokens[i];
    sums->tokens += tokens;
    sums->padded += hbp__round_up(tokens, multiple);
    sums->squares += tokens * tokens;
    sums->loss += plan->sample_loss_tokens ? plan->sample_loss_tokens[i] : tokens;
    sums->vision += plan->sample_vision ? plan->sample_vision[i] : 0;
}

/* Records the sums of pack p, whose degree and layers are in place, and what it takes and needs with them. */
void hbp__plan_price_pack(hbp_plan *plan, const hbp_cost *cost, int64_t p, const hbp__pack_sums *sums);

/* hbp__plan_rows_open with the ranks and steps of a cost. */
hbp_status hbp__plan_writer_open(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                                 const hbp__plan_rows *rows, int32_t optional, hbp__plan_writer *writer);

/* The sums of the samples written since the last pack, for a pack of `sp` ranks. */
hbp__pack_sums hbp__written_sums(const hbp__plan_writer *w, int32_t sp);

/* The pack of the samples since the last one; none: a padding pack. */
void hbp__write_pack(hbp__plan_writer *w, const hbp__pack_place *place, const hbp__pack_sums *sums);

#endif
