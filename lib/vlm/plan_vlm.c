/* hbp_plan_vlm: data, stages, memory and steps of one size of micro-batch after another until one fits; the
 * plan as an object. */
#include "base/methods.h"
#include "hbp/vlm.h"

#include <string.h>

#include "base/checked.h"
#include "base/digest.h"
#include "base/options.h"
#include "base/scratch.h"
#include "solve/imbalance.h"
#include "vlm/vlm.h"

#define DAY_NS 86400e9

#define NUMBER(name)                HBP__MEMBER_SUMMARY(hbp_vlm_plan, name)
#define OWN(name, type)             HBP__MEMBER_NUMBER(hbp_vlm_plan, type, name)
#define COUNT(name, field)          HBP__MEMBER_COUNT(hbp_vlm_plan, name, field)
#define COLUMN(name, type, n, more) HBP__MEMBER_COLUMN(hbp_vlm_plan, type, name, n, more)

static const hbp__member numbers[] = {
    NUMBER(digest),
    NUMBER(gpus),
    NUMBER(replicas),
    NUMBER(stages),
    NUMBER(virtual_stages),
    NUMBER(micro_batches),
    NUMBER(rounds),
    NUMBER(recomputed),
    NUMBER(selective),
    NUMBER(max_vision),
    NUMBER(max_tokens),
    NUMBER(steps),
    NUMBER(samples),
    NUMBER(dropped),
    NUMBER(epoch_ns),
    NUMBER(bound_ns),
    NUMBER(peak_bytes),
    NUMBER(limit_bytes),
    NUMBER(gpu_days),
    NUMBER(bubble),
    NUMBER(padding),
    NUMBER(dist_vision),
    NUMBER(dist_tokens),
    NUMBER(packs_bound_ns),
    NUMBER(pack_samples),
    OWN(chunks, int64_t),
    {"layers", HBP__CELL_I64, 0, offsetof(hbp_vlm_plan, layer_count), 0},
    OWN(busy_ns, int64_t),
    OWN(reference_vision, double),
    OWN(reference_tokens, double),
    OWN(reference_squares, double),
    OWN(square_ns, double),
    OWN(link_bytes_per_s, double),
    OWN(link_latency_ns, int64_t),
    OWN(padded, int32_t),
    COUNT("stages", stages),
    COUNT("steps", steps),
};

static const hbp__member columns[] = {
    COLUMN(cuts, int32_t, chunks, 1),     COLUMN(recompute, int32_t, layer_count, 0),
    COLUMN(stage_ns, int64_t, stages, 0), COLUMN(stage_bytes, int64_t, stages, 0),
    COLUMN(step_ns, int64_t, steps, 0),
};

const hbp__table hbp__vlm_table = {
    .what = "the vision-language plan",
    .bytes = sizeof(hbp_vlm_plan),
    .numbers = numbers,
    .columns = columns,
    .number_count = sizeof numbers / sizeof *numbers,
    .column_count = sizeof columns / sizeof *columns,
};

void hbp_vlm_plan_free(hbp_vlm_plan *plan)
{
    if (!plan)
        return;
    hbp__memory memory = plan->memory;
    hbp_plan_free(plan->data);
    hbp_layers_free(plan->layers);
    hbp__table_free(&memory, &hbp__vlm_table, plan);
}

static hbp_vlm_plan *plan_new(const hbp__vlm_run *run, const hbp__vlm_reference *reference,
                              const hbp__vlm_stages *stages, const hbp_plan *data)
{
    hbp_vlm_plan shape = {
        .memory = run->context->memory,
        .layer_count = stages->layers,
        .chunks = stages->chunks,
        .stages = run->options.pipeline_stages,
        .steps = data->steps,
        .reference_vision = reference->mean.vision,
        .reference_tokens = reference->mean.tokens,
        .reference_squares = reference->mean.squares,
        .square_ns = reference->square_ns,
        .link_bytes_per_s = run->link_bytes_per_s,
        .link_latency_ns = run->link_latency_ns,
        .padded = hbp__vlm_data_method(run->options.data_method) >= HBP__VLM_DATA_RANDOM,
    };
    hbp_vlm_plan *plan = hbp__table_new(&run->context->memory, &hbp__vlm_table, &shape);
    if (!plan)
        return NULL;
    memcpy(plan->cuts, stages->cuts, (size_t)(plan->chunks + 1) * sizeof *plan->cuts);
    memcpy(plan->recompute, stages->choices, (size_t)plan->layer_count * sizeof *plan->recompute);
    hbp__vlm_stage_ns(run, reference, stages, plan->stage_ns);
    memcpy(plan->stage_bytes, stages->bytes, (size_t)plan->stages * sizeof *plan->stage_bytes);
    return plan;
}

/* OmniBal's PadRatio: padding over what the longest sample of each batch makes of it; its DistRatio. */
static hbp_status measure_data(const hbp__vlm_run *run, const hbp_plan *data, hbp_vlm_plan_summary *summary)
{
    double padding = 0, all = 0, vision = 0, tokens = 0;
    for (int64_t m = 0; m < data->micro_batches; m++) {
        HBP__TRY(hbp__tick_row(run->context, "measure", m, data->micro_batches));
        int64_t first = data->micro_batch_offsets[m], end = data->micro_batch_offsets[m + 1];
        hbp__vlm_size most = {0, 0, 0}, sum = {0, 0, 0};
        for (int64_t p = first; p < end; p++) {
            hbp__vlm_size size = hbp__vlm_row_size(run, data, p);
            most.vision = size.vision > most.vision ? size.vision : most.vision;
            most.tokens = size.tokens > most.tokens ? size.tokens : most.tokens;
            sum.vision += size.vision;
            sum.tokens += size.tokens;
            padding += size.tokens - (double)data->pack_tokens[p];
            all += size.tokens;
        }
        double ranks = (double)(end - first);
        vision += hbp__reported_imbalance(most.vision, sum.vision, ranks);
        tokens += hbp__reported_imbalance(most.tokens, sum.tokens, ranks);
    }
    summary->padding = all > 0 ? padding / all : 0;
    summary->dist_vision = vision / (double)data->micro_batches;
    summary->dist_tokens = tokens / (double)data->micro_batches;
    return HBP_OK;
}

uint64_t hbp__vlm_digest(const hbp_vlm_plan *plan)
{
    hbp__digest d = hbp__digest_begin();
    hbp__digest_u64(&d, plan->data->digest);
    hbp__digest_column_i32(&d, plan->cuts, plan->chunks + 1);
    hbp__digest_column_i32(&d, plan->recompute, plan->layer_count);
    return hbp__digest_end(&d);
}

static hbp_status summarise_plan(const hbp__vlm_run *run, const hbp__vlm_packs *packs,
                                 const hbp__vlm_reference *reference, const hbp__vlm_stages *stages,
                                 int32_t micro_batches, hbp_vlm_plan *out)
{
    hbp_vlm_plan_summary *s = &out->summary;
    s->gpus = run->gpus;
    s->replicas = run->options.data_parallel;
    s->stages = run->options.pipeline_stages;
    s->virtual_stages = run->options.virtual_stages;
    s->micro_batches = micro_batches;
    s->rounds += stages->rounds;
    s->recomputed = stages->report.recomputed;
    s->selective = stages->report.selective;
    s->pack_samples = run->options.samples;
    s->max_vision = packs->max_vision;
    s->max_tokens = packs->max_tokens;
    s->steps = out->steps;
    s->samples = out->data->samples;
    s->dropped = out->data->dropped;
    for (int64_t i = 0; i < out->steps; i++)
        s->epoch_ns = hbp__add_saturating(s->epoch_ns, out->step_ns[i]);
    for (int64_t i = 0; i < out->stages; i++)
        s->peak_bytes = hbp__max_i64(s->peak_bytes, out->stage_bytes[i]);
    s->limit_bytes = run->limit_bytes;
    HBP__TRY(hbp__vlm_bound(run, reference, out->data, &s->bound_ns));
    HBP__TRY(hbp__vlm_packs_bound(run, reference, out->data, &s->packs_bound_ns));
    s->gpu_days = (double)s->epoch_ns * (double)s->gpus / DAY_NS;
    double capacity = (double)s->epoch_ns * (double)s->replicas * (double)s->stages;
    s->bubble = capacity > 0 ? 1 - (double)out->busy_ns / capacity : 0;
    HBP__TRY(measure_data(run, out->data, s));
    s->digest = hbp__vlm_digest(out);
    return HBP_OK;
}

/* What one round makes. */
typedef struct made_round {
    hbp__vlm_packs packs;
    hbp__vlm_reference reference;
    hbp__vlm_stages stages;
    hbp_plan *data;
    hbp_vlm_plan *plan;
} made_round;

/* Data, model and memory with micro-batches of `samples` samples; *short_of_memory is set when packs were had
 * but no stages that hold them. */
static hbp_status make_round(const hbp__vlm_run *run, int32_t samples, made_round *m, int *short_of_memory)
{
    *short_of_memory = 0;
    HBP__TRY(hbp__vlm_fill(run, samples, &m->packs));
    int32_t micro_batches = hbp__vlm_micro_batches(run, &m->packs);
    hbp__vlm_size mean = hbp__vlm_mean(&m->packs);
    HBP__TRY(hbp__vlm_reference_open(run, &mean, &m->reference));
    HBP__TRY(hbp__vlm_deal(run, &m->packs, &m->reference, micro_batches, &m->data));
    hbp_status status = hbp__vlm_stages_open(run, m->data, &m->reference, &m->stages);
    *short_of_memory = status == HBP_E_INFEASIBLE;
    HBP__TRY(status);
    m->plan = plan_new(run, &m->reference, &m->stages, m->data);
    if (!m->plan)
        return hbp__fail_memory(run->context, "the plan");
    HBP__TRY(hbp__vlm_steps(run, &m->reference, &m->stages, &m->data, m->plan));
    m->plan->data = m->data;
    m->plan->layers = hbp__layers_retain(m->reference.layers);
    m->data = NULL;
    return summarise_plan(run, &m->packs, &m->reference, &m->stages, micro_batches, m->plan);
}

static hbp_status plan_round(const hbp__vlm_run *run, int32_t samples, hbp_vlm_plan **out,
                             int *short_of_memory)
{
    made_round m = {.data = NULL};
    int64_t mark = hbp__scratch_mark(run->context);
    hbp_status status = make_round(run, samples, &m, short_of_memory);
    if (status >= 0)
        *out = m.plan;
    else
        hbp_vlm_plan_free(m.plan);
    hbp_plan_free(m.data);
    hbp__vlm_reference_close(&m.reference);
    hbp__vlm_packs_close(&m.packs);
    return hbp__leave(run->context, mark, status);
}

/* Memory that no recomputation can satisfy calls for smaller micro-batches, where they are ours to choose.
 * When none helps, the message is of the size asked for. */
static hbp_status plan_rounds(const hbp__vlm_run *run, hbp_vlm_plan **out)
{
    char message[HBP__MESSAGE_BYTES];
    int short_of_memory = 0;
    int ours = !run->options.max_tokens && !run->options.micro_batches;
    hbp_status status = plan_round(run, run->options.samples, out, &short_of_memory);
    memcpy(message, run->context->message, sizeof message);
    ours = ours && short_of_memory;
    for (int32_t samples = run->options.samples - 1; samples && status == HBP_E_INFEASIBLE && ours;
         samples--) {
        status = plan_round(run, samples, out, &short_of_memory);
        if (status >= 0)
            (*out)->summary.pack_samples = samples;
    }
    if (status == HBP_E_INFEASIBLE)
        memcpy(run->context->message, message, sizeof message);
    return status;
}

static hbp_status plan_vlm(hbp_context *context, const hbp_lengths *lengths, const hbp_vlm *vlm,
                           const hbp_machine *machine, const hbp_vlm_options *options, hbp_vlm_plan **out)
{
    HBP__TRY(hbp__require_samples(context, lengths, "lengths"));
    HBP__TRY(hbp__require(context, machine, "machine"));
    hbp__vlm_run run;
    HBP__TRY(hbp__vlm_open(context, lengths, vlm, machine, options, &run));
    return plan_rounds(&run, out);
}

hbp_status hbp_plan_vlm(hbp_context *context, const hbp_lengths *lengths, const hbp_vlm *vlm,
                        const hbp_machine *machine, const hbp_vlm_options *options, hbp_vlm_plan **out)
{
    HBP__ENTER_OUT(context, out);
    int64_t mark = hbp__scratch_mark(context);
    return hbp__leave(context, mark, plan_vlm(context, lengths, vlm, machine, options, out));
}

hbp_status hbp_vlm_plan_get_summary(hbp_context *context, const hbp_vlm_plan *plan,
                                    hbp_vlm_plan_summary *summary)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, plan, "plan"));
    return hbp__struct_write(context, summary, &plan->summary, sizeof plan->summary, "hbp_vlm_plan_summary");
}

const hbp_plan *hbp_vlm_plan_get_data(const hbp_vlm_plan *plan)
{
    return plan ? plan->data : NULL;
}

const hbp_layers *hbp_vlm_plan_get_layers(const hbp_vlm_plan *plan)
{
    return plan ? plan->layers : NULL;
}

hbp_status hbp_vlm_plan_get_view(const hbp_vlm_plan *plan, hbp_vlm_plan_view *view)
{
    hbp_vlm_plan_view all = {0};
    if (plan)
        all = (hbp_vlm_plan_view){.stages = plan->stages,
                                  .chunks = plan->chunks,
                                  .layers = plan->layer_count,
                                  .steps = plan->steps,
                                  .cuts = plan->cuts,
                                  .recompute = plan->recompute,
                                  .stage_ns = plan->stage_ns,
                                  .stage_bytes = plan->stage_bytes,
                                  .step_ns = plan->step_ns};
    return hbp__view_write(view, plan, &all, sizeof all);
}
