/* The columns of a plan, from what is written into it and a cost. */
#include "cost/plan_writer.h"

hbp_status hbp__plan_writer_open(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                                 const hbp__plan_rows *rows, int32_t optional, hbp__plan_writer *writer)
{
    const hbp__plan_frame frame = {cost->terms.ranks, cost->terms.domain_ranks, cost->terms.lockstep_ranks,
                                   hbp__round_i64(cost->terms.step_ns)};
    hbp_status status = hbp__plan_rows_open(context, lengths, &frame, rows, optional, writer);
    writer->cost = cost;
    return status;
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
    hbp__plan_set_sums(plan, p, sums);
    plan->pack_ns[p] = hbp__cost_pack_ns(cost, row, recompute, load);
    plan->pack_bytes[p] = hbp__cost_pack_bytes(cost, row, recompute, load);
}

void hbp__write_pack(hbp__plan_writer *w, const hbp__pack_place *place, const hbp__pack_sums *sums)
{
    hbp__plan_price_pack(w->plan, w->cost, hbp__write_pack_row(w, place), sums);
}
