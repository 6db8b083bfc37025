#include "fill_check.h"
#include "keep.h"

START_TEST(keeps_every_promise_on_random_data)
{
    check_on_random_data(hbp__fill_tight, 21, 300);
}
END_TEST

START_TEST(survives_failing_allocations)
{
    check_failing_allocations(hbp__fill_tight);
}
END_TEST

START_TEST_IN_CONTEXT(fills_gaps_of_long_packs_first)
{
    hbp_groups *groups = keep(check_groups(context, 2, (int64_t[]){100, 1000}));
    hbp_lengths *lengths = NULL;
    /* 600 + 400 fill a pack; 900 leaves a gap for 60 + 40; 50 + 50 fill a short pack. */
    int64_t length[] = {50, 900, 60, 400, 40, 600, 50};
    MAKES(context, lengths, hbp_lengths_create_i64(context, length, 7, NULL, &lengths));
    hbp_fill_options options = {.struct_size = sizeof options, .sequence_multiple = 1, .pack_multiple = 1};
    hbp_packs *packs = NULL;
    MAKES(context, packs, hbp__fill_tight(context, lengths, groups, &options, &packs));
    check_packs(packs, lengths, groups, &options);
    ck_assert_int_eq(packs->count, 3);
    ck_assert_int_eq(packs->bound[0], 1);
    ck_assert_int_eq(packs->bound[1], 2);
}
END_TEST

#define TRIALS TEST_FEW(200, 40)

START_TEST_IN_CONTEXT(needs_no_more_packs_than_balanced_under_a_cap)
{
    /* One group, mostly short samples, a cap near the mean number of samples in a pack. */
    hbp__rng rng = hbp__rng_make(23, 0, 0);
    int64_t fewer = 0;
    for (int trial = 0, mark = keep_mark(); trial < TRIALS; keep_release(mark), trial++) {
        hbp_groups *groups = keep(check_groups(context, 1, (int64_t[]){1000}));
        hbp_lengths *lengths =
            keep(check_lengths(context, &rng, 1000 + hbp__rng_below(&rng, 3000), 1000, trial % 4 == 0));
        hbp_fill_options options = {
            .struct_size = sizeof options, .sequence_multiple = 1, .pack_multiple = 1};
        options.max_samples = 2 + (int32_t)hbp__rng_below(&rng, 20);
        hbp_packs *tight = NULL, *balanced = NULL;
        hbp_status status = hbp__fill_tight(context, lengths, groups, &options, &tight);
        if (trial % 4 || status == HBP_OK) { /* more samples may be linked than the cap allows */
            OK(context, status);
            OK(context, hbp__fill_balanced(context, lengths, groups, &options, &balanced));
            check_packs(tight, lengths, groups, &options);
            check_packs(balanced, lengths, groups, &options);
            ck_assert_int_le(tight->bound[0], tight->count);
            ck_assert_int_le(tight->count, balanced->count);
            fewer += tight->count < balanced->count;
        }
        hbp_packs_free(tight);
        hbp_packs_free(balanced);
    }
    ck_assert_int_gt(fewer, TRIALS / 2);
}
END_TEST

START_TEST_IN_CONTEXT(another_epoch_is_another_draw)
{
    hbp__rng rng = hbp__rng_make(22, 0, 0);
    hbp_groups *groups = keep(check_groups(context, 1, (int64_t[]){64}));
    hbp_lengths *lengths = keep(check_lengths(context, &rng, 500, 60, 0));
    hbp_fill_options options = {.struct_size = sizeof options, .sequence_multiple = 1, .pack_multiple = 1};
    hbp_packs *packs[2] = {NULL, NULL};
    for (int e = 0; e < 2; e++) {
        options.epoch = (uint64_t)e;
        OK(context, hbp__fill_tight(context, lengths, groups, &options, &packs[e]));
    }
    ck_assert_int_eq(packs[0]->count, packs[1]->count);
    ck_assert_mem_ne(packs[0]->sample, packs[1]->sample, 500 * sizeof *packs[0]->sample);
    hbp_packs_free(packs[0]);
    hbp_packs_free(packs[1]);
}
END_TEST

START_TEST_IN_CONTEXT(names_what_fits_no_pack)
{
    hbp_groups *groups = keep(check_groups(context, 1, (int64_t[]){100}));
    hbp_lengths *lengths = NULL;
    int64_t length[] = {10, 10, 10, 98}, link[] = {7, 7, 7, -1};
    hbp_lengths_options links = {.struct_size = sizeof links, .links = link};
    MAKES(context, lengths, hbp_lengths_create_i64(context, length, 4, &links, &lengths));
    hbp_fill_options options = {
        .struct_size = sizeof options, .sequence_multiple = 1, .pack_multiple = 1, .max_samples = 2};
    hbp_packs *packs = NULL;
    FAILS(context, HBP_E_INFEASIBLE, "linked to 2 others; a pack holds at most 2 samples",
          hbp__fill_tight(context, lengths, groups, &options, &packs));
    ck_assert_ptr_null(packs);
    options.max_samples = 0;
    options.sequence_multiple = 16;
    FAILS(context, HBP_E_INFEASIBLE, "sample 3", hbp__fill_tight(context, lengths, groups, &options, &packs));
    options.sequence_multiple = 1;
    options.pack_multiple = 51;
    FAILS(context, HBP_E_INFEASIBLE, "sample 3", hbp__fill_tight(context, lengths, groups, &options, &packs));
    ck_assert_ptr_null(packs);
}
END_TEST

TEST_MAIN("fill_tight", keeps_every_promise_on_random_data, survives_failing_allocations,
          fills_gaps_of_long_packs_first, needs_no_more_packs_than_balanced_under_a_cap,
          another_epoch_is_another_draw, names_what_fits_no_pack)
