#include "pack/hierarchy.h"

#include <string.h>

/* Samples of unlike length in one micro-batch wait for the longest. For packs of one micro-batch taken in
 * descending order, P at a time, the wait is P max(s^2) - sum(s^2). ragged_before[d][b] is its sum over the
 * bins below b with P = ranks / degree: samples of one bin are alike, so only the runs that a bin's border
 * cuts wait. */
static void ragged_prefix(const hbp_lengths *lengths, int64_t packs, double *ragged)
{
    /* From the longest bin down: `open` samples are in the run that the bins above began, whose longest is
     * `top`. */
    int64_t open = 0;
    double top = 0;
    for (int64_t b = lengths->bins - 1; b >= 0; b--) {
        double square = (double)lengths->bin_length[b] * (double)lengths->bin_length[b];
        int64_t left = lengths->bin_count[b];
        double wait = 0;
        if (open) {
            int64_t joins = hbp__min_i64(left, packs - open);
            wait = (double)joins * (top - square);
            left -= joins;
            open = (open + joins) % packs;
        }
        if (left % packs) {
            open = left % packs;
            top = square;
        }
        ragged[b + 1] = wait;
    }
    ragged[0] = 0;
    for (int64_t b = 0; b < lengths->bins; b++)
        ragged[b + 1] += ragged[b];
}

hbp_status hbp__estimator_open(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                               int64_t tokens_per_step, hbp__estimator *estimator)
{
    const hbp__memory *memory = &context->memory;
    uint64_t rows = (uint64_t)lengths->bins + 1;
    *estimator = (hbp__estimator){lengths,
                                  cost,
                                  lengths->bin_length[lengths->bins - 1],
                                  tokens_per_step,
                                  1,
                                  0,
                                  NULL,
                                  NULL,
                                  cost->terms.degrees,
                                  NULL};
    estimator->squares_before = hbp__new(memory, rows, sizeof *estimator->squares_before);
    estimator->tokens_before = hbp__new(memory, rows, sizeof *estimator->tokens_before);
    estimator->ragged_before =
        hbp__new(memory, rows, (uint64_t)estimator->degrees * sizeof *estimator->ragged_before);
    if (!estimator->squares_before || !estimator->tokens_before || !estimator->ragged_before)
        return hbp__fail_memory(context, "the sums over the histogram");
    estimator->squares_before[0] = 0;
    estimator->tokens_before[0] = 0;
    for (int64_t b = 0; b < lengths->bins; b++) {
        double length = (double)lengths->bin_length[b], count = (double)lengths->bin_count[b];
        estimator->squares_before[b + 1] = estimator->squares_before[b] + length * length * count;
        estimator->tokens_before[b + 1] =
            estimator->tokens_before[b] + lengths->bin_length[b] * lengths->bin_count[b];
    }
    for (int32_t d = 0; d < estimator->degrees; d++)
        ragged_prefix(lengths, cost->terms.ranks / cost->degree[d],
                      estimator->ragged_before + (uint64_t)d * rows);
    return HBP_OK;
}

void hbp__estimator_close(hbp_context *context, hbp__estimator *estimator)
{
    hbp__delete(&context->memory, estimator->squares_before);
    hbp__delete(&context->memory, estimator->tokens_before);
    hbp__delete(&context->memory, estimator->ragged_before);
}

int64_t hbp__estimator_bin(const hbp__estimator *estimator, int64_t length)
{
    int64_t low = 0, high = estimator->lengths->bins;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (estimator->lengths->bin_length[middle] <= length)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int hbp__level_make(const hbp_cost *cost, int64_t tokens_per_step, int32_t sp, int64_t pack_length,
                    int64_t micro_batches, hbp__level *level)
{
    int32_t row = hbp__cost_row(cost, sp);
    int32_t recompute = row < 0 ? -1 : hbp_cost_predict_recompute(cost, sp, pack_length);
    if (recompute < 0 || pack_length < 1)
        return 0;
    int64_t packs = cost->terms.ranks / sp;
    if (!micro_batches)
        micro_batches = hbp__max_i64(1, tokens_per_step / packs / pack_length);
    *level = (hbp__level){0, pack_length, sp, row, recompute, packs, micro_batches};
    return 1;
}

double hbp__level_ns(const hbp__estimator *estimator, const hbp__level *level, int64_t low, int64_t high)
{
    int64_t tokens = estimator->tokens_before[high] - estimator->tokens_before[low];
    if (!tokens)
        return 0;
    const hbp_cost *cost = estimator->cost;
    const double *ragged = estimator->ragged_before + (int64_t)level->row * (estimator->lengths->bins + 1);
    double squares =
        estimator->squares_before[high] - estimator->squares_before[low] + ragged[high] - ragged[low];
    /* All packs of the level alike: each of `packs` SP groups gets its share, in so many micro-batches. */
    int64_t micro_batches = hbp__ceil_div(hbp__ceil_div(tokens, level->pack_length), level->packs);
    int64_t steps = hbp__ceil_div(micro_batches, level->micro_batches);
    double share = 1.0 / ((double)micro_batches * (double)level->packs);
    return (double)micro_batches *
               hbp__cost_ns(cost, level->row, level->recompute, (double)tokens * share, squares * share) +
           (double)steps * cost->terms.step_ns;
}

void hbp__hierarchy_estimate(const hbp__estimator *estimator, hbp__hierarchy *hierarchy)
{
    double total = 0;
    int64_t low = 0;
    for (int64_t g = 0; g < hierarchy->count; g++) {
        int64_t high = hbp__estimator_bin(estimator, hierarchy->level[g].threshold);
        total += hbp__level_ns(estimator, &hierarchy->level[g], low, high);
        low = high;
    }
    hierarchy->epoch_ns = hbp__round_i64(total);
}
