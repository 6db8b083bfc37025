/* What packs hold, by bisection on the very numbers that plans are checked with, so that no division rounds
 * past a limit; and the points made of it. */
#include "cost/point.h"

#include "hbp/lengths.h"

static int fits_memory(const hbp_cost *cost, int32_t row, int32_t recompute, int64_t tokens, int64_t vision)
{
    hbp__load load = {.tokens = tokens, .vision = vision};
    return hbp__cost_pack_bytes(cost, row, recompute, load) <= cost->terms.limit_bytes;
}

/* About the most tokens that fit: bytes are nearly linear in them. */
static int64_t about_capacity(const hbp_cost *cost, int32_t row, int32_t recompute, int64_t vision)
{
    const int64_t many = INT64_C(1) << 20;
    const double none = (double)hbp__cost_pack_bytes(cost, row, recompute, (hbp__load){.vision = vision}),
                 all = (double)hbp__cost_pack_bytes(cost, row, recompute,
                                                    (hbp__load){.tokens = many, .vision = vision});
    if (!(all > none))
        return 0;
    const double tokens = ((double)cost->terms.limit_bytes - none) / (all - none) * (double)many;
    return tokens > 0 && tokens < (double)HBP_MAX_LENGTH ? (int64_t)tokens : 0;
}

int64_t hbp__cost_capacity(const hbp_cost *cost, int32_t row, int32_t recompute, int64_t vision)
{
    int64_t fits = 0, exceeds = (int64_t)HBP_MAX_LENGTH + 1;
    int64_t next = about_capacity(cost, row, recompute, vision);
    /* Away from there by 1, 2, 4, .. tokens, until both sides are known. */
    for (int64_t stride = 1; next > fits && next < exceeds && (!fits || exceeds > HBP_MAX_LENGTH);
         stride *= 2) {
        if (fits_memory(cost, row, recompute, next, vision)) {
            fits = next;
            next += stride;
        } else {
            exceeds = next;
            next -= stride;
        }
    }
    while (exceeds - fits > 1) {
        int64_t middle = fits + (exceeds - fits) / 2;
        if (fits_memory(cost, row, recompute, middle, vision))
            fits = middle;
        else
            exceeds = middle;
    }
    return hbp__min_i64(fits, hbp__cost_most_tokens(cost, cost->degree[row]));
}

int64_t hbp__cost_units(const hbp_cost *cost, int32_t row, int32_t recompute, int64_t tokens, int64_t most)
{
    int64_t fits = 0, exceeds = most + 1;
    while (exceeds - fits > 1) {
        int64_t middle = fits + (exceeds - fits) / 2;
        if (fits_memory(cost, row, recompute, tokens, middle))
            fits = middle;
        else
            exceeds = middle;
    }
    return fits;
}

int32_t hbp__cost_fewest_layers(const hbp_cost *cost, int32_t row, int64_t tokens, int64_t vision)
{
    if (tokens > hbp__cost_most_tokens(cost, cost->degree[row]))
        return -1;
    if (fits_memory(cost, row, 0, tokens, vision))
        return 0;
    /* Memory is linear in c only from 1 on: the first recomputed layer brings the working set along, which
     * may outweigh what it saves. Where recomputing saves nothing (kept >= act), one layer is as good as it
     * gets. */
    if (fits_memory(cost, row, 1, tokens, vision))
        return 1;
    int32_t exceeds = 1, fits = cost->terms.layers;
    if (!fits_memory(cost, row, fits, tokens, vision))
        return -1;
    while (fits - exceeds > 1) {
        int32_t middle = exceeds + (fits - exceeds) / 2;
        if (fits_memory(cost, row, middle, tokens, vision))
            fits = middle;
        else
            exceeds = middle;
    }
    return fits;
}

int64_t hbp__cost_least_per_rank(const hbp_cost *cost, int64_t pack_tokens)
{
    hbp_cost uncapped = *cost;
    int64_t least = INT64_MAX;
    uncapped.tokens_per_rank = 0;
    for (int32_t row = 0; row < cost->terms.degrees; row++)
        if (hbp__cost_fewest_layers(&uncapped, row, pack_tokens, 0) >= 0)
            least = hbp__min_i64(least, hbp__ceil_div(pack_tokens, cost->degree[row]));
    return least;
}

hbp__point hbp__point_make(const hbp_cost *cost, int32_t row, int32_t recompute)
{
    const hbp_cost_terms *t = &cost->terms;
    double share = (double)recompute / (double)t->layers, degree = cost->degree[row];
    double again = 1 + t->recompute_communication * share;
    hbp__point point = {.row = row, .recompute = recompute};
    point.capacity = hbp__cost_capacity(cost, row, recompute, 0);
    point.latency = cost->sp_latency_ns[row] * again;
    /* Of a full pack of short documents, where compute hides traffic. */
    double full = hbp__cost_compute_ns(cost, row, recompute, (double)point.capacity, 0, 0);
    point.constant = point.latency + (t->pack_ns - hbp__cost_hidden_ns(cost, full));
    point.linear =
        t->ns_per_token * (1 + t->recompute_linear * share) / degree + cost->sp_ns_per_token[row] * again;
    point.square = t->ns_per_token_squared * (1 + t->recompute_attention * share) / degree;
    point.vision = t->ns_per_vision * (1 + t->recompute_vision * share) / degree;
    return point;
}

int32_t hbp__points_list(const hbp_cost *cost, int32_t row, const hbp__point_range *range, hbp__point *points)
{
    int32_t count = 0, last = range->last;
    for (int32_t c = range->first; c <= last;
         c = c < last && c + range->stride > last ? last : c + range->stride) {
        hbp__point point = hbp__point_make(cost, row, c);
        point.capacity = hbp__min_i64(point.capacity, range->most);
        point.capacity -= point.capacity % range->multiple;
        if (point.capacity >= (!count ? 1 : points[count - 1].capacity + !range->keeps_equal))
            points[count++] = point;
    }
    return count;
}
