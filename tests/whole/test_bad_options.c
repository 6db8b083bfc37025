/* Each number of each struct of options, below what it may be and far above: the call refuses it by name and
 * value, says what it may be and makes nothing, or it is one that has no such limit. The fields are those
 * that the fuzzer fills; the limits themselves stand in the tests of what has them. */
#include <math.h>
#include <stddef.h>

#include "every_call.h"
#include "fuzz/calls_structs.h"

typedef struct world {
    every e;
    hbp_groups *groups;
    hbp_packs *packs;
    hbp_task_schedule *schedule;
    hbp_partition *partition; /* in two stages */
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
    X(hbp_pipeline_options, pipeline_run,                                                                    \
      hbp_simulate_pipeline(context, w->e.layers, partition_view(w->partition).cuts, options, NULL, &out),   \
      .stages = 2, .micro_batches = 4)                                                                       \
    X(hbp_partition_options, partition,                                                                      \
      hbp_partition_layers(context, w->e.layers, &two_stages, options, &out), )                              \
    X(hbp_vlm_layers_options, layers, hbp_vlm_create_layers(context, w->e.vlm, w->e.machine, options, &out), \
      .tensor_parallel = 4, .vision = 9, .tokens = 4096)                                                     \
    X(hbp_vlm_options, vlm_plan, hbp_plan_vlm(context, w->e.sized, w->e.vlm, w->e.machine, options, &out),   \
      .tensor_parallel = 4, .pipeline_stages = 2, .batch_samples = 8, .max_vision = 9, .max_tokens = 40000)

#define CALL(type, object, call, ...)                                                                        \
    static hbp_status call_##type(hbp_context *context, const world *w, const void *options)                 \
    {                                                                                                        \
        hbp_##object *out = (hbp_##object *)(uintptr_t)1;                                                    \
        hbp_status status = (call);                                                                          \
        ck_assert_int_eq(status < 0, out == NULL);                                                           \
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

#define NUMBER(type, name)                                                                                   \
    {#type, #name, offsetof(type, name),                                                                     \
     _Generic(((type *)0)->name, int32_t                                                                     \
              : IS_INT, int64_t                                                                              \
              : IS_LONG, double                                                                              \
              : IS_REAL, default                                                                             \
              : IS_UNSIGNED)},
#define OTHER(...)
static const struct field {
    const char *type, *name;
    size_t at;
    enum { IS_INT, IS_LONG, IS_REAL, IS_UNSIGNED } is;
} fields[] = {CALLS_FIELDS(NUMBER, NUMBER, OTHER, OTHER, OTHER, OTHER, OTHER, OTHER)};

/* What every value has a meaning for: 0 or not, and what these calls do not look at. */
static const char *const any[] = {
    "drop_last",    "modality_order", "equal_samples", "fused_cross_entropy", "uneven_micro_batches",
    "barriers",     "order",          "run",           "over_long",           "layers_vision",
    "layers_tokens"};

enum { LEAST, NEGATIVE, MOST, LARGE, WAYS };

/* Puts a value into the field and writes it as a message does. */
static void set_field(const struct field *f, int way, char *options, char value[32])
{
    const int64_t wide[WAYS] = {INT64_MIN, -2, INT64_MAX, INT64_MAX / 2};
    const int32_t narrow[WAYS] = {INT32_MIN, -2, INT32_MAX, INT32_MAX / 2};
    const double real[WAYS] = {-1e308, -1, NAN, 1e308};
    if (f->is == IS_INT) {
        memcpy(options + f->at, &narrow[way], sizeof *narrow);
        snprintf(value, 32, "%d", narrow[way]);
    } else if (f->is == IS_LONG) {
        memcpy(options + f->at, &wide[way], sizeof *wide);
        snprintf(value, 32, "%lld", (long long)wide[way]);
    } else {
        memcpy(options + f->at, &real[way], sizeof *real);
        snprintf(value, 32, "%g", real[way]);
    }
}

/* "... name ... value ...", and more behind it: what it may be. */
static int says(const char *message, const char *name, const char *value)
{
    const char *at = strstr(message, name);
    at = at ? strstr(at, value) : NULL;
    return at && strlen(at) > strlen(value) + 3;
}

static void check_field(hbp_context *context, const world *w, const struct row *row, const struct field *f)
{
    int has_any = 0;
    for (size_t i = 0; i < sizeof any / sizeof *any; i++)
        has_any |= strcmp(any[i], f->name) == 0;
    for (int way = 0; way < WAYS && f->is != IS_UNSIGNED; way += TEST_SANITIZED ? 2 : 1) {
        char options[512], value[32];
        ck_assert_uint_le(row->bytes, sizeof options);
        memcpy(options, row->first, row->bytes);
        set_field(f, way, options, value);
        hbp_status status = row->call(context, w, options);
        const char *message = hbp_context_message(context);
        if (has_any)
            continue;
        ck_assert_msg(status < 0 || way >= MOST, "%s.%s: %s is taken", f->type, f->name, value);
        /* Too large a number may be no harm before it is multiplied. */
        ck_assert_msg(status >= 0 || says(message, f->name, value) ||
                          (way >= MOST && (strstr(message, f->name) || status == HBP_E_OVERFLOW ||
                                           status == HBP_E_INFEASIBLE)),
                      "%s.%s: %s: %s: %s", f->type, f->name, value, hbp_status_name(status), message);
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
    OK(context, row->call(context, &w, row->first));
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (strcmp(fields[i].type, row->type) == 0) {
            check_field(context, &w, row, &fields[i]);
            count++;
        }
    ck_assert_int_gt(count, 1);
    hbp_partition_free(w.partition);
    hbp_task_schedule_free(w.schedule);
    hbp_packs_free(w.packs);
    hbp_groups_free(w.groups);
    every_close(&w.e);
    hbp_context_free(context);
}
END_TEST

TEST_MAIN_LOOPS("bad_options", NULL, NULL, {numbers_are_taken_or_named, 0, ROWS})
