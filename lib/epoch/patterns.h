/* Epochs planned by patterns (hbp/pattern.h). */
#ifndef HBP_EPOCH_PATTERNS_H
#define HBP_EPOCH_PATTERNS_H

#include "data/pattern/pattern_plan.h"
#include "epoch/epoch.h"

/* The plan of an epoch whose lengths are limited and options checked. */
hbp_status hbp__epoch_plan_patterns(hbp__epoch *epoch, hbp_pattern_plan **out);

/* The same with every sample listed: method patterns. *out stays NULL where the plan takes more than
 * `most_ns`. */
hbp_status hbp__epoch_list_patterns(hbp__epoch *epoch, int64_t most_ns, hbp_plan **out);

/* Whether the search may plan by patterns: samples are many, and nothing is asked for that patterns
 * refuse or that shapes what else is searched. */
int hbp__epoch_suits_patterns(const hbp__epoch *epoch);

#endif
