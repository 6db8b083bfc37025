/* hbp_plan_tasks: contraction, curves, bounds, slices, ranks, one after the other. */
#include "base/methods.h"
#include "hbp/tasks.h"

#include <string.h>

#include "base/checked.h"
#include "base/options.h"
#include "base/quantity.h"
#include "base/scratch.h"
#include "cost/cost.h"
#include "data/graph/graph_check.h"
#include "data/machine/machine.h"
#include "tasks/planning.h"
#include "tasks/tuning.h"

#define MOST_GPUS 65536

static hbp_status read_options(hbp__planning *p, const hbp_tasks_options *given)
{
    hbp_tasks_options *o = &p->options;
    HBP__TRY(hbp__options_read(p->context, o, sizeof *o, given, "hbp_tasks_options"));
    if (o->effort == 0)
        o->effort = HBP__TASKS_EFFORT;
    return HBP_OK;
}

static hbp_status read_limit(hbp__planning *p, const hbp_machine_fields *fields)
{
    const hbp_tasks_options *o = &p->options;
    if (o->limit_bytes) {
        p->limit_bytes = o->limit_bytes < 0 ? INT64_MAX : o->limit_bytes;
        return HBP_OK;
    }
    if (fields->hbm_bytes < 1)
        return hbp__fail(p->context, HBP_E_INVALID,
                         "the machine's hbm_bytes is not known; set it, for example hbm_bytes=80GiB, or give "
                         "limit_bytes (-1: no limit)");
    int64_t reserve = hbp__reserve(o->reserve_bytes);
    p->limit_bytes = fields->hbm_bytes - reserve;
    if (p->limit_bytes < 1)
        return hbp__fail(p->context, HBP_E_INFEASIBLE,
                         "reserve_bytes keeps %s free on each GPU, which has %s: nothing is left",
                         hbp__say_bytes(reserve).text, hbp__say_bytes(fields->hbm_bytes).text);
    return HBP_OK;
}

static hbp_status read_machine(hbp__planning *p)
{
    HBP__TRY(hbp__task_machine(p->context, p->machine, &p->gpus, &p->domain_gpus));
    if (p->gpus > MOST_GPUS)
        return hbp__fail(p->context, HBP_E_INVALID, "the machine has %d GPUs; at most %d are planned for",
                         (int)p->gpus, MOST_GPUS);
    return read_limit(p, &p->machine->fields);
}

/* One of the published methods. */
static hbp_status plan_published(hbp__planning *p, int32_t method, const hbp__task_problem *problem,
                                 hbp_task_schedule **best, int64_t *best_ns)
{
    hbp__task_slices slices = {.memory = p->context->memory};
    hbp_task_schedule *schedule = NULL;
    hbp_status status = hbp__planning_slices(p, method, problem, &slices);
    if (status >= 0)
        status = hbp__planning_place(p, problem, &slices, method == HBP__TASKS_SPINDLE, &schedule);
    hbp__task_slices_close(&slices);
    return status < 0 ? status : hbp__planning_keep(p, schedule, 1, best, best_ns);
}

/* What plan_range found. */
typedef struct found {
    hbp_task_schedule *best; /* NULL: none */
    int64_t best_ns;
    int32_t published; /* the method's own slices fit; for HBP__TASKS_OVERLAP: the published waves */
} answer;

/* Plans with sizes of a range alone. Nothing happens where that does not fit in memory. */
static hbp_status plan_range(hbp__planning *p, int32_t method, const hbp__scaling *scaling,
                             const hbp__size_range *range, int32_t short_of_memory, answer *found)
{
    hbp__scaling some;
    HBP__TRY(hbp__scaling_narrow(p->context, &p->meta, scaling, range, &some));
    hbp__task_problem problem = {.graph = p->graph,
                                 .meta = &p->meta,
                                 .scaling = &some,
                                 .gpus = p->gpus,
                                 .domain_gpus = p->domain_gpus,
                                 .limit_bytes = p->limit_bytes,
                                 .seed = p->options.seed};
    hbp_status status;
    if (method == HBP__TASKS_OVERLAP) {
        status =
            hbp__planning_own(p, &problem, short_of_memory, &found->best, &found->best_ns, &found->published);
    } else {
        status = plan_published(p, method, &problem, &found->best, &found->best_ns);
        found->published = status >= 0;
    }
    hbp__scaling_close(&some);
    return status == HBP_E_INFEASIBLE ? HBP_OK : status;
}

/* Larger sizes, which share out activations and sharded states, and smaller ones, which hold fewer copies of
 * the rest, further and further, until something fits. */
static hbp_status plan_ranges(hbp__planning *p, int32_t method, const hbp__scaling *scaling, answer *found)
{
    for (int32_t k = 1; k <= p->gpus; k *= 2) {
        const hbp__size_range wide = {k, p->gpus, 0}, slim = {1, p->gpus / k, 0};
        HBP__TRY(plan_range(p, method, scaling, &wide, 1, found));
        if (k > 1 && !found->published)
            HBP__TRY(plan_range(p, method, scaling, &slim, 1, found));
        if (found->published || (method == HBP__TASKS_OVERLAP && found->best))
            break;
    }
    return HBP_OK;
}

/* What cannot be: every operator's activations, and every set of weights once on the fewest GPUs that each of
 * its operators runs on, need more than all GPUs have. */
static hbp_status check_bytes(hbp__planning *p, const hbp__scaling *scaling)
{
    int64_t sum = 0, all = hbp__mul_saturating(p->limit_bytes, p->gpus);
    int64_t mark = hbp__scratch_mark(p->context);
    int64_t *states = hbp__take_zero(p->context, (uint64_t)p->graph->parameters.count, sizeof *states);
    HBP__TRY(hbp__scratch_check(p->context, "the bytes of weights"));
    for (int32_t i = 0; i < p->graph->operator_count; i++) {
        const hbp__operator *o = &p->graph->operators[i];
        int64_t least = hbp__meta_curve(scaling, p->meta.meta_of[i])->size[0];
        int64_t bytes = hbp__add_saturating(hbp__mul_saturating(o->state_bytes, least), o->sharded_bytes);
        int64_t *most = &states[o->parameters];
        sum = hbp__add_saturating(sum, o->activation_bytes);
        if (bytes > *most) {
            sum = hbp__add_saturating(sum, bytes - *most);
            *most = bytes;
        }
    }
    hbp__scratch_release(p->context, mark);
    if (sum <= all)
        return HBP_OK;
    return hbp__fail(
        p->context, HBP_E_INFEASIBLE,
        "states and activations need at least %s; %d GPUs of %s have %s: at least %lld such GPUs are "
        "needed",
        hbp__say_bytes(sum).text, (int)p->gpus, hbp__say_bytes(p->limit_bytes).text, hbp__say_bytes(all).text,
        (long long)hbp__ceil_div(sum, p->limit_bytes));
}

static hbp_status fail_anywhere(hbp__planning *p, const hbp__misfit *wanted)
{
    char message[HBP__MESSAGE_BYTES];
    hbp_status status = hbp__misfit_fail(p->context, wanted);
    memcpy(message, p->context->message, sizeof message);
    return hbp__fail(
        p->context, status,
        "%.300s; nothing was found on more or fewer GPUs either: give more GPUs or memory, or share "
        "out states (sharded_bytes)",
        message);
}

/* All sizes; then, where memory is short, others. Where the published waves do not fit with the sizes of the
 * answer, they are tried with others: the answer is not to be longer than they. */
static hbp_status plan_sizes(hbp__planning *p, const hbp__scaling *scaling, answer *found)
{
    int32_t method = hbp__tasks_method(p->options.method);
    HBP__TRY(check_bytes(p, scaling));
    HBP__TRY(plan_range(p, method, scaling, &(hbp__size_range){1, p->gpus, 0}, 0, found));
    if (found->published)
        return HBP_OK;
    const hbp__misfit wanted = p->misfit; /* of what was wanted most */
    if (!found->best)
        HBP__TRY(plan_ranges(p, method, scaling, found));
    if (method == HBP__TASKS_OVERLAP && !found->published)
        HBP__TRY(plan_ranges(p, HBP__TASKS_SPINDLE, scaling, found));
    return found->best ? HBP_OK : fail_anywhere(p, &wanted);
}

static hbp_status plan_any(hbp__planning *p, const hbp__scaling *scaling, hbp_task_schedule **out)
{
    answer found = {NULL, 0, 0};
    hbp_status status = plan_sizes(p, scaling, &found);
    *out = found.best;
    return status;
}

static hbp_status plan_graph(hbp__planning *p, hbp_task_schedule **out)
{
    hbp__scaling scaling = {.memory = p->context->memory};
    HBP__TRY(hbp__meta_graph_open(p->context, p->graph, &p->meta));
    HBP__TRY(hbp__scaling_open(p->context, p->graph, &p->meta, p->gpus, &scaling));
    p->scaling = &scaling;
    p->level_ns = hbp__take(p->context, (uint64_t)p->meta.levels, sizeof *p->level_ns);
    hbp_status status = hbp__scratch_check(p->context, "the times of levels");
    if (status >= 0)
        status = hbp__task_bound(p->context, &p->meta, &scaling, &p->bounds, p->level_ns);
    if (status >= 0)
        status = hbp__planning_reuse(p, out);
    if (status >= 0 && !*out)
        status = plan_any(p, &scaling, out);
    hbp__scaling_close(&scaling);
    return status;
}

static hbp_status plan_tasks(hbp_context *context, const hbp_graph *graph, const hbp_machine *machine,
                             const hbp_tasks_options *options, hbp_task_schedule **out)
{
    HBP__TRY(hbp__require(context, graph, "graph"));
    HBP__TRY(hbp__require(context, machine, "machine"));
    hbp__planning p = {.context = context, .graph = graph, .machine = machine};
    p.meta.memory = context->memory;
    HBP__TRY(read_options(&p, options));
    HBP__TRY(read_machine(&p));
    HBP__TRY(hbp__graph_check(context, graph));
    hbp_task_schedule *schedule = NULL;
    hbp_status status = plan_graph(&p, &schedule);
    hbp__meta_graph_close(&p.meta);
    if (status < 0) {
        hbp_task_schedule_free(schedule);
        return status;
    }
    *out = schedule;
    return HBP_OK;
}

hbp_status hbp_plan_tasks(hbp_context *context, const hbp_graph *graph, const hbp_machine *machine,
                          const hbp_tasks_options *options, hbp_task_schedule **out)
{
    HBP__ENTER_OUT(context, out);
    int64_t mark = hbp__scratch_mark(context);
    return hbp__leave(context, mark, plan_tasks(context, graph, machine, options, out));
}
