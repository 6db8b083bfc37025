#include "fill_check.h"

#include "costs.h"
#include "keep.h"

START_TEST(keeps_every_promise_on_random_data)
{
    check_on_random_data(hbp__fill_balanced, 51, 600);
}
END_TEST

START_TEST(failing_allocations_leave_nothing)
{
    check_failing_allocations(hbp__fill_balanced);
}
END_TEST

/* What the fill is for: on broad data packs are full to the token, and those of a bin are alike. */
START_TEST_IN_CONTEXT(packs_of_broad_data_are_full_and_alike)
{
    hbp_cost *cost = keep(test_cost(context));
    hbp_lengths *lengths = keep(test_long_tail(context, 7, 60000, 8192));
    hbp_groups *groups = NULL;
    static const int64_t pack_length[] = {8192};
    static const int32_t sp[] = {1};
    MAKES(context, groups, hbp_groups_create(context, cost, 1, pack_length, sp, NULL, 0, &groups));
    hbp_fill_options options = {.struct_size = sizeof options, .sequence_multiple = 1, .pack_multiple = 1};
    hbp_packs *packs = NULL;
    MAKES(context, packs, hbp__fill_balanced(context, lengths, groups, &options, &packs));
    OK(context, hbp__packs_measure(context, packs));
    hbp_lengths_summary summary = {.struct_size = sizeof summary};
    OK(context, hbp_lengths_get_summary(context, lengths, &summary));
    int64_t bound = hbp__ceil_div(summary.tokens, 8192);
    ck_assert_int_le(packs->count, bound + bound / 500 + 16);
    int64_t apart = 0;
    for (int64_t first = 0; first + 16 <= packs->count; first += 16) {
        int64_t least = INT64_MAX, most = 0;
        for (int64_t p = first; p < first + 16; p++) {
            least = hbp__min_i64(least, packs->squares[p]);
            most = hbp__max_i64(most, packs->squares[p]);
        }
        apart += most - least > most / 4;
    }
    ck_assert_msg(apart * 10 <= packs->count / 16, "%d of %d bins hold packs unlike in squares", (int)apart,
                  (int)(packs->count / 16));
}
END_TEST

/* Where a micro-batch is one pack, packs are what counts: their number is next to the bound, however many
 * there are. */
START_TEST_IN_CONTEXT(single_packs_are_next_to_as_few_as_tokens_allow)
{
    static const int64_t counts[] = {300, 2000, 9000, 60000}, pack_length[] = {8192};
    static const int32_t sp[] = {1};
    hbp_cost *cost = NULL;
    MAKES(context, cost, hbp_cost_create_plain(context, 1, &cost));
    hbp_groups *groups = NULL;
    MAKES(context, groups, hbp_groups_create(context, cost, 1, pack_length, sp, NULL, 0, &groups));
    ck_assert_int_eq(groups->packs[0], 1);
    const hbp_fill_options options = {
        .struct_size = sizeof options, .sequence_multiple = 1, .pack_multiple = 1};
    for (int64_t i = 0; i < (int64_t)(sizeof counts / sizeof *counts); i++) {
        for (uint64_t seed = 0; seed < 5; seed++) {
            hbp_lengths *lengths = keep(test_long_tail(context, seed, counts[i], 8192));
            hbp_lengths_summary summary = {.struct_size = sizeof summary};
            OK(context, hbp_lengths_get_summary(context, lengths, &summary));
            hbp_packs *packs = NULL;
            OK(context, hbp__fill_balanced(context, lengths, groups, &options, &packs));
            const int64_t bound = hbp__ceil_div(summary.tokens, 8192);
            ck_assert_msg(packs->count <= bound + bound / 1000 + 2, "%lld samples: %lld packs, bound %lld",
                          (long long)counts[i], (long long)packs->count, (long long)bound);
            hbp_packs_free(packs);
        }
    }
}
END_TEST

/* All samples belong to the longest group: nothing is left for the others, and no pack is written twice. */
START_TEST_IN_CONTEXT(shorter_groups_may_be_empty)
{
    enum { COUNT = 3000 };
    static uint32_t length[COUNT];
    static uint8_t seen[COUNT];
    static const int64_t pack_length[] = {1024, 8192, 32768};
    static const int32_t sp[] = {1, 2, 8};
    hbp_cost *cost = keep(test_cost(context));
    hbp_groups *groups = NULL;
    MAKES(context, groups, hbp_groups_create(context, cost, 3, pack_length, sp, NULL, 0, &groups));
    for (int kind = 0; kind < 4; kind++) {
        hbp__rng rng = hbp__rng_make(3, (uint64_t)kind, 0);
        hbp_lengths *lengths = NULL;
        hbp_packs *packs = NULL;
        const uint32_t above = kind % 2 ? 1025 : 8193, spread = kind < 2 ? 5000 : 3;
        for (int i = 0; i < COUNT; i++)
            length[i] = above + (uint32_t)hbp__rng_below(&rng, spread);
        MAKES(context, lengths, hbp_lengths_create_u32(context, length, COUNT, NULL, &lengths));
        const hbp_fill_options options = {.struct_size = sizeof options,
                                          .sequence_multiple = 1,
                                          .pack_multiple = 1,
                                          .max_samples = kind == 1 ? 2 : 0};
        MAKES(context, packs, hbp__fill_balanced(context, lengths, groups, &options, &packs));
        OK(context, hbp__packs_measure(context, packs));
        ck_assert_int_eq(packs->offsets[packs->count], COUNT);
        memset(seen, 0, sizeof seen);
        for (int i = 0; i < COUNT; i++) {
            ck_assert_int_eq(seen[packs->sample[i]]++, 0);
            ck_assert_int_eq(hbp__packs_length(packs, i), length[packs->sample[i]]);
        }
        for (int64_t p = 0; p < packs->count; p++) {
            ck_assert_int_ge(packs->group[p], kind % 2 ? 1 : 2);
            ck_assert_int_le(packs->padded[p], pack_length[packs->group[p]]);
        }
    }
}
END_TEST

START_TEST_IN_CONTEXT(long_packs_are_filled_by_a_sample_of_the_short_ones)
{
    hbp_cost *cost = keep(test_cost(context));
    hbp_lengths *lengths = keep(test_long_tail(context, 8, 40000, 32768));
    hbp_groups *groups = NULL;
    static const int64_t pack_length[] = {8192, 32768};
    static const int32_t sp[] = {1, 8};
    MAKES(context, groups, hbp_groups_create(context, cost, 2, pack_length, sp, NULL, 0, &groups));
    hbp_fill_options options = {.struct_size = sizeof options, .sequence_multiple = 1, .pack_multiple = 1};
    hbp_packs *packs = NULL;
    MAKES(context, packs, hbp__fill_balanced(context, lengths, groups, &options, &packs));
    OK(context, hbp__packs_measure(context, packs));
    check_packs(packs, lengths, groups, &options);
    int64_t tokens = 0, count = 0, shorter[2] = {0}, all[2] = {0};
    for (int64_t p = 0; p < packs->count; p++) {
        for (int64_t i = packs->offsets[p]; i < packs->offsets[p + 1]; i++) {
            int64_t length = hbp__packs_length(packs, i);
            ck_assert_int_eq(length, hbp__lengths_get(lengths, packs->sample[i]));
            if (length > 8192)
                ck_assert_int_eq(packs->group[p], 1);
            else if (length > 64) {
                all[length > 1024]++;
                shorter[length > 1024] += packs->group[p];
            }
        }
        tokens += packs->group[p] ? packs->tokens[p] : 0;
        count += packs->group[p];
    }
    ck_assert_msg(tokens > count * 32768 / 1000 * 995, "long packs hold %lld tokens a pack",
                  (long long)(tokens / count));
    /* Both halves of the short samples lend about the same share. */
    double low = (double)shorter[0] / (double)all[0], high = (double)shorter[1] / (double)all[1];
    ck_assert_msg(low < 2 * high && high < 2 * low, "shares %g and %g", low, high);
}
END_TEST

TEST_MAIN("fill_balanced", keeps_every_promise_on_random_data, failing_allocations_leave_nothing,
          packs_of_broad_data_are_full_and_alike, single_packs_are_next_to_as_few_as_tokens_allow,
          shorter_groups_may_be_empty, long_packs_are_filled_by_a_sample_of_the_short_ones)
