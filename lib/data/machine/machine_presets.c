/* The known machines, one row each (docs: cost model, "Machine presets"). */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/fields.h"
#include "base/number.h"
#include "base/options.h"
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

#define PRESETS ((int64_t)(sizeof presets / sizeof *presets))

const char *hbp__machine_preset_name(int64_t index)
{
    return index >= 0 && index < PRESETS ? presets[index].name : NULL;
}

/* Whether a name is a preset's and a number of nodes, as in "h100x8"; their number begins at *count then. */
static int is_multiple(const char *name, const struct preset *p, const char **count)
{
    const size_t length = strlen(p->name);
    if (strncmp(name, p->name, length) != 0 || (name[length] != 'x' && name[length] != '*'))
        return 0;
    *count = name + length + 1;
    return **count && strspn(*count, "0123456789") == strlen(*count);
}

static hbp_status find_preset(hbp_context *context, const char *name, const struct preset **found)
{
    const char *count;
    for (int64_t i = 0; i < PRESETS; i++)
        if (strcmp(presets[i].name, name) == 0) {
            *found = &presets[i];
            return HBP_OK;
        }
    for (int64_t i = 0; i < PRESETS; i++)
        if (is_multiple(name, &presets[i], &count))
            return hbp__fail(context, HBP_E_INVALID,
                             "no machine preset '%.64s'; %.16s nodes of %s are '%s:%.16s'", name, count,
                             presets[i].name, presets[i].name, count);
    return hbp__fail_preset(context, "machine", name, hbp__machine_preset_name, PRESETS);
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

/* How many nodes a text asks for: "h100:4", or "h100,nodes=4". */
static hbp_status read_nodes(hbp_context *context, const struct preset *p, const char *count, int64_t bytes,
                             const hbp__field_values *fields, int32_t *nodes)
{
    int64_t most = INT32_MAX / p->gpus_per_node, read = 1;
    int is_field = fields->given >> HBP__MACHINE_nodes & 1;
    if (count && is_field)
        return hbp__fail(context, HBP_E_INVALID, "nodes is given twice");
    if (count && !hbp__read_whole(count, bytes, &read))
        return hbp__fail(context, HBP_E_INVALID, "nodes is '%.*s'; it must be a number in 1..%lld",
                         (int)hbp__min_i64(bytes, 64), count, (long long)most);
    if (is_field) {
        double value = fields->value[HBP__MACHINE_nodes];
        read = value >= 1 && value <= (double)most ? (int64_t)value : 0;
        if ((double)read != value)
            return hbp__fail(context, HBP_E_INVALID, "nodes is %.17g; it must be a whole number in 1..%lld",
                             value, (long long)most);
    }
    *nodes = (int32_t)read;
    return hbp__check_range(context, "nodes", read, 1, most);
}

/* `machine` is the caller's also on failure. */
static hbp_status set_shape(hbp_context *context, hbp_machine *machine, const struct preset *p, int32_t nodes)
{
    char source[HBP__SOURCE_BYTES];
    snprintf(source, sizeof source, "preset %s", p->name);
    HBP__TRY(hbp__machine_set_field(context, machine, "nodes", nodes, "given"));
    HBP__TRY(hbp__machine_set_field(context, machine, "gpus_per_node", p->gpus_per_node, source));
    HBP__TRY(hbp__machine_set_field(context, machine, "domain_gpus", p->domain_gpus, source));
    hbp__machine_set_domain(machine, p->domain_gpus);
    return HBP_OK;
}

/* What the preset knows, then what the text says. */
static hbp_status fill_machine(hbp_context *context, hbp_machine *machine, const struct preset *p,
                               int32_t nodes, const hbp__field_values *fields)
{
    HBP__TRY(set_shape(context, machine, p, nodes));
    HBP__TRY(hbp__machine_set_gpu(context, machine, p->name));
    return hbp__machine_set_values(context, machine, fields);
}

hbp_status hbp__machine_create_preset(hbp_context *context, const char *text, hbp_machine **out)
{
    HBP__TRY(hbp__require(context, text, "text"));
    const struct preset *p = NULL;
    char name[HBP__FIELD_NAME_BYTES];
    const char *at = hbp__take_name(text, ":,", name), *count = NULL;
    HBP__TRY(find_preset(context, name, &p));
    if (*at == ':') {
        count = ++at;
        at += strcspn(at, ",");
    }
    int64_t bytes = count ? at - count : 0;
    hbp__field_values fields = {0};
    if (*at)
        HBP__TRY(hbp__read_fields(context, &hbp__machine_field_names, text, at + 1, &fields));
    int32_t nodes = 1;
    hbp_status status = read_nodes(context, p, count, bytes, &fields, &nodes);
    if (status < 0)
        return hbp__fail_in_text(context, status, "machine", text);
    hbp_machine *machine = hbp__machine_new(context, p->name);
    if (!machine)
        return hbp__fail_memory(context, "a machine");
    status = fill_machine(context, machine, p, nodes, &fields);
    if (status < 0) {
        hbp_machine_free(machine);
        return hbp__fail_in_text(context, status, "machine", text);
    }
    *out = machine;
    return HBP_OK;
}

hbp_status hbp_machine_create_preset(hbp_context *context, const char *text, hbp_machine **out)
{
    HBP__ENTER_OUT(context, out);
    return hbp__machine_create_preset(context, text, out);
}
