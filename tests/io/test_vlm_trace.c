/* Traces of vision-language plans: every operation of every replica, once, where the public simulator has it.
 */
#include "hbp/io.h"
#include "traces.h"

#include "vlm_files.h"

/* The run of one replica in one step through the public simulator. */
static hbp_pipeline_run *rerun(hbp_context *context, const hbp_vlm_plan *plan, int64_t step, int32_t replica)
{
    hbp__vlm_replayed r;
    hbp_pipeline_run *run;
    scales s;
    hbp__vlm_restore(context, plan, &r);
    read_scales(&r.run, &r.reference, plan->data, step, replica, &s);
    s.options.recompute = plan->recompute;
    MAKES(context, run, hbp_simulate_pipeline(context, plan->layers, plan->cuts, &s.options, NULL, &run));
    return run;
}

static void check(hbp_context *context, const hbp_vlm_plan *plan, int64_t first, int64_t steps,
                  const char *path)
{
    json_t *root = trace_read(path), *event;
    json_t *events = json_object_get(root, "traceEvents");
    int64_t begin = 0, row = 0;
    size_t at = 0;
    int32_t replicas = plan->summary.replicas;
    for (; is_kind(json_array_get(events, at), "M"); at++)
        ;
    const int64_t rows = replicas * plan->stages;
    ck_assert_uint_eq(at, (size_t)(4 + 2 * replicas + 2 * rows)); /* a name and a place each */
    json_t *stage = json_object_get(json_array_get(events, at - 2), "args");
    char name[32];
    snprintf(name, sizeof name, "stage %d", (int)plan->stages - 1);
    ck_assert_str_eq(text_of(stage, "name"), name);
    for (int64_t step = first; step < first + steps; step++) {
        for (int32_t d = 0; d < replicas; d++) {
            hbp_pipeline_run *run = rerun(context, plan, step, d);
            hbp_pipeline_run_view v = {.struct_size = sizeof v};
            OK(context, hbp_pipeline_run_get_view(run, &v));
            for (row = 0; row < v.operations; row++, at++) {
                event = json_array_get(events, at);
                ck_assert_ptr_nonnull(event);
                ck_assert_int_eq(number(event, "pid"), d * plan->stages + 1);
                ck_assert_int_eq(number(event, "tid"), d * plan->stages + v.operation_stages[row] + 1);
                ck_assert_int_eq(ns_of(event, "ts"), begin + v.operation_starts[row]);
                ck_assert_int_eq(ns_of(event, "dur"), v.operation_ends[row] - v.operation_starts[row]);
                json_t *args = json_object_get(event, "args");
                int64_t m = number(args, "micro_batch"), pack = number(args, "pack");
                ck_assert_int_eq(number(args, "step"), step);
                ck_assert_int_eq(m, v.operation_micro_batches[row]);
                ck_assert_int_eq(number(args, "chunk"), v.operation_chunks[row]);
                ck_assert_int_eq(plan->data->pack_ranks[pack], d);
                ck_assert_int_eq(number(args, "tokens"), plan->data->pack_tokens[pack]);
                ck_assert_int_eq(number(args, "vision"), plan->data->pack_vision[pack]);
                int forward = v.operation_directions[row] == HBP_FORWARD;
                ck_assert_str_eq(json_string_value(json_object_get(event, "cat")),
                                 forward ? "forward" : "backward");
            }
        }
        event = json_array_get(events, at++);
        snprintf(name, sizeof name, "step %d", (int)step);
        ck_assert_str_eq(text_of(event, "name"), name);
        ck_assert_int_eq(number(event, "tid"), rows + 1);
        ck_assert_int_eq(ns_of(event, "ts"), begin);
        ck_assert_int_eq(ns_of(event, "dur"), plan->step_ns[step]);
        begin += plan->step_ns[step];
    }
    ck_assert_uint_eq(json_array_size(events), at);
    json_decref(root);
}

START_TEST_IN_CONTEXT(a_trace_shows_every_operation)
{
    char folder[64], path[128];
    folder_make(folder);
    folder_path(path, folder, "trace.json");
    for (uint64_t seed = 0; seed < 12; seed++) {
        int mark = keep_mark();
        fixture f;
        hbp_vlm_plan *plan = draw_plan(context, seed, 1 + (int32_t)(seed % 3), 1 + (int32_t)(seed % 2),
                                       (int32_t)(seed % 5), &f);
        OK(context, hbp_vlm_plan_trace(context, plan, path, NULL));
        check(context, plan, 0, plan->steps, path);
        OK(context, hbp_vlm_plan_trace(context, plan, path, STEPS(plan->steps - 1, 1)));
        check(context, plan, plan->steps - 1, 1, path);
        ck_assert_int_eq(folder_count(folder), 1);
        keep_release(mark);
    }
    folder_remove(folder);
}
END_TEST

START_TEST_IN_CONTEXT(steps_that_are_not_there_are_named)
{
    fixture f;
    hbp_vlm_plan *plan = draw_plan(context, 1, 1, 1, 0, &f);
    char text[96];
    snprintf(text, sizeof text, "1 steps from step %d; the plan has %d", (int)plan->steps, (int)plan->steps);
    FAILS(context, HBP_E_INVALID, text, hbp_vlm_plan_trace(context, plan, "x", STEPS(plan->steps, 1)));
    const hbp_timeline *line = (const hbp_timeline *)plan; /* nobody looks at it, nor at the cost */
    FAILS(context, HBP_E_INVALID, "`timeline`", hbp_vlm_plan_trace(context, plan, "x", MEASURED(line, 0, 0)));
    const hbp_trace_options costed = {.struct_size = sizeof costed, .cost = (const hbp_cost *)plan};
    FAILS(context, HBP_E_INVALID, "`cost`", hbp_vlm_plan_trace(context, plan, "x", &costed));
    FAILS(context, HBP_E_INVALID, "plan is NULL", hbp_vlm_plan_trace(context, NULL, "x", NULL));
    FAILS(context, HBP_E_INVALID, "path is NULL", hbp_vlm_plan_trace(context, plan, NULL, NULL));
    FAILS(context, HBP_E_SYSTEM, "none/trace", hbp_vlm_plan_trace(context, plan, "none/trace", NULL));
}
END_TEST

TEST_MAIN("vlm_trace", a_trace_shows_every_operation, steps_that_are_not_there_are_named)
