/* Which piece of the lengths a row of a plan is. */
#include "base/scratch.h"
#include "base/sort.h"
#include "data/plan/plan.h"
#include "epoch/mend.h"

/* The pieces in ascending order of their sample and, within it, of their first token. */
static hbp_status order_pieces(const hbp__epoch *epoch, int64_t *key, uint32_t *order)
{
    const hbp_lengths *lengths = epoch->lengths;
    for (int64_t i = 0; i < lengths->count; i++) {
        HBP__TRY(hbp__tick_row(epoch->context, "pieces", i, lengths->count));
        order[i] = (uint32_t)i;
        key[i] = lengths->first ? lengths->first[i] : 0;
    }
    if (lengths->first)
        HBP__TRY(hbp__order_by_i64(epoch->context, key, order, lengths->count, "the pieces of a plan"));
    for (int64_t i = 0; i < lengths->count; i++) {
        HBP__TRY(hbp__tick_row(epoch->context, "pieces", i, lengths->count));
        key[i] = lengths->origin[i];
    }
    return hbp__order_by_i64(epoch->context, key, order, lengths->count, "the pieces of a plan");
}

/* The piece that begins sample `id` at token `first`, which is one of those in `order`. */
static uint32_t find_piece(const hbp_lengths *lengths, const uint32_t *order, int64_t id, int64_t first)
{
    int64_t low = 0, high = lengths->count - 1;
    while (low < high) {
        int64_t middle = low + (high - low) / 2, origin = lengths->origin[order[middle]];
        int64_t at = lengths->first ? lengths->first[order[middle]] : 0;
        if (origin < id || (origin == id && at < first))
            low = middle + 1;
        else
            high = middle;
    }
    return order[low];
}

hbp_status hbp__epoch_pieces(const hbp__epoch *epoch, const hbp_plan *plan, uint32_t **piece)
{
    const hbp_lengths *lengths = epoch->lengths;
    hbp_context *context = epoch->context;
    uint64_t pieces = lengths->origin ? (uint64_t)lengths->count : 0;
    *piece = hbp__take(context, (uint64_t)plan->samples, sizeof **piece);
    int64_t mark = hbp__scratch_mark(context);
    uint32_t *order = hbp__take(context, pieces, sizeof *order);
    int64_t *key = hbp__take(context, pieces, sizeof *key);
    HBP__TRY(hbp__scratch_check(context, "the pieces of a plan"));
    if (pieces)
        HBP__TRY(order_pieces(epoch, key, order));
    for (int64_t i = 0; i < plan->samples; i++) {
        HBP__TRY(hbp__tick_row(context, "pieces", i, plan->samples));
        int64_t first = plan->sample_first_tokens ? plan->sample_first_tokens[i] : 0;
        (*piece)[i] =
            pieces ? find_piece(lengths, order, plan->sample_ids[i], first) : (uint32_t)plan->sample_ids[i];
    }
    hbp__scratch_release(context, mark);
    return HBP_OK;
}
