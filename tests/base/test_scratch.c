#include "base/scratch.h"

#include "base/rng.h"
#include "failing.h"
#include "test.h"

START_TEST(pieces_are_aligned_and_released_back_to_a_mark)
{
    failing f;
    hbp_context *context = failing_context(&f, NULL, NULL);
    int64_t live = f.live, bytes = f.bytes;
    ck_assert_int_eq(hbp__scratch_mark(context), 0);
    for (uint64_t count = 0; count < 50; count++) {
        unsigned char *piece = hbp__take(context, count, 3);
        ck_assert_ptr_nonnull(piece);
        ck_assert_uint_eq((uintptr_t)piece % 16, 0);
        memset(piece, 0xa5, count * 3);
    }
    int64_t mark = hbp__scratch_mark(context), held = f.live;
    unsigned char *zero = hbp__take_zero(context, 1000, 1);
    for (int i = 0; i < 1000; i++)
        ck_assert_int_eq(zero[i], 0);
    ck_assert_int_eq(hbp__scratch_check(context, "nothing"), HBP_OK);
    hbp__scratch_release(context, mark);
    ck_assert_int_eq(f.live, held);
    ck_assert_int_eq(hbp__leave(context, 0, HBP_NOT_PROVEN), HBP_NOT_PROVEN);
    ck_assert_int_eq(f.live, live);
    ck_assert_int_eq(f.bytes, bytes);
    hbp_context_free(context);
}
END_TEST

/* Whatever is grown and released, and in whatever order, each piece that is still held keeps what it holds.
 */
START_TEST(random_takes_and_releases_keep_what_was_written)
{
    enum { MOST = 64 };
    failing f;
    hbp_context *context = failing_context(&f, NULL, NULL);
    hbp__rng rng = hbp__rng_make((uint64_t)_i, 0, 0);
    uint32_t *piece[MOST];
    uint64_t count[MOST];
    int64_t held = 0, live = f.live;
    for (int turn = 0; turn < 2000; turn++) {
        uint64_t size = 1 + hbp__rng_below(&rng, 300);
        int64_t k = held ? (int64_t)hbp__rng_below(&rng, (uint64_t)held) : 0;
        if (hbp__rng_below(&rng, 4) == 0) {
            held = k;
            hbp__scratch_release(context, held);
        } else if (held < MOST) {
            piece[held] = hbp__take(context, size, sizeof **piece);
            for (uint64_t i = 0; i < size; i++)
                piece[held][i] = (uint32_t)(held * 1000 + (int64_t)i);
            count[held++] = size;
        }
        ck_assert_int_eq(hbp__scratch_mark(context), held);
        ck_assert_int_eq(f.live, live + held);
        int64_t changed = 0;
        for (k = 0; k < held; k++)
            for (uint64_t i = 0; i < count[k]; i++)
                changed += piece[k][i] != (uint32_t)(k * 1000 + (int64_t)i);
        ck_assert_int_eq(changed, 0);
    }
    hbp_context_free(context); /* releases what is held */
    ck_assert_int_eq(f.live, 0);
    ck_assert_int_eq(f.bytes, 0);
}
END_TEST

/* One take fails, and those behind it would not: the check still tells, once, and says what for. */
START_TEST(a_failed_take_is_remembered_until_it_is_asked_about)
{
    failing f;
    hbp_context *context = failing_context(&f, NULL, NULL);
    int64_t live = f.live;
    uint32_t *kept = hbp__take(context, 4, sizeof *kept);
    kept[3] = 7;
    f.left = 0;
    f.once = 1;
    if (_i == 0)
        ck_assert_ptr_null(hbp__take(context, 10, 8));
    else if (_i == 1)
        ck_assert_ptr_null(hbp__take_zero(context, 1000, sizeof *kept));
    else
        ck_assert_ptr_null(hbp__take(context, UINT64_MAX / 2, 8));
    f.left = -1;
    ck_assert_ptr_null(hbp__take(context, 10, 8));
    ck_assert_ptr_null(hbp__take_zero(context, 10, 8));
    ck_assert_int_eq(kept[3], 7);
    ck_assert_int_eq(hbp__scratch_check(context, "the pieces of a test"), HBP_E_NO_MEMORY);
    ck_assert_str_eq(hbp_context_message(context), "out of memory for the pieces of a test");
    ck_assert_int_eq(hbp__scratch_check(context, "the pieces of a test"), HBP_OK);
    ck_assert_ptr_nonnull(hbp__take(context, 10, 8));
    hbp__leave(context, 0, HBP_OK);
    ck_assert_int_eq(f.live, live);
    hbp_context_free(context);
}
END_TEST

START_TEST(leaving_forgets_a_failed_take)
{
    failing f;
    hbp_context *context = failing_context(&f, NULL, NULL);
    ck_assert_ptr_null(hbp__take(context, UINT64_MAX, 8));
    ck_assert_int_eq(hbp__leave(context, 0, HBP_E_NO_MEMORY), HBP_E_NO_MEMORY);
    ck_assert_ptr_nonnull(hbp__take(context, 1, 8));
    ck_assert_int_eq(hbp__scratch_check(context, "a piece"), HBP_OK);
    hbp_context_free(context);
}
END_TEST

TEST_MAIN_LOOPS("scratch", NULL, NULL, {pieces_are_aligned_and_released_back_to_a_mark, 0, 1},
                {random_takes_and_releases_keep_what_was_written, 0, 20},
                {a_failed_take_is_remembered_until_it_is_asked_about, 0, 3},
                {leaving_forgets_a_failed_take, 0, 1})
