/* Partitions to choose among: those that other systems make, to start from and to compare with; and those
 * near another one, every inner cut moved by up to a radius. */
#ifndef HBP_PIPELINE_CANDIDATES_H
#define HBP_PIPELINE_CANDIDATES_H

#include <stdint.h>

#include "base/context.h"
#include "pipeline/stages.h"
#include "pipeline/tuning.h"

/* DeepSpeed's partition_balanced of `count` items whose weights sum up to sum[i], i in [0, count), into
 * `parts`: the bottleneck is bisected between the mean and the total to 1e-3, and a probe fills each part up
 * to it. Parts that come out empty get an item from the nearest that has one to spare, where DeepSpeed leaves
 * them empty; cuts [parts + 1]. O(parts log count log(total / 1e-3)). */
void hbp__partition_balanced(const int64_t *sum, int32_t count, int32_t parts, int32_t *cuts);

/* As many items on every part, one more on the first ones. */
void hbp__partition_uniform(int32_t count, int32_t parts, int32_t *cuts);

/* The cuts of HBP__LAYER_PARTITION_BALANCED, _PARAMETERS or _UNIFORM: on layers' times of the mean
 * micro-batch, in whole ns, speeds aside; on their parameters; on nothing. */
hbp_status hbp__anchor(hbp_context *context, const hbp__stages *stages, int32_t method, int32_t *cuts);

/* Fills two lists with those that keep to the limits: by the variance of W_s, and by what is sent over the
 * cuts (OmniBal, section 3.3). Exact up to HBP__NEAR_TRIED of them. Past it the list by variance holds those
 * of the least sum over chunks of squared distance to the anchor's mean W_s / V, which is the variance when
 * neither the mean nor V is other than the anchor's and 1, and with V > 1 those among them that fit. Values
 * of the list by variance are the bits of the variance, which ascend with it; the other's are bytes. */
hbp_status hbp__rank_near(hbp_context *context, const hbp__stages *stages, const int32_t *anchor,
                          int32_t radius, hbp__cut_list *by_variance, hbp__cut_list *by_communication);

#endif
