#include "base/parallel.h"

#include <stdatomic.h>
#include <time.h>

#include "failing.h"
#include "test.h"

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
          nothing_is_left_behind)
