/* Fitting the times of a cost, and whether what was fitted is better than what there was before. */
#ifndef HBP_COST_FIT_H
#define HBP_COST_FIT_H

#include "cost/cost.h"

/* What of a prior and what was measured predicts packs best that it was not made of. */
typedef struct hbp__held_out {
    int32_t times;    /* HBP_FIT_* */
    double scale;     /* of the prior's times, by all packs */
    double fit_error; /* medians; 0 where there are too few packs to hold any out, -1 where fits to most
                         of the others were refused */
    double scaled_error;
    double prior_error;
} hbp__held_out;

/* Fits the times of `prior` to measurements that are checked: as hbp_cost_fit, without memory, sources and
 * what is held out. */
typedef hbp_status (*hbp__times_fit)(hbp_context *context, const hbp_cost *prior,
                                     const hbp_measurements *part, hbp_cost **out);

/* Each fifth of the packs predicted from a fit to the others. One that is refused predicts nothing.
 * HBP_E_NO_MEMORY, HBP_E_CANCELLED. Five times a fit. */
hbp_status hbp__fit_hold_out(hbp_context *context, const hbp_cost *prior, const hbp_measurements *measured,
                             hbp__times_fit fit, hbp__held_out *held);

#endif
