/* Worst fit decreasing of runs over bins, by a heap; the last runs best fit. */
#include "pack/fill/spread.h"

#include "base/checked.h"
#include "base/scratch.h"
#include "pack/tuning.h"
#include "solve/gap_index.h"

hbp_status hbp__bins_open(hbp_context *context, int64_t count, int64_t width, int64_t capacity,
                          int64_t max_items, hbp__bins *bins)
{
    uint64_t rows = (uint64_t)count;
    *bins = (hbp__bins){context, count, width, capacity, NULL, NULL, NULL};
    bins->gap = hbp__take(context, rows, sizeof *bins->gap);
    bins->room = hbp__take(context, rows, sizeof *bins->room);
    bins->heap = hbp__take(context, rows, sizeof *bins->heap);
    HBP__TRY(hbp__scratch_check(context, "the packs"));
    for (int64_t b = 0; b < count; b++) {
        bins->gap[b] = capacity * width;
        bins->room[b] = max_items;
        bins->heap[b] = (hbp__bin_key){0, (uint32_t)b};
    }
    return HBP_OK;
}

/* Free tokens for the heap's order; a bin whose packs are full of items has none. */
static int64_t free_tokens(const hbp__bins *bins, uint32_t b)
{
    return bins->room[b] > 0 ? bins->gap[b] : -1;
}

static inline int above(hbp__bin_key a, hbp__bin_key b)
{
    return a.free != b.free ? a.free > b.free : a.bin < b.bin;
}

/* Most of what is sifted belongs near the leaves: down along the larger children first, then up again. */
static void sift_down(const hbp__bins *bins, int64_t at)
{
    hbp__bin_key *heap = bins->heap;
    const hbp__bin_key moving = heap[at];
    const int64_t top = at;
    for (int64_t child; (child = 2 * at + 1) < bins->count; at = child) {
        if (child + 1 < bins->count && above(heap[child + 1], heap[child]))
            child++;
        heap[at] = heap[child];
    }
    while (at > top && above(moving, heap[(at - 1) / 2])) {
        heap[at] = heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap[at] = moving;
}

/* Tokens of the items [first, end) of a listing. */
static int64_t run_tokens(const hbp__listing *listing, int64_t first, int64_t end)
{
    int64_t longest = hbp__listing_size(listing, first), total = longest * (end - first);
    if (hbp__listing_size(listing, end - 1) != longest) {
        total = 0;
        for (int64_t k = first; k < end; k++)
            total += hbp__listing_size(listing, k);
    }
    return total;
}

/* Runs [0, head) go worst fit, the rest are the tail: as many of the last runs as fit a HBP__FILL_TAIL-th of
 * the room.
 */
static int64_t find_head(const hbp__bins *bins, const hbp__listing *listing, int64_t runs)
{
    int64_t left = 0, head = runs;
    for (int64_t b = 0; b < bins->count; b++)
        left += bins->gap[b] / HBP__FILL_TAIL;
    while (head > 0) {
        int64_t first = (head - 1) * bins->width, end = hbp__min_i64(first + bins->width, listing->count);
        left -= run_tokens(listing, first, end);
        if (left < 0)
            break;
        head--;
    }
    return head;
}

static void put_run(hbp__bins *bins, uint32_t b, int64_t total)
{
    bins->gap[b] -= total;
    bins->room[b]--;
}

static hbp_status spread_head(hbp__bins *bins, const hbp__listing *listing, int64_t head, uint32_t *bin_of,
                              int64_t *lost)
{
    for (int64_t i = 0; i < bins->count; i++)
        bins->heap[i].free = free_tokens(bins, bins->heap[i].bin);
    for (int64_t i = bins->count / 2; i-- > 0;)
        sift_down(bins, i);
    for (int64_t run = 0; run < head; run++) {
        HBP__TRY(hbp__tick_row(bins->context, "fill", run, head));
        int64_t first = run * bins->width, end = hbp__min_i64(first + bins->width, listing->count);
        const uint32_t b = bins->heap[0].bin;
        if (hbp__listing_size(listing, first) * bins->width > bins->heap[0].free) {
            bin_of[run] = HBP__NO_BIN;
            *lost += end - first;
            continue;
        }
        bin_of[run] = b;
        put_run(bins, b, run_tokens(listing, first, end));
        bins->heap[0].free = free_tokens(bins, b);
        sift_down(bins, 0);
    }
    return HBP_OK;
}

static void index_bin(const hbp__bins *bins, hbp__gap_index *index, uint32_t b)
{
    int64_t tokens = free_tokens(bins, b);
    if (tokens >= bins->width)
        hbp__gap_index_add(index, b, tokens / bins->width);
}

static hbp_status spread_tail(hbp__bins *bins, const hbp__listing *listing, int64_t head, int64_t runs,
                              hbp__gap_index *index, uint32_t *bin_of, int64_t *lost)
{
    for (int64_t b = bins->count; b-- > 0;) {
        HBP__TRY(hbp__tick_row(bins->context, "fill", b, bins->count));
        index_bin(bins, index, (uint32_t)b);
    }
    for (int64_t run = head; run < runs; run++) {
        HBP__TRY(hbp__tick_row(bins->context, "fill", run, runs));
        int64_t first = run * bins->width, end = hbp__min_i64(first + bins->width, listing->count);
        uint32_t b = hbp__gap_index_take(index, hbp__listing_size(listing, first));
        bin_of[run] = b;
        if (b == HBP__NO_BIN) {
            *lost += end - first;
            continue;
        }
        put_run(bins, b, run_tokens(listing, first, end));
        index_bin(bins, index, b);
    }
    return HBP_OK;
}

/* An index of the gaps that bins have before the tail's runs, from `head` on, and may have behind them. */
static int open_index(const hbp__bins *bins, const hbp__listing *listing, int64_t head, int64_t runs,
                      hbp__gap_index *index)
{
    int64_t least = bins->gap[0], most = bins->gap[0];
    for (int64_t b = 1; b < bins->count; b++) {
        least = hbp__min_i64(least, bins->gap[b]);
        most = hbp__max_i64(most, bins->gap[b]);
    }
    for (int64_t run = head; run < runs && least > 0; run++) {
        int64_t first = run * bins->width;
        least -= run_tokens(listing, first, hbp__min_i64(first + bins->width, listing->count));
    }
    return hbp__gap_index_open(&bins->context->memory, bins->count, hbp__max_i64(least, 0) / bins->width,
                               most / bins->width, index);
}

hbp_status hbp__bins_spread(hbp__bins *bins, const hbp__listing *listing, uint32_t *bin_of, int64_t *lost)
{
    int64_t runs = hbp__ceil_div(listing->count, bins->width), head = find_head(bins, listing, runs);
    *lost = 0;
    HBP__TRY(spread_head(bins, listing, head, bin_of, lost));
    hbp__gap_index index;
    hbp_status status = open_index(bins, listing, head, runs, &index)
                            ? spread_tail(bins, listing, head, runs, &index, bin_of, lost)
                            : hbp__fail_memory(bins->context, "the packs");
    hbp__gap_index_close(&index);
    return status;
}
