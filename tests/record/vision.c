/* Packs under two budgets, pipeline stages, recomputation, vision-language plans. */
#include "record.h"

static const hbp_lengths *sized(const record *r)
{
    return r->lengths[2];
}

static void start_fill(const record *r, int32_t variant, void *options)
{
    hbp_iterative_fill_options *o = options;
    (void)r;
    o->method = record_method("HBP_ITERATIVE_FILL_METHODS", variant % 2);
    o->rounds = 5;
    o->max_tokens = 40000;
    o->max_vision = 60;
    o->over_long = HBP_OVERLONG_DROP;
}

static hbp_status ask_fill(const record *r, int32_t variant, const void *options, answer *a)
{
    hbp_packs *packs = NULL;
    RECORD_TRY(
        hbp_iterative_fill(r->context, r->lengths[variant / 2 ? variant / 2 - 1 : 2], options, &packs));
    hbp_packs_view view = {.struct_size = sizeof view};
    (void)hbp_packs_get_view(packs, &view);
    DIGEST_VIEW(a, view.pack_offsets, view.packs + 1);
    DIGEST_VIEW(a, view.pack_tokens, view.packs);
    DIGEST_VIEW(a, view.pack_vision, view.packs);
    DIGEST_VIEW(a, view.dropped_indices, view.dropped);
    DIGEST_VIEW(a, view.sample_indices, view.samples);
    snprintf(a->facts, sizeof a->facts, " %lld packs, bound %lld, %lld dropped", (long long)view.packs,
             (long long)view.group_bounds[0], (long long)view.dropped);
    hbp_packs_free(packs);
    return HBP_OK;
}

static void start_budgets(const record *r, int32_t variant, void *options)
{
    (void)r;
    ((hbp_budgets_options *)options)->method = record_method("HBP_BUDGETS_METHODS", variant);
    ((hbp_budgets_options *)options)->ranks = 2;
    ((hbp_budgets_options *)options)->rounds = 5;
}

static hbp_status ask_budgets(const record *r, int32_t variant, const void *options, answer *a)
{
    hbp_budgets s = {.struct_size = sizeof s};
    (void)variant;
    RECORD_TRY(hbp_choose_budgets(r->context, sized(r), options, &s));
    digest_real(a, s.score);
    snprintf(a->facts, sizeof a->facts, " %lld vision, %lld tokens, %lld packs, score %.9g of %d",
             (long long)s.max_vision, (long long)s.max_tokens, (long long)s.packs, s.score,
             (int)s.considered);
    return HBP_OK;
}

/* 1F1B of four stages and eight micro-batches that differ; interleaved; with limits on memory and a link. */
static void start_pipeline(const record *r, int32_t variant, void *options)
{
    static const double scale[] = {1, 0.5, 2, 1, 1.5, 0.25, 1, 3};
    static const int64_t limit[] = {INT64_C(60000000000), INT64_C(60000000000), INT64_C(60000000000),
                                    INT64_C(60000000000)};
    hbp_pipeline_options *o = options;
    (void)r;
    o->stages = 4;
    o->micro_batches = 8;
    o->virtual_stages = variant == 2 ? 2 : 0;
    o->token_scale = variant == 1 || variant == 2 ? scale : NULL;
    o->limit_bytes = variant == 3 ? limit : NULL;
    o->link_bytes_per_s = variant == 3 ? 25e9 : 0;
    o->link_overlap = variant == 3 ? 0.5 : 0;
}

static hbp_status digest_partition(const record *r, answer *a, const hbp_layer_partition *p)
{
    hbp_layer_partition_summary s = {.struct_size = sizeof s};
    RECORD_TRY(hbp_layer_partition_get_summary(r->context, p, &s));
    hbp_layer_partition_view view = {.struct_size = sizeof view};
    (void)hbp_layer_partition_get_view(p, &view);
    DIGEST_VIEW(a, view.cuts, view.chunks + 1);
    DIGEST_VIEW(a, view.stage_ns, view.stages);
    DIGEST_VIEW(a, view.stage_busy_ns, view.stages);
    DIGEST_VIEW(a, view.stage_bytes, view.stages);
    DIGEST_VIEW(a, view.order, view.micro_batches);
    for (int64_t i = 0; i < view.candidates; i++) {
        digest_ints(a, view.candidate_cuts + i * (view.chunks + 1), view.chunks + 1);
        digest_number(a, view.candidate_ranked[i]);
        digest_number(a, view.candidate_predicted_ns[i]);
        digest_number(a, view.candidate_simulated_ns[i]);
        digest_number(a, view.candidate_cut_bytes[i]);
        digest_real(a, view.candidate_variance[i]);
    }
    snprintf(a->facts, sizeof a->facts, " predicted %lld, bound %lld, simulated %lld, bubble %.6f, peak %lld",
             (long long)s.predicted_ns, (long long)s.bound_ns, (long long)s.simulated_ns, s.bubble,
             (long long)s.peak_bytes);
    return HBP_OK;
}

static hbp_status ask_partition(const record *r, int32_t variant, const void *options, answer *a)
{
    hbp_pipeline_options pipeline = {.struct_size = sizeof pipeline};
    hbp_layer_partition *partition = NULL;
    start_pipeline(r, variant % 4, &pipeline);
    hbp_layer_partition_options ask = *(const hbp_layer_partition_options *)options;
    if (!ask.method)
        ask.method = record_method("HBP_LAYER_PARTITION_METHODS", variant / 4);
    hbp_status proven = hbp_partition_layers(r->context, r->layers, &pipeline, &ask, &partition);
    RECORD_TRY(proven);
    hbp_status status = digest_partition(r, a, partition);
    hbp_layer_partition_free(partition);
    return status < 0 ? status : proven;
}

static hbp_status digest_run(const record *r, answer *a, const hbp_pipeline_run *run)
{
    hbp_pipeline_summary s = {.struct_size = sizeof s};
    RECORD_TRY(hbp_pipeline_run_get_summary(r->context, run, &s));
    hbp_pipeline_run_view view = {.struct_size = sizeof view};
    (void)hbp_pipeline_run_get_view(run, &view);
    DIGEST_VIEW(a, view.stage_busy_ns, view.stages);
    DIGEST_VIEW(a, view.stage_bytes, view.stages);
    DIGEST_VIEW(a, view.operation_stages, view.operations);
    DIGEST_VIEW(a, view.operation_chunks, view.operations);
    DIGEST_VIEW(a, view.operation_micro_batches, view.operations);
    DIGEST_VIEW(a, view.operation_directions, view.operations);
    DIGEST_VIEW(a, view.operation_starts, view.operations);
    DIGEST_VIEW(a, view.operation_ends, view.operations);
    snprintf(a->facts, sizeof a->facts, " %lld ns, bound %lld, peak %lld, bubble %.6f", (long long)s.total_ns,
             (long long)s.bound_ns, (long long)s.peak_bytes, s.bubble);
    return HBP_OK;
}

static int32_t count_layers(const hbp_layers *layers)
{
    hbp_layers_view view = {.struct_size = sizeof view};
    (void)hbp_layers_get_view(layers, &view);
    return (int32_t)view.layers;
}

/* Runs the layers cut evenly, and orders its micro-batches. */
static hbp_status ask_run(const record *r, int32_t variant, const void *options, answer *a)
{
    const hbp_pipeline_options *o = options;
    int32_t layers = count_layers(r->layers), cuts[65] = {0}, order[64];
    int64_t chunks = o->stages * (int64_t)(o->virtual_stages ? o->virtual_stages : 1), before = 0, after = 0;
    hbp_pipeline_run *run = NULL;
    (void)variant;
    for (int64_t k = 0; k <= chunks && chunks > 0 && chunks <= 64; k++)
        cuts[k] = (int32_t)(layers * k / chunks);
    hbp_status status = hbp_simulate_pipeline(r->context, r->layers, cuts, o, NULL, &run);
    if (status >= 0)
        status = digest_run(r, a, run);
    hbp_pipeline_run_free(run);
    if (status >= 0 && o->micro_batches <= 64) {
        RECORD_TRY(hbp_order_micro_batches(r->context, r->layers, cuts, o, order, &before, &after));
        digest_ints(a, order, o->micro_batches);
        digest_number(a, before);
        digest_number(a, after);
    }
    return status;
}

static hbp_status ask_recompute(const record *r, int32_t variant, const void *options, answer *a)
{
    hbp_pipeline_options pipeline = {.struct_size = sizeof pipeline};
    int32_t layers = count_layers(r->layers), choices[512], cuts[9] = {0};
    int64_t limit[4];
    hbp_recompute_report s = {.struct_size = sizeof s};
    start_pipeline(r, variant % 4, &pipeline);
    for (int32_t k = 0; k < 4; k++)
        limit[k] = INT64_C(30000000000) + INT64_C(10000000000) * (variant / 4);
    pipeline.limit_bytes = limit;
    int32_t chunks = pipeline.virtual_stages ? 8 : 4;
    for (int32_t k = 0; k <= chunks; k++)
        cuts[k] = layers * k / chunks;
    hbp_status status = hbp_choose_recompute(r->context, r->layers, cuts, &pipeline, options, choices, &s);
    if (status >= 0) {
        digest_ints(a, choices, layers);
        snprintf(a->facts, sizeof a->facts, " %d whole, %d in part, %lld ns, saved %lld, slack %lld%s",
                 (int)s.recomputed, (int)s.selective, (long long)s.recompute_ns, (long long)s.saved_ns,
                 (long long)s.slack_bytes, s.proven ? ", proven" : "");
    }
    return status;
}

static void start_vlm(const record *r, int32_t variant, void *options)
{
    hbp_vlm_options *o = options;
    (void)r;
    o->tensor_parallel = variant % 2 ? 2 : 4;
    o->pipeline_stages = variant % 2 ? 2 : 4;
    o->data_method = record_method("HBP_VLM_DATA_METHODS", variant / 2);
    o->batch_samples = 40;
    o->over_long = HBP_OVERLONG_DROP;
    o->max_tokens = 40000;
    o->max_vision = 60;
}

static hbp_status digest_vlm(const record *r, answer *a, const hbp_vlm_plan *plan)
{
    hbp_vlm_plan_summary s = {.struct_size = sizeof s};
    RECORD_TRY(hbp_vlm_plan_get_summary(r->context, plan, &s));
    digest_number(a, (int64_t)s.digest);
    digest_number(a, (int64_t)plan_digest(r, hbp_vlm_plan_get_data(plan)));
    hbp_vlm_plan_view view = {.struct_size = sizeof view};
    (void)hbp_vlm_plan_get_view(plan, &view);
    DIGEST_VIEW(a, view.cuts, view.chunks + 1);
    DIGEST_VIEW(a, view.recompute, view.layers);
    DIGEST_VIEW(a, view.stage_ns, view.stages);
    DIGEST_VIEW(a, view.stage_bytes, view.stages);
    DIGEST_VIEW(a, view.step_ns, view.steps);
    snprintf(a->facts, sizeof a->facts,
             " %lld steps, %lld ns, bound %lld, of packs %lld, peak %lld, %d rounds, bubble %.6f",
             (long long)s.steps, (long long)s.epoch_ns, (long long)s.bound_ns, (long long)s.packs_bound_ns,
             (long long)s.peak_bytes, (int)s.rounds, s.bubble);
    return HBP_OK;
}

static hbp_status ask_vlm(const record *r, int32_t variant, const void *options, answer *a)
{
    hbp_vlm_plan *plan = NULL;
    (void)variant;
    RECORD_TRY(hbp_plan_vlm(r->context, sized(r), r->vlm, r->machine, options, &plan));
    hbp_status status = digest_vlm(r, a, plan);
    hbp_vlm_plan_free(plan);
    return status;
}

static void start_layers(const record *r, int32_t variant, void *options)
{
    hbp_vlm_layers_options *o = options;
    (void)r;
    o->tensor_parallel = 1 << variant;
    o->vision = 9;
    o->tokens = 4096;
}

static hbp_status ask_layers(const record *r, int32_t variant, const void *options, answer *a)
{
    hbp_layers *layers = NULL;
    (void)variant;
    RECORD_TRY(hbp_vlm_create_layers(r->context, r->vlm, r->machine, options, &layers));
    hbp_layers_view v = {.struct_size = sizeof v};
    (void)hbp_layers_get_view(layers, &v);
    const int64_t *const columns[] = {
        v.forward_ns,       v.backward_ns,   v.parameters,      v.state_bytes,  v.activation_bytes,
        v.recomputed_bytes, v.working_bytes, v.attention_bytes, v.attention_ns, v.mlp_bytes,
        v.mlp_ns,           v.recompute_ns,  v.cut_bytes};
    for (uint64_t k = 0; k < sizeof columns / sizeof *columns; k++)
        DIGEST_VIEW(a, columns[k], v.layers);
    DIGEST_VIEW(a, v.type, v.layers);
    for (int64_t i = 0; i < v.layers; i++)
        digest_text(a, v.names[i]);
    snprintf(a->facts, sizeof a->facts, " %d layers", (int)v.layers);
    hbp_layers_free(layers);
    return HBP_OK;
}

static void start_fields(const record *r, int32_t variant, void *options)
{
    (void)variant;
    (void)hbp_vlm_get_fields(r->context, r->vlm, options);
}

static hbp_status ask_fields(const record *r, int32_t variant, const void *options, answer *a)
{
    hbp_vlm *vlm = NULL;
    hbp_vlm_summary s = {.struct_size = sizeof s};
    (void)variant;
    RECORD_TRY(hbp_vlm_create(r->context, options, r->model, &vlm));
    hbp_status status = hbp_vlm_get_summary(r->context, vlm, &s);
    hbp_vlm_free(vlm);
    digest_real(a, s.vision_flops_per_unit);
    snprintf(a->facts, sizeof a->facts, " %d layers, %lld + %lld + %lld parameters", (int)s.layers,
             (long long)s.vision_parameters, (long long)s.projector_parameters,
             (long long)s.language_parameters);
    return status;
}

const question record_vision[] = {
    {"iterative-fill", "hbp_iterative_fill_options", sizeof(hbp_iterative_fill_options), 8, 2, 80, start_fill,
     ask_fill},
    {"budgets", "hbp_budgets_options", sizeof(hbp_budgets_options), 2, 2, 60, start_budgets, ask_budgets},
    {"layer-partition", "hbp_layer_partition_options", sizeof(hbp_layer_partition_options), 20, 1, 60, NULL,
     ask_partition},
    {"pipeline-run", "hbp_pipeline_options", sizeof(hbp_pipeline_options), 4, 1, 40, start_pipeline, ask_run},
    {"recompute", "hbp_recompute_options", sizeof(hbp_recompute_options), 20, 1, 60, NULL, ask_recompute},
    {"vlm-plan", "hbp_vlm_options", sizeof(hbp_vlm_options), 10, 1, 100, start_vlm, ask_vlm},
    {"vlm-layers", "hbp_vlm_layers_options", sizeof(hbp_vlm_layers_options), 4, 1, 20, start_layers,
     ask_layers},
    {"vlm", "hbp_vlm_fields", sizeof(hbp_vlm_fields), 1, 1, 20, start_fields, ask_fields},
    {0}};
