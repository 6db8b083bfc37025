/* hbp_executor measure: packs of many kinds on the ranks it was started with, written as a timeline for hbp
 * fit. */
#include <hbp/hbp.h>
#include <hbp/io.h>
#include <stdio.h>

#include "commands.h"
#include "ranks.h"
#include "walk/calibrate.h"

typedef struct inputs {
    const ex_options *options;
    hbp_context *context;
    hbp_model *model;
    ex_shape shape;
} inputs;

static void print_pack(void *user, int64_t tokens, int32_t sp, int32_t recompute, int64_t documents,
                       int64_t ns)
{
    (void)user;
    printf("%8lld tokens in %5lld document%s on %2d rank%s, %2d layers recomputed: %9.3f ms\n",
           (long long)tokens, (long long)documents, documents == 1 ? " " : "s", (int)sp, sp == 1 ? " " : "s",
           (int)recompute, (double)ns / 1e6);
    fflush(stdout);
}

static int write_timeline(const inputs *in, const ex_rank *rank, const ex_record *record, ex_fault *fault)
{
    hbp_timeline *timeline = NULL;
    hbp_context *context = NULL;
    if (hbp_context_create(NULL, &context) < 0)
        return ex_fail(fault, "out of memory");
    int failed = ex_record_finish(record, context, rank->comm->ranks, rank->device->name, &timeline, fault);
    if (!failed && hbp_timeline_save(context, timeline, in->options->output) < 0)
        failed = ex_fail(fault, "%s", hbp_context_message(context));
    if (!failed)
        printf("wrote %s: %lld packs on %d rank%s (%s, %s); hbp fit %s learns from it\n", in->options->output,
               (long long)record->count, (int)rank->comm->ranks, rank->comm->ranks == 1 ? "" : "s",
               rank->comm->name, rank->device->name, in->options->output);
    hbp_timeline_free(timeline);
    hbp_context_free(context);
    return failed;
}

static int measure_rank(ex_rank *rank)
{
    const inputs *in = rank->user;
    ex_record record = {0};
    ex_calibrate_options o = {.model = in->model,
                              .shape = &in->shape,
                              .sharers = rank->sharers,
                              .max_tokens = in->options->max_tokens,
                              .repeat = (int32_t)in->options->repeat,
                              .clock = (int32_t)in->options->clock,
                              .seconds = in->options->seconds > 0 ? in->options->seconds : 60,
                              .on_pack = rank->comm->rank == 0 ? print_pack : NULL};
    int failed = ex_calibrate(&o, rank->device, rank->comm, &record, &rank->fault);
    if (!failed && rank->comm->rank == 0)
        failed = write_timeline(in, rank, &record, &rank->fault);
    ex_record_free(&record);
    return failed;
}

int ex_measure_command(const ex_options *options)
{
    inputs in = {.options = options};
    ex_fault fault = {0};
    int status = 1;
    if (hbp_context_create(NULL, &in.context) < 0)
        ex_fail(&fault, "out of memory");
    else if ((in.model = ex_model_read(in.context, options->model, &fault)) &&
             ex_shape_from_model(in.model, &in.shape, &fault) == 0)
        status = ex_ranks_run(options, measure_rank, &in);
    if (fault.failed)
        fprintf(stderr, "hbp_executor: %s\n", fault.text);
    hbp_model_free(in.model);
    hbp_context_free(in.context);
    return status;
}
