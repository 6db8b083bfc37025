#include "traps.h"

#include "failing.h"

#include <math.h>

#include "base/rng.h"
#include "data/machine/machine.h"
#include "keep.h"
#include "nodes.h"

static hbp_machine *make(hbp_context *context)
{
    hbp_machine *machine = NULL;
    OK(context, hbp_machine_create(context, &(hbp_machine_fields){.struct_size = sizeof(hbp_machine_fields)},
                                   &machine));
    return machine;
}

/* Collectives set in any order stay sorted; the last of two for the same ranks counts. */
START_TEST_IN_CONTEXT(collectives_are_found_again)
{
    hbp_machine *machine = keep(make(context));
    static const int32_t ranks[] = {8, 2, 64, 16, 8};
    for (int round = 0; round < 5; round++)
        for (int32_t c = HBP_COLLECTIVE_COUNT - 1; c >= 0; c--)
            OK(context, set_collective(context, machine, c, ranks[round], c * 100 + round, 1e9 + round,
                                       round == 4 ? NULL : "test"));
    ck_assert_int_eq(machine->collective_count, 4 * HBP_COLLECTIVE_COUNT);
    for (int64_t i = 1; i < machine->collective_count; i++)
        ck_assert_int_lt(machine->collectives[i - 1].collective * 1000 + machine->collectives[i - 1].ranks,
                         machine->collectives[i].collective * 1000 + machine->collectives[i].ranks);
    hbp_machine_collective found = {.struct_size = sizeof found}, zeros = found;
    ck_assert_int_eq(hbp_machine_get_collective(machine, 2, 16, &found), 1);
    ck_assert_int_eq(found.collective, 2);
    ck_assert_int_eq(found.ranks, 16);
    ck_assert_double_eq(found.latency_ns, 203);
    ck_assert_double_eq(found.bytes_per_s, 1e9 + 3);
    ck_assert_str_eq(found.source, "test");
    ck_assert_int_eq(hbp_machine_get_collective(machine, 2, 8, &found), 1);
    ck_assert_double_eq(found.latency_ns, 204);
    ck_assert_str_eq(found.source, "given");
    ck_assert_int_eq(hbp_machine_get_collective(machine, 2, 32, &found), 0);
    ck_assert_mem_eq(&found, &zeros, sizeof found);
    ck_assert_int_eq(hbp_machine_get_collective(machine, 4, 8, &found), 0);
    ck_assert_int_eq(hbp_machine_get_collective(NULL, 2, 8, &found), 0);
    ck_assert_int_eq(hbp_machine_get_collective(machine, 3, 64, &found), 1);
    ck_assert_int_eq(hbp_machine_get_collective(machine, 3, 64, NULL), 0);
}
END_TEST

START_TEST_IN_CONTEXT(wrong_collectives_are_refused)
{
    hbp_machine *machine = keep(make(context));
#define REFUSED(text, ...)                                                                                   \
    FAILS(context, HBP_E_INVALID, text, set_collective(context, machine, __VA_ARGS__, "test"))
    REFUSED("`collective` is 4; it must be in 0..3", 4, 8, 0, 1);
    REFUSED("`collective` is -1; it must be in 0..3", -1, 8, 0, 1);
    REFUSED("ranks is 1; a collective has at least 2", 0, 1, 0, 1);
    REFUSED("latency_ns is -1", 0, 2, -1, 1);
    REFUSED("latency_ns is inf", 0, 2, INFINITY, 1);
    REFUSED("bytes_per_s is 0; it must be finite and above 0", 0, 2, 0, 0);
    REFUSED("bytes_per_s is", 0, 2, 0, NAN);
    FAILS(context, HBP_E_INVALID, "machine is NULL", set_collective(context, NULL, 0, 2, 0, 1, "test"));
    ck_assert_int_eq(machine->collective_count, 0);
}
END_TEST

/* A spread belongs to one measurement: the next one of the same collective begins without. */
START_TEST_IN_CONTEXT(spreads_go_with_their_collective)
{
    hbp_machine *machine = keep(make(context));
    hbp_machine_collective c = {sizeof c, 2, 4, 1, 1, .125, "test"}, found = {.struct_size = sizeof found};
    OK(context, hbp_machine_set_collective(context, machine, &c));
    OK(context, set_collective(context, machine, 2, 8, 1, 1, "test"));
    ck_assert_int_eq(hbp_machine_get_collective(machine, 2, 4, &found), 1);
    ck_assert_double_eq(found.spread, .125);
    c.spread = -1;
    FAILS(context, HBP_E_INVALID, "spread is -1; it must be finite and at least 0",
          hbp_machine_set_collective(context, machine, &c));
    c.spread = NAN;
    FAILS(context, HBP_E_INVALID, "spread is", hbp_machine_set_collective(context, machine, &c));
    FAILS(context, HBP_E_INVALID, "collective is NULL", hbp_machine_set_collective(context, machine, NULL));
    FAILS(context, HBP_E_INVALID, "hbp_machine_collective",
          hbp_machine_set_collective(context, machine, &(hbp_machine_collective){0}));
    ck_assert_int_eq(hbp_machine_get_collective(machine, 2, 8, &found), 1);
    ck_assert_double_eq(found.spread, 0);
    OK(context, set_collective(context, machine, 2, 4, 1, 1, "again"));
    ck_assert_int_eq(hbp_machine_get_collective(machine, 2, 4, &found), 1);
    ck_assert_double_eq(found.spread, 0);
    ck_assert_str_eq(found.source, "again");
}
END_TEST

static double squared_error(const hbp__timing *rows, int64_t count, double factor, double latency,
                            double bandwidth)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++) {
        double error = (latency + factor * rows[i].bytes / bandwidth * 1e9) / rows[i].ns - 1;
        sum += error * error;
    }
    return sum;
}

/* No line nearby is better than the fitted one. */
START_TEST_IN_CONTEXT(the_fit_is_the_least_of_squares)
{
    hbp__rng rng = hbp__rng_make(3, 1, 4);
    int flat = 0;
    for (int round = 0; round < 300; round++) {
        hbp__timing rows[20];
        int64_t count = 2 + hbp__rng_below(&rng, 19);
        double base = round % 3 ? 1000 + hbp__rng_below(&rng, 50000) : 0;
        for (int64_t i = 0; i < count; i++) {
            rows[i].bytes = 1000 + (double)i * 100000 + hbp__rng_below(&rng, 100000);
            rows[i].ns = (base + rows[i].bytes / 100) * (.8 + .4 * hbp__rng_below(&rng, 1000) / 1000);
        }
        double latency, bandwidth;
        hbp_status status = hbp__fit_timings(context, rows, count, .875, &latency, &bandwidth);
        if (status < 0) {
            ck_assert_int_eq(status, HBP_E_INVALID); /* noise outweighs the size */
            flat++;
            continue;
        }
        ck_assert_double_ge(latency, 0);
        double least = squared_error(rows, count, .875, latency, bandwidth);
        for (int change = 0; change < 8; change++) {
            double l = latency + (change % 3 - 1) * 10., b = bandwidth * (1 + (change / 3 - 1) * 1e-3);
            if (l >= 0)
                ck_assert_double_ge(squared_error(rows, count, .875, l, b) * (1 + 1e-9), least);
        }
    }
    ck_assert_int_lt(flat, 100);
}
END_TEST

/* 5 us and 2 GB/s of what crosses the bus: twice (n - 1) / n of an all-reduce, (n - 1) / n of the others. */
START_TEST_IN_CONTEXT(own_timings_are_fitted)
{
    hbp_machine *machine = keep(make(context));
    double bytes[6], ns[6];
    hbp_machine_collective found = {.struct_size = sizeof found};
    for (int32_t c = 0; c < HBP_COLLECTIVE_COUNT; c++) {
        for (int i = 0; i < 6; i++) {
            bytes[i] = 1 << (8 + 2 * i);
            ns[i] = 5000 + (c == HBP_COLLECTIVE_ALL_REDUCE ? 2 : 1) * 3 / 4. * bytes[i] / 2;
        }
        OK(context, hbp_machine_fit_collective(context, machine, c, 4, bytes, ns, 6, c ? "test" : NULL));
        ck_assert_int_eq(hbp_machine_get_collective(machine, c, 4, &found), 1);
        ck_assert_double_eq_tol(found.latency_ns, 5000, 1e-3);
        ck_assert_double_eq_tol(found.bytes_per_s, 2e9, 1);
        ck_assert_str_eq(found.source, c ? "test" : "given");
    }
}
END_TEST

START_TEST_IN_CONTEXT(timings_that_tell_nothing_are_refused)
{
    hbp_machine *machine = keep(make(context));
    double bytes[2] = {8, 16}, ns[2] = {10, 9}, same[2] = {8, 8}, bad[2] = {8, 0};
#define UNFIT(text, collective, ranks, b, t, count)                                                          \
    FAILS(context, HBP_E_INVALID, text,                                                                      \
          hbp_machine_fit_collective(context, machine, collective, ranks, b, t, count, "test"))
    UNFIT("the times do not grow with the size", 0, 2, bytes, ns, 2);
    ns[1] = 10;
    UNFIT("the times do not grow with the size", 0, 2, bytes, ns, 2);
    ns[1] = 9;
    UNFIT("2 timings of fewer than two sizes", 0, 2, same, bytes, 2);
    UNFIT("1 timings of fewer than two sizes", 0, 2, bytes, ns, 1);
    UNFIT("0 timings of fewer than two sizes", 0, 2, bytes, ns, 0);
    UNFIT("count is -1", 0, 2, bytes, ns, -1);
    UNFIT("timing 1 is 9 ns for 0 bytes; both must be finite and above 0", 0, 2, bad, ns, 2);
    UNFIT("timing 1 is 0 ns for 16 bytes", 0, 2, bytes, bad, 2);
    UNFIT("collective is 4", 4, 2, bytes, bytes, 2);
    UNFIT("ranks is 1", 0, 1, bytes, bytes, 2);
    UNFIT("bytes is NULL", 0, 2, NULL, ns, 2);
    UNFIT("ns is NULL", 0, 2, bytes, NULL, 2);
    FAILS(context, HBP_E_INVALID, "machine is NULL",
          hbp_machine_fit_collective(context, NULL, 0, 2, bytes, bytes, 2, "test"));
    FAILS(context, HBP_E_INVALID, "the source has 0 characters",
          hbp_machine_fit_collective(context, machine, 0, 2, bytes, bytes, 2, ""));
    ck_assert_int_eq(machine->collective_count, 0);
}
END_TEST

static hbp_status build_once(hbp_context *context, void *user)
{
    hbp_machine_fields f = {.struct_size = sizeof f};
    hbp_machine *machine;
    (void)user;
    hbp_status status = hbp_machine_create(context, &f, &machine);
    for (int32_t i = 0; i < 3 && status == HBP_OK; i++)
        status = set_collective(context, machine, 0, 2 + i, 1, 1, "test");
    if (status == HBP_OK)
        status = hbp_machine_fit_collective(context, machine, 1, 2, (double[]){8, 16}, (double[]){8, 9}, 2,
                                            "test");
    hbp_machine_free(machine);
    return status;
}

START_TEST(failed_allocations_leave_nothing)
{
    failing_sweep(build_once, NULL);
}
END_TEST

TEST_MAIN_WITH("machine_collectives", traps_on, NULL, collectives_are_found_again,
               wrong_collectives_are_refused, spreads_go_with_their_collective,
               the_fit_is_the_least_of_squares, own_timings_are_fitted, timings_that_tell_nothing_are_refused,
               failed_allocations_leave_nothing)
