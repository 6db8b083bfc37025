/* libhbp: which samples share a pack, which packs share a step, on which GPUs, with how much sequence
 * parallelism and recomputation. The only header a user includes. */
#ifndef HBP_HBP_H
#define HBP_HBP_H

#include "hbp/base.h"
#include "hbp/cost.h"
#include "hbp/epoch.h"
#include "hbp/lengths.h"
#include "hbp/pack.h"
#include "hbp/partition.h"
#include "hbp/pattern.h"
#include "hbp/pipeline.h"
#include "hbp/plan.h"
#include "hbp/step.h"
#include "hbp/tasks.h"
#include "hbp/vlm.h"

#endif
