/* What a solution costs. */
#include "failing.h"
#include "solved.h"

typedef struct opened {
    small_step small;
    hbp__step step;
} opened;

static void open_small(opened *o, uint64_t seed, int kind, int32_t multiple)
{
    o->small = small_open(seed, kind, seed % 2 ? 16 : 8, EXACT_SEQUENCES, 1e99);
    o->small.options.micro_batch_multiple = multiple;
    OK(o->small.context,
       hbp__step_open(o->small.context, o->small.lengths, o->small.cost, &o->small.options, &o->step));
}

static void close_small(opened *o)
{
    hbp__step_close(&o->step);
    small_close(&o->small);
}

/* The sum over micro-batches of the slowest group, by the public predictions alone. */
static int64_t price(const opened *o, const hbp__step_solution *s)
{
    exact_step e = small_exact(&o->small);
    int64_t sum = 0, all = exact_round_up(s->micro_batches, o->small.options.micro_batch_multiple);
    for (int64_t m = 0; m < s->micro_batches; m++) {
        int64_t slowest = e.dummy_ns;
        for (int64_t g = s->first[m]; g < s->first[m + 1]; g++) {
            int64_t tokens = 0;
            double squares = 0;
            for (int64_t i = 0; i < o->step.count; i++)
                if (s->group[i] == g) {
                    tokens += o->step.tokens[i];
                    squares += o->step.squares[i];
                }
            slowest = exact_max(slowest, exact_group_ns(&e, s->degree[g], tokens, squares));
        }
        sum += slowest;
    }
    return sum + (all - s->micro_batches) * e.dummy_ns;
}

START_TEST(prices_are_those_of_the_cost)
{
    for (uint64_t i = 0; i < 270; i++) {
        opened o;
        hbp__step_solution solution;
        open_small(&o, i, (int)(i % SMALL_KINDS), (int32_t)(i / 9 % 4));
        solved_draw(&o.step, i, &solution);
        OK(o.small.context, hbp__step_solution_price(&o.step, &solution));
        ck_assert_int_eq(solution.ns, price(&o, &solution));
        ck_assert_int_eq(solution.bound_ns, 0);
        ck_assert_int_ne(solution.complete, 0);
        hbp__step_solution_close(&solution);
        hbp__step_solution_close(&solution);
        close_small(&o);
    }
}
END_TEST

START_TEST(mistakes_of_a_planner_are_found)
{
    opened o;
    hbp__step_solution s;
    open_small(&o, 25, SMALL_MEMORY, 1);
    ck_assert_int_gt(o.step.count, 3);
    hbp_context *context = o.small.context;
    int32_t widest = o.step.degrees - 1;
    int64_t all = o.step.count;
    /* All in one group of the whole machine: too many tokens. */
    ck_assert_int_gt(o.step.total_tokens, o.step.degree[widest].capacity);
    OK(context, hbp__step_solution_open(&o.step, 1, 1, &s));
    s.first[1] = 1;
    s.degree[0] = widest;
    FAILS(context, HBP_E_INTERNAL, "a group of micro-batch 0 does not fit",
          hbp__step_solution_price(&o.step, &s));
    hbp__step_solution_close(&s);
    /* A micro-batch each, two groups of the whole machine in the last. */
    OK(context, hbp__step_solution_open(&o.step, all, all + 1, &s));
    for (int64_t i = 0; i < all; i++) {
        s.first[i + 1] = i + 1;
        s.degree[i] = widest;
        s.group[i] = i;
    }
    OK(context, hbp__step_solution_price(&o.step, &s));
    s.first[all] = all + 1;
    s.degree[all] = 0;
    FAILS(context, HBP_E_INTERNAL, "do not fit 16 ranks", hbp__step_solution_price(&o.step, &s));
    s.degree[all - 1] = widest - 1;
    OK(context, hbp__step_solution_price(&o.step, &s));
    /* In no group. */
    s.group[2] = -1;
    FAILS(context, HBP_E_INTERNAL, "sequence 2 of the step is in no group",
          hbp__step_solution_price(&o.step, &s));
    s.group[2] = all + 1;
    FAILS(context, HBP_E_INTERNAL, "sequence 2 of the step is in no group",
          hbp__step_solution_price(&o.step, &s));
    hbp__step_solution_close(&s);
    close_small(&o);
}
END_TEST

static hbp_status price_once(hbp_context *context, void *user)
{
    opened o = *(opened *)user;
    hbp__step_solution s;
    o.step.context = context;
    hbp_status status = hbp__step_solution_open(&o.step, o.step.count, o.step.count, &s);
    for (int64_t i = 0; i < o.step.count && status == HBP_OK; i++) {
        s.first[i + 1] = i + 1;
        s.degree[i] = o.step.degrees - 1;
        s.group[i] = i;
    }
    if (status == HBP_OK)
        status = hbp__step_solution_price(&o.step, &s);
    hbp__step_solution_close(&s);
    return status;
}

START_TEST(nothing_is_left_behind)
{
    opened o;
    hbp__step_solution none = {.ns = 0};
    hbp__step_solution_close(&none);
    open_small(&o, 3, SMALL_TIED, 1);
    failing_sweep(price_once, &o);
    close_small(&o);
}
END_TEST

TEST_MAIN("solution", prices_are_those_of_the_cost, mistakes_of_a_planner_are_found, nothing_is_left_behind)
