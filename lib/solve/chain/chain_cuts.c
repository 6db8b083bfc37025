#include "solve/chain/chain_cuts.h"

#include <string.h>

#include "base/scratch.h"
#include "solve/chain/chain_dp.h"

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
    hbp__chain_dp dp;
    hbp__cut_list *list;
    int32_t *cuts; /* [parts + 1] scratch */
    int64_t spans;
    int64_t room;
    span *span;
} search;

int64_t hbp__chain_value(const hbp__chain *chain, const int32_t *cuts, int64_t *most)
{
    int64_t largest = 0, sum = 0;
    for (int32_t p = 0; p < chain->parts; p++) {
        int64_t cost = hbp__chain_cost(chain, p, cuts[p], cuts[p + 1]);
        largest = hbp__max_i64(largest, cost + chain->side[cuts[p]] + chain->side[cuts[p + 1]]);
        sum += cost + chain->toll[cuts[p + 1]];
    }
    if (most)
        *most = largest;
    return chain->weight * largest + sum;
}

hbp_status hbp__cut_list_open(hbp_context *context, int32_t parts, int32_t room, hbp__cut_list *list)
{
    *list = (hbp__cut_list){.memory = context->memory, .parts = parts, .room = room};
    list->value = hbp__new(&list->memory, (uint64_t)room, sizeof *list->value);
    list->cuts = hbp__new(&list->memory, (uint64_t)room * ((uint64_t)parts + 1), sizeof *list->cuts);
    if (list->value && list->cuts)
        return HBP_OK;
    hbp__cut_list_close(list);
    return hbp__fail_memory(context, "the best partitions");
}

void hbp__cut_list_close(hbp__cut_list *list)
{
    hbp__delete(&list->memory, list->value);
    hbp__delete(&list->memory, list->cuts);
    list->value = NULL;
    list->cuts = NULL;
}

static int compare_cuts(const int32_t *a, const int32_t *b, int32_t parts)
{
    for (int32_t p = 1; p < parts; p++)
        if (a[p] != b[p])
            return a[p] < b[p] ? -1 : 1;
    return 0;
}

void hbp__cut_list_add(hbp__cut_list *list, const int32_t *cuts, int64_t value)
{
    uint64_t row = (uint64_t)list->parts + 1;
    if (value > hbp__cut_list_worst(list))
        return;
    int32_t at = list->count;
    for (; at > 0 && value <= list->value[at - 1]; at--) {
        int order = value < list->value[at - 1]
                        ? -1
                        : compare_cuts(cuts, list->cuts + (uint64_t)(at - 1) * row, list->parts);
        if (order == 0)
            return;
        if (order > 0)
            break;
    }
    if (at == list->room)
        return;
    int32_t kept = list->count < list->room ? list->count++ : list->room - 1;
    uint64_t behind = (uint64_t)(kept - at);
    memmove(list->value + at + 1, list->value + at, behind * sizeof *list->value);
    memmove(list->cuts + (uint64_t)(at + 1) * row, list->cuts + (uint64_t)at * row,
            behind * row * sizeof *list->cuts);
    list->value[at] = value;
    memcpy(list->cuts + (uint64_t)at * row, cuts, row * sizeof *cuts);
}

int32_t hbp__chain_first(hbp_context *context, const hbp__chain *chain, int32_t *cuts)
{
    /* onward[p][b]: the first place from b on that cut p may have for the parts from p on to fit. */
    int32_t none = chain->items + 1;
    int64_t row = (int64_t)chain->items + 2;
    int64_t mark = hbp__scratch_mark(context);
    int32_t *onward = hbp__take(context, (uint64_t)(chain->parts + 1) * (uint64_t)row, sizeof *onward);
    HBP__TRY(hbp__scratch_check(context, "where a chain is cut"));
    for (int32_t b = 0; b < row; b++)
        onward[chain->parts * row + b] = b <= chain->items ? chain->items : none;
    for (int32_t p = chain->parts - 1; p >= 0; p--) {
        int32_t *here = onward + p * row;
        const int32_t *next = here + row;
        here[none] = none;
        for (int32_t b = chain->items; b >= 0; b--)
            here[b] = next[b + 1] <= hbp__chain_reach(chain, p, b) ? b : here[b + 1];
    }
    int32_t fits = onward[0] == 0;
    cuts[0] = 0;
    for (int32_t p = 1; p <= chain->parts && fits; p++)
        cuts[p] = onward[p * row + cuts[p - 1] + 1];
    hbp__scratch_release(context, mark);
    return fits;
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
        if (hbp__chain_dp_ranges(&s->dp, middle))
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
static hbp_status push(search *s, span open)
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
static hbp_status run(search *s, int64_t limit, int64_t *work, int32_t *count, int64_t *most, int64_t *sum)
{
    int64_t load;
    HBP__TRY(hbp__chain_dp_run(s->context, &s->dp, limit, work, count));
    *most = *sum = 0;
    for (int32_t i = 0; i < *count; i++) {
        *sum = hbp__chain_dp_get(&s->dp, i, s->cuts);
        hbp__cut_list_add(s->list, s->cuts, hbp__chain_value(s->chain, s->cuts, &load));
        *most = hbp__max_i64(*most, load);
    }
    if (*count < s->dp.best)
        *most = 0;
    return HBP_OK;
}

/* Looks at one limit in the span and keeps what remains on both sides of it. A middle that finds nothing new
 * is followed by the end, so that a stretch without any partition costs one look and not a bisection. */
static hbp_status split(search *s, span open, int64_t *work)
{
    int64_t limit = open.at_end ? open.high : open.low + (open.high - open.low) / 2, most, sum;
    int32_t count;
    HBP__TRY(run(s, limit, work, &count, &most, &sum));
    HBP__TRY(push(s, (span){open.low, most - 1, hbp__max_i64(sum, open.sum), 0}));
    return push(s, (span){limit + 1, open.high, open.sum, 1});
}

/* From the least limit upwards until something is found, so that the list has a value to cut off with. Sets
 * up what remains below and above. */
static hbp_status begin(search *s, int64_t *work)
{
    int64_t low = least_limit(s), top = no_limit(s->chain), limit = low, step = 1 + (low >> 10);
    int64_t crude = crude_sum(s->chain), most, sum;
    int32_t count;
    if (s->chain->weight == 0)
        return run(s, top, work, &count, &most, &sum);
    for (;; step *= 2) {
        HBP__TRY(run(s, limit, work, &count, &most, &sum));
        if (count || limit == top)
            break;
        low = limit + 1;
        limit = step < top - limit ? limit + step : top;
    }
    HBP__TRY(push(s, (span){low, most - 1, hbp__max_i64(sum, crude), 0}));
    return push(s, (span){limit + 1, top, crude, 1});
}

static hbp_status search_all(search *s, int64_t *work, int64_t *bound)
{
    HBP__TRY(begin(s, work));
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
        HBP__TRY(push(s, open)); /* the list may have changed since */
        if (s->spans == spans)
            continue;
        open = s->span[--s->spans];
        HBP__TRY(split(s, open, work));
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
    HBP__TRY(hbp__chain_dp_open(context, chain, list->room, &s.dp));
    if (list->count)
        add_neighbours(&s);
    hbp_status status = search_all(&s, work, bound);
    hbp__delete(&context->memory, s.span);
    return hbp__leave(context, mark, status);
}
