/* The order of a data set: by length, samples of one length shuffled by the seed. */
#include <string.h>

#include "base/checked.h"
#include "base/rng.h"
#include "data/lengths/lengths_make.h"

/* The rng's stream of this order. */
#define STREAM UINT64_C(0x6f72646572)
/* Runs of one length up to this many samples are shuffled in place; longer ones are first dealt into piles.
 */
#define SHUFFLE_IN_PLACE 65536
#define PILES            256

/* Counting sort: the histogram says where each length begins. Samples are dealt in one pass, as many streams
 * of writes as there are lengths; most data have few lengths that are frequent. */
typedef struct ordering {
    hbp_context *context;
    const hbp_lengths *lengths;
    int64_t table_max;   /* lengths up to this are slots; a longer one has the slot table_max + 1 + its bin */
    uint32_t *slot_next; /* [slots] where the next sample of the length goes */
    uint32_t *order;     /* [count] */
    uint32_t *piled;     /* [samples of the most frequent length] room for piles; NULL: none is frequent */
    hbp__rng rng;
} ordering;

/* The bin of a length that occurs; O(log bins). */
static int64_t find_bin(const hbp_lengths *lengths, uint32_t length)
{
    int64_t low = 0, high = lengths->bins;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (lengths->bin_length[middle] <= length)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* In range for any length, so that a borrowed array that changes misplaces samples at worst. */
static inline int64_t slot_of(const ordering *o, uint32_t length)
{
    return length <= o->table_max ? length : o->table_max + 1 + find_bin(o->lengths, length);
}

static void start_slots(const ordering *o)
{
    const hbp_lengths *lengths = o->lengths;
    for (int64_t bin = 0; bin < lengths->bins; bin++) {
        const int64_t length = lengths->bin_length[bin];
        const int64_t slot = length <= o->table_max ? length : o->table_max + 1 + bin;
        o->slot_next[slot] = (uint32_t)lengths->bin_first[bin];
    }
}

/* Whether every bin got its samples: no place is then taken twice. */
static int is_filled(const ordering *o)
{
    const hbp_lengths *lengths = o->lengths;
    for (int64_t bin = 0; bin < lengths->bins; bin++)
        if (o->slot_next[slot_of(o, (uint32_t)lengths->bin_length[bin])] != lengths->bin_first[bin + 1])
            return 0;
    return 1;
}

static hbp_status deal(ordering *o)
{
    const uint32_t *length = o->lengths->length;
    const int64_t count = o->lengths->count;
    for (int64_t begin = 0; begin < count; begin += HBP__LENGTHS_BLOCK) {
        HBP__TRY(hbp__tick(o->context, "order lengths", begin, count));
        const int64_t end = hbp__min_i64(count, begin + HBP__LENGTHS_BLOCK);
        for (int64_t i = begin; i < end; i++) {
            const uint32_t to = o->slot_next[slot_of(o, length[i])]++;
            if (to >= count)
                return hbp__lengths_changed(o->context);
            o->order[to] = (uint32_t)i;
        }
    }
    return is_filled(o) ? HBP_OK : hbp__lengths_changed(o->context);
}

/* Uniform shuffle of a long run without leaving the cache (Rao 1961, Sandelius 1962): each sample goes to a
 * random pile, then each pile is shuffled. The piles are drawn twice from the same state instead of being
 * remembered. */
static hbp_status shuffle_run(ordering *o, int64_t begin, int64_t count)
{
    uint32_t *run = o->order + begin, *piled = o->piled;
    if (count <= SHUFFLE_IN_PLACE) {
        hbp__rng_shuffle_u32(&o->rng, run, (uint64_t)count);
        return HBP_OK;
    }
    int64_t next[PILES + 1] = {0};
    hbp__rng again = o->rng;
    uint64_t digits = 0;
    for (int64_t i = 0; i < count; i++, digits >>= 8) {
        if (i % HBP__LENGTHS_BLOCK == 0)
            HBP__TRY(hbp__tick(o->context, "shuffle equal lengths", begin + i, o->lengths->count));
        if (i % 8 == 0)
            digits = hbp__rng_next(&o->rng);
        next[(digits & (PILES - 1)) + 1]++;
    }
    for (int pile = 0; pile < PILES; pile++)
        next[pile + 1] += next[pile];
    for (int64_t i = 0; i < count; i++, digits >>= 8) {
        if (i % HBP__LENGTHS_BLOCK == 0)
            HBP__TRY(hbp__tick(o->context, "shuffle equal lengths", begin + i, o->lengths->count));
        if (i % 8 == 0)
            digits = hbp__rng_next(&again);
        piled[next[digits & (PILES - 1)]++] = run[i];
    }
    memcpy(run, piled, (size_t)count * sizeof *run);
    for (int64_t pile = 0, from = 0; pile < PILES; from = next[pile++]) { /* about count / 256 each: 4 deep */
        HBP__TRY(hbp__tick(o->context, "shuffle equal lengths", begin + from, o->lengths->count));
        HBP__TRY(shuffle_run(o, begin + from, next[pile] - from));
    }
    return HBP_OK;
}

static hbp_status run_ordering(ordering *o)
{
    const hbp_lengths *lengths = o->lengths;
    start_slots(o);
    HBP__TRY(deal(o));
    for (int64_t bin = 0; bin < lengths->bins; bin++) {
        if (bin % 1024 == 0)
            HBP__TRY(hbp__tick(o->context, "shuffle equal lengths", lengths->bin_first[bin], lengths->count));
        if (lengths->bin_count[bin] > 1)
            HBP__TRY(shuffle_run(o, lengths->bin_first[bin], lengths->bin_count[bin]));
    }
    return HBP_OK;
}

static hbp_status order_array(hbp_context *context, const hbp_lengths *lengths, uint64_t seed, uint64_t epoch,
                              uint32_t *order)
{
    const hbp__memory *memory = &context->memory;
    ordering o = {.context = context, .lengths = lengths, .order = order};
    int64_t most = 0;
    o.rng = hbp__rng_make(seed, epoch, STREAM);
    o.table_max = hbp__lengths_table(lengths->count, lengths->bin_length[lengths->bins - 1]);
    for (int64_t bin = 0; bin < lengths->bins; bin++)
        most = hbp__max_i64(most, lengths->bin_count[bin]);
    /* Lengths that do not occur have slots, too. */
    o.slot_next = hbp__new_zero(memory, (uint64_t)(o.table_max + 1 + lengths->bins), sizeof *o.slot_next);
    if (most > SHUFFLE_IN_PLACE)
        o.piled = hbp__new(memory, (uint64_t)most, sizeof *o.piled);
    const int has_room = o.slot_next && (o.piled || most <= SHUFFLE_IN_PLACE);
    hbp_status status = has_room ? run_ordering(&o) : hbp__fail_memory(context, "the order of lengths");
    hbp__delete(memory, o.slot_next);
    hbp__delete(memory, o.piled);
    return status;
}

static hbp_status order_histogram(hbp_context *context, const hbp_lengths *lengths, uint32_t *order)
{
    for (int64_t i = 0; i < lengths->count; i++) {
        if (i % HBP__LENGTHS_BLOCK == 0)
            HBP__TRY(hbp__tick(context, "order lengths", i, lengths->count));
        order[i] = (uint32_t)i;
    }
    return HBP_OK;
}

hbp_status hbp__lengths_order(hbp_context *context, const hbp_lengths *lengths, uint64_t seed, uint64_t epoch,
                              uint32_t **order)
{
    *order = NULL;
    uint32_t *fresh = hbp__new(&context->memory, (uint64_t)lengths->count, sizeof *fresh);
    if (!fresh)
        return hbp__fail_memory(context, "the order of lengths");
    hbp_status status = lengths->length ? order_array(context, lengths, seed, epoch, fresh)
                                        : order_histogram(context, lengths, fresh);
    if (status < 0)
        hbp__delete(&context->memory, fresh);
    else
        *order = fresh;
    return status;
}
