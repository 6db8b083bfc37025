/* A thread that does numbered jobs one after another, and the waits of those who bring and fetch them.
 *
 * One thread brings jobs and one fetches them, the same or another, each with a context of its own. What a
 * job works on belongs to the bringer until hbp__worker_bring, then to the worker, and from hbp__worker_await
 * to hbp__worker_fetch to the fetcher. */
#ifndef HBP_BASE_WORKER_H
#define HBP_BASE_WORKER_H

#include <pthread.h>
#include <stdint.h>

#include "base/context.h"

typedef struct hbp__worker {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    void (*work)(void *user, int64_t job);
    void *user;
    int64_t depth;   /* most jobs brought and not fetched */
    int64_t brought; /* the counts so far; the mutex guards them */
    int64_t done;
    int64_t fetched;
    int32_t stop;
} hbp__worker;

/* Starts the thread, which blocks every signal. It calls work(user, 0), work(user, 1), ... once each is
 * brought. HBP_E_SYSTEM when there is no thread to be had; nothing is left to close then. */
hbp_status hbp__worker_open(hbp_context *context, hbp__worker *worker, int64_t depth,
                            void (*work)(void *user, int64_t job), void *user);

/* Lets no further job begin: to be called before what interrupts the running one. */
void hbp__worker_stop(hbp__worker *worker);

/* Stops, waits for the running job and ends the thread. Jobs that had not begun are never done. */
void hbp__worker_close(hbp__worker *worker);

/* Waits until there is room for the next job; *job gets its number. HBP_E_CANCELLED. */
hbp_status hbp__worker_await_room(hbp_context *context, hbp__worker *worker, int64_t *job);

/* Hands that job over. */
void hbp__worker_bring(hbp__worker *worker);

/* Waits until the oldest job that was not fetched is brought and done; *job gets its number, *waited whether
 * it was not done yet. HBP_E_CANCELLED. */
hbp_status hbp__worker_await(hbp_context *context, hbp__worker *worker, int64_t *job, int32_t *waited);

/* Makes room: that job is fetched. */
void hbp__worker_fetch(hbp__worker *worker);

/* The counts at one moment. Any thread. */
typedef struct hbp__worker_counts {
    int64_t brought;
    int64_t done;
    int64_t fetched;
} hbp__worker_counts;

hbp__worker_counts hbp__worker_count(hbp__worker *worker);

#endif
