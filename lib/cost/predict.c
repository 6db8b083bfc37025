#include "cost/cost.h"

#include <math.h>

#include "hbp/lengths.h"

/* Row of the degree, or -1 when `sp` or `recompute` is not one of this cost's. */
static int32_t row_of(const hbp_cost *cost, int32_t sp, int32_t recompute)
{
    if (!cost || recompute < 0 || recompute > cost->terms.layers)
        return -1;
    return hbp__cost_row(cost, sp);
}

int64_t hbp_cost_predict_pack_ns(const hbp_cost *cost, int32_t sp, int32_t recompute, int64_t tokens,
                                 double sum_squares)
{
    return hbp_cost_predict_vision_pack_ns(cost, sp, recompute, tokens, sum_squares, 0);
}

int64_t hbp_cost_predict_pack_bytes(const hbp_cost *cost, int32_t sp, int32_t recompute, int64_t tokens)
{
    return hbp_cost_predict_vision_pack_bytes(cost, sp, recompute, tokens, 0);
}

int64_t hbp_cost_predict_vision_pack_ns(const hbp_cost *cost, int32_t sp, int32_t recompute, int64_t tokens,
                                        double sum_squares, int64_t vision)
{
    int32_t row = row_of(cost, sp, recompute);
    if (row < 0 || tokens < 0 || !isgreaterequal(sum_squares, 0) || vision < 0)
        return -1;
    return hbp__cost_vision_pack_ns(cost, row, recompute, tokens, sum_squares, vision);
}

int64_t hbp_cost_predict_vision_pack_bytes(const hbp_cost *cost, int32_t sp, int32_t recompute,
                                           int64_t tokens, int64_t vision)
{
    int32_t row = row_of(cost, sp, recompute);
    if (row < 0 || tokens < 0 || vision < 0)
        return -1;
    return hbp__cost_vision_pack_bytes(cost, row, recompute, tokens, vision);
}

int64_t hbp_cost_predict_capacity(const hbp_cost *cost, int32_t sp, int32_t recompute)
{
    int32_t row = row_of(cost, sp, recompute);
    if (row < 0)
        return 0;
    /* Bisection on the very numbers that plans are checked with, so that no division rounds past the limit.
     */
    int64_t fits = 0;
    int64_t exceeds = (int64_t)HBP_MAX_LENGTH + 1;
    while (exceeds - fits > 1) {
        int64_t middle = fits + (exceeds - fits) / 2;
        if (hbp__cost_pack_bytes(cost, row, recompute, middle) <= cost->terms.limit_bytes)
            fits = middle;
        else
            exceeds = middle;
    }
    return hbp__min_i64(fits, hbp__cost_most_tokens(cost, sp));
}

int32_t hbp_cost_predict_recompute(const hbp_cost *cost, int32_t sp, int64_t tokens)
{
    int32_t row = row_of(cost, sp, 0);
    if (row < 0 || tokens < 0 || tokens > hbp__cost_most_tokens(cost, sp))
        return -1;
    int64_t limit = cost->terms.limit_bytes;
    if (hbp__cost_pack_bytes(cost, row, 0, tokens) <= limit)
        return 0;
    /* Memory is linear in c only from 1 on: the first recomputed layer brings the working set along, which
     * may outweigh what it saves. Where recomputing saves nothing (kept >= act), one layer is as good as it
     * gets. */
    int32_t layers = cost->terms.layers;
    if (hbp__cost_pack_bytes(cost, row, 1, tokens) <= limit)
        return 1;
    if (hbp__cost_pack_bytes(cost, row, layers, tokens) > limit)
        return -1;
    int32_t exceeds = 1;
    int32_t fits = layers;
    while (fits - exceeds > 1) {
        int32_t middle = exceeds + (fits - exceeds) / 2;
        if (hbp__cost_pack_bytes(cost, row, middle, tokens) <= limit)
            fits = middle;
        else
            exceeds = middle;
    }
    return fits;
}
