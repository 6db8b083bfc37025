#include "fill_check.h"
#include "keep.h"

START_TEST(keeps_every_promise_on_random_data)
{
    check_on_random_data(hbp__fill_paper, 31, 300);
}
END_TEST

START_TEST(survives_failing_allocations)
{
    check_failing_allocations(hbp__fill_paper);
}
END_TEST

START_TEST_IN_CONTEXT(leaves_no_gap_that_a_shorter_sample_fits)
{
    hbp__rng rng = hbp__rng_make(32, 0, 0);
    for (int trial = 0, mark = keep_mark(); trial < 50; keep_release(mark), trial++) {
        hbp_groups *groups = keep(check_groups(context, 2, (int64_t[]){100, 1000}));
        hbp_lengths *lengths = keep(check_lengths(context, &rng, 300, 1000, 0));
        hbp_fill_options options = {.struct_size = sizeof options,
                                    .sequence_multiple = 1,
                                    .pack_multiple = 1,
                                    .seed = (uint64_t)trial};
        hbp_packs *packs = NULL;
        MAKES(context, packs, hbp__fill_paper(context, lengths, groups, &options, &packs));
        OK(context, hbp__packs_measure(context, packs));
        /* The shortest sample that was left for the short group fits no long pack. */
        int64_t shortest = INT64_MAX, most_room = 0;
        for (int64_t p = 0; p < packs->count; p++) {
            if (packs->group[p] == 1)
                most_room = hbp__max_i64(most_room, 1000 - packs->tokens[p]);
            for (int64_t i = packs->offsets[p]; i < packs->offsets[p + 1]; i++)
                if (packs->group[p] == 0)
                    shortest = hbp__min_i64(shortest, hbp__lengths_get(lengths, packs->sample[i]));
        }
        ck_assert_int_gt(shortest, most_room);
    }
}
END_TEST

TEST_MAIN("fill_paper", keeps_every_promise_on_random_data, survives_failing_allocations,
          leaves_no_gap_that_a_shorter_sample_fits)
