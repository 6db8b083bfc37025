/* The known machines, one row each (docs: cost model, "Machine presets"). */
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "data/machine/machine.h"

#define GIB (INT64_C(1) << 30)

/* Until measured: the share of the peak that matrix products and attention reach, and what a call costs. */
#define EFFICIENCY         0.45
#define NVLINK_LATENCY_NS  20000
#define NETWORK_LATENCY_NS 35000

/* Dense bf16; bandwidth of NVLink one way, as NCCL reaches it. HBM as it is sold, in binary gigabytes:
 * drivers report up to 1 GiB less (81,559 MiB of an H100, 143,771 of an H200), which the cost's reserve
 * covers. The A800 is an A100 with 8 of its 12 NVLinks; its 8 share one network card of 400 Gb/s. */
static const struct preset {
    const char *name;
    int32_t gpus_per_node;
    int32_t domain_gpus;
    double flops_per_s;
    int64_t hbm_bytes;
    double hbm_bytes_per_s;
    double nvlink_bytes_per_s;
    double network_bytes_per_s;
} presets[] = {
    {"a100-40", 8, 8, 312e12, 40 * GIB, 1555e9, 240e9, 25e9},
    {"a100-80", 8, 8, 312e12, 80 * GIB, 2039e9, 240e9, 25e9},
    {"a800-80", 8, 8, 312e12, 80 * GIB, 2039e9, 160e9, 6.25e9},
    {"h100", 8, 8, 989e12, 80 * GIB, 3350e9, 371e9, 50e9},
    {"h200", 8, 8, 989e12, 141 * GIB, 4800e9, 371e9, 50e9},
    {"b200", 8, 8, 2250e12, 180 * GIB, 8000e9, 722e9, 50e9},
    {"gb200-nvl72", 4, 72, 2500e12, 186 * GIB, 8000e9, 722e9, 50e9},
};

int64_t hbp_machine_count_presets(void)
{
    return (int64_t)(sizeof presets / sizeof *presets);
}

const char *hbp_machine_get_preset_name(int64_t index)
{
    return index >= 0 && index < hbp_machine_count_presets() ? presets[index].name : NULL;
}

static hbp_status find_preset(hbp_context *context, const char *name, const struct preset **found)
{
    for (int64_t i = 0; i < hbp_machine_count_presets(); i++)
        if (strcmp(presets[i].name, name) == 0) {
            *found = &presets[i];
            return HBP_OK;
        }
    return hbp__fail(context, HBP_E_INVALID, "no machine preset '%.64s'; the nearest is '%s'", name,
                     hbp__nearest(name, hbp_machine_get_preset_name, hbp_machine_count_presets()));
}

hbp_status hbp__machine_set_gpu(hbp_context *context, hbp_machine *machine, const char *gpu)
{
    const struct preset *p = NULL;
    HBP__TRY(find_preset(context, gpu, &p));
    char source[HBP__SOURCE_BYTES];
    snprintf(source, sizeof source, "preset %s", p->name);
    const struct {
        const char *field;
        double value;
    } values[] = {
        {"hbm_bytes", (double)p->hbm_bytes},
        {"hbm_bytes_per_s", p->hbm_bytes_per_s},
        {"flops_per_s", p->flops_per_s},
        {"gemm_efficiency", EFFICIENCY},
        {"attention_efficiency", EFFICIENCY},
        {"nvlink_bytes_per_s", p->nvlink_bytes_per_s},
        {"network_bytes_per_s", p->network_bytes_per_s},
        {"nvlink_latency_ns", NVLINK_LATENCY_NS},
        {"network_latency_ns", NETWORK_LATENCY_NS},
    };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        HBP__TRY(hbp__machine_set_field(context, machine, values[i].field, values[i].value, source));
    return HBP_OK;
}

/* `machine` is the caller's also on failure. */
static hbp_status set_shape(hbp_context *context, hbp_machine *machine, const struct preset *p, int32_t nodes)
{
    char source[HBP__SOURCE_BYTES];
    snprintf(source, sizeof source, "preset %s", p->name);
    int64_t gpus = (int64_t)nodes * p->gpus_per_node;
    HBP__TRY(hbp__machine_set_field(context, machine, "nodes", nodes, "given"));
    HBP__TRY(hbp__machine_set_field(context, machine, "gpus_per_node", p->gpus_per_node, source));
    return hbp__machine_set_field(context, machine, "domain_gpus",
                                  (double)(gpus < p->domain_gpus ? gpus : p->domain_gpus), source);
}

hbp_status hbp_machine_create_preset(hbp_context *context, const char *name, int32_t nodes, hbp_machine **out)
{
    HBP__ENTER_OUT(context, out);
    HBP__TRY(hbp__require(context, name, "name"));
    const struct preset *p = NULL;
    HBP__TRY(find_preset(context, name, &p));
    if (nodes < 1)
        return hbp__fail(context, HBP_E_INVALID, "nodes is %d; it must be at least 1", (int)nodes);
    if (nodes > INT32_MAX / p->gpus_per_node)
        return hbp__fail(context, HBP_E_OVERFLOW, "nodes is %d; %d of %s have as many GPUs as can be counted",
                         (int)nodes, INT32_MAX / (int)p->gpus_per_node, name);
    hbp_machine *machine = hbp__machine_new(context, name);
    if (!machine)
        return hbp__fail_memory(context, "a machine");
    hbp_status status = set_shape(context, machine, p, nodes);
    if (status == HBP_OK)
        status = hbp__machine_set_gpu(context, machine, name);
    if (status < 0) {
        hbp_machine_free(machine);
        return status;
    }
    *out = machine;
    return HBP_OK;
}
