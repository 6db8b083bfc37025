/* How far a cost is off what a run measured; for executor.sh. hbp fit says so, too, and refuses runs that are
 * too much alike to fit.
 *
 *   timeline_errors TIMELINE COST.json
 *   timeline_errors TIMELINE MODEL MACHINE      no ZeRO, fused cross-entropy, as the executor runs
 *
 * Prints packs, median and 95th percentile of their errors and of steps', measured and predicted ns. */
#include <stdio.h>

#include "common.h"
#include "hbp/io.h"

static hbp_cost *make_cost(hbp_context *context, const char *model_text, const char *machine_text)
{
    hbp_model *model = NULL;
    hbp_machine *machine = NULL;
    hbp_cost *cost = NULL;
    bench_need(context, hbp_model_create_text(context, model_text, &model), model_text);
    bench_need(context, hbp_machine_create_text(context, machine_text, &machine), machine_text);
    hbp_cost_options options = {.struct_size = sizeof options};
    options.zero_stage = HBP_ZERO_NONE;
    options.fused_cross_entropy = 1;
    bench_need(context, hbp_cost_create(context, model, machine, &options, &cost), "the cost");
    hbp_model_free(model);
    hbp_machine_free(machine);
    return cost;
}

int main(int argc, char **argv)
{
    if (argc != 3 && argc != 4) {
        fprintf(stderr, "usage: timeline_errors TIMELINE COST.json | TIMELINE MODEL MACHINE\n");
        return 2;
    }
    hbp_context *context = bench_context(NULL);
    hbp_timeline *timeline = NULL;
    hbp_cost *cost = NULL;
    bench_need(context, hbp_timeline_load(context, argv[1], &timeline), argv[1]);
    if (argc == 3)
        bench_need(context, hbp_cost_load(context, argv[2], &cost), argv[2]);
    else
        cost = make_cost(context, argv[2], argv[3]);
    hbp_timeline_report r = {.struct_size = sizeof r};
    bench_need(context, hbp_timeline_compare(context, timeline, cost, &r), argv[1]);
    printf("%lld %.6f %.6f %.6f %.6f %lld %lld\n", (long long)r.packs, r.median_pack_error, r.p95_pack_error,
           r.median_step_error, r.p95_step_error, (long long)r.measured_ns, (long long)r.predicted_ns);
    hbp_cost_free(cost);
    hbp_timeline_free(timeline);
    hbp_context_free(context);
    return 0;
}
