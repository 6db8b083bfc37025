/* A host may unmask floating-point exceptions, as some do to find their own mistakes: no call of the library
 * divides by zero, overflows or makes a number of none. */
#include "traps.h"

#include "every_call.h"

START_TEST(nothing_traps)
{
    every e = {0};
    hbp_context *context = test_context();
    every_open(context, &e, 0);
    traps_on();
    hbp_status status = EVERY_CALL[_i].run(context, &e);
    ck_assert_msg(status >= 0, "%s: %s", EVERY_CALL[_i].name, hbp_context_message(context));
    ck_assert_int_eq(traps_seen(), 0);
    every_close(&e);
    hbp_context_free(context);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("traps");
    for (int i = 0; i < EVERY_CALLS; i++) {
        TCase *one = tcase_create(EVERY_CALL[i].name);
        tcase_set_timeout(one, 120);
        tcase_add_loop_test(one, nothing_traps, i, i + 1);
        suite_add_tcase(suite, one);
    }
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
