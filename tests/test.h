/* What every test file shares: Check, a context, and its suite. */
#ifndef HBP_TESTS_TEST_H
#define HBP_TESTS_TEST_H

#include <check.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hbp/hbp.h"
#include "views.h"

/* Check notes the place of every assertion that holds, a system call each, to say how far a test came that
 * crashes; a sanitizer or a debugger says that, too. */
#define _mark_point(file, line) ((void)0)

/* Nonzero where a sanitizer makes everything several times slower. Tests of very many cases take an eighth
 * of them, of up to 24, which differ in kind, a quarter; with a sanitizer a sixteenth; with HBP_ALL_ROUNDS
 * set (tests/run.sh --long) all, and a quarter. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TEST_SANITIZED 1
#endif
#endif
#ifndef TEST_SANITIZED
#define TEST_SANITIZED 0
#endif
#define TEST_DIVIDED(all, parts) (((all) + (parts)-1) / (parts))
#define TEST_LONG                (getenv("HBP_ALL_ROUNDS") != NULL)
#define TEST_ROUNDS(all)                                                                                     \
    TEST_DIVIDED(all, TEST_SANITIZED ? (TEST_LONG ? 4 : 16) : (TEST_LONG ? 1 : (all) <= 24 ? 4 : 8))
/* All, but with HBP_ALL_ROUNDS unset `few` where a sanitizer is. */
#define TEST_FEW(all, few) (TEST_SANITIZED && !TEST_LONG ? (few) : (all))

/* A fresh context with defaults; the test frees it. */
static inline hbp_context *test_context(void)
{
    hbp_context *context = NULL;
    ck_assert_int_eq(hbp_context_create(NULL, &context), HBP_OK);
    return context;
}

/* Fails with the context's message unless `call` succeeds. */
#define OK(context, call)                                                                                    \
    do {                                                                                                     \
        hbp_status ok_status = (call);                                                                       \
        ck_assert_msg(ok_status >= 0, "%s: %s: %s", #call, hbp_status_name(ok_status),                       \
                      hbp_context_message(context));                                                         \
    } while (0)

/* Fails unless `call` returns `status` and the message contains `text`. */
#define FAILS(context, status, text, call)                                                                   \
    do {                                                                                                     \
        hbp_status fails_status = (call);                                                                    \
        ck_assert_msg(fails_status == (status), "%s: %s instead of %s: %s", #call,                           \
                      hbp_status_name(fails_status), hbp_status_name(status), hbp_context_message(context)); \
        ck_assert_msg(strstr(hbp_context_message(context), (text)) != NULL, "%s: message '%s' lacks '%s'",   \
                      #call, hbp_context_message(context), (text));                                          \
    } while (0)

/* A test function, run for each _i from `first` to before `after`. */
typedef struct test_entry {
    const TTest *test;
    int first, after;
} test_entry;

typedef void test_fixture(void);

/* The suite of `count` functions between `setup` and `teardown` (NULL: nothing), each in a case of its own
 * name, by which Check and the second argument of tests/runner.c choose it. */
static inline Suite *test_suite(const char *name, test_fixture *setup, test_fixture *teardown,
                                const test_entry *entry, size_t count)
{
    Suite *suite = suite_create(name);
    for (size_t i = 0; i < count; i++) {
        TCase *cases = tcase_create(entry[i].test->name);
        tcase_set_timeout(cases, 400);
        tcase_add_checked_fixture(cases, setup, teardown);
        tcase_add_loop_test(cases, entry[i].test, entry[i].first, entry[i].after);
        suite_add_tcase(suite, cases);
    }
    return suite;
}

/* What tests/runner.c calls in a test file: TEST_SUITE is a name of the file's own (tests/CMakeLists.txt). */
#define TEST_SUITE_FUNCTION                                                                                  \
    Suite *TEST_SUITE(void);                                                                                 \
    Suite *TEST_SUITE(void)

/* The suite of a file: its test functions (START_TEST names) between `setup` and `teardown`, ... */
#define TEST_MAIN_WITH(name, setup, teardown, ...)                                                           \
    TEST_SUITE_FUNCTION                                                                                      \
    {                                                                                                        \
        const TTest *tests[] = {__VA_ARGS__};                                                                \
        test_entry entry[sizeof tests / sizeof *tests];                                                      \
        for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)                                            \
            entry[i] = (test_entry){tests[i], 0, 1};                                                         \
        return test_suite(name, setup, teardown, entry, sizeof entry / sizeof *entry);                       \
    }

/* ... the same without a fixture, ... */
#define TEST_MAIN(name, ...) TEST_MAIN_WITH(name, NULL, NULL, __VA_ARGS__)

/* ... and of entries {function, first, after}. */
#define TEST_MAIN_LOOPS(name, setup, teardown, ...)                                                          \
    TEST_SUITE_FUNCTION                                                                                      \
    {                                                                                                        \
        const test_entry entry[] = {__VA_ARGS__};                                                            \
        return test_suite(name, setup, teardown, entry, sizeof entry / sizeof *entry);                       \
    }

#endif
