/* hbp_cost_predict_*: what a caller may ask of a cost, checked. */
#include <math.h>
#include <stdio.h>

#include "base/options.h"
#include "cost/parts.h"
#include "cost/point.h"

/* Row of the degree, or -1 when `sp` or `recompute` is not one of this cost's. */
static int32_t row_of(const hbp_cost *cost, int32_t sp, int32_t recompute)
{
    if (!cost || recompute < 0 || recompute > cost->terms.layers)
        return -1;
    return hbp__cost_row(cost, sp);
}

int64_t hbp_cost_predict_pack_ns(const hbp_cost *cost, int32_t sp, int32_t recompute, int64_t tokens,
                                 double sum_squares, int64_t vision)
{
    int32_t row = row_of(cost, sp, recompute);
    if (row < 0 || tokens < 0 || !isgreaterequal(sum_squares, 0) || vision < 0)
        return -1;
    hbp__load load = {.tokens = tokens, .squares = sum_squares, .vision = vision};
    return hbp__cost_pack_ns(cost, row, recompute, load);
}

/* The first degrees are named, as many as a message holds. */
static hbp_status fail_degree(hbp_context *context, const hbp_cost *cost, int32_t sp)
{
    char degrees[160];
    size_t at = 0;
    for (int32_t i = 0; i < cost->terms.degrees && at < sizeof degrees - 16; i++)
        at += (size_t)snprintf(degrees + at, sizeof degrees - at, i ? ", %d" : "%d", (int)cost->degree[i]);
    return hbp__fail(context, HBP_E_INVALID, "`sp` is %d; the cost has the SP degrees %s", (int)sp, degrees);
}

hbp_status hbp_cost_predict_pack_parts(hbp_context *context, const hbp_cost *cost, int32_t sp,
                                       int32_t recompute, int64_t tokens, double sum_squares, int64_t vision,
                                       hbp_pack_parts *parts)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, cost, "cost"));
    const int32_t row = hbp__cost_row(cost, sp);
    if (row < 0)
        return fail_degree(context, cost, sp);
    const hbp__range sizes[] = {{"recompute", recompute, 0, cost->terms.layers},
                                {"tokens", tokens, 0, INT64_MAX},
                                {"vision", vision, 0, INT64_MAX}};
    HBP__TRY(hbp__check_ranges(context, sizes, sizeof sizes / sizeof *sizes));
    if (!isgreaterequal(sum_squares, 0))
        return hbp__fail(context, HBP_E_INVALID, "`sum_squares` is %g; it must be at least 0", sum_squares);
    const hbp__load load = {.tokens = tokens, .squares = sum_squares, .vision = vision};
    const hbp_pack_parts found = hbp__cost_pack_parts(cost, row, recompute, load);
    return hbp__struct_write(context, parts, &found, sizeof found, "hbp_pack_parts");
}

int64_t hbp_cost_predict_pack_bytes(const hbp_cost *cost, int32_t sp, int32_t recompute, int64_t tokens,
                                    int64_t vision)
{
    int32_t row = row_of(cost, sp, recompute);
    if (row < 0 || tokens < 0 || vision < 0)
        return -1;
    hbp__load load = {.tokens = tokens, .vision = vision};
    return hbp__cost_pack_bytes(cost, row, recompute, load);
}

int64_t hbp_cost_predict_capacity(const hbp_cost *cost, int32_t sp, int32_t recompute)
{
    int32_t row = row_of(cost, sp, recompute);
    return row < 0 ? 0 : hbp__cost_capacity(cost, row, recompute, 0);
}

int32_t hbp_cost_predict_recompute(const hbp_cost *cost, int32_t sp, int64_t tokens)
{
    int32_t row = row_of(cost, sp, 0);
    return row < 0 || tokens < 0 ? -1 : hbp__cost_fewest_layers(cost, row, tokens, 0);
}
