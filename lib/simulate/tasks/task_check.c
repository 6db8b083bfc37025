/* A schedule of tasks against the graph and the machine it was made for. Every check is of values that
 * earlier ones have made safe to use, so that columns from a hostile file do no harm. */
#include "simulate/tasks/task_check.h"

#include "base/scratch.h"

static hbp_status check_origin(const hbp__task_checking *c)
{
    const hbp_task_summary *summary = &c->schedule->summary;
    uint64_t digest = hbp__graph_digest(c->graph);
    if (c->schedule->graph_digest != digest)
        return hbp__fail(c->context, HBP_E_INVALID,
                         "the schedule was made for a graph with digest %016llx; this one has %016llx",
                         (unsigned long long)c->schedule->graph_digest, (unsigned long long)digest);
    if (summary->gpus != c->gpus || summary->domain_gpus != c->domain_gpus)
        return hbp__fail(c->context, HBP_E_INVALID,
                         "the schedule is for %d GPUs in domains of %d, the machine has %d in domains of %d",
                         (int)summary->gpus, (int)summary->domain_gpus, (int)c->gpus, (int)c->domain_gpus);
    return HBP_OK;
}

static hbp_status check_scaled(hbp__task_checking *c)
{
    HBP__TRY(hbp__scaling_open(c->context, c->graph, &c->meta, c->gpus, &c->scaling));
    hbp_status status = hbp__task_check_tables(c);
    if (status >= 0)
        status = hbp__task_check_slices(c);
    if (status >= 0)
        status = hbp__task_check_sums(c);
    hbp__scaling_close(&c->scaling);
    return status;
}

hbp_status hbp__task_check(hbp_context *context, const hbp_task_schedule *schedule, const hbp_graph *graph,
                           const hbp_machine *machine)
{
    hbp__task_checking c = {.context = context, .schedule = schedule, .graph = graph};
    HBP__TRY(hbp__task_machine(context, machine, &c.gpus, &c.domain_gpus));
    HBP__TRY(check_origin(&c));
    HBP__TRY(hbp__meta_graph_open(context, graph, &c.meta));
    hbp_status status = check_scaled(&c);
    hbp__meta_graph_close(&c.meta);
    return status;
}

hbp_status hbp_task_schedule_validate(hbp_context *context, const hbp_task_schedule *schedule,
                                      const hbp_graph *graph, const hbp_machine *machine)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, schedule, "schedule"));
    HBP__TRY(hbp__require(context, graph, "graph"));
    HBP__TRY(hbp__require(context, machine, "machine"));
    int64_t mark = hbp__scratch_mark(context);
    return hbp__leave(context, mark, hbp__task_check(context, schedule, graph, machine));
}
