/* The cost of plain packing: squares alone, no limit on memory. */
#include "base/options.h"
#include "base/scratch.h"
#include "cost/cost.h"

hbp_status hbp_cost_create_plain(hbp_context *context, int32_t ranks, hbp_cost **out)
{
    HBP__ENTER_OUT(context, out);
    HBP__TRY(hbp__check_range(context, "ranks", ranks, 1, HBP_MAX_RANKS));
    int32_t degrees = 0;
    for (int32_t d = 1; d <= ranks; d++)
        degrees += ranks % d == 0;
    int64_t mark = hbp__scratch_mark(context);
    int32_t *degree = hbp__take(context, (uint64_t)degrees, sizeof *degree);
    double *zeros = hbp__take_zero(context, (uint64_t)degrees, sizeof *zeros);
    hbp_status status = hbp__scratch_check(context, "SP degrees");
    if (status < 0)
        return hbp__leave(context, mark, status);
    degrees = 0;
    for (int32_t d = 1; d <= ranks; d++)
        if (ranks % d == 0)
            degree[degrees++] = d;
    const hbp_cost_terms terms = {.struct_size = sizeof terms,
                                  .ranks = ranks,
                                  .layers = 1,
                                  .ns_per_token_squared = 1,
                                  .limit_bytes = INT64_MAX,
                                  .degrees = degrees,
                                  .degree = degree,
                                  .sp_latency_ns = zeros,
                                  .sp_ns_per_token = zeros};
    return hbp__leave(context, mark, hbp__cost_make(context, &terms, "plain packing", out));
}
