/* Samples by length, of an array and of a stream. */
#include "data/lengths/length_index.h"

#include "base/rng.h"
#include "failing.h"
#include "keep.h"
#include "pools.h"

enum { MOST = 5000 };

static void draw(hbp__rng *rng, uint32_t *values, int64_t count)
{
    const uint32_t top = 1 + hbp__rng_below(rng, hbp__rng_below(rng, 2) ? 30 : 9000000);
    for (int64_t i = 0; i < count; i++)
        values[i] = 1 + hbp__rng_below(rng, top);
}

/* Ascending by length, then by number. */
static void check_index(const hbp_length_index *index, const uint32_t *values, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        ck_assert_int_lt(index->sample[i], count);
        if (!i)
            continue;
        const uint32_t a = index->sample[i - 1], b = index->sample[i];
        ck_assert(values[a] < values[b] || (values[a] == values[b] && a < b));
    }
}

static hbp_lengths *histogram_of(hbp_context *context, const hbp_lengths *lengths)
{
    hbp_lengths *histogram;
    OK(context, hbp_lengths_create_histogram(context, lengths->bin_length, lengths->bin_count, lengths->bins,
                                             &histogram));
    return keep(histogram);
}

START_TEST_IN_CONTEXT(streams_and_arrays_agree)
{
    static uint32_t values[MOST];
    hbp__rng rng = hbp__rng_make(1, 0, 0);
    for (int round = 0, mark = keep_mark(); round < TEST_ROUNDS(100); round++, keep_release(mark)) {
        const int64_t count = 1 + hbp__rng_below(&rng, MOST);
        hbp_lengths *lengths;
        hbp_length_index *index, *streamed;
        hbp_length_index_builder *builder;
        draw(&rng, values, count);
        OK(context, hbp_lengths_create_u32(context, values, count, NULL, &lengths));
        keep(lengths);
        OK(context, hbp_length_index_create(context, lengths, &index));
        check_index(keep(index), values, count);
        hbp_lengths *histogram = histogram_of(context, lengths);
        OK(context, hbp_length_index_builder_create(context, histogram, &builder));
        keep(builder);
        for (int64_t at = 0, piece; at < count; at += piece) {
            piece = hbp__rng_below(&rng, 1000);
            piece = piece < count - at ? piece : count - at;
            OK(context, hbp_length_index_builder_append(context, builder, values + at, piece));
        }
        OK(context, hbp_length_index_builder_finish(context, builder, &streamed));
        check_index(keep(streamed), values, count);
        ck_assert_uint_eq(streamed->histogram_digest, index->histogram_digest);
        ck_assert_uint_eq(streamed->lengths_digest, lengths->digest);
        ck_assert_uint_eq(index->lengths_digest, lengths->digest);
        ck_assert(streamed->is_counted && !index->is_counted);
        FAILS(context, HBP_E_INVALID, "the builder is finished",
              hbp_length_index_builder_finish(context, builder, &streamed));
    }
}
END_TEST

/* Lengths and their index are the same on any threads. */
START_TEST_IN_CONTEXT(threads_make_the_same)
{
    static uint32_t values[300000];
    hbp__rng rng = hbp__rng_make(2, 0, 0);
    for (int pool = 0; pool < POOLS; pool++)
        for (int32_t threads = 2; threads <= 8; threads += 3) {
            const int64_t count = pool || threads > 2 ? 1 + hbp__rng_below(&rng, MOST) : 300000;
            const int mark = keep_mark();
            hbp_context *several = pool_context(threads, pool);
            hbp_lengths *lengths, *same;
            hbp_length_index *index;
            draw(&rng, values, count);
            OK(context, hbp_lengths_create_u32(context, values, count, NULL, &lengths));
            keep(lengths);
            OK(several, hbp_lengths_create_u32(several, values, count, NULL, &same));
            keep(same);
            ck_assert_uint_eq(same->digest, lengths->digest);
            ck_assert_uint_eq(hbp__histogram_digest(same), hbp__histogram_digest(lengths));
            OK(several, hbp_length_index_create(several, same, &index));
            check_index(keep(index), values, count);
            keep_release(mark);
            hbp_context_free(several);
        }
}
END_TEST

/* A borrowed array that changed since it was counted, on several threads. */
START_TEST(an_array_that_changed_is_refused)
{
    static uint32_t values[MOST];
    hbp_context *context = pool_context(4, 0);
    hbp_lengths *lengths;
    hbp_length_index *index = NULL;
    hbp_lengths_options options = {.struct_size = sizeof options, .borrow = 1};
    for (uint32_t i = 0; i < MOST; i++)
        values[i] = 1 + i % 7 + i / 4000;
    OK(context, hbp_lengths_create_u32(context, values, MOST, &options, &lengths));
    for (uint32_t wrong = 0; wrong < 12; wrong += 3) {
        values[17] = wrong;
        FAILS(context, HBP_E_INVALID, "changed", hbp_length_index_create(context, lengths, &index));
        ck_assert_ptr_null(index);
    }
    values[17] = 1 + 17 % 7;
    OK(context, hbp_length_index_create(context, lengths, &index));
    hbp_length_index_free(index);
    hbp_lengths_free(lengths);
    hbp_context_free(context);
}
END_TEST

/* A pool in whose second call, which deals what the first counted, a value is another's. */
typedef struct changing {
    uint32_t *value;
    uint32_t to;
    int calls;
} changing;

static void change_and_run(void *user, int32_t tasks, pool_task task, void *argument)
{
    changing *c = user;
    const uint32_t was = *c->value;
    if (++c->calls == 2)
        *c->value = c->to;
    pool_serial(NULL, tasks, task, argument);
    *c->value = was;
}

START_TEST(an_array_that_changes_between_its_passes_is_refused)
{
    static uint32_t values[MOST];
    for (uint32_t i = 0; i < MOST; i++)
        values[i] = 1 + i % 7;
    for (uint32_t to = 1; to <= 7; to++)
        for (int k = 0; k < 2; k++) {
            changing c = {&values[k ? 20 : MOST - 20], to, 0};
            hbp_pool pool = {.struct_size = sizeof pool, .run = change_and_run, .user = &c};
            hbp_context_options options = {.struct_size = sizeof options, .threads = 4, .pool = &pool};
            hbp_lengths_options borrow = {.struct_size = sizeof borrow, .borrow = 1};
            hbp_context *context = NULL;
            hbp_lengths *lengths;
            hbp_length_index *index = NULL;
            ck_assert_int_eq(hbp_context_create(&options, &context), HBP_OK);
            OK(context, hbp_lengths_create_u32(context, values, MOST, &borrow, &lengths));
            ck_assert_int_eq(c.calls, 0);
            if (to == *c.value)
                OK(context, hbp_length_index_create(context, lengths, &index));
            else
                FAILS(context, HBP_E_INVALID, "changed", hbp_length_index_create(context, lengths, &index));
            ck_assert_int_eq(c.calls, 2);
            hbp_length_index_free(index);
            hbp_lengths_free(lengths);
            hbp_context_free(context);
        }
}
END_TEST

START_TEST_IN_CONTEXT(a_stream_that_is_not_its_histogram_is_refused)
{
    const uint32_t values[] = {5, 7, 5, 900};
    const uint32_t more[] = {5, 5, 5, 7}, other[] = {6, 7, 5, 900}, longer[] = {5, 5, 7, INT32_MAX},
                   zero[] = {0, 5, 7, 5};
    const uint32_t *const wrong[] = {more, other, longer, zero};
    hbp_lengths *lengths;
    OK(context, hbp_lengths_create_u32(context, values, 4, NULL, &lengths));
    hbp_lengths *histogram = histogram_of(context, keep(lengths));
    hbp_length_index *index = NULL;
    hbp_length_index_builder *builder;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        OK(context, hbp_length_index_builder_create(context, histogram, &builder));
        keep(builder);
        hbp_status status = hbp_length_index_builder_append(context, builder, wrong[i], 4);
        ck_assert_int_eq(status, i ? HBP_E_INVALID : HBP_OK); /* of the first, 5 comes too often */
        ck_assert_int_eq(hbp_length_index_builder_finish(context, builder, &index), HBP_E_INVALID);
        ck_assert_ptr_null(index);
    }
    OK(context, hbp_length_index_builder_create(context, histogram, &builder));
    keep(builder);
    OK(context, hbp_length_index_builder_append(context, builder, values, 3));
    FAILS(context, HBP_E_INVALID, "3 samples and 2 more; the histogram has 4",
          hbp_length_index_builder_append(context, builder, values, 2));
    FAILS(context, HBP_E_INVALID, "refused a piece",
          hbp_length_index_builder_append(context, builder, values + 3, 1));
    OK(context, hbp_length_index_builder_create(context, histogram, &builder));
    keep(builder);
    OK(context, hbp_length_index_builder_append(context, builder, values, 2));
    FAILS(context, HBP_E_INVALID, "of the 2 samples that came, those of 5 tokens are not as many",
          hbp_length_index_builder_finish(context, builder, &index));
    FAILS(context, HBP_E_INVALID, "a piece of -1 samples",
          hbp_length_index_builder_append(context, builder, values, -1));
    FAILS(context, HBP_E_INVALID, "an index of a histogram",
          hbp_length_index_create(context, histogram, &index));
}
END_TEST

typedef struct inputs {
    hbp_lengths *lengths;
    const uint32_t *values;
    int64_t count;
} inputs;

static hbp_status make_both(hbp_context *context, void *user)
{
    const inputs *in = user;
    hbp_length_index *index = NULL, *streamed = NULL;
    hbp_length_index_builder *builder = NULL;
    hbp_status status = hbp_length_index_create(context, in->lengths, &index);
    if (status >= 0)
        status = hbp_length_index_builder_create(context, in->lengths, &builder);
    if (status >= 0)
        status = hbp_length_index_builder_append(context, builder, in->values, in->count);
    if (status >= 0)
        status = hbp_length_index_builder_finish(context, builder, &streamed);
    hbp_length_index_builder_free(builder);
    hbp_length_index_free(streamed);
    hbp_length_index_free(index);
    return status;
}

START_TEST(failures_leave_nothing_behind)
{
    static uint32_t values[100000];
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(2, 0, 0);
    inputs in = {NULL, values, 100000};
    draw(&rng, values, in.count);
    OK(context, hbp_lengths_create_u32(context, values, in.count, NULL, &in.lengths));
    failing_sweep(make_both, &in);
    ck_assert_int_gt(cancel_sweep(make_both, &in), 4);
    hbp_lengths_free(in.lengths);
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("length_index", streams_and_arrays_agree, threads_make_the_same, an_array_that_changed_is_refused,
          an_array_that_changes_between_its_passes_is_refused, a_stream_that_is_not_its_histogram_is_refused,
          failures_leave_nothing_behind)
