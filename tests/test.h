/* What every test program shares: Check, a context, and a main. */
#ifndef HBP_TESTS_TEST_H
#define HBP_TESTS_TEST_H

#include <check.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hbp/hbp.h"
#include "views.h"

/* Nonzero where a sanitizer makes everything several times slower: tests of very many cases then take fewer
 * of them, the whole being run without. */
#if defined(__SANITIZE_ADDRESS__)
#define TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TEST_SANITIZED 1
#endif
#endif
#ifndef TEST_SANITIZED
#define TEST_SANITIZED 0
#endif
#define TEST_ROUNDS(all) (TEST_SANITIZED ? ((all) + 3) / 4 : (all))

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

/* Runs the suite; returns the program's exit status. */
static inline int test_run(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Runs the test functions (START_TEST names) given as arguments, between `setup` and `teardown`
 * (NULL: nothing); main of a test program. */
#define TEST_MAIN_WITH(name, setup, teardown, ...)                                                           \
    int main(void)                                                                                           \
    {                                                                                                        \
        Suite *suite = suite_create(name);                                                                   \
        TCase *cases = tcase_create(name);                                                                   \
        tcase_set_timeout(cases, 400);                                                                       \
        tcase_add_checked_fixture(cases, setup, teardown);                                                   \
        const TTest *tests[] = {__VA_ARGS__};                                                                \
        for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)                                            \
            tcase_add_test(cases, tests[i]);                                                                 \
        suite_add_tcase(suite, cases);                                                                       \
        return test_run(suite);                                                                              \
    }

/* The same without a fixture. */
#define TEST_MAIN(name, ...) TEST_MAIN_WITH(name, NULL, NULL, __VA_ARGS__)

#endif
