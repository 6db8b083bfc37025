#include "base/parallel.h"

#include <pthread.h>
#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "base/thread.h"

/* What all threads share; the mutex guards it. */
typedef struct shared {
    pthread_mutex_t mutex;
    hbp__job_fn work;
    void *user;
    int64_t jobs;
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

static void *run_helper(void *argument)
{
    const helper *h = argument;
    for (int64_t job; (job = take_job(h->all)) >= 0;) {
        hbp_status status = do_job(h->context, h->all, job);
        if (status < 0)
            note_failure(h->all, h->context, job, status);
    }
    return NULL;
}

/* Starts up to `count` helpers; fewer where memory or threads are short. */
static void start_helpers(hbp_context *context, shared *all, helper *helpers, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        helper *h = &helpers[i];
        h->all = all;
        h->context = hbp__context_new(&context->memory);
        if (!h->context)
            return;
        h->context->solver = context->solver;
        h->context->parent = context;
        h->is_running = hbp__thread_start(&h->thread, run_helper, h);
        if (!h->is_running)
            return;
    }
}

/* Takes part on the caller's thread; what cancels it there, its progress hook perhaps, cancels all. */
static void take_part(hbp_context *context, shared *all, const helper *helpers, int32_t count)
{
    hbp_status status = HBP_OK;
    for (int64_t job; status >= 0 && (job = take_job(all)) >= 0;) {
        status = do_job(context, all, job);
        if (status < 0)
            note_failure(all, context, job, status);
    }
    for (int32_t i = 0; i < count && status == HBP_E_CANCELLED; i++)
        if (helpers[i].is_running)
            hbp_context_cancel(helpers[i].context);
}

hbp_status hbp__parallel(hbp_context *context, int32_t threads, int64_t jobs, hbp__job_fn work, void *user)
{
    shared all = {.work = work, .user = user, .jobs = jobs, .failed = jobs, .status = HBP_OK};
    int32_t count = (int32_t)hbp__min_i64(threads, jobs) - 1;
    helper *helpers = count > 0 ? hbp__new_zero(&context->memory, (uint64_t)count, sizeof *helpers) : NULL;
    if (count > 0 && !helpers)
        return hbp__fail_memory(context, "the threads");
    if (pthread_mutex_init(&all.mutex, NULL)) {
        hbp__delete(&context->memory, helpers);
        return hbp__fail(context, HBP_E_SYSTEM, "the system has no mutex left for planning");
    }
    start_helpers(context, &all, helpers, count);
    take_part(context, &all, helpers, count);
    for (int32_t i = 0; i < count; i++) {
        if (helpers[i].is_running)
            pthread_join(helpers[i].thread, NULL);
        hbp_context_free(helpers[i].context);
    }
    pthread_mutex_destroy(&all.mutex);
    hbp__delete(&context->memory, helpers);
    if (all.is_cancelled) {
        hbp__enter(context);
        atomic_store_explicit(&context->cancel, 0, memory_order_relaxed);
        return hbp__fail(context, HBP_E_CANCELLED, "cancelled while steps were planned");
    }
    return all.status < 0 ? hbp__fail(context, all.status, "%s", all.message) : HBP_OK;
}
