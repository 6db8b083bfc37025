/* Plans many tasks on one machine: which operators run on how many GPUs, on which, when (Spindle, arXiv
 * 2409.03365); and runs such plans on paper. */
#ifndef HBP_TASKS_H
#define HBP_TASKS_H

#include <stdint.h>

#include "hbp/context.h"
#include "hbp/graph.h"
#include "hbp/machine.h"
#include "hbp/task_schedule.h"

/* How slices are made. */
enum {
    HBP_TASKS_OVERLAP = 0, /* the library's: levels may overlap, gaps are filled; never longer than PAPER */
    HBP_TASKS_PAPER = 1,   /* Spindle: level by level in waves (section 3.4; docs: tasks) */
    HBP_TASKS_SEQUENTIAL = 2, /* task after task, each operator on as many GPUs as make it fastest */
    HBP_TASKS_UNIFORM = 3,    /* ceil(N / tasks) GPUs a task */
    HBP_TASKS_OPTIMUS = 4,    /* GPUs to tasks one by one, where they save most (Optimus) */
    HBP_TASKS_DISTMM = 5      /* task after task; operators of a level of one task side by side (DistMM) */
};

/* How slices get their ranks. */
enum {
    HBP_PLACE_FLOWS = 0, /* few bytes between GPUs and domains; states stay where they are */
    HBP_PLACE_PAPER = 1, /* Spindle's released code: orders of slices on consecutive ranks, hill-climbed */
    HBP_PLACE_SEQUENTIAL = 2 /* consecutive ranks as slices come */
};

HBP_BEGIN_DECLS

typedef struct hbp_tasks_options {
    uint32_t struct_size;
    int32_t mode;          /* HBP_TASKS_* */
    int32_t placement;     /* HBP_PLACE_* */
    int32_t effort;        /* of mode overlap, 1..9; 0: 5 */
    int64_t reserve_bytes; /* of each GPU; 0: 5 GB; -1: none */
    int64_t limit_bytes;   /* of each GPU, instead of its memory less the reserve; 0: that; -1: no limit */
    const hbp_task_schedule *previous; /* planned before some task joined or left: states stay on their ranks
                                          where they can, weights told by name; NULL */
    uint64_t seed;                     /* of the searches' draws */
} hbp_tasks_options;

HBP_API void hbp_tasks_options_init(hbp_tasks_options *options, uint32_t struct_size);

/* Plans one step of all tasks on all GPUs of the machine (nodes x gpus_per_node, at most 65,536; domain_gpus,
 * hbm_bytes and links are read). Contraction to MetaOps, levels, the continuous optimum of each, two-point
 * rounding, waves; then, by default, the search for shorter ones; then placement under each GPU's memory.
 * Where slices do not fit in memory, others are tried on more GPUs, which share out activations and sharded
 * states, and on fewer, which hold fewer copies of the rest. Of the same graph, machine, mode and placement
 * `previous` is the answer as it stands. HBP_E_INVALID for what hbp_graph_check refuses, an operator that may
 * run on no number of these GPUs, options out of range; HBP_E_INFEASIBLE when nothing that was tried fits in
 * memory (a proof only where the message counts all bytes). The summary's gap says how far the bound is.
 * Deterministic. Thread: one per context. */
HBP_API hbp_status hbp_plan_tasks(hbp_context *context, const hbp_graph *graph, const hbp_machine *machine,
                                  const hbp_tasks_options *options, hbp_task_schedule **out);

/* A schedule that was run on paper, with transfers. */
typedef struct hbp_task_run hbp_task_run;

typedef struct hbp_task_run_options {
    uint32_t struct_size;
    int32_t barriers;  /* nonzero: a wave starts when the one before has ended, transfers included */
    int32_t transfers; /* -1: they take no time */
    int32_t gradients; /* -1: gradients are not summed at the end */
} hbp_task_run_options;

HBP_API void hbp_task_run_options_init(hbp_task_run_options *options, uint32_t struct_size);

/* Runs one step: every rank works through its slices in order of waves, each as soon as all its ranks are
 * free and its inputs are there. An output of b bytes that goes from ranks A to ranks B leaves b (1 - |A and
 * B| / max(|A|, |B|)) bytes to move, there and back, shared by min(|A|, |B|) GPUs, over NVLink as far as both
 * have ranks in one domain, else over the network; links are not shared with other transfers. Then gradients
 * of each set of weights, in their order, are summed over its ranks by ring all-reduce as soon as these have
 * run their slices: over NVLink inside one domain, else over the network, where a ring leaves a domain
 * through the cards of all its GPUs in the group. The schedule is validated first. With neither transfers,
 * gradients nor barriers, total_ns is makespan_ns or less. Errors as there, and HBP_E_INVALID for a machine
 * whose links' speeds are unknown. O(slices x ranks). Thread: one per context. */
HBP_API hbp_status hbp_simulate_tasks(hbp_context *context, const hbp_graph *graph,
                                      const hbp_machine *machine, const hbp_task_schedule *schedule,
                                      const hbp_task_run_options *options, hbp_task_run **out);
HBP_API void hbp_task_run_free(hbp_task_run *run);

typedef struct hbp_task_run_summary {
    uint32_t struct_size;
    int32_t gpus;
    int64_t total_ns;    /* with transfers and gradients */
    int64_t slices_ns;   /* when the last slice ends */
    int64_t transfer_ns; /* time that slices waited for inputs on their way while their ranks were free,
                            summed over slices and weighted by GPUs / N */
    int64_t gradient_ns; /* total_ns - slices_ns */
    int64_t flow_bytes;  /* one way, as in hbp_task_summary */
    int64_t moved_bytes;
    int64_t crossing_bytes;
    int64_t peak_bytes;
    double idle;              /* share of GPU time, 0 to slices_ns, without a slice */
    uint64_t schedule_digest; /* of the schedule that was run */
    uint64_t digest;          /* over columns and all of this but idle */
} hbp_task_run_summary;

HBP_API void hbp_task_run_summary_init(hbp_task_run_summary *summary, uint32_t struct_size);
HBP_API hbp_status hbp_task_run_get_summary(hbp_context *context, const hbp_task_run *run,
                                            hbp_task_run_summary *summary);

/* The columns of a run (docs: views). */
typedef struct hbp_task_run_view {
    uint32_t struct_size;
    int64_t slices;              /* of the schedule */
    const int64_t *slice_starts; /* [slices] ns */
    const int64_t *slice_ends;   /* [slices] ns */
} hbp_task_run_view;

HBP_API hbp_status hbp_task_run_get_view(const hbp_task_run *run, hbp_task_run_view *view);

/* Writes the run to a file, whole or not at all; reads one (docs: files of one object), of which nothing is
 * believed: HBP_E_FORMAT names the byte and what is wrong there, HBP_E_VERSION a newer format. Columns give a
 * trace: hbp_task_schedule_trace. O(slices). Thread: one per context. */
HBP_API hbp_status hbp_task_run_save(hbp_context *context, const hbp_task_run *run, const char *path);
HBP_API hbp_status hbp_task_run_load(hbp_context *context, const char *path, hbp_task_run **out);

/* Writes all of it as JSON, under the keys of its file. Whole or not at all. O(slices). */
HBP_API hbp_status hbp_task_run_write_json(hbp_context *context, const hbp_task_run *run, const char *path);

/* Whether the numbers are those of the columns. With `schedule`: whether this, its graph and the machine, run
 * with these options, make the same run; without, the last four are not looked at. HBP_E_INVALID names the
 * first breach; errors of hbp_simulate_tasks. Thread: one per context. */
HBP_API hbp_status hbp_task_run_validate(hbp_context *context, const hbp_task_run *run,
                                         const hbp_graph *graph, const hbp_machine *machine,
                                         const hbp_task_schedule *schedule,
                                         const hbp_task_run_options *options);

HBP_END_DECLS

#endif
