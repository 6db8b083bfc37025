/* Traces of pipelines' runs: every operation, once, in the row of its stage. */
#include "hbp/io.h"
#include "traces.h"

#include "failing.h"
#include "files.h"
#include "keep.h"
#include "simulate/pipelines.h"
#include "views.h"

static void check(const hbp_pipeline_run *run, const char *path)
{
    const hbp_pipeline_run_view v = pipeline_run_view(run);
    json_t *root = trace_read(path);
    json_t *events = json_object_get(root, "traceEvents");
    const size_t head = 2 + 2 * (size_t)v.stages; /* name and place of the process and its rows */
    ck_assert_uint_eq(json_array_size(events), head + (size_t)v.operations);
    for (int64_t i = 0; i < v.operations; i++) {
        json_t *event = json_array_get(events, head + (size_t)i), *args = json_object_get(event, "args");
        const int forward = v.operation_directions[i] == HBP_FORWARD;
        char name[16];
        snprintf(name, sizeof name, "%c%d", forward ? 'F' : 'B', (int)v.operation_micro_batches[i]);
        ck_assert_int_eq(number(event, "tid"), v.operation_stages[i] + 1);
        ck_assert_int_eq(ns_of(event, "ts"), v.operation_starts[i]);
        ck_assert_int_eq(ns_of(event, "dur"), v.operation_ends[i] - v.operation_starts[i]);
        ck_assert_int_eq(number(args, "micro_batch"), v.operation_micro_batches[i]);
        ck_assert_int_eq(number(args, "chunk"), v.operation_chunks[i]);
        ck_assert_str_eq(json_string_value(json_object_get(event, "cat")), forward ? "forward" : "backward");
        ck_assert_str_eq(json_string_value(json_object_get(event, "name")), name);
    }
    json_decref(root);
}

typedef struct traced {
    hbp_pipeline_run *run;
    char path[128];
} traced;

static hbp_status trace_once(hbp_context *context, void *user)
{
    traced *t = user;
    return hbp_pipeline_run_trace(context, t->run, t->path);
}

START_TEST_IN_CONTEXT(a_trace_shows_every_operation)
{
    char folder[64];
    traced t;
    hbp__rng rng = hbp__rng_make(31, 0, 0);
    folder_make(folder);
    folder_path(t.path, folder, "trace.json");
    for (int trial = 0, mark = keep_mark(); trial < 40; keep_release(mark), trial++) {
        int32_t stages, virtual_stages, m;
        piped p;
        draw_shape(&rng, 6, 3, 3, &stages, &virtual_stages, &m);
        piped_random(context, &rng, &p, stages, virtual_stages, m, PIPED_ALL);
        MAKES(context, t.run, hbp_simulate_pipeline(context, p.layers, p.cuts, &p.options, NULL, &t.run));
        OK(context, hbp_pipeline_run_trace(context, t.run, t.path));
        check(t.run, t.path);
        ck_assert_int_eq(folder_count(folder), 1);
        if (trial == 0) {
            FAILS(context, HBP_E_INVALID, "path is NULL", hbp_pipeline_run_trace(context, t.run, NULL));
            FAILS(context, HBP_E_SYSTEM, "none/trace", hbp_pipeline_run_trace(context, t.run, "none/trace"));
            failing_sweep(trace_once, &t);
            ck_assert_int_gt(cancel_sweep(trace_once, &t), 0);
        }
        piped_free(&p);
    }
    FAILS(context, HBP_E_INVALID, "run is NULL", hbp_pipeline_run_trace(context, NULL, t.path));
    folder_remove(folder);
}
END_TEST

TEST_MAIN("pipeline_trace", a_trace_shows_every_operation)
