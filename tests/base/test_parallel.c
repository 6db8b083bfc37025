#include "base/parallel.h"

#include <stdatomic.h>
#include <time.h>

#include "failing.h"
#include "pools.h"

enum { JOBS = 500 };

typedef struct work_log {
    atomic_int done[JOBS];
    atomic_int running;
    atomic_int most;   /* at once */
    int64_t fail_from; /* jobs from here on that are odd fail */
    int64_t cancel_at; /* this job cancels the caller's context; -1: none */
    hbp_context *caller;
} work_log;

static void nap(long ns)
{
    struct timespec time = {.tv_sec = 0, .tv_nsec = ns};
    nanosleep(&time, NULL);
}

static hbp_status work(hbp_context *context, void *user, int64_t job)
{
    work_log *log = user;
    int running = atomic_fetch_add(&log->running, 1) + 1, most = atomic_load(&log->most);
    while (running > most && !atomic_compare_exchange_weak(&log->most, &most, running))
        ;
    nap(20000);
    atomic_fetch_add(&log->done[job], 1);
    atomic_fetch_sub(&log->running, 1);
    if (job == log->cancel_at)
        hbp_context_cancel(log->caller);
    hbp_status status = hbp__tick(context, "test", job, JOBS);
    if (status >= 0 && job >= log->fail_from && job % 2)
        return hbp__fail(context, HBP_E_INFEASIBLE, "job %d", (int)job);
    return status;
}

START_TEST(every_job_is_done_once)
{
    hbp_context *context = test_context();
    for (int32_t threads = 0; threads <= 5; threads++)
        for (int64_t jobs = 0; jobs <= JOBS; jobs += jobs < 3 ? 1 : 497) {
            work_log log = {.fail_from = JOBS, .cancel_at = -1};
            OK(context, hbp__parallel(context, threads, jobs, work, &log));
            for (int64_t i = 0; i < JOBS; i++)
                ck_assert_int_eq(atomic_load(&log.done[i]), i < jobs);
            ck_assert_int_le(atomic_load(&log.most), threads > 1 ? threads : 1);
        }
    hbp_context_free(context);
}
END_TEST

START_TEST(the_first_failure_is_told)
{
    hbp_context *context = test_context();
    for (int32_t threads = 1; threads <= 4; threads++)
        for (int64_t from = 0; from < 60; from += 7) {
            work_log log = {.fail_from = from, .cancel_at = -1};
            char message[16];
            snprintf(message, sizeof message, "job %d", (int)(from | 1));
            FAILS(context, HBP_E_INFEASIBLE, message, hbp__parallel(context, threads, JOBS, work, &log));
            ck_assert_int_eq(atomic_load(&log.done[JOBS - 1]), 0);
        }
    hbp_context_free(context);
}
END_TEST

START_TEST(a_cancel_ends_all)
{
    hbp_context *context = test_context();
    for (int32_t threads = 1; threads <= 4; threads++) {
        work_log log = {.fail_from = JOBS, .cancel_at = 10, .caller = context};
        FAILS(context, HBP_E_CANCELLED, "cancelled", hbp__parallel(context, threads, JOBS, work, &log));
        ck_assert_int_eq(atomic_load(&log.done[JOBS - 1]), 0);
        log.cancel_at = -1;
        OK(context, hbp__parallel(context, threads, JOBS, work, &log));
    }
    hbp_context_free(context);
}
END_TEST

/* On any pool: all jobs, the first failure, and a cancel. */
START_TEST(a_pool_does_the_same)
{
    for (int pool = 0; pool < POOLS; pool++)
        for (int32_t threads = 1; threads <= 4; threads++) {
            hbp_context *context = pool_context(threads, pool);
            work_log log = {.fail_from = JOBS, .cancel_at = -1};
            OK(context, hbp__parallel(context, 0, JOBS, work, &log));
            for (int64_t i = 0; i < JOBS; i++)
                ck_assert_int_eq(atomic_load(&log.done[i]), 1);
            ck_assert_int_le(atomic_load(&log.most), threads);
            log = (work_log){.fail_from = 30, .cancel_at = -1};
            FAILS(context, HBP_E_INFEASIBLE, "job 31", hbp__parallel(context, 0, JOBS, work, &log));
            log = (work_log){.fail_from = JOBS, .cancel_at = 10, .caller = context};
            FAILS(context, HBP_E_CANCELLED, "cancelled", hbp__parallel(context, 0, JOBS, work, &log));
            ck_assert_int_eq(atomic_load(&log.done[JOBS - 1]), 0);
            log.cancel_at = -1;
            OK(context, hbp__parallel(context, 0, JOBS, work, &log));
            hbp_context_free(context);
        }
}
END_TEST

/* A pool that counts its tasks, and the jobs done when they are. */
typedef struct counting {
    work_log *log;
    int32_t tasks;
    int32_t done;
} counting;

static void count_and_run(void *user, int32_t tasks, pool_task task, void *argument)
{
    counting *c = user;
    c->tasks += tasks;
    pool_serial(NULL, tasks, task, argument);
    for (int i = 0; i < JOBS; i++)
        c->done += atomic_load(&c->log->done[i]);
}

/* A task for each thread, which do it all: nothing is left for the calling thread. */
START_TEST(a_pool_does_the_work)
{
    for (int32_t threads = 1; threads <= 4; threads++) {
        work_log log = {.fail_from = JOBS, .cancel_at = -1};
        counting c = {&log, 0, 0};
        hbp_pool pool = {.struct_size = sizeof pool, .run = count_and_run, .user = &c};
        hbp_context_options options = {.struct_size = sizeof options, .threads = threads, .pool = &pool};
        hbp_context *context = NULL;
        ck_assert_int_eq(hbp_context_create(&options, &context), HBP_OK);
        OK(context, hbp__parallel(context, 0, JOBS, work, &log));
        ck_assert_int_eq(c.tasks, threads > 1 ? threads : 0);
        ck_assert_int_eq(c.done, threads > 1 ? JOBS : 0);
        hbp_context_free(context);
    }
}
END_TEST

static hbp_status nest(hbp_context *context, void *user, int64_t job)
{
    (void)job;
    return hbp__parallel(context, 0, 5, work, user);
}

/* Jobs of jobs have one thread each. */
START_TEST(a_job_has_one_thread)
{
    for (int pool = 0; pool < POOLS; pool++) {
        hbp_context *context = pool_context(3, pool);
        work_log log = {.fail_from = JOBS, .cancel_at = -1};
        OK(context, hbp__parallel(context, 0, 20, nest, &log));
        ck_assert_int_le(atomic_load(&log.most), 3);
        ck_assert_int_eq(atomic_load(&log.done[4]), 20);
        hbp_context_free(context);
    }
}
END_TEST

START_TEST(wrong_pools_and_threads_are_refused)
{
    hbp_pool none = {.struct_size = sizeof none}, wrong = {.struct_size = 3};
    hbp_context *context = NULL;
    hbp_context_options options = {.struct_size = sizeof options, .pool = &none};
    ck_assert_int_eq(hbp_context_create(&options, &context), HBP_E_INVALID);
    options.pool = &wrong;
    ck_assert_int_eq(hbp_context_create(&options, &context), HBP_E_INVALID);
    options.pool = NULL;
    options.threads = 1025;
    ck_assert_int_eq(hbp_context_create(&options, &context), HBP_E_INVALID);
    options.threads = -1;
    ck_assert_int_eq(hbp_context_create(&options, &context), HBP_E_INVALID);
    ck_assert_ptr_null(context);
}
END_TEST

static hbp_status allocate(hbp_context *context, void *user, int64_t job)
{
    (void)user;
    void *block = hbp__new(&context->memory, 10 + (uint64_t)job, 8);
    if (!block)
        return hbp__fail_memory(context, "a job");
    hbp__delete(&context->memory, block);
    return HBP_OK;
}

static hbp_status once(hbp_context *context, void *user)
{
    (void)user;
    return hbp__parallel(context, 1, 5, allocate, NULL);
}

START_TEST(nothing_is_left_behind)
{
    failing_sweep(once, NULL);
}
END_TEST

TEST_MAIN("parallel", every_job_is_done_once, the_first_failure_is_told, a_cancel_ends_all,
          a_pool_does_the_same, a_pool_does_the_work, a_job_has_one_thread,
          wrong_pools_and_threads_are_refused, nothing_is_left_behind)
