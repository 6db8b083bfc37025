/* Every call that may take long, on data sets and steps of any size. */
#ifndef HBP_TESTS_LONG_CALLS_H
#define HBP_TESTS_LONG_CALLS_H

#include <time.h>

#include "base/context.h"
#include "data/lengths/lengths.h"
#include "data/plan/plan.h"
#include "hbp/io.h"
#include "methods.h"
#include "world.h"

typedef hbp_status (*call_fn)(hbp_context *context, world *w, int32_t kind);

static inline hbp_status create_lengths(hbp_context *context, world *w, int32_t kind)
{
    hbp_lengths_options options = {.struct_size = sizeof options};
    hbp_lengths *lengths = NULL;
    hbp_status status;
    if (kind >= 2)
        options = (hbp_lengths_options){
            .struct_size = sizeof options, .loss_tokens = w->loss, .links = w->link, .vision = w->vision};
    if (kind % 2)
        status = hbp_lengths_create_u32(context, w->length, w->count, &options, &lengths);
    else
        status = hbp_lengths_create_i64(context, w->wide, w->count, &options, &lengths);
    hbp_lengths_free(lengths);
    return status;
}

static inline hbp_status histogram(hbp_context *context, world *w, int32_t kind)
{
    (void)kind;
    int64_t *ones = column(w->count, sizeof *ones);
    for (int64_t i = 0; i < w->count; i++)
        ones[i] = 1;
    hbp_lengths *lengths = NULL;
    hbp_status status = hbp_lengths_create_histogram(context, w->wide, ones, w->count, &lengths);
    free(ones);
    hbp_lengths_free(lengths);
    return status;
}

static inline hbp_status build(hbp_context *context, world *w, int32_t kind)
{
    hbp_lengths_builder *builder = NULL;
    hbp_lengths *lengths = NULL;
    hbp_status status = hbp_lengths_builder_create(context, &builder);
    if (status >= 0)
        status = hbp_lengths_builder_append(context, builder, w->wide,
                                            &(hbp_lengths_columns){.struct_size = sizeof(hbp_lengths_columns),
                                                                   .links = kind ? w->link : NULL},
                                            w->count);
    if (status >= 0)
        status = hbp_lengths_builder_finish(context, builder, &lengths);
    hbp_lengths_builder_free(builder);
    hbp_lengths_free(lengths);
    return status;
}

static inline hbp_status read_lengths(hbp_context *context, world *w, int32_t kind)
{
    static const char *const names[] = {"a.npy", "a.txt", "a.csv", "a.jsonl"};
    hbp_lengths_load_options options = {.struct_size = sizeof options,
                                        .loss_column = kind == 2 ? "loss" : NULL};
    hbp_lengths *lengths = NULL;
    hbp_status status = hbp_lengths_load(context, path_of(w, names[kind]), &options, &lengths);
    hbp_lengths_free(lengths);
    return status;
}

static inline hbp_status limit(hbp_context *context, world *w, int32_t kind)
{
    hbp_lengths *lengths = NULL;
    hbp_status status = hbp_lengths_limit(context, kind >= 4 ? w->linked : w->plain,
                                          kind >= 4 ? 400000 : 2000, kind % 4, &lengths);
    hbp_lengths_free(lengths);
    return status;
}

static inline hbp_status plan_groups(hbp_context *context, world *w, int32_t kind)
{
    hbp_groups_options options = {.struct_size = sizeof options, .method = hbp__groups_name(kind % 2)};
    hbp_groups *groups = NULL;
    hbp_status status = hbp_plan_groups(context, kind < 2 ? w->plain : w->linked, w->cost, &options, &groups);
    hbp_groups_free(groups);
    return status;
}

static inline hbp_status fill(hbp_context *context, world *w, int32_t kind)
{
    hbp_fill_options options = {.struct_size = sizeof options, .method = hbp__fill_name(kind)};
    hbp_packs *packs = NULL;
    hbp_status status = hbp_greedy_fill(context, w->plain, w->groups, &options, &packs);
    hbp_packs_free(packs);
    return status;
}

static inline hbp_status balance(hbp_context *context, world *w, int32_t kind)
{
    hbp_balance_options options = {.struct_size = sizeof options, .method = hbp__balance_name(kind)};
    hbp_plan *plan = NULL;
    hbp_status status = hbp_balance_attention(context, w->packs, w->groups, w->cost, &options, &plan);
    hbp_plan_free(plan);
    return status;
}

enum {
    EPOCH_DEFAULT,
    EPOCH_PAPER,
    EPOCH_DRAWN,
    EPOCH_STRATIFIED,
    EPOCH_HIERARCHY,
    EPOCH_TIED,
    EPOCH_TIED_DRAWN,
    EPOCH_GIVEN,
    EPOCH_WINDOWS,
    EPOCH_THREADS,
    EPOCH_VISION,
    EPOCH_MODALITIES
};

static inline hbp_status plan_epoch(hbp_context *context, world *w, int32_t kind)
{
    const hbp_lengths *lengths = kind == EPOCH_TIED || kind == EPOCH_TIED_DRAWN ? w->linked : w->plain;
    hbp_epoch_options options = {.struct_size = sizeof options,
                                 .method = hbp__epoch_name(kind == EPOCH_PAPER)};
    if (kind == EPOCH_DRAWN || kind == EPOCH_TIED_DRAWN || kind == EPOCH_THREADS)
        options.samples_per_step = 1024;
    if (kind == EPOCH_STRATIFIED)
        options.composition = HBP_COMPOSITION_STRATIFIED;
    if (kind == EPOCH_HIERARCHY)
        options.composition = HBP_COMPOSITION_HIERARCHY;
    if (kind == EPOCH_THREADS)
        options.threads = 2;
    if (kind == EPOCH_WINDOWS)
        options.window_samples = w->count / 4;
    if (kind == EPOCH_GIVEN) {
        options.batches = w->batches;
        options.batch_offsets = w->batch_offsets;
        options.batch_samples = w->batch_samples;
    }
    if (kind == EPOCH_VISION) {
        lengths = w->seen;
        options.max_vision = 20;
    }
    if (kind == EPOCH_MODALITIES) {
        lengths = w->seen;
        options.modality_order = 1;
    }
    hbp_plan *plan = NULL;
    hbp_status status = hbp_plan_epoch(context, lengths, w->cost, &options, &plan);
    hbp_plan_free(plan);
    return status;
}

static inline hbp_status baseline(hbp_context *context, world *w, int32_t kind)
{
    hbp_plan *plan = NULL;
    hbp_status status = test_plan_by(context, w->plain, w->cost, kind, NULL, &plan);
    hbp_plan_free(plan);
    return status;
}

static inline hbp_status iterative_fill(hbp_context *context, world *w, int32_t kind)
{
    hbp_iterative_fill_options options = {.struct_size = sizeof options,
                                          .method = hbp__iterative_fill_name(kind),
                                          .rounds = 3,
                                          .max_tokens = 8192,
                                          .max_vision = 20};
    hbp_packs *packs = NULL;
    hbp_status status = hbp_iterative_fill(context, w->seen, &options, &packs);
    hbp_packs_free(packs);
    return status;
}

static inline hbp_status choose_budgets(hbp_context *context, world *w, int32_t kind)
{
    hbp_budgets_options options = {
        .struct_size = sizeof options, .method = hbp__budgets_name(kind), .rounds = 3};
    hbp_budgets budgets = {.struct_size = sizeof budgets};
    return hbp_choose_budgets(context, w->seen, &options, &budgets);
}

static inline hbp_status plan_vlm(hbp_context *context, world *w, int32_t kind)
{
    hbp_vlm_options options = {.struct_size = sizeof options,
                               .data_method = hbp__vlm_data_name(kind),
                               .tensor_parallel = 4,
                               .pipeline_stages = 4,
                               .batch_samples = 64};
    options.max_vision = 9;
    options.max_tokens = 4096;
    hbp_vlm_plan *plan = NULL;
    hbp_status status = hbp_plan_vlm(context, w->seen, w->vlm, w->machine, &options, &plan);
    hbp_vlm_plan_free(plan);
    return status;
}

static inline hbp_status validate(hbp_context *context, world *w, int32_t kind)
{
    (void)kind;
    return hbp_plan_validate(context, w->plan, w->plain, w->cost);
}

static inline hbp_status simulate(hbp_context *context, world *w, int32_t kind)
{
    hbp_simulate_options options = {.struct_size = sizeof options, .no_bound = kind};
    hbp_report report = {.struct_size = sizeof report};
    return hbp_simulate(context, w->plan, w->cost, &options, &report);
}

static inline hbp_status bound_epoch(hbp_context *context, world *w, int32_t kind)
{
    (void)kind;
    int64_t ns;
    return hbp_bound_epoch(context, w->plain, w->cost, 10, &ns);
}

static inline hbp_status save_plan(hbp_context *context, world *w, int32_t kind)
{
    hbp_plan_save_options options = {.struct_size = sizeof options, .chunk_steps = kind ? INT32_MAX : 0};
    return hbp_plan_save(context, w->plan, path_of(w, "b.hbp"), &options);
}

static inline hbp_status load_plan(hbp_context *context, world *w, int32_t kind)
{
    hbp_plan *plan = NULL;
    hbp_plan_file *file = NULL;
    hbp_plan_summary summary = {.struct_size = sizeof summary};
    hbp_status status;
    if (!kind) {
        status = hbp_plan_load(context, path_of(w, "a.hbp"), &plan);
    } else {
        status = hbp_plan_file_open(context, path_of(w, "a.hbp"), &file);
        if (status >= 0)
            status = hbp_plan_file_get_summary(context, file, &summary);
        if (status >= 0)
            status = hbp_plan_file_read(context, file, 1, summary.steps - 1, &plan);
    }
    hbp_plan_file_free(file);
    hbp_plan_free(plan);
    return status;
}

static inline hbp_status trace(hbp_context *context, world *w, int32_t kind)
{
    if (kind == 0)
        return hbp_plan_trace(context, w->plan, path_of(w, "b.trace"), NULL);
    if (kind == 1)
        return hbp_plan_write_json(context, w->plan, path_of(w, "b.json"));
    const hbp_trace_options options = {.struct_size = sizeof options, .timeline = w->timeline};
    return hbp_plan_trace(context, w->plan, path_of(w, "b.trace"), &options);
}

static inline hbp_status timeline(hbp_context *context, world *w, int32_t kind)
{
    hbp_timeline *made = NULL;
    hbp_timeline_report report = {.struct_size = sizeof report};
    hbp_timeline_columns columns = {.struct_size = sizeof columns};
    hbp_measurements measurements = {.struct_size = sizeof measurements};
    hbp_fit_report fit = {.struct_size = sizeof fit};
    hbp_cost *cost = NULL;
    hbp_status status = HBP_OK;
    if (kind == 0) {
        hbp_timeline_get_columns(w->context, w->timeline, &columns);
        status = hbp_timeline_create(context, &columns, &made);
    } else if (kind == 1) {
        status = hbp_timeline_load(context, path_of(w, "a.timeline"), &made);
    } else if (kind == 2) {
        status = hbp_timeline_save(context, w->timeline, path_of(w, "b.timeline"));
    } else if (kind == 3) {
        status = hbp_timeline_compare(context, w->timeline, w->cost, &report);
    } else {
        hbp_timeline_get_measurements(w->context, w->timeline, &measurements);
        status = hbp_cost_fit(context, w->cost, &measurements, &cost, &fit);
    }
    hbp_cost_free(cost);
    hbp_timeline_free(made);
    return status;
}

/* The micro-batches of every step in reverse. */
static inline hbp_status permute(hbp_context *context, world *w, int32_t kind)
{
    (void)kind;
    hbp_plan *other = NULL;
    int32_t *order = column(w->plan->micro_batches, sizeof *order);
    for (int64_t s = 0; s < w->plan->steps; s++) {
        int64_t first = w->plan->step_offsets[s], end = w->plan->step_offsets[s + 1];
        for (int64_t m = first; m < end; m++)
            order[m] = (int32_t)(first + end - 1 - m);
    }
    hbp_status status = hbp__plan_permute(context, w->plan, order, &other);
    hbp_plan_free(other);
    free(order);
    return status;
}

/* Submits a step, and frees the stepper after `kind` times 5 ms of planning. */
static inline hbp_status stepper(hbp_context *context, world *w, int32_t kind)
{
    const struct timespec pause = {0, 5000000};
    hbp_stepper *made = NULL;
    hbp_lengths_options options = {
        .struct_size = sizeof options, .loss_tokens = w->loss, .links = kind ? NULL : w->link};
    hbp_status status = hbp_stepper_create(context, w->cost, NULL, NULL, &made);
    if (status >= 0)
        status = hbp_stepper_submit(context, made, w->wide, w->step->count, &options);
    for (int32_t i = 0; i < kind && status >= 0; i++) {
        nanosleep(&pause, NULL);
        status = hbp__tick(context, "planning", i, kind);
    }
    hbp_stepper_free(made);
    return status;
}

enum { STEP_TIED = HBP__STEP_METHOD_COUNT, STEP_EQUAL, STEP_ANY_DEGREE };

static inline hbp_status plan_step(hbp_context *context, world *w, int32_t kind)
{
    hbp_step_options options = {.struct_size = sizeof options,
                                .method = hbp__step_name(kind < HBP__STEP_METHOD_COUNT ? kind : 0),
                                .equal_samples = kind == STEP_EQUAL,
                                .any_degree = kind == STEP_ANY_DEGREE};
    hbp_plan *plan = NULL;
    hbp_status status =
        hbp_plan_step(context, kind == STEP_TIED ? w->step_linked : w->step, w->cost, &options, &plan);
    hbp_plan_free(plan);
    return status;
}

/* One call by name. The slow ones take a minute or more on a million samples. */
typedef struct long_call {
    const char *name;
    call_fn call;
    int32_t kind;
    int32_t slow;
} long_call;

static const long_call calls[] = {
    {"lengths from i64", create_lengths, 0, 0},
    {"lengths from u32", create_lengths, 1, 0},
    {"lengths from i64, all columns", create_lengths, 2, 0},
    {"lengths from u32, all columns", create_lengths, 3, 0},
    {"lengths from a histogram", histogram, 0, 0},
    {"lengths builder", build, 0, 0},
    {"lengths builder, linked", build, 1, 0},
    {"read .npy", read_lengths, 0, 0},
    {"read text", read_lengths, 1, 0},
    {"read CSV", read_lengths, 2, 0},
    {"read JSON lines", read_lengths, 3, 0},
    {"limit: drop", limit, HBP_OVERLONG_DROP, 0},
    {"limit: truncate", limit, HBP_OVERLONG_TRUNCATE, 0},
    {"limit: split", limit, HBP_OVERLONG_SPLIT, 0},
    {"limit: drop, linked", limit, 4 + HBP_OVERLONG_DROP, 0},
    {"groups: optimal", plan_groups, HBP__GROUPS_OPTIMAL, 0},
    {"groups: paper", plan_groups, HBP__GROUPS_HBP, 0},
    {"groups: optimal, linked", plan_groups, 2 + HBP__GROUPS_OPTIMAL, 0},
    {"groups: paper, linked", plan_groups, 2 + HBP__GROUPS_HBP, 0},
    {"fill: balanced", fill, HBP__FILL_BALANCED, 0},
    {"fill: tight", fill, HBP__FILL_TIGHT, 0},
    {"fill: paper", fill, HBP__FILL_HBP, 0},
    {"balance: time", balance, HBP__BALANCE_TIME, 0},
    {"balance: sorted", balance, HBP__BALANCE_SORTED, 0},
    {"balance: given", balance, HBP__BALANCE_GIVEN, 0},
    {"balance: random", balance, HBP__BALANCE_RANDOM, 0},
    {"epoch: default", plan_epoch, EPOCH_DEFAULT, 1},
    {"epoch: paper", plan_epoch, EPOCH_PAPER, 0},
    {"epoch: drawn", plan_epoch, EPOCH_DRAWN, 1},
    {"epoch: stratified", plan_epoch, EPOCH_STRATIFIED, 1},
    {"epoch: hierarchy", plan_epoch, EPOCH_HIERARCHY, 0},
    {"epoch: linked", plan_epoch, EPOCH_TIED, 0},
    {"epoch: drawn, linked", plan_epoch, EPOCH_TIED_DRAWN, 1},
    {"epoch: batches given", plan_epoch, EPOCH_GIVEN, 1},
    {"epoch: windows", plan_epoch, EPOCH_WINDOWS, 0},
    {"epoch: threads", plan_epoch, EPOCH_THREADS, 1},
    {"epoch: vision", plan_epoch, EPOCH_VISION, 0},
    {"epoch: modalities", plan_epoch, EPOCH_MODALITIES, 0},
    {"baseline: no-packing", baseline, HBP__EPOCH_NO_PACKING, 0},
    {"baseline: sorted", baseline, HBP__EPOCH_SORTED, 0},
    {"baseline: next-fit", baseline, HBP__EPOCH_NEXT_FIT, 0},
    {"baseline: first-fit-decreasing", baseline, HBP__EPOCH_FIRST_FIT_DECREASING, 0},
    {"baseline: best-fit-decreasing", baseline, HBP__EPOCH_BEST_FIT_DECREASING, 0},
    {"baseline: isf", baseline, HBP__EPOCH_ISF, 0},
    {"baseline: spfhp", baseline, HBP__EPOCH_SPFHP, 0},
    {"baseline: homogeneous-sp", baseline, HBP__EPOCH_HOMOGENEOUS_SP, 0},
    {"baseline: paper", baseline, HBP__EPOCH_HBP, 0},
    {"baseline: random", baseline, HBP__EPOCH_RANDOM, 0},
    {"baseline: first-fit-shuffled", baseline, HBP__EPOCH_FIRST_FIT_SHUFFLED, 0},
    {"baseline: hybrid-cp", baseline, HBP__EPOCH_HYBRID_CP, 0},
    {"baseline: dynamic-cp", baseline, HBP__EPOCH_DYNAMIC_CP, 0},
    {"iterative fill", iterative_fill, HBP__ITERATIVE_FILL_VECTOR, 0},
    {"iterative fill: reference", iterative_fill, HBP__ITERATIVE_FILL_ISF, 0},
    {"budgets: plane", choose_budgets, HBP__BUDGETS_PLANE, 0},
    {"budgets: line", choose_budgets, HBP__BUDGETS_LINE, 0},
    {"vlm: packed", plan_vlm, HBP__VLM_DATA_PACKED, 1},
    {"vlm: isf", plan_vlm, HBP__VLM_DATA_ISF, 1},
    {"vlm: random", plan_vlm, HBP__VLM_DATA_RANDOM, 1},
    {"vlm: grouped", plan_vlm, HBP__VLM_DATA_GROUPED, 1},
    {"vlm: sorted", plan_vlm, HBP__VLM_DATA_SORTED, 1},
    {"validate", validate, 0, 0},
    {"simulate", simulate, 0, 0},
    {"simulate with a bound", simulate, 1, 0},
    {"bound", bound_epoch, 0, 0},
    {"save a plan", save_plan, 0, 0},
    {"save a plan in few chunks", save_plan, 1, 0},
    {"load a plan", load_plan, 0, 0},
    {"read a plan in part", load_plan, 1, 0},
    {"trace", trace, 0, 0},
    {"JSON", trace, 1, 0},
    {"measured trace", trace, 2, 0},
    {"timeline: create", timeline, 0, 0},
    {"timeline: load", timeline, 1, 0},
    {"timeline: save", timeline, 2, 0},
    {"timeline: compare", timeline, 3, 0},
    {"timeline: fit", timeline, 4, 0},
    {"permute", permute, 0, 0},
    {"stepper: free", stepper, 0, 0},
    {"stepper: free while it plans", stepper, 4, 0},
    {"stepper: free later", stepper, 40, 0},
    {"step: default", plan_step, HBP__STEP_SEARCH, 0},
    {"step: paper", plan_step, HBP__STEP_FLEXSP, 1},
    {"step: static-sp", plan_step, HBP__STEP_STATIC_SP, 0},
    {"step: homogeneous-sp", plan_step, HBP__STEP_HOMOGENEOUS_SP, 0},
    {"step: hybrid-cp", plan_step, HBP__STEP_HYBRID_CP, 1},
    {"step: dynamic-cp", plan_step, HBP__STEP_DYNAMIC_CP, 1},
    {"step: default, linked", plan_step, STEP_TIED, 0},
    {"step: equal samples", plan_step, STEP_EQUAL, 1},
    {"step: any degree", plan_step, STEP_ANY_DEGREE, 1},
};

#define CALLS ((int)(sizeof calls / sizeof *calls))

#endif
