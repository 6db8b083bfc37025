#include "pack/fill/bin_dealer.h"

#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "base/sort.h"

typedef struct dealer {
    hbp_context *context;
    const hbp__dealing *dealing;
    hbp__fills *fills;
    hbp__dealt *dealt;
    hbp__fills bin;  /* the packs of the bin at hand */
    uint32_t *order; /* [width] of them */
} dealer;

/* Rows to allocate where `used` are and `more` come. */
static int64_t wide_room(int64_t used, int64_t more)
{
    return used + more + used / 2 + 4096;
}

static hbp_status make_places(dealer *d, int64_t more)
{
    hbp__dealt *dealt = d->dealt;
    if (dealt->places + more <= dealt->room)
        return HBP_OK;
    const int64_t room = wide_room(dealt->places, more);
    uint32_t *pack_of = hbp__renew(&dealt->memory, dealt->pack_of, (uint64_t)room, sizeof *pack_of);
    dealt->pack_of = pack_of ? pack_of : dealt->pack_of;
    uint16_t *brief = hbp__renew(&dealt->memory, dealt->brief, (uint64_t)room, sizeof *brief);
    dealt->brief = brief ? brief : dealt->brief;
    if (!pack_of || !brief)
        return hbp__fail_memory(d->context, "the packs");
    dealt->room = room;
    return HBP_OK;
}

static hbp_status make_losses(dealer *d, int64_t more)
{
    hbp__dealt *dealt = d->dealt;
    if (dealt->losses + more <= dealt->losses_room)
        return HBP_OK;
    const int64_t room = wide_room(dealt->losses, more);
    uint32_t *lost = hbp__renew(&dealt->memory, dealt->lost, (uint64_t)room, sizeof *lost);
    if (!lost)
        return hbp__fail_memory(d->context, "the packs");
    dealt->lost = lost;
    dealt->losses_room = room;
    return HBP_OK;
}

/* Lists the items of a run without a pack; pack_of NULL: all of them. */
static hbp_status lose(dealer *d, int64_t run, const uint32_t *pack_of)
{
    hbp__dealt *dealt = d->dealt;
    const int64_t width = d->dealing->width, first = run * width;
    const int64_t number = hbp__min_i64(width, d->dealing->listing->count - first);
    HBP__TRY(make_losses(d, number));
    for (int64_t k = 0; k < number; k++)
        if (!pack_of || pack_of[k] == HBP__NO_PACK)
            dealt->lost[dealt->losses++] = (uint32_t)(first + k);
    return HBP_OK;
}

static void clear_bin(dealer *d)
{
    const int64_t width = d->dealing->width;
    for (int64_t j = 0; j < width; j++) {
        d->order[j] = (uint32_t)j;
        d->bin.load[j] = d->bin.time_ns[j] = d->bin.members[j] = 0;
    }
}

/* What the items of a run weigh, for the writer: sizes may be gone by then. */
static void keep_sizes(const dealer *d, int64_t run, uint16_t *brief)
{
    const hbp__listing *listing = d->dealing->listing;
    const int64_t first = run * d->dealing->width;
    const int64_t number = hbp__min_i64(d->dealing->width, listing->count - first);
    for (int64_t k = 0; k < number; k++)
        brief[k] = hbp__brief_of(hbp__listing_size(listing, first + k));
}

/* Runs that are alike follow one another with one order of packs: the first of them has its places. */
static hbp_status deal_bin(dealer *d, int64_t bin)
{
    const hbp__dealing *dealing = d->dealing;
    hbp__dealt *dealt = d->dealt;
    const int64_t width = dealing->width, begin = dealing->bin_start[bin], end = dealing->bin_start[bin + 1];
    HBP__TRY(make_places(d, (end - begin) * width));
    clear_bin(d);
    hbp__bin_deal deal;
    hbp__bin_deal_begin(&d->bin, dealing->items, dealing->listing, width, d->order, &deal);
    for (int64_t i = begin; i < end; i++) {
        const int is_alike = hbp__bin_deal_is_alike(&deal, dealing->run_at[i]);
        const int follows = is_alike && i > begin && dealt->is_alike[i - 1];
        uint32_t *pack_of = dealt->pack_of + dealt->places;
        int64_t lost;
        HBP__TRY(hbp__bin_deal_run(d->context, &deal, dealing->run_at[i], follows ? NULL : pack_of, &lost));
        if (lost)
            HBP__TRY(lose(d, dealing->run_at[i].run, pack_of));
        if (!is_alike)
            keep_sizes(d, dealing->run_at[i].run, dealt->brief + dealt->places);
        dealt->is_alike[i] = (uint8_t)is_alike;
        dealt->places += follows ? 0 : width;
    }
    hbp__bin_deal_end(&deal);
    memcpy(d->fills->load + bin * width, d->bin.load, (size_t)width * sizeof *d->bin.load);
    memcpy(d->fills->members + bin * width, d->bin.members, (size_t)width * sizeof *d->bin.members);
    return HBP_OK;
}

static hbp_status lose_runs(dealer *d)
{
    const hbp__dealing *dealing = d->dealing;
    for (int64_t r = 0; r < dealing->runs; r++) {
        HBP__TRY(hbp__tick_row(d->context, "fill", r, dealing->runs));
        if (dealing->bin_of[r] == HBP__NO_BIN)
            HBP__TRY(lose(d, r, NULL));
    }
    return HBP_OK;
}

static hbp_status deal_bins(dealer *d)
{
    const hbp__dealing *dealing = d->dealing;
    hbp__dealt *dealt = d->dealt;
    int64_t since = 0;
    HBP__TRY(lose_runs(d));
    dealt->place_start[0] = 0;
    for (int64_t bin = 0; bin < dealing->bins; bin++) {
        const int64_t first = dealing->bin_start[bin], runs = dealing->bin_start[bin + 1] - first;
        const int is_alike = hbp__bin_deal_alike(d->fills, dealing->items, dealing->listing, dealing->width,
                                                 bin * dealing->width, dealing->run_at + first, runs);
        if (is_alike)
            memset(dealt->is_alike + first, 1, (size_t)runs);
        else
            HBP__TRY(deal_bin(d, bin));
        dealt->place_start[bin + 1] = dealt->places;
        HBP__TRY(hbp__tick_rows(d->context, "fill", &since, runs + (is_alike ? 1 : runs * dealing->width),
                                bin, dealing->bins));
    }
    return dealt->losses
               ? hbp__sort_rows_u32(d->context, dealt->lost, sizeof *dealt->lost, dealt->losses, "the packs")
               : HBP_OK;
}

hbp_status hbp__deal_bins(hbp_context *context, const hbp__dealing *dealing, hbp__fills *fills,
                          hbp__dealt *dealt)
{
    *dealt = (hbp__dealt){.memory = context->memory};
    dealer d = {.context = context, .dealing = dealing, .fills = fills, .dealt = dealt};
    const int64_t runs = dealing->bin_start[dealing->bins];
    dealt->is_alike = hbp__take(context, (uint64_t)runs, sizeof *dealt->is_alike);
    dealt->place_start = hbp__take(context, (uint64_t)dealing->bins + 1, sizeof *dealt->place_start);
    d.order = hbp__take(context, (uint64_t)dealing->width, sizeof *d.order);
    HBP__TRY(hbp__scratch_check(context, "the packs"));
    hbp_status status = hbp__fills_open(context, dealing->width, fills->capacity, fills->max_members,
                                        dealing->token_ns, dealing->square_ns, &d.bin);
    if (status >= 0)
        status = deal_bins(&d);
    hbp__fills_close(&d.bin);
    return status;
}

void hbp__dealt_close(hbp__dealt *dealt)
{
    hbp__delete(&dealt->memory, dealt->pack_of);
    hbp__delete(&dealt->memory, dealt->brief);
    hbp__delete(&dealt->memory, dealt->lost);
    dealt->pack_of = dealt->lost = NULL;
    dealt->brief = NULL;
}
