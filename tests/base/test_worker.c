#include "base/worker.h"

#include <signal.h>
#include <stdatomic.h>
#include <time.h>

#include "failing.h"
#include "test.h"

enum { JOBS = 200 };

typedef struct log_of_jobs {
    int64_t order[JOBS];
    int64_t count;
    int64_t sleep_ns;
    atomic_int began;
    int32_t deaf; /* SIGINT and SIGTERM were blocked */
} log_of_jobs;

static void nap(int64_t ns)
{
    struct timespec time = {.tv_sec = 0, .tv_nsec = (long)ns};
    nanosleep(&time, NULL);
}

static void note(void *user, int64_t job)
{
    log_of_jobs *log = user;
    atomic_fetch_add(&log->began, 1);
    sigset_t blocked;
    pthread_sigmask(SIG_BLOCK, NULL, &blocked);
    log->deaf = sigismember(&blocked, SIGINT) && sigismember(&blocked, SIGTERM);
    nap(log->sleep_ns);
    log->order[log->count++] = job;
}

START_TEST(jobs_are_done_once_and_in_order)
{
    hbp_context *context = test_context();
    for (int64_t depth = 1; depth <= 4; depth++) {
        log_of_jobs log = {.sleep_ns = depth * 10000};
        hbp__worker worker;
        OK(context, hbp__worker_open(context, &worker, depth, note, &log));
        int64_t job = -1, fetched = 0;
        int32_t waited;
        for (int64_t i = 0; i < JOBS; i++) {
            hbp__worker_counts counts = hbp__worker_count(&worker);
            ck_assert_int_eq(counts.brought, i);
            ck_assert_int_eq(counts.fetched, fetched);
            ck_assert_int_le(counts.done, i);
            if (counts.brought - counts.fetched == depth) {
                OK(context, hbp__worker_await(context, &worker, &job, &waited));
                ck_assert_int_eq(job, fetched++);
                hbp__worker_fetch(&worker);
            }
            OK(context, hbp__worker_await_room(context, &worker, &job));
            ck_assert_int_eq(job, i);
            hbp__worker_bring(&worker);
        }
        while (fetched < JOBS) {
            OK(context, hbp__worker_await(context, &worker, &job, &waited));
            ck_assert_int_eq(job, fetched++);
            ck_assert_int_eq(log.order[job], job);
            hbp__worker_fetch(&worker);
        }
        hbp__worker_close(&worker);
        ck_assert_int_eq(log.count, JOBS);
        ck_assert(log.deaf);
    }
    hbp_context_free(context);
}
END_TEST

START_TEST(a_wait_says_whether_it_was_one)
{
    hbp_context *context = test_context();
    log_of_jobs log = {.sleep_ns = 30000000};
    hbp__worker worker;
    OK(context, hbp__worker_open(context, &worker, 2, note, &log));
    hbp__worker_bring(&worker);
    int64_t job;
    int32_t waited = 7;
    OK(context, hbp__worker_await(context, &worker, &job, &waited));
    ck_assert_int_eq(waited, 1);
    OK(context, hbp__worker_await(context, &worker, &job, &waited));
    ck_assert_int_eq(waited, 0);
    ck_assert_int_eq(job, 0);
    hbp__worker_close(&worker);
    hbp_context_free(context);
}
END_TEST

START_TEST(what_has_not_begun_is_dropped_at_the_end)
{
    hbp_context *context = test_context();
    log_of_jobs log = {.sleep_ns = 20000000};
    hbp__worker worker;
    OK(context, hbp__worker_open(context, &worker, 8, note, &log));
    for (int i = 0; i < 8; i++)
        hbp__worker_bring(&worker);
    while (!atomic_load(&log.began))
        nap(100000);
    hbp__worker_close(&worker);
    ck_assert_int_ge(log.count, 1);
    ck_assert_int_lt(log.count, 8);
    ck_assert_int_eq(log.count, atomic_load(&log.began));
    hbp_context_free(context);
}
END_TEST

static void *cancel_soon(void *context)
{
    nap(20000000);
    hbp_context_cancel(context);
    return NULL;
}

START_TEST(a_wait_for_what_never_comes_is_cancelled)
{
    hbp_context *context = test_context();
    log_of_jobs log = {.sleep_ns = 0};
    hbp__worker worker;
    int64_t job;
    int32_t waited;
    OK(context, hbp__worker_open(context, &worker, 1, note, &log));
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, cancel_soon, context), 0);
    FAILS(context, HBP_E_CANCELLED, "wait", hbp__worker_await(context, &worker, &job, &waited));
    pthread_join(thread, NULL);
    hbp__worker_bring(&worker);
    ck_assert_int_eq(pthread_create(&thread, NULL, cancel_soon, context), 0);
    FAILS(context, HBP_E_CANCELLED, "wait", hbp__worker_await_room(context, &worker, &job));
    pthread_join(thread, NULL);
    OK(context, hbp__worker_await(context, &worker, &job, &waited));
    hbp__worker_close(&worker);
    hbp_context_free(context);
}
END_TEST

/* The progress hook is not called under the mutex: it may ask the worker. */
typedef struct asker {
    hbp__worker *worker;
    int64_t calls;
} asker;

static int32_t ask(void *user, const hbp_progress *progress)
{
    asker *a = user;
    a->calls++;
    ck_assert_int_eq(progress->done, 0);
    ck_assert_int_eq(progress->total, 1);
    return hbp__worker_count(a->worker).brought != 1 || a->calls == 3;
}

START_TEST(a_progress_hook_may_come_back)
{
    log_of_jobs log = {.sleep_ns = 100000000};
    hbp__worker worker;
    asker a = {&worker, 0};
    hbp_context_options options = {.struct_size = sizeof options, .progress = ask, .progress_user = &a};
    hbp_context *context = NULL;
    ck_assert_int_eq(hbp_context_create(&options, &context), HBP_OK);
    OK(context, hbp__worker_open(context, &worker, 1, note, &log));
    hbp__worker_bring(&worker);
    int64_t job;
    int32_t waited;
    FAILS(context, HBP_E_CANCELLED, "wait", hbp__worker_await(context, &worker, &job, &waited));
    ck_assert_int_eq(a.calls, 3);
    hbp__worker_close(&worker);
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("worker", jobs_are_done_once_and_in_order, a_wait_says_whether_it_was_one,
          what_has_not_begun_is_dropped_at_the_end, a_wait_for_what_never_comes_is_cancelled,
          a_progress_hook_may_come_back)
