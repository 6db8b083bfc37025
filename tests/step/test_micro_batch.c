/* One micro-batch of some of a step's sequences; tests/step/test_search.c compares with optima. */
#include "failing.h"
#include "small_steps.h"
#include "step/step.h"

typedef struct given {
    int64_t members;
    int64_t member[EXACT_SEQUENCES];
    int64_t tokens[EXACT_SEQUENCES];
    double squares[EXACT_SEQUENCES];
} given;

/* Some of the sequences, with tokens of their own in no order. */
static given draw(const hbp__step *step, hbp__rng *rng)
{
    given g = {.members = 0};
    for (int64_t k = 0; k < step->count; k++)
        if (hbp__rng_below(rng, 2)) {
            g.tokens[g.members] = 1 + hbp__rng_below(rng, (uint64_t)step->tokens[0]);
            g.squares[g.members] = (double)g.tokens[g.members] * (double)g.tokens[g.members];
            g.member[g.members++] = k;
        }
    return g;
}

static void check(const hbp__step *step, const given *g, const hbp__step_solution *s)
{
    int64_t slowest = hbp__step_group_ns(step, 0, (hbp__load){.tokens = 0}), members = 0;
    ck_assert_int_eq(s->micro_batches, 1);
    ck_assert_int_eq(s->first[0], 0);
    ck_assert_int_eq(s->first[1], s->groups);
    ck_assert(hbp__step_place(step, s->degree, s->groups, NULL));
    for (int64_t i = 0; i < s->groups; i++) {
        int64_t tokens = 0;
        double squares = 0;
        for (int64_t k = 0; k < g->members; k++)
            if (s->group[k] == i) {
                tokens += g->tokens[k];
                squares += g->squares[k];
                members++;
            }
        int64_t ns =
            hbp__step_group_ns(step, s->degree[i], (hbp__load){.tokens = tokens, .squares = squares});
        ck_assert_int_lt(ns, INT64_MAX);
        slowest = ns > slowest ? ns : slowest;
    }
    ck_assert_int_eq(members, g->members);
    ck_assert_int_eq(s->ns, slowest);
}

START_TEST(each_member_gets_its_group)
{
    int64_t solved = 0, refused = 0;
    for (uint64_t i = 0; i < 180; i++) {
        small_step s = small_open(i, (int)(i % SMALL_KINDS), i % 2 ? 16 : 8, EXACT_SEQUENCES, 1e300);
        hbp__rng rng = hbp__rng_make(i, 3, 3);
        hbp__step step;
        hbp__step_solution solution = {.ns = 0};
        s.options.min_micro_batches = 4; /* of the step, not of its part */
        s.options.micro_batch_multiple = 2;
        OK(s.context, hbp__step_open(s.context, s.lengths, s.cost, &s.options, &step));
        given g = draw(&step, &rng);
        hbp_status status = !g.members ? HBP_E_INFEASIBLE
                                       : hbp__step_solve_micro_batch(&step, g.member, g.members, g.tokens,
                                                                     g.squares, &solution);
        if (status >= 0) {
            check(&step, &g, &solution);
            solved++;
        } else {
            ck_assert_int_eq(status, HBP_E_INFEASIBLE);
            ck_assert_str_eq(hbp_context_message(s.context), "");
            ck_assert_ptr_null(solution.group);
            refused++;
        }
        hbp__step_solution_close(&solution);
        hbp__step_close(&step);
        small_close(&s);
    }
    ck_assert_int_gt(solved, 60);
    ck_assert_int_gt(refused, 10);
}
END_TEST

/* Without tokens given they are the sequences' own. */
START_TEST(their_own_tokens_are_the_default)
{
    int64_t solved = 0;
    for (uint64_t i = 0; i < 90; i++) {
        small_step s = small_open(i, (int)(i % SMALL_KINDS), i % 2 ? 16 : 8, 12, 1e300);
        hbp__rng rng = hbp__rng_make(i, 4, 4);
        hbp__step step;
        hbp__step_solution one = {.ns = 0}, two = {.ns = 0};
        OK(s.context, hbp__step_open(s.context, s.lengths, s.cost, &s.options, &step));
        given g = draw(&step, &rng);
        for (int64_t k = 0; k < g.members; k++) {
            g.tokens[k] = step.tokens[g.member[k]];
            g.squares[k] = step.squares[g.member[k]];
        }
        if (g.members) {
            hbp_status status =
                hbp__step_solve_micro_batch(&step, g.member, g.members, g.tokens, g.squares, &one);
            ck_assert_int_eq(hbp__step_solve_micro_batch(&step, g.member, g.members, NULL, NULL, &two),
                             status);
            if (status >= 0) {
                check(&step, &g, &two);
                ck_assert_int_eq(one.ns, two.ns);
                ck_assert_mem_eq(one.group, two.group, (size_t)g.members * sizeof *one.group);
                solved++;
            }
        }
        hbp__step_solution_close(&one);
        hbp__step_solution_close(&two);
        hbp__step_close(&step);
        small_close(&s);
    }
    ck_assert_int_gt(solved, 40);
}
END_TEST

/* A sequence given more tokens than any group holds. */
START_TEST(too_many_tokens_are_refused)
{
    small_step s = small_open(1, SMALL_TIME, 8, 4, 1e300);
    hbp__step step;
    hbp__step_solution solution = {.ns = 0};
    OK(s.context, hbp__step_open(s.context, s.lengths, s.cost, &s.options, &step));
    int64_t most = 0;
    for (int32_t j = 0; j < step.degrees; j++)
        most = step.degree[j].capacity > most ? step.degree[j].capacity : most;
    OK(s.context,
       hbp__step_solve_micro_batch(&step, (int64_t[]){0}, 1, &most, (double[]){(double)most}, &solution));
    hbp__step_solution_close(&solution);
    most++;
    ck_assert_int_eq(
        hbp__step_solve_micro_batch(&step, (int64_t[]){0}, 1, &most, (double[]){(double)most}, &solution),
        HBP_E_INFEASIBLE);
    ck_assert_str_eq(hbp_context_message(s.context), "");
    ck_assert_ptr_null(solution.group);
    hbp__step_close(&step);
    small_close(&s);
}
END_TEST

static hbp_status solve_once(hbp_context *context, void *user)
{
    hbp__step step = *(const hbp__step *)user;
    hbp__step_solution solution = {.ns = 0};
    int64_t member[EXACT_SEQUENCES];
    for (int64_t k = 0; k < step.count; k++)
        member[k] = k;
    step.context = context;
    hbp_status status = hbp__step_solve_micro_batch(&step, member, step.count, NULL, NULL, &solution);
    ck_assert_int_eq(status >= 0, solution.group != NULL);
    hbp__step_solution_close(&solution);
    return status;
}

START_TEST(nothing_is_left_behind)
{
    small_step s = small_open(4, SMALL_TIME, 16, EXACT_SEQUENCES, 1e300);
    hbp__step step;
    OK(s.context, hbp__step_open(s.context, s.lengths, s.cost, &s.options, &step));
    ck_assert_int_gt(step.count, 9);
    failing_sweep(solve_once, &step);
    hbp__step_close(&step);
    small_close(&s);
}
END_TEST

/* A cancelled search says so and leaves no solution. */
START_TEST(cancelling_leaves_nothing)
{
    small_step s = small_open(4, SMALL_TIME, 16, EXACT_SEQUENCES, 1e300);
    hbp__step step;
    OK(s.context, hbp__step_open(s.context, s.lengths, s.cost, &s.options, &step));
    failing f;
    int64_t left = 0;
    hbp_context *context = failing_context(&f, cancel_after, &left);
    int64_t live = f.live;
    ck_assert_int_eq(solve_once(context, &step), HBP_E_CANCELLED);
    ck_assert_int_eq(f.live, live);
    hbp_context_free(context);
    hbp__step_close(&step);
    small_close(&s);
}
END_TEST

TEST_MAIN("micro_batch", each_member_gets_its_group, their_own_tokens_are_the_default,
          too_many_tokens_are_refused, nothing_is_left_behind, cancelling_leaves_nothing)
