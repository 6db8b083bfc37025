/* The plainest plan there is. */
#include "failing.h"
#include "small_steps.h"
#include "step/arrange.h"
#include "step/builder.h"

/* Each sequence is in the first group with room for it when its turn comes, and a new group is of the least
 * degree that holds what it begins with. */
START_TEST(the_first_group_that_holds_it)
{
    for (uint64_t i = 0; i < 90; i++) {
        small_step s = small_open(i, (int)(i % SMALL_KINDS), i % 2 ? 16 : 8, EXACT_SEQUENCES, 1e99);
        hbp__step step;
        hbp__step_solution solution;
        int64_t left[EXACT_SEQUENCES], groups = 0;
        OK(s.context, hbp__step_open(s.context, s.lengths, s.cost, &s.options, &step));
        OK(s.context, hbp__step_first_fit(&step, &solution));
        for (int64_t k = 0; k < step.count; k++) {
            int64_t g = solution.group[k], first = 0;
            while (first < groups && left[first] < step.tokens[k])
                first++;
            ck_assert_int_eq(g, first);
            if (g == groups) {
                int32_t j = solution.degree[g];
                left[groups++] = step.degree[j].capacity;
                ck_assert(!j || step.degree[j - 1].capacity < step.tokens[k]);
            }
            left[g] -= step.tokens[k];
            ck_assert_int_ge(left[g], 0);
        }
        ck_assert_int_eq(solution.groups, groups);
        int64_t ns = solution.ns;
        OK(s.context, hbp__step_solution_price(&step, &solution));
        ck_assert_int_eq(solution.ns, ns);
        hbp__step_solution_close(&solution);
        hbp__step_close(&step);
        small_close(&s);
    }
}
END_TEST

/* Long sequences pass over all groups that the short ones keep open, which takes the square of them. */
START_TEST(a_request_to_cancel_ends_it)
{
    enum { COUNT = 20000 };
    static uint32_t length[COUNT];
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(1, 0, 0);
    hbp_cost *cost = small_cost(context, &rng, SMALL_MEMORY, 8);
    hbp_lengths *lengths = NULL;
    hbp_step_options options = {.struct_size = sizeof options};
    hbp__step step;
    hbp__step_solution solution = {.ns = 0};
    for (int64_t i = 0; i < COUNT; i++)
        length[i] = i % 2 ? 1 + hbp__rng_below(&rng, 3000)
                          : (uint32_t)(hbp_cost_predict_capacity(cost, 1, 0) * 3 / 5 + i % 97);
    OK(context, hbp_lengths_create_u32(context, length, COUNT, NULL, &lengths));
    OK(context, hbp__step_open(context, lengths, cost, &options, &step));
    hbp_context_cancel(context);
    ck_assert_int_eq(hbp__step_first_fit(&step, &solution), HBP_E_CANCELLED);
    hbp__step_solution_close(&solution);
    hbp_context_cancel(context);
    ck_assert_int_eq(hbp__step_arrange_degree(&step, 0, 9, &solution), HBP_E_CANCELLED);
    hbp__step_solution_close(&solution);
    hbp__step_close(&step);
    hbp_lengths_free(lengths);
    hbp_cost_free(cost);
    hbp_context_free(context);
}
END_TEST

static hbp_status fit_once(hbp_context *context, void *user)
{
    hbp__step step = *(const hbp__step *)user;
    hbp__step_solution solution = {.ns = 0};
    step.context = context;
    hbp_status status = hbp__step_first_fit(&step, &solution);
    hbp__step_solution_close(&solution);
    return status;
}

START_TEST(nothing_is_left_behind)
{
    small_step s = small_open(1, SMALL_TIME, 8, EXACT_SEQUENCES, 1e99);
    hbp__step step;
    OK(s.context, hbp__step_open(s.context, s.lengths, s.cost, &s.options, &step));
    failing_sweep(fit_once, &step);
    hbp__step_close(&step);
    small_close(&s);
}
END_TEST

TEST_MAIN("first_fit", the_first_group_that_holds_it, a_request_to_cancel_ends_it, nothing_is_left_behind)
