#include "hbp/stepper.h"

#include <pthread.h>
#include <time.h>

#include "base/rng.h"
#include "costs.h"
#include "data/plan.h"
#include "failing.h"
#include "test.h"

enum { SAMPLES = 64, STEPS = 12 };

static void nap(int64_t ns)
{
    struct timespec time = {.tv_sec = 0, .tv_nsec = (long)ns};
    nanosleep(&time, NULL);
}

/* Batch `step`: lengths with a long tail; every third batch has loss tokens, every fourth ties. */
typedef struct batch {
    int64_t length[SAMPLES];
    uint32_t loss[SAMPLES];
    int64_t tie[SAMPLES];
    int64_t count;
    hbp_lengths_options options;
} batch;

static const batch *draw(batch *b, uint64_t step)
{
    hbp__rng rng = hbp__rng_make(11, step, 0);
    b->count = SAMPLES - hbp__rng_below(&rng, SAMPLES / 2);
    for (int64_t i = 0; i < b->count; i++) {
        b->length[i] = 1 + hbp__rng_below(&rng, UINT64_C(60000) >> hbp__rng_below(&rng, 8));
        b->loss[i] = hbp__rng_below(&rng, (uint64_t)b->length[i] + 1);
        b->tie[i] = i % 7 < 2 && b->length[i] < 8000 ? i / 7 : -1;
    }
    b->options = (hbp_lengths_options){.struct_size = sizeof b->options,
                                       .loss_tokens = step % 3 == 0 ? b->loss : NULL,
                                       .ties = step % 4 == 0 ? b->tie : NULL};
    return b;
}

static hbp_lengths *lengths_of(hbp_context *context, const batch *b)
{
    hbp_lengths *lengths = NULL;
    OK(context, hbp_lengths_create_i64(context, b->length, b->count, &b->options, &lengths));
    return lengths;
}

static uint64_t digest_of(hbp_context *context, const hbp_cost *cost, const batch *b)
{
    hbp_lengths *lengths = lengths_of(context, b);
    hbp_plan *plan = NULL;
    OK(context, hbp_plan_step(context, lengths, cost, NULL, &plan));
    uint64_t digest = hbp_plan_get_digest(plan);
    hbp_plan_free(plan);
    hbp_lengths_free(lengths);
    return digest;
}

static hbp_stepper *make(hbp_context *context, const hbp_cost *cost, int32_t depth, int32_t wait)
{
    hbp_stepper_options options;
    hbp_stepper_options_init(&options, sizeof options);
    options.depth = depth;
    options.wait = wait;
    hbp_stepper *stepper = NULL;
    OK(context, hbp_stepper_create(context, cost, NULL, &options, &stepper));
    return stepper;
}

static void submit(hbp_context *context, hbp_stepper *stepper, uint64_t step)
{
    batch b;
    draw(&b, step);
    OK(context, hbp_stepper_submit(context, stepper, b.length, b.count, &b.options));
    memset(&b, 0xa5, sizeof b); /* the stepper has its copy */
}

static hbp_plan *take(hbp_context *context, hbp_stepper *stepper)
{
    hbp_plan *plan = NULL;
    OK(context, hbp_stepper_take(context, stepper, &plan));
    ck_assert_ptr_nonnull(plan);
    return plan;
}

static hbp_stepper_summary summary_of(hbp_context *context, hbp_stepper *stepper)
{
    hbp_stepper_summary summary = {.struct_size = sizeof summary};
    OK(context, hbp_stepper_get_summary(context, stepper, &summary));
    return summary;
}

START_TEST(plans_are_those_of_plan_step_in_order)
{
    hbp_context *context = test_context();
    hbp_cost *cost = test_cost(context);
    for (int32_t depth = 1; depth <= 4; depth++) {
        hbp_stepper *stepper = make(context, cost, depth, 0);
        for (int64_t submitted = 0, taken = 0; taken < STEPS; taken++) {
            for (; submitted < STEPS && submitted - taken < depth; submitted++)
                submit(context, stepper, (uint64_t)submitted);
            hbp_plan *plan = take(context, stepper);
            batch b;
            draw(&b, (uint64_t)taken);
            ck_assert_uint_eq(hbp_plan_get_digest(plan), digest_of(context, cost, &b));
            hbp_lengths *lengths = lengths_of(context, &b);
            OK(context, hbp_plan_validate(context, plan, lengths, cost));
            hbp_plan_summary summary = {.struct_size = sizeof summary};
            OK(context, hbp_plan_get_summary(context, plan, &summary));
            ck_assert_int_eq(summary.steps, 1);
            ck_assert_int_eq(summary.first_step, 0);
            ck_assert_int_eq(summary.samples, b.count);
            hbp_lengths_free(lengths);
            hbp_plan_free(plan);
            hbp_stepper_summary all = summary_of(context, stepper);
            ck_assert_int_eq(all.depth, depth);
            ck_assert_int_eq(all.submitted, submitted);
            ck_assert_int_eq(all.taken, taken + 1);
            ck_assert_int_ge(all.planned, taken + 1);
            ck_assert_int_le(all.planned, submitted);
            ck_assert_int_le(all.waited, taken + 1);
            ck_assert_int_gt(all.kept_bytes, 0);
        }
        hbp_stepper_free(stepper);
    }
    hbp_cost_free(cost);
    hbp_context_free(context);
}
END_TEST

START_TEST(data_sets_are_shared_and_plans_outlive_the_stepper)
{
    failing f;
    hbp_context *context = failing_context(&f, NULL, NULL);
    hbp_cost *cost = test_cost(context);
    hbp_stepper *stepper = make(context, cost, 0, 0);
    batch b;
    hbp_lengths *lengths = lengths_of(context, draw(&b, 3));
    OK(context, hbp_stepper_submit_lengths(context, stepper, lengths));
    hbp_lengths_free(lengths);
    hbp_plan *plan = take(context, stepper);
    hbp_stepper_free(stepper);
    hbp_stepper_free(NULL);
    ck_assert_uint_eq(hbp_plan_get_digest(plan), digest_of(context, cost, &b));
    lengths = lengths_of(context, &b);
    OK(context, hbp_plan_validate(context, plan, lengths, cost));
    hbp_lengths_free(lengths);
    hbp_cost_free(cost);
    hbp_context_free(context);
    hbp_plan_free(plan);
    ck_assert_int_eq(f.live, 0);
}
END_TEST

START_TEST(a_step_that_cannot_be_planned_harms_no_other)
{
    hbp_context *context = test_context();
    hbp_cost *cost = test_cost(context);
    hbp_stepper *stepper = make(context, cost, 3, 0);
    const int64_t huge[] = {100, 200, INT64_C(2000000000)};
    submit(context, stepper, 0);
    OK(context, hbp_stepper_submit(context, stepper, huge, 3, NULL));
    submit(context, stepper, 2);
    hbp_plan_free(take(context, stepper));
    uint64_t before = summary_of(context, stepper).digest;
    hbp_plan *plan = (hbp_plan *)1;
    FAILS(context, HBP_E_INFEASIBLE, "step 1: ", hbp_stepper_take(context, stepper, &plan));
    ck_assert_ptr_nonnull(strstr(hbp_context_message(context), "2000000000"));
    ck_assert_ptr_null(plan);
    ck_assert_uint_ne(summary_of(context, stepper).digest, before);
    plan = take(context, stepper);
    ck_assert_str_eq(hbp_context_message(context), "");
    batch b;
    ck_assert_uint_eq(hbp_plan_get_digest(plan), digest_of(context, cost, draw(&b, 2)));
    hbp_plan_free(plan);
    hbp_stepper_free(stepper);
    hbp_cost_free(cost);
    hbp_context_free(context);
}
END_TEST

START_TEST(what_cannot_be_submitted_or_taken_is_refused)
{
    hbp_context *context = test_context();
    hbp_cost *cost = test_cost(context);
    hbp_stepper *stepper = make(context, cost, 0, 0);
    hbp_plan *plan = NULL;
    FAILS(context, HBP_E_INVALID, "step 0 is not submitted", hbp_stepper_take(context, stepper, &plan));
    int64_t lengths[] = {5, 0, 7};
    uint32_t loss[] = {5, 3, 8};
    int64_t ties[] = {-1, -2, 0};
    hbp_lengths_options options;
    hbp_lengths_options_init(&options, sizeof options);
    FAILS(context, HBP_E_INVALID, "sample 1 has 0 tokens",
          hbp_stepper_submit(context, stepper, lengths, 3, NULL));
    lengths[1] = INT64_C(1) << 40;
    FAILS(context, HBP_E_OVERFLOW, "sample 1 has", hbp_stepper_submit(context, stepper, lengths, 3, NULL));
    lengths[1] = 3;
    options.loss_tokens = loss;
    FAILS(context, HBP_E_INVALID, "sample 2 has 8 loss tokens",
          hbp_stepper_submit(context, stepper, lengths, 3, &options));
    options.loss_tokens = NULL;
    options.ties = ties;
    FAILS(context, HBP_E_INVALID, "sample 1 has tie -2",
          hbp_stepper_submit(context, stepper, lengths, 3, &options));
    FAILS(context, HBP_E_INVALID, "0 samples", hbp_stepper_submit(context, stepper, lengths, 0, NULL));
    FAILS(context, HBP_E_INVALID, "lengths is NULL", hbp_stepper_submit(context, stepper, NULL, 3, NULL));
    FAILS(context, HBP_E_INVALID, "stepper is NULL", hbp_stepper_submit(context, NULL, lengths, 3, NULL));
    FAILS(context, HBP_E_INVALID, "batch_lengths is NULL",
          hbp_stepper_submit_lengths(context, stepper, NULL));
    options.struct_size = 1;
    FAILS(context, HBP_E_INVALID, "struct_size", hbp_stepper_submit(context, stepper, lengths, 3, &options));
    ck_assert_int_eq(summary_of(context, stepper).submitted, 0);
    submit(context, stepper, 0);
    submit(context, stepper, 1);
    FAILS(context, HBP_E_INVALID, "step 2: 2 steps are submitted and not taken",
          hbp_stepper_submit(context, stepper, lengths, 3, NULL));
    ck_assert_int_eq(summary_of(context, stepper).submitted, 2);
    FAILS(context, HBP_E_INVALID, "out is NULL", hbp_stepper_take(context, stepper, NULL));
    FAILS(context, HBP_E_INVALID, "stepper is NULL", hbp_stepper_take(context, NULL, &plan));
    FAILS(context, HBP_E_INVALID, "hbp_stepper_summary is NULL",
          hbp_stepper_get_summary(context, stepper, NULL));
    ck_assert_int_eq(hbp_stepper_take(NULL, stepper, &plan), HBP_E_INVALID);
    ck_assert_int_eq(hbp_stepper_submit(NULL, stepper, lengths, 3, NULL), HBP_E_INVALID);
    hbp_plan_free(take(context, stepper));
    OK(context, hbp_stepper_submit(context, stepper, lengths, 3, NULL));
    hbp_stepper_free(stepper);
    hbp_cost_free(cost);
    hbp_context_free(context);
}
END_TEST

START_TEST(a_stepper_without_sense_is_refused)
{
    hbp_context *context = test_context();
    hbp_cost *cost = test_cost(context);
    hbp_stepper_options options;
    hbp_stepper_options_init(&options, sizeof options);
    hbp_step_options step;
    hbp_step_options_init(&step, sizeof step);
    hbp_stepper *stepper = (hbp_stepper *)1;
    FAILS(context, HBP_E_INVALID, "cost is NULL", hbp_stepper_create(context, NULL, NULL, NULL, &stepper));
    ck_assert_ptr_null(stepper);
    FAILS(context, HBP_E_INVALID, "out is NULL", hbp_stepper_create(context, cost, NULL, NULL, NULL));
    options.depth = 1025;
    FAILS(context, HBP_E_INVALID, "depth is 1025",
          hbp_stepper_create(context, cost, NULL, &options, &stepper));
    options.depth = -1;
    FAILS(context, HBP_E_INVALID, "depth is -1", hbp_stepper_create(context, cost, NULL, &options, &stepper));
    step.effort = 77;
    FAILS(context, HBP_E_INVALID, "effort is 77", hbp_stepper_create(context, cost, &step, NULL, &stepper));
    ck_assert_int_eq(hbp_stepper_create(NULL, cost, NULL, NULL, &stepper), HBP_E_INVALID);
    ck_assert_ptr_null(stepper);
    hbp_cost_free(cost);
    hbp_context_free(context);
}
END_TEST

START_TEST(step_options_are_kept)
{
    hbp_context *context = test_context();
    hbp_cost *cost = test_cost(context);
    hbp_step_options options;
    hbp_step_options_init(&options, sizeof options);
    options.min_sp = 4;
    options.sequence_multiple = 128;
    options.micro_batch_multiple = 3;
    hbp_stepper *stepper = NULL;
    OK(context, hbp_stepper_create(context, cost, &options, NULL, &stepper));
    hbp_step_options same = options;
    memset(&options, 0xa5, sizeof options);
    submit(context, stepper, 1);
    hbp_plan *plan = take(context, stepper), *direct = NULL;
    batch b;
    hbp_lengths *lengths = lengths_of(context, draw(&b, 1));
    OK(context, hbp_plan_step(context, lengths, cost, &same, &direct));
    ck_assert_uint_eq(hbp_plan_get_digest(plan), hbp_plan_get_digest(direct));
    hbp_plan_free(direct);
    hbp_plan_free(plan);
    hbp_lengths_free(lengths);
    hbp_stepper_free(stepper);
    hbp_cost_free(cost);
    hbp_context_free(context);
}
END_TEST

static void *cancel_soon(void *context)
{
    nap(20000000);
    hbp_context_cancel(context);
    return NULL;
}

START_TEST(waiting_is_cancelled_and_loses_nothing)
{
    hbp_context *context = test_context();
    hbp_cost *cost = test_cost(context);
    hbp_stepper *stepper = make(context, cost, 1, 1);
    hbp_plan *plan = NULL;
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, cancel_soon, context), 0);
    FAILS(context, HBP_E_CANCELLED, "wait", hbp_stepper_take(context, stepper, &plan));
    pthread_join(thread, NULL);
    submit(context, stepper, 0);
    batch b;
    draw(&b, 1);
    ck_assert_int_eq(pthread_create(&thread, NULL, cancel_soon, context), 0);
    FAILS(context, HBP_E_CANCELLED, "wait",
          hbp_stepper_submit(context, stepper, b.length, b.count, &b.options));
    pthread_join(thread, NULL);
    hbp_context_cancel(context);
    FAILS(context, HBP_E_CANCELLED, "take", hbp_stepper_take(context, stepper, &plan));
    ck_assert_ptr_null(plan);
    plan = take(context, stepper);
    ck_assert_uint_eq(hbp_plan_get_digest(plan), digest_of(context, cost, draw(&b, 0)));
    hbp_plan_free(plan);
    hbp_context_cancel(context);
    FAILS(context, HBP_E_CANCELLED, "submit",
          hbp_stepper_submit(context, stepper, b.length, b.count, &b.options));
    ck_assert_int_eq(summary_of(context, stepper).submitted, 1);
    hbp_stepper_free(stepper);
    hbp_cost_free(cost);
    hbp_context_free(context);
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
        hbp_stepper *stepper = make(context, cost, 4, 0);
        for (int i = 0; i < 4; i++)
            OK(context, hbp_stepper_submit_lengths(context, stepper, lengths));
        nap(after * 100000);
        hbp_stepper_free(stepper);
        ck_assert_int_eq(f.live, live);
    }
    hbp_lengths_free(lengths);
    hbp_cost_free(cost);
    hbp_context_free(context);
    ck_assert_int_eq(f.live, 0);
}
END_TEST

static int64_t count_down(const failing *f)
{
    return (INT64_C(1) << 40) - f->left;
}

/* Once the batches have been seen, a step takes what its plan needs and nothing else: the steps of the second
 * round take from the caller's allocator as many blocks as copies of their plans do. */
START_TEST(memory_is_kept_between_steps)
{
    failing f;
    hbp_context *context = failing_context(&f, NULL, NULL);
    hbp_cost *cost = test_cost(context);
    hbp_stepper *stepper = make(context, cost, 2, 0);
    int64_t first = 0, second = 0, copies = 0, kept = 0;
    f.left = INT64_C(1) << 40; /* counts */
    for (int round = 0; round < 2; round++)
        for (uint64_t step = 0; step < STEPS; step++) {
            int64_t before = count_down(&f);
            submit(context, stepper, step);
            hbp_plan *plan = take(context, stepper);
            *(round ? &second : &first) += count_down(&f) - before;
            before = count_down(&f);
            hbp_plan *copy = hbp__plan_copy(&plan->memory, plan);
            copies += round ? count_down(&f) - before : 0;
            hbp_plan_free(copy);
            hbp_plan_free(plan);
            int64_t now = summary_of(context, stepper).kept_bytes;
            ck_assert(round == 0 || now == kept);
            kept = now;
        }
    ck_assert_int_gt(first, copies);
    ck_assert_int_eq(second, copies);
    hbp_stepper_free(stepper);
    hbp_cost_free(cost);
    hbp_context_free(context);
    ck_assert_int_eq(f.live, 0);
}
END_TEST

static hbp_status whole_run(hbp_context *context, void *cost)
{
    hbp_stepper *stepper = NULL;
    hbp_status status = hbp_stepper_create(context, cost, NULL, NULL, &stepper);
    for (uint64_t step = 0; step < 3 && status >= 0; step++) {
        batch b;
        draw(&b, step);
        hbp_plan *plan = NULL;
        status = hbp_stepper_submit(context, stepper, b.length, b.count, &b.options);
        if (status >= 0)
            status = hbp_stepper_take(context, stepper, &plan);
        ck_assert((plan != NULL) == (status >= 0));
        hbp_plan_free(plan);
    }
    hbp_stepper_free(stepper);
    return status;
}

START_TEST(failing_allocations_leave_nothing)
{
    hbp_context *context = test_context();
    hbp_cost *cost = test_cost(context);
    failing_sweep(whole_run, cost);
    hbp_cost_free(cost);
    hbp_context_free(context);
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
            draw(&b, (uint64_t)submitted);
            r->failed += hbp_stepper_submit(context, stepper, b.length, b.count, &b.options) < 0;
        }
        nap(hbp__rng_below(&rng, 2000000));
        hbp_plan *plan = NULL;
        r->failed += hbp_stepper_take(context, stepper, &plan) < 0;
        r->digest[taken] = hbp_plan_get_digest(plan);
        hbp_plan_free(plan);
    }
    hbp_stepper_summary summary = {.struct_size = sizeof summary};
    r->failed += hbp_stepper_get_summary(context, stepper, &summary) < 0;
    r->all = summary.digest;
    hbp_stepper_free(stepper);
    hbp_context_free(context);
    return NULL;
}

START_TEST(ranks_agree_whatever_their_pace)
{
    hbp_context *context = test_context();
    hbp_cost *cost = test_cost(context);
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
            ck_assert_uint_eq(ranks[i].digest[step], digest_of(context, cost, draw(&b, step)));
        }
    }
    hbp_cost_free(cost);
    hbp_context_free(context);
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
        draw(&b, step);
        r->failed += hbp_stepper_submit(context, r->stepper, b.length, b.count, &b.options) < 0;
        hbp_stepper_summary summary = {.struct_size = sizeof summary};
        r->failed += hbp_stepper_get_summary(context, r->stepper, &summary) < 0;
        r->failed += summary.submitted != (int64_t)step + 1 || summary.taken > summary.planned;
        if (step % 5 == 0)
            nap(2000000);
    }
    hbp_context_free(context);
    return NULL;
}

START_TEST(one_thread_may_submit_and_another_take)
{
    hbp_context *context = test_context();
    hbp_cost *cost = test_cost(context);
    reader r = {make(context, cost, 2, 1), 0};
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, read_batches, &r), 0);
    for (uint64_t step = 0; step < 3 * STEPS; step++) {
        hbp_plan *plan = take(context, r.stepper);
        batch b;
        ck_assert_uint_eq(hbp_plan_get_digest(plan), digest_of(context, cost, draw(&b, step)));
        hbp_plan_free(plan);
    }
    pthread_join(thread, NULL);
    ck_assert_int_eq(r.failed, 0);
    ck_assert_int_eq(summary_of(context, r.stepper).taken, 3 * STEPS);
    hbp_stepper_free(r.stepper);
    hbp_cost_free(cost);
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("stepper", plans_are_those_of_plan_step_in_order,
          data_sets_are_shared_and_plans_outlive_the_stepper, a_step_that_cannot_be_planned_harms_no_other,
          what_cannot_be_submitted_or_taken_is_refused, a_stepper_without_sense_is_refused,
          step_options_are_kept, waiting_is_cancelled_and_loses_nothing, freeing_ends_what_runs,
          memory_is_kept_between_steps, failing_allocations_leave_nothing, ranks_agree_whatever_their_pace,
          one_thread_may_submit_and_another_take)
