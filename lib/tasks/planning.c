/* From slices to a schedule: ranks, waves, the summary, the simulated time that decides; and the schedule
 * before where it still holds. */
#include "tasks/planning.h"

#include <string.h>

#include "base/checked.h"
#include "base/methods.h"
#include "base/scratch.h"
#include "data/machine/machine.h"
#include "data/tasks/task_run.h"
#include "simulate/tasks/task_check.h"
#include "simulate/tasks/tasks.h"
#include "tasks/baselines/baselines.h"
#include "tasks/place/place.h"
#include "tasks/tuning.h"
#include "tasks/waves/waves.h"

hbp_status hbp__planning_slices(hbp__planning *p, int32_t method, const hbp__task_problem *problem,
                                hbp__task_slices *slices)
{
    switch (method) {
    case HBP__TASKS_SPINDLE:
        return hbp__plan_waves(p->context, problem, slices);
    case HBP__TASKS_SEQUENTIAL:
        return hbp__plan_sequential(p->context, problem, slices);
    case HBP__TASKS_UNIFORM:
        return hbp__plan_uniform(p->context, problem, slices);
    case HBP__TASKS_OPTIMUS:
        return hbp__plan_optimus(p->context, problem, slices);
    case HBP__TASKS_DISTMM:
        return hbp__plan_distmm(p->context, problem, slices);
    default:
        return hbp__fail(p->context, HBP_E_INTERNAL, "method %d has no slices of its own", (int)method);
    }
}

static hbp_status take_ranks(hbp__planning *p, const hbp__task_slices *slices, int32_t **ranks)
{
    int64_t places = 0;
    for (int64_t i = 0; i < slices->count; i++)
        places += slices->slice[i].gpus;
    *ranks = hbp__take(p->context, (uint64_t)places, sizeof **ranks);
    return hbp__scratch_check(p->context, "the ranks of slices");
}

/* The schedule of slices on their ranks. */
static hbp_status build_schedule(hbp__planning *p, const hbp__task_slices *slices, const int32_t *ranks,
                                 hbp_task_schedule **out)
{
    hbp_task_summary summary = {.struct_size = sizeof summary,
                                .method = p->options.method,
                                .placement_method = p->options.placement_method,
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

static hbp_status place_and_build(hbp__planning *p, const hbp__task_problem *problem,
                                  hbp__task_slices *slices, int32_t in_waves, hbp_task_schedule **out)
{
    int32_t *ranks;
    HBP__TRY(take_ranks(p, slices, &ranks));
    HBP__TRY(hbp__place_slices(p->context, problem, slices,
                               hbp__placement_method(p->options.placement_method), p->options.previous, ranks,
                               &p->misfit));
    if (hbp__tasks_method(p->options.method) == HBP__TASKS_OVERLAP && !in_waves)
        HBP__TRY(hbp__task_compact(p->context, problem, slices, ranks));
    if (!in_waves)
        HBP__TRY(hbp__task_waves(p->context, problem, slices, ranks));
    return build_schedule(p, slices, ranks, out);
}

hbp_status hbp__planning_place(hbp__planning *p, const hbp__task_problem *problem, hbp__task_slices *slices,
                               int32_t in_waves, hbp_task_schedule **out)
{
    int64_t mark = hbp__scratch_mark(p->context);
    return hbp__leave(p->context, mark, place_and_build(p, problem, slices, in_waves, out));
}

/* Time that fetching states adds to each of the steps over which it is paid, all GPUs fetching at once. */
static int64_t fetch_time(const hbp__planning *p, int64_t bytes)
{
    const hbp_machine_fields *fields = &p->machine->fields;
    double link = p->gpus > p->domain_gpus ? fields->network_bytes_per_s : fields->nvlink_bytes_per_s;
    return link > 0 ? hbp__round_i64((double)bytes / (link * p->gpus * HBP__REUSE_STEPS) * 1e9) : 0;
}

/* Simulated time of a schedule, transfers and gradients included, and states fetched. */
static hbp_status run_time(hbp__planning *p, const hbp_task_schedule *schedule, int64_t *ns)
{
    hbp_task_run *run = NULL;
    HBP__TRY(hbp__simulate_tasks(p->context, p->graph, p->machine, schedule, &run));
    *ns = hbp__add_saturating(run->summary.total_ns, fetch_time(p, schedule->summary.fetched_bytes));
    hbp_task_run_free(run);
    return HBP_OK;
}

hbp_status hbp__planning_keep(hbp__planning *p, hbp_task_schedule *schedule, int32_t published,
                              hbp_task_schedule **best, int64_t *best_ns)
{
    int64_t ns = 0;
    hbp_status status = run_time(p, schedule, &ns);
    int longer = published && *best && (*best)->summary.makespan_ns > schedule->summary.makespan_ns;
    if (status < 0 || (*best && ns >= *best_ns && !longer)) {
        hbp_task_schedule_free(schedule);
        return status;
    }
    hbp_task_schedule_free(*best);
    *best = schedule;
    *best_ns = ns;
    return HBP_OK;
}

static hbp_status build_again(hbp__planning *p, const hbp__task_slices *slices, hbp_task_schedule **out)
{
    const hbp_task_schedule *previous = p->options.previous;
    int64_t mark = hbp__scratch_mark(p->context);
    int32_t *ranks;
    HBP__TRY(take_ranks(p, slices, &ranks));
    for (int64_t s = 0, at = 0; s < slices->count; at += slices->slice[s++].gpus)
        memcpy(ranks + at, previous->group_ranks + previous->group_offsets[previous->slice_groups[s]],
               (size_t)slices->slice[s].gpus * sizeof *ranks);
    HBP__TRY(build_schedule(p, slices, ranks, out));
    hbp__scratch_release(p->context, mark);
    return HBP_OK;
}

hbp_status hbp__planning_reuse(hbp__planning *p, hbp_task_schedule **out)
{
    const hbp_task_schedule *previous = p->options.previous;
    if (!previous || previous->graph_digest != hbp__graph_digest(p->graph) ||
        previous->method != hbp__tasks_method(p->options.method) ||
        previous->placement != hbp__placement_method(p->options.placement_method) ||
        previous->summary.gpus != p->gpus || previous->summary.domain_gpus != p->domain_gpus ||
        previous->summary.peak_bytes > p->limit_bytes)
        return HBP_OK;
    int64_t mark = hbp__scratch_mark(p->context);
    hbp_status status =
        hbp__leave(p->context, mark, hbp__task_check(p->context, previous, p->graph, p->machine));
    if (status == HBP_E_INVALID)
        return hbp__forgive(p->context); /* a schedule that no planner made */
    HBP__TRY(status);
    hbp__task_slices slices = {.memory = p->context->memory};
    HBP__TRY(hbp__task_schedule_slices(p->context, previous, &slices));
    status = build_again(p, &slices, out);
    hbp__task_slices_close(&slices);
    return status;
}
