#include "base/parallel.h"

#include <pthread.h>
#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "base/thread.h"

/* What all threads share; the mutex guards it from `next` on. */
typedef struct shared {
    hbp_context *context; /* the caller's */
    pthread_t caller;
    struct helper *helper; /* [helpers] */
    int32_t helpers;
    hbp__job_fn work;
    void *user;
    int64_t jobs;
    pthread_mutex_t mutex;
    int64_t next;
    int64_t failed; /* the first job that failed; `jobs`: none */
    int is_cancelled;
    hbp_status status;
    char message[HBP__MESSAGE_BYTES];
} shared;

typedef struct helper {
    pthread_t thread;
    hbp_context *context;
    shared *all;
    atomic_int is_taken; /* by a task of the pool */
    int is_running;
} helper;

/* What the job took of the thread's scratch is released with it. */
static hbp_status do_job(hbp_context *context, const shared *s, int64_t job)
{
    int64_t mark = hbp__scratch_mark(context);
    return hbp__leave(context, mark, s->work(context, s->user, job));
}

/* The next job, or -1 when none is to begin any more. */
static int64_t take_job(shared *s)
{
    pthread_mutex_lock(&s->mutex);
    int64_t job = s->status >= 0 && s->next < s->jobs ? s->next++ : -1;
    pthread_mutex_unlock(&s->mutex);
    return job;
}

static void note_failure(shared *s, const hbp_context *context, int64_t job, hbp_status status)
{
    pthread_mutex_lock(&s->mutex);
    s->is_cancelled |= status == HBP_E_CANCELLED;
    if (job < s->failed) {
        s->failed = job;
        s->status = status;
        memcpy(s->message, context->message, sizeof s->message);
    }
    pthread_mutex_unlock(&s->mutex);
}

/* Takes part with a context of the thread at hand; what cancels it on the caller's, its progress hook
 * perhaps, cancels all. */
static void take_part(hbp_context *context, shared *all)
{
    hbp_status status = HBP_OK;
    for (int64_t job; status >= 0 && (job = take_job(all)) >= 0;) {
        status = do_job(context, all, job);
        if (status < 0)
            note_failure(all, context, job, status);
    }
    for (int32_t i = 0; i < all->helpers && status == HBP_E_CANCELLED && context == all->context; i++)
        hbp_context_cancel(all->helper[i].context);
}

static void *run_helper(void *argument)
{
    const helper *h = argument;
    take_part(h->context, h->all);
    return NULL;
}

/* A task of the pool: on the caller's thread it has the caller's context, so that progress is reported. */
static void run_task(void *argument, int32_t index)
{
    shared *all = argument;
    if (index < 0 || index >= all->helpers)
        return;
    helper *h = &all->helper[index];
    if (atomic_exchange(&h->is_taken, 1))
        return;
    take_part(pthread_equal(pthread_self(), all->caller) ? all->context : h->context, all);
}

/* Contexts for the helpers, fewer where memory is short. */
static void open_helpers(shared *all)
{
    hbp_context *context = all->context;
    for (int32_t i = 0; i < all->helpers; i++) {
        helper *h = &all->helper[i];
        h->all = all;
        atomic_init(&h->is_taken, 0);
        h->context = hbp__context_new(&context->memory);
        if (!h->context) {
            all->helpers = i;
            return;
        }
        h->context->solver = context->solver;
        h->context->parent = context;
    }
}

/* On threads of the library's own, fewer where there are none to be had. */
static void run_threads(shared *all)
{
    for (int32_t i = 0; i < all->helpers; i++) {
        helper *h = &all->helper[i];
        h->is_running = hbp__thread_start(&h->thread, run_helper, h);
        if (!h->is_running)
            break;
    }
    take_part(all->context, all);
    for (int32_t i = 0; i < all->helpers; i++)
        if (all->helper[i].is_running)
            pthread_join(all->helper[i].thread, NULL);
}

static void run_all(shared *all)
{
    hbp_context *context = all->context;
    const int32_t threads = context->threads;
    context->threads = 1; /* for what jobs call on this thread */
    if (all->helpers && context->pool.run) {
        context->pool.run(context->pool.user, all->helpers, run_task, all);
        take_part(context, all);
    } else {
        run_threads(all);
    }
    context->threads = threads;
}

hbp_status hbp__parallel(hbp_context *context, int32_t threads, int64_t jobs, hbp__job_fn work, void *user)
{
    shared all = {.context = context,
                  .caller = pthread_self(),
                  .work = work,
                  .user = user,
                  .jobs = jobs,
                  .failed = jobs,
                  .status = HBP_OK};
    const int64_t count = hbp__min_i64(hbp__threads(context, threads), jobs);
    all.helpers = count > 1 ? (int32_t)count - !context->pool.run : 0;
    all.helper =
        all.helpers ? hbp__new_zero(&context->memory, (uint64_t)all.helpers, sizeof *all.helper) : NULL;
    if (!all.helper)
        all.helpers = 0; /* memory is short: the caller's thread does it */
    if (pthread_mutex_init(&all.mutex, NULL)) {
        hbp__delete(&context->memory, all.helper);
        return hbp__fail(context, HBP_E_SYSTEM, "the system has no mutex left for planning");
    }
    open_helpers(&all);
    run_all(&all);
    for (int32_t i = 0; i < all.helpers; i++)
        hbp_context_free(all.helper[i].context);
    pthread_mutex_destroy(&all.mutex);
    hbp__delete(&context->memory, all.helper);
    if (all.is_cancelled) {
        hbp__enter(context);
        atomic_store_explicit(&context->cancel, 0, memory_order_relaxed);
        return hbp__fail(context, HBP_E_CANCELLED, "%s",
                         all.status == HBP_E_CANCELLED ? all.message : "cancelled");
    }
    return all.status < 0 ? hbp__fail(context, all.status, "%s", all.message) : HBP_OK;
}
