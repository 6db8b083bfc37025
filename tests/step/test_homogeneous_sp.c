#include "base/methods.h"
#include "modes.h"

/* Best fit decreasing by looking at every pack, then micro-batches of packs in order of time: what a degree
 * takes when packs hold `capacity`. `tokens` is descending. */
static int64_t plain_ns(const exact_step *e, int32_t sp, int32_t recompute, int64_t capacity)
{
    int64_t tokens[EXACT_SEQUENCES], ns[EXACT_SEQUENCES], packs = 0, sum = 0, micro_batches = 0;
    double squares[EXACT_SEQUENCES];
    for (int64_t i = 0; i < e->count; i++) {
        int64_t best = packs;
        for (int64_t p = 0; p < packs; p++)
            if (tokens[p] + e->tokens[i] <= capacity && (best == packs || tokens[p] > tokens[best]))
                best = p;
        if (best == packs) {
            tokens[packs] = 0;
            squares[packs++] = 0;
        }
        tokens[best] += e->tokens[i];
        squares[best] += e->squares[i];
    }
    for (int64_t p = 0; p < packs; p++) {
        int64_t padded = exact_round_up(tokens[p], e->options.pack_multiple);
        int64_t at = p, time = hbp_cost_predict_pack_ns(e->cost, sp, recompute, padded, squares[p], 0);
        for (; at > 0 && ns[at - 1] < time; at--)
            ns[at] = ns[at - 1];
        ns[at] = time;
    }
    for (int64_t p = 0; p < packs; p += e->ranks / sp, micro_batches++)
        sum += exact_max(ns[p], e->dummy_ns);
    if (e->options.max_micro_batches && micro_batches > e->options.max_micro_batches)
        return EXACT_NEVER;
    int64_t dummies = exact_max(e->options.min_micro_batches, micro_batches);
    dummies = exact_round_up(dummies, e->options.micro_batch_multiple) - micro_batches;
    return sum + dummies * e->dummy_ns;
}

/* The best degree by trying each, nothing recomputed. */
static int64_t plain_best(const exact_step *e)
{
    int64_t best = EXACT_NEVER;
    for (int32_t j = 0; j < e->degrees; j++) {
        int64_t capacity = hbp_cost_predict_capacity(e->cost, e->degree[j], 0);
        capacity -= e->options.pack_multiple ? capacity % e->options.pack_multiple : 0;
        if (capacity < e->tokens[0])
            continue;
        int64_t ns = plain_ns(e, e->degree[j], 0, exact_max(capacity * 9 / 10, e->tokens[0]));
        best = exact_min(best, ns);
    }
    return best;
}

START_TEST(every_degree_is_no_better)
{
    int64_t planned = 0;
    for (int64_t i = 0; i < 600; i++) {
        small_step s = small_open((uint64_t)i, (int)(i % SMALL_KINDS), 2 << (i / 9 % 4), 24, 1e9);
        mode_vary(&s.options, HBP__STEP_HOMOGENEOUS_SP, i);
        s.options.recompute = HBP_STEP_RECOMPUTE_NONE;
        exact_step e = small_exact(&s);
        stepped plan = stepped_small(&s);
        int64_t best = plain_best(&e);
        if (best == EXACT_NEVER) {
            ck_assert_int_eq(plan.status, HBP_E_INFEASIBLE);
        } else {
            ck_assert_int_eq(plan.status, HBP_OK);
            ck_assert_msg(plan.ns == best, "step %d: %lld ns, plainly %lld", (int)i, (long long)plan.ns,
                          (long long)best);
            planned++;
        }
        small_close(&s);
    }
    ck_assert_int_gt(planned, 300);
}
END_TEST

/* With all layers recomputed at will, no slower than without. */
START_TEST(recomputation_is_tried)
{
    int64_t faster = 0;
    for (int64_t i = 0; i < 200; i++) {
        small_step s = small_open((uint64_t)i, SMALL_RECOMPUTE, 8, 24, 1e9);
        s.options.method = hbp__step_name(HBP__STEP_HOMOGENEOUS_SP);
        stepped with = stepped_small(&s);
        s.options.recompute = HBP_STEP_RECOMPUTE_NONE;
        stepped without = stepped_small(&s);
        ck_assert_int_eq(with.status, HBP_OK);
        ck_assert(without.status < 0 || with.ns <= without.ns);
        faster += without.status < 0 || with.ns < without.ns;
        small_close(&s);
    }
    ck_assert_int_gt(faster, 20);
}
END_TEST

START_TEST(small_steps_are_planned)
{
    mode_plans_small_steps(HBP__STEP_HOMOGENEOUS_SP, 400);
}
END_TEST

START_TEST(any_degree_is_planned)
{
    mode_plans_any_degree(HBP__STEP_HOMOGENEOUS_SP);
}
END_TEST

START_TEST(failures_leave_nothing)
{
    mode_fails_cleanly(HBP__STEP_HOMOGENEOUS_SP, 120, 0);
}
END_TEST

TEST_MAIN("homogeneous_sp", every_degree_is_no_better, recomputation_is_tried, small_steps_are_planned,
          any_degree_is_planned, failures_leave_nothing)
