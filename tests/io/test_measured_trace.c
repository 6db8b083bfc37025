#include "hbp/io.h"
#include "plan_files.h"

#include "plan_traces.h"
#include <math.h>

#include "data/plan/timeline.h"

#define RANKS TRACED_RANKS

/* A row for every pack of steps [from, to) of the plan, but each pack that `skip` divides when it is above 0;
 * a pack begins once all its ranks are free. The test frees it. */
static hbp_timeline *run_of(hbp_context *context, const hbp_plan *plan, int64_t from, int64_t to,
                            int64_t skip, int starts)
{
    hbp__rng rng = hbp__rng_make(plan->digest, 7, 0);
    size_t room = (size_t)plan->packs;
    int64_t *large = malloc(room * 8 * sizeof *large), free_at[RANKS] = {0}, n = 0;
    int32_t *small = malloc(room * 4 * sizeof *small);
    ck_assert(large && small);
    int64_t *step = large, *samples = large + room, *tokens = large + 2 * room, *squares = large + 3 * room;
    int64_t *start = large + 4 * room, *time = large + 5 * room, *wait = large + 6 * room;
    int64_t *bytes = large + 7 * room;
    int32_t *micro_batch = small, *first = small + room, *sp = small + 2 * room,
            *recompute = small + 3 * room;
    for (int64_t rank = 0; rank < plan->ranks; rank++)
        free_at[rank] = 1000000 + hbp__rng_below(&rng, 50);
    for (int64_t s = from; s < to; s++)
        for (int64_t m = plan->step_offsets[s]; m < plan->step_offsets[s + 1]; m++)
            for (int64_t p = plan->micro_batch_offsets[m]; p < plan->micro_batch_offsets[m + 1]; p++) {
                if (skip && p % skip == 0)
                    continue;
                step[n] = plan->first_step + s;
                micro_batch[n] = (int32_t)(m - plan->step_offsets[s]);
                first[n] = plan->pack_ranks[p];
                sp[n] = plan->pack_sp[p];
                recompute[n] = plan->pack_recompute[p];
                samples[n] = plan->pack_offsets[p + 1] - plan->pack_offsets[p];
                tokens[n] = plan->pack_padded_tokens[p];
                squares[n] = plan->pack_squares[p];
                time[n] = 100 + hbp__rng_below(&rng, 1000);
                wait[n] = time[n] / 3;
                bytes[n] = 1 + hbp__rng_below(&rng, 3);
                start[n] = 0;
                for (int32_t i = 0; i < sp[n]; i++)
                    start[n] = hbp__max_i64(start[n], free_at[first[n] + i]);
                for (int32_t i = 0; i < sp[n]; i++) /* some ranks are done before the slowest */
                    free_at[first[n] + i] = start[n] + time[n] - (int64_t)hbp__rng_below(&rng, 30);
                n++;
            }
    const hbp_timeline_columns c = {.struct_size = sizeof c,
                                    .ranks = plan->ranks,
                                    .count = n,
                                    .step = step,
                                    .micro_batch = micro_batch,
                                    .first_rank = first,
                                    .sp = sp,
                                    .recompute = recompute,
                                    .samples = samples,
                                    .tokens = tokens,
                                    .sum_squares = squares,
                                    .start_ns = starts ? start : NULL,
                                    .time_ns = time,
                                    .communication_ns = wait,
                                    .peak_bytes = bytes};
    hbp_timeline *timeline = NULL;
    if (n)
        OK(context, hbp_timeline_create(context, &c, &timeline));
    free(large);
    free(small);
    return timeline;
}

/* Row of the timeline that an event's arguments name. */
static int64_t row_named(const hbp_timeline *t, json_t *args, int64_t rank)
{
    for (int64_t i = 0; i < t->count; i++)
        if (t->step[i] == number(args, "step") && t->micro_batch[i] == number(args, "micro_batch") &&
            t->first_rank[i] <= rank && rank < t->first_rank[i] + t->sp[i])
            return i;
    return -1;
}

/* Where the time of a row goes to all-to-alls, they stand at the end of its event. */
static void check_part(json_t *event, json_t *of, const hbp_timeline *timeline)
{
    int64_t i = row_named(timeline, json_object_get(of, "args"), number(of, "tid") - 1 - timeline->ranks);
    int64_t shown = hbp__min_i64(timeline->communication_ns[i], ns_of(of, "dur"));
    ck_assert_str_eq(text_of(event, "name"), "all-to-all");
    ck_assert_int_eq(ns_of(event, "dur"), shown);
    ck_assert_int_eq(ns_of(event, "ts") + shown, ns_of(of, "ts") + ns_of(of, "dur"));
}

/* Every row on each of its ranks, once, in order, no two at once; where starts are known, at its start from
 * the first on, unless what went before was still shown. What is predicted is shown as without a timeline. */
static void check_trace(const hbp_plan *plan, const hbp_timeline *timeline, int64_t first, int64_t count,
                        json_t *root)
{
    int64_t until[RANKS] = {0}, memory[2][RANKS], held[2][RANKS], events = 0, parts = 0;
    int64_t origin = -1, shown = 0, steps = 0;
    memset(memory, -1, sizeof memory);
    memset(held, -1, sizeof held);
    traced predicted = {.plan = plan};
    traced_check(&predicted, first, count, 2, root);
    json_t *list = json_object_get(root, "traceEvents"), *event, *before = NULL;
    size_t at;
    json_array_foreach(list, at, event)
    {
        int64_t row = number(event, "tid") - 1, kind = hbp__min_i64(row / plan->ranks, 2);
        int64_t rank = row - kind * plan->ranks;
        json_t *args = json_object_get(event, "args");
        if (kind == 2) {
            steps += is_kind(event, "X") && rank == 1;
            continue;
        }
        ck_assert_int_eq(number(event, "pid"),
                         kind * plan->ranks + rank / plan->domain_ranks * plan->domain_ranks + 1);
        if (is_kind(event, "M")) {
            char name[64];
            snprintf(name, sizeof name, "node %d, %s", (int)(rank / plan->domain_ranks),
                     kind ? "measured" : "predicted");
            if (strcmp(text_of(event, "name"), "process_name") == 0)
                ck_assert_str_eq(text_of(args, "name"), name);
            continue;
        }
        if (is_kind(event, "C")) {
            memory[kind][rank] = number(args, "bytes");
            continue;
        }
        if (strcmp(text_of(event, "cat"), "part") == 0) {
            check_part(event, before, timeline);
            parts++;
            continue;
        }
        if (strcmp(text_of(event, "cat"), "wait") == 0 || strcmp(text_of(event, "cat"), "step end") == 0) {
            ck_assert_int_eq(kind, 0);
            continue;
        }
        before = event;
        int64_t ts = ns_of(event, "ts"), dur = ns_of(event, "dur"), p = number(args, "pack");
        held[kind][rank] = kind ? number(args, "peak_bytes") : plan->pack_bytes[p];
        if (!kind) {
            ck_assert_ptr_null(json_object_get(args, "measured_ns"));
            continue;
        }
        ck_assert_int_ge(ts, until[rank]);
        events++;
        int64_t i = row_named(timeline, args, rank);
        ck_assert_int_ge(i, 0);
        ck_assert_int_eq(plan->pack_ranks[p], timeline->first_rank[i]);
        traced_pack(plan, event, timeline->step[i] - plan->first_step, timeline->micro_batch[i], p);
        ck_assert_int_eq(number(args, "measured_ns"), timeline->time_ns[i]);
        ck_assert_int_eq(number(args, "communication_ns"), timeline->communication_ns[i]);
        ck_assert_int_eq(number(args, "peak_bytes"), timeline->peak_bytes[i]);
        double error = fabs((double)plan->pack_ns[p] / (double)timeline->time_ns[i] - 1);
        ck_assert_double_eq_tol(json_real_value(json_object_get(args, "error")), error, 1e-6);
        if (timeline->start_ns) {
            int64_t start;
            if (origin < 0) { /* of the first step shown that was measured */
                origin = INT64_MAX;
                for (int64_t j = 0; j < timeline->count; j++)
                    if (timeline->step[j] == timeline->step[i])
                        origin = hbp__min_i64(origin, timeline->start_ns[j]);
                for (int64_t s = first; s < timeline->step[i] - plan->first_step; s++)
                    shown += plan->step_ns[s];
            }
            start = timeline->start_ns[i] - origin + shown;
            ck_assert_int_eq(ts, hbp__max_i64(start, until[rank]));
            ck_assert_int_eq(ts + dur, start + timeline->time_ns[i]);
        } else {
            ck_assert_int_eq(dur, timeline->time_ns[i]);
        }
        until[rank] = ts + dur;
    }
    ck_assert_mem_eq(memory, held, sizeof memory); /* counters end at the last pack's */
    int64_t rows = 0, measured_steps = 0, last = -1;
    for (int64_t i = 0; i < timeline->count; i++)
        if (timeline->step[i] >= plan->first_step + first &&
            timeline->step[i] < plan->first_step + first + count) {
            rows += timeline->sp[i];
            measured_steps += timeline->step[i] != last;
            last = timeline->step[i];
        }
    ck_assert_int_eq(events, rows);
    ck_assert_int_eq(parts, rows);
    ck_assert_int_eq(steps, measured_steps);
}

START_TEST(both_timelines_are_shown)
{
    hbp_context *context = test_context();
    char folder[64], path[128];
    folder_make(folder);
    folder_path(path, folder, "trace.json");
    int64_t partial = 0;
    for (uint64_t seed = 0; seed < 25; seed++) {
        hbp_plan *plan = drawn_plan(context, seed, 60);
        plan->first_step = (int64_t)seed;
        int64_t from = seed % 3 && plan->steps > 1 ? 1 : 0;
        hbp_timeline *timeline = run_of(context, plan, from, plan->steps, seed % 4 ? 0 : 3, seed % 5 != 0);
        for (int64_t first = 0; timeline && first < plan->steps; first += 1 + plan->steps / 3)
            for (int64_t count = 0; count <= plan->steps - first; count += 1 + plan->steps / 2) {
                OK(context, hbp_plan_trace(context, plan, path, MEASURED(timeline, first, count)));
                json_t *root = trace_read(path);
                check_trace(plan, timeline, first, count ? count : plan->steps - first, root);
                json_decref(root);
                partial += from > 0;
            }
        hbp_timeline_free(timeline);
        hbp_plan_free(plan);
    }
    ck_assert_int_gt(partial, 0);
    folder_remove(folder);
    hbp_context_free(context);
}
END_TEST

START_TEST(another_plans_timeline_is_refused)
{
    hbp_context *context = test_context();
    hbp_plan *plan = drawn_plan(context, 2, 60);
    hbp_timeline *t = run_of(context, plan, 0, plan->steps, 0, 1);
    ck_assert_int_gt(plan->ranks, 1);
    char message[200];
    t->ranks++;
    snprintf(message, sizeof message, "the timeline is of %d ranks; the plan is for %d", plan->ranks + 1,
             plan->ranks);
    int64_t wide = 0, was;
    while (t->sp[wide] == 1 && wide + 1 < t->count)
        wide++;
    ck_assert_int_gt(t->sp[wide], 1);
    char folder[64], path[128];
    folder_make(folder);
    folder_path(path, folder, "trace.json");
#define REFUSES(message)                                                                                     \
    do {                                                                                                     \
        FAILS(context, HBP_E_INVALID, message, hbp_plan_trace(context, plan, path, MEASURED(t, 0, 0)));      \
        ck_assert_int_eq(folder_count(folder), 0);                                                           \
    } while (0)
    REFUSES(message);
    t->ranks--;
    t->sp[wide]--;
    snprintf(message, sizeof message, "row %d ran on %d ranks from rank %d in micro-batch %d of step %d",
             (int)wide, t->sp[wide], t->first_rank[wide], t->micro_batch[wide], (int)t->step[wide]);
    REFUSES(message);
    t->sp[wide]++;
    t->first_rank[wide]++;
    REFUSES("there");
    t->first_rank[wide]--;
    was = t->step[1];
    t->step[1] = plan->first_step + plan->steps;
    snprintf(message, sizeof message, "row 1 is of step %d; the plan has steps %d..%d",
             (int)(plan->first_step + plan->steps), (int)plan->first_step,
             (int)(plan->first_step + plan->steps - 1));
    REFUSES(message);
    t->step[1] = was;
    int32_t before = t->micro_batch[0];
    t->micro_batch[0] = 99;
    REFUSES("row 0 is of micro-batch 99 of step");
    t->micro_batch[0] = before;
    t->samples[0]++;
    REFUSES("row 0 holds");
    t->samples[0]--;
    int64_t last = t->count - 1; /* the same pack once more */
    t->step[last] = t->step[0], t->micro_batch[last] = t->micro_batch[0];
    t->first_rank[last] = t->first_rank[0], t->sp[last] = t->sp[0], t->samples[last] = t->samples[0];
    snprintf(message, sizeof message, "rows 0 and %d are of the same pack", (int)last);
    REFUSES(message);
#undef REFUSES
    FAILS(context, HBP_E_INVALID, "plan is NULL", hbp_plan_trace(context, NULL, "x", MEASURED(t, 0, 0)));
    FAILS(context, HBP_E_INVALID, "path is NULL", hbp_plan_trace(context, plan, NULL, MEASURED(t, 0, 0)));
    FAILS(context, HBP_E_INVALID, "`first_step` is -1",
          hbp_plan_trace(context, plan, "x", MEASURED(t, -1, 0)));
    hbp_timeline_free(t);
    hbp_plan_free(plan);
    folder_remove(folder);
    hbp_context_free(context);
}
END_TEST

/* Rows in no order of time, and times near the end of int64, are shown without overlap all the same. */
START_TEST(senseless_starts_do_not_overlap)
{
    hbp_context *context = test_context();
    char folder[64], path[128];
    folder_make(folder);
    folder_path(path, folder, "trace.json");
    hbp_plan *plan = drawn_plan(context, 2, 60);
    hbp_timeline *t = run_of(context, plan, 0, plan->steps, 0, 1);
    for (int64_t i = 0; i < t->count; i++) {
        t->start_ns[i] = i % 3 ? (t->count - i) * 1000 : INT64_C(1) << 62;
        t->time_ns[i] = i % 3 == 0 ? INT64_C(1) << 61 : 500;
    }
    OK(context, hbp_plan_trace(context, plan, path, MEASURED(t, 0, 0)));
    json_error_t error;
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &error), *event;
    ck_assert_msg(root != NULL, "line %d: %s", error.line, error.text);
    double until[2 * RANKS + 2] = {0};
    size_t at;
    json_array_foreach(json_object_get(root, "traceEvents"), at, event)
    {
        if (*json_string_value(json_object_get(event, "ph")) != 'X')
            continue;
        double ts = json_real_value(json_object_get(event, "ts"));
        double dur = json_real_value(json_object_get(event, "dur"));
        if (strcmp(text_of(event, "cat"), "part") == 0)
            continue;
        int64_t row = number(event, "tid") - 1;
        double *end = &until[row];
        ck_assert(ts >= *end * (1 - 1e-12) && dur >= 0);
        *end = ts + dur;
    }
    json_decref(root);
    hbp_timeline_free(t);
    hbp_plan_free(plan);
    folder_remove(folder);
    hbp_context_free(context);
}
END_TEST

typedef struct trace_case {
    hbp_plan *plan;
    hbp_timeline *timeline;
    char folder[64];
    char path[128];
} trace_case;

static hbp_status trace_once(hbp_context *context, void *user)
{
    trace_case *c = user;
    hbp_status status = hbp_plan_trace(context, c->plan, c->path, MEASURED(c->timeline, 0, 0));
    ck_assert_int_eq(folder_count(c->folder), status == HBP_OK);
    unlink(c->path);
    return status;
}

START_TEST(short_memory_and_cancelling_leave_nothing)
{
    hbp_context *context = test_context();
    trace_case c = {.plan = drawn_plan(context, 9, 60)};
    c.timeline = run_of(context, c.plan, 0, c.plan->steps, 0, 1);
    folder_make(c.folder);
    folder_path(c.path, c.folder, "trace");
    failing_sweep(trace_once, &c);
    ck_assert_int_gt(cancel_sweep(trace_once, &c), 3);
    if (access("/dev/full", W_OK) == 0)
        FAILS(context, HBP_E_SYSTEM, "No space left",
              hbp_plan_trace(context, c.plan, "/dev/full", MEASURED(c.timeline, 0, 0)));
    folder_remove(c.folder);
    hbp_timeline_free(c.timeline);
    hbp_plan_free(c.plan);
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("measured_trace", both_timelines_are_shown, another_plans_timeline_is_refused,
          senseless_starts_do_not_overlap, short_memory_and_cancelling_leave_nothing)
