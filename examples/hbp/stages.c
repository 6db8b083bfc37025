#include <stdio.h>
#include <stdlib.h>

#include "hbp/io.h"
#include "options.h"

/* By what a candidate came among the best: "time, variance". */
static shown show_ranked(int32_t ranked)
{
    shown text = {""};
    int at = 0;
    static const char *const names[] = {"time", "variance", "communication"};
    for (int i = 0; i < 3; i++)
        if (ranked & (1 << i))
            at += snprintf(text.s + at, sizeof text.s - (size_t)at, "%s%s", at ? ", " : "", names[i]);
    return text;
}

/* "0 23 47 72 101" */
static shown show_cuts(const int32_t *cuts, int64_t count)
{
    shown text = {""};
    int at = 0;
    for (int64_t k = 0; k < count && at < (int)sizeof text.s - 16; k++)
        at += snprintf(text.s + at, sizeof text.s - (size_t)at, "%s%d", k ? " " : "", (int)cuts[k]);
    return text;
}

static json_t *cuts_json(const int32_t *cuts, int64_t count)
{
    json_t *list = json_array();
    for (int64_t k = 0; k < count; k++)
        json_array_append_new(list, json_integer(cuts[k]));
    return list;
}

static int print_json(cli *c, const hbp_layer_partition *partition, const hbp_layer_partition_summary *s)
{
    hbp_layer_partition_view view = {.struct_size = sizeof view};
    (void)hbp_layer_partition_get_view(partition, &view);
    json_t *candidates = json_array();
    for (int64_t i = 0; i < view.candidates; i++)
        json_array_append_new(
            candidates, json_pack("{s:o,s:I,s:I,s:I,s:o,s:s}", "cuts",
                                  cuts_json(view.candidate_cuts + i * (view.chunks + 1), view.chunks + 1),
                                  "predicted_ns", (json_int_t)view.candidate_predicted_ns[i], "simulated_ns",
                                  (json_int_t)view.candidate_simulated_ns[i], "cut_bytes",
                                  (json_int_t)view.candidate_cut_bytes[i], "variance",
                                  json_number(view.candidate_variance[i]), "ranked",
                                  show_ranked(view.candidate_ranked[i]).s));
    c->result =
        json_pack("{s:s,s:o,s:b,s:I,s:I,s:I,s:i,s:I,s:I,s:o,s:o,s:I,s:o,s:o,s:o}", "partition_method",
                  cli_value_name("HBP_LAYER_PARTITION_METHODS", c->partition), "cuts",
                  cuts_json(view.cuts, view.chunks + 1), "proven", (int)s->proven, "predicted_ns",
                  (json_int_t)s->predicted_ns, "bound_ns", (json_int_t)s->bound_ns, "simulated_ns",
                  (json_int_t)s->simulated_ns, "bottleneck", (int)s->bottleneck, "bottleneck_ns",
                  (json_int_t)s->bottleneck_ns, "cut_bytes", (json_int_t)s->cut_bytes, "variance",
                  json_number(s->stage_variance), "bubble", json_number(s->bubble), "peak_bytes",
                  (json_int_t)s->peak_bytes, "stage_ns", json_columns_i64(view.stage_ns, view.stages),
                  "stage_bytes", json_columns_i64(view.stage_bytes, view.stages), "candidates", candidates);
    return cli_print_json(c);
}

static int print_text(cli *c, const hbp_layer_partition *partition, const hbp_layer_partition_summary *s)
{
    hbp_layer_partition_view view = {.struct_size = sizeof view};
    (void)hbp_layer_partition_get_view(partition, &view);
    int64_t stages = view.stages;
    say("%s, %s, %s\n\n", show_number(view.cuts[view.chunks], "layer").s, show_number(stages, "stage").s,
        show_number(s->micro_batches, "micro-batch").s);
    table t;
    table_begin(&t, 5, (const char *[]){"stage", "~layers", "micro-batch", "busy", "peak"});
    for (int64_t i = 0; i < stages; i++) {
        shown text = {""};
        int at = 0;
        for (int64_t k = i; k < view.chunks && at < (int)sizeof text.s - 32; k += stages)
            at += snprintf(text.s + at, sizeof text.s - (size_t)at, "%s%d-%d", at ? ", " : "",
                           (int)view.cuts[k], (int)view.cuts[k + 1] - 1);
        table_add(&t, "%lld", (long long)i);
        table_add_text(&t, text);
        table_add_text(&t, show_time((double)view.stage_ns[i]));
        table_add_text(&t, show_time((double)view.stage_busy_ns[i]));
        table_add_text(&t, show_bytes((double)view.stage_bytes[i]));
    }
    table_end(&t);
    say("\nstep %s (formula %s%s), bubble %s, %s over the cuts\n", show_time((double)s->simulated_ns).s,
        show_time((double)s->predicted_ns).s,
        s->proven && s->predicted_ns == s->bound_ns ? ", which no cuts go below" : "",
        show_share(s->bubble).s, show_bytes((double)s->cut_bytes).s);
    if (!s->proven && s->bound_ns > 0 && !c->partition)
        say("a limit cut the search short; no partition has less than %s by the formula\n",
            show_time((double)s->bound_ns).s);
    if (!c->all)
        return 0;
    say("\n");
    table_begin(&t, 5, (const char *[]){"<cuts", "step", "formula", "over the cuts", "<best by"});
    for (int64_t i = 0; i < view.candidates; i++) {
        table_add_text(&t, show_cuts(view.candidate_cuts + i * (view.chunks + 1), view.chunks + 1));
        table_add_text(&t, show_time((double)view.candidate_simulated_ns[i]));
        table_add_text(&t, show_time((double)view.candidate_predicted_ns[i]));
        table_add_text(&t, show_bytes((double)view.candidate_cut_bytes[i]));
        table_add_text(&t, show_ranked(view.candidate_ranked[i]));
    }
    table_end(&t);
    return 0;
}

/* The run of a step on these stages. */
static hbp_status write_run(cli *c, const hbp_pipeline_options *pipeline)
{
    hbp_layer_partition_view view = {.struct_size = sizeof view};
    (void)hbp_layer_partition_get_view(c->partition_found, &view);
    hbp_status status =
        hbp_simulate_pipeline(c->context, c->layers, view.cuts, pipeline, view.order, &c->pipeline_run);
    return status < 0 ? status : hbp_pipeline_run_save(c->context, c->pipeline_run, c->output);
}

int cli_stages(cli *c)
{
    int64_t *limit = NULL;
    hbp_pipeline_options pipeline = {.struct_size = sizeof pipeline};
    hbp_layer_partition_options options = {.struct_size = sizeof options};
    hbp_layer_partition_summary s = {.struct_size = sizeof s};
    pipeline.stages = (int32_t)c->stages;
    pipeline.virtual_stages = (int32_t)c->virtual_stages;
    pipeline.micro_batches = (int32_t)(c->step_micro_batches ? c->step_micro_batches : 4 * c->stages);
    if (pipeline.virtual_stages > 1 && pipeline.micro_batches % pipeline.stages)
        return cli_usage(
            "--micro-batches is %d; with %d virtual stages it must be a multiple of the %d stages",
            (int)pipeline.micro_batches, (int)pipeline.virtual_stages, (int)pipeline.stages);
    pipeline.link_bytes_per_s = c->link_bytes_per_s;
    pipeline.link_overlap = c->link_overlap;
    options.method = cli_value_name("HBP_LAYER_PARTITION_METHODS", c->partition);
    static const job_part parts[] = {{"cutting layers", 100, "partition 50, candidates 50"}, {NULL, 0, NULL}};
    progress_begin(parts);
    CLI_TRY(c, hbp_layers_load(c->context, c->file, &c->layers));
    if (c->memory_bytes) {
        limit = malloc((size_t)c->stages * sizeof *limit);
        if (!limit)
            return cli_error("out of memory");
        for (int64_t i = 0; i < c->stages; i++)
            limit[i] = c->memory_bytes;
        pipeline.limit_bytes = limit;
    }
    hbp_status status = hbp_partition_layers(c->context, c->layers, &pipeline, &options, &c->partition_found);
    if (status >= 0 && c->output)
        status = write_run(c, &pipeline);
    free(limit);
    CLI_TRY(c, status);
    CLI_TRY(c, hbp_layer_partition_get_summary(c->context, c->partition_found, &s));
    cli_finish_progress();
    if (c->json)
        return print_json(c, c->partition_found, &s);
    int failed = print_text(c, c->partition_found, &s);
    if (!failed && c->output)
        say("wrote %s\n", show_name(c->output).s);
    return failed;
}
