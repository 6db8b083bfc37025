/* Random data sets, groups made by hand, and what every fill must keep, for the tests of lib/pack. */
#ifndef HBP_TESTS_FILL_CHECK_H
#define HBP_TESTS_FILL_CHECK_H

#include <string.h>

#include "base/checked.h"
#include "base/context.h"
#include "base/rng.h"
#include "data/lengths/lengths.h"
#include "data/packs/groups.h"
#include "data/packs/packs.h"
#include "pack/fill/fill.h"
#include "test.h"

/* `count` groups of these pack lengths, thresholds the same; the caller frees them. */
static inline hbp_groups *check_groups(hbp_context *context, int64_t count, const int64_t *pack_length)
{
    hbp_groups *groups = hbp__groups_new(&context->memory, 0);
    ck_assert_ptr_nonnull(groups);
    groups->count = count;
    for (int64_t g = 0; g < count; g++) {
        groups->pack_length[g] = groups->threshold[g] = pack_length[g];
        groups->sp[g] = 1;
        groups->micro_batches[g] = 1;
        groups->packs[g] = 4;
    }
    groups->tokens_per_step = 4 * pack_length[count - 1];
    return groups;
}

/* `count` lengths, mostly short; with `links`, about a third of the samples in twos and threes. */
static inline hbp_lengths *check_lengths(hbp_context *context, hbp__rng *rng, int64_t count, int64_t longest,
                                         int links)
{
    int64_t *length = malloc((size_t)count * sizeof *length), *link = malloc((size_t)count * sizeof *link);
    hbp_lengths *lengths = NULL;
    for (int64_t i = 0; i < count; i++) {
        int64_t top = hbp__rng_below(rng, 8) ? longest / 8 + 1 : longest;
        length[i] = 1 + hbp__rng_below(rng, (uint64_t)top);
        link[i] = -1;
        if (links && hbp__rng_below(rng, 3) == 0) {
            link[i] = hbp__rng_below(rng, (uint64_t)(count / 6 + 1));
            length[i] = 1 + hbp__rng_below(rng, (uint64_t)(longest / 12 + 1));
        }
    }
    hbp_lengths_options options = {.struct_size = sizeof options, .links = links ? link : NULL};
    OK(context, hbp_lengths_create_i64(context, length, count, &options, &lengths));
    free(length);
    free(link);
    return lengths;
}

/* Every sample in one pack, ties together, capacity and cap kept, no group below a sample's own. */
static inline void check_packs(const hbp_packs *packs, const hbp_lengths *lengths, const hbp_groups *groups,
                               const hbp_fill_options *options)
{
    int64_t *seen = calloc((size_t)lengths->count, sizeof *seen);
    int64_t *home = calloc((size_t)lengths->links + 1, sizeof *home);
    ck_assert_int_eq(packs->offsets[0], 0);
    ck_assert_int_eq(packs->offsets[packs->count], lengths->count);
    for (int64_t p = 0; p < packs->count; p++) {
        int64_t padded = 0, samples = packs->offsets[p + 1] - packs->offsets[p], g = packs->group[p];
        ck_assert_int_gt(samples, 0);
        ck_assert(g >= 0 && g < groups->count);
        if (options->max_samples)
            ck_assert_int_le(samples, options->max_samples);
        for (int64_t i = packs->offsets[p]; i < packs->offsets[p + 1]; i++) {
            uint32_t sample = packs->sample[i];
            ck_assert_int_lt(sample, lengths->count);
            ck_assert_int_eq(seen[sample]++, 0);
            padded += hbp__round_up(hbp__lengths_get(lengths, sample), options->sequence_multiple);
            if (lengths->link && lengths->link[sample] != HBP__FREE) {
                int64_t *pack = &home[lengths->link[sample]];
                ck_assert(*pack == 0 || *pack == p + 1);
                *pack = p + 1;
            }
        }
        padded = hbp__round_up(padded, options->pack_multiple);
        ck_assert_int_le(padded, groups->pack_length[g]);
    }
    for (int64_t i = 0; i < lengths->count; i++)
        ck_assert_int_eq(seen[i], 1);
    free(home);
    free(seen);
}

/* A draw of options: multiples and caps in half of the cases each. */
static inline hbp_fill_options check_options(hbp__rng *rng)
{
    hbp_fill_options options = {.struct_size = sizeof options, .sequence_multiple = 1, .pack_multiple = 1};
    if (hbp__rng_below(rng, 2))
        options.sequence_multiple = 1 + hbp__rng_below(rng, 8);
    if (hbp__rng_below(rng, 2))
        options.pack_multiple = 1 + hbp__rng_below(rng, 16);
    if (hbp__rng_below(rng, 2))
        options.max_samples = 20 + (int32_t)hbp__rng_below(rng, 10);
    options.seed = hbp__rng_next(rng);
    return options;
}

typedef hbp_status (*check_fill)(hbp_context *, const hbp_lengths *, const hbp_groups *,
                                 const hbp_fill_options *, hbp_packs **);

/* Runs a fill on random data, groups and options, checks all it must keep, and that it repeats itself. */
static inline void check_on_random_data(check_fill fill, uint64_t seed, int trials)
{
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(seed, 0, 0);
    for (int trial = 0; trial < trials; trial++) {
        const int64_t unit = trial % 4 == 3 ? 64 : 1, pack_length[] = {130 * unit, 300 * unit, 1024 * unit};
        int64_t count = 1 + hbp__rng_below(&rng, 3);
        hbp_groups *groups = check_groups(context, count, pack_length);
        for (int64_t g = 0; trial % 3 == 2 && g < count; g++)
            groups->packs[g] = 1;
        hbp_fill_options options = check_options(&rng);
        hbp_lengths *lengths = check_lengths(context, &rng, 1 + hbp__rng_below(&rng, 400),
                                             pack_length[count - 1] - 20, trial % 2);
        hbp_packs *packs = NULL, *again = NULL;
        hbp_status status = fill(context, lengths, groups, &options, &packs);
        if (status == HBP_E_INFEASIBLE) {
            ck_assert_ptr_null(packs);
            ck_assert(trial % 2 || options.sequence_multiple > 1 || options.pack_multiple > 1);
        } else {
            ck_assert_msg(status == HBP_OK, "%s", hbp_context_message(context));
            check_packs(packs, lengths, groups, &options);
            OK(context, fill(context, lengths, groups, &options, &again));
            ck_assert_int_eq(packs->count, again->count);
            ck_assert_mem_eq(packs->sample, again->sample, (size_t)lengths->count * sizeof *packs->sample);
            ck_assert_mem_eq(packs->offsets, again->offsets,
                             (size_t)(packs->count + 1) * sizeof *packs->offsets);
        }
        hbp_packs_free(packs);
        hbp_packs_free(again);
        hbp_lengths_free(lengths);
        hbp_groups_free(groups);
    }
    hbp_context_free(context);
}

/* An allocator whose n-th allocation fails, n = `allowed`; counts what is still held. */
typedef struct check_memory {
    int64_t allowed, held;
} check_memory;

static inline void *check_alloc(void *user, uint64_t bytes)
{
    check_memory *memory = user;
    if (memory->allowed-- <= 0)
        return NULL;
    memory->held++;
    return malloc((size_t)bytes);
}

static inline void check_release(void *user, void *block, uint64_t bytes)
{
    (void)bytes;
    if (block)
        ((check_memory *)user)->held--;
    free(block);
}

/* Fails every allocation of a fill in turn, until it succeeds. */
static inline void check_failing_allocations(check_fill fill)
{
    hbp_status status = HBP_E_NO_MEMORY;
    static const int64_t pack_length[] = {130, 1024};
    for (int64_t allowed = 0; status != HBP_OK; allowed++) {
        check_memory memory = {INT64_MAX, 0};
        hbp_allocator allocator = {
            .struct_size = sizeof allocator, .alloc = check_alloc, .release = check_release, .user = &memory};
        hbp_context_options context_options = {.struct_size = sizeof context_options,
                                               .allocator = &allocator};
        hbp_context *context = NULL;
        ck_assert_int_eq(hbp_context_create(&context_options, &context), HBP_OK);
        hbp__rng rng = hbp__rng_make(9, 0, 0);
        hbp_groups *groups = check_groups(context, 2, pack_length);
        hbp_lengths *lengths = check_lengths(context, &rng, 300, 900, 1);
        hbp_fill_options options = {
            .struct_size = sizeof options, .sequence_multiple = 2, .pack_multiple = 4, .max_samples = 60};
        hbp_packs *packs = NULL;
        memory.allowed = allowed;
        status = fill(context, lengths, groups, &options, &packs);
        memory.allowed = INT64_MAX;
        ck_assert_msg(status == HBP_OK || status == HBP_E_NO_MEMORY, "%s", hbp_context_message(context));
        ck_assert_int_eq(status == HBP_OK, packs != NULL);
        hbp_packs_free(packs);
        hbp_lengths_free(lengths);
        hbp_groups_free(groups);
        hbp_context_free(context);
        ck_assert_int_eq(memory.held, 0);
        ck_assert_int_lt(allowed, 100000);
    }
}

#endif
