/* The authors' program, in their order: what numpy's RandomState(seed).shuffle makes of the positions of a
 * list is what it makes of the list itself, so here the samples are shuffled where they lie. Quirks are kept:
 * the second round is seeded as the first one, and the open pack of the first round is lost when the sample
 * visited last is over a budget (later rounds meet no such sample). Their program runs the last round twice,
 * with the same seed on the same list; once is enough. */
#include "pack/vision/iterative_reference.h"

#include <string.h>

#include "base/checked.h"
#include "base/mt19937.h"
#include "base/scratch.h"

enum {
    CHUNK = 256, /* samples between two looks at the packs that they closed */
    TICK_SAMPLES = 32768,
    TICK_SWAPS = 1 << 18 /* of a shuffle: a few milliseconds where each misses the cache */
};

/* A sample that waits is one word: its index, and above it, where they fit, its tokens and its vision units,
 * so that a visit needs no look-up. A size over its budget is cut to the first value that is. */
typedef struct filling {
    hbp_context *context;
    const hbp_lengths *lengths;
    const hbp_iterative_fill_options *options;
    hbp_packs *packs;
    int64_t room; /* packs that the columns hold */
    uint64_t *waiting;
    int64_t count;
    int sizes_in_word;
    int token_shift;
    int vision_shift;
    uint64_t index_mask;
    uint64_t token_mask;
} filling;

static int bits_of(uint64_t value)
{
    int bits = 0;
    for (; value; value >>= 1)
        bits++;
    return bits;
}

static inline uint32_t index_of(const filling *f, uint64_t word)
{
    return (uint32_t)(word & f->index_mask);
}

static inline int64_t tokens_of(const filling *f, uint64_t word)
{
    return f->sizes_in_word ? (int64_t)(word >> f->token_shift & f->token_mask)
                            : hbp__lengths_get(f->lengths, index_of(f, word));
}

static inline int64_t vision_of(const filling *f, uint64_t word)
{
    return f->sizes_in_word ? (int64_t)(word >> f->vision_shift)
                            : hbp__lengths_vision(f->lengths, index_of(f, word));
}

static inline int is_over(const filling *f, int64_t tokens, int64_t vision)
{
    return tokens > f->options->max_tokens || vision > f->options->max_vision;
}

static void lay_out(filling *f)
{
    int index_bits = bits_of((uint64_t)f->lengths->count - 1);
    int token_bits = bits_of((uint64_t)f->options->max_tokens + 1);
    int vision_bits = f->lengths->vision ? bits_of((uint64_t)f->options->max_vision + 1) : 0;
    f->sizes_in_word = index_bits + token_bits + vision_bits <= 63; /* 63: no shift by 64 */
    f->index_mask = (UINT64_C(1) << index_bits) - 1;
    f->token_mask = (UINT64_C(1) << token_bits) - 1;
    f->token_shift = index_bits;
    f->vision_shift = index_bits + token_bits;
    if (!f->sizes_in_word)
        f->index_mask = UINT32_MAX;
}

static uint64_t word_of(const filling *f, int64_t index, int64_t tokens, int64_t vision)
{
    if (!f->sizes_in_word)
        return (uint64_t)index;
    uint64_t t = (uint64_t)hbp__min_i64(tokens, f->options->max_tokens + 1);
    uint64_t v = (uint64_t)hbp__min_i64(vision, f->options->max_vision + 1);
    return v << f->vision_shift | t << f->token_shift | (uint64_t)index;
}

/* Room for `count` more rows of the dropped table. */
static hbp_status reserve_dropped(const filling *f, int64_t count)
{
    hbp_packs *packs = f->packs;
    uint64_t rows = (uint64_t)(packs->dropped + count);
    uint32_t *sample = hbp__renew(&packs->memory, packs->dropped_sample, rows, sizeof *sample);
    if (sample)
        packs->dropped_sample = sample;
    int32_t *reason = sample ? hbp__renew(&packs->memory, packs->dropped_reason, rows, sizeof *reason) : NULL;
    if (!reason)
        return hbp__fail_memory(f->context, "the dropped samples");
    packs->dropped_reason = reason;
    return HBP_OK;
}

static void drop_sample(const filling *f, int64_t index, int32_t reason)
{
    f->packs->dropped_sample[f->packs->dropped] = (uint32_t)index;
    f->packs->dropped_reason[f->packs->dropped++] = reason;
}

static hbp_status gather_all(filling *f, int64_t *over)
{
    const hbp_lengths *lengths = f->lengths;
    *over = 0;
    for (int64_t i = 0; i < lengths->count; i++) {
        HBP__TRY(hbp__tick_row(f->context, "pack", i, lengths->count));
        f->waiting[i] = word_of(f, i, hbp__lengths_get(lengths, i), hbp__lengths_vision(lengths, i));
        *over += is_over(f, tokens_of(f, f->waiting[i]), vision_of(f, f->waiting[i]));
    }
    f->count = lengths->count;
    if (!*over)
        return HBP_OK;
    HBP__TRY(reserve_dropped(f, *over));
    for (int64_t i = 0; i < lengths->count; i++) {
        int64_t tokens = tokens_of(f, f->waiting[i]);
        if (is_over(f, tokens, vision_of(f, f->waiting[i])))
            drop_sample(f, i,
                        tokens > f->options->max_tokens ? HBP_DROPPED_OVERLONG : HBP_DROPPED_OVERVISION);
    }
    return HBP_OK;
}

static hbp_status shuffle(const filling *f, uint32_t seed)
{
    hbp__mt19937 mt;
    hbp__mt_seed(&mt, seed);
    for (int64_t end = f->count; end > 1; end -= TICK_SWAPS) {
        hbp__mt_shuffle_u64(&mt, f->waiting, (uint64_t)end, (uint64_t)hbp__max_i64(0, end - TICK_SWAPS));
        HBP__TRY(hbp__tick(f->context, "pack", f->packs->samples, f->lengths->count));
    }
    return HBP_OK;
}

/* Takes the samples over a budget out of the order; 1 when the last one visited is among them. */
static int skip_over(filling *f)
{
    int64_t left = 0, last = f->count - 1;
    int last_is_over = is_over(f, tokens_of(f, f->waiting[last]), vision_of(f, f->waiting[last]));
    for (int64_t i = 0; i <= last; i++) {
        uint64_t word = f->waiting[i];
        if (!is_over(f, tokens_of(f, word), vision_of(f, word)))
            f->waiting[left++] = word;
    }
    f->count = left;
    return last_is_over;
}

/* The samples at [first, end) of the order become a pack. */
static hbp_status keep(filling *f, int64_t first, int64_t end, int64_t tokens, int64_t vision)
{
    hbp_packs *packs = f->packs;
    if (packs->count == f->room) {
        f->room *= 2;
        if (!hbp__packs_reserve(packs, f->room))
            return hbp__fail_memory(f->context, "packs");
    }
    int64_t p = packs->count++, squares = 0, at = packs->samples;
    for (int64_t i = first; i < end; i++) {
        int64_t length = tokens_of(f, f->waiting[i]);
        packs->sample[at] = index_of(f, f->waiting[i]);
        packs->brief[at++] = length <= UINT16_MAX ? (uint16_t)length : 0;
        squares += length * length;
    }
    packs->samples = packs->offsets[p + 1] = at;
    packs->group[p] = 0;
    packs->tokens[p] = packs->padded[p] = tokens;
    packs->squares[p] = squares;
    if (packs->vision)
        packs->vision[p] = vision;
    return HBP_OK;
}

static hbp_status lose(const filling *f, int64_t first, int64_t end)
{
    HBP__TRY(reserve_dropped(f, end - first));
    for (int64_t i = first; i < end; i++)
        drop_sample(f, index_of(f, f->waiting[i]), HBP_DROPPED_LOST);
    return HBP_OK;
}

/* A pack that next fit has open, or has closed before the sample at `end`. */
typedef struct span {
    int64_t end;
    int64_t tokens;
    int64_t vision;
} span;

/* Next fit over [begin, end) of the order; returns the packs closed on the way. Where packs end is as good as
 * random, so every sample writes down a pack, and the next one overwrites it unless it was closed. */
static inline int next_fit(const filling *f, int64_t begin, int64_t end, span *open, span *closed)
{
    int64_t tokens = open->tokens, vision = open->vision;
    int count = 0;
    for (int64_t i = begin; i < end; i++) {
        int64_t t = tokens_of(f, f->waiting[i]), v = vision_of(f, f->waiting[i]);
        int64_t over = (tokens + t > f->options->max_tokens) | (vision + v > f->options->max_vision);
        closed[count] = (span){i, tokens, vision};
        count += (int)over;
        tokens = t + (tokens & (over - 1)); /* t alone when over */
        vision = v + (vision & (over - 1));
    }
    *open = (span){end, tokens, vision};
    return count;
}

/* The round's place in the order: samples before `first` are settled, those from `behind` on of packs that
 * were not full and have to move up to `left`, in one piece as far as the next full pack. */
typedef struct sweep {
    int64_t first;
    int64_t behind;
    int64_t left;
} sweep;

static void move_up(filling *f, sweep *s, int64_t end)
{
    int64_t count = end - s->behind;
    if (s->left != s->behind)
        memmove(f->waiting + s->left, f->waiting + s->behind, (size_t)count * sizeof *f->waiting);
    s->left += count;
}

static inline int is_full(const filling *f, const span *pack)
{
    return pack->tokens >= f->options->full_tokens ||
           (f->lengths->vision && pack->vision == f->options->full_vision);
}

static inline hbp_status settle(filling *f, sweep *s, const span *pack, int is_last)
{
    if (is_last || is_full(f, pack)) {
        move_up(f, s, s->first);
        HBP__TRY(keep(f, s->first, pack->end, pack->tokens, pack->vision));
        s->behind = pack->end;
    }
    s->first = pack->end;
    return HBP_OK;
}

/* Next fit over the order, and the filter. */
static hbp_status pack_round(filling *f, int is_last, int lose_open)
{
    span closed[CHUNK], open = {0, 0, 0};
    sweep s = {0, 0, 0};
    for (int64_t begin = 0; begin < f->count; begin += CHUNK) {
        if (begin % TICK_SAMPLES == 0)
            HBP__TRY(hbp__tick(f->context, "pack", f->packs->samples, f->lengths->count));
        int count = next_fit(f, begin, hbp__min_i64(begin + CHUNK, f->count), &open, closed);
        for (int c = 0; c < count; c++)
            HBP__TRY(settle(f, &s, &closed[c], is_last));
    }
    if (lose_open) {
        HBP__TRY(lose(f, s.first, f->count));
        f->count = s.first;
    } else if (s.first < f->count) {
        HBP__TRY(settle(f, &s, &open, is_last));
    }
    move_up(f, &s, f->count);
    f->count = s.left;
    return HBP_OK;
}

static hbp_status run_rounds(filling *f)
{
    int64_t over;
    HBP__TRY(gather_all(f, &over));
    for (int32_t round = 0; round < f->options->rounds && f->count; round++) {
        uint32_t seed = (uint32_t)(f->options->seed + (uint64_t)(round ? round - 1 : 0));
        HBP__TRY(shuffle(f, seed));
        int lose_open = !round && over && skip_over(f);
        HBP__TRY(pack_round(f, round == f->options->rounds - 1, lose_open));
    }
    return HBP_OK;
}

/* What the samples that are left need at least. */
static void set_bound(filling *f)
{
    hbp_packs *packs = f->packs;
    int64_t tokens = 0, vision = 0;
    for (int64_t p = 0; p < packs->count; p++) {
        tokens += packs->tokens[p];
        vision += packs->vision ? packs->vision[p] : 0;
    }
    packs->groups = 1;
    packs->bound[0] = hbp__ceil_div(tokens, f->options->max_tokens);
    if (packs->vision) {
        packs->bound[0] = hbp__max_i64(packs->bound[0], hbp__ceil_div(vision, f->options->max_vision));
        packs->max_vision[0] = f->options->max_vision;
    }
}

hbp_status hbp__reference_check(hbp_context *context, const hbp_lengths *lengths, int32_t rounds,
                                uint64_t seed, const char *what)
{
    uint64_t last = HBP__NUMPY_MAX_SEED - (uint64_t)(rounds > 2 ? rounds - 2 : 0);
    if (lengths->link)
        return hbp__fail(
            context, HBP_E_INVALID,
            "%s: the published fill cannot keep linked samples together; the lengths have %lld links", what,
            (long long)lengths->links);
    if (seed > last)
        return hbp__fail(context, HBP_E_INVALID,
                         "%s: the seed is %llu; numpy takes at most %llu for %d rounds", what,
                         (unsigned long long)seed, (unsigned long long)last, (int)rounds);
    return HBP_OK;
}

hbp_status hbp__fill_reference(hbp_context *context, const hbp_lengths *lengths,
                               const hbp_iterative_fill_options *options, hbp_packs **out)
{
    filling f = {.context = context, .lengths = lengths, .options = options};
    uint64_t count = (uint64_t)lengths->count;
    lay_out(&f);
    int64_t mark = hbp__scratch_mark(context);
    f.waiting = hbp__take(context, count, sizeof *f.waiting);
    HBP__TRY(hbp__scratch_check(context, "the order of samples"));
    f.room = 64 + lengths->tokens / options->max_tokens;
    if (f.room > lengths->count)
        f.room = lengths->count;
    f.packs = hbp__packs_new(context, lengths, f.room);
    if (!f.packs)
        return hbp__fail_memory(context, "packs");
    f.packs->count = f.packs->samples = 0;
    f.packs->brief = hbp__new(&context->memory, count, sizeof *f.packs->brief);
    hbp_status status = f.packs->brief ? run_rounds(&f) : hbp__fail_memory(context, "the order of samples");
    if (status < 0) {
        hbp_packs_free(f.packs);
        return status;
    }
    hbp__scratch_release(context, mark);
    set_bound(&f);
    *out = f.packs;
    return HBP_OK;
}
