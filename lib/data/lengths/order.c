/* The order of a data set: by length, samples of one length shuffled by the seed. */
#include <string.h>

#include "base/checked.h"
#include "base/rng.h"
#include "data/lengths/lengths_make.h"

/* The rng's stream of this order. */
#define STREAM UINT64_C(0x6f72646572)
/* Buckets of the first pass: few enough that their write positions stay in the nearest caches. */
#define BUCKET_SHIFT 9
/* Runs of one length up to this many samples are shuffled in place; longer ones are first dealt into piles.
 */
#define SHUFFLE_IN_PLACE 65536
#define PILES            256

/* Counting sort in two passes over (length, index), the histogram being there already. The first pass deals
 * samples into about 512 buckets of neighbouring lengths, the second sorts each bucket by length within the
 * cache. */
typedef struct ordering {
    hbp_context *context;
    const hbp_lengths *lengths;
    int64_t table_max;   /* lengths up to this are slots; a longer one has the slot table_max + 1 + its bin */
    uint32_t *slot_next; /* [slots] where the next sample of the length goes */
    uint16_t *slot_bucket; /* [slots] */
    int64_t buckets;
    int64_t *bucket_bin;   /* [buckets + 1] first bin */
    uint32_t *bucket_next; /* [buckets] where the next sample of the bucket goes in the first pass */
    uint32_t *order;       /* [count] */
    uint32_t *scratch;     /* [count] lengths, bucket by bucket; later room for piles */
    uint32_t *window;      /* [widest] a bucket's samples */
    int64_t widest;        /* samples of the largest bucket with more than one length */
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

/* Walks the bins: a bucket ends when it holds its share, and a length that is a share by itself has its own
 * bucket. */
static void cut_buckets(ordering *o)
{
    const hbp_lengths *lengths = o->lengths;
    int64_t share = (lengths->count >> BUCKET_SHIFT) + 1;
    o->buckets = 0;
    for (int64_t bin = 0, in_bucket = 0; bin < lengths->bins; bin++) {
        int64_t here = lengths->bin_count[bin];
        if (bin == 0 || in_bucket + here > share) {
            o->bucket_bin[o->buckets] = bin;
            o->bucket_next[o->buckets++] = (uint32_t)lengths->bin_first[bin];
            in_bucket = 0;
        } else
            o->widest = hbp__max_i64(o->widest, in_bucket + here);
        in_bucket += here;
        int64_t length = lengths->bin_length[bin];
        int64_t slot = length <= o->table_max ? length : o->table_max + 1 + bin;
        o->slot_next[slot] = (uint32_t)lengths->bin_first[bin];
        o->slot_bucket[slot] = (uint16_t)(o->buckets - 1);
    }
    o->bucket_bin[o->buckets] = lengths->bins;
}

static hbp_status deal_into_buckets(ordering *o)
{
    const uint32_t *length = o->lengths->length;
    int64_t count = o->lengths->count;
    for (int64_t begin = 0; begin < count; begin += HBP__LENGTHS_BLOCK) {
        HBP__TRY(hbp__tick(o->context, "order lengths", begin, count));
        int64_t end = hbp__min_i64(count, begin + HBP__LENGTHS_BLOCK);
        for (int64_t i = begin; i < end; i++) {
            uint32_t tokens = length[i];
            uint32_t to = o->bucket_next[o->slot_bucket[slot_of(o, tokens)]]++;
            if (to >= count)
                return hbp__lengths_changed(o->context);
            o->order[to] = (uint32_t)i;
            o->scratch[to] = tokens;
        }
    }
    for (int64_t b = 0; b < o->buckets; b++)
        if (o->bucket_next[b] != o->lengths->bin_first[o->bucket_bin[b + 1]])
            return hbp__lengths_changed(o->context);
    return HBP_OK;
}

/* Sorts the samples [begin, end) of one bucket by length; stable. */
static hbp_status sort_bucket(ordering *o, int64_t begin, int64_t end)
{
    memcpy(o->window, o->order + begin, (size_t)(end - begin) * sizeof *o->window);
    for (int64_t i = begin; i < end; i++) {
        if ((i - begin) % HBP__LENGTHS_BLOCK == HBP__LENGTHS_BLOCK - 1)
            HBP__TRY(hbp__tick(o->context, "order lengths", i, o->lengths->count));
        int64_t slot = slot_of(o, o->scratch[i]);
        if (o->slot_next[slot] < begin || o->slot_next[slot] >= end)
            return hbp__lengths_changed(o->context);
        o->order[o->slot_next[slot]++] = o->window[i - begin];
    }
    return HBP_OK;
}

/* Whether every bin of a sorted bucket got its samples: no place is then taken twice. */
static int is_filled(const ordering *o, int64_t first, int64_t last)
{
    const hbp_lengths *lengths = o->lengths;
    for (int64_t bin = first; bin < last; bin++)
        if (o->slot_next[slot_of(o, (uint32_t)lengths->bin_length[bin])] != lengths->bin_first[bin + 1])
            return 0;
    return 1;
}

/* Uniform shuffle of a long run without leaving the cache (Rao 1961, Sandelius 1962): each sample goes to a
 * random pile, then each pile is shuffled. The piles are drawn twice from the same state instead of being
 * remembered. */
static hbp_status shuffle_run(ordering *o, int64_t begin, int64_t count)
{
    uint32_t *run = o->order + begin, *piled = o->scratch + begin;
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
    HBP__TRY(deal_into_buckets(o));
    for (int64_t bucket = 0; bucket < o->buckets; bucket++) {
        int64_t first = o->bucket_bin[bucket], last = o->bucket_bin[bucket + 1];
        HBP__TRY(hbp__tick(o->context, "order lengths", lengths->bin_first[first], lengths->count));
        if (last - first > 1) {
            HBP__TRY(sort_bucket(o, lengths->bin_first[first], lengths->bin_first[last]));
            if (!is_filled(o, first, last))
                return hbp__lengths_changed(o->context);
        }
        for (int64_t bin = first; bin < last; bin++)
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
    o.rng = hbp__rng_make(seed, epoch, STREAM);
    o.table_max = hbp__lengths_table(lengths->count, lengths->bin_length[lengths->bins - 1]);
    uint64_t slots = (uint64_t)(o.table_max + 1 + lengths->bins);
    uint64_t most_buckets = (uint64_t)hbp__min_i64(lengths->bins, 2 * (INT64_C(1) << BUCKET_SHIFT) + 2);
    o.slot_next = hbp__new_zero(memory, slots, sizeof *o.slot_next); /* lengths that do not occur, too */
    o.slot_bucket = hbp__new_zero(memory, slots, sizeof *o.slot_bucket);
    o.bucket_bin = hbp__new(memory, most_buckets + 1, sizeof *o.bucket_bin);
    o.bucket_next = hbp__new(memory, most_buckets, sizeof *o.bucket_next);
    o.scratch = hbp__new(memory, (uint64_t)lengths->count, sizeof *o.scratch);
    hbp_status status = HBP_OK;
    if (o.slot_next && o.slot_bucket && o.bucket_bin && o.bucket_next && o.scratch) {
        cut_buckets(&o);
        o.window = hbp__new(memory, (uint64_t)o.widest, sizeof *o.window);
    }
    if (o.window)
        status = run_ordering(&o);
    else
        status = hbp__fail_memory(context, "the order of lengths");
    void *blocks[] = {o.slot_next, o.slot_bucket, o.bucket_bin, o.bucket_next, o.scratch, o.window};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        hbp__delete(memory, blocks[i]);
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
