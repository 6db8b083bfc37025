#include "cost/parts.h"

#include "base/checked.h"

/* A part in whole nanoseconds, which leaves room for itself in *left. */
static int64_t take(int64_t *left, double ns)
{
    int64_t part = hbp__min_i64(hbp__round_i64(ns), *left);
    *left -= part;
    return part;
}

hbp_pack_parts hbp__cost_pack_parts(const hbp_cost *cost, int32_t row, int32_t recompute, hbp__load load)
{
    hbp_pack_parts parts = {.struct_size = sizeof parts};
    int64_t left = hbp__cost_pack_ns(cost, row, recompute, load);
    if (!load.tokens && !load.vision) {
        parts.fixed_ns = take(&left, cost->terms.pack_ns);
    } else {
        const double exchange = hbp__cost_all_to_all_ns(cost, row, recompute, (double)load.tokens);
        parts.fixed_ns =
            take(&left,
                 cost->terms.pack_ns -
                     hbp__cost_hidden_ns(cost, hbp__cost_compute_ns(cost, row, recompute, (double)load.tokens,
                                                                    load.squares, (double)load.vision)));
        parts.all_to_all_ns = take(&left, exchange);
        parts.vision_ns = take(&left, hbp__cost_vision_ns(cost, row, recompute, (double)load.vision));
    }
    parts.compute_ns = left;
    return parts;
}
