#include "pack/fill/bin_writer.h"

#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "base/sort.h"

/* How far ahead of the deal memory is asked for. */
#define RUNS_AHEAD 12

typedef struct writer {
    hbp_context *context;
    const hbp__dealing *dealing;
    uint32_t *sample;
    uint16_t *brief;
    uint32_t *pack_of; /* [places] of the runs of a bin, one after the other */
    uint8_t *is_alike; /* [runs of a bin] its items are equal, one for every pack */
    int64_t *cursor;   /* [width] where the next sample of each pack of the bin goes */
    uint32_t *order;   /* [width] */
    int64_t losses;
    int64_t room;
    uint32_t *lost;
} writer;

/* The most runs of a bin. */
static int64_t most_runs(const hbp__dealing *d)
{
    int64_t most = 0;
    for (int64_t bin = 0; bin < d->bins; bin++)
        most = hbp__max_i64(most, d->bin_start[bin + 1] - d->bin_start[bin]);
    return most;
}

static hbp_status lose(writer *w, int64_t place)
{
    if (w->losses == w->room) {
        const int64_t room = w->room * 2 + 256;
        uint32_t *wider = hbp__renew(&w->context->memory, w->lost, (uint64_t)room, sizeof *wider);
        if (!wider)
            return hbp__fail_memory(w->context, "the packs");
        w->lost = wider;
        w->room = room;
    }
    w->lost[w->losses++] = (uint32_t)place;
    return HBP_OK;
}

/* Runs of a bin lie all over the items: each would wait for memory. */
static inline void prefetch_run(const hbp__dealing *d, int64_t i)
{
    const int64_t first = d->run_at[i].run * d->width;
    const int64_t last = hbp__min_i64(first + d->width, d->listing->count) - 1;
    __builtin_prefetch(&d->items->sample[hbp__listing_item(d->listing, first)]);
    __builtin_prefetch(&d->items->sample[hbp__listing_item(d->listing, last)]);
}

static void deal_bin(writer *w, int64_t bin)
{
    const hbp__dealing *d = w->dealing;
    hbp__bin_deal deal;
    for (int64_t j = 0; j < d->width; j++)
        w->order[j] = (uint32_t)(bin * d->width + j);
    hbp__bin_deal_begin(d->fills, d->items, d->listing, d->width, w->order, &deal);
    uint32_t *pack_of = w->pack_of;
    const int64_t runs = d->bin_start[d->bins];
    for (int64_t i = d->bin_start[bin]; i < d->bin_start[bin + 1]; i++, pack_of += d->width) {
        if (i + RUNS_AHEAD < runs)
            prefetch_run(d, i + RUNS_AHEAD);
        const int64_t lost = hbp__bin_deal_run(&deal, d->run_at[i], pack_of);
        const int is_whole = (d->run_at[i].run + 1) * d->width <= d->listing->count;
        w->is_alike[i - d->bin_start[bin]] =
            !lost && is_whole && d->run_at[i].longest == d->run_at[i].shortest;
    }
    hbp__bin_deal_end(&deal);
}

/* A run of equal items, which are samples. */
static void write_alike(writer *w, int64_t first, uint32_t size, const uint32_t *pack_of, int64_t first_pack)
{
    const hbp__dealing *d = w->dealing;
    const uint16_t shown = size <= UINT16_MAX ? (uint16_t)size : 0;
    for (int64_t k = 0; k < d->width; k++) {
        const int64_t at = w->cursor[pack_of[k] - first_pack]++;
        w->sample[at] = d->items->sample[hbp__listing_item(d->listing, first + k)];
        w->brief[at] = shown;
    }
}

static hbp_status write_bin(writer *w, int64_t bin)
{
    const hbp__dealing *d = w->dealing;
    const int64_t first_pack = bin * d->width;
    const uint32_t *pack_of = w->pack_of;
    for (int64_t i = d->bin_start[bin]; i < d->bin_start[bin + 1]; i++, pack_of += d->width) {
        const int64_t first = d->run_at[i].run * d->width;
        const int64_t number = hbp__min_i64(d->width, d->listing->count - first);
        if (w->brief && w->is_alike[i - d->bin_start[bin]]) {
            write_alike(w, first, d->run_at[i].longest, pack_of, first_pack);
            continue;
        }
        for (int64_t k = 0; k < number; k++) {
            if (pack_of[k] == HBP__NO_PACK) {
                HBP__TRY(lose(w, first + k));
                continue;
            }
            int64_t *at = &w->cursor[pack_of[k] - first_pack];
            *at +=
                hbp__write_item(d->items, hbp__listing_item(d->listing, first + k), w->sample, w->brief, *at);
        }
    }
    return HBP_OK;
}

static hbp_status lose_runs(writer *w)
{
    const hbp__dealing *d = w->dealing;
    for (int64_t r = 0; r < d->runs; r++) {
        HBP__TRY(hbp__tick_row(w->context, "fill", r, d->runs));
        if (d->bin_of[r] != HBP__NO_BIN)
            continue;
        const int64_t end = hbp__min_i64((r + 1) * d->width, d->listing->count);
        for (int64_t place = r * d->width; place < end; place++)
            HBP__TRY(lose(w, place));
    }
    return HBP_OK;
}

static hbp_status sort_lost(writer *w)
{
    const int64_t mark = hbp__scratch_mark(w->context);
    uint64_t *key = hbp__take(w->context, (uint64_t)w->losses, sizeof *key);
    uint32_t *order = hbp__take(w->context, (uint64_t)w->losses, sizeof *order);
    HBP__TRY(hbp__scratch_check(w->context, "the packs"));
    for (int64_t i = 0; i < w->losses; i++) {
        key[i] = w->lost[i];
        order[i] = (uint32_t)i;
    }
    HBP__TRY(hbp__order_by_u64(w->context, key, order, w->losses, "the packs"));
    for (int64_t i = 0; i < w->losses; i++)
        w->lost[i] = (uint32_t)key[order[i]];
    hbp__scratch_release(w->context, mark);
    return HBP_OK;
}

static hbp_status write_bins(writer *w, int64_t *start, int64_t *done)
{
    const hbp__dealing *d = w->dealing;
    w->order = hbp__take(w->context, (uint64_t)d->width, sizeof *w->order);
    w->cursor = hbp__take(w->context, (uint64_t)d->width, sizeof *w->cursor);
    w->pack_of = hbp__take(w->context, (uint64_t)(most_runs(d) * d->width), sizeof *w->pack_of);
    w->is_alike = hbp__take(w->context, (uint64_t)most_runs(d), sizeof *w->is_alike);
    HBP__TRY(hbp__scratch_check(w->context, "the packs"));
    HBP__TRY(lose_runs(w));
    for (int64_t bin = 0; bin < d->bins; bin++) {
        deal_bin(w, bin);
        for (int64_t j = 0; j < d->width; j++) {
            const int64_t pack = bin * d->width + j;
            start[pack] = w->cursor[j] = *done;
            *done += d->fills->members[pack];
        }
        HBP__TRY(write_bin(w, bin));
        if (bin % 64 == 0)
            HBP__TRY(hbp__tick(w->context, "fill", *done, d->samples));
    }
    start[d->bins * d->width] = *done;
    return w->losses ? sort_lost(w) : HBP_OK;
}

hbp_status hbp__deal_and_write(hbp_context *context, const hbp__dealing *dealing, uint32_t *sample,
                               uint16_t *brief, int64_t *start, int64_t *done, uint32_t **lost,
                               int64_t *losses)
{
    writer w = {.context = context, .dealing = dealing, .sample = sample, .brief = brief};
    const int64_t mark = hbp__scratch_mark(context);
    const hbp_status status = write_bins(&w, start, done);
    hbp__scratch_release(context, mark);
    *lost = w.lost;
    *losses = w.losses;
    return status;
}

/* How many samples strays add to each pack, counted up to where it begins. */
static void count_moved(const hbp__dealing *d, const hbp__stray *stray, int64_t strays, int64_t packs,
                        const int64_t *start, int64_t *moved)
{
    memset(moved, 0, (size_t)(d->fills->count + 1) * sizeof *moved);
    for (int64_t i = 0; i < strays; i++)
        moved[stray[i].pack + 1] += hbp__items_members(d->items, stray[i].item);
    for (int64_t p = 0, more = 0; p <= d->fills->count; p++) {
        more += moved[p];
        moved[p] = start[hbp__min_i64(p, packs)] + more;
    }
}

hbp_status hbp__write_strays(hbp_context *context, const hbp__dealing *d, const hbp__stray *stray,
                             int64_t strays, int64_t packs, uint32_t *sample, uint16_t *brief,
                             const int64_t *start, int64_t *moved)
{
    count_moved(d, stray, strays, packs, start, moved);
    const int64_t mark = hbp__scratch_mark(context);
    int64_t *cursor = hbp__take(context, (uint64_t)d->fills->count, sizeof *cursor);
    HBP__TRY(hbp__scratch_check(context, "the packs"));
    for (int64_t p = d->fills->count; p-- > 0;) {
        const int64_t held = p < packs ? start[p + 1] - start[p] : 0;
        if (held && moved[p] != start[p]) {
            memmove(sample + moved[p], sample + start[p], (size_t)held * sizeof *sample);
            if (brief)
                memmove(brief + moved[p], brief + start[p], (size_t)held * sizeof *brief);
        }
        cursor[p] = moved[p] + held;
    }
    for (int64_t i = 0; i < strays; i++) {
        int64_t *at = &cursor[stray[i].pack];
        *at += hbp__write_item(d->items, stray[i].item, sample, brief, *at);
    }
    hbp__scratch_release(context, mark);
    return HBP_OK;
}
