/* No public call leaves a piece of scratch behind, whether it succeeds, memory fails it or it is cancelled.
 */
#include "every_call.h"
#include "failing.h"

START_TEST(scratch_is_empty_after_a_failed_allocation)
{
    failing f;
    every e;
    hbp_context *context = failing_context(&f, NULL, NULL);
    every_open(context, &e, 0);
    int64_t live = f.live;
    hbp_status status = HBP_E_NO_MEMORY;
    for (int64_t n = 0; status == HBP_E_NO_MEMORY;
         n += 1 + n / (TEST_LONG ? (TEST_SANITIZED ? 2 : 8) : (TEST_SANITIZED ? 1 : 2))) {
        f.left = n;
        f.once = n % 2 != 0;
        status = EVERY_CALL[_i].run(context, &e);
        f.left = -1;
        ck_assert_int_eq(hbp__scratch_mark(context), 0);
        ck_assert_int_eq(f.live, live);
    }
    every_close(&e);
    hbp_context_free(context);
    ck_assert_int_eq(f.live, 0);
}
END_TEST

START_TEST(scratch_is_empty_after_a_cancelled_call)
{
    failing f;
    every e;
    int64_t left = INT64_MAX;
    hbp_context *context = failing_context(&f, cancel_once, &left);
    every_open(context, &e, 0);
    int64_t live = f.live, reports = 0;
    for (int64_t n = 0; reports <= 0; n += 1 + (TEST_LONG ? n / 4 : TEST_FEW(n, 3 * n))) {
        left = n;
        (void)EVERY_CALL[_i].run(context, &e);
        reports = left + 1; /* above 0: there were fewer than n */
        ck_assert_int_eq(hbp__scratch_mark(context), 0);
        ck_assert_int_eq(f.live, live);
    }
    every_close(&e);
    hbp_context_free(context);
}
END_TEST

TEST_SUITE_FUNCTION
{
    Suite *suite = suite_create("scratch");
    every_add(suite, scratch_is_empty_after_a_failed_allocation);
    every_add(suite, scratch_is_empty_after_a_cancelled_call);
    return suite;
}
