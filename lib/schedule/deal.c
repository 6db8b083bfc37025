/* Steps that each hold their share of what an epoch has. */
#include "schedule/deal.h"

#include "base/checked.h"
#include "base/scratch.h"
#include "base/sort.h"
#include "data/packs/groups.h"
#include "schedule/tuning.h"

/* The group whose count of steps so far lags most behind its share: (done + 1/2) / count least, by
 * cross-multiplication; ties to the lower group. A group's k-th step so falls due at the middle of its k-th
 * share of the epoch. */
static int64_t most_behind(const int64_t *count, const int64_t *done, int64_t groups)
{
    int64_t best = -1;
    for (int64_t g = 0; g < groups; g++) {
        if (done[g] >= count[g])
            continue;
        if (best < 0 || (2 * done[g] + 1) * count[best] < (2 * done[best] + 1) * count[g])
            best = g;
    }
    return best;
}

void hbp__interleave(const int64_t *count, int64_t groups, int64_t curriculum, int32_t *order)
{
    int64_t left[HBP_MAX_GROUPS], done[HBP_MAX_GROUPS] = {0}, total = 0, at = 0;
    for (int64_t g = 0; g < groups; g++)
        total += left[g] = count[g];
    for (; at < curriculum && left[0] > 0; left[0]--)
        order[at++] = 0;
    for (; at < total; at++) {
        int64_t g = most_behind(left, done, groups);
        done[g]++;
        order[at] = (int32_t)g;
    }
}

/* Fractions of the sorted things are compared in units of 1 / 2^40. */
#define WHOLE (INT64_C(1) << 40)

hbp_status hbp__deal_stretches(hbp_context *context, int64_t first, int64_t count, int64_t size,
                               hbp__rng *rng, uint32_t *rows)
{
    int64_t mark = hbp__scratch_mark(context);
    uint32_t *slot = hbp__take(context, (uint64_t)count, sizeof *slot);
    int64_t *due = hbp__take(context, (uint64_t)count, sizeof *due);
    HBP__TRY(hbp__scratch_check(context, "the steps"));
    /* Slot j of a step of c slots wants the thing at the fraction (j + 1/2) / c. Full steps want the same,
     * and a draw says which comes first. */
    for (int64_t i = 0; i < count; i++) {
        int64_t step = i / size, mine = hbp__min_i64(size, count - step * size);
        slot[i] = (uint32_t)i;
        due[i] = (int64_t)((double)(2 * (i % size) + 1) / (double)(2 * mine) * (double)WHOLE);
    }
    HBP__TRY(hbp__shuffle(context, rng, slot, count));
    HBP__TRY(hbp__order_by_i64(context, due, slot, count, "the steps"));
    for (int64_t i = 0; i < count; i++)
        rows[slot[i]] = (uint32_t)(first + i);
    hbp__scratch_release(context, mark);
    return HBP_OK;
}

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
static hbp_status sort_bins(hbp_context *context, const int64_t *key, uint32_t *order, int64_t bins)
{
    if (bins > HBP__DEAL_FEW_BINS)
        return hbp__order_by_i64(context, key, order, bins, "the steps");
    sort_few(key, order, bins);
    return HBP_OK;
}

/* Things in `order`, heaviest first, row by row; `by_load`, `load_of` and `tokens_of` [bins] are scratch. */
static hbp_status deal_rows(hbp_context *context, const int64_t *weight, const int64_t *tokens,
                            const uint32_t *order, int64_t count, int64_t bins, uint32_t *by_load,
                            int64_t *load_of, int64_t *tokens_of, uint32_t *bin)
{
    for (int64_t row = 0; row < count; row += bins) {
        int64_t wide = hbp__min_i64(bins, count - row);
        HBP__TRY(sort_bins(context, wide < bins ? tokens_of : load_of, by_load, bins));
        for (int64_t i = 0; i < wide; i++) {
            HBP__TRY(hbp__tick_row(context, "steps", row + i, count));
            uint32_t thing = order[row + i], b = by_load[i];
            bin[thing] = b;
            load_of[b] = hbp__add_saturating(load_of[b], weight[thing]);
            tokens_of[b] = hbp__add_saturating(tokens_of[b], tokens[thing]);
        }
    }
    return HBP_OK;
}

hbp_status hbp__deal_order(hbp_context *context, const int64_t *weight, int64_t count, hbp__rng *rng,
                           uint32_t *order)
{
    int64_t mark = hbp__scratch_mark(context);
    int64_t *lightness = hbp__take(context, (uint64_t)count, sizeof *lightness);
    HBP__TRY(hbp__scratch_check(context, "the steps"));
    for (int64_t i = 0; i < count; i++) {
        order[i] = (uint32_t)i;
        lightness[i] = -weight[i];
        HBP__TRY(hbp__tick_row(context, "steps", i, count));
    }
    HBP__TRY(hbp__shuffle(context, rng, order, count));
    HBP__TRY(hbp__order_by_i64(context, lightness, order, count, "the steps"));
    hbp__scratch_release(context, mark);
    return HBP_OK;
}

hbp_status hbp__deal_rows(hbp_context *context, const int64_t *weight, const int64_t *tokens,
                          const uint32_t *order, int64_t count, int64_t bins, uint32_t *bin)
{
    int64_t mark = hbp__scratch_mark(context);
    uint32_t *by_load = hbp__take(context, (uint64_t)bins, sizeof *by_load);
    int64_t *load_of = hbp__take_zero(context, (uint64_t)bins, sizeof *load_of);
    int64_t *tokens_of = hbp__take_zero(context, (uint64_t)bins, sizeof *tokens_of);
    HBP__TRY(hbp__scratch_check(context, "the steps"));
    for (int64_t b = 0; b < bins; b++)
        by_load[b] = (uint32_t)b;
    HBP__TRY(deal_rows(context, weight, tokens, order, count, bins, by_load, load_of, tokens_of, bin));
    hbp__scratch_release(context, mark);
    return HBP_OK;
}

hbp_status hbp__deal_strata(hbp_context *context, const int64_t *weight, const int64_t *tokens, int64_t count,
                            int64_t bins, hbp__rng *rng, uint32_t *bin)
{
    int64_t mark = hbp__scratch_mark(context);
    uint32_t *order = hbp__take(context, (uint64_t)count, sizeof *order);
    HBP__TRY(hbp__scratch_check(context, "the steps"));
    HBP__TRY(hbp__deal_order(context, weight, count, rng, order));
    HBP__TRY(hbp__deal_rows(context, weight, tokens, order, count, bins, bin));
    hbp__scratch_release(context, mark);
    return HBP_OK;
}
