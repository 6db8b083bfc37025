#include "cost/communication.h"

/* NCCL moves activations in bf16. */
#define ACTIVATION_BYTES 2.0

double hbp__cost_sp_elements(const hbp_model_fields *model, int32_t sp)
{
    int32_t latent = model->mla_kv_lora > 0;
    double kv = latent ? model->heads : model->kv_heads;
    double key = latent ? (double)model->mla_nope_dim + model->mla_rope_dim : model->head_dim;
    double value = latent ? model->mla_v_dim : model->head_dim;
    if (kv < sp)
        kv = sp;
    return (model->heads + kv) * (key + value);
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
    double held = ACTIVATION_BYTES * hbp__cost_sp_elements(model, sp) / sp;
    double near = (double)((sp < fabric->domain ? sp : fabric->domain) - 1) / sp;
    double far = (double)(sp > fabric->domain ? sp - fabric->domain : 0) / sp;
    double latency;
    double bandwidth;
    double seconds;
    if (hbp_machine_get_collective(fabric->machine, HBP_COLLECTIVE_ALL_TO_ALL, sp, &latency, &bandwidth,
                                   source)) {
        seconds = held * (near + far) / bandwidth;
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
    double latency;
    double bandwidth;
    if (!hbp_machine_get_collective(fabric->machine, collective, fabric->ranks, &latency, &bandwidth,
                                    source)) {
        *source = NULL;
        latency = machine->nvlink_latency_ns;
        bandwidth = machine->nvlink_bytes_per_s;
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
