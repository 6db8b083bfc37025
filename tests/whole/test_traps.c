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

EVERY_MAIN("traps", nothing_traps)
