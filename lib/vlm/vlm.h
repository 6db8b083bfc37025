/* The pieces of hbp_plan_vlm: data, then stages, then memory, then the epoch simulated. */
#ifndef HBP_VLM_VLM_H
#define HBP_VLM_VLM_H

#include "base/context.h"
#include "cost/cost.h"
#include "data/packs/packs.h"
#include "data/pipeline/layers.h"
#include "data/plan/plan.h"
#include "data/table/table.h"
#include "hbp/vlm.h"
#include "simulate/pipeline/pipeline.h"

/* What a call works on: options without zeros, and what follows from them and the machine. */
typedef struct hbp__vlm_run {
    hbp_context *context;
    const hbp_lengths *lengths;
    const hbp_vlm *vlm;
    hbp_vlm_options options;
    hbp_machine_fields fields;
    const hbp_machine *machine;
    int32_t gpus; /* of all replicas */
    int64_t limit_bytes;
    double link_bytes_per_s;
    int64_t link_latency_ns;
} hbp__vlm_run;

/* Reads and checks the options, fills defaults in. */
hbp_status hbp__vlm_open(hbp_context *context, const hbp_lengths *lengths, const hbp_vlm *vlm,
                         const hbp_machine *machine, const hbp_vlm_options *options, hbp__vlm_run *run);

/* What a micro-batch weighs: vision units, tokens (padded), squares. */
typedef struct hbp__vlm_size {
    double vision;
    double tokens;
    double squares;
} hbp__vlm_size;

/* Layers for the mean micro-batch, and what their times make of any other: language layers take
 * token_ns * tokens + square_ns * squares, vision layers vision_ns * vision, in all, on one stage. */
typedef struct hbp__vlm_reference {
    hbp_layers *layers;
    hbp__vlm_size mean;
    double vision_ns;
    double token_ns;
    double square_ns;
    double fixed_ns;
} hbp__vlm_reference;

hbp_status hbp__vlm_reference_open(const hbp__vlm_run *run, const hbp__vlm_size *mean,
                                   hbp__vlm_reference *reference);
void hbp__vlm_reference_close(hbp__vlm_reference *reference);

/* Fills in the linear times from layers, mean and square_ns. */
void hbp__vlm_reference_fill(hbp__vlm_reference *reference);

/* Scales of a micro-batch against the reference; time of language layers apart. */
double hbp__vlm_vision_scale(const hbp__vlm_reference *reference, const hbp__vlm_size *size);
double hbp__vlm_token_scale(const hbp__vlm_reference *reference, const hbp__vlm_size *size);
double hbp__vlm_token_time_scale(const hbp__vlm_reference *reference, const hbp__vlm_size *size);

/* Packs, padded or not, by the method that the options say. `length` [packs] is what each pack is padded to
 * in data that are padded, else NULL. */
typedef struct hbp__vlm_packs {
    hbp_packs *packs;
    int64_t *length;    /* scratch */
    int64_t max_vision; /* Q_v and Q_t; 0 in padded data */
    int64_t max_tokens;
} hbp__vlm_packs;

hbp_status hbp__vlm_fill(const hbp__vlm_run *run, int32_t samples, hbp__vlm_packs *out);
void hbp__vlm_packs_close(hbp__vlm_packs *packs);

/* The packs' mean size, and pack p's. */
hbp__vlm_size hbp__vlm_mean(const hbp__vlm_packs *packs);
hbp__vlm_size hbp__vlm_pack_size(const hbp__vlm_packs *packs, int64_t p);

/* Micro-batches of a full step on each replica: as given, or as come nearest to batch_samples samples in all.
 */
int32_t hbp__vlm_micro_batches(const hbp__vlm_run *run, const hbp__vlm_packs *packs);

/* The packs dealt to replicas, micro-batches and steps. */
hbp_status hbp__vlm_deal(const hbp__vlm_run *run, const hbp__vlm_packs *packs,
                         const hbp__vlm_reference *reference, int32_t micro_batches, hbp_plan **out);

/* Row p of the data plan. */
hbp__vlm_size hbp__vlm_row_size(const hbp__vlm_run *run, const hbp_plan *data, int64_t p);

/* Cuts, and what each layer recomputes under them; in scratch. */
typedef struct hbp__vlm_stages {
    int32_t chunks;
    int32_t layers;
    int32_t *cuts;    /* [chunks + 1] */
    int32_t *choices; /* [layers] */
    int64_t *bytes;   /* [stages] no step of the epoch needs more on the stage */
    int64_t ns;       /* a usual step takes, simulated */
    int32_t rounds;
    hbp_recompute_report report;
} hbp__vlm_stages;

/* Stages and recomputation for the data: scales of time from a usual step of the plan, of bytes from the
 * largest packs of all, so that every step fits. */
hbp_status hbp__vlm_stages_open(const hbp__vlm_run *run, const hbp_plan *data,
                                const hbp__vlm_reference *reference, hbp__vlm_stages *stages);

/* Of cuts and choices, [stages] each: the mean time for a micro-batch; the bytes that no step needs more of.
 */
void hbp__vlm_stage_ns(const hbp__vlm_run *run, const hbp__vlm_reference *reference,
                       const hbp__vlm_stages *stages, int64_t *ns);
hbp_status hbp__vlm_stage_bytes(const hbp__vlm_run *run, const hbp_plan *data,
                                const hbp__vlm_reference *reference, const hbp__vlm_stages *stages,
                                int64_t *bytes);

/* Pipeline options of a step, and their scales; in scratch. */
typedef struct hbp__vlm_pipeline {
    hbp_pipeline_options options;
    double *scale; /* [4 M] vision bytes, token bytes, vision time, token time */
    int64_t *limit;
} hbp__vlm_pipeline;

hbp_status hbp__vlm_pipeline_open(const hbp__vlm_run *run, int32_t micro_batches,
                                  hbp__vlm_pipeline *pipeline);

/* Sets micro-batch m's four scales. */
void hbp__vlm_pipeline_set(hbp__vlm_pipeline *pipeline, const hbp__vlm_reference *reference, int32_t m,
                           const hbp__vlm_size *size);

/* Simulates every step of the plan, each replica with its own packs: step times into the result, and the
 * plan again with each step's micro-batches in the order that was found best. */
hbp_status hbp__vlm_steps(const hbp__vlm_run *run, const hbp__vlm_reference *reference,
                          const hbp__vlm_stages *stages, hbp_plan **data, hbp_vlm_plan *out);

/* Who looks on while steps are run again. */
typedef struct hbp__vlm_audience {
    void *user;
    void (*replica)(void *user, int32_t replica); /* whose operations come next */
    void (*operation)(void *user, int64_t row, const hbp__operation_run *run);
    hbp_status (*end)(void *user, int64_t step, int64_t ns);
} hbp__vlm_audience;

/* Runs steps [first, end) as they are: step_ns [end - first], and what all stages of all replicas are busy.
 * `audience` NULL: nobody looks on. */
hbp_status hbp__vlm_replay(const hbp__vlm_run *run, const hbp__vlm_reference *reference,
                           const hbp__vlm_stages *stages, const hbp_plan *data, int64_t first, int64_t end,
                           const hbp__vlm_audience *audience, int64_t *step_ns, int64_t *busy_ns);

/* No data, stages, order and recomputation take less for the plan's samples: their work, unpadded, spread
 * evenly over all stages of all replicas. */
hbp_status hbp__vlm_bound(const hbp__vlm_run *run, const hbp__vlm_reference *reference, const hbp_plan *data,
                          int64_t *bound_ns);

/* The same for the packs and steps as they are: a stage works for all micro-batches of the step, and waits
 * for at least one to come through the stages before it (docs: vlm, with the proof). O(packs). */
hbp_status hbp__vlm_packs_bound(const hbp__vlm_run *run, const hbp__vlm_reference *reference,
                                const hbp_plan *data, int64_t *bound_ns);

struct hbp_vlm_plan {
    hbp__memory memory;
    hbp_plan *data;
    hbp_layers *layers;
    hbp_vlm_plan_summary summary; /* struct_size is not kept up */
    int64_t layer_count;
    int64_t chunks;
    int64_t stages;
    int64_t steps;
    int64_t busy_ns; /* of all stages of all replicas */
    /* What its steps are run with: hbp__vlm_reference, the link between stages, whether data are padded. */
    double reference_vision;
    double reference_tokens;
    double reference_squares;
    double square_ns;
    double link_bytes_per_s;
    int64_t link_latency_ns;
    int32_t padded;
    int32_t *cuts;
    int32_t *recompute;
    int64_t *stage_ns;
    int64_t *stage_bytes;
    int64_t *step_ns;
};

extern const hbp__table hbp__vlm_table;

/* What a plan's steps are run with, as hbp_plan_vlm had it when the plan was made; nothing to close. Only
 * what stages and steps depend on is set in `run`. */
typedef struct hbp__vlm_replayed {
    hbp__vlm_run run;
    hbp__vlm_reference reference;
    hbp__vlm_stages stages;
} hbp__vlm_replayed;

void hbp__vlm_restore(hbp_context *context, const hbp_vlm_plan *plan, hbp__vlm_replayed *out);

/* Whether numbers and columns agree with each other and with the data, and are safe to walk and to run:
 * HBP_E_INVALID names the first breach. */
hbp_status hbp__vlm_check(hbp_context *context, const hbp_vlm_plan *plan);

/* Over everything decided: data, cuts, recomputation. */
uint64_t hbp__vlm_digest(const hbp_vlm_plan *plan);

#endif
