/* The program of a layer: runs the suites of its test files, or those of one file, or one function of it.
 * usage: LAYER_tests [FILE [FUNCTION]]      as in step_tests test_search options_are_respected */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "suites.h" /* TEST_SUITES(X): X(test_a) X(test_b) ..., the program's test files (tests/CMakeLists.txt) */

#define DECLARE(file) Suite *suite_of_##file(void);
TEST_SUITES(DECLARE)

static const struct {
    const char *file;
    Suite *(*suite)(void);
} suites[] = {
#define ENTRY(file) {#file, suite_of_##file},
    TEST_SUITES(ENTRY)};

int main(int argc, char **argv)
{
    SRunner *runner = srunner_create(NULL);
    for (size_t i = 0; i < sizeof suites / sizeof *suites; i++)
        if (argc < 2 || !strcmp(argv[1], suites[i].file))
            srunner_add_suite(runner, suites[i].suite());
    srunner_run(runner, NULL, argc > 2 ? argv[2] : NULL, CK_ENV); /* NULL: what CK_RUN_CASE says */
    int run = srunner_ntests_run(runner), failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    if (!run)
        fprintf(stderr, "no test: usage: %s [FILE [FUNCTION]]\n", argv[0]);
    return run && !failed ? EXIT_SUCCESS : EXIT_FAILURE;
}
