/* Tiny steps against the oracle's dynamic programming, which shares no code with it. */
#include "boards.h"
#include "keep.h"

/* The shortest without idle ranks as well, where there is one. */
static void check_busy(const hbp__step *step, exact_step e)
{
    hbp__step_solution busy = {.ns = 0};
    OK(step->context, hbp__step_solve_tiny_busy(step, &busy));
    e.no_idle = 1;
    ck_assert_int_eq(busy.first ? busy.ns : EXACT_NEVER, exact_step_ns(&e));
    ck_assert_int_eq(busy.bound_ns, 0);
    hbp__step_solution_close(&busy);
}

START_TEST(tiny_steps_are_solved_exactly)
{
    int64_t solved = 0, never = 0;
    for (uint64_t i = 0; i < 900; i++) {
        static const int32_t ranks[] = {2, 4, 8, 16};
        small_step s = small_open(i, (int)(i % SMALL_KINDS), ranks[i / SMALL_KINDS % 4], 12, 2e5);
        hbp__step step;
        hbp__step_solution solution = {.ns = 0};
        s.options.recompute = i % 5 ? HBP_STEP_RECOMPUTE_AUTO : HBP_STEP_RECOMPUTE_ALL;
        s.options.max_sp = i % 7 ? 0 : 4;
        s.options.micro_batch_multiple = i % 11 == 3 ? 1 + (int32_t)(i / 11 % 3) : 0;
        s.options.min_micro_batches = i % 13 == 4 ? 1 + (int32_t)(i / 13 % 7) : 0;
        s.options.max_micro_batches =
            i % 17 == 5 ? s.options.min_micro_batches + 1 + (int32_t)(i / 17 % 3) : 0;
        if (i % 2)
            small_limit(&s, i / 2);
        hbp_status status = hbp__step_open(s.context, s.lengths, s.cost, &s.options, &step);
        if (status >= 0 && hbp__step_is_tiny(&step)) {
            exact_step e = small_exact(&s);
            OK(s.context, hbp__step_solve_tiny(&step, &solution));
            check_busy(&step, e);
            if (!solution.first) {
                ck_assert_int_eq(exact_step_ns(&e), EXACT_NEVER);
                never++;
                hbp__step_close(&step);
                small_close(&s);
                continue;
            }
            ck_assert_int_eq(solution.ns, exact_step_ns(&e));
            /* Where more micro-batches are asked for, those of dummies alone were not tried. */
            ck_assert_int_eq(solution.bound_ns, hbp__step_whole(&step, 1) == 1 ? solution.ns : 0);
            int64_t ns = solution.ns;
            OK(s.context, hbp__step_solution_price(&step, &solution));
            ck_assert_int_eq(solution.ns, ns);
            hbp__step_solution_close(&solution);
            solved++;
        } else if (status >= 0)
            ck_assert(step.count > 9);
        hbp__step_close(&step);
        small_close(&s);
    }
    ck_assert_int_gt(solved, 500);
    ck_assert_int_gt(never, 3);
}
END_TEST

START_TEST(other_steps_are_not_tiny)
{
    ground g;
    ground_open(&g, 2, SMALL_TIME, 4);
    hbp_step_options *o = &g.step.options;
    ck_assert(hbp__step_is_tiny(&g.step));
    o->min_micro_batches = 2;
    ck_assert(hbp__step_is_tiny(&g.step));
    o->min_micro_batches = 1;
    o->max_micro_batches = 3;
    ck_assert(hbp__step_is_tiny(&g.step));
    o->max_micro_batches = 0;
    o->micro_batch_multiple = 2;
    ck_assert(hbp__step_is_tiny(&g.step));
    o->micro_batch_multiple = 1;
    ck_assert(hbp__step_is_tiny(&g.step));
    g.step.chain = 0;
    ck_assert(!hbp__step_is_tiny(&g.step));
    ground_close(&g);
    ground_open(&g, 2, GROUND_LONG, 4);
    ck_assert(!hbp__step_is_tiny(&g.step));
    ground_close(&g);
}
END_TEST

/* Times past 2^63 ns are the most there are. */
START_TEST_IN_CONTEXT(times_may_overflow)
{
    static const int32_t degree = 1;
    static const double zero = 0;
    hbp_cost_terms t = {.struct_size = sizeof t};
    t.ranks = t.domain_ranks = t.layers = t.degrees = 1;
    t.ns_per_token_squared = 1e18;
    t.activation_bytes = t.recomputed_bytes = 1;
    t.limit_bytes = 1000000;
    t.degree = &degree;
    t.sp_latency_ns = t.sp_ns_per_token = &zero;
    hbp_cost *cost = NULL;
    MAKES(context, cost, hbp_cost_create_terms(context, &t, &cost));
    for (int64_t count = 1; count <= 3; count++)
        for (uint32_t length = 2; length <= 20; length += 9) {
            uint32_t lengths_of[3] = {length, length, length};
            hbp_lengths *lengths = NULL;
            hbp__step step;
            hbp__step_solution solution = {.ns = 0};
            OK(context, hbp_lengths_create_u32(context, lengths_of, count, NULL, &lengths));
            OK(context, hbp__step_open(context, lengths, cost, NULL, &step));
            ck_assert(hbp__step_is_tiny(&step));
            OK(context, hbp__step_solve_tiny(&step, &solution));
            double ns = (double)(length * length) * 1e18 * (double)count;
            ck_assert_int_eq(solution.ns, ns < 9.2e18 ? (int64_t)ns : INT64_MAX);
            hbp__step_solution_close(&solution);
            hbp__step_close(&step);
            hbp_lengths_free(lengths);
        }
}
END_TEST

static hbp_status solve_once(hbp_context *context, void *user)
{
    hbp__step step = *(const hbp__step *)user;
    hbp__step_solution solution = {.ns = 0};
    step.context = context;
    hbp_status status = hbp__step_solve_tiny(&step, &solution);
    hbp__step_solution_close(&solution);
    return status;
}

START_TEST(nothing_is_left_behind)
{
    ground g;
    ground_open(&g, 2, SMALL_TIME, 4);
    failing_sweep(solve_once, &g.step);
    ck_assert_int_eq(cancel_sweep(solve_once, &g.step), 1);
    ground_close(&g);
}
END_TEST

TEST_MAIN("tiny", tiny_steps_are_solved_exactly, other_steps_are_not_tiny, times_may_overflow,
          nothing_is_left_behind)
