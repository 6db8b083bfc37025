#include "solve/chain/chain_dp.h"

#include "base/scratch.h"

hbp_status hbp__chain_dp_open(hbp_context *context, const hbp__chain *chain, int32_t best, hbp__chain_dp *dp)
{
    *dp = (hbp__chain_dp){.chain = chain, .best = best};
    uint64_t cuts = (uint64_t)chain->parts + 1;
    dp->near = hbp__take(context, cuts, sizeof *dp->near);
    dp->far = hbp__take(context, cuts, sizeof *dp->far);
    dp->first = hbp__take(context, cuts + 1, sizeof *dp->first);
    dp->mark = hbp__scratch_mark(context);
    return hbp__scratch_check(context, "where a chain is cut");
}

/* The last end of a part that begins at `begin` and costs at most `limit`; `begin` when one item is too much.
 */
static int32_t last_end(const hbp__chain *chain, int32_t part, int32_t begin, int64_t limit)
{
    int32_t low = begin, high = hbp__chain_reach(chain, part, begin);
    while (low < high) {
        int32_t middle = low + (high - low + 1) / 2;
        if (hbp__chain_cost(chain, part, begin, middle) <= limit)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* The first begin of a part that ends at `end`; `end` when one item is too much. */
static int32_t first_begin(const hbp__chain *chain, int32_t part, int32_t end, int64_t limit)
{
    int32_t low = 0, high = end;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (hbp__chain_reach(chain, part, middle) >= end &&
            hbp__chain_cost(chain, part, middle, end) <= limit)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

int hbp__chain_dp_ranges(hbp__chain_dp *dp, int64_t limit)
{
    const hbp__chain *chain = dp->chain;
    int32_t parts = chain->parts;
    dp->far[0] = 0;
    for (int32_t p = 0; p < parts; p++) {
        int32_t end = last_end(chain, p, dp->far[p], limit), most = chain->items - (parts - 1 - p);
        dp->far[p + 1] = end < most ? end : most;
    }
    dp->near[parts] = chain->items;
    for (int32_t p = parts; p > 0; p--) {
        int32_t begin = first_begin(chain, p - 1, dp->near[p], limit);
        dp->near[p - 1] = begin > p - 1 ? begin : p - 1;
    }
    int lies = 1;
    for (int32_t p = 0; p <= parts; p++)
        lies &= dp->near[p] <= dp->far[p];
    return lies;
}

static hbp_status make_cells(hbp_context *context, hbp__chain_dp *dp)
{
    int32_t parts = dp->chain->parts;
    dp->first[0] = 0;
    for (int32_t p = 0; p <= parts; p++)
        dp->first[p + 1] = dp->first[p] + dp->far[p] - dp->near[p] + 1;
    uint64_t cells = (uint64_t)dp->first[parts + 1], ways = cells * (uint64_t)dp->best;
    if (dp->first[parts + 1] <= dp->room)
        return HBP_OK;
    hbp__scratch_release(context, dp->mark);
    dp->number = hbp__take(context, cells, sizeof *dp->number);
    dp->sum = hbp__take(context, ways, sizeof *dp->sum);
    dp->next = hbp__take(context, ways, sizeof *dp->next);
    dp->rank = hbp__take(context, ways, sizeof *dp->rank);
    HBP__TRY(hbp__scratch_check(context, "where a chain is cut"));
    dp->room = dp->first[parts + 1];
    return HBP_OK;
}

/* Merges the ways on from the cell `to`, at place `end`, into those of the cell `from`; `extra` is what the
 * part between them and the cut at `end` cost. Ends come in ascending order, so that what is there already
 * goes first among equals. */
static void merge(hbp__chain_dp *dp, int64_t from, int64_t to, int32_t end, int64_t extra)
{
    int64_t *sum = dp->sum + from * dp->best;
    int32_t *next = dp->next + from * dp->best, *rank = dp->rank + from * dp->best;
    int32_t held = dp->number[from];
    for (int32_t r = 0; r < dp->number[to]; r++) {
        int64_t value = extra + dp->sum[to * dp->best + r];
        if (held == dp->best && value >= sum[held - 1])
            break;
        int32_t at = held < dp->best ? held++ : held - 1;
        for (; at > 0 && sum[at - 1] > value; at--) {
            sum[at] = sum[at - 1];
            next[at] = next[at - 1];
            rank[at] = rank[at - 1];
        }
        sum[at] = value;
        next[at] = end;
        rank[at] = r;
    }
    dp->number[from] = held;
}

/* Fills the cell of cut `part` at `begin` from those of the next cut. Returns the parts looked at. */
static int64_t fill_cell(hbp__chain_dp *dp, int32_t part, int32_t begin, int64_t limit)
{
    const hbp__chain *chain = dp->chain;
    int64_t from = dp->first[part] + begin - dp->near[part];
    int64_t onward = dp->first[part + 1] - dp->near[part + 1], left = limit - chain->side[begin];
    int32_t reach = hbp__chain_reach(chain, part, begin);
    int32_t end = begin + 1 > dp->near[part + 1] ? begin + 1 : dp->near[part + 1], start = end;
    int32_t last = reach < dp->far[part + 1] ? reach : dp->far[part + 1];
    dp->number[from] = 0;
    if (dp->best > 1) {
        for (; end <= last; end++) {
            int64_t cost = hbp__chain_cost(chain, part, begin, end);
            if (cost > left)
                break;
            if (cost <= left - chain->side[end])
                merge(dp, from, onward + end, end, cost + chain->toll[end]);
        }
        return end - start + 1;
    }
    int64_t least = INT64_MAX;
    int32_t next = -1;
    for (; end <= last; end++) {
        int64_t cost = hbp__chain_cost(chain, part, begin, end);
        if (cost > left)
            break;
        if (!dp->number[onward + end] || cost > left - chain->side[end])
            continue;
        int64_t sum = cost + chain->toll[end] + dp->sum[onward + end];
        if (sum < least) {
            least = sum;
            next = end;
        }
    }
    dp->number[from] = next >= 0;
    dp->sum[from] = least;
    dp->next[from] = next;
    dp->rank[from] = 0;
    return end - start + 1;
}

hbp_status hbp__chain_dp_run(hbp_context *context, hbp__chain_dp *dp, int64_t limit, int64_t *work,
                             int32_t *count)
{
    int32_t parts = dp->chain->parts;
    *count = 0;
    *work -= parts;
    if (!hbp__chain_dp_ranges(dp, limit))
        return HBP_OK;
    HBP__TRY(make_cells(context, dp));
    int64_t end = dp->first[parts];
    dp->number[end] = 1;
    dp->sum[end * dp->best] = 0;
    for (int32_t p = parts - 1; p >= 0; p--) {
        HBP__TRY(hbp__tick(context, "partition", parts - p, parts));
        for (int32_t begin = dp->near[p]; begin <= dp->far[p]; begin++)
            *work -= fill_cell(dp, p, begin, limit);
    }
    *count = dp->number[0];
    return HBP_OK;
}

int64_t hbp__chain_dp_get(const hbp__chain_dp *dp, int32_t index, int32_t *cuts)
{
    int32_t parts = dp->chain->parts, rank = index;
    cuts[0] = 0;
    for (int32_t p = 0; p < parts; p++) {
        int64_t way = (dp->first[p] + cuts[p] - dp->near[p]) * dp->best + rank;
        cuts[p + 1] = dp->next[way];
        rank = dp->rank[way];
    }
    return dp->sum[index];
}
