/* The shortest schedule of a few moldable jobs: each on a number of processors of its choice, with
 * precedence. */
#ifndef HBP_SOLVE_MOLDABLE_H
#define HBP_SOLVE_MOLDABLE_H

#include <stdint.h>

#include "base/context.h"

enum { HBP__MOLDABLE_JOBS = 10 };

typedef struct hbp__moldable_job {
    int32_t sizes;          /* >= 1 */
    const int32_t *size;    /* [sizes] processors, rising, at most all there are */
    const int64_t *time_ns; /* [sizes] there: falling, >= 1 */
    uint32_t needs;         /* bit j: job j, of a lower number, must have ended */
} hbp__moldable_job;

typedef struct hbp__moldable_plan {
    int64_t bound_ns;                 /* no schedule ends earlier */
    int64_t makespan_ns;              /* of the best one found; the same where that is optimal */
    int32_t size[HBP__MOLDABLE_JOBS]; /* index into the job's sizes */
    int64_t start_ns[HBP__MOLDABLE_JOBS];
} hbp__moldable_plan;

/* Jobs [jobs], at most HBP__MOLDABLE_JOBS, whose times processors x time add up to at most 2^62, on
 * `processors`; `bound_ns` is a lower bound that is known. About three times `limit` placings of one job are
 * tried at most, mostly far fewer, and *plan has the best bound and schedule until then. Exponential in jobs.
 * A failure is of memory, or HBP_E_CANCELLED. */
hbp_status hbp__moldable_solve(hbp_context *context, const hbp__moldable_job *job, int32_t jobs,
                               int32_t processors, int64_t bound_ns, int64_t limit, hbp__moldable_plan *plan);

#endif
