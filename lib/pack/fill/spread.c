/* Worst fit decreasing of runs over bins, by a heap of ranges of equal bins; the last runs best fit. */
#include "pack/fill/spread.h"

#include "base/checked.h"
#include "base/scratch.h"
#include "pack/tuning.h"
#include "solve/gap_index.h"

/* Packs by which `least` of them are rounded up to whole bins. */
static int64_t surplus(int64_t least, int64_t width)
{
    return hbp__round_up(least, width) - least;
}

int64_t hbp__bin_width(int64_t packs, int64_t least)
{
    int64_t width = packs;
    while (width < HBP__FILL_MIN_WIDTH && least >= 2 * width * HBP__FILL_MIN_BINS)
        width *= 2;
    if (packs > 1)
        return width;
    int64_t best = 2 * width - 1;
    for (int64_t near = best - 1; near > width / 2; near--) {
        if (near < width && surplus(least, best) <= least / HBP__FILL_MOST_LOST)
            break;
        if (surplus(least, near) < surplus(least, best))
            best = near;
    }
    return best;
}

hbp_status hbp__bins_open(hbp_context *context, int64_t count, int64_t width, int64_t capacity,
                          int64_t max_items, hbp__bins *bins)
{
    uint64_t rows = (uint64_t)count;
    *bins = (hbp__bins){.context = context, .count = count, .width = width, .capacity = capacity};
    bins->gap = hbp__take(context, rows, sizeof *bins->gap);
    bins->room = hbp__take(context, rows, sizeof *bins->room);
    bins->heap = hbp__take(context, rows, sizeof *bins->heap);
    bins->end = hbp__take(context, rows, sizeof *bins->end);
    HBP__TRY(hbp__scratch_check(context, "the packs"));
    while (count > INT64_C(1) << bins->first_bits)
        bins->first_bits++;
    for (int64_t b = 0; b < count; b++) {
        bins->gap[b] = capacity * width;
        bins->room[b] = max_items;
    }
    return HBP_OK;
}

static inline int64_t free_tokens(int64_t gap, int64_t room)
{
    return room > 0 ? gap : 0;
}

/* All bins together have less than 2^63 tokens, so that a gap and a bin's number are 64 bits at most: more
 * only where billions of samples get a pack of 2^31 tokens each, whose runs may then be lost. */
static inline uint64_t range_at(const hbp__bins *bins, uint32_t first)
{
    const uint64_t free = (uint64_t)free_tokens(bins->gap[first], bins->room[first]);
    return free << bins->first_bits | (uint64_t)(bins->count - 1 - first);
}

static inline uint32_t first_of(const hbp__bins *bins, uint64_t range)
{
    const uint64_t below = (UINT64_C(1) << bins->first_bits) - 1;
    return (uint32_t)(bins->count - 1 - (int64_t)(range & below));
}

static void sift_up(hbp__bins *bins, int64_t at, int64_t top)
{
    uint64_t *heap = bins->heap;
    const uint64_t moving = heap[at];
    for (; at > top && moving > heap[(at - 1) / 2]; at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = moving;
}

/* Most of what is sifted belongs near the leaves: down along the larger children first, then up again. */
static void sift_down(hbp__bins *bins, int64_t at)
{
    uint64_t *heap = bins->heap;
    const uint64_t moving = heap[at];
    const int64_t top = at;
    int64_t child = 2 * at + 1;
    for (; child + 1 < bins->ranges; child = 2 * at + 1) {
        child += heap[child + 1] > heap[child]; /* no branch: either is as good as drawn */
        heap[at] = heap[child];
        at = child;
    }
    if (child < bins->ranges) {
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moving;
    sift_up(bins, at, top);
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

static hbp_status open_ranges(hbp__bins *bins)
{
    int64_t first = 0;
    bins->ranges = 0;
    for (int64_t b = 0; b < bins->count; b++) {
        HBP__TRY(hbp__tick_row(bins->context, "fill", b, bins->count));
        if (b == 0 || bins->gap[b] != bins->gap[b - 1] || bins->room[b] != bins->room[b - 1]) {
            bins->heap[bins->ranges++] = range_at(bins, (uint32_t)b);
            first = b;
        }
        bins->end[first] = (uint32_t)b + 1;
    }
    for (int64_t i = bins->ranges / 2; i-- > 0;)
        sift_down(bins, i);
    return HBP_OK;
}

/* How many runs from `run` on, at most `most`, hold nothing but items of the size of the first one's first:
 * at least the run itself, whatever it holds. */
static int64_t alike_runs(const hbp__bins *bins, const hbp__listing *listing, int64_t run, int64_t most)
{
    const uint32_t size = hbp__listing_size(listing, run * bins->width);
    int64_t alike = 1, over = hbp__min_i64(most, listing->count / bins->width - run) + 1;
    while (alike + 1 < over) {
        const int64_t middle = alike + (over - alike) / 2;
        if (hbp__listing_size(listing, (run + middle) * bins->width - 1) == size)
            alike = middle;
        else
            over = middle;
    }
    return alike;
}

static inline void put_run(hbp__bins *bins, uint32_t b, int64_t total)
{
    bins->gap[b] -= total;
    bins->room[b]--;
}

/* Takes `count` bins from the top range, from `first` on, each of which got a run of `total` tokens. */
static void put_runs(hbp__bins *bins, uint32_t first, int64_t count, int64_t total)
{
    const uint32_t rest = first + (uint32_t)count, end = bins->end[first];
    if (rest < end) {
        bins->gap[rest] = bins->gap[first];
        bins->room[rest] = bins->room[first];
        bins->end[rest] = end;
        bins->end[first] = rest;
    }
    put_run(bins, first, total);
    if (rest == end) {
        bins->heap[0] = range_at(bins, first);
        sift_down(bins, 0);
        return;
    }
    bins->heap[0] = range_at(bins, rest); /* still above all others, which lie elsewhere */
    bins->heap[bins->ranges] = range_at(bins, first);
    sift_up(bins, bins->ranges++, 0);
}

/* Gives all bins what their range has. */
static hbp_status close_ranges(hbp__bins *bins)
{
    int64_t since = 0;
    for (int64_t first = 0, end; first < bins->count; first = end) {
        end = bins->end[first];
        for (int64_t b = first + 1; b < end; b++) {
            bins->gap[b] = bins->gap[first];
            bins->room[b] = bins->room[first];
            HBP__TRY(hbp__tick_rows(bins->context, "fill", &since, 1, b, bins->count));
        }
        HBP__TRY(hbp__tick_rows(bins->context, "fill", &since, 1, end, bins->count));
    }
    return HBP_OK;
}

static hbp_status spread_head(hbp__bins *bins, const hbp__listing *listing, int64_t head, uint32_t *bin_of,
                              int64_t *lost_tokens)
{
    int64_t since = 0;
    HBP__TRY(open_ranges(bins));
    for (int64_t run = 0; run < head;) {
        const uint32_t top = first_of(bins, bins->heap[0]);
        const int64_t first = run * bins->width, end = hbp__min_i64(first + bins->width, listing->count);
        if (hbp__listing_size(listing, first) * bins->width > free_tokens(bins->gap[top], bins->room[top])) {
            HBP__TRY(hbp__tick_rows(bins->context, "fill", &since, 1, run, head));
            bin_of[run++] = HBP__NO_BIN;
            *lost_tokens += run_tokens(listing, first, end);
            continue;
        }
        const int64_t most = hbp__min_i64(head - run, bins->end[top] - top);
        const int64_t count = alike_runs(bins, listing, run, most);
        HBP__TRY(hbp__tick_rows(bins->context, "fill", &since, count, run, head));
        for (int64_t i = 0; i < count; i++)
            bin_of[run + i] = top + (uint32_t)i;
        put_runs(bins, top, count, run_tokens(listing, first, end));
        run += count;
    }
    return close_ranges(bins);
}

static void index_bin(const hbp__bins *bins, hbp__gap_index *index, uint32_t b)
{
    int64_t tokens = free_tokens(bins->gap[b], bins->room[b]);
    if (tokens >= bins->width)
        hbp__gap_index_add(index, b, tokens / bins->width);
}

static hbp_status spread_tail(hbp__bins *bins, const hbp__listing *listing, int64_t head, int64_t runs,
                              hbp__gap_index *index, uint32_t *bin_of, int64_t *lost_tokens)
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
            *lost_tokens += run_tokens(listing, first, end);
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

hbp_status hbp__bins_spread(hbp__bins *bins, const hbp__listing *listing, uint32_t *bin_of,
                            int64_t *lost_tokens)
{
    int64_t runs = hbp__ceil_div(listing->count, bins->width), head = find_head(bins, listing, runs);
    *lost_tokens = 0;
    HBP__TRY(spread_head(bins, listing, head, bin_of, lost_tokens));
    hbp__gap_index index;
    hbp_status status = open_index(bins, listing, head, runs, &index)
                            ? spread_tail(bins, listing, head, runs, &index, bin_of, lost_tokens)
                            : hbp__fail_memory(bins->context, "the packs");
    hbp__gap_index_close(&index);
    return status;
}
