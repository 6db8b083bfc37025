#include <stdio.h>
#include <string.h>

#include "hbp/io.h"
#include "options.h"

/* One method of planning a run, and what it came to; `failed` keeps the library's message. */
typedef struct way {
    const char *name;
    const char *data, *partition, *recompute;
    int32_t order;
    char failed[256];
    double seconds;
    hbp_vlm_plan_summary summary;
} way;

static const char *const choice_names[] = {"none", "attention", "mlp", "layer"}; /* HBP_RECOMPUTE_* */

static hbp_status make_setup(cli *c)
{
    hbp_status status = c->vlm_text ? hbp_vlm_create_preset(c->context, c->vlm_text, &c->vlm) : HBP_OK;
    if (status >= 0)
        status = cli_make_machine(c);
    if (status >= 0 && c->layers_file)
        status = hbp_layers_load(c->context, c->layers_file, &c->layers);
    return status;
}

static hbp_status read_samples(cli *c)
{
    hbp_lengths_summary summary = {.struct_size = sizeof summary};
    hbp_status status = cli_read_lengths(c, c->file);
    if (status >= 0)
        status = hbp_lengths_get_summary(c->context, c->lengths, &summary);
    if (status >= 0 && summary.vision < 0)
        return cli_own_failure(
            "%s has no vision units; name their column by --vision-column, or a second file by "
            "--vision",
            c->file);
    return status;
}

static void read_options(const cli *c, hbp_vlm_options *options)
{
    *options = (hbp_vlm_options){.struct_size = sizeof *options};
    options->data_method = cli_value_name("HBP_VLM_DATA_METHODS", c->data);
    options->partition_method = cli_value_name("HBP_LAYER_PARTITION_METHODS", c->partition);
    options->recompute_method = cli_value_name("HBP_RECOMPUTE_METHODS", c->memory);
    options->tensor_parallel = (int32_t)c->tensor_parallel;
    options->pipeline_stages = (int32_t)c->stages;
    options->virtual_stages = (int32_t)c->virtual_stages;
    options->data_parallel = (int32_t)c->replicas;
    options->micro_batches = (int32_t)c->step_micro_batches;
    options->batch_samples = (int32_t)c->samples_per_step;
    options->samples = (int32_t)c->samples;
    options->zero_stage = (int32_t)c->zero;
    options->over_long = (int32_t)c->over_long;
    options->modality_order = (int32_t)c->modality_order;
    options->effort = (int32_t)c->effort;
    options->fused_cross_entropy = (int32_t)c->fused_cross_entropy;
    options->stack = c->stack;
    options->max_vision = c->max_vision;
    options->max_tokens = c->max_tokens;
    options->reserve_bytes = c->reserve_bytes;
    options->layers = c->layers;
    options->layers_vision = (double)c->layers_vision;
    options->layers_tokens = (double)c->layers_tokens;
    options->seed = (uint64_t)c->seed;
    options->epoch = (uint64_t)c->epoch;
}

/* Plans one way into c->vlm_plan. */
static hbp_status measure(cli *c, hbp_vlm_options *options, way *w)
{
    double start = cli_now();
    options->data_method = w->data;
    options->partition_method = w->partition;
    options->recompute_method = w->recompute;
    options->keep_order = w->order < 0;
    hbp_status status = hbp_plan_vlm(c->context, c->lengths, c->vlm, c->machine, options, &c->vlm_plan);
    w->seconds = cli_now() - start;
    w->summary.struct_size = sizeof w->summary;
    if (status >= 0)
        status = hbp_vlm_plan_get_summary(c->context, c->vlm_plan, &w->summary);
    if (status < 0)
        snprintf(w->failed, sizeof w->failed, "%s", cli_message(c));
    return status;
}

/* The same options for a run of one sample. */
static hbp_status plan_one(cli *c, const hbp_lengths *one, const void *options)
{
    hbp_vlm_plan *plan = NULL;
    hbp_status status = hbp_plan_vlm(c->context, one, c->vlm, c->machine, options, &plan);
    hbp_vlm_plan_free(plan);
    return status;
}

/* By the methods that take no time: which one refuses none of the options. */
static hbp_status try_options(cli *c, const hbp_vlm_options *given)
{
    hbp_vlm_options options = *given;
    options.data_method = "random";
    options.partition_method = "parameters";
    options.recompute_method = "all";
    return cli_try_options(c, plan_one, &options);
}

static json_t *summary_json(const hbp_vlm_plan_summary *s)
{
    return json_pack(
        "{s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:o,s:o,s:o,s:o,s:o,s:s}",
        "gpus", (int)s->gpus, "replicas", (int)s->replicas, "stages", (int)s->stages, "micro_batches",
        (int)s->micro_batches, "rounds", (int)s->rounds, "recomputed", (int)s->recomputed, "selective",
        (int)s->selective, "max_vision", (json_int_t)s->max_vision, "max_tokens", (json_int_t)s->max_tokens,
        "steps", (json_int_t)s->steps, "samples", (json_int_t)s->samples, "dropped", (json_int_t)s->dropped,
        "epoch_ns", (json_int_t)s->epoch_ns, "bound_ns", (json_int_t)s->bound_ns, "packs_bound_ns",
        (json_int_t)s->packs_bound_ns, "peak_bytes", (json_int_t)s->peak_bytes, "limit_bytes",
        (json_int_t)s->limit_bytes, "gpu_days", json_number(s->gpu_days), "bubble", json_number(s->bubble),
        "padding", json_number(s->padding), "dist_vision", json_number(s->dist_vision), "dist_tokens",
        json_number(s->dist_tokens), "digest", show_digest(s->digest).s);
}

static json_t *way_json(const way *w)
{
    json_t *row = json_pack("{s:s,s:s,s:s}", "data_method", w->data, "partition_method", w->partition,
                            "recompute_method", w->recompute);
    if (!row)
        return NULL;
    if (w->failed[0]) {
        json_object_set_new(row, "failed", json_string(w->failed));
        return row;
    }
    json_t *rest = summary_json(&w->summary);
    json_object_update_missing(row, rest);
    json_decref(rest);
    return row;
}

/* Cuts, recomputation and layers, beside what `row` has. */
static void add_layers(const cli *c, json_t *row)
{
    hbp_vlm_plan_view view = {.struct_size = sizeof view};
    hbp_layers_view layers = {.struct_size = sizeof layers};
    (void)hbp_vlm_plan_get_view(c->vlm_plan, &view);
    (void)hbp_layers_get_view(hbp_vlm_plan_get_layers(c->vlm_plan), &layers);
    json_t *cut_list = json_array(), *recompute_list = json_array(), *name_list = json_array();
    for (int64_t i = 0; i <= view.chunks; i++)
        json_array_append_new(cut_list, json_integer(view.cuts[i]));
    for (int64_t i = 0; i < view.layers; i++) {
        json_array_append_new(recompute_list, json_string(choice_names[view.recompute[i]]));
        json_array_append_new(name_list, json_string(layers.names[i]));
    }
    json_object_set_new(row, "cuts", cut_list);
    json_object_set_new(row, "recompute", recompute_list);
    json_object_set_new(row, "layers", name_list);
}

static void add_stages(const cli *c, json_t *row)
{
    hbp_vlm_plan_view view = {.struct_size = sizeof view};
    (void)hbp_vlm_plan_get_view(c->vlm_plan, &view);
    json_object_set_new(row, "stage_ns", json_columns_i64(view.stage_ns, view.stages));
    json_object_set_new(row, "stage_bytes", json_columns_i64(view.stage_bytes, view.stages));
}

json_t *cli_vlm_json(const cli *c)
{
    hbp_vlm_plan_summary summary = {.struct_size = sizeof summary};
    if (hbp_vlm_plan_get_summary(c->context, c->vlm_plan, &summary) < 0)
        return NULL;
    json_t *row = summary_json(&summary);
    if (row) {
        add_layers(c, row);
        add_stages(c, row);
    }
    return row;
}

static shown show_data_digest(const cli *c)
{
    hbp_plan_summary s = {.struct_size = sizeof s};
    (void)hbp_plan_get_summary(c->context, hbp_vlm_plan_get_data(c->vlm_plan), &s);
    return show_digest(s.digest);
}

static int print_json(cli *c, const way *w)
{
    c->result = way_json(w);
    if (c->result) {
        add_layers(c, c->result);
        json_object_set_new(c->result, "pack_samples", json_integer(w->summary.pack_samples));
        json_object_set_new(c->result, "plan_digest", json_string(show_data_digest(c).s));
        add_stages(c, c->result);
        json_object_set_new(c->result, "path", json_path(c->output));
    }
    return cli_print_json(c);
}

/* "patch embedding .. vision 22", the layers of one stage's chunk. */
static shown show_layers(const hbp_layers *layers, const int32_t *cuts, int64_t chunks, int64_t stages,
                         int64_t stage)
{
    shown text = {""};
    hbp_layers_view view = {.struct_size = sizeof view};
    (void)hbp_layers_get_view(layers, &view);
    int at = 0;
    for (int64_t k = stage; k < chunks && at < (int)sizeof text.s - 80; k += stages) {
        const char *last = view.names[cuts[k + 1] - 1];
        at += snprintf(text.s + at, sizeof text.s - (size_t)at, "%s%s", at ? "; " : "", view.names[cuts[k]]);
        if (cuts[k + 1] - cuts[k] > 1)
            at += snprintf(text.s + at, sizeof text.s - (size_t)at, " .. %s", last);
    }
    return text;
}

static int64_t count_recomputed(const int32_t *recompute, const int32_t *cuts, int64_t chunks, int64_t stages,
                                int64_t stage)
{
    int64_t count = 0;
    for (int64_t k = stage; k < chunks; k += stages)
        for (int32_t i = cuts[k]; i < cuts[k + 1]; i++)
            count += recompute[i] != HBP_RECOMPUTE_NONE;
    return count;
}

static shown show_over(int64_t ns, int64_t bound_ns)
{
    return show_share(bound_ns > 0 ? (double)ns / (double)bound_ns - 1 : 0);
}

static double samples_per_pack(const cli *c)
{
    hbp_plan_summary data = {.struct_size = sizeof data};
    hbp_plan_get_summary(c->context, hbp_vlm_plan_get_data(c->vlm_plan), &data);
    int64_t packs = data.packs - data.padding_packs;
    return packs ? (double)data.samples / (double)packs : 0;
}

static void print_stages(const cli *c)
{
    hbp_vlm_plan_view view = {.struct_size = sizeof view};
    (void)hbp_vlm_plan_get_view(c->vlm_plan, &view);
    const hbp_layers *layers = hbp_vlm_plan_get_layers(c->vlm_plan);
    table t;
    table_begin(&t, 5, (const char *[]){"stage", "~layers", "micro-batch", "peak", "recomputed layers"});
    for (int64_t i = 0; i < view.stages; i++) {
        table_add(&t, "%lld", (long long)i);
        table_add_text(&t, show_layers(layers, view.cuts, view.chunks, view.stages, i));
        table_add_text(&t, show_time((double)view.stage_ns[i]));
        table_add_text(&t, show_bytes((double)view.stage_bytes[i]));
        table_add_text(&t,
                       show_count(count_recomputed(view.recompute, view.cuts, view.chunks, view.stages, i)));
    }
    table_end(&t);
}

/* `seconds` < 0: planned at another time. */
static void print_totals(const hbp_vlm_plan_summary *s, double seconds)
{
    say("\npredicted %s, %s GPU-days; idle %s", show_time((double)s->epoch_ns).s,
        show_real("%.3f", s->gpu_days).s, show_share(s->bubble).s);
    if (seconds >= 0)
        say("; planned in %s", show_time(seconds * 1e9).s);
    say("\nat most %s above the best for these packs and steps (%s), %s above work spread evenly (%s)\n",
        show_over(s->epoch_ns, s->packs_bound_ns).s, show_time((double)s->packs_bound_ns).s,
        show_over(s->epoch_ns, s->bound_ns).s, show_time((double)s->bound_ns).s);
}

void cli_print_vlm(const cli *c)
{
    hbp_vlm_plan_summary s = {.struct_size = sizeof s};
    if (hbp_vlm_plan_get_summary(c->context, c->vlm_plan, &s) < 0)
        return;
    say("%s of %s\n\n", show_number(s.replicas, "replica").s, show_number(s.stages, "stage").s);
    print_stages(c);
    print_totals(&s, -1);
}

static int print_text(cli *c, const way *w)
{
    const hbp_vlm_plan_summary *s = &w->summary;
    say("%s on %s: %s of %s; %s in %s of %s\n", show_name(c->vlm_text ? c->vlm_text : c->layers_file).s,
        show_number(s->gpus, "GPU").s, show_number(s->replicas, "replica").s,
        show_number(s->stages, "stage").s, show_number(s->samples, "sample").s,
        show_number(s->steps, "step").s, show_number(s->micro_batches, "micro-batch").s);
    if (s->max_tokens)
        say("a pack holds at most %s and %s; %.2f samples on average\n",
            show_number(s->max_vision, "vision unit").s, show_number(s->max_tokens, "token").s,
            samples_per_pack(c));
    if (s->pack_samples < (c->samples ? c->samples : 4))
        say("memory holds no more than %s a pack\n", show_number(s->pack_samples, "sample").s);
    say("padding %s; imbalance of replicas %s in vision, %s in tokens\n\n", show_share(s->padding).s,
        show_share(s->dist_vision).s, show_share(s->dist_tokens).s);
    print_stages(c);
    print_totals(s, w->seconds);
    if (s->dropped)
        say("%s dropped\n", show_number(s->dropped, "sample").s);
    if (c->output)
        say("wrote %s, digest %s\n", show_name(c->output).s, show_data_digest(c).s);
    return 0;
}

/* The steps of OmniBal's ablation, each part alone, and the method as published. */
static const way ways[] = {
    {"as usual", "random", "parameters", "all", -1, "", 0, {0}},
    {"data", "packed", "parameters", "all", 0, "", 0, {0}},
    {"model", "random", "optimal", "all", -1, "", 0, {0}},
    {"memory", "random", "parameters", "optimal", -1, "", 0, {0}},
    {"data + model", "packed", "optimal", "all", 0, "", 0, {0}},
    {"data + model + memory", "packed", "optimal", "optimal", 0, "", 0, {0}},
    {"OmniBal as published", "isf", "omnibal", "omnibal", -1, "", 0, {0}},
};

enum { WAYS = sizeof ways / sizeof *ways };

static int print_ways_json(cli *c, const way *found)
{
    json_t *list = json_array();
    for (int i = 0; i < WAYS; i++) {
        json_t *row = way_json(&found[i]);
        if (row)
            json_object_set_new(row, "method", json_string(found[i].name));
        json_array_append_new(list, row);
    }
    c->result = json_pack("{s:o}", "methods", list);
    return cli_print_json(c);
}

static void print_ways(const way *found)
{
    table t;
    table_begin(&t, 9,
                (const char *[]){"<balanced", "GPU-days", "x usual", "idle", "padding", "imbalance: vision",
                                 "tokens", "-recomputed", "-planned in"});
    for (int i = 0; i < WAYS; i++) {
        const hbp_vlm_plan_summary *s = &found[i].summary;
        table_add(&t, "%s", found[i].name);
        if (found[i].failed[0]) {
            for (int k = 1; k < 9; k++)
                table_add(&t, "-");
            continue;
        }
        table_add_text(&t, show_real("%.3f", s->gpu_days));
        table_add_text(
            &t,
            show_real("%.3f", found[0].summary.gpu_days > 0 ? s->gpu_days / found[0].summary.gpu_days : 0));
        table_add_text(&t, show_share(s->bubble));
        table_add_text(&t, show_share(s->padding));
        table_add_text(&t, show_share(s->dist_vision));
        table_add_text(&t, show_share(s->dist_tokens));
        table_add_text(&t, show_count(s->recomputed + s->selective));
        table_add_text(&t, show_time(found[i].seconds * 1e9));
    }
    table_end(&t);
    for (int i = 0; i < WAYS; i++)
        if (found[i].failed[0])
            say("  %s: %s\n", found[i].name, found[i].failed);
        else if (found[i].summary.dropped)
            say("  %s: %s of %s dropped\n", found[i].name, show_count(found[i].summary.dropped).s,
                show_number(found[i].summary.dropped + found[i].summary.samples, "sample").s);
}

/* Shares of the time that 70,706 samples on 64 GPUs take. */
#define PLANNING "even packs 80x200, balance 7x40, recompute 3, steps 5, order 5"

static int compare(cli *c, hbp_vlm_options *options)
{
    way found[WAYS];
    memcpy(found, ways, sizeof ways);
    job_part parts[WAYS + 1] = {{0}};
    for (int i = 0; i < WAYS; i++)
        parts[i] = (job_part){ways[i].name, 1, PLANNING};
    progress_begin(parts);
    for (int i = 0; i < WAYS; i++) {
        progress_part(i);
        hbp_status status = measure(c, options, &found[i]);
        hbp_vlm_plan_free(c->vlm_plan);
        c->vlm_plan = NULL;
        if (i == 0 && status != HBP_E_INFEASIBLE)
            CLI_TRY(c, cli_as_options(c, status, plan_one, options));
        if (status == HBP_E_CANCELLED)
            return cli_failed(c);
    }
    cli_finish_progress();
    if (c->json)
        return print_ways_json(c, found);
    print_ways(found);
    return 0;
}

static hbp_status save(cli *c)
{
    hbp_plan_save_options options = {.struct_size = sizeof options};
    options.note = c->note;
    return hbp_vlm_plan_save(c->context, c->vlm_plan, c->output, &options);
}

int cli_vlm(cli *c)
{
    hbp_vlm_options options;
    const job_part parts[] = {{"reading", 2, "read 100"},
                              {"planning", 94, PLANNING},
                              {c->output ? "writing" : NULL, 4, "save 100"},
                              {NULL, 0, NULL}};
    progress_begin(parts);
    CLI_TRY(c, make_setup(c));
    read_options(c, &options);
    CLI_TRY(c, try_options(c, &options));
    CLI_TRY(c, read_samples(c));
    if (c->compare)
        return compare(c, &options);
    way w = {.data = options.data_method,
             .partition = options.partition_method,
             .recompute = options.recompute_method};
    progress_part(1);
    CLI_TRY(c, cli_as_options(c, measure(c, &options, &w), plan_one, &options));
    progress_part(2);
    if (c->output)
        CLI_TRY(c, save(c));
    cli_finish_progress();
    return c->json ? print_json(c, &w) : print_text(c, &w);
}
