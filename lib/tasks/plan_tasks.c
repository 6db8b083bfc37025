/* hbp_plan_tasks: contraction, curves, bounds, slices, ranks, one after the other. */
#include "hbp/tasks.h"

#include <string.h>

#include "base/checked.h"
#include "base/options.h"
#include "data/machine.h"
#include "simulate/task_bound.h"
#include "tasks/baselines.h"
#include "tasks/overlap.h"
#include "tasks/place.h"
#include "tasks/place_board.h"
#include "tasks/waves.h"

#define RESERVE_BYTES  INT64_C(5000000000)
#define DEFAULT_EFFORT 5
#define MOST_GPUS      65536

/* A part of a byte that flows, as which a byte of gradients weighs in placements that spare them. */
#define HEAVY_GRADIENTS 3

/* One call: what was given, and what it was turned into on the way. */
typedef struct planning {
    hbp_context *context;
    const hbp_graph *graph;
    const hbp_machine *machine;
    hbp_tasks_options options;
    hbp__meta_graph meta;
    hbp__task_bounds bounds;
    int64_t *level_ns;
    int32_t gpus;
    int32_t domain_gpus;
    int64_t limit_bytes; /* INT64_MAX: none */
} planning;

void hbp_tasks_options_init(hbp_tasks_options *options, uint32_t struct_size)
{
    hbp__struct_init(options, struct_size);
}

static hbp_status read_options(planning *p, const hbp_tasks_options *given)
{
    hbp_tasks_options *o = &p->options;
    HBP__TRY(hbp__options_read(p->context, o, sizeof *o, given, "hbp_tasks_options"));
    const hbp__range ranges[] = {
        {"mode", o->mode, HBP_TASKS_OVERLAP, HBP_TASKS_DISTMM},
        {"placement", o->placement, HBP_PLACE_FLOWS, HBP_PLACE_SEQUENTIAL},
        {"effort", o->effort, 0, 9},
    };
    HBP__TRY(hbp__check_ranges(p->context, ranges, sizeof ranges / sizeof *ranges));
    if (o->reserve_bytes < -1 || o->limit_bytes < -1)
        return hbp__fail(p->context, HBP_E_INVALID, "%s is %lld; it must be at least -1",
                         o->reserve_bytes < -1 ? "reserve_bytes" : "limit_bytes",
                         (long long)(o->reserve_bytes < -1 ? o->reserve_bytes : o->limit_bytes));
    if (o->effort == 0)
        o->effort = DEFAULT_EFFORT;
    return HBP_OK;
}

static hbp_status read_limit(planning *p, const hbp_machine_fields *fields)
{
    const hbp_tasks_options *o = &p->options;
    if (o->limit_bytes) {
        p->limit_bytes = o->limit_bytes < 0 ? INT64_MAX : o->limit_bytes;
        return HBP_OK;
    }
    if (fields->hbm_bytes < 1)
        return hbp__fail(p->context, HBP_E_INVALID,
                         "the machine's hbm_bytes is not known; set it, or give limit_bytes (-1: no limit)");
    int64_t reserve = o->reserve_bytes < 0 ? 0 : o->reserve_bytes ? o->reserve_bytes : RESERVE_BYTES;
    p->limit_bytes = fields->hbm_bytes - reserve;
    if (p->limit_bytes < 1)
        return hbp__fail(p->context, HBP_E_INFEASIBLE,
                         "reserve_bytes is %lld; the machine's hbm_bytes is %lld: nothing is left",
                         (long long)reserve, (long long)fields->hbm_bytes);
    return HBP_OK;
}

static hbp_status read_machine(planning *p)
{
    HBP__TRY(hbp__task_machine(p->context, p->machine, &p->gpus, &p->domain_gpus));
    if (p->gpus > MOST_GPUS)
        return hbp__fail(p->context, HBP_E_INVALID, "the machine has %d GPUs; at most %d are planned for",
                         (int)p->gpus, MOST_GPUS);
    return read_limit(p, &p->machine->fields);
}

/* Room for the ranks of slices; NULL after a message. */
static int32_t *new_ranks(planning *p, const hbp__task_slices *slices)
{
    int64_t places = 0;
    for (int64_t i = 0; i < slices->count; i++)
        places += slices->slice[i].gpus;
    int32_t *ranks = hbp__new(&p->context->memory, (uint64_t)places, sizeof *ranks);
    if (!ranks)
        hbp__fail_memory(p->context, "the ranks of slices");
    return ranks;
}

/* The schedule of slices on their ranks. */
static hbp_status build(planning *p, const hbp__task_slices *slices, const int32_t *ranks,
                        hbp_task_schedule **out)
{
    hbp_task_summary summary = {.struct_size = sizeof summary,
                                .mode = p->options.mode,
                                .placement = p->options.placement,
                                .gpus = p->gpus,
                                .domain_gpus = p->domain_gpus,
                                .bound_ns = p->bounds.bound_ns,
                                .critical_path_ns = p->bounds.critical_path_ns,
                                .area_ns = p->bounds.area_ns,
                                .relaxed_ns = p->bounds.relaxed_ns,
                                .limit_bytes = p->limit_bytes == INT64_MAX ? 0 : p->limit_bytes};
    hbp_task_schedule *schedule = NULL;
    HBP__TRY(hbp__task_schedule_build(p->context, p->graph, &p->meta, slices, ranks, p->level_ns, &summary,
                                      &schedule));
    hbp_status status = hbp__task_schedule_compare(p->context, schedule, p->graph, p->options.previous);
    if (status < 0) {
        hbp_task_schedule_free(schedule);
        return status;
    }
    *out = schedule;
    return HBP_OK;
}

/* The schedule of slices placed; INFEASIBLE when their memory is not to be had. Slices that are not in waves
 * yet are put in waves. */
static hbp_status place(planning *p, const hbp__task_problem *problem, hbp__task_slices *slices,
                        int32_t in_waves, hbp_task_schedule **out)
{
    int32_t *ranks = new_ranks(p, slices);
    if (!ranks)
        return HBP_E_NO_MEMORY;
    hbp_status status =
        hbp__place_slices(p->context, problem, slices, p->options.placement, p->options.previous, ranks);
    if (status >= 0 && !in_waves)
        status = hbp__task_waves(p->context, problem, slices, ranks);
    if (status >= 0)
        status = build(p, slices, ranks, out);
    hbp__delete(&p->context->memory, ranks);
    return status;
}

typedef hbp_status (*planner)(hbp_context *, const hbp__task_problem *, hbp__task_slices *);

static const planner planners[] = {
    [HBP_TASKS_PAPER] = hbp__plan_waves,     [HBP_TASKS_SEQUENTIAL] = hbp__plan_sequential,
    [HBP_TASKS_UNIFORM] = hbp__plan_uniform, [HBP_TASKS_OPTIMUS] = hbp__plan_optimus,
    [HBP_TASKS_DISTMM] = hbp__plan_distmm,
};

/* Every published way, which the search starts from. */
enum { GIVENS = HBP_TASKS_DISTMM - HBP_TASKS_PAPER + 1 };

/* Schedules to choose from: the search's and the published waves, each with all sizes and with those that
 * tile domains. */
enum { ALL_SIZES = 2, CANDIDATES = 4 };

/* Time that fetching states adds to each of the steps over which it is paid, all GPUs fetching at once. */
static int64_t fetch_time(const planning *p, int64_t bytes)
{
    const hbp_machine_fields *fields = &p->machine->fields;
    double link = p->gpus > p->domain_gpus ? fields->network_bytes_per_s : fields->nvlink_bytes_per_s;
    return link > 0 ? hbp__round_i64((double)bytes / (link * p->gpus * HBP__KEEP_STEPS) * 1e9) : 0;
}

/* Simulated time of a schedule, transfers and gradients included, and states fetched. */
static hbp_status run_time(planning *p, const hbp_task_schedule *schedule, int64_t *ns)
{
    hbp_task_run *run = NULL;
    hbp_task_run_summary summary = {.struct_size = sizeof summary};
    HBP__TRY(hbp_simulate_tasks(p->context, p->graph, p->machine, schedule, NULL, &run));
    hbp_status status = hbp_task_run_get_summary(p->context, run, &summary);
    hbp_task_run_free(run);
    *ns = hbp__add_saturating(summary.total_ns, fetch_time(p, schedule->summary.fetched_bytes));
    return status;
}

/* Keeps `schedule` in *best when it runs faster than the one there, else frees it. */
static hbp_status keep_faster(planning *p, hbp_task_schedule *schedule, hbp_task_schedule **best,
                              int64_t *best_ns)
{
    int64_t ns = 0;
    hbp_status status = run_time(p, schedule, &ns);
    if (status < 0 || (*best && ns >= *best_ns)) {
        hbp_task_schedule_free(schedule);
        return status;
    }
    hbp_task_schedule_free(*best);
    *best = schedule;
    *best_ns = ns;
    return HBP_OK;
}

/* One of the candidates, placed in one of the ways. */
typedef struct choice {
    const hbp__task_problem *problem;
    hbp__task_slices *slices;
    int32_t in_waves; /* the published waves */
    int32_t gradient_part;
} choice;

/* Places slices and keeps the schedule when it is faster, and then the choice in *chosen. Slices that do not
 * fit in memory are passed over. */
static hbp_status consider(planning *p, const choice *one, int32_t hasty, hbp_task_schedule **best,
                           int64_t *best_ns, choice *chosen)
{
    hbp_task_schedule *schedule = NULL;
    const hbp_task_schedule *before = *best;
    hbp__task_problem problem = *one->problem;
    problem.gradient_part = one->gradient_part;
    problem.hasty = hasty;
    hbp_status status = place(p, &problem, one->slices, one->in_waves, &schedule);
    if (status == HBP_E_INFEASIBLE)
        return HBP_OK;
    if (status >= 0)
        status = keep_faster(p, schedule, best, best_ns);
    if (*best != before)
        *chosen = *one;
    return status;
}

/* The schedule before, as it stands, where nothing has changed: the same graph, machine, way and placement,
 * and memory that suffices. Its bytes kept and fetched are then those of staying. */
static hbp_status stay(planning *p, hbp_task_schedule **out)
{
    const hbp_task_schedule *previous = p->options.previous;
    if (!previous || previous->graph_digest != hbp__graph_digest(p->graph) ||
        previous->summary.mode != p->options.mode || previous->summary.placement != p->options.placement ||
        previous->summary.gpus != p->gpus || previous->summary.domain_gpus != p->domain_gpus ||
        previous->summary.peak_bytes > p->limit_bytes)
        return HBP_OK;
    hbp_status status = hbp_task_schedule_validate(p->context, previous, p->graph, p->machine);
    if (status == HBP_E_INVALID)
        return HBP_OK; /* a schedule that no planner made */
    HBP__TRY(status);
    hbp__task_slices slices = {.memory = p->context->memory};
    HBP__TRY(hbp__task_schedule_slices(p->context, previous, &slices));
    int32_t *ranks = new_ranks(p, &slices);
    status = ranks ? HBP_OK : HBP_E_NO_MEMORY;
    for (int64_t s = 0, at = 0; ranks && s < slices.count; at += slices.slice[s++].gpus)
        memcpy(ranks + at, previous->group_ranks + previous->group_offsets[previous->slice_groups[s]],
               (size_t)slices.slice[s].gpus * sizeof *ranks);
    if (status >= 0)
        status = build(p, &slices, ranks, out);
    hbp__delete(&p->context->memory, ranks);
    hbp__task_slices_close(&slices);
    return status;
}

/* The search's slices and the published waves of one problem; the search starts from `givens` published ways.
 */
static hbp_status make_slices(planning *p, const hbp__task_problem *problem, int32_t effort, int32_t givens,
                              hbp__task_slices *own, hbp__task_slices *waves)
{
    hbp__task_slices given[GIVENS];
    const hbp__task_slices *all[GIVENS];
    hbp_status status = HBP_OK;
    for (int i = 0; i < givens; i++) {
        given[i] = (hbp__task_slices){.memory = p->context->memory};
        all[i] = &given[i];
        if (status >= 0)
            status = planners[HBP_TASKS_PAPER + i](p->context, problem, &given[i]);
    }
    if (status >= 0)
        status = hbp__plan_overlap(p->context, problem, all, givens, p->bounds.bound_ns, effort, own);
    *waves = given[0];
    for (int i = 1; i < givens; i++)
        hbp__task_slices_close(&given[i]);
    return status;
}

/* Ways to weigh gradients when placing: one domain has no rings that cross. */
static int32_t count_parts(const planning *p)
{
    return p->options.placement == HBP_PLACE_FLOWS && p->gpus > p->domain_gpus ? 2 : 1;
}

/* Of the candidates that take no longer than the published waves, the one that runs fastest, for some move
 * more bytes than others; where none of them fits in memory, of the others. All are placed hastily, the one
 * chosen then with care; the published waves as well, as mode paper would. */
static hbp_status choose(planning *p, const hbp__task_problem *const *problems, hbp__task_slices *candidates,
                         int count, hbp_task_schedule **out)
{
    static const int32_t parts[] = {0, HEAVY_GRADIENTS};
    int64_t ns = 0, most = candidates[1].makespan_ns;
    choice chosen = {NULL, NULL, 0, 0};
    for (int longer = 0; longer < 2 && !*out; longer++)
        for (int i = 0; i < count; i++)
            for (int k = 0; k < count_parts(p) && (candidates[i].makespan_ns > most) == longer; k++) {
                choice one = {problems[i / ALL_SIZES], &candidates[i], i % ALL_SIZES, parts[k]};
                HBP__TRY(consider(p, &one, 1, out, &ns, &chosen));
            }
    choice published = {problems[0], &candidates[1], 1, 0};
    if (chosen.slices)
        HBP__TRY(consider(p, &chosen, 0, out, &ns, &chosen));
    int done = chosen.slices == published.slices && chosen.gradient_part == 0;
    return done ? HBP_OK : consider(p, &published, 0, out, &ns, &chosen);
}

/* Whether every size tiles domains, so that those that do are all. */
static int same_sizes(const hbp__scaling *a, const hbp__scaling *b)
{
    for (int32_t i = 0; i < a->count; i++)
        if (a->curve[i].sizes != b->curve[i].sizes)
            return 0;
    return 1;
}

/* Sizes that tile are fewer, and so need less of a search: a quarter of it. */
static int32_t effort_of(const planning *p, int candidate)
{
    return candidate < ALL_SIZES || p->options.effort < 3 ? p->options.effort : p->options.effort - 2;
}

static hbp_status plan_own(planning *p, const hbp__task_problem *problem, hbp_task_schedule **out)
{
    hbp__scaling tiling;
    hbp__task_slices candidates[CANDIDATES];
    for (int i = 0; i < CANDIDATES; i++)
        candidates[i] = (hbp__task_slices){.memory = p->context->memory};
    HBP__TRY(hbp__scaling_narrow(p->context, &p->meta, problem->scaling, 1, p->domain_gpus, &tiling));
    hbp__task_problem tiled = *problem;
    tiled.scaling = &tiling;
    const hbp__task_problem *problems[] = {problem, &tiled};
    hbp_status status = HBP_OK;
    int count = same_sizes(problem->scaling, &tiling) ? ALL_SIZES : CANDIDATES;
    for (int i = 0; i < count && status >= 0; i += ALL_SIZES)
        status = make_slices(p, problems[i / ALL_SIZES], effort_of(p, i), i < ALL_SIZES ? GIVENS : 1,
                             &candidates[i], &candidates[i + 1]);
    if (status >= 0)
        status = choose(p, problems, candidates, count, out);
    for (int i = 0; i < CANDIDATES; i++)
        hbp__task_slices_close(&candidates[i]);
    hbp__scaling_close(&tiling);
    return status;
}

static hbp_status plan_published(planning *p, const hbp__task_problem *problem, hbp_task_schedule **out)
{
    hbp__task_slices slices = {.memory = p->context->memory};
    hbp_status status = planners[p->options.mode](p->context, problem, &slices);
    if (status >= 0)
        status = place(p, problem, &slices, p->options.mode == HBP_TASKS_PAPER, out);
    hbp__task_slices_close(&slices);
    return status;
}

/* Plans with no operator on fewer than `least` GPUs, where it may run on as many. */
static hbp_status plan_least(planning *p, const hbp__scaling *scaling, int32_t least, hbp_task_schedule **out)
{
    hbp__scaling wide = {.memory = p->context->memory};
    if (least > 1)
        HBP__TRY(hbp__scaling_narrow(p->context, &p->meta, scaling, least, 0, &wide));
    hbp__task_problem problem = {.graph = p->graph,
                                 .meta = &p->meta,
                                 .scaling = least > 1 ? &wide : scaling,
                                 .gpus = p->gpus,
                                 .domain_gpus = p->domain_gpus,
                                 .limit_bytes = p->limit_bytes,
                                 .seed = p->options.seed};
    hbp_status status =
        p->options.mode == HBP_TASKS_OVERLAP ? plan_own(p, &problem, out) : plan_published(p, &problem, out);
    hbp__scaling_close(&wide);
    return status;
}

/* On few GPUs an operator's states and activations fill them: where memory is short, wider and wider. */
static hbp_status plan_wider(planning *p, const hbp__scaling *scaling, hbp_task_schedule **out)
{
    for (int32_t least = 1;; least = least > p->gpus / 2 ? p->gpus : 2 * least) {
        hbp_status status = plan_least(p, scaling, least, out);
        if (*out || (status < 0 && status != HBP_E_INFEASIBLE))
            return status;
        if (least == p->gpus)
            return HBP_E_INFEASIBLE; /* placement left the message */
    }
}

static hbp_status plan(planning *p, hbp_task_schedule **out)
{
    hbp__scaling scaling = {.memory = p->context->memory};
    HBP__TRY(hbp__meta_graph_open(p->context, p->graph, &p->meta));
    HBP__TRY(hbp__scaling_open(p->context, p->graph, &p->meta, p->gpus, &scaling));
    hbp_status status = HBP_OK;
    p->level_ns = hbp__new(&p->context->memory, (uint64_t)p->meta.levels, sizeof *p->level_ns);
    if (!p->level_ns)
        status = hbp__fail_memory(p->context, "the times of levels");
    if (status >= 0)
        status = hbp__task_bound(p->context, &p->meta, &scaling, &p->bounds, p->level_ns);
    if (status >= 0)
        status = stay(p, out);
    if (status >= 0 && !*out)
        status = plan_wider(p, &scaling, out);
    hbp__scaling_close(&scaling);
    return status;
}

hbp_status hbp_plan_tasks(hbp_context *context, const hbp_graph *graph, const hbp_machine *machine,
                          const hbp_tasks_options *options, hbp_task_schedule **out)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, out, "out"));
    *out = NULL;
    HBP__TRY(hbp__require(context, graph, "graph"));
    HBP__TRY(hbp__require(context, machine, "machine"));
    planning p = {.context = context, .graph = graph, .machine = machine};
    p.meta.memory = context->memory;
    HBP__TRY(read_options(&p, options));
    HBP__TRY(read_machine(&p));
    HBP__TRY(hbp_graph_check(context, graph));
    hbp_task_schedule *schedule = NULL;
    hbp_status status = plan(&p, &schedule);
    hbp__delete(&context->memory, p.level_ns);
    hbp__meta_graph_close(&p.meta);
    if (status < 0) {
        hbp_task_schedule_free(schedule);
        return status;
    }
    *out = schedule;
    return HBP_OK;
}
