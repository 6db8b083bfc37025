#include "base/methods.h"
#include "epoch/batches.h"
#include "epoch/price.h"
#include "keep.h"
#include "planned.h"
#include "step/step.h"

/* An epoch of `count` equal samples. */
static hbp__epoch open_epoch(hbp_context *context, hbp_cost *cost, int64_t count, int32_t effort)
{
    const int64_t length = 1000;
    hbp_lengths *lengths = NULL;
    OK(context, hbp_lengths_create_histogram(context, &length, &count, 1, &lengths));
    return (hbp__epoch){.context = context,
                        .lengths = keep(lengths),
                        .cost = cost,
                        .bending = cost,
                        .step_method = HBP__STEP_SEARCH,
                        .options = {.effort = effort}};
}

START_TEST_IN_CONTEXT(few_steps_are_searched_for_and_many_built)
{
    hbp_cost *cost = keep(test_cost(context));
    hbp__epoch few = open_epoch(context, cost, 1000, 0), many = open_epoch(context, cost, 1000000, 0);
    ck_assert(!hbp__price_is_dear(&few, 1000000));
    ck_assert_int_eq(hbp__price_of_steps(&few, 1000000), hbp__price_of_search(&few, 1000000));
    ck_assert_int_eq(hbp__price_choose(&few, 1, 1000, 0), HBP__BATCHES_SEARCHED);
    ck_assert(hbp__price_is_dear(&many, 1000000));
    ck_assert_int_lt(hbp__price_of_steps(&many, 1000000), hbp__price_of_search(&many, 1000000) / 5);
    ck_assert_int_eq(hbp__price_choose(&many, 1000, 1000000, 0), HBP__BATCHES_BUILT);
    /* Strict options are searched for whatever it takes. */
    many.options.max_samples = 8;
    ck_assert(!hbp__price_is_dear(&many, 1000000));
    ck_assert_int_eq(hbp__price_choose(&many, 1000, 1000000, 0), HBP__BATCHES_SEARCHED);
}
END_TEST

/* A search goes on for as long as a step's time is worth it, so that the same samples are dearer where they
 * take longer. */
START_TEST_IN_CONTEXT(long_steps_are_dearer)
{
    const int64_t second = 1000000000;
    hbp_cost *cost = keep(test_cost(context));
    hbp__epoch epoch = open_epoch(context, cost, 10000, 0);
    ck_assert(!hbp__step_may_go_on(1000, 1e9) && hbp__step_may_go_on(1000, 60e9));
    ck_assert_int_eq(hbp__price_choose(&epoch, 10, 10000, 10 * second), HBP__BATCHES_SEARCHED);
    ck_assert_int_eq(hbp__price_choose(&epoch, 10, 10000, 600 * second), HBP__BATCHES_BUILT);
}
END_TEST

/* More effort does all that less does: it builds as well, and searches with no less effort. */
START_TEST_IN_CONTEXT(more_effort_is_never_less)
{
    hbp_cost *cost = keep(test_cost(context));
    for (int64_t steps = 1; steps <= 100000; steps *= 10) {
        int32_t before = 0;
        for (int32_t effort = 0; effort <= 9; effort++) {
            hbp__epoch epoch = open_epoch(context, cost, steps * 100, effort);
            const int32_t how = hbp__price_choose(&epoch, steps, steps * 100, 0);
            const int32_t searched = how == HBP__BATCHES_BUILT ? 0 : epoch.options.effort;
            ck_assert(effort > 1 || how != HBP__BATCHES_BOTH);
            ck_assert(effort <= 1 || how != HBP__BATCHES_SEARCHED);
            ck_assert_int_le(searched, effort > 1 ? effort : 1);
            ck_assert_int_ge(searched, before);
            before = searched;
        }
    }
}
END_TEST

TEST_MAIN("price", few_steps_are_searched_for_and_many_built, long_steps_are_dearer,
          more_effort_is_never_less)
