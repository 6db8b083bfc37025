/* The plainest plan there is. */
#include "failing.h"
#include "keep.h"
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
START_TEST_IN_CONTEXT(a_request_to_cancel_ends_it)
{
    enum { COUNT = 20000 };
    static uint32_t length[COUNT];
    hbp__rng rng = hbp__rng_make(1, 0, 0);
    hbp_cost *cost = keep(small_cost(context, &rng, SMALL_MEMORY, 8));
    hbp_lengths *lengths = NULL;
    hbp_step_options options = {.struct_size = sizeof options};
    hbp__step step;
    hbp__step_solution solution = {.ns = 0};
    for (int64_t i = 0; i < COUNT; i++)
        length[i] = i % 2 ? 1 + hbp__rng_below(&rng, 3000)
                          : (uint32_t)(hbp_cost_predict_capacity(cost, 1, 0) * 3 / 5 + i % 97);
    MAKES(context, lengths, hbp_lengths_create_u32(context, length, COUNT, NULL, &lengths));
    OK(context, hbp__step_open(context, lengths, cost, &options, &step));
    hbp_context_cancel(context);
    ck_assert_int_eq(hbp__step_first_fit(&step, &solution), HBP_E_CANCELLED);
    hbp__step_solution_close(&solution);
    hbp_context_cancel(context);
    ck_assert_int_eq(hbp__step_arrange_degree(&step, 0, 9, &solution), HBP_E_CANCELLED);
    hbp__step_solution_close(&solution);
    hbp__step_close(&step);
}
END_TEST

enum { MANY = 3000 };

/* The first group with room, by looking at all. */
static void check_first_fit(const hbp__step *step, const hbp__step_solution *solution)
{
    int64_t left[MANY], room[MANY], groups = 0;
    for (int64_t k = 0; k < step->count; k++) {
        int64_t g = 0;
        while (g < groups && (left[g] < step->degree[solution->degree[g]].tokens[k] || !room[g]))
            g++;
        ck_assert_int_eq(solution->group[k], g);
        if (g == groups) {
            left[groups] = step->degree[solution->degree[g]].capacity;
            room[groups++] = step->most_samples;
        }
        left[g] -= step->degree[solution->degree[g]].tokens[k];
        room[g]--;
    }
    ck_assert_int_eq(solution->groups, groups);
    ck_assert_int_gt(groups, MANY / 5);
}

/* The fullest pack of degree 0 with room, the first of such, by looking at all. */
static void check_best_fit(const hbp__step *step, const hbp__step_solution *solution)
{
    int64_t left[MANY], room[MANY], group[MANY], packs = 0;
    for (int64_t k = 0; k < step->count; k++) {
        int64_t size = step->degree[0].tokens[k], best = packs;
        for (int64_t p = 0; p < packs; p++)
            if (left[p] >= size && room[p] && (best == packs || left[p] < left[best]))
                best = p;
        if (best == packs) {
            left[packs] = step->degree[0].capacity;
            room[packs] = step->most_samples;
            group[packs++] = solution->group[k];
        }
        left[best] -= size;
        room[best]--;
        ck_assert_int_eq(solution->group[k], group[best]);
    }
    ck_assert_int_eq(solution->groups, packs);
    ck_assert_int_gt(packs, MANY / 5);
}

/* More groups than fit a block, or the first trees. */
START_TEST(many_groups_are_found_as_by_looking_at_all)
{
    for (uint64_t trial = 0; trial < 6; trial++) {
        static uint32_t length[MANY];
        hbp_context *context = test_context();
        hbp__rng rng = hbp__rng_make(trial, 5, 0);
        hbp_cost *cost = small_cost(context, &rng, SMALL_MEMORY, 8);
        hbp_lengths *lengths = NULL;
        hbp_step_options options = {.struct_size = sizeof options,
                                    .recompute = HBP_STEP_RECOMPUTE_NONE,
                                    .max_samples = trial % 2 ? 3 : 0};
        hbp__step step;
        hbp__step_solution solution = {.ns = 0};
        int64_t capacity = hbp_cost_predict_capacity(cost, 1, 0);
        for (int64_t i = 0; i < MANY; i++)
            length[i] = 1 + hbp__rng_below(&rng, (uint64_t)(i % 3 ? capacity * 4 / 5 : capacity / 40));
        OK(context, hbp_lengths_create_u32(context, length, MANY, NULL, &lengths));
        OK(context, hbp__step_open(context, lengths, cost, &options, &step));
        OK(context, hbp__step_first_fit(&step, &solution));
        check_first_fit(&step, &solution);
        hbp__step_solution_close(&solution);
        OK(context, hbp__step_arrange_degree(&step, 0, 10, &solution));
        check_best_fit(&step, &solution);
        hbp__step_solution_close(&solution);
        hbp__step_close(&step);
        hbp_lengths_free(lengths);
        hbp_cost_free(cost);
        hbp_context_free(context);
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

TEST_MAIN("first_fit", the_first_group_that_holds_it, many_groups_are_found_as_by_looking_at_all,
          a_request_to_cancel_ends_it, nothing_is_left_behind)
