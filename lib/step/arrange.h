/* What the planners that are compared with share: groups written down one micro-batch after the other, and
 * packs of one degree. */
#ifndef HBP_STEP_ARRANGE_H
#define HBP_STEP_ARRANGE_H

#include "step/step.h"

/* An empty solution with room for any in which every group holds something. */
hbp_status hbp__step_arrange_open(const hbp__step *step, hbp__step_solution *solution);

/* Adds padding micro-batches up to min_micro_batches and prices. HBP_E_INFEASIBLE when there are more than
 * max_micro_batches. */
hbp_status hbp__step_arrange_close(const hbp__step *step, hbp__step_solution *solution);

/* As many micro-batches as the options and the sequences allow, padding packs not counted. */
int64_t hbp__step_most_micro_batches(const hbp__step *step);

/* The step on groups of step->degree[j] alone, which hold every sequence: packs of at most `tenths` / 10 of
 * the group's capacity, or of the longest sequence where that is more, best fit decreasing; and as many packs
 * of like time in a micro-batch as there are groups. Where layers may be recomputed, the faster of packs that
 * need none and packs as large as they can be. O(count log count), and a block of
 * gaps moved for each sequence. */
hbp_status hbp__step_arrange_degree(const hbp__step *step, int32_t j, int32_t tenths,
                                    hbp__step_solution *solution);

/* Closes the slower of *best (zeroed: none yet) and *trial, and leaves the other in *best; zeroes *trial. */
void hbp__step_keep_faster(hbp__step_solution *best, hbp__step_solution *trial);

#endif
