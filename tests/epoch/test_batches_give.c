#include "base/methods.h"
#include "batched.h"
#include "failing.h"
#include "keep.h"

typedef struct given {
    hbp_lengths *lengths;
    int64_t offsets[5];
    int64_t samples[10];
    int64_t batches;
} given;

static hbp_status give(hbp_context *context, const given *g, hbp__batches *b)
{
    hbp__epoch epoch = {context,
                        g->lengths,
                        NULL,
                        NULL,
                        NULL,
                        {.batches = g->batches, .batch_offsets = g->offsets, .batch_samples = g->samples},
                        HBP__STEP_SEARCH};
    return hbp__batches_give(&epoch, b);
}

static given make(hbp_context *context)
{
    given g = {NULL, {0, 3, 4, 8, 10}, {7, 0, 3, 9, 1, 2, 4, 5, 6, 8}, 4};
    int64_t length[10], link[10] = {-1, 5, 5, -1, -1, -1, -1, -1, -1, -1};
    for (int i = 0; i < 10; i++)
        length[i] = 10 * (i + 1);
    hbp_lengths_options with = {.struct_size = sizeof with, .links = link};
    OK(context, hbp_lengths_create_i64(context, length, 10, &with, &g.lengths));
    return g;
}

START_TEST_IN_CONTEXT(batches_are_as_given)
{
    given g = make(context);
    hbp__batches b;
    OK(context, give(context, &g, &b));
    batched_check(&b, g.lengths);
    ck_assert_int_eq(b.steps, 4);
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(b.first[i], g.offsets[i]);
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(b.sample[i], g.samples[i]);
    hbp__batches_close(&b);
    hbp_lengths_free(g.lengths);
}
END_TEST

/* Ids stay those of the original samples: dropped ones may be named, pieces stay together. */
START_TEST_IN_CONTEXT(a_limit_may_drop_and_split)
{
    given g = make(context);
    hbp_lengths *all = g.lengths;
    for (int way = 0; way < 2; way++) {
        hbp__batches b;
        OK(context,
           hbp_lengths_limit(context, all, 55, way ? HBP_OVERLONG_SPLIT : HBP_OVERLONG_DROP, &g.lengths));
        OK(context, give(context, &g, &b));
        batched_check(&b, g.lengths);
        ck_assert_int_eq(b.steps, way ? 4 : 2); /* batches whose samples are all dropped are gone */
        hbp__batches_close(&b);
        hbp_lengths_free(g.lengths);
    }
    hbp_lengths_free(all);
}
END_TEST

START_TEST_IN_CONTEXT(wrong_batches_are_named)
{
    const given good = make(context);
    given g;
    hbp__batches b;
#define REFUSES(message, change)                                                                             \
    do {                                                                                                     \
        g = good;                                                                                            \
        change;                                                                                              \
        FAILS(context, HBP_E_INVALID, message, give(context, &g, &b));                                       \
        hbp__batches_close(&b);                                                                              \
    } while (0)
    REFUSES("batch 2 names sample 3, which is in batch 0 already", g.samples[5] = 3);
    REFUSES("batch 1 names sample 10; samples are 0..9", g.samples[3] = 10);
    REFUSES("batch 0 names sample -1", g.samples[0] = -1);
    REFUSES("do not name 2 of 10 samples, the first is sample 6", g.batches = 3);
    REFUSES("`batch_offsets[0]` is 1; it must be 0", g.offsets[0] = 1);
    REFUSES("batch 1 has no samples: batch_offsets[2] is 3 after 3", g.offsets[2] = 3);
    REFUSES("sample 2 is in batch 3, and one linked to it in batch 2", (g.samples[5] = 8, g.samples[9] = 2));
    hbp_lengths_free(good.lengths);
}
END_TEST

static hbp_status give_once(hbp_context *context, void *user)
{
    hbp__batches b;
    hbp_status status = give(context, user, &b);
    hbp__batches_close(&b);
    return status;
}

START_TEST_IN_CONTEXT(nothing_is_left_behind)
{
    given g = make(context);
    failing_sweep(give_once, &g);
    hbp_lengths_free(g.lengths);
}
END_TEST

TEST_MAIN("batches_give", batches_are_as_given, a_limit_may_drop_and_split, wrong_batches_are_named,
          nothing_is_left_behind)
