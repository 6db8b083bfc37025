/* The plainest plan there is. */
#include "failing.h"
#include "small_steps.h"
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

TEST_MAIN("first_fit", the_first_group_that_holds_it, nothing_is_left_behind)
