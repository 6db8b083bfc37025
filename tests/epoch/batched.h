/* Linked samples, and the promises that batches keep. */
#ifndef HBP_TESTS_BATCHED_H
#define HBP_TESTS_BATCHED_H

#include "base/checked.h"
#include "epoch/batches.h"
#include "planned.h"

/* `count` samples of 1 to `longest` tokens, linked in runs of 1 to `most`. */
static inline hbp_lengths *batched_linked(hbp_context *context, uint64_t seed, int64_t count, int64_t longest,
                                          int64_t most)
{
    int64_t *length = malloc((size_t)count * sizeof *length), *link = malloc((size_t)count * sizeof *link);
    hbp__rng rng = hbp__rng_make(seed, 0, 0);
    for (int64_t i = 0, run = 0; i < count; run++) {
        int64_t end = i + 1 + hbp__rng_below(&rng, (uint32_t)most);
        int64_t first = i;
        for (; i < end && i < count; i++) {
            length[i] = 1 + hbp__rng_below(&rng, (uint32_t)longest);
            link[i] = end - first > 1 ? run : -1;
        }
    }
    hbp_lengths_options with = {.struct_size = sizeof with, .links = link};
    hbp_lengths *lengths = NULL;
    OK(context, hbp_lengths_create_i64(context, length, count, &with, &lengths));
    free(length);
    free(link);
    return lengths;
}

/* Every piece is in one step or left over, and linked ones in the same step. */
static inline void batched_check(const hbp__batches *b, const hbp_lengths *lengths)
{
    int64_t *home = calloc((size_t)lengths->count, sizeof *home);
    int64_t *of_link = calloc((size_t)lengths->links + 1, sizeof *of_link);
    ck_assert_int_eq(b->first[0], 0);
    for (int64_t s = 0; s <= b->steps; s++) {
        int64_t end = s < b->steps ? b->first[s + 1] : lengths->count;
        ck_assert(s == b->steps || end > b->first[s]);
        for (int64_t i = b->first[s]; i < end; i++) {
            uint32_t piece = b->sample[i];
            ck_assert_int_lt(piece, lengths->count);
            ck_assert_int_eq(home[piece], 0);
            home[piece] = s + 1;
            uint32_t link = lengths->link ? lengths->link[piece] : HBP__FREE;
            if (link == HBP__FREE)
                continue;
            ck_assert(of_link[link] == 0 || of_link[link] == s + 1);
            of_link[link] = s + 1;
        }
    }
    for (int64_t i = 0; i < lengths->count; i++)
        ck_assert_int_gt(home[i], 0);
    free(home);
    free(of_link);
}

static inline int64_t batched_samples(const hbp__batches *b, int64_t step)
{
    return b->first[step + 1] - b->first[step];
}

static inline int64_t batched_tokens(const hbp__batches *b, const hbp_lengths *lengths, int64_t step)
{
    int64_t tokens = 0;
    for (int64_t i = b->first[step]; i < b->first[step + 1]; i++)
        tokens += hbp__lengths_get(lengths, b->sample[i]);
    return tokens;
}

#endif
