#include "base/rng.h"
#include "data/lengths/lengths.h"
#include "failing.h"
#include "keep.h"
#include "pools.h"

static hbp_lengths *make(hbp_context *context, const uint32_t *values, int64_t count)
{
    hbp_lengths *lengths;
    OK(context, hbp_lengths_create_u32(context, values, count, NULL, &lengths));
    return lengths;
}

static void check_order(const uint32_t *values, int64_t count, const uint32_t *order)
{
    char *seen = calloc((size_t)count, 1);
    int64_t wrong = 0; /* one assertion at the end: each is a system call */
    for (int64_t i = 0; i < count; i++) {
        wrong += order[i] >= count || seen[order[i]];
        if (wrong)
            break;
        seen[order[i]] = 1;
        wrong += i > 0 && values[order[i - 1]] > values[order[i]];
    }
    ck_assert_int_eq(wrong, 0);
    free(seen);
}

START_TEST_IN_CONTEXT(orders_are_ascending_permutations)
{
    const uint32_t tops[] = {1, 3, 700, 100000, 6000000, INT32_MAX};
    const int64_t counts[] = {1, 2, 3, 1000, 30000, 200000};
    hbp__rng rng = hbp__rng_make(5, 0, 0);
    for (size_t t = 0; t < sizeof tops / sizeof *tops; t++)
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            int64_t n = counts[c];
            uint32_t *values = malloc((size_t)n * sizeof *values);
            uint32_t heavy = 1 + hbp__rng_below(&rng, tops[t]);
            for (int64_t i = 0; i < n; i++)
                values[i] = hbp__rng_below(&rng, 2) ? heavy : 1 + hbp__rng_below(&rng, tops[t]);
            hbp_lengths *lengths = make(context, values, n);
            uint32_t *order;
            OK(context, hbp__lengths_order(context, lengths, 3, 4, &order));
            check_order(values, n, order);
            hbp__delete(&context->memory, order);
            hbp_lengths_free(lengths);
            free(values);
        }
}
END_TEST

START_TEST_IN_CONTEXT(an_order_is_a_function_of_seed_and_epoch)
{
    uint32_t values[1000];
    for (int i = 0; i < 1000; i++)
        values[i] = 1 + (uint32_t)i % 3;
    hbp_lengths *lengths = keep(make(context, values, 1000));
    const uint64_t draws[][2] = {{1, 1}, {1, 2}, {2, 1}, {1, 1}};
    uint32_t *order[4];
    for (int d = 0; d < 4; d++)
        OK(context, hbp__lengths_order(context, lengths, draws[d][0], draws[d][1], &order[d]));
    ck_assert_mem_eq(order[0], order[3], sizeof values);
    ck_assert_mem_ne(order[0], order[1], sizeof values);
    ck_assert_mem_ne(order[0], order[2], sizeof values);
    ck_assert_mem_ne(order[1], order[2], sizeof values);
    for (int d = 0; d < 4; d++)
        hbp__delete(&context->memory, order[d]);
}
END_TEST

/* Every permutation of three equal samples among others comes up about as often: chi-squared of 5 degrees
 * below 30 (a false alarm in 1.5e-5 draws; the seeds are fixed). */
START_TEST(threads_make_the_same_order)
{
    enum { COUNT = 400000 };
    uint32_t *values = malloc(COUNT * sizeof *values), *orders[2] = {NULL, NULL};
    hbp__rng rng = hbp__rng_make(3, 0, 0);
    ck_assert_ptr_nonnull(values);
    for (int64_t i = 0; i < COUNT; i++)
        values[i] = hbp__rng_below(&rng, 3) ? 7 : 1 + hbp__rng_below(&rng, 50000);
    for (int pool = 0; pool < POOLS; pool++) {
        hbp_context *context = pool_context(pool ? 4 : 1, pool);
        hbp_lengths *lengths = make(context, values, COUNT);
        OK(context, hbp__lengths_order(context, lengths, 1, 2, &orders[pool > 0]));
        if (!pool)
            check_order(values, COUNT, orders[0]);
        else
            ck_assert_int_eq(memcmp(orders[0], orders[1], COUNT * sizeof *values), 0);
        if (pool)
            hbp__delete(&context->memory, orders[1]);
        if (pool == POOLS - 1)
            hbp__delete(&context->memory, orders[0]);
        hbp_lengths_free(lengths);
        hbp_context_free(context);
    }
    free(values);
}
END_TEST

START_TEST_IN_CONTEXT(equal_lengths_are_drawn_uniformly)
{
    const uint32_t values[] = {7, 2, 7, 9, 7};
    hbp_lengths *lengths = keep(make(context, values, 5));
    int seen[25] = {0};
    const int draws = 6000;
    for (int epoch = 0; epoch < draws; epoch++) {
        uint32_t *order;
        OK(context, hbp__lengths_order(context, lengths, 1, (uint64_t)epoch, &order));
        ck_assert_uint_eq(order[0], 1);
        ck_assert_uint_eq(order[4], 3);
        seen[order[1] * 5 + order[2]]++;
        hbp__delete(&context->memory, order);
    }
    const int pairs[] = {2, 4, 10, 14, 20, 22};
    double chi = 0;
    for (int p = 0; p < 6; p++)
        chi += (seen[pairs[p]] - draws / 6.0) * (seen[pairs[p]] - draws / 6.0) / (draws / 6.0);
    ck_assert_double_lt(chi, 30);
}
END_TEST

/* A run that is dealt into piles: the mean place of the first tenth of the samples is the middle, and few
 * samples are followed by their old neighbour. */
START_TEST_IN_CONTEXT(long_runs_are_mixed_throughout)
{
    const int64_t n = 300000;
    uint32_t *values = keep(malloc((size_t)n * sizeof *values));
    for (int64_t i = 0; i < n; i++)
        values[i] = 12;
    hbp_lengths *lengths = keep(make(context, values, n));
    uint32_t *order;
    OK(context, hbp__lengths_order(context, lengths, 1, 1, &order));
    check_order(values, n, order);
    double places = 0;
    int64_t neighbours = 0;
    for (int64_t i = 0; i < n; i++) {
        if (order[i] < n / 10)
            places += (double)i;
        neighbours += i > 0 && order[i] == order[i - 1] + 1;
    }
    /* the mean of n / 10 uniform places has a standard deviation of n / sqrt(12 n / 10) = 500 */
    ck_assert_double_eq_tol(places / ((double)n / 10), (double)n / 2, 2500);
    ck_assert_int_lt(neighbours, 10); /* one is expected */
    hbp__delete(&context->memory, order);
}
END_TEST

START_TEST_IN_CONTEXT(a_histogram_keeps_its_ordinals)
{
    const int64_t length[] = {4, 2}, count[] = {40000, 3};
    hbp_lengths *lengths;
    MAKES(context, lengths, hbp_lengths_create_histogram(context, length, count, 2, &lengths));
    uint32_t *order;
    OK(context, hbp__lengths_order(context, lengths, 1, 1, &order));
    int64_t wrong = 0;
    for (uint32_t i = 0; i < 40003; i++)
        wrong += order[i] != i;
    ck_assert_int_eq(wrong, 0);
    hbp__delete(&context->memory, order);
}
END_TEST

/* Scratch: 4 bytes a sample beyond the result, and tables that do not grow with the samples. */
START_TEST(scratch_is_four_bytes_a_sample)
{
    failing f;
    hbp_context *context = failing_context(&f, NULL, NULL);
    const int64_t n = 1000000;
    uint32_t *values = malloc((size_t)n * sizeof *values);
    hbp__rng rng = hbp__rng_make(8, 0, 0);
    for (int64_t i = 0; i < n; i++)
        values[i] = 1 + hbp__rng_below(&rng, 10000);
    hbp_lengths *lengths = make(context, values, n);
    int64_t before = f.bytes;
    f.peak_bytes = before;
    uint32_t *order;
    OK(context, hbp__lengths_order(context, lengths, 3, 4, &order));
    ck_assert_int_lt(f.peak_bytes - before, 8 * n + 6 * 20001 + 4 * n / 256 + 65536);
    ck_assert_int_lt(f.bytes - before, 4 * n + 64);
    hbp__delete(&context->memory, order);
    hbp_lengths_free(lengths);
    hbp_context_free(context);
    free(values);
}
END_TEST

static hbp_status order_once(hbp_context *context, void *user)
{
    uint32_t *order;
    hbp_status status = hbp__lengths_order(context, user, 1, 1, &order);
    ck_assert((status == HBP_OK) == (order != NULL));
    hbp__delete(&context->memory, order);
    return status;
}

START_TEST_IN_CONTEXT(failed_allocations_and_cancels_leave_nothing)
{
    static uint32_t values[140000];
    for (int i = 0; i < 140000; i++)
        values[i] = i % 2 ? 1 + (uint32_t)i % 30 : 5;
    hbp_lengths *lengths = keep(make(context, values, 140000));
    failing_sweep(order_once, lengths);
    ck_assert_int_gt(cancel_sweep(order_once, lengths), 10);
}
END_TEST

TEST_MAIN("order", orders_are_ascending_permutations, an_order_is_a_function_of_seed_and_epoch,
          threads_make_the_same_order, equal_lengths_are_drawn_uniformly, long_runs_are_mixed_throughout,
          a_histogram_keeps_its_ordinals, scratch_is_four_bytes_a_sample,
          failed_allocations_and_cancels_leave_nothing)
