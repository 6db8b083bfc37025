/* Pools that a host may have: each runs tasks in a way of its own. */
#ifndef HBP_TESTS_POOLS_H
#define HBP_TESTS_POOLS_H

#include <pthread.h>

#include "test.h"

typedef void (*pool_task)(void *argument, int32_t index);

/* One after the other on the calling thread, the last first. */
static inline void pool_serial(void *user, int32_t tasks, pool_task task, void *argument)
{
    (void)user;
    for (int32_t i = tasks; i-- > 0;)
        task(argument, i);
}

/* None at all. */
static inline void pool_busy(void *user, int32_t tasks, pool_task task, void *argument)
{
    (void)user, (void)tasks, (void)task, (void)argument;
}

typedef struct pool_call {
    pool_task task;
    void *argument;
    int32_t index;
} pool_call;

static inline void *pool_run_call(void *argument)
{
    const pool_call *call = argument;
    call->task(call->argument, call->index);
    return NULL;
}

/* Each on a thread of its own; the calling one only waits. */
static inline void pool_threads(void *user, int32_t tasks, pool_task task, void *argument)
{
    enum { MOST = 8 };
    pthread_t thread[MOST];
    pool_call call[MOST];
    (void)user;
    ck_assert_int_le(tasks, MOST);
    for (int32_t i = 0; i < tasks; i++) {
        call[i] = (pool_call){task, argument, i};
        ck_assert_int_eq(pthread_create(&thread[i], NULL, pool_run_call, &call[i]), 0);
    }
    for (int32_t i = 0; i < tasks; i++)
        pthread_join(thread[i], NULL);
}

/* Against its contract: indices that there are not, and some twice. */
static inline void pool_wrong(void *user, int32_t tasks, pool_task task, void *argument)
{
    (void)user;
    task(argument, -1);
    task(argument, tasks);
    task(argument, 0);
    pool_threads(user, tasks, task, argument);
}

enum { POOLS = 5 };

/* A context that works on `threads` threads, of pool number `pool`; 0: of the library's own. */
static inline hbp_context *pool_context(int32_t threads, int pool)
{
    static void (*const run[POOLS])(void *, int32_t, pool_task, void *) = {NULL, pool_serial, pool_busy,
                                                                           pool_threads, pool_wrong};
    hbp_pool own = {.struct_size = sizeof own, .run = run[pool]};
    hbp_context_options options = {
        .struct_size = sizeof options, .threads = threads, .pool = pool ? &own : NULL};
    hbp_context *context = NULL;
    ck_assert_int_eq(hbp_context_create(&options, &context), HBP_OK);
    return context;
}

#endif
