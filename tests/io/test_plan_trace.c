#include <jansson.h>

#include "failing.h"
#include "files.h"
#include "plans.h"

static hbp_plan *make(hbp_context *context, uint64_t seed)
{
    hbp_lengths *lengths = plans_lengths(context, seed, 60, 400, 0, 0);
    plans_shape shape = plans_draw(seed);
    hbp_plan *plan = plans_make(&shape, lengths);
    hbp_lengths_free(lengths);
    return plan;
}

static json_int_t number(const json_t *event, const char *key)
{
    const json_t *value = json_object_get(event, key);
    ck_assert_msg(json_is_integer(value), "%s is no whole number", key);
    return json_integer_value(value);
}

static const char *text(const json_t *event, const char *key)
{
    const char *value = json_string_value(json_object_get(event, key));
    ck_assert_msg(value != NULL, "%s is no text", key);
    return value;
}

/* Microseconds as nanoseconds. */
static int64_t ns(const json_t *event, const char *key)
{
    const json_t *value = json_object_get(event, key);
    ck_assert_msg(json_is_real(value), "%s is no real number", key);
    return (int64_t)(json_real_value(value) * 1000 + 0.5);
}

/* What is known of a rank while its events pass by. */
typedef struct lane {
    int64_t end;   /* of its last event */
    int64_t bytes; /* its memory counter */
    int named;
    int64_t events;
} lane;

static void check_event(const hbp_plan *plan, const json_t *event, lane *own, int64_t first, int64_t *last)
{
    const json_t *args = json_object_get(event, "args");
    int64_t step = number(args, "step") - plan->first_step, start = 0, pack = number(args, "pack");
    int64_t m = plan->step_offsets[step] + number(args, "micro_batch");
    int32_t rank = (int32_t)number(event, "tid");
    ck_assert_int_eq(hbp_plan_get_rank_pack(plan, step, number(args, "micro_batch"), rank), pack);
    for (int64_t s = first; s < step; s++)
        start += plan->step_ns[s];
    for (int64_t i = plan->step_offsets[step]; i < m; i++)
        start += plan->micro_batch_ns[i];
    ck_assert_int_eq(ns(event, "ts"), start);
    ck_assert_int_eq(ns(event, "dur"), plan->pack_ns[pack]);
    ck_assert_int_ge(start, *last);
    ck_assert_int_ge(start, own->end);
    *last = start;
    own->end = start + plan->pack_ns[pack];
    own->events++;
    ck_assert_int_eq(number(args, "sp"), plan->pack_sp[pack]);
    ck_assert_int_eq(number(args, "recompute"), plan->pack_recompute[pack]);
    ck_assert_int_eq(number(args, "tokens"), plan->pack_tokens[pack]);
    int64_t samples = plan->pack_offsets[pack + 1] - plan->pack_offsets[pack];
    ck_assert_int_eq(number(args, "samples"), samples);
    char name[32] = "dummy";
    if (samples)
        snprintf(name, sizeof name, "SP %d", (int)plan->pack_sp[pack]);
    ck_assert_str_eq(text(event, "name"), name);
    ck_assert_str_eq(text(event, "cat"), samples ? "pack" : "dummy");
}

/* Holds every event of the trace against the plan's steps [first, first + count). */
static void check_trace(const hbp_plan *plan, const char *path, int64_t first, int64_t count)
{
    json_error_t error;
    json_t *trace = json_load_file(path, JSON_REJECT_DUPLICATES, &error), *event;
    ck_assert_msg(trace != NULL, "line %d: %s", error.line, error.text);
    lane *lanes = calloc((size_t)plan->ranks, sizeof *lanes);
    int64_t last = 0, processes = 0;
    size_t i;
    json_array_foreach(json_object_get(trace, "traceEvents"), i, event)
    {
        json_int_t rank = number(event, "tid");
        ck_assert(rank >= 0 && rank < plan->ranks);
        ck_assert_int_eq(number(event, "pid"), rank / plan->domain_ranks);
        const char *kind = text(event, "ph");
        if (strcmp(kind, "M") == 0) {
            int thread = strcmp(text(event, "name"), "thread_name") == 0;
            lanes[rank].named += thread;
            processes += !thread;
        } else if (strcmp(kind, "C") == 0) {
            lanes[rank].bytes = number(json_object_get(event, "args"), "bytes");
            ck_assert_int_eq(ns(event, "ts"), last);
        } else {
            ck_assert_str_eq(kind, "X");
            check_event(plan, event, &lanes[rank], first, &last);
        }
    }
    int64_t micro_batches = plan->step_offsets[first + count] - plan->step_offsets[first];
    for (int32_t rank = 0; rank < plan->ranks; rank++) {
        ck_assert_int_eq(lanes[rank].events, micro_batches);
        ck_assert_int_eq(lanes[rank].named, 1);
        int64_t m = plan->step_offsets[first + count] - plan->step_offsets[first + count - 1] - 1;
        int64_t pack = hbp_plan_get_rank_pack(plan, first + count - 1, m, rank);
        ck_assert_int_eq(lanes[rank].bytes, plan->pack_bytes[pack]);
    }
    ck_assert_int_eq(processes, (plan->ranks + plan->domain_ranks - 1) / plan->domain_ranks);
    free(lanes);
    json_decref(trace);
}

START_TEST(a_trace_shows_every_pack_on_its_ranks)
{
    hbp_context *context = test_context();
    char folder[64], path[128];
    folder_make(folder);
    folder_path(path, folder, "trace.json");
    for (uint64_t seed = 0; seed < 25; seed++) {
        hbp_plan *plan = make(context, seed);
        plan->first_step = (int64_t)seed * 7;
        OK(context, hbp_plan_write_trace(context, plan, 0, 0, path));
        check_trace(plan, path, 0, plan->steps);
        int64_t first = plan->steps / 2;
        OK(context, hbp_plan_write_trace(context, plan, first, 1, path));
        check_trace(plan, path, first, 1);
        OK(context, hbp_plan_write_trace(context, plan, first, 0, path));
        check_trace(plan, path, first, plan->steps - first);
        hbp_plan_free(plan);
    }
    ck_assert_int_eq(folder_count(folder), 1);
    folder_remove(folder);
    hbp_context_free(context);
}
END_TEST

START_TEST(what_cannot_be_written_is_told)
{
    hbp_context *context = test_context();
    hbp_plan *plan = make(context, 3);
    char folder[64], path[128];
    folder_make(folder);
    folder_path(path, folder, "trace.json");
    FAILS(context, HBP_E_INVALID, "from step -1", hbp_plan_write_trace(context, plan, -1, 0, path));
    FAILS(context, HBP_E_INVALID, "; the plan has",
          hbp_plan_write_trace(context, plan, plan->steps, 0, path));
    FAILS(context, HBP_E_INVALID, "; the plan has",
          hbp_plan_write_trace(context, plan, 1, plan->steps, path));
    FAILS(context, HBP_E_INVALID, "; the plan has", hbp_plan_write_trace(context, plan, 1, INT64_MAX, path));
    FAILS(context, HBP_E_INVALID, "-1 steps", hbp_plan_write_trace(context, plan, 0, -1, path));
    FAILS(context, HBP_E_INVALID, "plan", hbp_plan_write_trace(context, NULL, 0, 0, path));
    FAILS(context, HBP_E_INVALID, "path", hbp_plan_write_trace(context, plan, 0, 0, NULL));
    FAILS(context, HBP_E_SYSTEM, "No such file or directory",
          hbp_plan_write_trace(context, plan, 0, 0, "/nowhere/at/all.json"));
    ck_assert_int_eq(folder_count(folder), 0);
    folder_remove(folder);
    hbp_plan_free(plan);
    hbp_context_free(context);
}
END_TEST

typedef struct written {
    const hbp_plan *plan;
    char folder[64];
} written;

/* A failure leaves no file, neither at its place nor beside it. */
static hbp_status write_once(hbp_context *context, void *user)
{
    written *w = user;
    char path[128];
    folder_path(path, w->folder, "trace.json");
    hbp_status status = hbp_plan_write_trace(context, w->plan, 0, 0, path);
    ck_assert_int_eq(folder_count(w->folder), status == HBP_OK);
    unlink(path);
    return status;
}

START_TEST(nothing_is_half_written)
{
    hbp_context *context = test_context();
    hbp_plan *plan = make(context, 4);
    written w = {.plan = plan};
    folder_make(w.folder);
    failing_sweep(write_once, &w);
    ck_assert_int_ge(cancel_sweep(write_once, &w), plan->steps);
    folder_remove(w.folder);
    hbp_plan_free(plan);
    hbp_context_free(context);
}
END_TEST

/* Times past the end of time stay there, in order. */
START_TEST(time_ends_in_order)
{
    hbp_context *context = test_context();
    hbp_plan *plan = make(context, 5);
    char folder[64], path[128];
    folder_make(folder);
    folder_path(path, folder, "trace.json");
    for (int64_t s = 0; s < plan->steps; s++)
        plan->step_ns[s] = INT64_MAX;
    OK(context, hbp_plan_write_trace(context, plan, 0, 0, path));
    json_error_t error;
    json_t *trace = json_load_file(path, JSON_REJECT_DUPLICATES, &error), *event;
    ck_assert_ptr_nonnull(trace);
    double last = 0;
    size_t i;
    json_array_foreach(json_object_get(trace, "traceEvents"), i, event)
    {
        if (strcmp(text(event, "ph"), "X") != 0)
            continue;
        ck_assert(json_real_value(json_object_get(event, "ts")) >= last);
        last = json_real_value(json_object_get(event, "ts"));
    }
    ck_assert(last > 9.2e15);
    json_decref(trace);
    folder_remove(folder);
    hbp_plan_free(plan);
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("plan_trace", a_trace_shows_every_pack_on_its_ranks, what_cannot_be_written_is_told,
          nothing_is_half_written, time_ends_in_order)
