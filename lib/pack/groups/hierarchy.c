/* Sums over the histogram, and what a level and a hierarchy take by them. */
#include "pack/groups/hierarchy.h"

#include <string.h>

#include "base/scratch.h"
#include "data/packs/items.h"
#include "pack/tuning.h"

/* Mean squares of the items in bin `b`. */
static double bin_square(const hbp__estimator *e, int64_t b)
{
    return (e->squares_before[b + 1] - e->squares_before[b]) /
           (double)(e->items_before[b + 1] - e->items_before[b]);
}

/* Items of unlike length in one micro-batch wait for the longest. For packs of one micro-batch taken in
 * descending order, P at a time, the wait is P max(s^2) - sum(s^2). ragged_before[d][b] is its sum over the
 * bins below b with P = ranks / degree: items of one bin are alike, so only the runs that a bin's border cuts
 * wait. A level whose longest items are in bin b - 1 begins a run of its own: excess[d][b] is what each of
 * its first joins[d][b] items waits too long in that sum, which has them in a run with longer ones. */
static void ragged_prefix(const hbp__estimator *e, int64_t packs, double *ragged, double *excess,
                          int32_t *joins)
{
    /* From the longest bin down: `open` items are in the run that the bins above began, whose longest has
     * `top` squares. */
    int64_t open = 0;
    double top = 0;
    for (int64_t b = e->bins - 1; b >= 0; b--) {
        int64_t left = e->items_before[b + 1] - e->items_before[b];
        double square = bin_square(e, b);
        /* Linked samples may have fewer squares than a shorter item. */
        double wait = top > square ? top - square : 0;
        joins[b + 1] = open ? (int32_t)(packs - open) : 0;
        excess[b + 1] = open ? wait : 0;
        ragged[b + 1] = 0;
        if (open) {
            int64_t joining = hbp__min_i64(left, packs - open);
            ragged[b + 1] = (double)joining * wait;
            left -= joining;
            open = (open + joining) % packs;
        }
        if (left % packs) {
            open = left % packs;
            top = square;
        }
    }
    ragged[0] = excess[0] = 0;
    joins[0] = 0;
    for (int64_t b = 0; b < e->bins; b++)
        ragged[b + 1] += ragged[b];
}

static hbp_status sums_take(hbp_context *context, int64_t most, hbp__estimator *e)
{
    uint64_t rows = (uint64_t)most + 1, degrees = (uint64_t)e->cost->terms.degrees;
    e->size = hbp__take(context, rows, sizeof *e->size);
    e->items_before = hbp__take_zero(context, rows, sizeof *e->items_before);
    e->tokens_before = hbp__take_zero(context, rows, sizeof *e->tokens_before);
    e->padded_before = hbp__take_zero(context, rows, sizeof *e->padded_before);
    e->squares_before = hbp__take_zero(context, rows, sizeof *e->squares_before);
    e->ragged_before = hbp__take(context, rows, degrees * sizeof *e->ragged_before);
    e->excess = hbp__take(context, rows, degrees * sizeof *e->excess);
    e->joins = hbp__take(context, rows, degrees * sizeof *e->joins);
    return hbp__scratch_check(context, "the sums over the histogram");
}

/* Adds `items` items to the histogram, none smaller than those before: each of `size` padded tokens, with so
 * many tokens and squares together. */
static void add_items(hbp__estimator *e, int64_t items, int64_t size, int64_t tokens, double squares)
{
    if (!e->bins || e->size[e->bins - 1] != size) {
        int64_t b = e->bins++;
        e->size[b] = size;
        e->items_before[b + 1] = e->items_before[b];
        e->tokens_before[b + 1] = e->tokens_before[b];
        e->padded_before[b + 1] = e->padded_before[b];
        e->squares_before[b + 1] = e->squares_before[b];
    }
    e->items_before[e->bins] += items;
    e->tokens_before[e->bins] += tokens;
    e->padded_before[e->bins] += items * size;
    e->squares_before[e->bins] += squares;
}

static hbp_status add_bins(hbp_context *context, hbp__estimator *e, const hbp_lengths *lengths,
                           int64_t sequence_multiple)
{
    HBP__TRY(sums_take(context, lengths->bins, e));
    for (int64_t b = 0; b < lengths->bins; b++) {
        int64_t length = lengths->bin_length[b], count = lengths->bin_count[b];
        add_items(e, count, hbp__round_up(length, sequence_multiple), length * count,
                  (double)length * (double)length * (double)count);
    }
    return HBP_OK;
}

/* Different sizes of items, which stand in order of size. */
static hbp_status count_sizes(hbp_context *context, const hbp__items *items, int64_t *sizes)
{
    *sizes = 0;
    for (int64_t i = 0; i < items->count; i++) {
        HBP__TRY(hbp__tick_row(context, "groups", i, items->count));
        *sizes += !i || items->size[i] != items->size[i - 1];
    }
    return HBP_OK;
}

static hbp_status add_items_of(hbp_context *context, hbp__estimator *e, const hbp__items *items)
{
    int64_t sizes;
    HBP__TRY(count_sizes(context, items, &sizes));
    HBP__TRY(sums_take(context, sizes, e));
    for (int64_t i = 0; i < items->count; i++) {
        HBP__TRY(hbp__tick_row(context, "groups", i, items->count));
        int64_t tokens = 0;
        for (uint32_t s = items->sample[i]; s != HBP__NO_SAMPLE; s = items->next[s])
            tokens += hbp__lengths_get(items->lengths, s);
        add_items(e, 1, items->size[i], tokens, (double)hbp__items_exact_squares(items, i));
    }
    return HBP_OK;
}

static hbp_status add_linked(hbp_context *context, hbp__estimator *e, const hbp_lengths *lengths,
                             int64_t sequence_multiple)
{
    hbp__items items;
    hbp_status status = hbp__items_open(context, lengths, sequence_multiple, INT64_MAX, 0, 0, &items);
    if (status == HBP_OK)
        status = add_items_of(context, e, &items);
    hbp__items_close(&items);
    return status;
}

hbp_status hbp__estimator_open(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                               int64_t sequence_multiple, hbp__estimator *estimator)
{
    memset(estimator, 0, sizeof *estimator);
    estimator->cost = cost;
    HBP__TRY(lengths->link ? add_linked(context, estimator, lengths, sequence_multiple)
                           : add_bins(context, estimator, lengths, sequence_multiple));
    for (int32_t d = 0; d < cost->terms.degrees; d++) {
        int64_t row = d * (estimator->bins + 1);
        ragged_prefix(estimator, cost->terms.ranks / cost->degree[d], estimator->ragged_before + row,
                      estimator->excess + row, estimator->joins + row);
    }
    return HBP_OK;
}

int64_t hbp__estimator_bin(const hbp__estimator *estimator, int64_t size)
{
    int64_t low = 0, high = estimator->bins;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (estimator->size[middle] <= size)
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
    int32_t recompute = row < 0 || pack_length < 1 ? -1 : hbp__cost_fewest_layers(cost, row, pack_length, 0);
    if (recompute < 0)
        return 0;
    int64_t packs = cost->terms.ranks / sp;
    if (!micro_batches)
        micro_batches = hbp__max_i64(1, tokens_per_step / packs / pack_length);
    *level = (hbp__level){0, pack_length, sp, row, recompute, packs, micro_batches};
    return 1;
}

int hbp__level_allow(const hbp_cost *cost, const hbp__level_limits *limits, int32_t sp, int64_t pack_length,
                     int64_t micro_batches, hbp__level *level)
{
    return pack_length <= limits->max_length && hbp__ceil_div(pack_length, sp) <= limits->tokens_per_rank &&
           pack_length <= limits->tokens_per_step / (cost->terms.ranks / sp) &&
           hbp__level_make(cost, limits->tokens_per_step, sp, pack_length, micro_batches, level);
}

/* The fewest packs that items in bins [low, high) need, by tokens and by the most items that a pack holds. */
static int64_t least_packs(const hbp__estimator *e, int64_t low, int64_t high, int64_t length)
{
    int64_t items = e->items_before[high] - e->items_before[low];
    int64_t padded = e->padded_before[high] - e->padded_before[low];
    return hbp__max_i64(hbp__ceil_div(padded, length), hbp__ceil_div(items, length / e->size[low]));
}

/* What fills `room` tokens of so many packs up: shorter items, as many whole ones as a pack's share of the
 * room holds. Where it holds many, nothing stays free. */
static double filler_tokens(const hbp__estimator *e, int64_t low, int64_t room, int64_t packs)
{
    int64_t share = room / packs, fit = share / e->size[0];
    if (fit < HBP__GROUPS_MANY_ITEMS)
        share = fit * e->size[0];
    return (double)hbp__min_i64(share * packs, e->padded_before[low]);
}

double hbp__level_ns(const hbp__estimator *estimator, const hbp__level *level, int64_t low, int64_t high,
                     double *left)
{
    const hbp__estimator *e = estimator;
    int64_t items = e->items_before[high] - e->items_before[low];
    *left = 1;
    if (!items)
        return 0;
    int64_t packs = level->packs, longest = e->size[high - 1];
    int64_t padded = e->padded_before[high] - e->padded_before[low];
    int64_t micro_batches = hbp__ceil_div(least_packs(e, low, high, level->pack_length), packs);
    int64_t places = micro_batches * packs;
    /* Each micro-batch lasts as long as its fullest pack. Items are dealt evenly; where few go into a pack,
     * some packs hold one more than others, and those share micro-batches. */
    int64_t fewest = items / places, fuller = hbp__ceil_div(items - fewest * places, packs);
    double lumps = (double)(micro_batches * fewest + fuller) * (double)e->size[low];
    double tokens = (double)padded / (double)packs;
    double square = bin_square(e, high - 1);
    int64_t row = (int64_t)level->row * (e->bins + 1);
    const double *ragged = e->ragged_before + row;
    double squares = e->squares_before[high] - e->squares_before[low] + ragged[high] - ragged[low] -
                     (double)hbp__min_i64(items, e->joins[row + high]) * e->excess[row + high];
    squares /= (double)packs;
    if (squares < square)
        squares = square; /* all wait for the longest item, however few there are */
    if (low) {
        double filler = filler_tokens(e, low, places * level->pack_length - padded, places);
        double below = (double)e->padded_before[low];
        *left = 1 - filler / below;
        tokens += filler / (double)packs;
        squares += e->squares_before[low] * (filler / below) / (double)packs;
    }
    if (tokens < lumps) {
        squares *= lumps / tokens;
        tokens = lumps;
    }
    double mean = tokens / (double)micro_batches;
    if (mean < (double)longest)
        mean += ((double)longest - mean) / (double)micro_batches;
    return (double)micro_batches *
               hbp__cost_ns(e->cost, level->row, level->recompute, mean, squares / (double)micro_batches, 0) +
           (double)hbp__ceil_div(micro_batches, level->micro_batches) * e->cost->terms.step_ns;
}

void hbp__hierarchy_estimate(const hbp__estimator *estimator, hbp__hierarchy *hierarchy)
{
    double total = 0, left;
    int64_t low = 0;
    for (int64_t g = 0; g < hierarchy->count; g++) {
        int64_t high = hbp__estimator_bin(estimator, hierarchy->level[g].threshold);
        double ns = hbp__level_ns(estimator, &hierarchy->level[g], low, high, &left);
        total = ns + left * total;
        low = high;
    }
    hierarchy->epoch_ns = hbp__round_i64(total);
}

int hbp__hierarchy_equals(const hbp__hierarchy *a, const hbp__hierarchy *b)
{
    if (a->count != b->count)
        return 0;
    for (int64_t g = 0; g < a->count; g++)
        if (a->level[g].threshold != b->level[g].threshold ||
            a->level[g].pack_length != b->level[g].pack_length || a->level[g].sp != b->level[g].sp)
            return 0;
    return 1;
}
