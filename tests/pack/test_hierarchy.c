#include "pack/hierarchy.h"

#include "costs.h"
#include "failing.h"

/* The wait of unlike samples, sample by sample from the longest down, P at a time. */
START_TEST(the_sums_are_those_of_the_samples)
{
    hbp_context *context = test_context();
    hbp_cost *cost = test_cost(context);
    for (uint64_t seed = 0; seed < 10; seed++) {
        hbp_lengths *lengths = test_long_tail(context, seed, 200, 300);
        hbp__estimator e;
        OK(context, hbp__estimator_open(context, lengths, cost, 1 << 20, &e));
        int64_t bins = lengths->bins, tokens = 0;
        double squares = 0;
        for (int64_t b = 0; b < bins; b++) {
            ck_assert_int_eq(hbp__estimator_bin(&e, lengths->bin_length[b]), b + 1);
            ck_assert_int_eq(hbp__estimator_bin(&e, lengths->bin_length[b] - 1) <= b, 1);
            ck_assert_int_eq(e.tokens_before[b], tokens);
            ck_assert(e.squares_before[b] == squares);
            tokens += lengths->bin_length[b] * lengths->bin_count[b];
            squares += (double)(lengths->bin_length[b] * lengths->bin_length[b] * lengths->bin_count[b]);
        }
        for (int32_t row = 0; row < cost->terms.degrees; row++) {
            int64_t packs = 16 / cost->degree[row], k = 0;
            double wait = 0, top = 0;
            for (int64_t b = bins - 1; b >= 0; b--)
                for (int64_t i = 0; i < lengths->bin_count[b]; i++, k++) {
                    double square = (double)(lengths->bin_length[b] * lengths->bin_length[b]);
                    if (k % packs == 0)
                        top = square;
                    wait += top - square;
                }
            ck_assert(e.ragged_before[row * (bins + 1) + bins] == wait);
        }
        hbp__estimator_close(context, &e);
        hbp_lengths_free(lengths);
    }
    hbp_cost_free(cost);
    hbp_context_free(context);
}
END_TEST

START_TEST(a_level_alone_takes_what_its_packs_take)
{
    hbp_context *context = test_context();
    hbp_cost *cost = test_cost(context);
    /* 32 samples that fill 32 packs at SP 1 exactly: two micro-batches of 16 alike. */
    hbp_lengths *lengths = NULL;
    OK(context, hbp_lengths_create_histogram(context, (int64_t[]){4096}, (int64_t[]){32}, 1, &lengths));
    hbp__estimator e;
    OK(context, hbp__estimator_open(context, lengths, cost, 65536, &e));
    hbp__level level;
    ck_assert(hbp__level_make(cost, 65536, 1, 4096, 0, &level));
    ck_assert_int_eq(level.micro_batches, 1);
    ck_assert_int_eq(level.packs, 16);
    double pack = (double)hbp_cost_predict_pack_ns(cost, 1, level.recompute, 4096, 4096.0 * 4096);
    double expected = 2 * pack + 2 * 1e7, got = hbp__level_ns(&e, &level, 0, 1);
    ck_assert_msg(got > expected - 4 && got < expected + 4, "%f, not %f", got, expected);
    ck_assert(hbp__level_ns(&e, &level, 0, 0) == 0);
    ck_assert(!hbp__level_make(cost, 65536, 1, 1 << 20, 0, &level));
    ck_assert(!hbp__level_make(cost, 65536, 3, 4096, 0, &level));
    hbp__estimator_close(context, &e);
    hbp_lengths_free(lengths);
    hbp_cost_free(cost);
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("hierarchy", the_sums_are_those_of_the_samples, a_level_alone_takes_what_its_packs_take)
