/* Each number of each struct of options, as the records have it: one below its range and one above it the
 * call refuses it in the one form, and makes nothing; the least is taken. A number without a range is refused
 * by name and value, or is one that has no limit. */
#include <math.h>

#include "every_call.h"

typedef struct world {
    every e;
    hbp_groups *groups;
    hbp_packs *packs;
    hbp_task_schedule *schedule;
    hbp_layer_partition *partition; /* in two stages */
    hbp_plan *plan;
} world;

static const hbp_pipeline_options two_stages = {
    .struct_size = sizeof two_stages, .stages = 2, .micro_batches = 4};

/* Type of options, what is made, the call, and the numbers that must be set. */
#define CALLS(X)                                                                                             \
    X(hbp_cost_options, cost, hbp_cost_create(context, w->e.model, w->e.machine, options, &out), )           \
    X(hbp_groups_options, groups, hbp_plan_groups(context, w->e.lengths, w->e.cost, options, &out), )        \
    X(hbp_fill_options, packs, hbp_greedy_fill(context, w->e.lengths, w->groups, options, &out), )           \
    X(hbp_balance_options, plan,                                                                             \
      hbp_balance_attention(context, w->packs, w->groups, w->e.cost, options, &out), )                       \
    X(hbp_epoch_options, plan, hbp_plan_epoch(context, w->e.lengths, w->e.cost, options, &out), )            \
    X(hbp_step_options, plan, hbp_plan_step(context, w->e.lengths, w->e.cost, options, &out), )              \
    X(hbp_iterative_fill_options, packs, hbp_iterative_fill(context, w->e.sized, options, &out),             \
      .rounds = 3, .max_tokens = 40000, .max_vision = 9)                                                     \
    X(hbp_tasks_options, task_schedule, hbp_plan_tasks(context, w->e.graph, w->e.machine, options, &out), )  \
    X(hbp_task_run_options, task_run,                                                                        \
      hbp_simulate_tasks(context, w->e.graph, w->e.machine, w->schedule, options, &out), )                   \
    X(hbp_sp_options, cost, choose_sp(context, w, options, &out), )                                          \
    X(hbp_budgets_options, cost, choose_budgets(context, w, options, &out), )                                \
    X(hbp_simulate_options, cost, simulate(context, w, options, &out), )                                     \
    X(hbp_recompute_options, cost, choose_recompute(context, w, options, &out), )                            \
    X(hbp_plan_save_options, cost, save_plan(context, w, options, &out), )                                   \
    X(hbp_stepper_options, stepper, hbp_stepper_create(context, w->e.cost, NULL, options, &out), )           \
    X(hbp_model_fields, model, hbp_model_create(context, options, &out), .layers = 2, .hidden = 64,          \
      .ffn = 128, .heads = 4, .vocab = 100)                                                                  \
    X(hbp_machine_rate, cost, set_rate(context, w, options, &out), .size = 8, .per_s = 1, .source = "given") \
    X(hbp_pipeline_options, pipeline_run,                                                                    \
      hbp_simulate_pipeline(context, w->e.layers, layer_partition_view(w->partition).cuts, options, NULL,    \
                            &out),                                                                           \
      .stages = 2, .micro_batches = 4)                                                                       \
    X(hbp_layer_partition_options, layer_partition,                                                          \
      hbp_partition_layers(context, w->e.layers, &two_stages, options, &out), )                              \
    X(hbp_partition_options, partition, hbp__partition_samples(context, few, 4, options, &out), .parts = 2)  \
    X(hbp_vlm_layers_options, layers, hbp_vlm_create_layers(context, w->e.vlm, w->e.machine, options, &out), \
      .tensor_parallel = 4, .vision = 9, .tokens = 4096)                                                     \
    X(hbp_vlm_options, vlm_plan, hbp_plan_vlm(context, w->e.sized, w->e.vlm, w->e.machine, options, &out),   \
      .tensor_parallel = 4, .pipeline_stages = 2, .batch_samples = 8, .max_vision = 9, .max_tokens = 40000)

/* Calls that make no object: what they would make is a cost that is not made. */
static hbp_status made(hbp_status status, hbp_cost **out)
{
    *out = NULL;
    return status;
}

static const int64_t few[] = {5, 4, 3, 2};

static hbp_status choose_sp(hbp_context *context, const world *w, const void *options, hbp_cost **out)
{
    hbp_sp_choice choice = {.struct_size = sizeof choice};
    return made(hbp_choose_sp(context, w->e.cost, 4096, options, &choice), out);
}

static hbp_status choose_budgets(hbp_context *context, const world *w, const void *options, hbp_cost **out)
{
    hbp_budgets budgets = {.struct_size = sizeof budgets};
    return made(hbp_choose_budgets(context, w->e.sized, options, &budgets), out);
}

static hbp_status simulate(hbp_context *context, const world *w, const void *options, hbp_cost **out)
{
    hbp_report report = {.struct_size = sizeof report};
    return made(hbp_simulate(context, w->plan, w->e.cost, options, &report), out);
}

static hbp_status choose_recompute(hbp_context *context, const world *w, const void *options, hbp_cost **out)
{
    static int32_t choices[4096];
    return made(hbp_choose_recompute(context, w->e.layers, layer_partition_view(w->partition).cuts,
                                     &two_stages, options, choices, NULL),
                out);
}

static hbp_status save_plan(hbp_context *context, const world *w, const void *options, hbp_cost **out)
{
    char path[96];
    every_path(&w->e, path);
    return made(hbp_plan_save(context, w->plan, path, options), out);
}

static hbp_status set_rate(hbp_context *context, const world *w, const void *options, hbp_cost **out)
{
    return made(hbp_machine_set_rate(context, w->e.machine, options), out);
}

#define CALL(type, object, call, ...)                                                                        \
    static hbp_status call_##type(hbp_context *context, const world *w, const void *options)                 \
    {                                                                                                        \
        (void)w;                                                                                             \
        hbp_##object *out = (hbp_##object *)(uintptr_t)1;                                                    \
        hbp_status status = (call);                                                                          \
        if (status < 0)                                                                                      \
            ck_assert_ptr_null(out);                                                                         \
        hbp_##object##_free(out);                                                                            \
        return status;                                                                                       \
    }                                                                                                        \
    static const type first_##type = {.struct_size = sizeof(type), __VA_ARGS__};
CALLS(CALL)

#define ROW(type, object, call, ...) {#type, sizeof(type), &first_##type, call_##type},
static const struct row {
    const char *type;
    size_t bytes;
    const void *first;
    hbp_status (*call)(hbp_context *context, const world *w, const void *options);
} rows[] = {CALLS(ROW)};
enum { ROWS = sizeof rows / sizeof *rows };

/* What every value has a meaning for, or what these calls do not look at. */
static const char *const any[] = {"layers_vision", "layers_tokens", "seed", "epoch"};

enum { NEGATIVE, LARGE, EXTREMES };

static void put(const hbp_field *f, char *options, int64_t whole, double real)
{
    int32_t narrow = (int32_t)whole;
    if (f->type == HBP_FIELD_DOUBLE)
        memcpy(options + f->offset, &real, sizeof real);
    else if (f->type == HBP_FIELD_INT64)
        memcpy(options + f->offset, &whole, sizeof whole);
    else
        memcpy(options + f->offset, &narrow, sizeof narrow);
}

static void refuses(hbp_context *context, const world *w, const struct row *row, const hbp_field *f,
                    const char *options)
{
    char start[96], end[96];
    hbp_status status = row->call(context, w, options);
    snprintf(start, sizeof start, "`%s` is ", f->name);
    if (f->type == HBP_FIELD_DOUBLE)
        snprintf(end, sizeof end, "; it must be in %g..%g", f->least_real, f->most_real);
    else
        snprintf(end, sizeof end, "; it must be in %lld..%lld", (long long)f->least, (long long)f->most);
    const char *message = hbp_context_message(context), *tail = strstr(message, end);
    ck_assert_msg(status == HBP_E_INVALID && strncmp(message, start, strlen(start)) == 0 && tail &&
                      strlen(tail) == strlen(end),
                  "%s.%s: %s: %s", row->type, f->name, hbp_status_name(status), message);
}

static void check_ranged(hbp_context *context, const world *w, const struct row *row, const hbp_field *f)
{
    char options[512];
    int64_t lowest = f->type == HBP_FIELD_INT32 ? INT32_MIN : INT64_MIN;
    int64_t highest = f->type == HBP_FIELD_INT32 ? INT32_MAX : INT64_MAX;
    int is_real = f->type == HBP_FIELD_DOUBLE;
    memcpy(options, row->first, row->bytes);
    if (is_real || f->least > lowest) {
        put(f, options, is_real ? 0 : f->least - 1, f->least_real - 0.001);
        refuses(context, w, row, f, options);
        put(f, options, lowest, NAN);
        refuses(context, w, row, f, options);
    }
    if (is_real || f->most < highest) {
        put(f, options, is_real ? 0 : f->most + 1, f->most_real + 0.001);
        refuses(context, w, row, f, options);
        put(f, options, highest, INFINITY);
        refuses(context, w, row, f, options);
    }
    put(f, options, f->least, f->least_real);
    hbp_status status = row->call(context, w, options);
    ck_assert_msg(status >= 0 || !strstr(hbp_context_message(context), "; it must be in") ||
                      !strstr(hbp_context_message(context), f->name),
                  "%s.%s: its least is refused: %s", row->type, f->name, hbp_context_message(context));
}

/* "... name ... value ...", and more behind it: what it may be. */
static int says(const char *message, const char *name, const char *value)
{
    const char *at = strstr(message, name);
    at = at ? strstr(at, value) : NULL;
    return at && strlen(at) > strlen(value) + 3;
}

static void check_unranged(hbp_context *context, const world *w, const struct row *row, const hbp_field *f)
{
    for (size_t i = 0; i < sizeof any / sizeof *any; i++)
        if (strcmp(any[i], f->name) == 0)
            return;
    for (int way = NEGATIVE; way < EXTREMES; way++) {
        char options[512], value[32];
        int64_t whole = way == NEGATIVE ? -2 : INT32_MAX / 2;
        double real = way == NEGATIVE ? -1 : 1e308;
        memcpy(options, row->first, row->bytes);
        put(f, options, whole, real);
        if (f->type == HBP_FIELD_DOUBLE)
            snprintf(value, sizeof value, "%g", real);
        else
            snprintf(value, sizeof value, "%lld", (long long)whole);
        hbp_status status = row->call(context, w, options);
        const char *message = hbp_context_message(context);
        ck_assert_msg(status < 0 || way == LARGE, "%s.%s: %s is taken", row->type, f->name, value);
        /* Too large a number may be no harm before it is multiplied. */
        ck_assert_msg(status >= 0 || says(message, f->name, value) ||
                          (way == LARGE && (strstr(message, f->name) || status == HBP_E_OVERFLOW ||
                                            status == HBP_E_INFEASIBLE)),
                      "%s.%s: %s: %s: %s", row->type, f->name, value, hbp_status_name(status), message);
    }
}

START_TEST(numbers_are_taken_or_named)
{
    const struct row *row = &rows[_i];
    int count = 0;
    hbp_context *context = test_context();
    world w = {0};
    every_open(context, &w.e, 0);
    OK(context, hbp_plan_groups(context, w.e.lengths, w.e.cost, NULL, &w.groups));
    OK(context, hbp_greedy_fill(context, w.e.lengths, w.groups, NULL, &w.packs));
    OK(context, hbp_plan_tasks(context, w.e.graph, w.e.machine, NULL, &w.schedule));
    OK(context, hbp_partition_layers(context, w.e.layers, &two_stages, NULL, &w.partition));
    OK(context, hbp_plan_step(context, w.e.lengths, w.e.cost, NULL, &w.plan));
    OK(context, row->call(context, &w, row->first));
    hbp_field f = {.struct_size = sizeof f};
    for (int64_t i = 0; hbp_record_get_field(row->type, i, &f) >= 0; i++) {
        int is_number = f.type == HBP_FIELD_INT32 || f.type == HBP_FIELD_INT64 || f.type == HBP_FIELD_DOUBLE;
        if (f.is_ranged)
            check_ranged(context, &w, row, &f);
        else if (is_number && !f.is_flag)
            check_unranged(context, &w, row, &f);
        count += f.is_ranged;
    }
    ck_assert_msg(count > 0 || strcmp(row->type, "hbp_pipeline_options") == 0 ||
                      strcmp(row->type, "hbp_task_run_options") == 0,
                  "%s has no range", row->type);
    hbp_plan_free(w.plan);
    hbp_layer_partition_free(w.partition);
    hbp_task_schedule_free(w.schedule);
    hbp_packs_free(w.packs);
    hbp_groups_free(w.groups);
    every_close(&w.e);
    hbp_context_free(context);
}
END_TEST

TEST_MAIN_LOOPS("bad_options", NULL, NULL, {numbers_are_taken_or_named, 0, ROWS})
