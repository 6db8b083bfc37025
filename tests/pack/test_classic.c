#include "base/methods.h"
#include "pack/fill/classic.h"

#include "costs.h"
#include "fill_check.h"
#include "hbp/epoch.h"
#include "keep.h"

static const int32_t kinds[] = {
    HBP__EPOCH_NO_PACKING,          HBP__EPOCH_SORTED, HBP__EPOCH_NEXT_FIT, HBP__EPOCH_FIRST_FIT_DECREASING,
    HBP__EPOCH_BEST_FIT_DECREASING, HBP__EPOCH_ISF,    HBP__EPOCH_SPFHP,    HBP__EPOCH_RANDOM,
    HBP__EPOCH_FIRST_FIT_SHUFFLED};

static int32_t kind;

/* The first group only, by the way of `kind`. */
static hbp_status fill_classic(hbp_context *context, const hbp_lengths *lengths, const hbp_groups *groups,
                               const hbp_fill_options *options, hbp_packs **out)
{
    hbp_groups *last = check_groups(context, 1, groups->pack_length + groups->count - 1);
    hbp_packs *packs = NULL;
    hbp_status status = hbp__fill_classic(context, lengths, last, kind, options, &packs);
    for (int64_t p = 0; packs && p < packs->count; p++)
        packs->group[p] = (int32_t)groups->count - 1;
    if (packs) {
        ck_assert_int_ge(packs->count, packs->bound[0]);
        ck_assert_int_gt(packs->bound[0], 0);
    }
    hbp_groups_free(last);
    *out = packs;
    return status;
}

START_TEST(keeps_every_promise_on_random_data)
{
    kind = kinds[_i];
    check_on_random_data(fill_classic, 41, 200);
}
END_TEST

START_TEST_IN_CONTEXT(takes_samples_as_they_come)
{
    hbp_groups *groups = keep(check_groups(context, 1, (int64_t[]){10}));
    hbp_lengths *lengths = NULL;
    int64_t length[] = {6, 5, 4, 2, 8, 1, 1, 1};
    MAKES(context, lengths, hbp_lengths_create_i64(context, length, 8, NULL, &lengths));
    hbp_fill_options options = {.struct_size = sizeof options};
    hbp_packs *packs = NULL;
    MAKES(context, packs, hbp__fill_classic(context, lengths, groups, HBP__EPOCH_NEXT_FIT, &options, &packs));
    ck_assert_int_eq(packs->count, 4);
    static const int64_t offsets[] = {0, 1, 3, 5, 8};
    ck_assert_mem_eq(packs->offsets, offsets, sizeof offsets);
    static const int64_t tokens[] = {6, 9, 10, 3};
    ck_assert_mem_eq(packs->tokens, tokens, sizeof tokens);
    packs = NULL;
    MAKES(context, packs, hbp__fill_classic(context, lengths, groups, HBP__EPOCH_SORTED, &options, &packs));
    ck_assert_int_eq(packs->count, 8);
    for (int64_t p = 1; p < 8; p++)
        ck_assert_int_ge(packs->tokens[p], packs->tokens[p - 1]);
    packs = NULL;
    MAKES(context, packs,
          hbp__fill_classic(context, lengths, groups, HBP__EPOCH_NO_PACKING, &options, &packs));
    for (int64_t p = 0; p < 8; p++)
        ck_assert_int_eq(packs->tokens[p], length[p]);
}
END_TEST

/* What two packs hold fits no single one: of next fit two in a row, of first fit any two. The order is drawn
 * from seed and epoch. */
START_TEST_IN_CONTEXT(shuffles_before_it_packs)
{
    hbp_groups *groups = keep(check_groups(context, 1, (int64_t[]){4096}));
    for (uint64_t seed = 0; seed < 20; seed++) {
        hbp_lengths *lengths = test_long_tail(context, seed, 300, 4096);
        int mark = keep_mark();
        for (int32_t k = HBP__EPOCH_RANDOM; k <= HBP__EPOCH_FIRST_FIT_SHUFFLED; keep_release(mark), k++) {
            hbp_fill_options options = {.struct_size = sizeof options, .seed = seed};
            hbp_packs *packs = NULL, *same = NULL, *other = NULL;
            MAKES(context, packs, hbp__fill_classic(context, lengths, groups, k, &options, &packs));
            MAKES(context, same, hbp__fill_classic(context, lengths, groups, k, &options, &same));
            options.epoch = 1;
            MAKES(context, other, hbp__fill_classic(context, lengths, groups, k, &options, &other));
            ck_assert_mem_eq(packs->sample, same->sample, 300 * sizeof *packs->sample);
            ck_assert_mem_ne(packs->sample, other->sample, 300 * sizeof *packs->sample);
            for (int64_t p = 0; p < packs->count; p++)
                for (int64_t q = p + 1;
                     q < packs->count && (k == HBP__EPOCH_FIRST_FIT_SHUFFLED || q == p + 1); q++)
                    ck_assert_int_gt(packs->tokens[p] + packs->tokens[q], 4096);
        }
        hbp_lengths_free(lengths);
    }
}
END_TEST

START_TEST_IN_CONTEXT(refuses_what_is_no_packer)
{
    hbp__rng rng = hbp__rng_make(42, 0, 0);
    hbp_groups *one = keep(check_groups(context, 1, (int64_t[]){100}));
    hbp_groups *two = keep(check_groups(context, 2, (int64_t[]){10, 100}));
    hbp_lengths *lengths = keep(check_lengths(context, &rng, 20, 100, 0));
    hbp_fill_options options = {.struct_size = sizeof options};
    hbp_packs *packs = NULL;
    FAILS(context, HBP_E_INVALID, "one group, not 2",
          hbp__fill_classic(context, lengths, two, HBP__EPOCH_ISF, &options, &packs));
    FAILS(context, HBP_E_INVALID, "method hbp does not pack",
          hbp__fill_classic(context, lengths, one, HBP__EPOCH_HBP, &options, &packs));
    ck_assert_ptr_null(packs);
}
END_TEST

START_TEST(survives_failing_allocations)
{
    hbp_status status = HBP_E_NO_MEMORY;
    for (int64_t allowed = 0; status != HBP_OK; allowed++) {
        check_memory memory = {INT64_MAX, 0};
        hbp_allocator allocator = {
            .struct_size = sizeof allocator, .alloc = check_alloc, .release = check_release, .user = &memory};
        hbp_context_options context_options = {.struct_size = sizeof context_options,
                                               .allocator = &allocator};
        hbp_context *context = NULL;
        ck_assert_int_eq(hbp_context_create(&context_options, &context), HBP_OK);
        hbp__rng rng = hbp__rng_make(9, 0, 0);
        hbp_groups *groups = check_groups(context, 1, (int64_t[]){1024});
        hbp_lengths *lengths = check_lengths(context, &rng, 300, 900, 1);
        hbp_fill_options options = {.struct_size = sizeof options};
        hbp_packs *packs = NULL;
        memory.allowed = allowed;
        status = hbp__fill_classic(context, lengths, groups, kinds[_i], &options, &packs);
        memory.allowed = INT64_MAX;
        ck_assert(status == HBP_OK || status == HBP_E_NO_MEMORY);
        ck_assert_int_eq(status == HBP_OK, packs != NULL);
        hbp_packs_free(packs);
        hbp_lengths_free(lengths);
        hbp_groups_free(groups);
        hbp_context_free(context);
        ck_assert_int_eq(memory.held, 0);
    }
}
END_TEST

TEST_MAIN_LOOPS("classic", NULL, NULL, {keeps_every_promise_on_random_data, 0, sizeof kinds / sizeof *kinds},
                {survives_failing_allocations, 0, sizeof kinds / sizeof *kinds},
                {takes_samples_as_they_come, 0, 1}, {shuffles_before_it_packs, 0, 1},
                {refuses_what_is_no_packer, 0, 1})
