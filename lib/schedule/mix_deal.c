#include "base/checked.h"
#include "base/sort.h"
#include "schedule/mix.h"

/* Up to so many bins are sorted by insertion. */
#define FEW_BINS 32

static void sort_few(const int64_t *key, uint32_t *order, int64_t count)
{
    for (int64_t i = 1; i < count; i++) {
        uint32_t moving = order[i];
        int64_t at = i;
        for (; at > 0 && key[order[at - 1]] > key[moving]; at--)
            order[at] = order[at - 1];
        order[at] = moving;
    }
}

/* Puts bins in ascending order of `key`; stable. */
static int sort_bins(const hbp__memory *memory, const int64_t *key, uint32_t *order, int64_t bins)
{
    if (bins > FEW_BINS)
        return hbp__sort_by_i64(memory, key, order, bins);
    sort_few(key, order, bins);
    return 1;
}

/* Things in `order`, heaviest first, row by row. */
static int deal_rows(const hbp__memory *memory, const int64_t *weight, const int64_t *tokens,
                     const uint32_t *order, int64_t count, int64_t bins, uint32_t *by_load, int64_t *load_of,
                     int64_t *tokens_of, uint32_t *bin)
{
    for (int64_t row = 0; row < count; row += bins) {
        int64_t wide = hbp__min_i64(bins, count - row);
        if (!sort_bins(memory, wide < bins ? tokens_of : load_of, by_load, bins))
            return 0;
        for (int64_t i = 0; i < wide; i++) {
            uint32_t thing = order[row + i], b = by_load[i];
            bin[thing] = b;
            load_of[b] = hbp__add_saturating(load_of[b], weight[thing]);
            tokens_of[b] = hbp__add_saturating(tokens_of[b], tokens[thing]);
        }
    }
    return 1;
}

int hbp__mix_deal(const hbp__memory *memory, const int64_t *weight, const int64_t *tokens, int64_t count,
                  int64_t bins, hbp__rng *rng, uint32_t *bin)
{
    uint32_t *order = hbp__new(memory, (uint64_t)count, sizeof *order);
    uint32_t *by_load = hbp__new(memory, (uint64_t)bins, sizeof *by_load);
    int64_t *lightness = hbp__new(memory, (uint64_t)count, sizeof *lightness);
    int64_t *load_of = hbp__new_zero(memory, (uint64_t)bins, sizeof *load_of);
    int64_t *tokens_of = hbp__new_zero(memory, (uint64_t)bins, sizeof *tokens_of);
    int done = order && by_load && lightness && load_of && tokens_of;
    if (done) {
        for (int64_t i = 0; i < count; i++) {
            order[i] = (uint32_t)i;
            lightness[i] = -weight[i];
        }
        for (int64_t b = 0; b < bins; b++)
            by_load[b] = (uint32_t)b;
        hbp__rng_shuffle_u32(rng, order, (uint64_t)count);
        done = hbp__sort_by_i64(memory, lightness, order, count) &&
               deal_rows(memory, weight, tokens, order, count, bins, by_load, load_of, tokens_of, bin);
    }
    hbp__delete(memory, tokens_of);
    hbp__delete(memory, load_of);
    hbp__delete(memory, lightness);
    hbp__delete(memory, by_load);
    hbp__delete(memory, order);
    return done;
}
