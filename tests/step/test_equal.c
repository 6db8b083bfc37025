/* Steps with the same number of samples on every SP group, against every assignment. */
#include "base/methods.h"
#include "boards.h"
#include "stepped.h"

#define STEPS   (TEST_SANITIZED ? 90 : 900)
#define BATCHES 3

/* Every assignment of sequences to lanes in up to BATCHES micro-batches. */
typedef struct every {
    const exact_step *step;
    int32_t j;
    int64_t lanes, batches, best, best_idle;
    int64_t tokens[BATCHES][EXACT_SEQUENCES];
    int64_t members[EXACT_SEQUENCES];
    double squares[BATCHES][EXACT_SEQUENCES];
} every;

static void every_price(every *v)
{
    const exact_step *e = v->step;
    int64_t least = e->count, most = 0, ns = 0, idle = 0;
    for (int64_t i = 0; i < v->lanes; i++) {
        least = exact_min(least, v->members[i]);
        most = exact_max(most, v->members[i]);
    }
    if (most - least > 1)
        return;
    for (int64_t m = 0; m < v->batches; m++) {
        int64_t slowest = e->dummy_ns;
        for (int64_t i = 0; i < v->lanes; i++) {
            int64_t group = exact_group_ns(e, v->j, v->tokens[m][i], v->squares[m][i]);
            if (group == EXACT_NEVER)
                return;
            slowest = exact_max(slowest, group);
            idle += v->tokens[m][i] ? 0 : e->degree[v->j];
        }
        ns += slowest;
    }
    idle = e->count < e->ranks ? 0 : idle;
    if (idle < v->best_idle || (idle == v->best_idle && ns < v->best)) {
        v->best_idle = idle;
        v->best = ns;
    }
}

static void every_walk(every *v, int64_t k)
{
    if (k == v->step->count) {
        every_price(v);
        return;
    }
    for (int64_t m = 0; m < v->batches; m++)
        for (int64_t i = 0; i < v->lanes; i++) {
            double squares = v->squares[m][i];
            v->tokens[m][i] += v->step->tokens[k];
            v->squares[m][i] += v->step->squares[k];
            v->members[i]++;
            every_walk(v, k + 1);
            v->members[i]--;
            v->tokens[m][i] -= v->step->tokens[k];
            v->squares[m][i] = squares;
        }
}

static every find_best(const exact_step *e)
{
    every v = {.step = e, .best = EXACT_NEVER, .best_idle = EXACT_NEVER};
    for (v.j = 0; v.j < e->degrees; v.j++) {
        v.lanes = e->ranks / e->degree[v.j];
        for (v.batches = 1; v.batches <= BATCHES && v.batches <= e->count; v.batches++)
            every_walk(&v, 0);
    }
    return v;
}

/* One degree, lanes of `apart` samples more or less, micro-batches with a pack on every lane. */
static void check_lanes(const hbp_plan *plan, int32_t ranks, int64_t apart)
{
    int64_t samples[64] = {0}, least = INT64_MAX, most = 0;
    int32_t sp = 0;
    for (int64_t p = 0; p < plan->packs; p++) {
        int64_t here = plan->pack_offsets[p + 1] - plan->pack_offsets[p];
        if (!here)
            continue;
        ck_assert(!sp || sp == plan->pack_sp[p]);
        sp = plan->pack_sp[p];
        ck_assert_int_eq(plan->pack_ranks[p] % sp, 0);
        samples[plan->pack_ranks[p] / sp] += here;
    }
    for (int32_t i = 0; i < ranks / sp; i++) {
        least = exact_min(least, samples[i]);
        most = exact_max(most, samples[i]);
    }
    ck_assert_msg(most - least <= apart, "lanes have %d to %d samples", (int)least, (int)most);
}

/* Plans and checks; a status below 0 is returned. */
static stepped plan_equal(const small_step *s, int32_t ranks, int64_t apart)
{
    hbp_plan *plan = NULL;
    hbp_status status = hbp_plan_step(s->context, s->lengths, s->cost, &s->options, &plan);
    if (status < 0) {
        ck_assert_ptr_null(plan);
        return (stepped){.status = status};
    }
    stepped checked = stepped_check(s->context, s->lengths, s->cost, &s->options, plan);
    check_lanes(plan, ranks, apart);
    hbp_plan_free(plan);
    return checked;
}

START_TEST(tiny_steps_are_near_the_optimum)
{
    int64_t tried = 0, best = 0, far = 0;
    for (int64_t i = 0; i < STEPS; i++) {
        int32_t ranks = 2 << (i % 2);
        int kind = (int)(i % SMALL_KINDS);
        if (kind == SMALL_TIED)
            continue;
        small_step s = small_open((uint64_t)i, kind, ranks, ranks == 2 ? 6 : 5, 1e300);
        exact_step e = small_exact(&s);
        s.options.equal_samples = 1;
        s.options.max_micro_batches = BATCHES;
        every v = find_best(&e);
        stepped plan = plan_equal(&s, ranks, 1);
        ck_assert(plan.status == HBP_OK || plan.status == HBP_E_INFEASIBLE);
        if (v.best == EXACT_NEVER)
            ck_assert_int_eq(plan.status, HBP_E_INFEASIBLE);
        if (plan.status == HBP_OK) {
            ck_assert_int_ge(plan.ns, v.best_idle ? 0 : v.best);
            ck_assert_int_ge(s.count < ranks ? 0 : plan.dummies, v.best_idle);
            best += (s.count < ranks || plan.dummies == v.best_idle) && plan.ns <= v.best + v.best / 1000;
            far += plan.ns > v.best + v.best / 10;
        }
        tried += v.best != EXACT_NEVER;
        small_close(&s);
    }
    ck_assert_int_gt(tried, STEPS / 4);
    ck_assert_int_ge(100 * best, 97 * tried);
    ck_assert_int_eq(far, 0);
}
END_TEST

/* Larger steps: the same number on each lane, no dummies, and no slower than a fifth above the bound. */
START_TEST(larger_steps_are_even)
{
    static const int32_t multiples[] = {0, 2, 3};
    for (int64_t i = 0; i < (TEST_SANITIZED ? 9 : 30); i++) {
        small_step s = {.context = test_context(), .options = {.struct_size = sizeof s.options}};
        s.cost = test_cost_ranks(s.context, 16);
        s.lengths = test_long_tail(s.context, (uint64_t)i, 40 + 37 * i, 12000);
        s.options.equal_samples = 1;
        s.options.micro_batch_multiple = multiples[i % 3];
        s.options.max_samples = i % 5 == 4 ? 60 : 0;
        stepped plan = plan_equal(&s, 16, 1);
        ck_assert_msg(plan.status == HBP_OK, "step %d: %s", (int)i, hbp_context_message(s.context));
        ck_assert_int_eq(plan.dummies, 0);
        ck_assert_int_le(plan.bound_ns, plan.ns);
        small_close(&s);
    }
}
END_TEST

/* Linked samples move together, and each counts: the rest evens them out where there is enough of it. */
START_TEST(ties_count_each)
{
    uint32_t length[40];
    int64_t link[40];
    for (int64_t i = 0; i < 40; i++) {
        length[i] = (uint32_t)(100 + 37 * i);
        link[i] = i < 12 ? i / 3 : -1;
    }
    small_step s = {.context = test_context(), .options = {.struct_size = sizeof s.options}};
    hbp_lengths_options links = {.struct_size = sizeof links, .links = link};
    s.cost = test_cost_ranks(s.context, 16);
    OK(s.context, hbp_lengths_create_u32(s.context, length, 40, &links, &s.lengths));
    s.options.equal_samples = 1;
    s.options.max_sp = 2;
    ck_assert_int_eq(plan_equal(&s, 16, 1).status, HBP_OK);
    hbp_lengths_free(s.lengths);
    /* Sixteen threes and nothing else: as equal as can be. */
    links.links = (int64_t[]){0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 5};
    OK(s.context, hbp_lengths_create_u32(s.context, length, 18, &links, &s.lengths));
    s.options.min_sp = s.options.max_sp = 4;
    ck_assert_int_eq(plan_equal(&s, 16, 3).status, HBP_OK);
    small_close(&s);
}
END_TEST

START_TEST(what_cannot_be_had_is_refused)
{
    small_step s = {.context = test_context(), .options = {.struct_size = sizeof s.options}};
    hbp_plan *plan = NULL;
    s.cost = test_cost_ranks(s.context, 16);
    s.lengths = test_long_tail(s.context, 1, 300, 12000);
    for (int32_t mode = 1; mode < HBP__STEP_METHOD_COUNT; mode++) {
        char text[128];
        s.options = (hbp_step_options){
            .struct_size = sizeof s.options, .method = hbp__step_name(mode), .equal_samples = 1};
        snprintf(text, sizeof text, "`equal_samples` is set; method %s does not plan for it",
                 hbp__step_name(mode));
        FAILS(s.context, HBP_E_INVALID, text, hbp_plan_step(s.context, s.lengths, s.cost, &s.options, &plan));
        ck_assert_ptr_null(plan);
    }
    s.options = (hbp_step_options){.struct_size = sizeof s.options, .equal_samples = 1, .max_samples = 2};
    s.options.max_micro_batches = 2;
    FAILS(s.context, HBP_E_INFEASIBLE,
          "`equal_samples` is set, and no plan of at most 2 micro-batches was found",
          hbp_plan_step(s.context, s.lengths, s.cost, &s.options, &plan));
    s.options.min_micro_batches = 2;
    FAILS(s.context, HBP_E_INFEASIBLE, "does not fit the 2 micro-batches that are asked for",
          hbp_plan_step(s.context, s.lengths, s.cost, &s.options, &plan));
    s.options.max_samples = 0;
    s.options.min_micro_batches = s.options.max_micro_batches = 0;
    s.options.any_degree = 1;
    ck_assert_int_eq(plan_equal(&s, 16, 1).status, HBP_OK);
    small_close(&s);
}
END_TEST

static hbp_status equal_once(hbp_context *context, void *user)
{
    hbp__step step = *(const hbp__step *)user;
    hbp__step_solution solution = {.ns = 0};
    step.context = context;
    hbp_status status = hbp__step_equal(&step, &solution);
    hbp__step_solution_close(&solution);
    return status;
}

START_TEST(nothing_is_left_behind)
{
    ground g;
    ground_open(&g, 2, SMALL_TIME, 20);
    failing_sweep(equal_once, &g.step);
    ck_assert_int_gt(cancel_sweep(equal_once, &g.step), 0);
    ground_close(&g);
}
END_TEST

TEST_MAIN("equal", tiny_steps_are_near_the_optimum, larger_steps_are_even, ties_count_each,
          what_cannot_be_had_is_refused, nothing_is_left_behind)
