#include "hbp/io.h"

#include "data/tasks/task_run.h"
#include "task_files.h"

#include "traces.h"

/* Checks an event against the slice that it names. */
static void check_event(const hbp_task_schedule *s, const int64_t *starts, const int64_t *ends, json_t *event,
                        int64_t *seen)
{
    json_t *args = json_object_get(event, "args");
    char name[128];
    int64_t slice = number(args, "slice"), wave = number(args, "wave"), rank = number(event, "tid") - 1;
    ck_assert(slice >= 0 && slice < s->slices && wave >= 0 && wave < s->waves);
    ck_assert(slice >= s->wave_offsets[wave] && slice < s->wave_offsets[wave + 1]);
    int32_t m = s->slice_meta_ops[slice], group = s->slice_groups[slice];
    snprintf(name, sizeof name, "%s x %d", s->meta_op_names[m], (int)s->slice_operators[slice]);
    ck_assert_str_eq(text_of(event, "name"), name);
    ck_assert_str_eq(text_of(event, "cat"), s->task_names[s->meta_op_tasks[m]]);
    ck_assert_str_eq(text_of(args, "task"), s->task_names[s->meta_op_tasks[m]]);
    ck_assert_str_ne(text_of(event, "cname"), "");
    ck_assert_int_eq(number(args, "meta_op"), m);
    ck_assert_int_eq(number(args, "gpus"), s->slice_gpus[slice]);
    ck_assert_int_eq(number(args, "first"), s->slice_firsts[slice]);
    ck_assert_int_eq(number(args, "operators"), s->slice_operators[slice]);
    ck_assert_int_eq(number(event, "pid"), rank / s->summary.domain_gpus * s->summary.domain_gpus + 1);
    ck_assert_int_eq(ns_of(event, "ts"), starts[slice]);
    ck_assert_int_eq(ns_of(event, "dur"), ends[slice] - starts[slice]);
    int found = 0;
    for (int64_t i = s->group_offsets[group]; i < s->group_offsets[group + 1]; i++)
        found |= s->group_ranks[i] == rank;
    ck_assert(found);
    seen[slice] |= INT64_C(1) << rank;
}

/* Every slice on each of its ranks, once, and a name for every row. */
static void check_trace(const hbp_task_schedule *s, const int64_t *starts, const int64_t *ends,
                        const char *path)
{
    int64_t seen[64] = {0}, events = 0, expected = 0, names = 0;
    ck_assert(s->slices <= 64 && s->ranks <= 32);
    json_t *root = trace_read_drawn(path, 0), *event;
    size_t i;
    json_array_foreach(json_object_get(root, "traceEvents"), i, event)
    {
        if (*text_of(event, "ph") == 'M') {
            names++;
            continue;
        }
        ck_assert_str_eq(text_of(event, "ph"), "X");
        check_event(s, starts, ends, event, seen);
        events++;
    }
    for (int64_t slice = 0; slice < s->slices; slice++) {
        expected += s->slice_gpus[slice];
        ck_assert_int_eq(__builtin_popcountll((unsigned long long)seen[slice]), s->slice_gpus[slice]);
    }
    ck_assert_int_eq(events, expected);
    ck_assert_int_eq(names,
                     2 * (s->ranks + (s->ranks + s->summary.domain_gpus - 1) / s->summary.domain_gpus));
    json_decref(root);
}

START_TEST(a_trace_shows_every_slice_on_its_ranks)
{
    hbp_context *context = test_context();
    char folder[64], path[128];
    folder_make(folder);
    folder_path(path, folder, "trace.json");
    for (uint64_t seed = 0; seed < 60; seed++) {
        hbp_task_schedule *s = task_columns_draw(context, seed);
        hbp_task_run *run; /* takes three times as long */
        OK(context, hbp__task_run_new(context, s, &run));
        for (int64_t i = 0; i < s->slices; i++) {
            run->slice_starts[i] = 3 * s->slice_starts[i] + 1;
            run->slice_ends[i] = 3 * s->slice_ends[i] + 2;
        }
        OK(context, hbp_task_schedule_trace(context, s, NULL, path));
        check_trace(s, s->slice_starts, s->slice_ends, path);
        OK(context, hbp_task_schedule_trace(context, s, run, path));
        check_trace(s, run->slice_starts, run->slice_ends, path);
        hbp_task_run_free(run);
        ck_assert_int_eq(folder_count(folder), 1);
        hbp_task_schedule_free(s);
    }
    folder_remove(folder);
    hbp_context_free(context);
}
END_TEST

START_TEST(what_cannot_be_traced_is_refused)
{
    hbp_context *context = test_context();
    hbp_task_schedule *s = task_columns_draw(context, 5);
    hbp_task_run *run;
    OK(context, hbp__task_run_new(context, s, &run));
    FAILS(context, HBP_E_INVALID, "schedule is NULL", hbp_task_schedule_trace(context, NULL, NULL, "x"));
    FAILS(context, HBP_E_INVALID, "path is NULL", hbp_task_schedule_trace(context, s, NULL, NULL));
    run->summary.schedule_digest++;
    char text[96];
    snprintf(text, sizeof text, "the run is of schedule %016llx; the schedule is %016llx",
             (unsigned long long)run->summary.schedule_digest, (unsigned long long)s->digest);
    FAILS(context, HBP_E_INVALID, text, hbp_task_schedule_trace(context, s, run, "x"));
    hbp_task_run_free(run);
    FAILS(context, HBP_E_SYSTEM, "none/x", hbp_task_schedule_trace(context, s, NULL, "/tmp/none/x"));
    if (access("/dev/full", W_OK) == 0)
        FAILS(context, HBP_E_SYSTEM, "No space left", hbp_task_schedule_trace(context, s, NULL, "/dev/full"));
    hbp_task_schedule_free(s);
    hbp_context_free(context);
}
END_TEST

typedef struct trace_case {
    hbp_task_schedule *schedule;
    char folder[64];
    char path[128];
} trace_case;

static hbp_status trace_once(hbp_context *context, void *user)
{
    trace_case *c = user;
    hbp_status status = hbp_task_schedule_trace(context, c->schedule, NULL, c->path);
    ck_assert_int_eq(folder_count(c->folder), status == HBP_OK);
    unlink(c->path);
    return status;
}

START_TEST(short_memory_and_cancelling_leave_nothing)
{
    hbp_context *context = test_context();
    trace_case c = {.schedule = task_columns_draw(context, 5)};
    folder_make(c.folder);
    folder_path(c.path, c.folder, "trace");
    failing_sweep(trace_once, &c);
    ck_assert_int_gt(cancel_sweep(trace_once, &c), 2);
    folder_remove(c.folder);
    hbp_task_schedule_free(c.schedule);
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("task_trace", a_trace_shows_every_slice_on_its_ranks, what_cannot_be_traced_is_refused,
          short_memory_and_cancelling_leave_nothing)
