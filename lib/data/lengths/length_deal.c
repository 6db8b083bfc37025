#include "data/lengths/length_deal.h"

#include <string.h>

#include "base/checked.h"
#include "base/parallel.h"
#include "base/scratch.h"
#include "base/search.h"
#include "data/lengths/lengths_make.h"

/* Past every sample. */
#define NO_PLACE UINT32_MAX

/* Samples of a part for each slot, at least: slots are counted and placed for each part. */
#define PART_SLOTS 4

/* The place of a sample is asked for so many samples before it comes. */
#define SAMPLES_AHEAD 32

static int64_t slots_of(const hbp__length_deal *d)
{
    return d->table_max + 2 + d->histogram->bins;
}

/* A slot for any length; that of one that does not occur has no place. */
static inline int64_t slot_of(const hbp__length_deal *d, uint32_t length)
{
    if (length <= d->table_max)
        return length;
    const int64_t bin = hbp__last_at_most(d->histogram->bin_length, d->histogram->bins, length);
    return d->table_max + 1 + (d->histogram->bin_length[bin] == length ? bin : d->histogram->bins);
}

hbp_status hbp__length_deal_open(hbp_context *context, const hbp_lengths *histogram, hbp__length_deal *d)
{
    memset(d, 0, sizeof *d);
    d->memory = context->memory;
    d->histogram = histogram;
    d->table_max = hbp__lengths_table(histogram->count, histogram->bin_length[histogram->bins - 1]);
    const int64_t slots = slots_of(d);
    d->slot_next = hbp__new(&d->memory, (uint64_t)slots, sizeof *d->slot_next);
    if (!d->slot_next)
        return hbp__fail_memory(context, "the order of lengths");
    for (int64_t slot = 0; slot < slots; slot++)
        d->slot_next[slot] = NO_PLACE;
    for (int64_t bin = 0; bin < histogram->bins; bin++)
        d->slot_next[slot_of(d, (uint32_t)histogram->bin_length[bin])] = (uint32_t)histogram->bin_first[bin];
    return HBP_OK;
}

void hbp__length_deal_close(hbp__length_deal *d)
{
    if (d->slot_next)
        hbp__delete(&d->memory, d->slot_next);
    d->slot_next = NULL;
}

/* Asks for where the next sample of a length goes: near enough while others come before it. */
static inline void prefetch_place(const hbp__length_deal *d, uint32_t length, const uint32_t *order)
{
    const uint32_t place = d->slot_next[length <= d->table_max ? length : 0];
    __builtin_prefetch((const void *)((uintptr_t)order + (uintptr_t)place * sizeof *order), 1);
}

hbp_status hbp__length_deal_take(hbp_context *context, hbp__length_deal *d, const uint32_t *length,
                                 int64_t count, uint32_t *order, int *has_place)
{
    const int64_t all = d->histogram->count, before = d->dealt;
    *has_place = 0;
    if (count > all - before)
        return HBP_OK;
    for (int64_t begin = 0; begin < count; begin += HBP__LENGTHS_BLOCK) {
        HBP__TRY(hbp__tick(context, "order lengths", before + begin, all));
        const int64_t end = hbp__min_i64(count, begin + HBP__LENGTHS_BLOCK);
        for (int64_t i = begin; i < end; i++) {
            if (i + SAMPLES_AHEAD < end)
                prefetch_place(d, length[i + SAMPLES_AHEAD], order);
            const uint32_t to = d->slot_next[slot_of(d, length[i])]++;
            if (to >= all)
                return HBP_OK;
            order[to] = (uint32_t)(before + i);
        }
    }
    d->dealt += count;
    *has_place = 1;
    return HBP_OK;
}

int64_t hbp__length_deal_missing(const hbp__length_deal *d)
{
    const hbp_lengths *lengths = d->histogram;
    for (int64_t bin = 0; bin < lengths->bins; bin++)
        if (d->slot_next[slot_of(d, (uint32_t)lengths->bin_length[bin])] != lengths->bin_first[bin + 1])
            return bin;
    return -1;
}

static hbp_status deal_whole(hbp_context *context, const hbp_lengths *lengths, hbp__length_deal *deal,
                             uint32_t *order)
{
    int has_place = 0;
    HBP__TRY(hbp__length_deal_take(context, deal, lengths->length, lengths->count, order, &has_place));
    return has_place && hbp__length_deal_missing(deal) < 0 ? HBP_OK : hbp__lengths_changed(context);
}

/* An array in parts, each a thread's. */
typedef struct dealing {
    const hbp_lengths *lengths;
    const hbp__length_deal *whole;
    int64_t slots;
    int64_t parts;
    uint32_t *slot_next; /* [parts + 1, slots] samples of each, then where the first one goes */
    uint32_t *order;
} dealing;

static int64_t part_begin(const dealing *p, int64_t part)
{
    return hbp__part_begin(p->lengths->count, p->parts, part);
}

static hbp_status count_part(hbp_context *context, void *user, int64_t part)
{
    const dealing *p = user;
    const uint32_t *length = p->lengths->length;
    uint32_t *slot_next = p->slot_next + part * p->slots;
    const int64_t end = part_begin(p, part + 1);
    for (int64_t begin = part_begin(p, part), stop; begin < end; begin = stop) {
        stop = hbp__min_i64(end, begin + HBP__LENGTHS_BLOCK);
        HBP__TRY(hbp__tick(context, "order lengths", begin, end));
        for (int64_t i = begin; i < stop; i++)
            slot_next[slot_of(p->whole, length[i])]++;
    }
    return HBP_OK;
}

static hbp_status deal_part(hbp_context *context, void *user, int64_t part)
{
    const dealing *p = user;
    const uint32_t *first = p->slot_next + part * p->slots;
    const int64_t begin = part_begin(p, part), mark = hbp__scratch_mark(context);
    const uint64_t bytes = (uint64_t)p->slots * sizeof *first;
    hbp__length_deal own = *p->whole;
    int has_place = 0;
    own.slot_next = hbp__take(context, (uint64_t)p->slots, sizeof *own.slot_next);
    HBP__TRY(hbp__scratch_check(context, "the order of lengths"));
    HBP__TRY(hbp__copy(context, own.slot_next, first, bytes));
    own.dealt = begin;
    HBP__TRY(hbp__length_deal_take(context, &own, p->lengths->length + begin, part_begin(p, part + 1) - begin,
                                   p->order, &has_place));
    /* Each place was taken once: every part ends where the next one begins. */
    const int is_whole = has_place && !memcmp(own.slot_next, first + p->slots, (size_t)bytes);
    hbp__scratch_release(context, mark);
    return is_whole ? HBP_OK : hbp__lengths_changed(context);
}

/* Makes numbers of samples the places where they begin. */
static hbp_status place_parts(hbp_context *context, const dealing *p)
{
    for (int64_t slot = 0; slot < p->slots; slot++) {
        const int64_t end = p->slots * p->parts + slot;
        uint64_t next = p->whole->slot_next[slot];
        HBP__TRY(hbp__tick_row(context, "order lengths", slot, p->slots));
        for (int64_t part = 0; part < p->parts; part++) {
            uint32_t *here = &p->slot_next[part * p->slots + slot];
            const uint32_t samples = *here;
            if (next == NO_PLACE && samples)
                return hbp__lengths_changed(context);
            *here = (uint32_t)next;
            next += samples;
        }
        p->slot_next[end] = p->whole->slot_next[slot] = (uint32_t)next;
    }
    return hbp__length_deal_missing(p->whole) < 0 ? HBP_OK : hbp__lengths_changed(context);
}

static hbp_status deal_parts(hbp_context *context, const hbp_lengths *lengths, const hbp__length_deal *whole,
                             int64_t count, uint32_t *order)
{
    dealing p = {lengths, whole, slots_of(whole), count, NULL, order};
    p.slot_next = hbp__new_zero(&context->memory, (uint64_t)((p.parts + 1) * p.slots), sizeof *p.slot_next);
    if (!p.slot_next)
        return hbp__fail_memory(context, "the order of lengths");
    hbp_status status = hbp__parallel(context, 0, p.parts, count_part, &p);
    if (status >= 0)
        status = place_parts(context, &p);
    if (status >= 0)
        status = hbp__parallel(context, 0, p.parts, deal_part, &p);
    hbp__delete(&context->memory, p.slot_next);
    return status;
}

hbp_status hbp__lengths_deal(hbp_context *context, const hbp_lengths *lengths, uint32_t *order)
{
    hbp__length_deal deal;
    hbp_status status = hbp__length_deal_open(context, lengths, &deal);
    if (status >= 0) {
        const int64_t most = lengths->count / (PART_SLOTS * slots_of(&deal));
        const int64_t parts = hbp__min_i64(hbp__threads(context, 0), most);
        status = parts > 1 ? deal_parts(context, lengths, &deal, parts, order)
                           : deal_whole(context, lengths, &deal, order);
    }
    hbp__length_deal_close(&deal);
    return status;
}
