#include "pack/fill/bin_writer.h"

#include <string.h>

#include "base/checked.h"
#include "base/prefetch.h"
#include "base/scratch.h"
#include "base/sort.h"

/* Runs that are written between two looks at a request to cancel, at most. */
#define RUNS_A_TICK 65536

typedef struct writer {
    hbp_context *context;
    const hbp__dealing *dealing;
    const hbp__dealt *dealt;
    const hbp__fills *fills;
    const hbp__stray *stray, *stray_end; /* those not written yet */
    hbp_packs *packs;
    int32_t group;
    int64_t ahead, ahead_end; /* runs of the next bin that were not asked for yet */
    int64_t *cursor;          /* [width] where the next sample of each pack of the bin goes */
    int64_t since;            /* samples since the last look at a request to cancel */
} writer;

static hbp_status tick(writer *w, int64_t samples)
{
    return hbp__tick_rows(w->context, "fill", &w->since, samples, w->packs->offsets[w->packs->count],
                          w->packs->samples);
}

/* Runs of a bin lie all over the items: each would wait for memory. */
static inline void prefetch_run(const hbp__dealing *d, int64_t i)
{
    const int64_t first = d->run_at[i].run * d->width;
    const int64_t number = hbp__min_i64(d->width, d->listing->count - first);
    hbp__prefetch_u32(&d->items->sample[hbp__listing_item(d->listing, first + number - 1)], number);
}

/* The next bin's runs from here on: while a bin is written they are asked for, a few at a time. */
static void begin_ahead(writer *w, int64_t bin)
{
    const hbp__dealing *d = w->dealing;
    w->ahead = d->bin_start[bin + 1];
    w->ahead_end = bin + 1 < d->bins ? d->bin_start[bin + 2] : w->ahead;
}

static inline void look_ahead(writer *w, int64_t runs)
{
    for (; runs > 0 && w->ahead < w->ahead_end; runs--)
        prefetch_run(w->dealing, w->ahead++);
}

/* The lengths that every pack gets from runs of equal items: written for the pack of item 0, at `first`, and
 * copied from there for the others. */
static inline void write_briefs(const writer *w, const hbp__sized_run *run, int64_t runs, int64_t first,
                                int64_t at)
{
    uint16_t *brief = w->packs->brief;
    if (!brief)
        return;
    if (at != first)
        memcpy(brief + at, brief + first, (size_t)runs * sizeof *brief);
    else
        for (int64_t i = 0; i < runs; i++)
            brief[at + i] = hbp__brief_of(run[i].longest);
}

/* What one pack gets from runs of equal items, one for each pack: item `item` of each, from `at` on. */
static inline void write_samples(const writer *w, const hbp__sized_run *run, int64_t runs, int64_t item,
                                 int64_t at)
{
    const hbp__dealing *d = w->dealing;
    uint32_t *sample = w->packs->sample + at;
    for (int64_t i = 0; i < runs; i++)
        sample[i] = d->items->sample[hbp__listing_item(d->listing, run[i].run * d->width + item)];
}

/* All of them, and where the next sample goes; `first` is where item 0 of each went. The next bin is asked
 * for meanwhile. */
static hbp_status write_alike_runs(writer *w, const hbp__sized_run *run, int64_t runs, int64_t item,
                                   int64_t first, int64_t *at)
{
    look_ahead(w, hbp__ceil_div(runs, w->dealing->width));
    for (int64_t i = 0, part; i < runs; i += part) {
        part = hbp__min_i64(runs - i, RUNS_A_TICK);
        write_samples(w, run + i, part, item, *at);
        write_briefs(w, run + i, part, first + i, *at);
        *at += part;
        HBP__TRY(tick(w, part));
    }
    return HBP_OK;
}

/* The samples of an item for a pack, whose size is `brief`. */
static inline void write_item(writer *w, int64_t item, uint16_t brief, int64_t *cursor)
{
    if (w->packs->brief)
        w->packs->brief[*cursor] = brief;
    *cursor += hbp__items_write(w->dealing->items, item, w->packs->sample + *cursor);
}

/* A run of any items, whose places are those from `place` on. */
static void write_run(writer *w, int64_t run, int64_t place)
{
    const hbp__dealing *d = w->dealing;
    const uint32_t *pack_of = w->dealt->pack_of + place;
    const uint16_t *brief = w->dealt->brief + place;
    const int64_t first = run * d->width, number = hbp__min_i64(d->width, d->listing->count - first);
    for (int64_t k = 0; k < number; k++) {
        if (pack_of[k] != HBP__NO_PACK)
            write_item(w, hbp__listing_item(d->listing, first + k), brief[k], &w->cursor[pack_of[k]]);
    }
}

/* Runs that are alike: item k of each to pack pack_of[k], NULL: to the k-th. */
static hbp_status write_alike(writer *w, int64_t first, int64_t runs, const uint32_t *pack_of)
{
    const hbp__dealing *d = w->dealing;
    const int64_t first_at = w->cursor[pack_of ? pack_of[0] : 0];
    for (int64_t k = 0; k < d->width; k++)
        HBP__TRY(
            write_alike_runs(w, d->run_at + first, runs, k, first_at, &w->cursor[pack_of ? pack_of[k] : k]));
    return HBP_OK;
}

static hbp_status write_bin(writer *w, int64_t bin)
{
    const hbp__dealing *d = w->dealing;
    const int64_t begin = d->bin_start[bin], end = d->bin_start[bin + 1];
    const uint8_t *is_alike = w->dealt->is_alike;
    int64_t place = w->dealt->place_start[bin];
    for (int64_t i = begin, next; i < end; i = next, place += d->width) {
        next = i + 1;
        if (!is_alike[i]) {
            look_ahead(w, 1);
            write_run(w, d->run_at[i].run, place);
            HBP__TRY(tick(w, d->width));
            continue;
        }
        while (next < end && is_alike[next])
            next++;
        HBP__TRY(write_alike(w, i, next - i, w->dealt->pack_of + place));
    }
    return HBP_OK;
}

/* Strays of packs before `end`; the cursor is that of the packs from `first` on. */
static void write_strays(writer *w, int64_t first, int64_t end)
{
    for (; w->stray < w->stray_end && w->stray->pack < end; w->stray++)
        write_item(w, w->stray->item, hbp__brief_of(w->stray->size), &w->cursor[w->stray->pack - first]);
}

/* Rows of the packs [first, end), the cursor is set to where each begins. */
static void append_rows(writer *w, int64_t first, int64_t end)
{
    hbp_packs *packs = w->packs;
    int64_t at = packs->offsets[packs->count];
    for (int64_t p = first; p < end; p++) {
        w->cursor[p - first] = at;
        if (!w->fills->members[p])
            continue;
        at += w->fills->members[p];
        packs->group[packs->count++] = w->group;
        packs->offsets[packs->count] = at;
    }
}

/* Measures the packs from row `first` on, where brief is kept. */
static hbp_status measure_rows(writer *w, int64_t first)
{
    hbp_packs *packs = w->packs;
    for (int64_t row = first; packs->brief && row < packs->count; row++) {
        hbp__packs_measure_pack(packs, row);
        HBP__TRY(tick(w, packs->offsets[row + 1] - packs->offsets[row]));
    }
    return HBP_OK;
}

/* The same of packs that hold the same lengths; vision units may be others. */
static hbp_status measure_alike(writer *w, int64_t first)
{
    hbp_packs *packs = w->packs;
    if (packs->vision)
        return measure_rows(w, first);
    if (!packs->brief || first == packs->count)
        return HBP_OK;
    hbp__packs_measure_pack(packs, first);
    for (int64_t row = first + 1; row < packs->count; row++) {
        packs->tokens[row] = packs->tokens[first];
        packs->padded[row] = packs->padded[first];
        packs->squares[row] = packs->squares[first];
    }
    return HBP_OK;
}

static hbp_status write_bins(writer *w)
{
    const hbp__dealing *d = w->dealing;
    for (int64_t bin = 0; bin < d->bins; bin++) {
        const int64_t first = bin * d->width, end = first + d->width, row = w->packs->count;
        const int is_alike = w->dealt->place_start[bin] == w->dealt->place_start[bin + 1];
        const int has_strays = w->stray < w->stray_end && w->stray->pack < end;
        append_rows(w, first, end);
        begin_ahead(w, bin);
        HBP__TRY(is_alike ? write_alike(w, d->bin_start[bin], d->bin_start[bin + 1] - d->bin_start[bin], NULL)
                          : write_bin(w, bin));
        write_strays(w, first, end);
        HBP__TRY(is_alike && !has_strays ? measure_alike(w, row) : measure_rows(w, row));
        HBP__TRY(tick(w, 1 + d->width));
    }
    for (int64_t p = d->bins * d->width; p < w->fills->count; p++) {
        const int64_t row = w->packs->count;
        append_rows(w, p, p + 1);
        write_strays(w, p, p + 1);
        HBP__TRY(measure_rows(w, row));
        HBP__TRY(tick(w, 1));
    }
    return HBP_OK;
}

hbp_status hbp__write_bins(hbp_context *context, const hbp__dealing *dealing, const hbp__dealt *dealt,
                           const hbp__fills *fills, hbp__stray *stray, int64_t strays, int32_t group,
                           hbp_packs *packs)
{
    writer w = {.context = context,
                .dealing = dealing,
                .dealt = dealt,
                .fills = fills,
                .packs = packs,
                .group = group};
    const int64_t mark = hbp__scratch_mark(context);
    w.cursor = hbp__take(context, (uint64_t)dealing->width, sizeof *w.cursor);
    HBP__TRY(hbp__scratch_check(context, "the packs"));
    if (strays) {
        HBP__TRY(hbp__sort_rows_u32(context, stray, sizeof *stray, strays, "the packs"));
        w.stray = stray;
        w.stray_end = stray + strays;
    }
    HBP__TRY(write_bins(&w));
    hbp__scratch_release(context, mark);
    return HBP_OK;
}
