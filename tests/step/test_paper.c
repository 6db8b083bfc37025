#include "base/methods.h"
#include "modes.h"

#ifdef HBP_TESTS_GLPK
#include "hbp/glpk.h"
#include "keep.h"
#endif

static stepped plan_small(small_step *s, int32_t buckets)
{
    s->options.method = hbp__step_name(HBP__STEP_FLEXSP);
    s->options.buckets = buckets;
    return stepped_small(s);
}

/* As many buckets as sequences change nothing. */
START_TEST(many_buckets_are_none)
{
    for (int64_t i = 0; i < 90; i++) {
        small_step s = small_open((uint64_t)i, (int)(i % SMALL_KINDS), 8, 24, 1e9);
        stepped none = plan_small(&s, -1), many = plan_small(&s, EXACT_SEQUENCES);
        ck_assert_int_eq(none.status, HBP_OK);
        ck_assert_uint_eq(none.digest, many.digest);
        small_close(&s);
    }
}
END_TEST

/* A single bucket: every sequence is planned for as if it were the longest, and the plan still holds. */
START_TEST(few_buckets_are_safe)
{
    int64_t slower = 0, planned = 0;
    for (int64_t i = 0; i < 90; i++) {
        small_step s = small_open((uint64_t)i, (int)(i % SMALL_KINDS), 8, 24, 1e9);
        stepped none = plan_small(&s, -1), one = plan_small(&s, 1);
        ck_assert_int_eq(one.status, HBP_OK);
        slower += one.ns > none.ns;
        planned++;
        small_close(&s);
    }
    ck_assert_int_gt(slower, planned / 3);
}
END_TEST

/* Samples of the plan's packs by degree, counts in ascending order: key[i] = degree * 1000 + samples. */
static int64_t shape_of(const hbp_plan *plan, int64_t *key)
{
    int64_t count = 0;
    for (int64_t p = 0; p < plan->packs; p++) {
        int64_t samples = plan->pack_offsets[p + 1] - plan->pack_offsets[p], one, at = count;
        if (!samples)
            continue;
        for (one = plan->pack_sp[p] * INT64_C(1000) + samples; at > 0 && key[at - 1] > one; at--)
            key[at] = key[at - 1];
        key[at] = one;
        count++;
    }
    return count;
}

/* In a single bucket a micro-batch is planned as that of as many sequences of the longest's length. */
START_TEST_IN_CONTEXT(one_bucket_is_planned_as_its_longest)
{
    enum { SEQUENCES = 20, STEPS = 60 };
    hbp_cost *cost = keep(mode_square_cost(context, 8));
    int64_t planned = 0;
    for (uint64_t seed = 0; seed < STEPS; seed++) {
        hbp__rng rng = hbp__rng_make(seed, 41, 0);
        uint32_t length[SEQUENCES], longest = 0, most = 1000 + 250 * (uint32_t)hbp__rng_below(&rng, 40);
        for (int i = 0; i < SEQUENCES; i++) {
            length[i] = most / 4 + (uint32_t)hbp__rng_below(&rng, most);
            longest = length[i] > longest ? length[i] : longest;
        }
        hbp_step_options o = {.struct_size = sizeof o,
                              .method = hbp__step_name(HBP__STEP_FLEXSP),
                              .buckets = 1,
                              .max_sp = seed % 2 ? 1 : 0,
                              .min_micro_batches = 1,
                              .max_micro_batches = 1};
        hbp_plan *plan[2] = {NULL, NULL};
        int64_t key[2][SEQUENCES], count[2] = {0, 0};
        for (int k = 0; k < 2; k++) {
            hbp_lengths *lengths = NULL;
            OK(context, hbp_lengths_create_u32(context, length, SEQUENCES, NULL, &lengths));
            if (hbp_plan_step(context, lengths, cost, &o, &plan[k]) >= 0)
                count[k] = shape_of(plan[k], key[k]);
            hbp_lengths_free(lengths);
            hbp_plan_free(plan[k]);
            for (int i = 0; i < SEQUENCES; i++)
                length[i] = longest;
            o.buckets = -1;
        }
        ck_assert_int_eq(count[0], count[1]);
        for (int64_t i = 0; i < count[0]; i++)
            ck_assert_int_eq(key[0][i], key[1][i]);
        planned += count[0] > 1;
    }
    ck_assert_int_gt(planned, STEPS / 4);
}
END_TEST

/* One long sequence and many short ones: SP groups of different degrees in one micro-batch, faster than one
 * degree for all. */
START_TEST_IN_CONTEXT(degrees_are_mixed)
{
    hbp_cost *cost = keep(test_cost_ranks(context, 8));
    hbp_lengths *lengths = NULL;
    uint32_t length[41] = {60000};
    for (int i = 1; i < 41; i++)
        length[i] = 1500;
    hbp_plan *plan = NULL;
    hbp_step_options o = {.struct_size = sizeof o, .method = hbp__step_name(HBP__STEP_FLEXSP)};
    MAKES(context, lengths, hbp_lengths_create_u32(context, length, 41, NULL, &lengths));
    MAKES(context, plan, hbp_plan_step(context, lengths, cost, &o, &plan));
    stepped paper = stepped_check(context, lengths, cost, &o, plan);
    int64_t degrees = 0;
    for (int32_t d = 1; d <= 8; d *= 2)
        for (int64_t p = 0; p < plan->packs; p++)
            if (plan->pack_sp[p] == d && plan->pack_tokens[p]) {
                degrees++;
                break;
            }
    ck_assert_int_gt(degrees, 1);
    o.method = hbp__step_name(HBP__STEP_HOMOGENEOUS_SP);
    ck_assert_int_lt(paper.ns, stepped_plan(context, lengths, cost, &o).ns);
}
END_TEST

START_TEST(the_milp_wants_a_solver)
{
    small_step s = small_open(1, SMALL_TIME, 8, 12, 1e9);
    s.options.exact = 1;
    ck_assert_int_eq(plan_small(&s, 0).status, HBP_E_SOLVER);
    small_close(&s);
}
END_TEST

#ifdef HBP_TESTS_GLPK
/* Without buckets the MILP of each micro-batch is at least as good as the search; with them the plan still
 * holds. */
START_TEST(the_milp_is_no_slower)
{
    for (int64_t i = 0; i < 45; i++) {
        small_step s = small_open((uint64_t)i, (int)(i % SMALL_KINDS), 8, 10, 1e9);
        stepped search = plan_small(&s, -1);
        OK(s.context, hbp_context_set_solver(s.context, hbp_glpk_solver()));
        s.options.exact = 1;
        stepped exact = plan_small(&s, -1), bucketed = plan_small(&s, 4);
        ck_assert_msg(exact.status >= 0, "%s", hbp_context_message(s.context));
        ck_assert_int_ge(bucketed.status, 0);
        ck_assert_msg(exact.ns <= search.ns, "step %d: %lld ns, by search %lld", (int)i, (long long)exact.ns,
                      (long long)search.ns);
        small_close(&s);
    }
}
END_TEST
#else
START_TEST(the_milp_is_no_slower)
{
    printf("skipped: built without GLPK\n");
}
END_TEST
#endif

START_TEST(small_steps_are_planned)
{
    mode_plans_small_steps(HBP__STEP_FLEXSP, 400);
}
END_TEST

START_TEST(any_degree_is_planned)
{
    mode_plans_any_degree(HBP__STEP_FLEXSP);
}
END_TEST

START_TEST(failures_leave_nothing)
{
    mode_fails_cleanly(HBP__STEP_FLEXSP, 8, 2);
}
END_TEST

TEST_MAIN("paper", many_buckets_are_none, few_buckets_are_safe, one_bucket_is_planned_as_its_longest,
          degrees_are_mixed, the_milp_wants_a_solver, the_milp_is_no_slower, small_steps_are_planned,
          any_degree_is_planned, failures_leave_nothing)
