/* One run after the other to the packs of a bin, least loaded first. */
#include "pack/fill/deal.h"

#include <string.h>

#include "base/checked.h"
#include "base/sort.h"

hbp_status hbp__fills_open_untimed(hbp_context *context, int64_t count, int64_t capacity, int64_t max_members,
                                   hbp__fills *fills)
{
    const hbp__memory *memory = &context->memory;
    *fills = (hbp__fills){*memory, count, count, capacity, max_members, 0, 0, NULL, NULL, NULL};
    fills->load = hbp__new(memory, (uint64_t)count, sizeof *fills->load);
    fills->members = hbp__new(memory, (uint64_t)count, sizeof *fills->members);
    return fills->load && fills->members ? HBP_OK : hbp__fail_memory(context, "the packs");
}

hbp_status hbp__fills_open(hbp_context *context, int64_t count, int64_t capacity, int64_t max_members,
                           double token_ns, double square_ns, hbp__fills *fills)
{
    const uint64_t bytes = (uint64_t)count * sizeof *fills->load;
    HBP__TRY(hbp__fills_open_untimed(context, count, capacity, max_members, fills));
    fills->token_ns = token_ns;
    fills->square_ns = square_ns;
    fills->time_ns = hbp__new(&context->memory, (uint64_t)count, sizeof *fills->time_ns);
    if (!fills->time_ns)
        return hbp__fail_memory(context, "the packs");
    HBP__TRY(hbp__zero(context, fills->load, bytes));
    HBP__TRY(hbp__zero(context, fills->time_ns, bytes));
    return hbp__zero(context, fills->members, bytes);
}

void hbp__fills_close(hbp__fills *fills)
{
    hbp__delete(&fills->memory, fills->load);
    hbp__delete(&fills->memory, fills->time_ns);
    hbp__delete(&fills->memory, fills->members);
    fills->load = fills->time_ns = fills->members = NULL;
}

/* Makes one column hold `rows` rows; 0 when memory is short. */
static int widen(const hbp__memory *memory, int64_t **column, int64_t rows)
{
    int64_t *wider = hbp__renew(memory, *column, (uint64_t)rows, sizeof *wider);
    if (!wider)
        return 0;
    *column = wider;
    return 1;
}

int hbp__fills_grow(hbp__fills *fills)
{
    if (fills->count == fills->room_for) {
        int64_t rows = fills->room_for + fills->room_for / 8 + 64;
        if (!widen(&fills->memory, &fills->load, rows) || !widen(&fills->memory, &fills->members, rows) ||
            (fills->time_ns && !widen(&fills->memory, &fills->time_ns, rows)))
            return 0;
        fills->room_for = rows;
    }
    int64_t p = fills->count++;
    fills->load[p] = fills->members[p] = 0;
    if (fills->time_ns)
        fills->time_ns[p] = 0;
    return 1;
}

static int64_t item_ns(const hbp__fills *fills, const hbp__items *items, int64_t item)
{
    return hbp__round_i64(fills->token_ns * (double)items->size[item] +
                          fills->square_ns * (double)hbp__items_squares(items, item));
}

/* The same of an item of this size where nothing is linked. */
static int64_t size_ns(const hbp__fills *fills, int64_t size)
{
    return hbp__round_i64(fills->token_ns * (double)size + fills->square_ns * (double)(size * size));
}

void hbp__fills_put(hbp__fills *fills, const hbp__items *items, int64_t pack, int64_t item)
{
    fills->load[pack] += items->size[item];
    if (fills->time_ns)
        fills->time_ns[pack] = hbp__add_saturating(fills->time_ns[pack], item_ns(fills, items, item));
    fills->members[pack] += hbp__items_members(items, item);
}

/* So many steps of dealing take as long as a row elsewhere. */
#define STEPS_A_ROW 8

static hbp_status tick(hbp_context *context, hbp__bin_deal *deal, int64_t steps)
{
    return hbp__tick_rows(context, "fill", &deal->since, 1 + steps / STEPS_A_ROW, 0, 0);
}

/* Moves of a pack up to which insertion sorts faster than by digits. */
#define FEW_MOVES 8

/* The same in any order, by digits. */
static hbp_status sort_all(hbp_context *context, hbp__bin_deal *deal)
{
    uint32_t first = deal->order[0];
    for (int64_t i = 1; i < deal->width; i++)
        first = deal->order[i] < first ? deal->order[i] : first;
    for (int64_t i = 0; i < deal->width; i++)
        deal->order[i] = first + (uint32_t)i;
    return hbp__order_by_i64(context, deal->fills->time_ns, deal->order, deal->width, "the packs");
}

/* Sorts the packs by time, ties by pack: by insertion for as long as the order changes little from run to
 * run. */
static hbp_status sort_by_time(hbp_context *context, hbp__bin_deal *deal)
{
    const hbp__fills *fills = deal->fills;
    const int64_t width = deal->width;
    uint32_t *order = deal->order;
    int64_t moves = 0;
    for (int64_t i = 1; i < width; i++) {
        uint32_t moving = order[i];
        int64_t time = fills->time_ns[moving], at = i;
        while (at > 0 && (fills->time_ns[order[at - 1]] > time ||
                          (fills->time_ns[order[at - 1]] == time && order[at - 1] > moving))) {
            order[at] = order[at - 1];
            at--;
        }
        order[at] = moving;
        moves += i - at;
        HBP__TRY(tick(context, deal, i - at));
        if (moves > FEW_MOVES * width)
            return sort_all(context, deal);
    }
    return HBP_OK;
}

/* A run that is not alike: one item after the other. pack_of [end - first] is the run's own. */
static hbp_status deal_items(hbp_context *context, hbp__bin_deal *deal, int64_t first, int64_t end,
                             uint32_t *pack_of, int64_t *lost)
{
    hbp__fills *fills = deal->fills;
    const hbp__items *items = deal->items;
    const int64_t width = deal->width;
    uint32_t *order = deal->order;
    int64_t used = 0;
    HBP__TRY(sort_by_time(context, deal));
    /* Packs [0, used) of the order have had their item of this run. */
    for (int64_t k = first; k < end; k++) {
        int64_t item = hbp__listing_item(deal->listing, k), j = used;
        while (j < width && !hbp__fills_fits(fills, items, order[j], item))
            j++;
        HBP__TRY(tick(context, deal, j - used));
        if (j == width) {
            pack_of[k - first] = HBP__NO_PACK;
            ++*lost;
            continue;
        }
        uint32_t pack = order[j];
        for (; j > used; j--)
            order[j] = order[j - 1];
        order[used++] = pack;
        hbp__fills_put(fills, items, pack, item);
        pack_of[k - first] = pack;
    }
    return HBP_OK;
}

/* Adds what is counted to the packs, and finds the fullest. */
static void settle(hbp__bin_deal *deal)
{
    hbp__fills *fills = deal->fills;
    deal->most_load = deal->most_members = 0;
    for (int64_t j = 0; j < deal->width; j++) {
        const uint32_t pack = deal->order[j];
        fills->load[pack] += deal->load;
        fills->time_ns[pack] = hbp__add_saturating(fills->time_ns[pack], deal->time_ns);
        fills->members[pack] += deal->members;
        deal->most_load = hbp__max_i64(deal->most_load, fills->load[pack]);
        deal->most_members = hbp__max_i64(deal->most_members, fills->members[pack]);
    }
    deal->load = deal->time_ns = deal->members = 0;
}

void hbp__bin_deal_begin(hbp__fills *fills, const hbp__items *items, const hbp__listing *listing,
                         int64_t width, uint32_t *order, hbp__bin_deal *deal)
{
    *deal =
        (hbp__bin_deal){.fills = fills, .items = items, .listing = listing, .width = width, .order = order};
    settle(deal);
}

int hbp__bin_deal_is_alike(const hbp__bin_deal *deal, hbp__sized_run run)
{
    return !deal->items->next && (run.run + INT64_C(1)) * deal->width <= deal->listing->count &&
           run.longest == run.shortest && deal->most_load + run.longest <= deal->fills->capacity &&
           deal->most_members < deal->fills->max_members;
}

hbp_status hbp__bin_deal_run(hbp_context *context, hbp__bin_deal *deal, hbp__sized_run run, uint32_t *pack_of,
                             int64_t *lost)
{
    const hbp__listing *listing = deal->listing;
    const int64_t first = run.run * deal->width, end = hbp__min_i64(first + deal->width, listing->count);
    *lost = 0;
    if (hbp__bin_deal_is_alike(deal, run)) {
        /* Items alike, one for every pack, all with room: the order of packs stays as it is. */
        deal->load += run.longest;
        deal->most_load += run.longest;
        deal->time_ns = hbp__add_saturating(deal->time_ns, size_ns(deal->fills, run.longest));
        deal->members++;
        deal->most_members++;
        if (pack_of)
            memcpy(pack_of, deal->order, (size_t)deal->width * sizeof *pack_of);
        return HBP_OK;
    }
    settle(deal);
    HBP__TRY(deal_items(context, deal, first, end, pack_of, lost));
    settle(deal);
    return HBP_OK;
}

int hbp__bin_deal_alike(hbp__fills *fills, const hbp__items *items, const hbp__listing *listing,
                        int64_t width, int64_t first_pack, const hbp__sized_run *run, int64_t runs)
{
    int64_t load = 0, time_ns = 0;
    for (int64_t i = 0; i < runs; i++) {
        if (run[i].longest != run[i].shortest || (run[i].run + INT64_C(1)) * width > listing->count)
            return 0;
        load += run[i].longest;
        if (fills->time_ns)
            time_ns = hbp__add_saturating(time_ns, size_ns(fills, run[i].longest));
    }
    if (items->next || load > fills->capacity || runs > fills->max_members)
        return 0;
    for (int64_t p = first_pack; p < first_pack + width; p++) {
        fills->load[p] = load;
        if (fills->time_ns)
            fills->time_ns[p] = time_ns;
        fills->members[p] = runs;
    }
    return 1;
}

void hbp__bin_deal_end(hbp__bin_deal *deal)
{
    settle(deal);
}
