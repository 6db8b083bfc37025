/* All-to-alls and collectives from what was measured, or from the speed of links. */
#include "cost/communication.h"

#include <math.h>

#include "base/checked.h"

/* NCCL moves activations in bf16. */
#define ACTIVATION_BYTES 2.0

hbp_status hbp__cost_read_fabric(hbp_context *context, const hbp_machine *machine, hbp__fabric *fabric)
{
    const hbp_machine_fields *f = &machine->fields;
    int64_t ranks = (int64_t)f->nodes * f->gpus_per_node;
    const struct {
        int32_t index; /* HBP__MACHINE_<name> */
        int needed;
    } fields[] = {
        {HBP__MACHINE_nodes, 1},
        {HBP__MACHINE_gpus_per_node, 1},
        {HBP__MACHINE_domain_gpus, 1},
        {HBP__MACHINE_hbm_bytes, 1},
        {HBP__MACHINE_hbm_bytes_per_s, 1},
        {HBP__MACHINE_flops_per_s, 1},
        {HBP__MACHINE_gemm_efficiency, 1},
        {HBP__MACHINE_attention_efficiency, 1},
        /* A machine of which nodes, GPUs or domains are not known may need any link. */
        {HBP__MACHINE_nvlink_bytes_per_s, ranks == 0 || (ranks > 1 && f->domain_gpus != 1)},
        {HBP__MACHINE_network_bytes_per_s, ranks == 0 || ranks > f->domain_gpus},
        {HBP__MACHINE_nvlink_latency_ns, 0},
        {HBP__MACHINE_network_latency_ns, 0},
    };
    uint32_t missing = 0;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const char *name = hbp__machine_field_name(fields[i].index);
        double value = hbp__machine_field_value(machine, fields[i].index);
        if (!isfinite(value) || value < 0)
            return hbp__fail(context, HBP_E_INVALID,
                             "%s of machine %s is %g; it must be finite and at least 0", name, machine->name,
                             value);
        if (fields[i].needed && value == 0)
            missing |= UINT32_C(1) << fields[i].index;
    }
    if (missing)
        return hbp__machine_fail_missing(context, machine, missing);
    if (ranks > HBP_MAX_RANKS)
        return hbp__fail(context, HBP_E_OVERFLOW,
                         "machine %s has %lld GPUs, nodes=%d of gpus_per_node=%d; it must have at most %d",
                         machine->name, (long long)ranks, (int)f->nodes, (int)f->gpus_per_node,
                         HBP_MAX_RANKS);
    fabric->machine = machine;
    fabric->ranks = (int32_t)ranks;
    fabric->domain = f->domain_gpus < ranks ? f->domain_gpus : (int32_t)ranks;
    if (ranks % fabric->domain)
        return hbp__fail(context, HBP_E_INVALID,
                         "domain_gpus of machine %s is %d, which does not divide its %d GPUs", machine->name,
                         (int)fabric->domain, (int)ranks);
    return HBP_OK;
}

double hbp__cost_sp_elements(const hbp_model_fields *model, int32_t sp)
{
    int32_t latent = model->mla_kv_lora > 0;
    int64_t kv = hbp__max_i64(latent ? model->heads : model->kv_heads, sp);
    double key = latent ? (double)model->mla_nope_dim + model->mla_rope_dim : model->head_dim;
    double value = latent ? model->mla_v_dim : model->head_dim;
    return (double)(model->heads + kv) * (key + value);
}

/* Of one layer and pass, on a rank, per token of the pack. */
static double held_bytes(const hbp_model_fields *model, int32_t sp)
{
    return ACTIVATION_BYTES * hbp__cost_sp_elements(model, sp) / sp;
}

double hbp__cost_exchanged_bytes(const hbp_model_fields *model, int32_t sp)
{
    return 2.0 * model->layers * held_bytes(model, sp);
}

void hbp__cost_all_to_all(const hbp__fabric *fabric, const hbp_model_fields *model, int32_t sp,
                          double *latency_ns, double *ns_per_token, const char **source)
{
    *latency_ns = 0;
    *ns_per_token = 0;
    *source = NULL;
    if (sp == 1)
        return;
    const hbp_machine_fields *machine = &fabric->machine->fields;
    /* A rank holds 1/sp of the tokens and sends all but 1/sp of what it holds: to its domain over fast links,
     * then to the rest over the network. */
    double held = held_bytes(model, sp);
    double near = (double)((sp < fabric->domain ? sp : fabric->domain) - 1) / sp;
    double far = (double)(sp > fabric->domain ? sp - fabric->domain : 0) / sp;
    double latency;
    double seconds;
    hbp_machine_collective measured = {.struct_size = sizeof measured};
    if (hbp_machine_get_collective(fabric->machine, HBP_COLLECTIVE_ALL_TO_ALL, sp, &measured)) {
        *source = measured.source;
        latency = measured.latency_ns;
        seconds = held * (near + far) / measured.bytes_per_s;
    } else {
        *source = NULL;
        latency = far > 0 ? machine->network_latency_ns : machine->nvlink_latency_ns;
        seconds = (near > 0 ? held * near / machine->nvlink_bytes_per_s : 0) +
                  (far > 0 ? held * far / machine->network_bytes_per_s : 0);
    }
    double passes = 2.0 * model->layers;
    *latency_ns = 4 * passes * latency;
    *ns_per_token = passes * seconds * 1e9;
}

double hbp__cost_ring_ns(const hbp__fabric *fabric, int32_t collective, double calls, double bytes,
                         const char **source)
{
    *source = NULL;
    if (fabric->ranks == 1)
        return 0;
    const hbp_machine_fields *machine = &fabric->machine->fields;
    double latency = machine->nvlink_latency_ns;
    double bandwidth = machine->nvlink_bytes_per_s;
    hbp_machine_collective measured = {.struct_size = sizeof measured};
    if (hbp_machine_get_collective(fabric->machine, collective, fabric->ranks, &measured)) {
        *source = measured.source;
        latency = measured.latency_ns;
        bandwidth = measured.bytes_per_s;
    } else {
        if (fabric->ranks > fabric->domain) {
            /* Rings leave a domain through the network cards of all its GPUs at once. */
            double network = machine->network_bytes_per_s * fabric->domain;
            latency = machine->network_latency_ns;
            if (fabric->domain == 1 || network < bandwidth)
                bandwidth = network;
        }
    }
    double moved = bytes * (fabric->ranks - 1) / fabric->ranks;
    if (collective == HBP_COLLECTIVE_ALL_REDUCE)
        moved *= 2;
    return moved / bandwidth * 1e9 + calls * latency;
}
