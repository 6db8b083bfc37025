#include "pack/groups/hierarchy.h"

#include "costs.h"
#include "failing.h"
#include "keep.h"

static void histogram(hbp_context *context, const int64_t *length, const int64_t *count, int64_t bins,
                      hbp_lengths **lengths)
{
    OK(context, hbp_lengths_create_histogram(context, length, count, bins, lengths));
}

/* Squares of the items in bins [low, high) as a level's packs wait for them: item by item from the longest
 * down, each as its run's longest, P at a time, over P. */
static double waited_squares(const hbp__estimator *e, int64_t low, int64_t high, int64_t packs)
{
    double sum = 0, top = 0;
    int64_t k = 0;
    for (int64_t b = high - 1; b >= low; b--)
        for (int64_t i = e->items_before[b]; i < e->items_before[b + 1]; i++, k++) {
            if (k % packs == 0)
                top = (double)(e->size[b] * e->size[b]);
            sum += top;
        }
    return sum / (double)packs;
}

START_TEST_IN_CONTEXT(the_sums_are_those_of_the_samples)
{
    hbp_cost *cost = keep(test_cost(context));
    for (uint64_t seed = 0; seed < 10; seed++) {
        hbp_lengths *lengths = test_long_tail(context, seed, 200, 300);
        hbp__estimator e;
        OK(context, hbp__estimator_open(context, lengths, cost, 1, &e));
        ck_assert_int_eq(e.bins, lengths->bins);
        int64_t bins = e.bins, tokens = 0, items = 0;
        double squares = 0;
        for (int64_t b = 0; b < bins; b++) {
            int64_t length = lengths->bin_length[b];
            ck_assert_int_eq(hbp__estimator_bin(&e, length), b + 1);
            ck_assert_int_eq(hbp__estimator_bin(&e, length - 1) <= b, 1);
            ck_assert_int_eq(e.tokens_before[b], tokens);
            ck_assert_int_eq(e.padded_before[b], tokens);
            ck_assert_int_eq(e.items_before[b], items);
            ck_assert(e.squares_before[b] == squares);
            items += lengths->bin_count[b];
            tokens += length * lengths->bin_count[b];
            squares += (double)(length * length * lengths->bin_count[b]);
        }
        for (int32_t row = 0; row < cost->terms.degrees; row++) {
            int64_t packs = 16 / cost->degree[row];
            const double *ragged = e.ragged_before + row * (bins + 1);
            double expected = waited_squares(&e, 0, bins, packs) * (double)packs;
            if (items % packs == 0)
                ck_assert(e.squares_before[bins] + ragged[bins] == expected);
            /* A level that begins lower has runs of its own: its longest items wait for no longer ones. */
            for (int64_t b = 1; b <= bins; b++) {
                int64_t above = items - e.items_before[b], open = above % packs;
                int64_t joins = e.joins[row * (bins + 1) + b];
                ck_assert_int_eq(joins, open ? packs - open : 0);
                ck_assert(e.excess[row * (bins + 1) + b] >= 0);
            }
            ck_assert(e.excess[row * (bins + 1) + bins] == 0);
        }
        hbp_lengths_free(lengths);
    }
}
END_TEST

START_TEST_IN_CONTEXT(tied_samples_are_one_item)
{
    hbp_cost *cost = keep(test_cost(context));
    const uint32_t length[] = {10, 30, 50, 7, 60};
    const int64_t link[] = {4, -1, 4, 9, 9};
    hbp_lengths *lengths = NULL;
    hbp_lengths_options options = {.struct_size = sizeof options};
    options.links = link;
    MAKES(context, lengths, hbp_lengths_create_u32(context, length, 5, &options, &lengths));
    hbp__estimator e;
    OK(context, hbp__estimator_open(context, lengths, cost, 8, &e));
    /* 30 -> 32 alone; 10 + 50 -> 16 + 56; 7 + 60 -> 8 + 64: two items of 72. */
    ck_assert_int_eq(e.bins, 2);
    ck_assert_int_eq(e.size[0], 32);
    ck_assert_int_eq(e.size[1], 72);
    ck_assert_int_eq(e.items_before[2], 3);
    ck_assert_int_eq(e.tokens_before[2], 157);
    ck_assert_int_eq(e.padded_before[2], 176);
    ck_assert(e.squares_before[1] == 900);
    ck_assert(e.squares_before[2] == 900 + 100 + 2500 + 49 + 3600);
}
END_TEST

/* Within the rounding of `packs` times. */
static void about(double got, double expected)
{
    ck_assert_msg(got > expected - 8 && got < expected + 8, "%f, not %f", got, expected);
}

START_TEST_IN_CONTEXT(a_level_alone_takes_what_its_packs_take)
{
    hbp_cost *cost = keep(test_cost(context));
    /* 32 samples that fill 32 packs at SP 1 exactly: two micro-batches of 16 alike. */
    hbp_lengths *lengths = NULL;
    histogram(context, (int64_t[]){4096}, (int64_t[]){32}, 1, &lengths);
    hbp__estimator e;
    OK(context, hbp__estimator_open(context, lengths, cost, 1, &e));
    hbp__level level;
    double left;
    ck_assert(hbp__level_make(cost, 65536, 1, 4096, 0, &level));
    ck_assert_int_eq(level.micro_batches, 1);
    ck_assert_int_eq(level.packs, 16);
    double pack = (double)hbp_cost_predict_pack_ns(cost, 1, level.recompute, 4096, 4096.0 * 4096, 0);
    about(hbp__level_ns(&e, &level, 0, 1, &left), 2 * pack + 2 * 1e7);
    ck_assert(hbp__level_ns(&e, &level, 0, 0, &left) == 0);
    ck_assert(left == 1);
    ck_assert(!hbp__level_make(cost, 65536, 1, 1 << 20, 0, &level));
    ck_assert(!hbp__level_make(cost, 65536, 3, 4096, 0, &level));
    /* A longer pack that holds one as well takes the same; one that holds two, two at a time. */
    ck_assert(hbp__level_make(cost, 16 * 8000, 1, 8000, 0, &level));
    about(hbp__level_ns(&e, &level, 0, 1, &left), 2 * pack + 2 * 1e7);
    ck_assert(hbp__level_make(cost, 16 * 8192, 1, 8192, 0, &level));
    pack = (double)hbp_cost_predict_pack_ns(cost, 1, level.recompute, 8192, 2 * 4096.0 * 4096, 0);
    about(hbp__level_ns(&e, &level, 0, 1, &left), pack + 1e7);
    hbp_lengths_free(lengths);
    /* 33 of them: the last micro-batch takes as long as the others with one pack of 16. */
    histogram(context, (int64_t[]){4096}, (int64_t[]){33}, 1, &lengths);
    OK(context, hbp__estimator_open(context, lengths, cost, 1, &e));
    ck_assert(hbp__level_make(cost, 65536, 1, 4096, 0, &level));
    pack = (double)hbp_cost_predict_pack_ns(cost, 1, level.recompute, 4096, 4096.0 * 4096, 0);
    about(hbp__level_ns(&e, &level, 0, 1, &left), 3 * pack + 3 * 1e7);
    hbp_lengths_free(lengths);
}
END_TEST

START_TEST_IN_CONTEXT(all_ranks_wait_for_a_rare_long_sample_and_its_packs_take_short_ones)
{
    hbp_cost *cost = keep(test_cost(context));
    hbp_lengths *lengths = NULL;
    histogram(context, (int64_t[]){64, 32768}, (int64_t[]){4096, 1}, 2, &lengths);
    hbp__estimator e;
    OK(context, hbp__estimator_open(context, lengths, cost, 1, &e));
    hbp__level level;
    double left;
    ck_assert(hbp__level_make(cost, 65536, 8, 32768, 0, &level));
    /* Two packs, one with the long sample: the other takes half of the 262,144 short tokens it has room for.
     */
    double got = hbp__level_ns(&e, &level, 1, 2, &left);
    ck_assert(left == 1 - 32768.0 / (64 * 4096));
    double pack = (double)hbp_cost_predict_pack_ns(cost, 8, level.recompute, 32768, 32768.0 * 32768, 0);
    ck_assert_msg(got >= pack + 1e7 && got < 1.01 * pack + 1e7, "%f, not %f", got, pack + 1e7);
    hbp__hierarchy both = {2, {{0}}, 0};
    both.level[1] = level;
    both.level[1].threshold = 32768;
    ck_assert(hbp__level_make(cost, 65536, 1, 4096, 0, &both.level[0]));
    both.level[0].threshold = 64;
    hbp__hierarchy_estimate(&e, &both);
    double unused, shorter = hbp__level_ns(&e, &both.level[0], 0, 1, &unused);
    about((double)both.epoch_ns, got + left * shorter);
    hbp__hierarchy other = both;
    ck_assert(hbp__hierarchy_equals(&both, &other));
    other.level[0].threshold++;
    ck_assert(!hbp__hierarchy_equals(&both, &other));
    hbp_lengths_free(lengths);
}
END_TEST

START_TEST_IN_CONTEXT(limits_are_kept)
{
    hbp_cost *cost = keep(test_cost(context));
    hbp__level_limits limits = {65536, 1, 25, 1, 8192, INT64_MAX};
    hbp__level level;
    ck_assert(hbp__level_allow(cost, &limits, 2, 8192, 0, &level));
    ck_assert(!hbp__level_allow(cost, &limits, 2, 8193, 0, &level)); /* max_length */
    ck_assert(!hbp__level_allow(cost, &limits, 1, 4097, 0, &level)); /* 16 packs pass a step */
    ck_assert(hbp__level_allow(cost, &limits, 1, 4096, 0, &level));
    limits.tokens_per_rank = 4000;
    ck_assert(!hbp__level_allow(cost, &limits, 2, 8001, 0, &level));
    ck_assert(hbp__level_allow(cost, &limits, 2, 8000, 0, &level));
}
END_TEST

TEST_MAIN("hierarchy", the_sums_are_those_of_the_samples, tied_samples_are_one_item,
          a_level_alone_takes_what_its_packs_take,
          all_ranks_wait_for_a_rare_long_sample_and_its_packs_take_short_ones, limits_are_kept)
