/* Options of hbp_plan_vlm: ranges, defaults, replicas and the link between their stages. */
#include <stddef.h>

#include "base/checked.h"
#include "base/options.h"
#include "data/lengths/lengths.h"
#include "data/machine/machine.h"
#include "data/model/vlm.h"
#include "vlm/vlm.h"

/* 5 GB stay free for the allocator and NCCL (OmniBal, section 3.4). */
#define RESERVE_BYTES INT64_C(5000000000)
#define MAX_ROUNDS    64

/* An option, its range and its default. */
typedef struct limits {
    const char *name;
    size_t offset;
    int64_t low, high, zero;
} limits;

#define INTS(X)                                                                                              \
    X(data, HBP_VLM_DATA_PACKED, HBP_VLM_DATA_SORTED, 0)                                                     \
    X(model, HBP_PARTITION_OPTIMAL, HBP_PARTITION_PAPER, 0)                                                  \
    X(memory, HBP_MEMORY_OPTIMAL, HBP_MEMORY_NONE, 0)                                                        \
    X(selective, -1, HBP_SELECT_ATTENTION | HBP_SELECT_MLP, 0)                                               \
    X(tensor_parallel, 0, 1024, 1)                                                                           \
    X(pipeline_stages, 0, 1024, 1)                                                                           \
    X(virtual_stages, 0, 64, 1)                                                                              \
    X(data_parallel, 0, 1 << 20, 0)                                                                          \
    X(micro_batches, 0, 1 << 16, 0)                                                                          \
    X(batch_samples, 0, 1 << 30, 128)                                                                        \
    X(samples, 0, 1 << 16, 4)                                                                                \
    X(zero_stage, HBP_ZERO_DEFAULT, HBP_ZERO_NONE, HBP_ZERO_1)                                               \
    X(over_long, HBP_OVERLONG_ERROR, HBP_OVERLONG_DROP, 0)                                                   \
    X(rounds, 0, MAX_ROUNDS, 8)                                                                              \
    X(effort, 0, 9, 0)

static const limits int_limits[] = {
#define ROW(name, low, high, zero) {"vlm: " #name, offsetof(hbp_vlm_options, name), low, high, zero},
    INTS(ROW)
#undef ROW
};

static hbp_status check_ints(hbp_context *context, hbp_vlm_options *options)
{
    for (size_t i = 0; i < sizeof int_limits / sizeof *int_limits; i++) {
        const limits *row = &int_limits[i];
        int32_t *value = (int32_t *)(void *)((char *)options + row->offset);
        HBP__TRY(hbp__check_range(context, row->name, *value, row->low, row->high));
        if (!*value)
            *value = (int32_t)row->zero;
    }
    return HBP_OK;
}

static hbp_status check_sizes(hbp_context *context, hbp_vlm_options *options)
{
    if (options->max_vision < 0 || options->max_tokens < 0)
        return hbp__fail(context, HBP_E_INVALID, "vlm: %s is %lld; it must be 0 (chosen) or more",
                         options->max_vision < 0 ? "max_vision" : "max_tokens",
                         (long long)(options->max_vision < 0 ? options->max_vision : options->max_tokens));
    if (!options->max_vision != !options->max_tokens)
        return hbp__fail(context, HBP_E_INVALID,
                         "vlm: max_vision is %lld and max_tokens %lld; give both or neither",
                         (long long)options->max_vision, (long long)options->max_tokens);
    if (options->max_tokens > HBP_MAX_LENGTH)
        return hbp__fail(context, HBP_E_OVERFLOW, "vlm: max_tokens is %lld; it may be at most %lld",
                         (long long)options->max_tokens, (long long)HBP_MAX_LENGTH);
    if (options->reserve_bytes < -1)
        return hbp__fail(context, HBP_E_INVALID, "vlm: reserve_bytes is %lld; it must be -1 (none) or more",
                         (long long)options->reserve_bytes);
    if (!options->reserve_bytes)
        options->reserve_bytes = RESERVE_BYTES;
    if (options->layers && (!(options->layers_vision > 0) || !(options->layers_tokens > 0)))
        return hbp__fail(context, HBP_E_INVALID,
                         "vlm: layers are given, so layers_vision and layers_tokens must say for how many "
                         "units and tokens; they are %g and %g",
                         options->layers_vision, options->layers_tokens);
    return HBP_OK;
}

/* Replicas, and the GPUs they take; consecutive GPUs share a layer, then a replica's stages follow. */
static hbp_status place_replicas(hbp__vlm_run *run)
{
    hbp_vlm_options *o = &run->options;
    int64_t all = (int64_t)run->fields.nodes * run->fields.gpus_per_node;
    int64_t replica = (int64_t)o->tensor_parallel * o->pipeline_stages;
    if (all < 1)
        return hbp__fail(run->context, HBP_E_INVALID, "vlm: the machine has 0 GPUs");
    if (!o->data_parallel) {
        if (all % replica)
            return hbp__fail(
                run->context, HBP_E_INVALID,
                "vlm: %lld GPUs are not a multiple of tensor_parallel %d x pipeline_stages %d; give "
                "data_parallel to leave some idle",
                (long long)all, (int)o->tensor_parallel, (int)o->pipeline_stages);
        o->data_parallel = (int32_t)(all / replica);
    }
    if (replica * o->data_parallel > all)
        return hbp__fail(run->context, HBP_E_INVALID,
                         "vlm: tensor_parallel %d x pipeline_stages %d x data_parallel %d is %lld GPUs; the "
                         "machine has %lld",
                         (int)o->tensor_parallel, (int)o->pipeline_stages, (int)o->data_parallel,
                         (long long)(replica * o->data_parallel), (long long)all);
    run->gpus = (int32_t)(replica * o->data_parallel);
    /* Each of the tensor-parallel GPUs sends its part of what crosses a cut. */
    int near = replica <= run->fields.domain_gpus;
    double per_gpu = near ? run->fields.nvlink_bytes_per_s : run->fields.network_bytes_per_s;
    run->link_bytes_per_s = per_gpu * o->tensor_parallel;
    run->link_latency_ns =
        hbp__round_i64(near ? run->fields.nvlink_latency_ns : run->fields.network_latency_ns);
    return HBP_OK;
}

/* Tokens of the units are among a sample's tokens, or everything would be planned too cheap. */
static hbp_status check_projected(hbp_context *context, const hbp_lengths *lengths, const hbp_vlm *vlm)
{
    int64_t per_unit = vlm->fields.projected_per_unit, bad = 0, first = -1;
    for (int64_t i = 0; i < lengths->count; i++)
        if (hbp__lengths_vision(lengths, i) * per_unit > hbp__lengths_get(lengths, i)) {
            first = bad ? first : i;
            bad++;
        }
    if (!bad)
        return HBP_OK;
    return hbp__fail(
        context, HBP_E_INVALID,
        "vlm: %lld samples have fewer tokens than their vision units become, the first is sample %lld: "
        "%lld tokens, %lld units of %lld; lengths count the language model's tokens of both",
        (long long)bad, (long long)(lengths->origin ? lengths->origin[first] : first),
        (long long)hbp__lengths_get(lengths, first), (long long)hbp__lengths_vision(lengths, first),
        (long long)per_unit);
}

hbp_status hbp__vlm_open(hbp_context *context, const hbp_lengths *lengths, const hbp_vlm *vlm,
                         const hbp_machine *machine, const hbp_vlm_options *options, hbp__vlm_run *run)
{
    *run = (hbp__vlm_run){.context = context, .lengths = lengths, .vlm = vlm, .machine = machine};
    hbp_vlm_options *o = &run->options;
    HBP__TRY(hbp__options_read(context, o, sizeof *o, options, "hbp_vlm_options"));
    HBP__TRY(check_ints(context, o));
    HBP__TRY(check_sizes(context, o));
    if (!vlm && !o->layers)
        return hbp__fail(context, HBP_E_INVALID, "vlm is NULL, and no layers are given in its place");
    if (!lengths->vision)
        return hbp__fail(context, HBP_E_INVALID,
                         "vlm: the lengths have no vision units; give them with the samples");
    if (!lengths->vision_sum)
        return hbp__fail(context, HBP_E_INVALID, "vlm: none of %lld samples has vision units",
                         (long long)lengths->count);
    if (!o->layers)
        HBP__TRY(check_projected(context, lengths, vlm));
    run->fields = machine->fields;
    HBP__TRY(place_replicas(run));
    int64_t reserve = o->reserve_bytes < 0 ? 0 : o->reserve_bytes;
    run->limit_bytes = run->fields.hbm_bytes - reserve;
    if (run->limit_bytes <= 0)
        return hbp__fail(context, HBP_E_INVALID, "vlm: reserve_bytes is %lld; a GPU has %lld",
                         (long long)reserve, (long long)run->fields.hbm_bytes);
    if (o->virtual_stages > 1 && o->micro_batches % o->pipeline_stages)
        return hbp__fail(context, HBP_E_INVALID,
                         "vlm: micro_batches is %d; interleaved stages need a multiple of pipeline_stages %d",
                         (int)o->micro_batches, (int)o->pipeline_stages);
    return HBP_OK;
}
