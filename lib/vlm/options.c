/* Options of hbp_plan_vlm: ranges, defaults, replicas and the link between their stages. */
#include <stddef.h>

#include "base/checked.h"
#include "base/options.h"
#include "base/quantity.h"
#include "cost/cost.h"
#include "cost/vlm_layers.h"
#include "data/lengths/lengths.h"
#include "data/machine/machine.h"
#include "data/model/vlm.h"
#include "vlm/vlm.h"

enum { BATCH_SAMPLES = 128, SAMPLES = 4, ROUNDS = 8 };

/* What zero stands for. */
static void fill_defaults(hbp_vlm_options *o)
{
    o->tensor_parallel = o->tensor_parallel ? o->tensor_parallel : 1;
    o->pipeline_stages = o->pipeline_stages ? o->pipeline_stages : 1;
    o->virtual_stages = o->virtual_stages ? o->virtual_stages : 1;
    o->batch_samples = o->batch_samples ? o->batch_samples : BATCH_SAMPLES;
    o->samples = o->samples ? o->samples : SAMPLES;
    o->zero_stage = o->zero_stage ? o->zero_stage : HBP_ZERO_1;
    o->rounds = o->rounds ? o->rounds : ROUNDS;
    o->reserve_bytes = hbp__reserve(o->reserve_bytes);
}

static hbp_status check_sizes(hbp_context *context, hbp_vlm_options *options)
{
    if (!options->max_vision != !options->max_tokens)
        return hbp__fail(context, HBP_E_INVALID,
                         "`max_vision` is %lld and max_tokens %lld; give both or neither",
                         (long long)options->max_vision, (long long)options->max_tokens);
    if (options->layers && (!(options->layers_vision > 0) || !(options->layers_tokens > 0)))
        return hbp__fail(context, HBP_E_INVALID,
                         "layers are given, so layers_vision and layers_tokens must say for how many "
                         "units and tokens; they are %g and %g",
                         options->layers_vision, options->layers_tokens);
    return HBP_OK;
}

/* The GPUs are no whole number of replicas. */
static hbp_status fail_parted(const hbp__vlm_run *run, int64_t gpus)
{
    const hbp_vlm_options *o = &run->options;
    const hbp__degrees_text would =
        hbp__vlm_say_degrees(o->layers ? NULL : run->vlm, gpus, o->pipeline_stages);
    const char *other = "";
    if ((int64_t)o->tensor_parallel * o->pipeline_stages <= gpus)
        other = "data_parallel to leave some idle";
    else if (o->tensor_parallel <= gpus || !*would.text)
        other = "fewer pipeline_stages";
    return hbp__fail(run->context, HBP_E_INVALID,
                     "%lld GPUs are not a multiple of tensor_parallel %d x pipeline_stages %d; give %s%s%s%s",
                     (long long)gpus, (int)o->tensor_parallel, (int)o->pipeline_stages,
                     *would.text ? "tensor_parallel " : "", would.text, *would.text && *other ? ", or " : "",
                     other);
}

/* Replicas, and the GPUs they take; consecutive GPUs share a layer, then a replica's stages follow. */
static hbp_status place_replicas(hbp__vlm_run *run)
{
    hbp_vlm_options *o = &run->options;
    int64_t all = (int64_t)run->fields.nodes * run->fields.gpus_per_node;
    int64_t replica = (int64_t)o->tensor_parallel * o->pipeline_stages;
    if (all < 1)
        return hbp__fail(run->context, HBP_E_INVALID, "the machine has 0 GPUs");
    if (!o->data_parallel) {
        if (all % replica)
            return fail_parted(run, all);
        o->data_parallel = (int32_t)(all / replica);
    }
    if (replica * o->data_parallel > all)
        return hbp__fail(run->context, HBP_E_INVALID,
                         "tensor_parallel %d x pipeline_stages %d x data_parallel %d is %lld GPUs; the "
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
        "%lld samples have fewer tokens than their vision units become, the first is sample %lld: "
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
    fill_defaults(o);
    HBP__TRY(check_sizes(context, o));
    if (!vlm && !o->layers)
        return hbp__fail(context, HBP_E_INVALID, "vlm is NULL, and no layers are given in its place");
    if (!lengths->vision)
        return hbp__fail(context, HBP_E_INVALID,
                         "the lengths have no vision units; give them with the samples");
    if (!lengths->vision_sum)
        return hbp__fail(context, HBP_E_INVALID, "none of %lld samples has vision units",
                         (long long)lengths->count);
    run->fields = machine->fields;
    HBP__TRY(place_replicas(run)); /* which asks nothing of the lengths, so before them */
    if (!o->layers)
        HBP__TRY(hbp__vlm_check_degree(context, vlm, machine, o->tensor_parallel));
    if (!o->layers)
        HBP__TRY(check_projected(context, lengths, vlm));
    run->limit_bytes = run->fields.hbm_bytes - o->reserve_bytes;
    if (run->limit_bytes <= 0)
        return hbp__fail(context, HBP_E_INFEASIBLE,
                         "reserve_bytes keeps %s free on each GPU, which has %s: nothing is left",
                         hbp__say_bytes(o->reserve_bytes).text, hbp__say_bytes(run->fields.hbm_bytes).text);
    if (o->virtual_stages > 1 && o->micro_batches % o->pipeline_stages)
        return hbp__fail(context, HBP_E_INVALID,
                         "`micro_batches` is %d; interleaved stages need a multiple of pipeline_stages %d",
                         (int)o->micro_batches, (int)o->pipeline_stages);
    return HBP_OK;
}
