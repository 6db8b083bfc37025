/* From the shape of a model and the fields of a machine to the terms of a cost (docs: cost model). */
#include <stdio.h>
#include <string.h>

#include "base/options.h"
#include "cost/communication.h"
#include "cost/cost.h"
#include "cost/shortage.h"
#include "cost/states.h"
#include "data/stack/stack.h"

/* What the optimiser moves per parameter: reads gradients and its states, writes its states and the bf16
 * weights. */
#define UPDATE_BYTES (HBP__GRADIENT_BYTES + 2 * HBP__OPTIMISER_BYTES + HBP__WEIGHT_BYTES)

/* What the derivation reads. */
typedef struct analysis {
    const hbp_model_fields *model;
    const hbp_model_summary *summary;
    hbp__fabric fabric;
    hbp__fabric shard;        /* the ranks that ZeRO shards over */
    hbp_cost_options options; /* defaults filled in */
    hbp_stack_fields stack;
    int32_t given_shard_ranks;
    int32_t given_lockstep_ranks;
} analysis;

static hbp_status read_options(hbp_context *context, const hbp_cost_options *given, hbp_cost_options *o)
{
    HBP__TRY(hbp__options_read(context, o, sizeof *o, given, "hbp_cost_options"));
    if (o->zero_stage == HBP_ZERO_DEFAULT)
        o->zero_stage = HBP_ZERO_3;
    o->reserve_bytes = hbp__reserve(o->reserve_bytes);
    return HBP_OK;
}

/* The stack, whose shares of hidden traffic stand where the options give none. */
static hbp_status read_stack(hbp_context *context, const hbp_model *model, const hbp_machine *machine,
                             analysis *a)
{
    HBP__TRY(hbp__stack_read(context, a->options.stack, model, machine, &a->stack));
    if (a->options.dp_overlap == 0)
        a->options.dp_overlap = a->stack.dp_overlap;
    if (a->options.sp_overlap == 0)
        a->options.sp_overlap = a->stack.sp_overlap;
    return HBP_OK;
}

/* Who shards with whom, and who waits for whom (docs: lockstep). */
static hbp_status read_sets(hbp_context *context, analysis *a)
{
    hbp_cost_options *o = &a->options;
    int32_t ranks = a->fabric.ranks;
    a->given_shard_ranks = o->shard_ranks;
    a->given_lockstep_ranks = o->lockstep_ranks;
    if (!o->shard_ranks)
        o->shard_ranks = ranks;
    if (o->shard_ranks < 1 || ranks % o->shard_ranks)
        return hbp__fail(context, HBP_E_INVALID,
                         "shard_ranks is %d; it must divide the %d ranks, or be 0 for all of them",
                         (int)o->shard_ranks, (int)ranks);
    if (o->shard_ranks < ranks && o->zero_stage == HBP_ZERO_NONE)
        return hbp__fail(context, HBP_E_INVALID, "shard_ranks is %d; without ZeRO nothing is sharded",
                         (int)o->shard_ranks);
    if (!o->lockstep_ranks)
        o->lockstep_ranks = o->zero_stage == HBP_ZERO_3 ? o->shard_ranks : ranks;
    if (o->zero_stage == HBP_ZERO_3 && o->lockstep_ranks % o->shard_ranks)
        return hbp__fail(
            context, HBP_E_INVALID,
            "lockstep_ranks is %d; ZeRO-3 gathers weights over %d ranks in every micro-batch, so "
            "it must be a multiple of them, or 0 for them",
            (int)o->lockstep_ranks, (int)o->shard_ranks);
    a->shard = a->fabric;
    a->shard.ranks = o->shard_ranks;
    a->shard.domain = a->fabric.domain < o->shard_ranks ? a->fabric.domain : o->shard_ranks;
    if (o->zero_stage == HBP_ZERO_2 && o->lockstep_ranks < ranks)
        o->zero_stage = HBP_ZERO_1;
    return HBP_OK;
}

/* What passes over `bytes` of HBM take, per token. */
static double memory_ns(const analysis *a, double bytes)
{
    return bytes / a->fabric.machine->fields.hbm_bytes_per_s * 1e9;
}

/* Equations of docs: cost model, "Compute". */
static void derive_compute(const analysis *a, hbp_cost_terms *t)
{
    const hbp_machine_fields *machine = &a->fabric.machine->fields;
    const hbp_stack_fields *s = &a->stack;
    double matmul = (double)a->summary->matmul_parameters;
    double head = (double)a->model->vocab * a->model->hidden;
    double products = 6 * matmul / (machine->flops_per_s * s->gemm_efficiency) * 1e9;
    double forward_share = s->recompute_attention / (1 + HBP__ATTENTION_BACKWARD) *
                           (s->attention_efficiency / s->forward_attention_efficiency);
    double elementwise =
        memory_ns(a, s->elementwise_bytes * (double)a->model->layers * (double)a->model->hidden);
    double logits = memory_ns(a, s->logits_traffic_bytes * a->model->vocab);
    t->layers = a->model->layers;
    t->ns_per_token_squared = (1 + HBP__ATTENTION_BACKWARD) * a->summary->forward_flops_per_token_squared /
                              (machine->flops_per_s * s->attention_efficiency) * 1e9;
    /* A document of s tokens takes s (s + attention_tokens) times that. */
    double attention = t->ns_per_token_squared * s->attention_tokens;
    /* Recomputing a layer repeats its forward pass, a third of forward and backward; the output projection is
     * no layer. */
    double repeated = (matmul - head) / matmul / 3 * s->recompute_products;
    t->ns_per_token = products + (elementwise + logits + attention);
    t->recompute_linear = repeated;
    if (elementwise + logits + attention > 0)
        t->recompute_linear = (products * repeated + elementwise / 3 +
                               t->ns_per_token_squared * forward_share * s->forward_attention_tokens) /
                              t->ns_per_token;
    t->recompute_attention = forward_share;
    t->recompute_communication = 0.5;
}

/* Parameters of one layer, experts included. */
static double layer_parameters(const analysis *a)
{
    double embeddings = (double)a->model->vocab * a->model->hidden * (a->model->tied_embeddings ? 1 : 2) +
                        (double)a->model->learned_positions * a->model->hidden;
    return ((double)a->summary->parameters - embeddings) / a->model->layers;
}

static void derive_memory(const analysis *a, hbp_cost_terms *t)
{
    t->static_bytes = hbp__cost_static_bytes(a->options.zero_stage, a->shard.ranks,
                                             (double)a->summary->parameters, layer_parameters(a));
    t->activation_bytes = (double)a->summary->activation_bytes * a->stack.activations;
    t->recomputed_bytes = (double)a->summary->recomputed_bytes;
    t->working_bytes = t->activation_bytes;
    const int is_fused = a->options.fused_cross_entropy || a->stack.fused_cross_entropy;
    t->logits_bytes = is_fused ? 0 : a->stack.logits_kept_bytes * a->model->vocab;
    /* Logits are gone before the first layer is recomputed: of the two the larger counts. */
    if (a->options.stack)
        t->working_bytes = t->working_bytes > t->logits_bytes ? t->working_bytes - t->logits_bytes : 0;
    t->sp_buffer_bytes = 2 * hbp__cost_sp_elements(a->model, 1);
    t->limit_bytes = hbp__max_i64(a->fabric.machine->fields.hbm_bytes - a->options.reserve_bytes, 0);
}

/* What the products of a micro-batch take beside their share of its tokens: as much as gemm_tokens more, of
 * all experts. */
static double small_products_ns(const analysis *a)
{
    const double head = (double)a->model->vocab * a->model->hidden;
    const double matrices = layer_parameters(a) * a->model->layers + head;
    return a->stack.gemm_tokens * 6 * matrices /
           (a->fabric.machine->fields.flops_per_s * a->stack.gemm_efficiency) * 1e9;
}

/* The sum of gradient shards over the replicas of what is sharded, once a step; ns. */
static double replicas_ns(const analysis *a, double parameters)
{
    const char *source;
    hbp__fabric replicas = a->fabric;
    replicas.ranks = a->fabric.ranks / a->shard.ranks;
    replicas.domain = a->fabric.domain / a->shard.domain;
    return hbp__cost_ring_ns(&replicas, HBP_COLLECTIVE_ALL_REDUCE, a->model->layers,
                             HBP__GRADIENT_BYTES * parameters / a->shard.ranks, &source);
}

/* What data parallelism adds to every micro-batch and to every step. Sources are those of measurements, or
 * NULL. */
static void derive_step(const analysis *a, hbp_cost_terms *t, const char **gather_source,
                        const char **reduce_source)
{
    int32_t stage = a->options.zero_stage;
    int32_t reduction = stage == HBP_ZERO_NONE ? HBP_COLLECTIVE_ALL_REDUCE : HBP_COLLECTIVE_REDUCE_SCATTER;
    double parameters = (double)a->summary->parameters;
    double layers = a->model->layers;
    double exposed = 1 - a->options.dp_overlap;
    double gather = exposed * hbp__cost_ring_ns(&a->shard, HBP_COLLECTIVE_ALL_GATHER, layers,
                                                HBP__WEIGHT_BYTES * parameters, gather_source);
    double reduce = exposed * hbp__cost_ring_ns(&a->shard, reduction, layers,
                                                HBP__GRADIENT_BYTES * parameters, reduce_source);
    double traffic = 0;
    double shard = stage == HBP_ZERO_NONE ? parameters : parameters / a->shard.ranks;
    t->pack_ns = (double)a->options.pack_overhead_ns + small_products_ns(a);
    t->step_ns = UPDATE_BYTES * shard / a->fabric.machine->fields.hbm_bytes_per_s * 1e9;
    t->step_ns += exposed * replicas_ns(a, parameters);
    switch (stage) {
    case HBP_ZERO_3: /* weights are gathered for the forward and again for the backward pass */
        traffic = 2 * gather + reduce;
        break;
    case HBP_ZERO_2: /* gradients are sharded as they arise, hence once a micro-batch */
        traffic = reduce;
        t->step_ns += gather;
        break;
    case HBP_ZERO_1:
        t->step_ns += reduce + gather;
        break;
    default:
        t->step_ns += reduce;
        break;
    }
    t->pack_ns += traffic;
    t->compute_overlap = a->stack.compute_overlap;
    t->traffic_ns = t->compute_overlap > 0 ? traffic : 0;
    t->least_compute_ns = a->stack.layer_ns * layers;
}

/* The Ulysses degrees that the heads, the machine and max_sp allow: at most `heads`. */
static int is_allowed(const analysis *a, const hbp_model *model, int32_t d)
{
    return a->fabric.ranks % d == 0 && hbp_model_is_sp_legal(model, d) &&
           (!a->options.max_sp || d <= a->options.max_sp) &&
           (a->options.lockstep_ranks == 1 || a->options.lockstep_ranks % d == 0) &&
           hbp__cost_nests(d, a->fabric.domain);
}

/* Appends "SP 8: nccl-tests 2.19; " to a text that names where each degree's row came from. */
static size_t append_source(char *text, size_t used, int32_t sp, const char *source)
{
    int wrote = snprintf(text + used, HBP__COST_SOURCE_BYTES - used, "SP %d: %s; ", (int)sp, source);
    size_t room = HBP__COST_SOURCE_BYTES - used - 1;
    return used + ((size_t)wrote < room ? (size_t)wrote : room);
}

/* Fills the tables [room for `heads` rows] and their source text; returns the rows. */
static int32_t derive_degrees(const analysis *a, const hbp_model *model, int32_t *degree, double *latency_ns,
                              double *ns_per_token, char *source)
{
    int32_t rows = 0;
    int32_t derived = 0;
    size_t used = 0;
    int32_t most = a->fabric.ranks < a->model->heads ? a->fabric.ranks : a->model->heads;
    source[0] = '\0';
    for (int32_t d = 1; d <= most; d++) {
        if (!is_allowed(a, model, d))
            continue;
        const char *measured;
        degree[rows] = d;
        hbp__cost_all_to_all(&a->fabric, a->model, d, &latency_ns[rows], &ns_per_token[rows], &measured);
        ns_per_token[rows] *= 1 - a->options.sp_overlap;
        if (d > 1)
            ns_per_token[rows] +=
                memory_ns(a, 2 * a->stack.exchange_passes * hbp__cost_exchanged_bytes(a->model, d));
        rows++;
        if (measured)
            used = append_source(source, used, d, measured);
        else
            derived++;
    }
    /* "; " after the last measurement, or what the other rows are. */
    snprintf(source + used, HBP__COST_SOURCE_BYTES - used, "%s", "analysis");
    if (used >= 2 && derived <= 1)
        source[used - 2] = '\0';
    return rows;
}

/* The source of pack_ns or step_ns when measured collectives are in it. */
static void name_collectives(hbp_cost *cost, int32_t index, const char *gather, const char *reduce)
{
    if (!gather && !reduce)
        return;
    char text[2 * HBP__SOURCE_BYTES + 64];
    snprintf(text, sizeof text, "%s%s%s%s%s", gather ? "all-gather: " : "", gather ? gather : "",
             gather && reduce ? "; " : "", reduce ? "reduction: " : "", reduce ? reduce : "");
    hbp__cost_set_source(cost, index, text);
}

static void name_sources(const analysis *a, hbp_cost *cost, const char *gather, const char *reduce,
                         const char *sp)
{
    int32_t stage = a->options.zero_stage;
    name_collectives(cost, HBP__COST_pack_ns, stage == HBP_ZERO_3 ? gather : NULL,
                     stage == HBP_ZERO_3 || stage == HBP_ZERO_2 ? reduce : NULL);
    name_collectives(cost, HBP__COST_step_ns, stage == HBP_ZERO_2 || stage == HBP_ZERO_1 ? gather : NULL,
                     stage == HBP_ZERO_1 || stage == HBP_ZERO_NONE ? reduce : NULL);
    hbp__cost_set_source(cost, HBP__COST_sp_latency_ns, sp);
    hbp__cost_set_source(cost, HBP__COST_sp_ns_per_token, sp);
}

static hbp__cost_origin name_origin(const analysis *a)
{
    const hbp_machine_fields *machine = &a->fabric.machine->fields;
    const int32_t domain = a->fabric.machine->preset_domain_gpus;
    return (hbp__cost_origin){.parameters = (double)a->summary->parameters,
                              .layer_parameters = layer_parameters(a),
                              .hbm_bytes = machine->hbm_bytes,
                              .reserve_bytes = a->options.reserve_bytes,
                              .nodes = machine->nodes,
                              .gpus_per_node = machine->gpus_per_node,
                              .domain_gpus = domain ? domain : machine->domain_gpus,
                              .shard_ranks = a->options.shard_ranks,
                              .given_shard_ranks = a->given_shard_ranks,
                              .given_lockstep_ranks = a->given_lockstep_ranks,
                              .max_sp = a->options.max_sp,
                              .peak_ns_per_token =
                                  6 * (double)a->summary->matmul_parameters / machine->flops_per_s * 1e9,
                              .peak_ns_per_token_squared = (1 + HBP__ATTENTION_BACKWARD) *
                                                           a->summary->forward_flops_per_token_squared /
                                                           machine->flops_per_s * 1e9};
}

hbp_status hbp__cost_create(hbp_context *context, const hbp_model *model, const hbp_machine *machine,
                            const hbp_cost_options *options, hbp_cost **out)
{
    HBP__TRY(hbp__require(context, model, "model"));
    HBP__TRY(hbp__require(context, machine, "machine"));
    analysis a = {.model = &model->fields, .summary = &model->summary};
    HBP__TRY(read_options(context, options, &a.options));
    HBP__TRY(hbp__cost_read_fabric(context, machine, &a.fabric));

    HBP__TRY(read_stack(context, model, machine, &a));
    HBP__TRY(read_sets(context, &a));
    hbp_cost_terms terms = {.struct_size = sizeof terms};
    const char *gather_source;
    const char *reduce_source;
    terms.ranks = a.fabric.ranks;
    terms.domain_ranks = a.fabric.domain;
    terms.lockstep_ranks = a.options.lockstep_ranks;
    terms.uneven_micro_batches = a.options.uneven_micro_batches;
    derive_compute(&a, &terms);
    derive_memory(&a, &terms);
    derive_step(&a, &terms, &gather_source, &reduce_source);
    const hbp__cost_origin origin = name_origin(&a);
    if (hbp__round_i64(terms.static_bytes) > terms.limit_bytes)
        return hbp__cost_refuse_states(context, hbp__model_said(model), a.options.zero_stage, &origin,
                                       &terms);

    uint64_t room = (uint64_t)a.model->heads;
    int32_t *degree = hbp__new(&context->memory, room, sizeof *degree);
    double *latency_ns = hbp__new(&context->memory, room, sizeof *latency_ns);
    double *ns_per_token = hbp__new(&context->memory, room, sizeof *ns_per_token);
    hbp_status status;
    if (degree && latency_ns && ns_per_token) {
        char source[HBP__COST_SOURCE_BYTES];
        char from[HBP__COST_SOURCE_BYTES];
        if (snprintf(from, sizeof from, "analysis%s%s", a.options.stack ? ", stack " : "",
                     a.options.stack ? a.options.stack : "") >= (int)sizeof from)
            memcpy(from + sizeof from - 4, "...", 4);
        terms.degrees = derive_degrees(&a, model, degree, latency_ns, ns_per_token, source);
        terms.degree = degree;
        terms.sp_latency_ns = latency_ns;
        terms.sp_ns_per_token = ns_per_token;
        hbp_cost *cost = NULL;
        status = hbp__cost_make(context, &terms, from, &cost);
        if (status == HBP_OK) {
            cost->heads = a.model->heads;
            cost->kv_heads = a.model->mla_kv_lora > 0 ? a.model->heads : a.model->kv_heads;
            cost->zero_stage = a.options.zero_stage;
            cost->origin = origin;
            hbp__cost_set_name(cost->model_name, model->name);
            hbp__cost_set_name(cost->machine_name, machine->name);
            name_sources(&a, cost, gather_source, reduce_source, source);
            *out = cost;
        }
    } else {
        status = hbp__fail_memory(context, "SP degrees");
    }
    hbp__delete(&context->memory, degree);
    hbp__delete(&context->memory, latency_ns);
    hbp__delete(&context->memory, ns_per_token);
    return status;
}

hbp_status hbp_cost_create(hbp_context *context, const hbp_model *model, const hbp_machine *machine,
                           const hbp_cost_options *options, hbp_cost **out)
{
    HBP__ENTER_OUT(context, out);
    return hbp__cost_create(context, model, machine, options, out);
}
