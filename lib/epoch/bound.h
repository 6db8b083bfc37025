/* What no plan of the epoch can beat (docs: bound), and where plans record it. */
#ifndef HBP_EPOCH_BOUND_H
#define HBP_EPOCH_BOUND_H

#include "epoch/epoch.h"

/* The bound for a plan of every sample in steps of at most `tokens_per_step` tokens (0: any), `steps` of them
 * at least; 0 where there is none. */
hbp_status hbp__epoch_bound(const hbp__epoch *epoch, int64_t tokens_per_step, int64_t steps,
                            int64_t *bound_ns);

/* The least time of any pack with a sample of `length` tokens; -1 when none holds it. */
int64_t hbp__epoch_alone_ns(const hbp_cost *cost, int64_t length);

/* Raises that bound where steps of at most `tokens_per_step` tokens wait for the longest samples. */
hbp_status hbp__epoch_bound_long(const hbp__epoch *epoch, int64_t tokens_per_step, int64_t *bound_ns);

/* Gives `plan` that bound, or a sharper one of few samples, where it holds all samples in steps that keep to
 * the tokens. */
hbp_status hbp__epoch_set_bound(const hbp__epoch *epoch, int64_t tokens_per_step, int64_t bound_ns,
                                hbp_plan *plan);

/* Where `plan` holds all samples, raises its bound to that for as many steps as it has, of at most
 * `tokens_per_step` tokens (0: any); or to that for whatever steps. */
hbp_status hbp__epoch_raise_bound_of_steps(const hbp__epoch *epoch, int64_t tokens_per_step, hbp_plan *plan);
hbp_status hbp__epoch_set_free_bound(const hbp__epoch *epoch, hbp_plan *plan);

#endif
