/* The order in which the micro-batches of a step enter the pipeline. */
#ifndef HBP_PIPELINE_ORDER_H
#define HBP_PIPELINE_ORDER_H

#include "base/context.h"
#include "pipeline/tuning.h"
#include "simulate/pipeline/pipeline.h"

/* Puts `order` [M], which names columns of `times`, each once, into the order of least time that it finds
 * with about `work` operations of simulation: never slower than as given; the best of all for M <=
 * HBP__ORDER_EXACT, whatever the work. `limit_bytes` [S] may be NULL; an order that fits in it stays one that
 * does. *before_ns, *after_ns may be NULL. */
hbp_status hbp__order_micro_batches(hbp_context *context, hbp__schedule *schedule,
                                    const hbp__stage_times *times, const int64_t *limit_bytes, int64_t work,
                                    int32_t *order, int64_t *before_ns, int64_t *after_ns);

#endif
