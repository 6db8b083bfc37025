/* libhbp: which samples share a pack, which packs share a step, on which GPUs, with how much sequence
 * parallelism and recomputation. The only header a user includes. */
#ifndef HBP_HBP_H
#define HBP_HBP_H

#include "hbp/communicators.h"
#include "hbp/context.h"
#include "hbp/cost.h"
#include "hbp/cost_file.h"
#include "hbp/epoch.h"
#include "hbp/export.h"
#include "hbp/graph.h"
#include "hbp/groups.h"
#include "hbp/iterative_fill.h"
#include "hbp/layers.h"
#include "hbp/lengths.h"
#include "hbp/machine.h"
#include "hbp/model.h"
#include "hbp/packs.h"
#include "hbp/pipeline.h"
#include "hbp/plan.h"
#include "hbp/plan_file.h"
#include "hbp/plan_vlm.h"
#include "hbp/recompute.h"
#include "hbp/simulate.h"
#include "hbp/solver.h"
#include "hbp/sp.h"
#include "hbp/status.h"
#include "hbp/step.h"
#include "hbp/stepper.h"
#include "hbp/task_schedule.h"
#include "hbp/tasks.h"
#include "hbp/timeline.h"
#include "hbp/version.h"
#include "hbp/vlm.h"
#include "hbp/workloads.h"

#endif
