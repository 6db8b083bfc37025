/* The shapes of published models of many tasks (docs: workloads). */
#ifndef HBP_DATA_WORKLOAD_PRESETS_H
#define HBP_DATA_WORKLOAD_PRESETS_H

#include <stdint.h>

#include "base/context.h"
#include "hbp/tasks.h"

/* What a component is made of. */
enum {
    HBP__COMPONENT_ENCODER = 0,  /* attention unmasked, MLP plain */
    HBP__COMPONENT_DECODER = 1,  /* attention causal, and across to an encoder's output; MLP plain */
    HBP__COMPONENT_LANGUAGE = 2, /* attention causal, MLP gated */
    HBP__COMPONENT_CONTRAST = 3  /* one operator: a batch of embeddings of width `hidden` against another */
};

/* A chain of like layers, whose weights all tasks share. */
typedef struct hbp__component {
    const char *name;
    int32_t kind; /* HBP__COMPONENT_* */
    int32_t layers;
    int32_t hidden;
    int32_t ffn;
    int32_t heads;
    int32_t vocab;            /* of an output head behind the last layer; 0: none */
    int64_t first_parameters; /* embeddings, which the first layer holds */
    int64_t last_parameters;  /* projection or adapter, which the last layer holds */
} hbp__component;

/* A component's part of a task. */
typedef struct hbp__task_step {
    int32_t component; /* in the workload's list */
    int32_t batch;
    int32_t sequence;
    uint32_t needs; /* bit i: the output of step i */
} hbp__task_step;

#define HBP__TASK_STEPS 5

typedef struct hbp__task_shape {
    const char *name;
    int32_t steps;
    hbp__task_step step[HBP__TASK_STEPS]; /* in an order that fits `needs` */
} hbp__task_shape;

typedef struct hbp__workload {
    const char *name;
    const hbp__component *component; /* [components] of the whole model */
    int32_t components;
    const hbp__task_shape *task; /* the first `tasks` of a longer list */
    int32_t tasks;
    int32_t large; /* nonzero: states are shared out over an operator's GPUs, and layers are recomputed */
} hbp__workload;

/* NULL for no such preset. */
const hbp__workload *hbp__workload_get(int64_t index);
const char *hbp__workload_name(int64_t index);

/* The preset of that name; HBP_E_INVALID for none offers the nearest. */
hbp_status hbp__workload_find(hbp_context *context, const char *name, const hbp__workload **found);

/* One layer of a transformer component. */
typedef struct hbp__component_layer {
    int64_t parameters;
    int64_t attention_parameters; /* of these; attention across included */
    int64_t activation_bytes;     /* kept per token */
    double attention_flops;       /* forward, per squared token, masks considered */
} hbp__component_layer;

hbp__component_layer hbp__component_layer_of(const hbp__component *component);

/* Parameters of a component, embeddings, projection and output head included. */
int64_t hbp__component_parameters(const hbp__component *component);

#endif
