/* Graphs of the published models of many tasks, with times from a machine's figures (docs: workloads). */
#include "hbp/tasks.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "cost/communication.h"
#include "cost/states.h"
#include "data/graph/graph.h"
#include "data/model/workload_presets.h"

/* What every operator pays on each GPU however few tokens it gets there: a trainer launches some 30 kernels
 * forward and 60 backward of one transformer layer, fewer for a loss. */
#define KERNEL_NS        5000.0
#define FORWARD_KERNELS  30
#define BACKWARD_KERNELS 60
#define CONTRAST_KERNELS 20

/* Matrix products reach the machine's share of its peak where each GPU gets many tokens. A product of t
 * tokens and h columns runs as t h / (128 x 128) tiles on some hundred multiprocessors, so at this many
 * elements of output half of that is left. */
#define HALF_ELEMENTS 500000.0

/* Bytes per parameter of gradients as they are summed, and of activations on their way: bf16. */
#define GRADIENT_BYTES   2
#define ACTIVATION_BYTES 2

/* Kept per token and word: logits in bf16 and fp32, and their gradient (cost model: logits). */
#define LOGIT_BYTES 10

/* An all-reduce behind attention and one behind the MLP, in each pass (Shoeybi et al., 2019). */
#define PASS_ALL_REDUCES 2

/* Sharded weights are gathered forward and backward, their gradients scattered. */
#define WEIGHT_GATHERS 3

/* A component's states take at most this share of the memory of the least GPUs that it runs on. */
#define LARGEST_SHARE .9

/* A name such as "vision-audio-language/language[59]". */
#define NAME_BYTES 96

/* Powers of two in an int32. */
#define MOST_POINTS 33

/* More than any workload has parts of tasks. */
#define MOST_PROFILES 64

/* What all operators of a graph read, and the profiles that there are. */
typedef struct maker {
    const hbp__workload *workload;
    hbp__fabric fabric;
    hbp_graph *graph;
    const hbp__task_step *profiled[MOST_PROFILES]; /* by number of profile */
    int32_t profiles;
} maker;

/* One operator before it has a profile. */
typedef struct work {
    const hbp__component *component;
    const hbp__task_step *step;
    double kernels;
    double product_flops; /* forward and backward, of the whole batch */
    double attention_flops;
    double all_reduces;
    double gathered_bytes; /* weights that must be there, when they are sharded */
    double shared_bytes;   /* outputs that every GPU needs of all others */
    double output_width;   /* of its products, for how well they fill a GPU */
    int32_t split;
} work;

/* The largest power of two that divides n > 0. */
static int32_t even_part(int32_t n)
{
    return n & -n;
}

static int32_t min_i32(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

/* The most of n GPUs that data parallelism can use: divides the batch, and the others split the heads. 0:
 * none. */
static int32_t data_parallel(const work *w, int32_t n)
{
    for (int32_t p = min_i32(n, w->step->batch); p > 0; p--)
        if (w->step->batch % p == 0 && n % p == 0 && w->split % (n / p) == 0)
            return p;
    return 0;
}

/* Time of collectives among the `ranks` GPUs that share an operator's tensors or weights. */
static double collective_ns(const maker *m, int32_t collective, int32_t ranks, double calls, double bytes)
{
    const char *source;
    hbp__fabric fabric = {m->fabric.machine, ranks, min_i32(ranks, m->fabric.domain)};
    return hbp__cost_ring_ns(&fabric, collective, calls, calls * bytes, &source);
}

/* Time of one operator, forward and backward, on n = p q GPUs: p share the batch, q the heads. Weights that
 * are sharded are gathered inside the NVLink domain while the layer before computes. */
static int64_t operator_ns(const maker *m, const work *w, int32_t n, int32_t p)
{
    const hbp_machine_fields *machine = &m->fabric.machine->fields;
    double q = n / p;
    double tokens = (double)w->step->batch * w->step->sequence / p; /* of each GPU's products */
    double elements = tokens * w->output_width / q;
    double filled = elements / (elements + HALF_ELEMENTS);
    double peak = machine->flops_per_s * n / 1e9;
    double ns = KERNEL_NS * w->kernels + w->product_flops / (peak * machine->gemm_efficiency * filled) +
                w->attention_flops / (peak * machine->attention_efficiency);
    ns += collective_ns(m, HBP_COLLECTIVE_ALL_REDUCE, n / p, w->all_reduces,
                        ACTIVATION_BYTES * tokens * w->component->hidden);
    ns += collective_ns(m, HBP_COLLECTIVE_ALL_GATHER, n, w->shared_bytes > 0, w->shared_bytes);
    double gathered = collective_ns(m, HBP_COLLECTIVE_ALL_GATHER, min_i32(n, m->fabric.domain),
                                    w->gathered_bytes > 0 ? WEIGHT_GATHERS : 0, w->gathered_bytes);
    return hbp__round_i64(ns > gathered ? ns : gathered);
}

/* A profile on `least`, twice as many, ... GPUs, and on all of the machine where the operator can use them;
 * one for all steps of one shape. */
static hbp_status set_profile(hbp_context *context, maker *m, const work *w, int32_t least, int32_t *profile)
{
    for (*profile = 0; *profile < m->profiles; ++*profile) {
        const hbp__task_step *other = m->profiled[*profile];
        if (other->component == w->step->component && other->batch == w->step->batch &&
            other->sequence == w->step->sequence)
            return HBP_OK;
    }
    m->profiled[m->profiles++] = w->step;
    int32_t gpus[MOST_POINTS];
    int64_t ns[MOST_POINTS];
    int64_t points = 0;
    for (int64_t n = least; points < MOST_POINTS; n *= 2) {
        if (n > m->fabric.ranks)
            n = m->fabric.ranks;
        int32_t p = data_parallel(w, (int32_t)n);
        if (p > 0 && (points == 0 || n > gpus[points - 1])) {
            gpus[points] = (int32_t)n;
            ns[points++] = operator_ns(m, w, (int32_t)n, p);
        }
        if (n == m->fabric.ranks)
            break;
    }
    return hbp__graph_add_profile(context, m->graph, gpus, ns, points, profile);
}

/* The least power of two of GPUs that hold a sharded component's states. */
static int32_t least_gpus(const maker *m, const hbp__component *component)
{
    double states = (HBP__WEIGHT_BYTES + HBP__GRADIENT_BYTES + HBP__OPTIMISER_BYTES) *
                    (double)hbp__component_parameters(component);
    double room = LARGEST_SHARE * (double)m->fabric.machine->fields.hbm_bytes;
    int32_t n = 1;
    while (m->workload->large && 2 * n <= m->fabric.ranks && states / n > room)
        n *= 2;
    return n;
}

static void set_states(const maker *m, hbp_operator *fields, int64_t parameters)
{
    int64_t states = (int64_t)(HBP__WEIGHT_BYTES + HBP__GRADIENT_BYTES + HBP__OPTIMISER_BYTES) * parameters;
    fields->state_bytes = m->workload->large ? 0 : states;
    fields->sharded_bytes = m->workload->large ? states : 0;
    fields->gradient_bytes = GRADIENT_BYTES * parameters;
}

/* Adds one operator behind `*last` (-1: none), which becomes it. */
static hbp_status add_operator(hbp_context *context, const maker *m, const hbp_operator *fields,
                               int32_t *last)
{
    int32_t added;
    HBP__TRY(hbp__graph_add_operators(context, m->graph, fields, 1, &added));
    if (*last >= 0)
        HBP__TRY(hbp__graph_add_edge(context, m->graph, *last, added, -1));
    *last = added;
    return HBP_OK;
}

static hbp_operator operator_of(const hbp__task_shape *task, const hbp__task_step *step,
                                const hbp__component *component, const char *type)
{
    hbp_operator fields = {.struct_size = sizeof fields};
    fields.task = task->name;
    fields.type = type;
    fields.batch = step->batch;
    fields.sequence = step->sequence;
    fields.width = component->hidden;
    fields.output_bytes = ACTIVATION_BYTES * fields.batch * fields.sequence * fields.width;
    return fields;
}

/* The similarity of every embedding of one tower with every one of the other: launches more than work. */
static hbp_status add_contrast(hbp_context *context, maker *m, const hbp__task_shape *task, const work *w,
                               int32_t *first, int32_t *last)
{
    hbp_operator fields = operator_of(task, w->step, w->component, w->component->name);
    char name[NAME_BYTES];
    snprintf(name, sizeof name, "%s/%s", task->name, w->component->name);
    fields.name = name;
    fields.activation_bytes = 2 * fields.output_bytes + 4 * fields.batch * fields.batch;
    HBP__TRY(set_profile(context, m, w, 1, &fields.profile));
    HBP__TRY(add_operator(context, m, &fields, last));
    *first = *last;
    return HBP_OK;
}

static hbp_status add_layers(hbp_context *context, maker *m, const hbp__task_shape *task, const work *w,
                             int32_t *first, int32_t *last)
{
    const hbp__component *c = w->component;
    hbp__component_layer layer = hbp__component_layer_of(c);
    hbp_operator fields = operator_of(task, w->step, c, c->name);
    fields.least_gpus = least_gpus(m, c);
    fields.split = w->split;
    int64_t kept = m->workload->large ? ACTIVATION_BYTES * c->hidden : layer.activation_bytes;
    int64_t logits = LOGIT_BYTES * c->vocab / c->layers;
    fields.activation_bytes = (kept + logits) * fields.batch * fields.sequence;
    HBP__TRY(set_profile(context, m, w, fields.least_gpus, &fields.profile));
    for (int32_t i = 0; i < c->layers; i++) {
        char name[NAME_BYTES], weights[NAME_BYTES];
        snprintf(name, sizeof name, "%s/%s[%d]", task->name, c->name, (int)i);
        snprintf(weights, sizeof weights, "%s[%d]", c->name, (int)i);
        fields.name = name;
        fields.parameters = weights;
        set_states(m, &fields,
                   layer.parameters + (i == 0 ? c->first_parameters : 0) +
                       (i == c->layers - 1 ? c->last_parameters + (int64_t)c->vocab * c->hidden : 0));
        HBP__TRY(add_operator(context, m, &fields, last));
        if (i == 0)
            *first = *last;
    }
    return HBP_OK;
}

/* Parameters of an output head, an equal part on every layer: published graphs have no operator of its own
 * for it, and layers that differ would be no chain. */
static double head_share(const hbp__component *component)
{
    return (double)component->vocab * component->hidden / component->layers;
}

static work work_of(const maker *m, const hbp__task_step *step)
{
    const hbp__component *c = &m->workload->component[step->component];
    double batch = step->batch, sequence = step->sequence;
    work w = {.component = c, .step = step, .output_width = c->hidden, .split = 1};
    if (c->kind == HBP__COMPONENT_CONTRAST) {
        w.kernels = CONTRAST_KERNELS;
        w.shared_bytes = 2 * ACTIVATION_BYTES * batch * c->hidden;
        w.product_flops = 6 * 2 * batch * batch * c->hidden;
        return w;
    }
    hbp__component_layer layer = hbp__component_layer_of(c);
    /* Backward does twice the products of forward; recomputing is one more forward. */
    int32_t forwards = m->workload->large ? 2 : 1;
    w.kernels = forwards * FORWARD_KERNELS + BACKWARD_KERNELS;
    w.product_flops = (2 * forwards + 4) * ((double)layer.parameters + head_share(c)) * batch * sequence;
    w.attention_flops =
        (forwards + HBP__ATTENTION_BACKWARD) * layer.attention_flops * batch * sequence * sequence;
    w.all_reduces = PASS_ALL_REDUCES * (forwards + 1);
    w.gathered_bytes = m->workload->large ? HBP__WEIGHT_BYTES * (double)layer.parameters : 0;
    w.split = even_part(c->heads);
    return w;
}

static hbp_status add_step(hbp_context *context, maker *m, const hbp__task_shape *task,
                           const hbp__task_step *step, int32_t *first, int32_t *last)
{
    work w = work_of(m, step);
    *last = -1;
    if (w.component->kind == HBP__COMPONENT_CONTRAST)
        return add_contrast(context, m, task, &w, first, last);
    return add_layers(context, m, task, &w, first, last);
}

static hbp_status add_task(hbp_context *context, maker *m, const hbp__task_shape *task)
{
    int32_t last[HBP__TASK_STEPS];
    for (int32_t i = 0; i < task->steps; i++) {
        int32_t first = -1;
        HBP__TRY(add_step(context, m, task, &task->step[i], &first, &last[i]));
        for (int32_t k = 0; k < i; k++)
            if (task->step[i].needs >> k & 1)
                HBP__TRY(hbp__graph_add_edge(context, m->graph, last[k], first, -1));
    }
    return HBP_OK;
}

static hbp_status make_graph(hbp_context *context, const char *name, const hbp_machine *machine,
                             hbp_graph **out)
{
    HBP__TRY(hbp__require(context, name, "name"));
    HBP__TRY(hbp__require(context, machine, "machine"));
    maker m = {0};
    HBP__TRY(hbp__workload_find(context, name, &m.workload));
    HBP__TRY(hbp__cost_read_fabric(context, machine, &m.fabric));
    HBP__TRY(hbp__graph_create(context, &m.graph));
    hbp_status status = HBP_OK;
    for (int32_t i = 0; i < m.workload->tasks && status == HBP_OK; i++)
        status = add_task(context, &m, &m.workload->task[i]);
    if (status < 0) {
        hbp_graph_free(m.graph);
        return status;
    }
    *out = m.graph;
    return HBP_OK;
}

hbp_status hbp_graph_create_workload(hbp_context *context, const char *name, const hbp_machine *machine,
                                     hbp_graph **out)
{
    HBP__ENTER_OUT(context, out);
    int64_t mark = hbp__scratch_mark(context);
    return hbp__leave(context, mark, make_graph(context, name, machine, out));
}
