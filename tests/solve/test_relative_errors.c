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
    hbp_context *context = test_context();
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
        OK(context, hbp__relative_errors_sort(context, &e, "errors"));
        for (int64_t percent = 1; percent <= 100; percent++)
            ck_assert(hbp__relative_errors_quantile(&e, percent) == counted(error, count, percent));
        hbp__relative_errors_end(&memory, &e);
    }
    hbp_context_free(context);
}
END_TEST

START_TEST(none_have_no_error)
{
    hbp_context *context = test_context();
    hbp__memory memory = hbp__memory_default();
    hbp__relative_errors e;
    ck_assert(hbp__relative_errors_begin(&memory, 0, &e));
    OK(context, hbp__relative_errors_sort(context, &e, "errors"));
    ck_assert(hbp__relative_errors_quantile(&e, 50) == 0);
    hbp__relative_errors_end(&memory, &e);
    hbp_context_free(context);
}
END_TEST

static hbp_status gather(hbp_context *context, void *user)
{
    hbp__relative_errors e;
    (void)user;
    hbp_status status =
        hbp__relative_errors_begin(&context->memory, 3, &e) ? HBP_OK : hbp__fail_memory(context, "errors");
    for (int i = 0; status >= 0 && i < 3; i++)
        hbp__relative_errors_add(&e, i, 1);
    if (status >= 0)
        status = hbp__relative_errors_sort(context, &e, "errors");
    ck_assert(status < 0 || hbp__relative_errors_quantile(&e, 100) == 1);
    hbp__relative_errors_end(&context->memory, &e);
    return status;
}

START_TEST(short_memory_is_told)
{
    failing_sweep(gather, NULL);
}
END_TEST

TEST_MAIN("relative_errors", quantiles_are_those_of_the_definition, none_have_no_error, short_memory_is_told)
