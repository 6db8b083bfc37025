/* Partitions that other systems make, to start from and to compare with. */
#ifndef HBP_PIPELINE_ANCHORS_H
#define HBP_PIPELINE_ANCHORS_H

#include <stdint.h>

#include "base/context.h"
#include "pipeline/stages.h"

/* DeepSpeed's partition_balanced of `count` items whose weights sum up to sum[i], i in [0, count), into
 * `parts`: the bottleneck is bisected between the mean and the total to 1e-3, and a probe fills each part up
 * to it. Parts that come out empty get an item from the nearest that has one to spare, where DeepSpeed leaves
 * them empty; cuts [parts + 1]. O(parts log count log(total / 1e-3)). */
void hbp__partition_balanced(const int64_t *sum, int32_t count, int32_t parts, int32_t *cuts);

/* As many items on every part, one more on the first ones. */
void hbp__partition_uniform(int32_t count, int32_t parts, int32_t *cuts);

/* The cuts of HBP_PARTITION_BALANCED, _PARAMETERS or _UNIFORM: on layers' times of the mean micro-batch, in
 * whole ns, speeds aside; on their parameters; on nothing. */
hbp_status hbp__anchor(hbp_context *context, const hbp__stages *stages, int32_t mode, int32_t *cuts);

#endif
