/* Files of objects other than plans: which one a file holds, and the run of a pipeline. */
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "hbp/io.h"
#include "report/report.h"

static int show_pipeline(cli *c)
{
    hbp_pipeline_summary s = {.struct_size = sizeof s};
    hbp_pipeline_run_view view = {.struct_size = sizeof view};
    CLI_TRY(c, hbp_pipeline_run_get_summary(c->context, c->pipeline_run, &s));
    (void)hbp_pipeline_run_get_view(c->pipeline_run, &view);
    cli_finish_progress();
    if (c->json) {
        c->result = json_pack(
            "{s:i,s:i,s:i,s:I,s:I,s:I,s:I,s:o,s:o,s:o,s:s}", "stages", (int)s.stages, "virtual_stages",
            (int)s.virtual_stages, "micro_batches", (int)s.micro_batches, "operations",
            (json_int_t)s.operations, "total_ns", (json_int_t)s.total_ns, "bound_ns", (json_int_t)s.bound_ns,
            "peak_bytes", (json_int_t)s.peak_bytes, "bubble", json_number(s.bubble), "stage_busy_ns",
            json_columns_i64(view.stage_busy_ns, view.stages), "stage_bytes",
            json_columns_i64(view.stage_bytes, view.stages), "digest", show_digest(s.digest).s);
        return cli_print_json(c);
    }
    say("%s: a run of %s%s, %s\n\n", show_name(c->file).s, show_number(s.stages, "stage").s,
        s.virtual_stages > 1 ? ", interleaved" : "", show_number(s.micro_batches, "micro-batch").s);
    table t;
    table_begin(&t, 4, (const char *[]){"stage", "busy", "waits", "peak"});
    for (int64_t i = 0; i < view.stages; i++) {
        table_add(&t, "%lld", (long long)i);
        table_add_text(&t, show_time((double)view.stage_busy_ns[i]));
        table_add_text(&t, show_time((double)(s.total_ns - view.stage_busy_ns[i])));
        table_add_text(&t, show_bytes((double)view.stage_bytes[i]));
    }
    table_end(&t);
    say("\nstep %s, bubble %s; no order of these micro-batches takes less than %s; digest %s\n",
        show_time((double)s.total_ns).s, show_share(s.bubble).s, show_time((double)s.bound_ns).s,
        show_digest(s.digest).s);
    return 0;
}

static int validate_pipeline(cli *c)
{
    hbp_pipeline_summary s = {.struct_size = sizeof s};
    CLI_TRY(c, hbp_pipeline_run_get_summary(c->context, c->pipeline_run, &s));
    hbp_status status = hbp_pipeline_run_validate(c->context, c->pipeline_run, NULL, NULL, NULL);
    return cli_print_validity(c, status, s.digest, "runs every operation once, where and when it can");
}

static int trace_pipeline(cli *c)
{
    CLI_TRY(c, hbp_pipeline_run_trace(c->context, c->pipeline_run, c->output));
    return cli_print_written(c);
}

static hbp_status load_pipeline(cli *c)
{
    return hbp_pipeline_run_load(c->context, c->file, &c->pipeline_run);
}

static hbp_status dump_pipeline(const cli *c, const char *path)
{
    return hbp_pipeline_run_write_json(c->context, c->pipeline_run, path);
}

static const cli_object pipeline_object = {"hbp-pipeline-run", "a run of a pipeline", 0,
                                           load_pipeline,      show_pipeline,         validate_pipeline,
                                           trace_pipeline,     report_of_pipeline,    dump_pipeline};

/* The format's name, which every such file begins with: a map of 16 bits of size, "format", the name. */
static void read_format(const char *path, char name[32])
{
    unsigned char head[64] = {0};
    FILE *file = fopen(path, "rb");
    name[0] = '\0';
    if (!file)
        return;
    if (fread(head, 1, sizeof head, file) > 0 && head[0] == 0xde &&
        memcmp(head + 3,
               "\xa6"
               "format",
               7) == 0 &&
        (head[10] & 0xe0) == 0xa0) {
        memcpy(name, head + 11, head[10] & 0x1f);
        name[head[10] & 0x1f] = '\0';
    }
    fclose(file);
}

int cli_is_plan(const char *path)
{
    char name[32];
    read_format(path, name);
    return strcmp(name, "hbp-plan") == 0;
}

const cli_object *cli_find_object(const cli *c)
{
    static const cli_object *const all[] = {&cli_schedule_object, &cli_task_run_object, &pipeline_object,
                                            &cli_pattern_object};
    char name[32];
    read_format(c->file, name);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i]->format, name) == 0)
            return all[i];
    return NULL;
}

int cli_load_object(cli *c, const cli_object *object)
{
    const struct {
        const char *name;
        int given;
    } others[] = {{"--step", c->step >= 0 && !(object->takes & CLI_TAKES_PLACE)},
                  {"--steps", c->steps_text && !(object->takes & CLI_TAKES_PLACE)},
                  {"--rank", c->rank >= 0 && !(object->takes & CLI_TAKES_PLACE)},
                  {"--measured", c->measured_file != NULL},
                  {"--compared", c->compared_file != NULL},
                  {"--lengths", c->lengths_file && !(object->takes & CLI_TAKES_PLACE)},
                  {"--model", c->model_text && !(object->takes & CLI_TAKES_PLACE)},
                  {"--cost", c->cost_file && !(object->takes & CLI_TAKES_PLACE)},
                  {"--barriers", c->barriers && !(object->takes & CLI_TAKES_GRAPH)},
                  {"--graph", c->graph_text && !(object->takes & CLI_TAKES_GRAPH)},
                  {"--machine", c->machine_text && !object->takes},
                  {"--schedule", c->schedule_file && !(object->takes & CLI_TAKES_GRAPH)}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i].given)
            return cli_usage("%s is for other files; %s is %s", others[i].name, c->file, object->what);
    CLI_TRY(c, object->load(c));
    return 0;
}

int cli_print_validity(cli *c, hbp_status status, uint64_t digest, const char *what)
{
    cli_finish_progress();
    if (c->json) {
        c->result = json_pack("{s:b,s:s,s:s,s:b}", "valid", status >= 0, "message", cli_message(c), "digest",
                              show_digest(digest).s, "against_graph", c->graph != NULL);
        int printed = cli_print_json(c);
        return printed ? printed : status < 0;
    }
    if (status < 0)
        return cli_failed(c);
    say("%s %s, digest %s\n", show_name(c->file).s, what, show_digest(digest).s);
    return 0;
}

int cli_print_written(cli *c)
{
    cli_finish_progress();
    if (c->json) {
        c->result = json_pack("{s:o}", "path", json_path(c->output));
        return cli_print_json(c);
    }
    say("wrote %s; open it at ui.perfetto.dev\n", show_name(c->output).s);
    return 0;
}
