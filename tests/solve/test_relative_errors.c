#include "solve/relative_errors.h"

#include "base/rng.h"
#include "failing.h"

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The definition: the least of the errors that enough do not exceed. */
static double counted(const double *sorted, int64_t count, int64_t percent)
{
    for (int64_t i = 0; i < count; i++) {
        int64_t within = 0;
        while (within < count && sorted[within] <= sorted[i])
            within++;
        if (within * 100 >= percent * count)
            return sorted[i];
    }
    return -1;
}

START_TEST(quantiles_are_those_of_the_definition)
{
    hbp__memory memory = hbp__memory_default();
    hbp__rng rng = hbp__rng_make(7, 0, 0);
    double error[130];
    for (int64_t count = 1; count < 130; count += 1 + count / 7) {
        hbp__relative_errors e;
        ck_assert(hbp__relative_errors_begin(&memory, count, &e));
        for (int64_t i = 0; i < count; i++) {
            double measured = 1 + hbp__rng_below(&rng, 40), predicted = hbp__rng_below(&rng, 60);
            hbp__relative_errors_add(&e, predicted, measured);
            error[i] = (predicted > measured ? predicted - measured : measured - predicted) / measured;
        }
        qsort(error, (size_t)count, sizeof *error, ascending);
        ck_assert(hbp__relative_errors_sort(&memory, &e));
        for (int64_t percent = 1; percent <= 100; percent++)
            ck_assert(hbp__relative_errors_quantile(&e, percent) == counted(error, count, percent));
        hbp__relative_errors_end(&memory, &e);
    }
}
END_TEST

START_TEST(none_have_no_error)
{
    hbp__memory memory = hbp__memory_default();
    hbp__relative_errors e;
    ck_assert(hbp__relative_errors_begin(&memory, 0, &e));
    ck_assert(hbp__relative_errors_sort(&memory, &e));
    ck_assert(hbp__relative_errors_quantile(&e, 50) == 0);
    hbp__relative_errors_end(&memory, &e);
}
END_TEST

static hbp_status gather(hbp_context *context, void *user)
{
    const hbp__memory *memory = user;
    hbp__relative_errors e;
    (void)context;
    int enough = hbp__relative_errors_begin(memory, 3, &e);
    for (int i = 0; enough && i < 3; i++)
        hbp__relative_errors_add(&e, i, 1);
    enough = enough && hbp__relative_errors_sort(memory, &e);
    ck_assert(!enough || hbp__relative_errors_quantile(&e, 100) == 1);
    hbp__relative_errors_end(memory, &e);
    return enough ? HBP_OK : HBP_E_NO_MEMORY;
}

START_TEST(short_memory_is_told)
{
    failing f = {.left = -1};
    hbp__memory memory = {failing_alloc, failing_resize, failing_release, &f};
    int64_t n = 0;
    for (hbp_status status = HBP_E_NO_MEMORY; status != HBP_OK; n++) {
        f.left = n;
        status = gather(NULL, &memory);
        ck_assert_int_eq(f.live, 0);
    }
    ck_assert_int_gt(n, 2);
}
END_TEST

TEST_MAIN("relative_errors", quantiles_are_those_of_the_definition, none_have_no_error, short_memory_is_told)
