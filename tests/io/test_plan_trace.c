#include "hbp/io.h"
#include "plan_files.h"

#include "traces.h"
#include <locale.h>

static json_t *parse(const char *path)
{
    json_error_t error;
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    ck_assert_msg(root != NULL, "line %d: %s", error.line, error.text);
    return root;
}

/* Checks an event against the pack that it names; returns when it ends. */
static int64_t check_event(const hbp_plan *plan, json_t *event)
{
    json_t *args = json_object_get(event, "args");
    int64_t p = number(args, "pack"), rank = number(event, "tid");
    int64_t step = number(args, "step") - plan->first_step;
    ck_assert_int_eq(hbp_plan_get_rank_pack(plan, step, number(args, "micro_batch"), (int32_t)rank), p);
    int64_t samples = plan->pack_offsets[p + 1] - plan->pack_offsets[p];
    ck_assert_int_eq(number(args, "samples"), samples);
    ck_assert_int_eq(number(args, "tokens"), plan->pack_tokens[p]);
    ck_assert_int_eq(number(args, "padded_tokens"), plan->pack_padded_tokens[p]);
    ck_assert_int_eq(number(args, "sp"), plan->pack_sp[p]);
    ck_assert_int_eq(number(args, "recompute"), plan->pack_recompute[p]);
    ck_assert_int_eq(json_object_get(args, "vision") != NULL, plan->pack_vision != NULL);
    ck_assert(!plan->pack_vision || number(args, "vision") == plan->pack_vision[p]);
    ck_assert_int_eq(number(event, "pid"), rank / plan->domain_ranks);
    ck_assert_str_eq(json_string_value(json_object_get(event, "cat")), samples ? "pack" : "padding");
    ck_assert_int_eq(ns_of(event, "dur"), plan->pack_ns[p]);
    return ns_of(event, "ts") + plan->pack_ns[p];
}

/* The whole trace of steps [first, first + count): every pack on each of its ranks, no two at once. */
static void check_trace(const hbp_plan *plan, int64_t first, int64_t count, json_t *root)
{
    int64_t until[64] = {0}, memory[64], events = 0, expected = 0, last = 0;
    memset(memory, -1, sizeof memory);
    json_t *list = json_object_get(root, "traceEvents"), *event;
    size_t i, names = 0;
    json_array_foreach(list, i, event)
    {
        const char *kind = json_string_value(json_object_get(event, "ph"));
        int64_t rank = number(event, "tid");
        ck_assert(rank >= 0 && rank < plan->ranks);
        if (*kind == 'M') {
            names++;
            continue;
        }
        int64_t ts = ns_of(event, "ts");
        ck_assert_int_ge(ts, last);
        last = ts;
        if (*kind == 'C') {
            memory[rank] = number(json_object_get(event, "args"), "bytes");
            continue;
        }
        ck_assert_str_eq(kind, "X");
        ck_assert_int_ge(ts, until[rank]);
        until[rank] = check_event(plan, event);
        events++;
    }
    int64_t last_micro_batch = plan->step_offsets[first + count] - 1;
    for (int64_t m = plan->step_offsets[first]; m <= last_micro_batch; m++)
        expected += plan->ranks;
    ck_assert_int_eq(events, expected);
    ck_assert_uint_eq(names, (size_t)(plan->ranks + plan->ranks / plan->domain_ranks));
    for (int64_t p = plan->micro_batch_offsets[last_micro_batch];
         p < plan->micro_batch_offsets[last_micro_batch + 1]; p++)
        ck_assert_int_eq(memory[plan->pack_ranks[p]], plan->pack_bytes[p]);
}

START_TEST(a_trace_shows_every_pack_on_its_ranks)
{
    hbp_context *context = test_context();
    char folder[64], path[128];
    folder_make(folder);
    folder_path(path, folder, "trace.json");
    for (uint64_t seed = 0; seed < 25; seed++) {
        hbp_plan *plan = drawn_plan(context, seed, 60);
        plan->first_step = (int64_t)seed;
        for (int64_t first = 0; first < plan->steps; first += 1 + plan->steps / 3)
            for (int64_t count = 0; count <= plan->steps - first; count += 1 + plan->steps / 2) {
                OK(context, hbp_plan_trace(context, plan, path, STEPS(first, count)));
                json_t *root = parse(path);
                check_trace(plan, first, count ? count : plan->steps - first, root);
                json_decref(root);
            }
        hbp_plan_free(plan);
    }
    folder_remove(folder);
    hbp_context_free(context);
}
END_TEST

START_TEST(numbers_do_not_follow_the_locale)
{
    hbp_context *context = test_context();
    char folder[64], path[128];
    folder_make(folder);
    folder_path(path, folder, "trace.json");
    hbp_plan *plan = drawn_plan(context, 5, 40);
    size_t bytes, other_bytes;
    OK(context, hbp_plan_trace(context, plan, path, NULL));
    char *plain = file_read(path, &bytes);
    const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "C.UTF-8"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!setlocale(LC_ALL, names[i]))
            continue;
        OK(context, hbp_plan_trace(context, plan, path, NULL));
        char *other = file_read(path, &other_bytes);
        ck_assert_uint_eq(bytes, other_bytes);
        ck_assert_int_eq(memcmp(plain, other, bytes), 0);
        free(other);
    }
    setlocale(LC_ALL, "C");
    free(plain);
    hbp_plan_free(plan);
    folder_remove(folder);
    hbp_context_free(context);
}
END_TEST

/* Times near the end of int64 add up without wrapping. */
START_TEST(time_stands_still_at_its_end)
{
    hbp_context *context = test_context();
    char folder[64], path[128];
    folder_make(folder);
    folder_path(path, folder, "trace.json");
    hbp_plan *plan = drawn_plan(context, 5, 40);
    for (int64_t s = 0; s < plan->steps; s++)
        plan->step_ns[s] = INT64_MAX;
    OK(context, hbp_plan_trace(context, plan, path, NULL));
    json_decref(parse(path));
    hbp_plan_free(plan);
    folder_remove(folder);
    hbp_context_free(context);
}
END_TEST

START_TEST(bad_ranges_are_refused)
{
    hbp_context *context = test_context();
    hbp_plan *plan = drawn_plan(context, 5, 40);
    FAILS(context, HBP_E_INVALID, "plan is NULL", hbp_plan_trace(context, NULL, "x", NULL));
    FAILS(context, HBP_E_INVALID, "path is NULL", hbp_plan_trace(context, plan, NULL, NULL));
    FAILS(context, HBP_E_INVALID, "`first_step` is -1", hbp_plan_trace(context, plan, "x", STEPS(-1, 0)));
    FAILS(context, HBP_E_INVALID, "`steps` is -1", hbp_plan_trace(context, plan, "x", STEPS(0, -1)));
    FAILS(context, HBP_E_INVALID, "the plan has", hbp_plan_trace(context, plan, "x", STEPS(plan->steps, 0)));
    FAILS(context, HBP_E_INVALID, "the plan has", hbp_plan_trace(context, plan, "x", STEPS(1, plan->steps)));
    if (access("/dev/full", W_OK) == 0)
        FAILS(context, HBP_E_SYSTEM, "No space left", hbp_plan_trace(context, plan, "/dev/full", NULL));
    hbp_plan_free(plan);
    hbp_context_free(context);
}
END_TEST

typedef struct trace_case {
    hbp_plan *plan;
    char folder[64];
    char path[128];
} trace_case;

static hbp_status trace_once(hbp_context *context, void *user)
{
    trace_case *c = user;
    hbp_status status = hbp_plan_trace(context, c->plan, c->path, NULL);
    ck_assert_int_eq(folder_count(c->folder), status == HBP_OK);
    unlink(c->path);
    return status;
}

START_TEST(short_memory_and_cancelling_leave_nothing)
{
    hbp_context *context = test_context();
    trace_case c = {.plan = drawn_plan(context, 9, 60)};
    folder_make(c.folder);
    folder_path(c.path, c.folder, "trace");
    failing_sweep(trace_once, &c);
    ck_assert_int_gt(cancel_sweep(trace_once, &c), 2);
    folder_remove(c.folder);
    hbp_plan_free(c.plan);
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("plan_trace", a_trace_shows_every_pack_on_its_ranks, numbers_do_not_follow_the_locale,
          time_stands_still_at_its_end, bad_ranges_are_refused, short_memory_and_cancelling_leave_nothing)
