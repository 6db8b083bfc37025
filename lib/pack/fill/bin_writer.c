#include "pack/fill/bin_writer.h"

#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "base/sort.h"

/* How far ahead of the deal memory is asked for. */
#define RUNS_AHEAD 12
/* Runs of the next bin that are asked for together, at most. */
#define MOST_AHEAD 256

typedef struct writer {
    hbp_context *context;
    const hbp__dealing *dealing;
    uint32_t *sample;
    uint16_t *brief;
    uint32_t *pack_of; /* [places] of the runs of a bin that follow no other of equal items, in their order */
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

/* Runs [first, end) of those that there are. */
static void prefetch_runs(const hbp__dealing *d, int64_t first, int64_t end)
{
    end = hbp__min_i64(end, d->bin_start[d->bins]);
    for (int64_t i = first; i < end; i++)
        prefetch_run(d, i);
}

/* Runs that are alike follow one another with one order of packs: the first of them has its places. */
static hbp_status deal_bin(writer *w, int64_t bin)
{
    const hbp__dealing *d = w->dealing;
    hbp__bin_deal deal;
    for (int64_t j = 0; j < d->width; j++)
        w->order[j] = (uint32_t)(bin * d->width + j);
    hbp__bin_deal_begin(d->fills, d->items, d->listing, d->width, w->order, &deal);
    uint32_t *pack_of = w->pack_of;
    const int64_t begin = d->bin_start[bin], runs = d->bin_start[d->bins];
    for (int64_t i = begin; i < d->bin_start[bin + 1]; i++) {
        if (i + RUNS_AHEAD < runs)
            prefetch_run(d, i + RUNS_AHEAD);
        int64_t lost;
        uint8_t *is_alike = &w->is_alike[i - begin];
        *is_alike = w->brief && hbp__bin_deal_is_alike(&deal, d->run_at[i]);
        const int follows = *is_alike && i > begin && is_alike[-1];
        HBP__TRY(hbp__bin_deal_run(w->context, &deal, d->run_at[i], follows ? NULL : pack_of, &lost));
        pack_of += follows ? 0 : d->width;
    }
    hbp__bin_deal_end(&deal);
    return HBP_OK;
}

/* What one pack gets from runs of equal items, one for each pack: item `item` of each, from `at` on. */
static inline void write_runs(const writer *w, const hbp__sized_run *run, int64_t runs, int64_t item,
                              int64_t at)
{
    const hbp__dealing *d = w->dealing;
    for (int64_t i = 0; i < runs; i++) {
        w->sample[at + i] = d->items->sample[hbp__listing_item(d->listing, run[i].run * d->width + item)];
        w->brief[at + i] = run[i].longest <= UINT16_MAX ? (uint16_t)run[i].longest : 0;
    }
}

/* A run of any items. */
static hbp_status write_run(writer *w, hbp__sized_run run, const uint32_t *pack_of, int64_t first_pack)
{
    const hbp__dealing *d = w->dealing;
    const int64_t first = run.run * d->width, number = hbp__min_i64(d->width, d->listing->count - first);
    for (int64_t k = 0; k < number; k++) {
        if (pack_of[k] == HBP__NO_PACK) {
            HBP__TRY(lose(w, first + k));
            continue;
        }
        int64_t *at = &w->cursor[pack_of[k] - first_pack];
        *at += hbp__write_item(d->items, hbp__listing_item(d->listing, first + k), w->sample, w->brief, *at);
    }
    return HBP_OK;
}

static hbp_status write_bin(writer *w, int64_t bin)
{
    const hbp__dealing *d = w->dealing;
    const int64_t first_pack = bin * d->width, begin = d->bin_start[bin], end = d->bin_start[bin + 1];
    const uint32_t *pack_of = w->pack_of;
    for (int64_t i = begin, next; i < end; i = next, pack_of += d->width) {
        next = i + 1;
        if (!w->is_alike[i - begin]) {
            HBP__TRY(write_run(w, d->run_at[i], pack_of, first_pack));
            continue;
        }
        while (next < end && w->is_alike[next - begin])
            next++;
        for (int64_t k = 0; k < d->width; k++) {
            int64_t *at = &w->cursor[pack_of[k] - first_pack];
            write_runs(w, d->run_at + i, next - i, k, *at);
            *at += next - i;
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
    int64_t since = 0;
    for (int64_t bin = 0; bin < d->bins; bin++) {
        const int64_t first = d->bin_start[bin], runs = d->bin_start[bin + 1] - first;
        const int is_alike = w->brief && hbp__bin_deal_alike(d->fills, d->items, d->listing, d->width,
                                                             bin * d->width, d->run_at + first, runs);
        if (is_alike)
            prefetch_runs(d, first + runs, first + runs + hbp__min_i64(runs, MOST_AHEAD));
        else
            HBP__TRY(deal_bin(w, bin));
        for (int64_t j = 0; j < d->width; j++) {
            const int64_t pack = bin * d->width + j;
            start[pack] = w->cursor[j] = *done;
            *done += d->fills->members[pack];
        }
        for (int64_t k = 0; is_alike && k < d->width; k++) {
            HBP__TRY(hbp__tick_rows(w->context, "fill", &since, runs, *done, d->samples));
            write_runs(w, d->run_at + first, runs, k, w->cursor[k]);
        }
        if (!is_alike)
            HBP__TRY(write_bin(w, bin));
        HBP__TRY(hbp__tick_rows(w->context, "fill", &since, 1 + (is_alike ? 0 : runs * d->width), *done,
                                d->samples));
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
