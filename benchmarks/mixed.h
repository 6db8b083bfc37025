/* The part of bench_quality that is about steps that are no hierarchy. */
#ifndef BENCH_MIXED_H
#define BENCH_MIXED_H

#include "common.h"

/* Plans every data set in composition auto without slack, and prints what that comes to beside the hierarchy.
 */
void bench_mixed(hbp_context *context, const hbp_cost *cost, int is_quick);

#endif
