/* The search against exact optima, and its options. */
#include "base/methods.h"
#include "costs.h"
#include "exact_micro_batch.h"
#include "step/step.h"
#include "stepped.h"

/* Steps of a loop of the tests below; together 200. */
#define CHUNKS (TEST_SANITIZED ? 2 : TEST_LONG ? 8 : 4)
#define CHUNK  25

/* The i-th of the 200; one in twenty is as large as the exact optimum can bear. */
static small_step open_step(int64_t i)
{
    return small_open((uint64_t)i, (int)(i / 2 % SMALL_KINDS), i % 2 ? 16 : 8, EXACT_SEQUENCES,
                      i % 20 == 19 ? 4.4e7 : 5e6);
}

/* Options that change the problem, drawn by `draw`. */
static void vary(small_step *s, int64_t draw)
{
    hbp_step_options *o = &s->options;
    o->micro_batch_multiple = draw % 5 == 1 ? 2 : 0;
    o->max_micro_batches = draw % 7 == 2 ? 2 : 0;
    o->min_micro_batches = draw % 7 == 3 ? 3 : 0;
    o->recompute = draw % 3 == 0 ? 1 + (int32_t)(draw / 3 % 2) : 0;
    o->min_sp = draw % 11 == 5 ? 2 : 0;
    o->max_sp = draw % 13 == 6 ? 4 : 0;
}

/* The dynamic programme against every assignment. */
START_TEST(the_oracle_is_exact)
{
    int64_t tried = 0, never = 0;
    for (int64_t i = 0; i < 270; i++) {
        small_step s = small_open((uint64_t)i, (int)(i % SMALL_KINDS), 2 << (i / 9 % 3), 6, 5e6);
        vary(&s, i);
        exact_step e = small_exact(&s);
        e.whole_padding = i % 4 == 1;
        e.no_idle = i % 4 == 3;
        if (e.count <= 5 || (e.count == 6 && e.ranks < 8)) {
            int64_t ns = exact_step_ns(&e);
            ck_assert_msg(ns == exact_step_plain_ns(&e), "step %d: %lld ns, plainly %lld", (int)i,
                          (long long)ns, (long long)exact_step_plain_ns(&e));
            tried++;
            never += ns == EXACT_NEVER;
        }
        small_close(&s);
    }
    ck_assert_int_gt(tried, 200);
    ck_assert_int_gt(never, 5);
    ck_assert_int_lt(never, tried / 2);
}
END_TEST

/* Bin completion against the dynamic programme. */
START_TEST(the_oracle_of_one_micro_batch_is_exact)
{
    int64_t fit = 0;
    for (int64_t i = 0; i < 270; i++) {
        small_step s = small_open((uint64_t)i, (int)(i % SMALL_KINDS), i % 2 ? 16 : 8, 10, 2e5);
        vary(&s, i);
        s.options.max_micro_batches = 1;
        s.options.min_micro_batches = s.options.micro_batch_multiple = 0;
        exact_step e = small_exact(&s);
        int64_t ns = exact_step_ns(&e);
        ck_assert_msg(ns == exact_micro_batch_ns(&e), "step %d: %lld ns, by bins %lld", (int)i, (long long)ns,
                      (long long)exact_micro_batch_ns(&e));
        fit += ns != EXACT_NEVER;
        small_close(&s);
    }
    ck_assert_int_gt(fit, 50);
}
END_TEST

/* Counts a plan half a per cent or more above the optimum; none is below it, none far above. */
static void count_miss(int64_t i, int64_t ns, int64_t best, int64_t *missed)
{
    ck_assert_msg(ns >= best && ns <= best + best / 20, "step %d: %lld ns, the optimum is %lld", (int)i,
                  (long long)ns, (long long)best);
    *missed += ns > best + best / 200;
}

/* Never below the optimum, hardly ever half a per cent above, and the bound never above it. */
START_TEST(plans_are_near_the_optimum)
{
    int64_t missed = 0;
    for (int64_t i = _i * CHUNK; i < (_i + 1) * CHUNK; i++) {
        small_step s = open_step(i);
        exact_step e = small_exact(&s);
        int64_t best = exact_step_ns(&e);
        stepped plan = stepped_small(&s);
        ck_assert_msg(plan.status == HBP_OK, "step %d: %s", (int)i, hbp_context_message(s.context));
        count_miss(i, plan.ns, best, &missed);
        ck_assert_msg(plan.bound_ns <= best, "step %d: the bound is %lld ns, above the optimum, %lld", (int)i,
                      (long long)plan.bound_ns, (long long)best);
        ck_assert_int_ne(plan.complete, 0);
        small_close(&s);
    }
    ck_assert_int_le(missed, 3);
}
END_TEST

/* Other effort, the same promises. */
START_TEST(more_effort_is_never_slower)
{
    for (int64_t i = _i * CHUNK; i < (_i + 1) * CHUNK; i += TEST_LONG ? 3 : 7) {
        small_step s = open_step(i);
        vary(&s, i);
        s.options.max_micro_batches = 0;
        stepped last = stepped_small(&s), next;
        for (int32_t effort = 2; effort <= 3 && last.status == HBP_OK; effort++, last = next) {
            s.options.effort = effort;
            next = stepped_small(&s);
            ck_assert_int_eq(next.status, HBP_OK);
            ck_assert_msg(next.ns <= last.ns, "step %d: effort %d takes %lld ns, the one below %lld", (int)i,
                          (int)effort, (long long)next.ns, (long long)last.ns);
        }
        small_close(&s);
    }
}
END_TEST

/* With options as well plans are near the optimum. Where a limit on micro-batches leaves hardly a way to pack
 * them, the search may miss it; not often. */
START_TEST(options_are_respected)
{
    int64_t planned = 0, missed = 0, far = 0;
    for (int64_t i = 0; i < 270; i++) {
        small_step s = small_open((uint64_t)i, (int)(i % SMALL_KINDS), i / 9 % 2 ? 16 : 8, 14, 1e5);
        vary(&s, i + i / 9);
        exact_step e = small_exact(&s);
        int64_t best = exact_step_ns(&e);
        stepped plan = stepped_small(&s);
        if (plan.status < 0)
            ck_assert_msg(plan.status == HBP_E_INFEASIBLE, "step %d: %s: %s", (int)i,
                          hbp_status_name(plan.status), hbp_context_message(s.context));
        else {
            ck_assert_msg(plan.ns >= best && plan.bound_ns <= best,
                          "step %d: plan %lld ns, optimum %lld, bound %lld", (int)i, (long long)plan.ns,
                          (long long)best, (long long)plan.bound_ns);
            count_miss(i, plan.ns, best, &far);
        }
        planned += plan.status >= 0;
        missed += plan.status < 0 && best != EXACT_NEVER;
        small_close(&s);
    }
    ck_assert_int_gt(planned, 150);
    ck_assert_int_le(missed, 3);
    ck_assert_int_le(far, 7);
}
END_TEST

/* One micro-batch of up to 18 different sequences. */
START_TEST(a_single_micro_batch_is_near_the_optimum)
{
    int64_t missed = 0;
    for (int64_t i = 0; i < 36; i++) {
        small_step s =
            small_open((uint64_t)i, i % 4 / 2 ? SMALL_LATENCY : SMALL_TIME, i % 2 ? 16 : 8, 18, 4e8);
        s.options.max_micro_batches = 1;
        exact_step e = small_exact(&s);
        int64_t best = exact_micro_batch_ns(&e);
        stepped plan = stepped_small(&s);
        if (best == EXACT_NEVER)
            ck_assert_int_eq(plan.status, HBP_E_INFEASIBLE);
        else {
            ck_assert_msg(plan.status == HBP_OK, "step %d: %s", (int)i, hbp_context_message(s.context));
            ck_assert_int_eq(plan.micro_batches, 1);
            count_miss(i, plan.ns, best, &missed);
            ck_assert_int_le(plan.bound_ns, best);
        }
        small_close(&s);
    }
    ck_assert_int_le(missed, 3);
}
END_TEST

/* The exact problem of one micro-batch of some of a step's sequences, with tokens of their own or not. */
static exact_step exact_members(const small_step *s, const hbp__step *step, const int64_t *member,
                                int64_t members, const int64_t *tokens, const double *squares)
{
    exact_step e = small_exact(s);
    e.count = e.types = 0;
    e.options.max_micro_batches = 1;
    e.options.min_micro_batches = e.options.micro_batch_multiple = 0;
    for (int64_t i = 0; i < members; i++)
        exact_add(&e, tokens ? tokens[i] : step->tokens[member[i]],
                  squares ? squares[i] : step->squares[member[i]]);
    exact_list_types(&e);
    return e;
}

/* The makespan of a solution for these members alone, which it must hold, each once. */
static int64_t makespan(const exact_step *e, const hbp__step *step, const hbp__step_solution *solution,
                        const int64_t *member, int64_t members, const int64_t *tokens, const double *squares)
{
    int64_t slowest = e->dummy_ns, ranks = 0;
    ck_assert_int_eq(solution->micro_batches, 1);
    ck_assert_int_eq(solution->first[0], 0);
    ck_assert_int_eq(solution->first[1], solution->groups);
    for (int64_t i = 0; i < members; i++)
        ck_assert(solution->group[i] >= 0 && solution->group[i] < solution->groups);
    for (int64_t g = 0; g < solution->groups; g++) {
        int64_t sum = 0;
        double sum_squares = 0;
        for (int64_t i = 0; i < members; i++)
            if (solution->group[i] == g) {
                sum += tokens ? tokens[i] : step->tokens[member[i]];
                sum_squares += squares ? squares[i] : step->squares[member[i]];
            }
        ranks += step->degree[solution->degree[g]].degree;
        slowest = exact_max(slowest, exact_group_ns(e, solution->degree[g], sum, sum_squares));
    }
    ck_assert_int_le(ranks, step->ranks);
    return slowest;
}

/* One micro-batch of every second or third sequence, as they are and rounded up to buckets. */
START_TEST(one_micro_batch_of_some_is_near_the_optimum)
{
    int64_t solved = 0, missed = 0, far = 0;
    for (int64_t i = 0; i < 180; i++) {
        small_step s =
            small_open((uint64_t)i, (int)(i % SMALL_KINDS), i / 9 % 2 ? 16 : 8, EXACT_SEQUENCES, 1e9);
        hbp__step step;
        hbp__step_solution solution = {.ns = 0};
        int64_t member[EXACT_SEQUENCES], tokens[EXACT_SEQUENCES], members = 0;
        double squares[EXACT_SEQUENCES];
        OK(s.context, hbp__step_open(s.context, s.lengths, s.cost, &s.options, &step));
        for (int64_t k = i % 2; k < step.count; k += 2 + i / 18 % 2) {
            tokens[members] = exact_round_up(step.tokens[k], 1000);
            squares[members] = (double)tokens[members] * (double)tokens[members];
            member[members++] = k;
        }
        const int64_t *t = i % 3 ? NULL : tokens;
        const double *q = i % 3 ? NULL : squares;
        exact_step e = exact_members(&s, &step, member, members, t, q);
        int64_t best = members ? exact_step_ns(&e) : EXACT_NEVER;
        hbp_status status =
            members ? hbp__step_solve_micro_batch(&step, member, members, t, q, &solution) : HBP_E_INFEASIBLE;
        ck_assert_msg(status == HBP_OK || status == HBP_E_INFEASIBLE, "step %d: %s", (int)i,
                      hbp_context_message(s.context));
        if (status == HBP_OK) {
            int64_t ns = makespan(&e, &step, &solution, member, members, t, q);
            ck_assert_int_eq(solution.ns, ns);
            count_miss(i, ns, best, &far);
            solved++;
        } else
            missed += best != EXACT_NEVER;
        hbp__step_solution_close(&solution);
        hbp__step_close(&step);
        small_close(&s);
    }
    ck_assert_int_gt(solved, 60);
    ck_assert_int_le(missed, 2);
    ck_assert_int_le(far, 4);
}
END_TEST

/* Degrees that no power of two: 6 and 12 ranks, where they nest. */
START_TEST(any_degree_helps)
{
    static const int32_t degree[] = {1, 3, 6, 12};
    static const double latency[] = {0, 1e6, 1e6, 1e6}, per_token[] = {0, 500, 400, 800};
    int64_t better = 0;
    for (int64_t i = 0; i < 40; i++) {
        small_step s = small_open((uint64_t)i, SMALL_MEMORY, 8, 10, 1e6);
        hbp_cost_terms t = {.struct_size = sizeof t};
        hbp_cost *cost = NULL;
        OK(s.context, hbp_cost_get_terms(s.context, s.cost, &t));
        t.ranks = 12;
        t.domain_ranks = 6;
        t.degrees = 4;
        t.degree = degree;
        t.sp_latency_ns = latency;
        t.sp_ns_per_token = per_token;
        OK(s.context, hbp_cost_create_terms(s.context, &t, &cost));
        hbp_cost_free(s.cost);
        s.cost = cost;
        int64_t ns[2];
        for (int32_t any = 0; any <= 1; any++) {
            s.options.any_degree = any;
            exact_step e = small_exact(&s);
            int64_t best = exact_step_ns(&e);
            stepped plan = stepped_small(&s);
            ck_assert_int_eq(plan.status, best == EXACT_NEVER ? HBP_E_INFEASIBLE : HBP_OK);
            ns[any] = best == EXACT_NEVER ? INT64_MAX : plan.ns;
            ck_assert(best == EXACT_NEVER || (plan.ns >= best && plan.ns <= best + best / 200));
            ck_assert_int_le(plan.bound_ns, best);
        }
        ck_assert_int_le(ns[1], ns[0]);
        better += ns[1] < ns[0];
        small_close(&s);
    }
    ck_assert_int_gt(better, 10);
}
END_TEST

/* The bound that a time past the plan's own guides to: it may not lie between the two. */
static void check_bound(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                        const hbp_step_options *options, int64_t ns)
{
    hbp__step step;
    int64_t bound_ns = 0;
    OK(context, hbp__step_open(context, lengths, cost, options, &step));
    OK(context, hbp__step_bound(&step, ns + ns / 5, &bound_ns));
    ck_assert_int_le(bound_ns, ns);
    hbp__step_close(&step);
}

/* Past exact optima: no other way of planning is faster, more effort is not slower, and the bound is near. */
START_TEST(larger_steps_beat_the_other_ways)
{
    for (uint64_t i = 0; i < 8; i++) {
        hbp_context *context = test_context();
        hbp_cost *cost = test_cost_ranks(context, i % 2 ? 16 : 64);
        hbp_lengths *lengths = test_long_tail(context, i, i % 2 ? 60 : 256, i % 4 < 2 ? 60000 : 20000);
        hbp_step_options options = {.struct_size = sizeof options, .effort = 1};
        stepped plain = stepped_plan(context, lengths, cost, &options);
        ck_assert_msg(plain.status == HBP_OK, "step %d: %s", (int)i, hbp_context_message(context));
        ck_assert_msg((double)plain.ns <= 1.08 * (double)plain.bound_ns, "step %d: %lld ns, bound %lld",
                      (int)i, (long long)plain.ns, (long long)plain.bound_ns);
        for (int32_t method = 1; method < HBP__STEP_METHOD_COUNT; method++) {
            options.method = hbp__step_name(method);
            stepped other = stepped_plan(context, lengths, cost, &options);
            ck_assert_msg(other.status < 0 || plain.ns <= other.ns, "step %d: %lld ns; %s takes %lld", (int)i,
                          (long long)plain.ns, options.method, (long long)other.ns);
        }
        options.method = hbp__step_name(HBP__STEP_SEARCH);
        check_bound(context, lengths, cost, &options, plain.ns);
        for (options.effort = 2; options.effort <= 3; options.effort++) {
            stepped more = stepped_plan(context, lengths, cost, &options);
            ck_assert_int_eq(more.status, HBP_OK);
            ck_assert_int_le(more.ns, plain.ns);
            plain = more;
        }
        hbp_lengths_free(lengths);
        hbp_cost_free(cost);
        hbp_context_free(context);
    }
}
END_TEST

/* What lets the search stop: no optimum takes less, and of some steps the optimum is just that. */
START_TEST(no_step_beats_its_longest_sequence)
{
    int64_t tried = 0, met = 0;
    for (int64_t i = 0; i < 200; i++) {
        small_step s =
            small_open((uint64_t)i, (int)(i % SMALL_KINDS), i % 2 ? 16 : 8, 1 + (int32_t)(i % 7), 5e6);
        vary(&s, i);
        exact_step e = small_exact(&s);
        int64_t best = exact_step_ns(&e);
        hbp__step step;
        if (best != EXACT_NEVER) {
            OK(s.context, hbp__step_open(s.context, s.lengths, s.cost, &s.options, &step));
            double longest;
            OK(s.context, hbp__step_longest_ns(&step, &longest));
            ck_assert_msg(longest <= (double)best + 2, "step %d: %.1f ns, the optimum is %lld", (int)i,
                          longest, (long long)best);
            met += hbp__step_is_least(&step, (double)best, longest);
            tried++;
            hbp__step_close(&step);
        }
        small_close(&s);
    }
    ck_assert_int_gt(tried, 150);
    ck_assert_int_gt(met, 20);
    ck_assert_int_lt(met, tried * 3 / 4);
}
END_TEST

/* One short sequence: 15 ranks have nothing to do, and every micro-batch past the first is theirs as well. */
START_TEST(idle_ranks_become_padding)
{
    small_step s = small_open(1, SMALL_TIME, 16, 1, 5e6);
    hbp_lengths_free(s.lengths);
    OK(s.context, hbp_lengths_create_u32(s.context, (uint32_t[]){100}, 1, NULL, &s.lengths));
    s.options.max_sp = 1;
    stepped plan = stepped_small(&s);
    ck_assert_int_eq(plan.micro_batches, 1);
    ck_assert_int_eq(plan.dummies, 15);
    s.options.micro_batch_multiple = 3;
    int64_t one = plan.ns;
    plan = stepped_small(&s);
    ck_assert_int_eq(plan.micro_batches, 3);
    ck_assert_int_eq(plan.dummies, 15 + 32);
    ck_assert_int_eq(plan.ns, one + 2 * hbp_cost_predict_pack_ns(s.cost, 1, 0, 0, 0, 0));
    s.options.min_micro_batches = 4;
    plan = stepped_small(&s);
    ck_assert_int_eq(plan.micro_batches, 6);
    small_close(&s);
}
END_TEST

TEST_MAIN_LOOPS("search", NULL, NULL, {the_oracle_is_exact, 0, 1},
                {the_oracle_of_one_micro_batch_is_exact, 0, 1}, {plans_are_near_the_optimum, 0, CHUNKS},
                {more_effort_is_never_slower, 0, CHUNKS}, {options_are_respected, 0, 1},
                {a_single_micro_batch_is_near_the_optimum, 0, 1},
                {one_micro_batch_of_some_is_near_the_optimum, 0, 1}, {any_degree_helps, 0, 1},
                {larger_steps_beat_the_other_ways, 0, 1}, {no_step_beats_its_longest_sequence, 0, 1},
                {idle_ranks_become_padding, 0, 1})
