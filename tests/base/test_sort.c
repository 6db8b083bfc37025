#include "base/sort.h"

#include "base/rng.h"
#include "failing.h"
#include "test.h"

/* The oracle: insertion sort. */
static void insertion(const int64_t *keys, uint32_t *order, int64_t count)
{
    for (int64_t i = 1; i < count; i++) {
        uint32_t moving = order[i];
        int64_t at = i;
        for (; at > 0 && keys[order[at - 1]] > keys[moving]; at--)
            order[at] = order[at - 1];
        order[at] = moving;
    }
}

START_TEST(sorts_like_insertion_and_stably)
{
    hbp__memory memory = hbp__memory_default();
    hbp__rng rng = hbp__rng_make(1, 0, 0);
    for (int trial = 0; trial < 400; trial++) {
        int64_t keys[700];
        uint32_t order[700], expected[700], count = hbp__rng_below(&rng, trial % 8 ? 300 : 700);
        int shift = (int)hbp__rng_below(&rng, 64);
        for (uint32_t i = 0; i < count; i++) {
            keys[i] = (int64_t)(hbp__rng_next(&rng) >> shift);
            order[i] = expected[i] = count - 1 - i;
        }
        insertion(keys, expected, count);
        ck_assert_int_eq(hbp__sort_by_i64(&memory, keys, order, count), 1);
        ck_assert_mem_eq(order, expected, count * sizeof *order);
        for (uint32_t i = 0; i < count; i++)
            keys[i] &= INT64_MAX;
        insertion(keys, expected, count);
        ck_assert_int_eq(hbp__sort_by_u64(&memory, (const uint64_t *)keys, order, count), 1);
        for (uint32_t i = 0; i < count; i++)
            ck_assert_int_eq(keys[order[i]], keys[expected[i]]);
    }
}
END_TEST

/* Few rows need none. */
START_TEST(without_memory_the_order_stays)
{
    enum { ROWS = 40 };
    failing f;
    hbp__memory memory = {failing_alloc, failing_resize, failing_release, &f};
    uint64_t keys[ROWS];
    uint32_t order[ROWS];
    for (uint32_t i = 0; i < ROWS; i++)
        keys[i] = ROWS - i;
    for (int64_t n = 0; n < 2; n++) {
        for (uint32_t i = 0; i < ROWS; i++)
            order[i] = i;
        f = (failing){.left = n};
        ck_assert_int_eq(hbp__sort_by_u64(&memory, keys, order, ROWS), 0);
        for (uint32_t i = 0; i < ROWS; i++)
            ck_assert_uint_eq(order[i], i);
        ck_assert_int_eq(f.live, 0);
    }
    f = (failing){.left = 0};
    ck_assert_int_eq(hbp__sort_by_u64(&memory, keys, order, 3), 1);
    ck_assert_uint_eq(order[0], 2);
    ck_assert_uint_eq(order[2], 0);
}
END_TEST

enum { MANY = 100000 };

static int64_t many_keys[MANY];

/* Sorts many rows both ways, and shuffles them; what is cancelled has changed no order. */
static hbp_status order_many(hbp_context *context, void *user)
{
    (void)user;
    static uint32_t order[MANY], expected[MANY];
    hbp__memory memory = hbp__memory_default();
    for (uint32_t i = 0; i < MANY; i++)
        order[i] = expected[i] = MANY - 1 - i;
    hbp_status status = hbp__order_by_i64(context, many_keys, order, MANY, "rows");
    if (status >= 0)
        ck_assert_int_eq(hbp__sort_by_i64(&memory, many_keys, expected, MANY), 1);
    ck_assert_mem_eq(order, expected, sizeof order);
    HBP__TRY(status);
    hbp__rng rng = hbp__rng_make(3, 0, 0), same = rng;
    HBP__TRY(hbp__shuffle(context, &rng, order, MANY));
    hbp__rng_shuffle_u32(&same, expected, MANY);
    ck_assert_mem_eq(order, expected, sizeof order);
    return HBP_OK;
}

/* A pass over the rows is six looks here, a shuffle as many. */
START_TEST(many_rows_are_looked_up_between)
{
    hbp__rng rng = hbp__rng_make(2, 0, 0);
    for (int64_t i = 0; i < MANY; i++)
        many_keys[i] = (int64_t)hbp__rng_below(&rng, 1 << 20) - (1 << 19);
    ck_assert_int_ge(cancel_sweep(order_many, NULL), 5 * (MANY / HBP__TICK_ROWS));
    failing_sweep(order_many, NULL);
}
END_TEST

typedef struct keyed_row {
    uint32_t key;
    uint32_t came; /* as the how-manieth */
    uint32_t twice;
} keyed_row;

static keyed_row keyed[1000];

/* Rows stand where their keys say, equal ones as they came, or after a failure as they were. */
static hbp_status sort_keyed(hbp_context *context, void *user)
{
    (void)user;
    const int64_t count = sizeof keyed / sizeof *keyed;
    hbp__rng rng = hbp__rng_make(4, 0, 0);
    for (uint32_t i = 0; i < count; i++)
        keyed[i] = (keyed_row){hbp__rng_below(&rng, 2) ? UINT32_MAX - hbp__rng_below(&rng, 9)
                                                       : (uint32_t)hbp__rng_below(&rng, 99),
                               i, 2 * i};
    const hbp_status status = hbp__sort_rows_u32(context, keyed, sizeof *keyed, count, "rows");
    for (int64_t i = 0; i < count; i++) {
        ck_assert_uint_eq(keyed[i].twice, 2 * keyed[i].came);
        if (status < 0)
            ck_assert_uint_eq(keyed[i].came, i);
        else if (i > 0)
            ck_assert(keyed[i - 1].key < keyed[i].key ||
                      (keyed[i - 1].key == keyed[i].key && keyed[i - 1].came < keyed[i].came));
    }
    return status;
}

START_TEST(rows_are_sorted_whole)
{
    hbp_context *context = test_context();
    OK(context, sort_keyed(context, NULL));
    OK(context, hbp__sort_rows_u32(context, keyed, sizeof *keyed, 0, "rows"));
    hbp_context_free(context);
    failing_sweep(sort_keyed, NULL);
}
END_TEST

TEST_MAIN("sort", sorts_like_insertion_and_stably, without_memory_the_order_stays,
          many_rows_are_looked_up_between, rows_are_sorted_whole)
