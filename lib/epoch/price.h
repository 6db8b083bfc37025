/* What planning steps one by one takes, and how they are planned for it: counted, never timed. */
#ifndef HBP_EPOCH_PRICE_H
#define HBP_EPOCH_PRICE_H

#include "epoch/epoch.h"

/* About what searching for all samples' steps one by one takes at effort 1, in ns; the same on every machine.
 * What is worth planning does not hang on the effort, so that more of it is never worse. */
int64_t hbp__price_of_search(const hbp__epoch *epoch, int64_t tokens_per_step);

/* Whether that is so much that steps are built, where they may be. */
int hbp__price_is_dear(const hbp__epoch *epoch, int64_t tokens_per_step);

/* About what planning them takes, built where searching for them is dear. */
int64_t hbp__price_of_steps(const hbp__epoch *epoch, int64_t tokens_per_step);

/* How `steps` steps of `samples` samples, which take `ns` in all, or no less, are planned: HBP__BATCHES_*.
 * The effort of the epoch, the caller's own copy, falls to what searching for them may take. More effort does
 * all that less does. */
int32_t hbp__price_choose(hbp__epoch *epoch, int64_t steps, int64_t samples, int64_t ns);

#endif
