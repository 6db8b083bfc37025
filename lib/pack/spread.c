#include "pack/spread.h"

#include "base/checked.h"

int hbp__bins_open(const hbp__memory *memory, int64_t count, int64_t width, int64_t capacity,
                   int64_t max_items, hbp__bins *bins)
{
    uint64_t rows = (uint64_t)count;
    *bins = (hbp__bins){*memory, count, width, NULL, NULL, NULL};
    bins->gap = hbp__new(memory, rows, sizeof *bins->gap);
    bins->room = hbp__new(memory, rows, sizeof *bins->room);
    bins->heap = hbp__new(memory, rows, sizeof *bins->heap);
    if (!bins->gap || !bins->room || !bins->heap)
        return 0;
    for (int64_t b = 0; b < count; b++) {
        bins->gap[b] = capacity * width;
        bins->room[b] = max_items;
        bins->heap[b] = (uint32_t)b;
    }
    return 1;
}

void hbp__bins_close(hbp__bins *bins)
{
    hbp__delete(&bins->memory, bins->gap);
    hbp__delete(&bins->memory, bins->room);
    hbp__delete(&bins->memory, bins->heap);
    bins->gap = bins->room = NULL;
    bins->heap = NULL;
}

/* Free tokens for the heap's order; a bin whose packs are full of items has none. */
static int64_t free_tokens(const hbp__bins *bins, uint32_t b)
{
    return bins->room[b] > 0 ? bins->gap[b] : -1;
}

static int above(const hbp__bins *bins, uint32_t a, uint32_t b)
{
    int64_t free_a = free_tokens(bins, a), free_b = free_tokens(bins, b);
    return free_a != free_b ? free_a > free_b : a < b;
}

static void sift_down(hbp__bins *bins, int64_t at)
{
    uint32_t *heap = bins->heap;
    uint32_t moving = heap[at];
    for (;;) {
        int64_t child = 2 * at + 1;
        if (child >= bins->count)
            break;
        if (child + 1 < bins->count && above(bins, heap[child + 1], heap[child]))
            child++;
        if (!above(bins, heap[child], moving))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moving;
}

int64_t hbp__bins_spread(hbp__bins *bins, const hbp__listing *listing, uint32_t *bin_of)
{
    for (int64_t i = bins->count / 2; i-- > 0;)
        sift_down(bins, i);
    int64_t lost = 0, runs = hbp__ceil_div(listing->count, bins->width);
    for (int64_t run = 0; run < runs; run++) {
        int64_t first = run * bins->width, end = hbp__min_i64(first + bins->width, listing->count);
        int64_t longest = hbp__listing_size(listing, first), total = longest * (end - first);
        uint32_t b = bins->heap[0];
        if (longest * bins->width > free_tokens(bins, b)) {
            bin_of[run] = HBP__NO_BIN;
            lost += end - first;
            continue;
        }
        if (hbp__listing_size(listing, end - 1) != longest) {
            total = 0;
            for (int64_t k = first; k < end; k++)
                total += hbp__listing_size(listing, k);
        }
        bin_of[run] = b;
        bins->gap[b] -= total;
        bins->room[b]--;
        sift_down(bins, 0);
    }
    return lost;
}
