/* When the packs of a plan's step run: who waits for whom (docs/explanation/lockstep.md). */
#ifndef HBP_EXAMPLES_STEP_CLOCK_H
#define HBP_EXAMPLES_STEP_CLOCK_H

#include <hbp/hbp.h>

typedef struct step_clock {
    int64_t set; /* ranks of a lockstep set */
    int64_t sets;
    int64_t *free_ns; /* [sets] when each is through with the micro-batches so far */
    int64_t *next_ns;
} step_clock;

/* 0: no memory; to be closed even so. */
int step_clock_open(step_clock *clock, const hbp_plan_summary *summary);
void step_clock_close(step_clock *clock);

/* When the last pack of a step of the view ends, from 0 at its start. `start_ns` [packs of the view] gets
 * when those of the step begin; NULL: not wanted. */
int64_t step_clock_run(step_clock *clock, const hbp_plan_view *view, int64_t step, int64_t *start_ns);

#endif
