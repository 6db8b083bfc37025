/* Graphs in the shape of published models of many tasks, with times by the cost model's curves: for rerunning
 * the comparison of Spindle (section 5) on paper, and to start from. */
#ifndef HBP_WORKLOADS_H
#define HBP_WORKLOADS_H

#include <stdint.h>

#include "hbp/graph.h"
#include "hbp/machine.h"

HBP_BEGIN_DECLS

HBP_API int64_t hbp_workload_count_presets(void);
HBP_API const char *hbp_workload_get_preset_name(int64_t index);
/* Parameters of the whole model, shared ones once; -1 for no such preset. */
HBP_API int64_t hbp_workload_get_preset_parameters(int64_t index);

/* Makes a preset's graph: clip-4, clip-7, clip-10, ofasys-4, ofasys-7, qwen-val-3, qwen-val-3-30b, with each
 * operator's time on 1, 2, 4, ... GPUs of `machine` (docs: workloads). HBP_E_INVALID for an unknown name, and
 * for a machine without the fields that this needs. Thread: one per context. */
HBP_API hbp_status hbp_graph_create_workload(hbp_context *context, const char *name,
                                             const hbp_machine *machine, hbp_graph **out);

HBP_END_DECLS

#endif
