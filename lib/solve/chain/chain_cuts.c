/* The best partitions when every part has a worker of its own: the largest load is searched for, limit by
 * limit, and under each limit a recurrence finds the least sums. docs/explanation/pipeline.md has the proof
 * and the complexity. */
#include "solve/chain/chain.h"

#include <string.h>

#include "base/scratch.h"

/* The least sums over partitions whose loads stay within a limit, a k-best shortest path through cells. */
typedef struct least_sums {
    const hbp__chain *chain;
    int32_t best;    /* partitions wanted, 1..64 */
    int32_t *near;   /* [parts + 1] where cut p may lie at least, under the last limit */
    int32_t *far;    /* [parts + 1] and at most */
    int64_t *first;  /* [parts + 2] first cell of cut p; a cell is a place of a cut */
    int64_t mark;    /* of what was taken before the cells */
    int64_t room;    /* cells */
    int32_t *number; /* [cells] paths from there to the end of the chain, at most `best` */
    int64_t *sum;    /* [cells * best] of costs and tolls behind it, ascending; ties by earlier cuts */
    int32_t *next;   /* [cells * best] the next cut */
    int32_t *rank;   /* [cells * best] which of its paths goes on */
} least_sums;

/* Largest loads from `low` to `high` still to be looked at; sums there are at least `sum`. */
typedef struct span {
    int64_t low;
    int64_t high;
    int64_t sum;
    int at_end; /* where to look next: at its end, else in the middle */
} span;

typedef struct search {
    hbp_context *context;
    const hbp__chain *chain;
    least_sums dp;
    hbp__cut_list *list;
    int32_t *cuts; /* [parts + 1] scratch */
    int64_t spans;
    int64_t room;
    span *span;
} search;

/* On scratch. Whoever runs it takes nothing between two runs: cells that no longer suffice are released. */
static hbp_status open_sums(hbp_context *context, const hbp__chain *chain, int32_t best, least_sums *dp)
{
    *dp = (least_sums){.chain = chain, .best = best};
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

/* Bounds where cuts may lie when no cost passes `limit`; 0 when they cannot lie anywhere. O(parts log items).
 */
static int bound_cuts(least_sums *dp, int64_t limit)
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

static hbp_status make_cells(hbp_context *context, least_sums *dp)
{
    int32_t parts = dp->chain->parts;
    dp->first[0] = 0;
    for (int32_t p = 0; p <= parts; p++)
        dp->first[p + 1] = dp->first[p] + dp->far[p] - dp->near[p] + 1;
    uint64_t cells = (uint64_t)dp->first[parts + 1], paths = cells * (uint64_t)dp->best;
    if (dp->first[parts + 1] <= dp->room)
        return HBP_OK;
    hbp__scratch_release(context, dp->mark);
    dp->number = hbp__take(context, cells, sizeof *dp->number);
    dp->sum = hbp__take(context, paths, sizeof *dp->sum);
    dp->next = hbp__take(context, paths, sizeof *dp->next);
    dp->rank = hbp__take(context, paths, sizeof *dp->rank);
    HBP__TRY(hbp__scratch_check(context, "where a chain is cut"));
    dp->room = dp->first[parts + 1];
    return HBP_OK;
}

/* Merges the paths on from the cell `to`, at place `end`, into those of the cell `from`; `extra` is what the
 * part between them and the cut at `end` cost. Ends come in ascending order, so that what is there already
 * goes first among equals. */
static void merge_paths(least_sums *dp, int64_t from, int64_t to, int32_t end, int64_t extra)
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
static int64_t fill_cell(least_sums *dp, int32_t part, int32_t begin, int64_t limit)
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
                merge_paths(dp, from, onward + end, end, cost + chain->toll[end]);
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

/* Finds the `best` partitions of least sum with loads up to `limit`; *count of them, 0 when there is none.
 * Counts *work down by one for each part looked at: O(sum over parts of places of the cut x length of a part
 * within the limit). */
static hbp_status find_sums(hbp_context *context, least_sums *dp, int64_t limit, int64_t *work,
                            int32_t *count)
{
    int32_t parts = dp->chain->parts;
    *count = 0;
    *work -= parts;
    if (!bound_cuts(dp, limit))
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

/* The sum of the index-th best of the last run; its cuts [parts + 1]. */
static int64_t read_sum(const least_sums *dp, int32_t index, int32_t *cuts)
{
    int32_t parts = dp->chain->parts, rank = index;
    cuts[0] = 0;
    for (int32_t p = 0; p < parts; p++) {
        int64_t path = (dp->first[p] + cuts[p] - dp->near[p]) * dp->best + rank;
        cuts[p + 1] = dp->next[path];
        rank = dp->rank[path];
    }
    return dp->sum[index];
}

/* No sum is less: every kind at its least factor, half an ns for each rounding, the least tolls; and a little
 * for the rounding of this sum. */
static int64_t crude_sum(const hbp__chain *chain)
{
    double sum = 0;
    for (int32_t k = 0; k < chain->kinds; k++) {
        double least = chain->factor[k];
        for (int32_t p = 1; p < chain->parts; p++) {
            double factor = chain->factor[(int64_t)p * chain->kinds + k];
            least = factor < least ? factor : least;
        }
        sum += (double)(chain->prefix[k][chain->items] - chain->prefix[k][0]) * least;
    }
    sum = sum * (1 - 1e-12) - chain->parts - 1;
    int64_t toll = INT64_MAX;
    for (int32_t c = 1; c < chain->items && chain->parts > 1; c++)
        toll = hbp__min_i64(toll, chain->toll[c]);
    return (sum > 0 ? (int64_t)sum : 0) + (chain->parts > 1 ? (chain->parts - 1) * toll : 0);
}

/* The least limit on costs alone under which cuts have places to lie in; every largest load is at least that.
 */
static int64_t least_limit(search *s)
{
    int64_t low = 0, high = 0;
    for (int32_t p = 0; p < s->chain->parts; p++)
        high = hbp__max_i64(high, hbp__chain_cost(s->chain, p, 0, s->chain->items));
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (bound_cuts(&s->dp, middle))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Larger than any load. */
static int64_t no_limit(const hbp__chain *chain)
{
    int64_t most = 0, side = 0;
    for (int32_t p = 0; p < chain->parts; p++)
        most = hbp__max_i64(most, hbp__chain_cost(chain, p, 0, chain->items));
    for (int32_t c = 0; c <= chain->items; c++)
        side = hbp__max_i64(side, chain->side[c]);
    return most + 2 * side + 1;
}

static int64_t span_bound(const search *s, const span *open)
{
    return hbp__add_saturating(hbp__mul_saturating(s->chain->weight, open->low), open->sum);
}

/* Cuts off what holds only partitions worse than the last of the list, and keeps the rest, if any. */
static hbp_status push_span(search *s, span open)
{
    int64_t worst = hbp__cut_list_worst(s->list);
    if (worst < INT64_MAX && worst >= open.sum && s->chain->weight > 0)
        open.high = hbp__min_i64(open.high, (worst - open.sum) / s->chain->weight);
    if (open.low > open.high || span_bound(s, &open) > worst)
        return HBP_OK;
    if (s->spans == s->room) {
        int64_t room = s->room ? 2 * s->room : 64;
        span *more = hbp__renew(&s->context->memory, s->span, (uint64_t)room, sizeof *more);
        if (!more)
            return hbp__fail_memory(s->context, "the search for cuts");
        s->span = more;
        s->room = room;
    }
    s->span[s->spans++] = open;
    return HBP_OK;
}

/* The open span of least bound; the first of equals. */
static int64_t least_span(const search *s)
{
    int64_t least = 0;
    for (int64_t i = 1; i < s->spans; i++)
        if (span_bound(s, &s->span[i]) < span_bound(s, &s->span[least]))
            least = i;
    return least;
}

/* Runs the recurrence at `limit` and lists what it finds. What there may be more to list within the limit has
 * a largest load below *most and a sum no less than *sum; *most is 0 when there is no more. */
static hbp_status run_limit(search *s, int64_t limit, int64_t *work, int32_t *count, int64_t *most,
                            int64_t *sum)
{
    int64_t load;
    HBP__TRY(find_sums(s->context, &s->dp, limit, work, count));
    *most = *sum = 0;
    for (int32_t i = 0; i < *count; i++) {
        *sum = read_sum(&s->dp, i, s->cuts);
        hbp__cut_list_add(s->list, s->cuts, hbp__chain_value(s->chain, s->cuts, &load));
        *most = hbp__max_i64(*most, load);
    }
    if (*count < s->dp.best)
        *most = 0;
    return HBP_OK;
}

/* Looks at one limit in the span and keeps what remains on both sides of it. A middle that finds nothing new
 * is followed by the end, so that a stretch without any partition costs one look and not a bisection. */
static hbp_status split_span(search *s, span open, int64_t *work)
{
    int64_t limit = open.at_end ? open.high : open.low + (open.high - open.low) / 2, most, sum;
    int32_t count;
    HBP__TRY(run_limit(s, limit, work, &count, &most, &sum));
    HBP__TRY(push_span(s, (span){open.low, most - 1, hbp__max_i64(sum, open.sum), 0}));
    return push_span(s, (span){limit + 1, open.high, open.sum, 1});
}

/* From the least limit upwards until something is found, so that the list has a value to cut off with. Sets
 * up what remains below and above. */
static hbp_status begin_search(search *s, int64_t *work)
{
    int64_t low = least_limit(s), top = no_limit(s->chain), limit = low, step = 1 + (low >> 10);
    int64_t crude = crude_sum(s->chain), most, sum;
    int32_t count;
    if (s->chain->weight == 0)
        return run_limit(s, top, work, &count, &most, &sum);
    for (;; step *= 2) {
        HBP__TRY(run_limit(s, limit, work, &count, &most, &sum));
        if (count || limit == top)
            break;
        low = limit + 1;
        limit = step < top - limit ? limit + step : top;
    }
    HBP__TRY(push_span(s, (span){low, most - 1, hbp__max_i64(sum, crude), 0}));
    return push_span(s, (span){limit + 1, top, crude, 1});
}

static hbp_status search_spans(search *s, int64_t *work, int64_t *bound)
{
    HBP__TRY(begin_search(s, work));
    *bound = hbp__cut_list_worst(s->list);
    while (s->spans) {
        int64_t least = least_span(s);
        span open = s->span[least];
        if (*work <= 0) {
            *bound = hbp__min_i64(span_bound(s, &open), hbp__cut_list_worst(s->list));
            return HBP_OK;
        }
        s->span[least] = s->span[--s->spans];
        int64_t spans = s->spans;
        HBP__TRY(push_span(s, open)); /* the list may have changed since */
        if (s->spans == spans)
            continue;
        open = s->span[--s->spans];
        HBP__TRY(split_span(s, open, work));
    }
    *bound = hbp__cut_list_worst(s->list);
    return HBP_OK;
}

/* Lists what moving one cut of the first partition in the list leads to: the nearer the last of the list is
 * to the end, the more can be left out. */
static void add_neighbours(search *s)
{
    const hbp__chain *chain = s->chain;
    memcpy(s->cuts, s->list->cuts, ((uint64_t)chain->parts + 1) * sizeof *s->cuts);
    for (int32_t p = 1; p < chain->parts; p++) {
        int32_t at = s->cuts[p];
        for (int32_t step = -2; step <= 2; step++) {
            s->cuts[p] = at + step;
            if (step && s->cuts[p] > s->cuts[p - 1] && s->cuts[p] < s->cuts[p + 1] &&
                hbp__chain_reach(chain, p - 1, s->cuts[p - 1]) >= s->cuts[p] &&
                hbp__chain_reach(chain, p, s->cuts[p]) >= s->cuts[p + 1])
                hbp__cut_list_add(s->list, s->cuts, hbp__chain_value(chain, s->cuts, NULL));
        }
        s->cuts[p] = at;
    }
}

hbp_status hbp__cut_chain(hbp_context *context, const hbp__chain *chain, int64_t *work, hbp__cut_list *list,
                          int64_t *bound)
{
    search s = {.context = context, .chain = chain, .list = list};
    int64_t mark = hbp__scratch_mark(context);
    s.cuts = hbp__take(context, (uint64_t)chain->parts + 1, sizeof *s.cuts);
    HBP__TRY(hbp__scratch_check(context, "the search for cuts"));
    int32_t fits = hbp__chain_first(context, chain, s.cuts);
    if (fits <= 0)
        return hbp__leave(context, mark, fits < 0 ? fits : HBP_E_INFEASIBLE);
    HBP__TRY(open_sums(context, chain, list->room, &s.dp));
    if (list->count)
        add_neighbours(&s);
    hbp_status status = search_spans(&s, work, bound);
    hbp__delete(&context->memory, s.span);
    return hbp__leave(context, mark, status);
}
