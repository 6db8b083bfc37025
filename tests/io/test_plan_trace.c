#include "hbp/io.h"
#include "plan_files.h"

#include "plan_traces.h"

#include "costs.h"
#include "io/file/stream.h"
#include <locale.h>

#define COSTED(under, first, count)                                                                          \
    (&(hbp_trace_options){                                                                                   \
        .struct_size = sizeof(hbp_trace_options), .first_step = (first), .steps = (count), .cost = (under)})

/* Counters say what the rank's last pack needs; with a cost each node has the limit. */
static void check_memory(const hbp_plan *plan, const hbp_cost *cost, int64_t last_micro_batch, json_t *root)
{
    int64_t memory[TRACED_RANKS], limits = 0;
    char name[64];
    json_t *event;
    size_t i;
    memset(memory, -1, sizeof memory);
    json_array_foreach(json_object_get(root, "traceEvents"), i, event)
    {
        if (!is_kind(event, "C"))
            continue;
        int64_t rank = number(event, "tid") - 1, bytes = number(json_object_get(event, "args"), "bytes");
        if (strcmp(text_of(event, "name"), "memory limit of a rank") == 0) {
            ck_assert(cost && rank % plan->domain_ranks == 0 && bytes == cost->terms.limit_bytes);
            limits++;
            continue;
        }
        snprintf(name, sizeof name, "memory of rank %d", (int)rank);
        ck_assert_str_eq(text_of(event, "name"), name);
        ck_assert_int_ne(memory[rank], bytes);
        memory[rank] = bytes;
    }
    ck_assert_int_eq(limits, cost ? plan->ranks / plan->domain_ranks : 0);
    for (int64_t p = plan->micro_batch_offsets[last_micro_batch];
         p < plan->micro_batch_offsets[last_micro_batch + 1]; p++)
        for (int32_t k = 0; k < plan->pack_sp[p]; k++)
            ck_assert_int_eq(memory[plan->pack_ranks[p] + k], plan->pack_bytes[p]);
}

static void check_names(const hbp_plan *plan, json_t *root)
{
    char process[32], thread[64];
    json_t *event;
    size_t i;
    json_array_foreach(json_object_get(root, "traceEvents"), i, event)
    {
        if (!is_kind(event, "M") || number(event, "tid") > plan->ranks)
            continue;
        int rank = (int)number(event, "tid") - 1, node = rank / plan->domain_ranks;
        json_t *args = json_object_get(event, "args");
        snprintf(process, sizeof process, "node %d", node);
        snprintf(thread, sizeof thread, "rank %d, GPU %d of node %d", rank, rank % plan->domain_ranks, node);
        if (strcmp(text_of(event, "name"), "process_name") == 0)
            ck_assert_str_eq(text_of(args, "name"), process);
        if (strcmp(text_of(event, "name"), "thread_name") == 0)
            ck_assert_str_eq(text_of(args, "name"), thread);
        if (strcmp(text_of(event, "name"), "thread_sort_index") == 0)
            ck_assert_int_eq(number(args, "sort_index"), rank);
    }
}

/* The whole trace of steps [first, first + count). */
static void check_trace(const hbp_plan *plan, int64_t first, int64_t count, json_t *root)
{
    traced t = {.plan = plan};
    traced_check(&t, first, count, 1, root);
    check_names(plan, root);
    check_memory(plan, NULL, plan->step_offsets[first + count] - 1, root);
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
        plan->lockstep_ranks = seed % 3 == 1 ? 1 : seed % 3 == 2 && plan->ranks > 1 ? plan->ranks / 2 : 0;
        for (int64_t first = 0; first < plan->steps; first += 1 + plan->steps / 3)
            for (int64_t count = 0; count <= plan->steps - first; count += 1 + plan->steps / 2) {
                OK(context, hbp_plan_trace(context, plan, path, STEPS(first, count)));
                json_t *root = trace_read(path);
                check_trace(plan, first, count ? count : plan->steps - first, root);
                json_decref(root);
            }
        hbp_plan_free(plan);
    }
    folder_remove(folder);
    hbp_context_free(context);
}
END_TEST

/* A plan under a cost, with padding packs, vision units and packs on several ranks. */
static hbp_plan *costed_plan(hbp_context *context, uint64_t seed, const hbp_cost *cost)
{
    hbp_lengths *lengths = plans_vision_lengths(context, seed, 50, 3000, 0, 0, 2);
    plans_shape shape = plans_draw(seed);
    shape.cost = cost;
    shape.ranks = cost->terms.ranks;
    shape.domain_ranks = cost->terms.domain_ranks;
    hbp_plan *plan = plans_make(&shape, lengths);
    hbp_lengths_free(lengths);
    return plan;
}

/* The parts of each pack are its time to the nanosecond, and over all ranks those of the simulator. */
START_TEST(parts_add_up_to_packs)
{
    hbp_context *context = test_context();
    char folder[64], path[128];
    folder_make(folder);
    folder_path(path, folder, "trace.json");
    for (uint64_t seed = 0; seed < 12; seed++) {
        hbp_cost *cost = test_cost_vision(context, 16, seed % 2 ? 12345.678 : 0, 1000);
        hbp_plan *plan = costed_plan(context, seed, cost);
        OK(context, hbp_plan_trace(context, plan, path, COSTED(cost, 0, 0)));
        json_t *root = trace_read(path);
        traced t = {.plan = plan, .cost = cost};
        traced_check(&t, 0, plan->steps, 1, root);
        check_memory(plan, cost, plan->micro_batches - 1, root);
        json_decref(root);
        int64_t packs_ns = 0;
        for (int64_t p = 0; p < plan->packs; p++)
            packs_ns += plan->pack_ns[p] * plan->pack_sp[p];
        ck_assert_int_eq(t.part_ns[0] + t.part_ns[1] + t.part_ns[2] + t.part_ns[3], packs_ns);
        ck_assert_int_eq(t.part_ns[1] > 0, seed % 2);
        hbp_report report = {.struct_size = sizeof report};
        OK(context,
           hbp_simulate(context, plan, cost,
                        &(hbp_simulate_options){.struct_size = sizeof(hbp_simulate_options), .no_bound = 1},
                        &report));
        double whole = (double)(packs_ns + t.waiting_ns); /* rank-time of all micro-batches */
        ck_assert_double_eq_tol((double)t.waiting_ns / whole, report.idle, 1e-6);
        whole = (double)plan->ranks * (double)report.epoch_ns;
        ck_assert_double_eq_tol((double)t.part_ns[2] / whole, report.communication, 1e-6);
        hbp_plan_free(plan);
        hbp_cost_free(cost);
    }
    folder_remove(folder);
    hbp_context_free(context);
}
END_TEST

START_TEST(another_cost_is_refused)
{
    hbp_context *context = test_context();
    char folder[64], path[128], text[160];
    folder_make(folder);
    folder_path(path, folder, "trace.json");
    hbp_cost *cost = test_cost(context), *small = test_cost_ranks(context, 8);
    hbp_plan *plan = costed_plan(context, 3, cost);
    FAILS(context, HBP_E_INVALID, "the plan is for 16 ranks, the cost for 8",
          hbp_plan_trace(context, plan, path, COSTED(small, 0, 0)));
    int64_t ns = plan->pack_ns[2]++;
    snprintf(text, sizeof text, "pack 2: %lld ns are predicted; the cost gives %lld: the plan was made under",
             (long long)ns + 1, (long long)ns);
    FAILS(context, HBP_E_INVALID, text, hbp_plan_trace(context, plan, path, COSTED(cost, 0, 0)));
    plan->pack_ns[2]--;
    int32_t recompute = plan->pack_recompute[0];
    plan->pack_recompute[0] = 9;
    FAILS(context, HBP_E_INVALID, "pack 0 recomputes 9 layers; the model has 8",
          hbp_plan_trace(context, plan, path, COSTED(cost, 0, 0)));
    plan->pack_recompute[0] = recompute;
    plan->pack_sp[0] = 3;
    FAILS(context, HBP_E_INVALID, "pack 0 has SP degree 3, which the cost does not allow",
          hbp_plan_trace(context, plan, path, COSTED(cost, 0, 0)));
    ck_assert_int_eq(folder_count(folder), 0);
    hbp_plan_free(plan);
    hbp_cost_free(small);
    hbp_cost_free(cost);
    folder_remove(folder);
    hbp_context_free(context);
}
END_TEST

/* A name that ends in ".gz" is of the same bytes, gzipped. */
START_TEST(a_trace_may_be_gzipped)
{
    hbp_context *context = test_context();
    char folder[64], path[128], zipped[128], *text;
    size_t bytes, zipped_bytes;
    int64_t unzipped_bytes;
    folder_make(folder);
    folder_path(path, folder, "trace.json");
    folder_path(zipped, folder, "trace.json.gz");
    for (uint64_t seed = 0; seed < 6; seed++) {
        hbp_plan *plan = drawn_plan(context, seed, seed ? 60 : 2000);
        OK(context, hbp_plan_trace(context, plan, path, NULL));
        OK(context, hbp_plan_trace(context, plan, zipped, NULL));
        ck_assert_int_eq(folder_count(folder), 2);
        char *plain = file_read(path, &bytes), *stored = file_read(zipped, &zipped_bytes);
        OK(context, hbp__read_file(context, zipped, INT64_C(1) << 30, &text, &unzipped_bytes));
        ck_assert_int_eq(unzipped_bytes, (int64_t)bytes);
        ck_assert_mem_eq(text, plain, bytes);
        ck_assert_uint_lt(zipped_bytes, bytes / 4);
        ck_assert_mem_eq(stored, "\x1f\x8b\x08\0\0\0\0\0", 8); /* no name, no time */
        free(plain);
        free(stored);
        hbp__delete(&context->memory, text);
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
    json_error_t error;
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    ck_assert_msg(root != NULL, "line %d: %s", error.line, error.text);
    json_decref(root);
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
    hbp_plan_free(plan);
    hbp_context_free(context);
}
END_TEST

typedef struct trace_case {
    hbp_plan *plan;
    hbp_cost *cost;
    char folder[64];
    char path[128];
} trace_case;

static hbp_status trace_once(hbp_context *context, void *user)
{
    trace_case *c = user;
    hbp_status status = hbp_plan_trace(context, c->plan, c->path, COSTED(c->cost, 0, 0));
    ck_assert_int_eq(folder_count(c->folder), status == HBP_OK);
    unlink(c->path);
    return status;
}

START_TEST(short_memory_and_cancelling_leave_nothing)
{
    hbp_context *context = test_context();
    trace_case c = {.cost = test_cost(context)};
    c.plan = costed_plan(context, 9, c.cost);
    folder_make(c.folder);
    for (int zipped = 0; zipped < 2; zipped++) {
        folder_path(c.path, c.folder, zipped ? "trace.gz" : "trace");
        failing_sweep(trace_once, &c);
        ck_assert_int_gt(cancel_sweep(trace_once, &c), 2);
    }
    folder_remove(c.folder);
    hbp_plan_free(c.plan);
    hbp_cost_free(c.cost);
    hbp_context_free(context);
}
END_TEST

/* A full disk is met when what zlib held back is written, too. */
START_TEST(a_full_disk_leaves_nothing)
{
    hbp_context *context = test_context();
    char folder[64], path[128];
    folder_make(folder);
    folder_path(path, folder, "trace.json.gz");
    hbp_plan *plan = drawn_plan(context, 5, 40);
    if (access("/dev/full", W_OK) == 0) {
        ck_assert_int_eq(symlink("/dev/full", path), 0);
        FAILS(context, HBP_E_SYSTEM, "No space left", hbp_plan_trace(context, plan, path, NULL));
        FAILS(context, HBP_E_SYSTEM, "No space left", hbp_plan_trace(context, plan, "/dev/full", NULL));
    }
    hbp_plan_free(plan);
    folder_remove(folder);
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("plan_trace", a_trace_shows_every_pack_on_its_ranks, parts_add_up_to_packs, another_cost_is_refused,
          a_trace_may_be_gzipped, numbers_do_not_follow_the_locale, time_stands_still_at_its_end,
          bad_ranges_are_refused, short_memory_and_cancelling_leave_nothing, a_full_disk_leaves_nothing)
