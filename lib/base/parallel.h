/* Jobs that do not depend on each other, on several threads at once. */
#ifndef HBP_BASE_PARALLEL_H
#define HBP_BASE_PARALLEL_H

#include <stdint.h>

#include "base/checked.h"
#include "base/context.h"

/* Does one job; `context` is the thread's own. */
typedef hbp_status (*hbp__job_fn)(hbp_context *context, void *user, int64_t job);

/* Threads of a call: those asked for, with 0 those of the context. */
static inline int32_t hbp__threads(const hbp_context *context, int32_t asked)
{
    return asked ? asked : context->threads;
}

/* Where part `part` of `parts` begins that share `count` things out evenly; that of `parts` is their end. */
static inline int64_t hbp__part_begin(int64_t count, int64_t parts, int64_t part)
{
    return part * (count / parts) + hbp__min_i64(part, count % parts);
}

/* Calls work(own, user, job) once for each job in [0, jobs), on up to `threads` threads, 0 being those of the
 * context: the caller's, with its context, and others, of the context's pool where it has one, each with a
 * context that shares the caller's allocator and solver. A job's own calls of this one have the job's thread
 * alone. Jobs begin in ascending order. When some fail, no further one begins, and the status and message are
 * those of the first of them in that order, whatever the number of threads. Where the system has fewer
 * threads to give, fewer do it. Progress and cancelling are the caller's. */
hbp_status hbp__parallel(hbp_context *context, int32_t threads, int64_t jobs, hbp__job_fn work, void *user);

#endif
