/* The library's own fill.
 *
 * Input: items ascending in size, groups. Output: packs of every group, such that the packs of a micro-batch
 * agree in tokens and in squares, and each is a draw from the whole distribution.
 *
 * For each group from the longest down:
 *   1. its own items, in descending order, are cut into runs of `width` consecutive ones (a multiple of the
 * packs in a micro-batch), and runs are spread over bins of `width` packs by worst fit decreasing (spread.h).
 * A run's items are alike, so the packs of a bin are alike; and worst fit decreasing deals every stretch of
 * the distribution over all bins, so that bins are alike too;
 *   2. what room is left is filled from shorter groups by a systematic sample of them, every n-th item of the
 * sorted list, so that a long pack's filling is a small copy of the short data; spread the same way;
 *   3. each bin is dealt to its packs (deal.h); then single items of shorter groups close the last gaps.
 *
 * Complexity: O(n + (n / width) log(n / width)) for n items. The number of packs is the least whole number of
 * bins that the spread succeeds with, and the packs that its few lost items need; the bound is ceil(tokens /
 * capacity). Oracle: brute force on tiny inputs for the bound, properties on random ones
 * (tests/pack/test_fill_balanced.c). */
#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "data/packs/items.h"
#include "hbp/pack.h"
#include "pack/fill/bin_writer.h"
#include "pack/fill/deal.h"
#include "pack/fill/fill.h"
#include "pack/fill/item_fill.h"
#include "pack/fill/spread.h"
#include "pack/tuning.h"
#include "solve/gap_index.h"
#include "solve/union_find.h"

/* Items to spread and deal, and where each went. */
typedef struct source {
    hbp__listing listing;
    uint32_t *bin_of;       /* [runs] */
    hbp__sized_run *run_at; /* [runs] runs in the order of their bins */
    int64_t *bin_start;     /* [bins + 1] into run_at */
    uint32_t *pack_of;      /* [listing.count]; NULL in the last group */
    int64_t runs;
} source;

typedef struct balanced {
    hbp_context *context;
    const hbp_groups *groups;
    hbp_fill_options options;
    hbp__items items;
    uint8_t *taken; /* [items] set for those that a longer group took; NULL with one group */
    hbp_packs *packs;
    int64_t done; /* samples written */
    /* The group at hand: */
    int64_t group;
    int64_t low; /* its own items are [low, items.count) */
    int64_t own_tokens, own_members;
    int64_t width;
    hbp__bins bins;
    hbp__fills fills;
    source own;
    source filler;
    uint32_t *filler_item;
    hbp__stray *strays;
    int64_t stray_count;
    int64_t stray_room;
} balanced;

static hbp_status no_memory(const balanced *b)
{
    return hbp__fail_memory(b->context, "the packs");
}

/* After takes. */
static hbp_status check(const balanced *b)
{
    return hbp__scratch_check(b->context, "the packs");
}

static hbp_status source_open(balanced *b, const hbp__listing *listing, int keeps_packs, source *s)
{
    hbp_context *context = b->context;
    s->listing = *listing;
    s->runs = hbp__ceil_div(listing->count, b->width);
    s->bin_of = hbp__take(context, (uint64_t)s->runs, sizeof *s->bin_of);
    s->run_at = hbp__take(context, (uint64_t)s->runs, sizeof *s->run_at);
    s->pack_of = keeps_packs ? hbp__take(context, (uint64_t)listing->count, sizeof *s->pack_of) : NULL;
    return check(b);
}

/* Lists the runs of each bin, in the order of the listing, by counting. Runs without a bin lose their items.
 */
static hbp_status source_index(balanced *b, source *s)
{
    s->bin_start = hbp__take_zero(b->context, (uint64_t)b->bins.count + 2, sizeof *s->bin_start);
    HBP__TRY(check(b));
    int64_t *start = s->bin_start + 1; /* shifted by one, so that filling leaves the starts in place */
    for (int64_t r = 0; r < s->runs; r++) {
        if (s->bin_of[r] != HBP__NO_BIN) {
            start[s->bin_of[r] + 1]++;
            continue;
        }
        for (int64_t k = r * b->width; s->pack_of && k < hbp__min_i64((r + 1) * b->width, s->listing.count);
             k++)
            s->pack_of[k] = HBP__NO_PACK;
    }
    for (int64_t i = 1; i <= b->bins.count; i++)
        start[i] += start[i - 1];
    for (int64_t r = 0; r < s->runs; r++)
        if (s->bin_of[r] != HBP__NO_BIN)
            s->run_at[start[s->bin_of[r]]++] = hbp__size_run(&s->listing, b->width, r);
    return HBP_OK;
}

/* What grows is no scratch. */
static void group_close(balanced *b)
{
    hbp__fills_close(&b->fills);
    hbp__delete(&b->context->memory, b->strays);
    b->strays = NULL;
    b->stray_count = b->stray_room = 0;
}

static hbp_status add_stray(balanced *b, int64_t pack, int64_t item)
{
    if (b->stray_count == b->stray_room) {
        int64_t room = b->stray_room * 2 + 256;
        hbp__stray *wider = hbp__renew(&b->context->memory, b->strays, (uint64_t)room, sizeof *wider);
        if (!wider)
            return no_memory(b);
        b->strays = wider;
        b->stray_room = room;
    }
    b->strays[b->stray_count++] = (hbp__stray){(uint32_t)pack, (uint32_t)item, b->items.size[item]};
    hbp__fills_put(&b->fills, &b->items, pack, item);
    return HBP_OK;
}

/* What the group's own items come to. */
static hbp_status sum_own(balanced *b)
{
    b->own_tokens = 0;
    b->own_members = b->items.count - b->low;
    for (int64_t i = b->low; i < b->items.count; i++)
        b->own_tokens += b->items.size[i];
    if (!b->items.next)
        return HBP_OK;
    b->own_members = 0;
    for (int64_t i = b->low; i < b->items.count; i++) {
        HBP__TRY(hbp__tick_row(b->context, "fill", i, b->items.count));
        b->own_members += hbp__items_members(&b->items, i);
    }
    return HBP_OK;
}

/* The fewest packs that the own items can need: by tokens, by items over half a pack, by members. */
static int64_t least_packs(const balanced *b, int64_t capacity, int64_t max_members)
{
    const int64_t small = hbp__items_up_to(&b->items, b->items.count, capacity / 2);
    const int64_t halves = b->items.count - hbp__max_i64(small, b->low);
    return hbp__max_i64(hbp__ceil_div(b->own_tokens, capacity),
                        hbp__max_i64(halves, hbp__ceil_div(b->own_members, max_members)));
}

/* Packs are what counts where a micro-batch is one; elsewhere a bin that is not full costs micro-batches. */
static int counts_packs(const balanced *b)
{
    return b->groups->packs[b->group] == 1;
}

/* One try with `count` bins: returns whether runs found one, but for few tokens that singly find a pack;
 * b->bins is left as the try left it, the only scratch past `mark`. */
static hbp_status try_spread(balanced *b, int64_t mark, int64_t count, int64_t capacity, int64_t max_members,
                             int *placed)
{
    HBP__TRY(hbp__tick(b->context, "fill", b->done, b->packs->samples));
    hbp__scratch_release(b->context, mark);
    HBP__TRY(hbp__bins_open(b->context, count, b->width, capacity, max_members, &b->bins));
    int64_t lost_tokens;
    HBP__TRY(hbp__bins_spread(&b->bins, &b->own.listing, b->own.bin_of, &lost_tokens));
    *placed = lost_tokens <= (counts_packs(b) ? count * b->width * (capacity / HBP__FILL_MOST_LOST) : 0);
    return HBP_OK;
}

/* Spreads the own items over as few bins as it takes, found by galloping from the least and then halving;
 * leaves b->bins with what room is left. */
static hbp_status spread_own(balanced *b, int64_t capacity, int64_t max_members)
{
    const int64_t mark = hbp__scratch_mark(b->context);
    const int64_t slack = counts_packs(b) ? 0 : capacity / HBP__FILL_SLACK;
    const int64_t least = hbp__ceil_div(least_packs(b, capacity - slack, max_members), b->width);
    int64_t failed = least - 1, count = least, stride = hbp__ceil_div(least, 1000);
    int placed = 0;
    HBP__TRY(try_spread(b, mark, count, capacity, max_members, &placed));
    while (!placed && count < HBP__FILL_MOST_BINS * least) {
        failed = count;
        count += stride;
        stride *= 2;
        HBP__TRY(try_spread(b, mark, count, capacity, max_members, &placed));
    }
    for (int halving = 0; placed && halving < HBP__FILL_MAX_HALVINGS && count - failed > 1; halving++) {
        int64_t middle = failed + (count - failed) / 2;
        HBP__TRY(try_spread(b, mark, middle, capacity, max_members, &placed));
        if (placed)
            count = middle;
        else
            failed = middle;
        placed = 1;
    }
    return b->bins.count == count ? HBP_OK : try_spread(b, mark, count, capacity, max_members, &placed);
}

/* Draws from the shorter items [0, low) about as many tokens as the bins have free: every n-th of them, n
 * being the tokens there are over the tokens wanted. Items are drawn from the longest down. */
static hbp_status draw_filler(balanced *b, int64_t *count)
{
    int64_t free_tokens = 0, tokens = 0;
    for (int64_t i = 0; i < b->bins.count; i++)
        free_tokens += b->bins.gap[i];
    for (int64_t i = 0; i < b->low; i++)
        tokens += b->items.size[i];
    double stride = free_tokens >= tokens ? 1 : (double)tokens / (double)hbp__max_i64(1, free_tokens);
    *count = (int64_t)((double)b->low / stride);
    b->filler_item = hbp__take(b->context, (uint64_t)*count, sizeof *b->filler_item);
    HBP__TRY(check(b));
    for (int64_t k = 0; k < *count; k++) {
        int64_t from_top = hbp__min_i64((int64_t)(((double)k + 0.5) * stride), b->low - 1);
        b->filler_item[k] = (uint32_t)(b->low - 1 - from_top);
    }
    return HBP_OK;
}

static hbp_status spread_filler(balanced *b)
{
    int64_t count = 0;
    HBP__TRY(draw_filler(b, &count));
    hbp__listing listing = {b->items.size, b->filler_item, 0, count};
    HBP__TRY(source_open(b, &listing, 1, &b->filler));
    int64_t lost_tokens;
    HBP__TRY(hbp__bins_spread(&b->bins, &listing, b->filler.bin_of, &lost_tokens));
    return source_index(b, &b->filler);
}

/* Deals a source's runs, bin by bin. Items that a bin's packs have no room for keep HBP__NO_PACK. */
static hbp_status deal_source(balanced *b, source *s)
{
    int64_t mark = hbp__scratch_mark(b->context);
    uint32_t *order = hbp__take(b->context, (uint64_t)b->width, sizeof *order);
    HBP__TRY(check(b));
    for (int64_t bin = 0; bin < b->bins.count; bin++) {
        for (int64_t j = 0; j < b->width; j++)
            order[j] = (uint32_t)(bin * b->width + j);
        hbp__bin_deal deal;
        hbp__bin_deal_begin(&b->fills, &b->items, &s->listing, b->width, order, &deal);
        for (int64_t i = s->bin_start[bin]; i < s->bin_start[bin + 1]; i++) {
            int64_t lost;
            HBP__TRY(hbp__bin_deal_run(b->context, &deal, s->run_at[i],
                                       s->pack_of + s->run_at[i].run * b->width, &lost));
        }
        hbp__bin_deal_end(&deal);
        if (bin % 256 == 0)
            HBP__TRY(hbp__tick(b->context, "fill", b->done, b->packs->samples));
    }
    hbp__scratch_release(b->context, mark);
    return HBP_OK;
}

/* Puts pack `p` into the index of gaps, unless it holds as many samples as it may or has no room for items of
 * `shortest`. */
static void index_pack(const balanced *b, hbp__gap_index *index, int64_t p, int64_t shortest)
{
    const int64_t gap = b->fills.capacity - b->fills.load[p];
    if (gap >= shortest && b->fills.members[p] < b->fills.max_members)
        hbp__gap_index_add(index, (uint32_t)p, gap);
}

/* A pack for an item that no deal had room for: best fit, else the newest pack, else a new one. */
static hbp_status place_item(balanced *b, hbp__gap_index *index, int64_t item, int64_t shortest)
{
    uint32_t found = hbp__gap_index_take(index, b->items.size[item]);
    if (found != HBP__NO_GAP && hbp__fills_fits(&b->fills, &b->items, found, item)) {
        HBP__TRY(add_stray(b, found, item));
        index_pack(b, index, found, shortest);
        return HBP_OK;
    }
    int64_t fresh = b->fills.count - 1;
    if (fresh >= b->bins.count * b->width && hbp__fills_fits(&b->fills, &b->items, fresh, item))
        return add_stray(b, fresh, item);
    fresh++;
    if (!hbp__fills_grow(&b->fills))
        return no_memory(b);
    if (!hbp__fills_fits(&b->fills, &b->items, fresh, item))
        return hbp__items_refuse_linked(b->context, &b->items, item, b->fills.max_members);
    return add_stray(b, fresh, item);
}

/* Own items that found no pack in their bin: by their places in the listing, ascending. */
static hbp_status place_lost(balanced *b, const uint32_t *lost, int64_t losses)
{
    const hbp__listing *listing = &b->own.listing;
    int64_t tokens = 0, shortest = INT64_MAX, most = 0, least = INT64_MAX;
    if (!losses)
        return HBP_OK;
    for (int64_t i = 0; i < losses; i++) {
        tokens += hbp__listing_size(listing, lost[i]);
        shortest = hbp__min_i64(shortest, hbp__listing_size(listing, lost[i]));
    }
    for (int64_t p = 0; p < b->fills.count; p++) {
        HBP__TRY(hbp__tick_row(b->context, "fill", p, b->fills.count));
        least = hbp__min_i64(least, b->fills.capacity - b->fills.load[p]);
        most = hbp__max_i64(most, b->fills.capacity - b->fills.load[p]);
    }
    hbp__gap_index index;
    hbp_status status = HBP_OK;
    const int64_t from = hbp__max_i64(least - tokens, shortest);
    if (!hbp__gap_index_open(&b->context->memory, b->fills.count, from, hbp__max_i64(most, from), &index))
        status = no_memory(b);
    for (int64_t p = b->fills.count; status == HBP_OK && p-- > 0;) {
        index_pack(b, &index, p, shortest);
        status = hbp__tick_row(b->context, "fill", p, b->fills.count);
    }
    for (int64_t i = 0; i < losses && status == HBP_OK; i++) {
        status = place_item(b, &index, hbp__listing_item(listing, lost[i]), shortest);
        if (status == HBP_OK)
            status = hbp__tick_row(b->context, "fill", i, losses);
    }
    hbp__gap_index_close(&index);
    return status;
}

/* The places of own items without a pack, where packs are kept. */
static hbp_status place_unpacked(balanced *b)
{
    int64_t losses = 0;
    const int64_t count = b->own.listing.count, mark = hbp__scratch_mark(b->context);
    for (int64_t k = 0; k < count; k++) {
        HBP__TRY(hbp__tick_row(b->context, "fill", k, count));
        losses += b->own.pack_of[k] == HBP__NO_PACK;
    }
    uint32_t *lost = hbp__take(b->context, (uint64_t)losses, sizeof *lost);
    HBP__TRY(check(b));
    losses = 0;
    for (int64_t k = 0; k < count; k++)
        if (b->own.pack_of[k] == HBP__NO_PACK)
            lost[losses++] = (uint32_t)k;
    HBP__TRY(place_lost(b, lost, losses));
    hbp__scratch_release(b->context, mark);
    return HBP_OK;
}

/* Closes the last gaps of the packs: as long as something fits, the largest shorter item that does. Of items
 * counted from 1, left[] leads to the nearest at or below that nobody took, 0 for none. */
static hbp_status top_up(balanced *b)
{
    int64_t mark = hbp__scratch_mark(b->context);
    uint32_t *left = hbp__take(b->context, (uint64_t)b->low + 1, sizeof *left);
    HBP__TRY(check(b));
    for (int64_t i = 0; i <= b->low; i++) {
        HBP__TRY(hbp__tick_row(b->context, "fill", i, b->low));
        left[i] = (uint32_t)(i && b->taken[i - 1] ? i - 1 : i);
    }
    for (int64_t p = 0; p < b->fills.count; p++) {
        while (b->fills.members[p] < b->fills.max_members) {
            int64_t gap = b->fills.capacity - b->fills.load[p];
            uint32_t found = hbp__set_of_u32(left, (uint32_t)hbp__items_up_to(&b->items, b->low, gap));
            if (!found || !hbp__fills_fits(&b->fills, &b->items, p, found - 1))
                break;
            b->taken[found - 1] = 1;
            left[found] = found - 1;
            HBP__TRY(add_stray(b, p, found - 1));
        }
        if (p % 4096 == 0)
            HBP__TRY(hbp__tick(b->context, "fill", b->done, b->packs->samples));
    }
    hbp__scratch_release(b->context, mark);
    return HBP_OK;
}

static void write_item(balanced *b, int64_t *cursor, uint32_t pack, int64_t item)
{
    if (b->packs->brief)
        b->packs->brief[cursor[pack]] = hbp__brief_of(b->items.size[item]);
    cursor[pack] += hbp__items_write(&b->items, item, b->packs->sample + cursor[pack]);
    b->items.size[item] = 0; /* written; compacted away at the end of the group */
}

/* Writes one source bin by bin, so that writes stay close together. */
static hbp_status write_source(balanced *b, const source *s, int64_t *cursor)
{
    int64_t runs = s->bin_start[b->bins.count];
    for (int64_t i = 0; i < runs; i++) {
        int64_t first = s->run_at[i].run * b->width, end = hbp__min_i64(first + b->width, s->listing.count);
        for (int64_t k = first; k < end; k++)
            if (s->pack_of[k] != HBP__NO_PACK)
                write_item(b, cursor, s->pack_of[k], hbp__listing_item(&s->listing, k));
        if (i % 4096 == 0)
            HBP__TRY(hbp__tick(b->context, "fill", b->done, b->packs->samples));
    }
    return HBP_OK;
}

/* Appends the group's packs to the result, without empty ones; the samples come to b->done. */
static hbp_status append_packs(balanced *b, int64_t *cursor)
{
    if (!hbp__packs_reserve(b->packs, b->packs->count + b->fills.count))
        return no_memory(b);
    hbp_packs *packs = b->packs;
    for (int64_t p = 0; p < b->fills.count; p++) {
        HBP__TRY(hbp__tick_row(b->context, "fill", p, b->fills.count));
        cursor[p] = b->done;
        if (!b->fills.members[p])
            continue;
        b->done += b->fills.members[p];
        packs->group[packs->count++] = (int32_t)b->group;
        packs->offsets[packs->count] = b->done;
    }
    return HBP_OK;
}

static hbp_status write_packs(balanced *b)
{
    int64_t *cursor = hbp__take(b->context, (uint64_t)b->fills.count, sizeof *cursor);
    HBP__TRY(check(b));
    HBP__TRY(append_packs(b, cursor));
    HBP__TRY(write_source(b, &b->own, cursor));
    HBP__TRY(write_source(b, &b->filler, cursor));
    for (int64_t i = 0; i < b->stray_count; i++)
        write_item(b, cursor, b->strays[i].pack, b->strays[i].item);
    return HBP_OK;
}

/* The last group, whose packs get nothing from shorter ones: written, and measured, pack after pack. */
static hbp_status deal_and_write(balanced *b, hbp__dealt *dealt)
{
    hbp_packs *packs = b->packs;
    const hbp__dealing dealing = {.items = &b->items,
                                  .listing = &b->own.listing,
                                  .bins = b->bins.count,
                                  .width = b->width,
                                  .runs = b->own.runs,
                                  .bin_of = b->own.bin_of,
                                  .run_at = b->own.run_at,
                                  .bin_start = b->own.bin_start,
                                  .token_ns = b->groups->token_ns[b->group],
                                  .square_ns = b->groups->square_ns[b->group]};
    HBP__TRY(hbp__deal_bins(b->context, &dealing, &b->fills, dealt));
    HBP__TRY(place_lost(b, dealt->lost, dealt->losses));
    if (!hbp__packs_reserve(packs, packs->count + b->fills.count))
        return no_memory(b);
    if (packs->brief)
        packs->unmeasured = packs->count;
    HBP__TRY(hbp__write_bins(b->context, &dealing, dealt, &b->fills, b->strays, b->stray_count,
                             (int32_t)b->group, packs));
    b->done = packs->offsets[packs->count];
    b->items.count = 0; /* all of them are written */
    return HBP_OK;
}

static hbp_status write_last(balanced *b)
{
    hbp__dealt dealt;
    const hbp_status status = deal_and_write(b, &dealt);
    hbp__dealt_close(&dealt);
    return status;
}

/* Drops written items from the list; the rest keeps its order. */
static void compact(balanced *b)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < b->low; i++) {
        if (!b->items.size[i])
            continue;
        b->items.size[kept] = b->items.size[i];
        b->items.sample[kept++] = b->items.sample[i];
    }
    b->items.count = kept;
    if (b->taken)
        memset(b->taken, 0, (size_t)kept);
}

static hbp_status fill_group(balanced *b, int64_t capacity)
{
    const hbp_groups *groups = b->groups;
    int64_t g = b->group, max_members = b->options.max_samples ? b->options.max_samples : INT64_MAX / 2;
    HBP__TRY(sum_own(b));
    b->width = hbp__bin_width(groups->packs[g], least_packs(b, capacity, max_members));
    hbp__listing own = {b->items.size, NULL, b->items.count, b->items.count - b->low};
    HBP__TRY(source_open(b, &own, b->low > 0, &b->own));
    HBP__TRY(spread_own(b, capacity, max_members));
    HBP__TRY(source_index(b, &b->own));
    if (b->low > 0)
        HBP__TRY(spread_filler(b));
    const int64_t packs = b->bins.count * b->width;
    if (b->low == 0) {
        HBP__TRY(hbp__fills_open_untimed(b->context, packs, capacity, max_members, &b->fills));
        return write_last(b);
    }
    HBP__TRY(hbp__fills_open(b->context, packs, capacity, max_members, groups->token_ns[g],
                             groups->square_ns[g], &b->fills));
    HBP__TRY(deal_source(b, &b->own));
    HBP__TRY(place_unpacked(b));
    HBP__TRY(deal_source(b, &b->filler));
    for (int64_t k = 0; k < b->filler.listing.count; k++)
        if (b->filler.pack_of[k] != HBP__NO_PACK)
            b->taken[hbp__listing_item(&b->filler.listing, k)] = 1;
    HBP__TRY(top_up(b));
    HBP__TRY(write_packs(b));
    compact(b);
    return HBP_OK;
}

static hbp_status fill_groups(balanced *b, const int64_t *capacity, const int64_t *largest)
{
    const hbp_groups *groups = b->groups;
    for (int64_t g = groups->count - 1; g >= 0; g--) {
        b->group = g;
        b->low = g ? hbp__items_up_to(&b->items, b->items.count, largest[g - 1]) : 0;
        int64_t mark = hbp__scratch_mark(b->context);
        hbp_status status = b->low < b->items.count ? fill_group(b, capacity[g]) : HBP_OK;
        group_close(b);
        HBP__TRY(status);
        hbp__scratch_release(b->context, mark);
    }
    return HBP_OK;
}

/* Sizes of plain items of one group stand in the column of samples until these are written. */
static hbp_status open_items(balanced *b, const hbp_lengths *lengths, int64_t largest, int is_plain)
{
    const hbp_fill_options *o = &b->options;
    return is_plain && b->groups->count == 1
               ? hbp__items_open_in(b->context, lengths, o->sequence_multiple, largest, o->seed, o->epoch,
                                    b->packs->sample, &b->items)
               : hbp__items_open(b->context, lengths, o->sequence_multiple, largest, o->seed, o->epoch,
                                 &b->items);
}

static hbp_status fill_all(balanced *b, const hbp_lengths *lengths)
{
    const hbp_groups *groups = b->groups;
    const hbp_fill_options *options = &b->options;
    int64_t capacity[HBP_MAX_GROUPS], largest[HBP_MAX_GROUPS];
    hbp__fill_limits(groups, options, capacity, largest);
    b->packs = hbp__packs_new(b->context, lengths, 0);
    if (!b->packs)
        return no_memory(b);
    /* An item's size is its sample's length when nothing is linked or padded. */
    const int is_plain = !lengths->link && options->sequence_multiple == 1;
    HBP__TRY(open_items(b, lengths, largest[groups->count - 1], is_plain));
    uint64_t count = (uint64_t)b->items.count;
    b->taken = groups->count > 1 ? hbp__take_zero(b->context, count, sizeof *b->taken) : NULL;
    HBP__TRY(check(b));
    if (is_plain)
        b->packs->brief = hbp__new(&b->context->memory, count, sizeof *b->packs->brief);
    if (is_plain && !b->packs->brief)
        return no_memory(b);
    return fill_groups(b, capacity, largest);
}

hbp_status hbp__fill_balanced(hbp_context *context, const hbp_lengths *lengths, const hbp_groups *groups,
                              const hbp_fill_options *options, hbp_packs **out)
{
    balanced b;
    memset(&b, 0, sizeof b);
    b.context = context;
    b.groups = groups;
    b.options = *options;
    hbp_status status = fill_all(&b, lengths);
    hbp__items_close(&b.items);
    if (status == HBP_OK)
        *out = b.packs;
    else
        hbp_packs_free(b.packs);
    return status;
}
