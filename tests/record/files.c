/* Files of every kind: their bytes, and what is said of damaged ones. */
#include <unistd.h>

#include "hbp/io.h"
#include "record.h"

typedef struct file_kind {
    const char *name;
    hbp_status (*save)(const record *r, const char *path);
    hbp_status (*load)(const record *r, const char *path, answer *a);
} file_kind;

static hbp_status save_plan(const record *r, const char *path)
{
    hbp_plan_save_options options = {.struct_size = sizeof options, .cost = r->cost[0], .note = "a note"};
    return hbp_plan_save(r->context, r->plan, path, &options);
}

static hbp_status load_plan(const record *r, const char *path, answer *a)
{
    hbp_plan *plan = NULL;
    RECORD_TRY(hbp_plan_load(r->context, path, &plan));
    digest_number(a, (int64_t)plan_digest(r, plan));
    hbp_plan_free(plan);
    return HBP_OK;
}

static hbp_status load_step(const record *r, const char *path, answer *a)
{
    hbp_plan_file *file = NULL;
    hbp_plan *plan = NULL;
    RECORD_TRY(hbp_plan_file_open(r->context, path, &file));
    hbp_status status = hbp_plan_file_read(r->context, file, 1, 1, &plan);
    if (status >= 0)
        digest_number(a, (int64_t)plan_digest(r, plan));
    hbp_plan_free(plan);
    hbp_plan_file_free(file);
    return status;
}

static hbp_status save_plan_json(const record *r, const char *path)
{
    return hbp_plan_write_json(r->context, r->plan, path);
}

static hbp_status save_plan_trace(const record *r, const char *path)
{
    return hbp_plan_trace(r->context, r->plan, path, NULL);
}

static hbp_status save_schedule(const record *r, const char *path)
{
    return hbp_task_schedule_save(r->context, r->schedule, path);
}

static hbp_status load_schedule(const record *r, const char *path, answer *a)
{
    hbp_task_schedule *schedule = NULL;
    RECORD_TRY(hbp_task_schedule_load(r->context, path, &schedule));
    hbp_task_summary s = {.struct_size = sizeof s};
    hbp_status status = hbp_task_schedule_get_summary(r->context, schedule, &s);
    digest_number(a, (int64_t)s.digest);
    hbp_task_schedule_free(schedule);
    return status;
}

static hbp_status save_schedule_trace(const record *r, const char *path)
{
    return hbp_task_schedule_trace(r->context, r->schedule, NULL, path);
}

static hbp_status save_task_run(const record *r, const char *path)
{
    hbp_task_run *run = NULL;
    RECORD_TRY(hbp_simulate_tasks(r->context, r->graph[0], r->machine, r->schedule, NULL, &run));
    hbp_status status = hbp_task_run_save(r->context, run, path);
    hbp_task_run_free(run);
    return status;
}

static hbp_status load_task_run(const record *r, const char *path, answer *a)
{
    hbp_task_run *run = NULL;
    hbp_task_run_summary summary = {.struct_size = sizeof summary};
    RECORD_TRY(hbp_task_run_load(r->context, path, &run));
    hbp_status status = hbp_task_run_get_summary(r->context, run, &summary);
    digest_number(a, (int64_t)summary.digest);
    hbp_task_run_free(run);
    return status;
}

/* Two stages of two chunks each, as many layers on all. */
static hbp_status save_pipeline_run(const record *r, const char *path)
{
    hbp_pipeline_options pipeline = {
        .struct_size = sizeof pipeline, .stages = 2, .virtual_stages = 2, .micro_batches = 4};
    hbp_layers_view layers = {.struct_size = sizeof layers};
    hbp_pipeline_run *run = NULL;
    int32_t cuts[5];
    (void)hbp_layers_get_view(r->layers, &layers);
    for (int32_t k = 0; k <= 4; k++)
        cuts[k] = (int32_t)(k * layers.layers / 4);
    RECORD_TRY(hbp_simulate_pipeline(r->context, r->layers, cuts, &pipeline, NULL, &run));
    hbp_status status = hbp_pipeline_run_save(r->context, run, path);
    hbp_pipeline_run_free(run);
    return status;
}

static hbp_status load_pipeline_run(const record *r, const char *path, answer *a)
{
    hbp_pipeline_run *run = NULL;
    hbp_pipeline_summary summary = {.struct_size = sizeof summary};
    RECORD_TRY(hbp_pipeline_run_load(r->context, path, &run));
    hbp_status status = hbp_pipeline_run_get_summary(r->context, run, &summary);
    digest_number(a, (int64_t)summary.digest);
    hbp_pipeline_run_free(run);
    return status;
}

static hbp_status save_cost(const record *r, const char *path)
{
    return hbp_cost_save(r->context, r->cost[1], path, NULL);
}

static hbp_status load_cost(const record *r, const char *path, answer *a)
{
    hbp_cost *cost = NULL;
    RECORD_TRY(hbp_cost_load(r->context, path, &cost));
    digest_number(a, hbp_cost_predict_pack_ns(cost, 1, 0, 3000, 9e6, 0));
    hbp_cost_free(cost);
    return HBP_OK;
}

static hbp_status save_machine(const record *r, const char *path)
{
    return hbp_machine_save(r->context, r->machine, path);
}

static hbp_status load_machine(const record *r, const char *path, answer *a)
{
    hbp_machine *machine = NULL;
    hbp_machine_fields fields = {.struct_size = sizeof fields};
    RECORD_TRY(hbp_machine_load(r->context, path, &machine));
    hbp_status status = hbp_machine_get_fields(r->context, machine, &fields);
    digest_real(a, fields.flops_per_s);
    digest_real(a, fields.network_bytes_per_s);
    digest_number(a, fields.hbm_bytes);
    hbp_machine_free(machine);
    return status;
}

static hbp_status save_graph_json(const record *r, const char *path)
{
    return hbp_graph_save(r->context, r->graph[0], path, HBP_GRAPH_JSON);
}

static hbp_status save_graph_msgpack(const record *r, const char *path)
{
    return hbp_graph_save(r->context, r->graph[0], path, HBP_GRAPH_MSGPACK);
}

static hbp_status load_graph(const record *r, const char *path, answer *a)
{
    hbp_graph *graph = NULL;
    RECORD_TRY(hbp_graph_load(r->context, path, &graph));
    hbp_graph_view view = {.struct_size = sizeof view};
    (void)hbp_graph_get_view(graph, &view);
    digest_number(a, view.operators);
    digest_number(a, view.edges);
    hbp_graph_free(graph);
    return HBP_OK;
}

static hbp_status save_timeline(const record *r, const char *path)
{
    return hbp_timeline_save(r->context, r->timeline, path);
}

static hbp_status load_timeline(const record *r, const char *path, answer *a)
{
    hbp_timeline *timeline = NULL;
    hbp_timeline_columns columns = {.struct_size = sizeof columns};
    RECORD_TRY(hbp_timeline_load(r->context, path, &timeline));
    hbp_status status = hbp_timeline_get_columns(r->context, timeline, &columns);
    if (status >= 0)
        digest_wide(a, columns.time_ns, columns.count);
    hbp_timeline_free(timeline);
    return status;
}

static const file_kind kinds[] = {{"plan", save_plan, load_plan},
                                  {"step-of-plan", save_plan, load_step},
                                  {"plan-json", save_plan_json, NULL},
                                  {"plan-trace", save_plan_trace, NULL},
                                  {"schedule", save_schedule, load_schedule},
                                  {"schedule-trace", save_schedule_trace, NULL},
                                  {"task-run", save_task_run, load_task_run},
                                  {"pipeline-run", save_pipeline_run, load_pipeline_run},
                                  {"cost", save_cost, load_cost},
                                  {"machine", save_machine, load_machine},
                                  {"graph-json", save_graph_json, load_graph},
                                  {"graph-msgpack", save_graph_msgpack, load_graph},
                                  {"timeline", save_timeline, load_timeline}};

static void read_one(const record *r, const file_kind *kind, const char *path, const char *asked)
{
    answer a = {.digest = UINT64_C(0xcbf29ce484222325)};
    hbp_status status = kind->load(r, path, &a);
    record_print(r, asked, status, &a);
}

static void write_bytes(const char *path, const char *bytes, size_t count)
{
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(bytes, 1, count, file) != count || fclose(file) != 0) {
        fprintf(stderr, "record: cannot write %s\n", path);
        exit(1);
    }
}

/* Cut behind each of some bytes, and with a bit of each of some flipped. */
static void damage(const record *r, const file_kind *kind, const char *path)
{
    enum { PLACES = 60 };
    static char bytes[1 << 22];
    char asked[RECORD_TEXT];
    FILE *file = fopen(path, "rb");
    size_t count = file ? fread(bytes, 1, sizeof bytes, file) : 0;
    if (file)
        fclose(file);
    for (size_t k = 0; k < PLACES && count; k++) {
        size_t at = k < PLACES / 2 ? k : (count - 1) * (k - PLACES / 2) / (PLACES / 2);
        if (at >= count)
            continue;
        snprintf(asked, sizeof asked, "file %s cut at %zu", kind->name, at);
        write_bytes(path, bytes, at);
        read_one(r, kind, path, asked);
        bytes[at] ^= (char)(1 << k % 7);
        snprintf(asked, sizeof asked, "file %s bit %zu of byte %zu", kind->name, k % 7, at);
        write_bytes(path, bytes, count);
        read_one(r, kind, path, asked);
        bytes[at] ^= (char)(1 << k % 7);
    }
}

void record_files(const record *r)
{
    char path[96], asked[RECORD_TEXT];
    snprintf(path, sizeof path, "%s/file", r->folder);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        answer a = {.digest = UINT64_C(0xcbf29ce484222325)};
        hbp_status status = kinds[k].save(r, path);
        if (status >= 0)
            digest_file(&a, path);
        snprintf(asked, sizeof asked, "file %s saved", kinds[k].name);
        record_print(r, asked, status, &a);
        if (kinds[k].load) {
            snprintf(asked, sizeof asked, "file %s", kinds[k].name);
            read_one(r, &kinds[k], path, asked);
            damage(r, &kinds[k], path);
            snprintf(asked, sizeof asked, "file %s absent", kinds[k].name);
            unlink(path);
            read_one(r, &kinds[k], path, asked);
        }
        unlink(path);
    }
}
