/* Idle ranks get sequences: random solutions repaired, tiny ones against every assignment. */
#include "boards.h"
#include "keep.h"
#include "solved.h"
#include "stepped.h"

#define STEPS (TEST_SANITIZED ? 400 : 4000)

/* Ranks without sequences in the micro-batches that plans of a solution have. */
static int64_t count_idle(const hbp__step *step, const hbp__step_solution *s)
{
    int64_t ranks = hbp__step_whole(step, s->micro_batches) * step->ranks;
    for (int64_t g = 0; g < s->groups; g++) {
        int64_t members = 0;
        for (int64_t k = 0; k < step->count; k++)
            members += s->group[k] == g;
        ranks -= members ? step->degree[s->degree[g]].degree : 0;
    }
    return ranks;
}

static void copy_solution(const hbp__step *step, const hbp__step_solution *from, hbp__step_solution *to)
{
    ck_assert_int_eq(hbp__step_solution_open(step, from->micro_batches, from->groups, to), HBP_OK);
    memcpy(to->first, from->first, (size_t)(from->micro_batches + 1) * sizeof *to->first);
    memcpy(to->degree, from->degree, (size_t)from->groups * sizeof *to->degree);
    memcpy(to->group, from->group, (size_t)step->count * sizeof *to->group);
    ck_assert_int_eq(hbp__step_solution_price(step, to), HBP_OK);
}

/* Micro-batches with sequences. */
static int64_t count_used(const hbp__step *step, const hbp__step_solution *s)
{
    int64_t used = 0;
    for (int64_t m = 0; m < s->micro_batches; m++) {
        int has = 0;
        for (int64_t k = 0; k < step->count && !has; k++)
            has = s->group[k] >= s->first[m] && s->group[k] < s->first[m + 1];
        used += has;
    }
    return used;
}

/* What is promised of any solution: no rank idle where each could have a sequence of its own, no time lost
 * where sequences are fewer than ranks, no micro-batch of dummies. */
START_TEST(random_solutions_are_repaired)
{
    int64_t full = 0, filled = 0;
    for (int64_t i = 0; i < STEPS; i++) {
        small_step s =
            small_open((uint64_t)i, (int)(i % SMALL_KINDS), 2 << (i / 9 % 4), EXACT_SEQUENCES, 1e300);
        s.options.micro_batch_multiple = i % 4 == 1 ? 1 + (int32_t)(i / 4 % 3) : 0;
        s.options.min_micro_batches = i % 4 == 2 ? 1 + (int32_t)(i / 4 % 7) : 0;
        hbp__step step;
        hbp__step_solution before, after;
        OK(s.context, hbp__step_open(s.context, s.lengths, s.cost, &s.options, &step));
        solved_draw(&step, (uint64_t)i, &before);
        OK(s.context, hbp__step_solution_price(&step, &before));
        copy_solution(&step, &before, &after);
        before.bound_ns = after.bound_ns = 7;
        OK(s.context, hbp__step_spread(&step, &after));
        int64_t idle = count_idle(&step, &before), left = count_idle(&step, &after);
        int64_t whole = hbp__step_whole(&step, after.micro_batches);
        ck_assert_int_le(left, idle);
        ck_assert_int_eq(after.bound_ns, 7);
        ck_assert_int_eq(count_used(&step, &after), hbp__min_i64(whole, step.count));
        int64_t used = count_used(&step, &before);
        if (step.count < step.ranks && used == whole)
            ck_assert_int_le(after.ns, before.ns);
        if (step.count >= step.ranks * whole && step.tokens[0] <= step.degree[0].capacity &&
            step.degree[0].degree == 1) {
            ck_assert_msg(!left, "step %d: %d idle ranks are left of %d", (int)i, (int)left, (int)idle);
            full += idle > 0;
        }
        filled += left < idle;
        if (!idle)
            ck_assert_int_eq(after.ns, before.ns);
        hbp__step_solution_close(&before);
        hbp__step_solution_close(&after);
        hbp__step_close(&step);
        small_close(&s);
    }
    ck_assert_int_gt(full, STEPS / 40);
    ck_assert_int_gt(filled, STEPS / 4);
}
END_TEST

/* Among all plans of least time, one with the fewest idle ranks, nearly always. */
START_TEST(tiny_steps_keep_their_time)
{
    int64_t tried = 0, fewest = 0, longer = 0;
    for (int64_t i = 0; i < STEPS / 4; i++) {
        small_step s = small_open((uint64_t)i, (int)(i % SMALL_KINDS), 2 << (i / 9 % 3), 5, 1e300);
        exact_step e = small_exact(&s);
        exact_plain p = {.step = &e, .best = EXACT_NEVER};
        exact_plain_walk(&p, 0);
        hbp__step step;
        hbp__step_solution solution;
        OK(s.context, hbp__step_open(s.context, s.lengths, s.cost, &s.options, &step));
        OK(s.context, hbp__step_search(&step, &solution));
        ck_assert_int_eq(solution.ns, p.best);
        OK(s.context, hbp__step_spread(&step, &solution));
        int64_t idle = count_idle(&step, &solution);
        ck_assert_int_ge(solution.ns, p.best);
        if (step.count < step.ranks)
            ck_assert_int_eq(solution.ns, p.best);
        if (solution.ns == p.best)
            ck_assert_int_ge(idle, p.idle);
        longer += !p.idle && solution.ns > p.best;
        fewest += idle <= p.idle;
        tried++;
        hbp__step_solution_close(&solution);
        hbp__step_close(&step);
        small_close(&s);
    }
    ck_assert_int_ge(100 * fewest, 99 * tried);
    ck_assert_int_le(200 * longer, tried);
}
END_TEST

/* Where groups have to be placed in domains. */
START_TEST(degrees_that_do_not_nest_are_placed)
{
    for (uint64_t i = 0; i < 60; i++) {
        ground g;
        hbp__step_solution solution;
        ground_open(&g, i, GROUND_UNEVEN, 60);
        ck_assert(!g.step.chain);
        OK(g.step.context, hbp__step_first_fit(&g.step, &solution));
        int64_t idle = count_idle(&g.step, &solution), ns = solution.ns;
        OK(g.step.context, hbp__step_spread(&g.step, &solution));
        int64_t left = count_idle(&g.step, &solution);
        ck_assert_int_le(left, idle);
        if (g.step.count < g.step.ranks)
            ck_assert_int_le(solution.ns, ns);
        if (g.step.count >= g.step.ranks * solution.micro_batches)
            ck_assert_int_eq(left, 0);
        hbp__step_solution_close(&solution);
        ground_close(&g);
    }
}
END_TEST

/* Numbers of micro-batches are reached by splitting, in plans. */
START_TEST(numbers_are_reached_without_padding)
{
    int64_t full = 0;
    for (int64_t i = 0; i < 60; i++) {
        small_step s = small_open((uint64_t)i, (int)(i % SMALL_KINDS), 4, EXACT_SEQUENCES, 1e300);
        int32_t number = 1 + (int32_t)(i % 6);
        s.options.min_micro_batches = s.options.max_micro_batches = number;
        stepped plan = stepped_small(&s);
        if (plan.status < 0) {
            const char *last =
                strstr(hbp_context_message(s.context), "the least number in which a plan was found is ");
            ck_assert_int_eq(plan.status, HBP_E_INFEASIBLE);
            ck_assert_ptr_nonnull(last);
            number = atoi(strrchr(last, ' '));
            ck_assert_int_gt(number, s.options.max_micro_batches);
            s.options.min_micro_batches = s.options.max_micro_batches = number;
            plan = stepped_small(&s);
            ck_assert_int_eq(plan.status, HBP_OK);
        }
        ck_assert_int_eq(plan.micro_batches, number);
        int has_all = s.count >= 4 * number && !s.options.sequence_multiple;
        for (int64_t k = 0; k < s.count; k++)
            has_all &= s.length[k] <= hbp_cost_predict_capacity(s.cost, 1, 0);
        ck_assert(!has_all || !plan.dummies);
        full += has_all;
        small_close(&s);
    }
    ck_assert_int_gt(full, 2);
}
END_TEST

static hbp_status spread_once(hbp_context *context, void *user)
{
    hbp__step step = *(hbp__step *)user;
    hbp__step_solution solution = {.ns = 0};
    step.context = context;
    hbp_status status = hbp__step_first_fit(&step, &solution);
    if (status >= 0)
        status = hbp__step_spread(&step, &solution);
    hbp__step_solution_close(&solution);
    return status;
}

START_TEST(nothing_is_left_behind)
{
    ground g;
    ground_open(&g, 2, SMALL_TIME, 20);
    failing_sweep(spread_once, &g.step);
    ground_close(&g);
}
END_TEST

/* Three micro-batches of six ranks for twelve sequences: those of the second must not take the short ones
 * that the third needs. Groups of two ranks in both leave each three. */
START_TEST_IN_CONTEXT(a_completed_micro_batch_leaves_short_ones_to_the_next)
{
    static const uint32_t length[] = {10, 27127, 585, 1878, 2880, 13231, 37, 18007, 17439, 181, 10159, 7698};
    static const int32_t degree[] = {1, 2};
    static const double latency[] = {0, 0}, per_token[] = {0, 59.24513492593145};
    hbp_cost_terms t = {.struct_size = sizeof t};
    t.ranks = 6;
    t.layers = 8;
    t.ns_per_token = 1184.902698518629;
    t.ns_per_token_squared = .8891231001890648;
    t.recompute_communication = .5;
    t.pack_ns = 2418397.7062356896;
    t.static_bytes = 1e7;
    t.sp_buffer_bytes = 500;
    t.limit_bytes = 8647760082;
    t.degrees = 2;
    t.degree = degree;
    t.sp_latency_ns = latency;
    t.sp_ns_per_token = per_token;
    hbp_cost *cost = NULL;
    hbp_lengths *lengths = NULL;
    MAKES(context, cost, hbp_cost_create_terms(context, &t, &cost));
    MAKES(context, lengths, hbp_lengths_create_u32(context, length, 12, NULL, &lengths));
    hbp_step_options o = {.struct_size = sizeof o, .micro_batch_multiple = 3, .sequence_multiple = 8};
    stepped plan = stepped_plan(context, lengths, cost, &o);
    ck_assert_int_eq(plan.status, HBP_OK);
    ck_assert_int_eq(plan.micro_batches, 3);
    ck_assert_int_eq(plan.dummies, 0);
    ck_assert_int_le(plan.ns, 358200000);
}
END_TEST

TEST_MAIN("spread", random_solutions_are_repaired, tiny_steps_keep_their_time,
          degrees_that_do_not_nest_are_placed, numbers_are_reached_without_padding,
          a_completed_micro_batch_leaves_short_ones_to_the_next, nothing_is_left_behind)
