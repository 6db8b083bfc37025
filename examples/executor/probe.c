/* hbp_executor probe: measures this machine on the ranks it was started with, and writes a profile. */
#include "probe/probe.h"

#include <hbp/hbp.h>
#include <hbp/io.h>
#include <stdio.h>

#include "commands.h"
#include "ranks.h"

static int write_profile(const ex_options *o, hbp_context *context, const ex_rank *rank,
                         const hbp_machine *machine, ex_fault *fault)
{
    if (hbp_machine_save(context, machine, o->output) < 0)
        return ex_fail(fault, "%s", hbp_context_message(context));
    hbp_machine_fields f = {.struct_size = sizeof f};
    if (hbp_machine_get_fields(context, machine, &f) < 0)
        return ex_fail(fault, "%s", hbp_context_message(context));
    hbp_machine_rate rate = {.struct_size = sizeof rate};
    long long rates = 0;
    while (hbp_machine_get_rate(machine, rates, &rate))
        rates++;
    printf("wrote %s: %s, %d rank%s (%s), %.3g TFLOP/s in products, %lld rates\n", o->output,
           hbp_machine_get_name(machine), (int)rank->comm->ranks, rank->comm->ranks == 1 ? "" : "s",
           rank->comm->name, f.flops_per_s * f.gemm_efficiency / 1e12, rates);
    return 0;
}

static int probe_rank(ex_rank *rank)
{
    const ex_options *o = rank->user;
    ex_probe_options options = {.budget_s = o->seconds, .sharers = rank->sharers};
    hbp_context *context = NULL;
    hbp_machine *machine = NULL;
    if (hbp_context_create(NULL, &context) < 0)
        return ex_fail(&rank->fault, "out of memory");
    int failed = ex_probe(rank->device, rank->comm, &options, context, &machine, &rank->fault);
    if (failed && rank->device->fault.failed)
        ex_fail(&rank->fault, "%s", rank->device->fault.text);
    if (failed && rank->comm->fault.failed)
        ex_fail(&rank->fault, "%s", rank->comm->fault.text);
    if (!failed && machine)
        failed = write_profile(o, context, rank, machine, &rank->fault);
    hbp_machine_free(machine);
    hbp_context_free(context);
    return failed;
}

int ex_probe_command(const ex_options *options)
{
    return ex_ranks_run(options, probe_rank, (void *)(uintptr_t)options);
}
