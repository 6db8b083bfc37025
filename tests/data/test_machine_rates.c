#include "traps.h"

#include "failing.h"

#include <math.h>

#include "base/rng.h"
#include "data/machine/machine.h"
#include "keep.h"

static hbp_machine *make(hbp_context *context)
{
    hbp_machine *machine = NULL;
    OK(context, hbp_machine_create(context, &(hbp_machine_fields){.struct_size = sizeof(hbp_machine_fields)},
                                   &machine));
    return machine;
}

/* Against a table that is indexed by (kind, size): rates set in any order, the last of two alike counts. */
START_TEST_IN_CONTEXT(rates_are_sorted_and_replaced)
{
    enum { SIZES = 12 };
    hbp_machine *machine = keep(make(context));
    hbp__rng rng = hbp__rng_make(5, 1, 6);
    double table[HBP_RATE_COUNT][SIZES] = {{0}};
    for (int round = 1; round <= 200; round++) {
        hbp_machine_rate r = {.struct_size = sizeof r};
        r.rate = (int32_t)hbp__rng_below(&rng, HBP_RATE_COUNT);
        r.size = 1 + (int64_t)hbp__rng_below(&rng, SIZES);
        r.per_s = round;
        r.spread = round / 1000.;
        r.source = round % 2 ? "odd" : NULL;
        OK(context, hbp_machine_set_rate(context, machine, &r));
        table[r.rate][r.size - 1] = round;
        int64_t index = 0;
        for (int32_t k = 0; k < HBP_RATE_COUNT; k++)
            for (int s = 0; s < SIZES; s++) {
                if (table[k][s] == 0)
                    continue;
                hbp_machine_rate got = {.struct_size = sizeof got};
                ck_assert_int_eq(hbp_machine_get_rate(machine, index++, &got), 1);
                ck_assert(got.rate == k && got.size == s + 1);
                ck_assert_double_eq(got.per_s, table[k][s]);
                ck_assert_double_eq(got.spread, table[k][s] / 1000);
                ck_assert_str_eq(got.source, (int)table[k][s] % 2 ? "odd" : "given");
            }
        ck_assert_int_eq(hbp_machine_get_rate(machine, index, &(hbp_machine_rate){.struct_size = 8}), 0);
    }
}
END_TEST

#define REFUSED(text, ...)                                                                                   \
    FAILS(                                                                                                   \
        context, HBP_E_INVALID, text,                                                                        \
        hbp_machine_set_rate(context, machine, &(hbp_machine_rate){sizeof(hbp_machine_rate), __VA_ARGS__}))

START_TEST_IN_CONTEXT(wrong_rates_are_refused)
{
    hbp_machine *machine = keep(make(context));
    char source[65];
    memset(source, 's', 64);
    source[64] = '\0';
    REFUSED("`rate` is 3; it must be in 0..2", 3, 8, 1, 0, "s");
    REFUSED("`rate` is -1; it must be in 0..2", -1, 8, 1, 0, "s");
    REFUSED("size is 0; it must be at least 1", 0, 0, 1, 0, "s");
    REFUSED("per_s is 0; it must be finite and above 0", 0, 8, 0, 0, "s");
    REFUSED("per_s is inf", 0, 8, INFINITY, 0, "s");
    REFUSED("spread is -0.5; it must be finite and at least 0", 0, 8, 1, -.5, "s");
    REFUSED("spread is", 0, 8, 1, NAN, "s");
    REFUSED("the source has 64 characters; it must have 1..63", 0, 8, 1, 0, source);
    REFUSED("byte 0 of the source is a control character", 0, 8, 1, 0, "\n");
    hbp_machine_rate r = {sizeof r, 0, 8, 1, 0, source + 1};
    FAILS(context, HBP_E_INVALID, "machine is NULL", hbp_machine_set_rate(context, NULL, &r));
    FAILS(context, HBP_E_INVALID, "rate is NULL", hbp_machine_set_rate(context, machine, NULL));
    FAILS(context, HBP_E_INVALID, "hbp_machine_rate",
          hbp_machine_set_rate(context, machine, &(hbp_machine_rate){0}));
    ck_assert_int_eq(machine->rate_count, 0);
    OK(context, hbp_machine_set_rate(context, machine, &r));
    hbp_machine_rate got = {.struct_size = sizeof got}, zeros = got;
    ck_assert_int_eq(hbp_machine_get_rate(machine, 0, &got), 1);
    ck_assert_int_eq(hbp_machine_get_rate(machine, 1, &got), 0);
    ck_assert_mem_eq(&got, &zeros, sizeof got);
    ck_assert_int_eq(hbp_machine_get_rate(machine, -1, &got), 0);
    ck_assert_int_eq(hbp_machine_get_rate(NULL, 0, &got), 0);
    ck_assert_int_eq(hbp_machine_get_rate(machine, 0, NULL), 0);
}
END_TEST

static hbp_status build_once(hbp_context *context, void *user)
{
    hbp_machine_fields f = {.struct_size = sizeof f};
    hbp_machine *machine;
    (void)user;
    hbp_status status = hbp_machine_create(context, &f, &machine);
    for (int32_t i = 0; i < 3 && status == HBP_OK; i++)
        status = hbp_machine_set_rate(context, machine,
                                      &(hbp_machine_rate){sizeof(hbp_machine_rate), i, 8, 1, 0, 0});
    hbp_machine_free(machine);
    return status;
}

START_TEST(failed_allocations_leave_nothing)
{
    failing_sweep(build_once, NULL);
}
END_TEST

TEST_MAIN_WITH("machine_rates", traps_on, NULL, rates_are_sorted_and_replaced, wrong_rates_are_refused,
               failed_allocations_leave_nothing)
