#include "base/worker.h"

#include <string.h>
#include <time.h>

#include "base/thread.h"

/* A wait looks up this often: a cancel may come from a signal handler, which cannot wake it. */
#define LOOK_UP_NS 5000000L
#define NS_PER_S   1000000000L

/* Nobody sets the monotonic clock back; macOS has condition variables of the other one only. */
#if defined(__APPLE__)
#define WAIT_CLOCK CLOCK_REALTIME
#else
#define WAIT_CLOCK CLOCK_MONOTONIC
#endif

static void *run_worker(void *argument)
{
    hbp__worker *worker = argument;
    pthread_mutex_lock(&worker->mutex);
    for (;;) {
        while (!worker->stop && worker->done == worker->brought)
            pthread_cond_wait(&worker->changed, &worker->mutex);
        if (worker->stop)
            break;
        int64_t job = worker->done;
        pthread_mutex_unlock(&worker->mutex);
        worker->work(worker->user, job);
        pthread_mutex_lock(&worker->mutex);
        worker->done++;
        pthread_cond_broadcast(&worker->changed);
    }
    pthread_mutex_unlock(&worker->mutex);
    return NULL;
}

static int open_condition(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    if (pthread_condattr_init(&attributes))
        return 0;
    int failed = 0;
#if !defined(__APPLE__)
    failed = pthread_condattr_setclock(&attributes, WAIT_CLOCK);
#endif
    failed = failed || pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
    return !failed;
}

hbp_status hbp__worker_open(hbp_context *context, hbp__worker *worker, int64_t depth,
                            void (*work)(void *user, int64_t job), void *user)
{
    memset(worker, 0, sizeof *worker);
    worker->depth = depth;
    worker->work = work;
    worker->user = user;
    if (!pthread_mutex_init(&worker->mutex, NULL)) {
        if (open_condition(&worker->changed)) {
            if (hbp__thread_start(&worker->thread, run_worker, worker))
                return HBP_OK;
            pthread_cond_destroy(&worker->changed);
        }
        pthread_mutex_destroy(&worker->mutex);
    }
    return hbp__fail(context, HBP_E_SYSTEM, "the system has no thread left for planning");
}

void hbp__worker_stop(hbp__worker *worker)
{
    pthread_mutex_lock(&worker->mutex);
    worker->stop = 1;
    pthread_cond_broadcast(&worker->changed);
    pthread_mutex_unlock(&worker->mutex);
}

void hbp__worker_close(hbp__worker *worker)
{
    hbp__worker_stop(worker);
    pthread_join(worker->thread, NULL);
    pthread_cond_destroy(&worker->changed);
    pthread_mutex_destroy(&worker->mutex);
}

/* Waits until something changed or it is time to look up; the mutex is held. The progress hook is the
 * caller's code, which may come back here: it runs without the mutex. */
static hbp_status wait_a_little(hbp_context *context, hbp__worker *worker)
{
    struct timespec until;
    clock_gettime(WAIT_CLOCK, &until);
    until.tv_nsec += LOOK_UP_NS;
    until.tv_sec += until.tv_nsec / NS_PER_S;
    until.tv_nsec %= NS_PER_S;
    int64_t done = worker->done, brought = worker->brought;
    pthread_cond_timedwait(&worker->changed, &worker->mutex, &until);
    pthread_mutex_unlock(&worker->mutex);
    hbp_status status = hbp__tick(context, "wait", done, brought);
    pthread_mutex_lock(&worker->mutex);
    return status;
}

hbp_status hbp__worker_await_room(hbp_context *context, hbp__worker *worker, int64_t *job)
{
    hbp_status status = HBP_OK;
    pthread_mutex_lock(&worker->mutex);
    while (status >= 0 && worker->brought - worker->fetched == worker->depth)
        status = wait_a_little(context, worker);
    *job = worker->brought;
    pthread_mutex_unlock(&worker->mutex);
    return status;
}

void hbp__worker_bring(hbp__worker *worker)
{
    pthread_mutex_lock(&worker->mutex);
    worker->brought++;
    pthread_cond_broadcast(&worker->changed);
    pthread_mutex_unlock(&worker->mutex);
}

hbp_status hbp__worker_await(hbp_context *context, hbp__worker *worker, int64_t *job, int32_t *waited)
{
    hbp_status status = HBP_OK;
    pthread_mutex_lock(&worker->mutex);
    *waited = worker->fetched == worker->done;
    while (status >= 0 && worker->fetched == worker->done)
        status = wait_a_little(context, worker);
    *job = worker->fetched;
    pthread_mutex_unlock(&worker->mutex);
    return status;
}

void hbp__worker_fetch(hbp__worker *worker)
{
    pthread_mutex_lock(&worker->mutex);
    worker->fetched++;
    pthread_cond_broadcast(&worker->changed);
    pthread_mutex_unlock(&worker->mutex);
}

hbp__worker_counts hbp__worker_count(hbp__worker *worker)
{
    pthread_mutex_lock(&worker->mutex);
    hbp__worker_counts counts = {worker->brought, worker->done, worker->fetched};
    pthread_mutex_unlock(&worker->mutex);
    return counts;
}
