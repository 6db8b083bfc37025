/* The stepper among threads: waits, cancels, ends, paces. Meant for the thread sanitizer too. */
#include <pthread.h>
#include <stdatomic.h>

#include "failing.h"
#include "hbp/step.h"
#include "keep.h"
#include "step/batches.h"

static void *cancel_soon(void *context)
{
    batches_nap(20000000);
    hbp_context_cancel(context);
    return NULL;
}

START_TEST_IN_CONTEXT(waiting_is_cancelled_and_loses_nothing)
{
    hbp_cost *cost = keep(test_cost(context));
    hbp_stepper *stepper = keep(batches_stepper(context, cost, 1, 1));
    hbp_plan *plan = NULL;
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, cancel_soon, context), 0);
    FAILS(context, HBP_E_CANCELLED, "wait", hbp_stepper_take(context, stepper, &plan));
    pthread_join(thread, NULL);
    batches_submit(context, stepper, 0);
    batch b;
    batches_draw(&b, 1);
    ck_assert_int_eq(pthread_create(&thread, NULL, cancel_soon, context), 0);
    FAILS(context, HBP_E_CANCELLED, "wait",
          hbp_stepper_submit(context, stepper, b.length, b.count, &b.options));
    pthread_join(thread, NULL);
    hbp_context_cancel(context);
    FAILS(context, HBP_E_CANCELLED, "take", hbp_stepper_take(context, stepper, &plan));
    ck_assert_ptr_null(plan);
    plan = keep(batches_take(context, stepper));
    ck_assert_uint_eq(plan_digest(plan), batches_digest(context, cost, batches_draw(&b, 0)));
    hbp_context_cancel(context);
    FAILS(context, HBP_E_CANCELLED, "submit",
          hbp_stepper_submit(context, stepper, b.length, b.count, &b.options));
    ck_assert_int_eq(batches_summary(context, stepper).submitted, 1);
}
END_TEST

/* Freed at any moment: before, while and after it plans what is much larger than the other tests' batches. */
START_TEST(freeing_ends_what_runs)
{
    failing f;
    hbp_context *context = failing_context(&f, NULL, NULL);
    hbp_cost *cost = test_cost(context);
    hbp_lengths *lengths = test_long_tail(context, 5, 20000, 60000);
    int64_t live = f.live;
    for (int64_t after = 0; after < 20; after++) {
        hbp_stepper *stepper = batches_stepper(context, cost, 4, 0);
        for (int i = 0; i < 4; i++)
            OK(context, hbp_stepper_submit_lengths(context, stepper, lengths));
        batches_nap(after * 100000);
        hbp_stepper_free(stepper);
        ck_assert_int_eq(f.live, live);
    }
    hbp_lengths_free(lengths);
    hbp_cost_free(cost);
    hbp_context_free(context);
    ck_assert_int_eq(f.live, 0);
}
END_TEST

/* A solver that never ends by itself, as a large MILP would. */
typedef struct endless {
    atomic_int calls;
    atomic_int ended;
} endless;

static hbp_status solve_for_ever(void *user, const hbp_program *program, const hbp_solver_limits *limits,
                                 hbp_solver_answer *answer)
{
    endless *e = user;
    atomic_fetch_add(&e->calls, 1);
    while (!limits->poll(limits->poll_user))
        batches_nap(1000000);
    atomic_fetch_add(&e->ended, 1);
    answer->status = HBP_SOLVER_STOPPED;
    answer->bound = program->columns ? -1e300 : 0;
    return HBP_OK;
}

START_TEST_IN_CONTEXT(the_solver_of_the_context_is_used_and_cancelled)
{
    hbp_cost *cost = keep(test_cost(context));
    endless e;
    atomic_init(&e.calls, 0);
    atomic_init(&e.ended, 0);
    hbp_solver solver = {sizeof solver, solve_for_ever, &e};
    OK(context, hbp_context_set_solver(context, &solver));
    hbp_step_options options = {.struct_size = sizeof options};
    options.exact = 1;
    hbp_stepper *stepper = NULL;
    OK(context, hbp_stepper_create(context, cost, &options, NULL, &stepper));
    const int64_t lengths[] = {50000, 30000, 20000, 9000, 7000, 5000, 3000, 1000};
    OK(context, hbp_stepper_submit(context, stepper, lengths, 8, NULL));
    OK(context, hbp_stepper_submit(context, stepper, lengths, 8, NULL));
    for (int i = 0; i < 10000 && !atomic_load(&e.calls); i++)
        batches_nap(1000000);
    hbp_stepper_free(stepper);
    ck_assert_int_eq(atomic_load(&e.calls), 1);
    ck_assert_int_eq(atomic_load(&e.ended), 1);
}
END_TEST

/* A rank of a run: its own stepper, its own pace. */
typedef struct rank {
    const hbp_cost *cost;
    int64_t number;
    uint64_t digest[STEPS];
    uint64_t all;
    int64_t failed;
} rank;

static void *run_rank(void *argument)
{
    rank *r = argument;
    hbp__rng rng = hbp__rng_make(99, (uint64_t)r->number, 0);
    hbp_context *context = NULL;
    hbp_stepper *stepper = NULL;
    hbp_stepper_options options = {.struct_size = sizeof options, .depth = (int32_t)r->number + 1};
    r->failed = hbp_context_create(NULL, &context) < 0 ||
                hbp_stepper_create(context, r->cost, NULL, &options, &stepper) < 0;
    for (int64_t submitted = 0, taken = 0; taken < STEPS && !r->failed; taken++) {
        for (; submitted < STEPS && submitted - taken < options.depth; submitted++) {
            batch b;
            batches_draw(&b, (uint64_t)submitted);
            r->failed += hbp_stepper_submit(context, stepper, b.length, b.count, &b.options) < 0;
        }
        batches_nap(hbp__rng_below(&rng, 2000000));
        hbp_plan *plan = NULL;
        r->failed += hbp_stepper_take(context, stepper, &plan) < 0;
        r->digest[taken] = plan_digest(plan);
        hbp_plan_free(plan);
    }
    hbp_stepper_summary summary = {.struct_size = sizeof summary};
    r->failed += hbp_stepper_get_summary(context, stepper, &summary) < 0;
    r->all = summary.digest;
    hbp_stepper_free(stepper);
    hbp_context_free(context);
    return NULL;
}

START_TEST_IN_CONTEXT(ranks_agree_whatever_their_pace)
{
    hbp_cost *cost = keep(test_cost(context));
    pthread_t thread[4];
    rank ranks[4];
    for (int i = 0; i < 4; i++) {
        ranks[i] = (rank){.cost = cost, .number = i};
        ck_assert_int_eq(pthread_create(&thread[i], NULL, run_rank, &ranks[i]), 0);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(ranks[i].failed, 0);
        ck_assert_uint_eq(ranks[i].all, ranks[0].all);
        for (uint64_t step = 0; step < STEPS; step++) {
            batch b;
            ck_assert_uint_eq(ranks[i].digest[step], batches_digest(context, cost, batches_draw(&b, step)));
        }
    }
}
END_TEST

/* One thread reads batches, another trains. */
typedef struct reader {
    hbp_stepper *stepper;
    int64_t failed;
} reader;

static void *read_batches(void *argument)
{
    reader *r = argument;
    hbp_context *context = NULL;
    r->failed = hbp_context_create(NULL, &context) < 0;
    for (uint64_t step = 0; step < 3 * STEPS && !r->failed; step++) {
        batch b;
        batches_draw(&b, step);
        r->failed += hbp_stepper_submit(context, r->stepper, b.length, b.count, &b.options) < 0;
        hbp_stepper_summary summary = {.struct_size = sizeof summary};
        r->failed += hbp_stepper_get_summary(context, r->stepper, &summary) < 0;
        r->failed += summary.submitted != (int64_t)step + 1 || summary.taken > summary.planned;
        if (step % 5 == 0)
            batches_nap(2000000);
    }
    hbp_context_free(context);
    return NULL;
}

START_TEST_IN_CONTEXT(one_thread_may_submit_and_another_take)
{
    hbp_cost *cost = keep(test_cost(context));
    reader r = {keep(batches_stepper(context, cost, 2, 1)), 0};
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, read_batches, &r), 0);
    for (uint64_t step = 0; step < 3 * STEPS; step++) {
        hbp_plan *plan = batches_take(context, r.stepper);
        batch b;
        ck_assert_uint_eq(plan_digest(plan), batches_digest(context, cost, batches_draw(&b, step)));
        hbp_plan_free(plan);
    }
    pthread_join(thread, NULL);
    ck_assert_int_eq(r.failed, 0);
    ck_assert_int_eq(batches_summary(context, r.stepper).taken, 3 * STEPS);
}
END_TEST

TEST_MAIN("stepper_threads", waiting_is_cancelled_and_loses_nothing, freeing_ends_what_runs,
          the_solver_of_the_context_is_used_and_cancelled, ranks_agree_whatever_their_pace,
          one_thread_may_submit_and_another_take)
