/* Jobs that do not depend on each other, on several threads at once. */
#ifndef HBP_BASE_PARALLEL_H
#define HBP_BASE_PARALLEL_H

#include <stdint.h>

#include "base/context.h"

/* Does one job; `context` is the thread's own. */
typedef hbp_status (*hbp__job_fn)(hbp_context *context, void *user, int64_t job);

/* Calls work(own, user, job) once for each job in [0, jobs), on up to `threads` threads: the caller's, with
 * its context, and others, each with a context that shares the caller's allocator and solver. Jobs begin in
 * ascending order. When some fail, no further one begins, and the status and message are those of the first
 * of them in that order, whatever the number of threads. Where the system has fewer threads to give, fewer
 * do it. Progress and cancelling are the caller's. */
hbp_status hbp__parallel(hbp_context *context, int32_t threads, int64_t jobs, hbp__job_fn work, void *user);

#endif
