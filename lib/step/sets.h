/* Steps of lockstep sets of several ranks (docs: lockstep): sets do not wait for one another before the step
 * ends, so each is planned as a step of its own ranks, and sequences move from the slowest set to others. */
#ifndef HBP_STEP_SETS_H
#define HBP_STEP_SETS_H

#include "step/step.h"

/* A plan of the step in the place of *solution, one of all ranks in lockstep, where it is shorter. The cost's
 * sets have more than one rank. Keeps to the options; a pure function of its arguments. */
hbp_status hbp__step_sets(const hbp__step *step, hbp__step_solution *solution);

#endif
