/* hbp_executor run: the plan, the model and the walk brought together, and what came of it printed by rank 0.
 */
#include <hbp/hbp.h>
#include <hbp/io.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/quantiles.h"
#include "commands.h"
#include "ranks.h"
#include "walk/agree.h"
#include "walk/check.h"
#include "walk/output.h"
#include "walk/walk.h"

/* What all ranks of a process share, read-only. */
typedef struct inputs {
    const ex_options *options;
    hbp_context *context;
    hbp_plan *plan;
    hbp_model *model;
    hbp_machine *profile;
    hbp_cost *cost;
    ex_shape shape;
    ex_tokens *tokens;
} inputs;

/* What rank 0 keeps for the end. */
typedef struct summary {
    const inputs *in;
    int is_first; /* rank 0 */
    int64_t steps, tokens;
    int64_t ns, packs_ns, reduce_ns, optimise_ns;
    double first_loss, last_loss;
} summary;

static int read_inputs(inputs *in, ex_fault *fault)
{
    const ex_options *o = in->options;
    if (hbp_context_create(NULL, &in->context) < 0)
        return ex_fail(fault, "out of memory");
    in->model = ex_model_read(in->context, o->model, fault);
    if (!in->model || ex_shape_from_model(in->model, &in->shape, fault) < 0)
        return -1;
    if (hbp_plan_load(in->context, o->plan, &in->plan) < 0 ||
        (o->profile && hbp_machine_load(in->context, o->profile, &in->profile) < 0) ||
        (o->cost && hbp_cost_load(in->context, o->cost, &in->cost) < 0))
        return ex_fail(fault, "%s", hbp_context_message(in->context));
    in->tokens = o->tokens ? ex_tokens_open(o->tokens, in->shape.vocab, (int32_t)o->end_token, fault)
                           : ex_tokens_draw((uint64_t)o->seed, in->shape.vocab, fault);
    return in->tokens ? ex_tokens_check(in->tokens, in->plan, fault) : -1;
}

static void free_inputs(inputs *in)
{
    ex_tokens_free(in->tokens);
    hbp_cost_free(in->cost);
    hbp_machine_free(in->profile);
    hbp_model_free(in->model);
    hbp_plan_free(in->plan);
    hbp_context_free(in->context);
}

/* The machine and the model that the plan's cost was made for, as far as the files given tell. */
static void warn_of_others(const inputs *in, const ex_device *device)
{
    hbp_cost_terms terms = {.struct_size = sizeof terms};
    if (in->cost && hbp_cost_get_terms(in->context, in->cost, &terms) >= 0 &&
        terms.layers != in->shape.layers)
        fprintf(stderr,
                "hbp_executor: warning: %s is of a model of %d layers, and this one has %d; its times will "
                "be off\n",
                in->options->cost, (int)terms.layers, (int)in->shape.layers);
    const char *names[2] = {in->profile ? hbp_machine_get_name(in->profile) : NULL,
                            in->cost ? hbp_cost_get_machine_name(in->cost) : NULL};
    const char *files[2] = {in->options->profile, in->options->cost};
    for (int i = 0; i < 2; i++)
        if (names[i] && names[i][0] && !ex_check_same_device(names[i], device->name))
            fprintf(stderr, "hbp_executor: warning: %s is of '%s', and this is '%s'; its times will be off\n",
                    files[i], names[i], device->name);
}

static void on_step(void *user, const ex_step *s)
{
    summary *sum = user;
    double seconds = (double)s->ns / 1e9;
    if (sum->steps++ == 0)
        sum->first_loss = s->loss;
    sum->last_loss = s->loss;
    sum->tokens += s->tokens;
    sum->ns += s->ns;
    sum->packs_ns += s->packs_ns;
    sum->reduce_ns += s->reduce_ns;
    sum->optimise_ns += s->optimise_ns;
    if (!sum->is_first)
        return;
    if (sum->in->options->json)
        printf(
            "{\"step\": %lld, \"loss\": %.17g, \"norm\": %.17g, \"samples\": %lld, \"tokens\": %lld, "
            "\"micro_batches\": %lld, \"seconds\": %.9f, \"packs_seconds\": %.9f, \"reduce_seconds\": %.9f, "
            "\"optimise_seconds\": %.9f, \"predicted_seconds\": %.9f}\n",
            (long long)s->step, s->loss, s->norm, (long long)s->samples, (long long)s->tokens,
            (long long)s->micro_batches, seconds, (double)s->packs_ns / 1e9, (double)s->reduce_ns / 1e9,
            (double)s->optimise_ns / 1e9, (double)s->predicted_ns / 1e9);
    else
        printf("step %lld: loss %.4f, norm %.3f, %lld samples, %lld tokens in %.3f s (packs %.3f, gradients "
               "%.3f, optimiser %.3f), predicted %.3g s\n",
               (long long)s->step, s->loss, s->norm, (long long)s->samples, (long long)s->tokens, seconds,
               (double)s->packs_ns / 1e9, (double)s->reduce_ns / 1e9, (double)s->optimise_ns / 1e9,
               (double)s->predicted_ns / 1e9);
    fflush(stdout);
}

/* Writes the timeline, and prints how far the plan's predictions were off. */
static int finish_record(const inputs *in, hbp_context *context, const ex_rank *rank, const ex_record *record,
                         ex_fault *fault)
{
    const ex_options *o = in->options;
    hbp_timeline *timeline = NULL;
    int failed = ex_record_finish(record, context, rank->comm->ranks, rank->device->name, &timeline, fault);
    if (!failed && o->timeline && hbp_timeline_save(context, timeline, o->timeline) < 0)
        failed = ex_fail(fault, "%s", hbp_context_message(context));
    hbp_timeline_report r = {.struct_size = sizeof r};
    if (!failed && in->cost && hbp_timeline_compare(context, timeline, in->cost, &r) < 0)
        failed = ex_fail(fault, "%s", hbp_context_message(context));
    hbp_timeline_free(timeline);
    double *errors = failed ? NULL : malloc((size_t)(record->count + 1) * sizeof *errors);
    if (!errors)
        return failed ? failed : ex_fail(fault, "no memory for %lld errors", (long long)record->count);
    int64_t count = 0;
    hbp_plan_view view = {.struct_size = sizeof view};
    (void)hbp_plan_get_view(in->plan, &view);
    for (int64_t i = 0; i < record->count; i++)
        if (record->samples[i] > 0) {
            double off = (double)view.pack_ns[record->pack[i]] / (double)record->time_ns[i] - 1;
            errors[count++] = off < 0 ? -off : off;
        }
    ex_sort_reals(errors, count);
    double median = count ? errors[(count + 1) / 2 - 1] : 0; /* as hbp_timeline_compare takes them */
    double p95 = count ? errors[(count * 95 + 99) / 100 - 1] : 0;
    free(errors);
    if (o->json) {
        printf("{\"packs\": %lld, \"median_pack_error\": %.6f, \"p95_pack_error\": %.6f, ", (long long)count,
               median, p95);
        if (in->cost)
            printf("\"cost\": {\"median_pack_error\": %.6f, \"p95_pack_error\": %.6f, \"median_step_error\": "
                   "%.6f, "
                   "\"p95_step_error\": %.6f, \"measured_idle\": %.6f, \"predicted_idle\": %.6f}, ",
                   r.median_pack_error, r.p95_pack_error, r.median_step_error, r.p95_step_error,
                   r.measured_idle, r.predicted_idle);
        printf("\"device\": \"%s\"}\n", rank->device->name);
    } else if (count && median > .9)
        printf("the plan's times are of another machine: they were off by %.1f %% in the median\n",
               100 * median);
    else if (count)
        printf("the plan's times of %lld packs were off by %.1f %% in the median, %.1f %% at the 95th "
               "percentile%s\n",
               (long long)count, 100 * median, 100 * p95,
               o->clock ? "; packs are timed by what processors spent on them, steps by the clock" : "");
    if (in->cost && !o->json)
        printf("%s: packs %.1f %% and %.1f %%, steps %.1f %% and %.1f %%; idle %.2f %%, predicted %.2f %%\n",
               o->cost, 100 * r.median_pack_error, 100 * r.p95_pack_error, 100 * r.median_step_error,
               100 * r.p95_step_error, 100 * r.measured_idle, 100 * r.predicted_idle);
    if (o->timeline && !o->json)
        printf("wrote %s: %lld packs; hbp fit %s learns from it\n", o->timeline, (long long)record->count,
               o->timeline);
    return 0;
}

static void print_summary(const summary *s, const ex_rank *rank)
{
    if (s->in->options->json || s->steps == 0)
        return;
    double parts = (double)(s->packs_ns + s->reduce_ns + s->optimise_ns);
    printf("%lld step%s on %d rank%s (%s, %s): loss %.4f to %.4f, %lld tokens, %.0f tokens/s; packs %.1f %%, "
           "gradients %.1f %%, optimiser %.1f %% of %.3f s\n",
           (long long)s->steps, s->steps == 1 ? "" : "s", (int)rank->comm->ranks,
           rank->comm->ranks == 1 ? "" : "s", rank->comm->name, rank->device->name, s->first_loss,
           s->last_loss, (long long)s->tokens, (double)s->tokens / ((double)s->ns / 1e9),
           100 * (double)s->packs_ns / parts, 100 * (double)s->reduce_ns / parts,
           100 * (double)s->optimise_ns / parts, (double)s->ns / 1e9);
}

static int prepare(const inputs *in, ex_rank *rank, ex_walk_options *w)
{
    const ex_options *o = in->options;
    hbp_plan_view view = {.struct_size = sizeof view};
    (void)hbp_plan_get_view(in->plan, &view);
    int64_t all = view.steps;
    int64_t first = o->step < 0 ? 0 : o->step;
    ex_check check = {.plan = in->plan,
                      .model = in->model,
                      .shape = &in->shape,
                      .ranks = rank->comm->ranks,
                      .sharers = rank->sharers,
                      .first_step = first,
                      .steps = o->steps > 0 && o->steps < all - first && !o->resume ? o->steps : all - first,
                      .recompute = (int32_t)o->recompute,
                      .unpacked = (int32_t)o->unpacked};
    if (rank->comm->rank == 0 && (ex_output_check_file(o->timeline, 0, &rank->fault) < 0 ||
                                  ex_output_check_file(o->save, 1, &rank->fault) < 0 ||
                                  ex_output_make_folder(o->gradients, &rank->fault) < 0))
        return -1;
    /* A cost that cannot judge the run is refused now, not after it. */
    for (int64_t p = 0; in->cost && !o->unpacked && p < view.packs; p++)
        if (hbp_cost_predict_pack_ns(in->cost, view.pack_sp[p], 0, 1, 1, 0) < 0)
            return ex_fail(&rank->fault, "%s does not allow SP %d, which pack %lld of the plan has", o->cost,
                           (int)view.pack_sp[p], (long long)p);
    if (ex_check_plan(&check, &rank->fault) < 0 ||
        ex_check_memory(&check, rank->device, &w->arena_bytes, &rank->fault) < 0)
        return -1;
    w->plan = in->plan;
    w->shape = &in->shape;
    w->tokens = in->tokens;
    w->first_step = o->step;
    w->steps = o->steps;
    w->seed = (uint64_t)o->seed;
    w->normaliser = (int32_t)o->normaliser;
    w->recompute = (int32_t)o->recompute;
    w->unpacked = (int32_t)o->unpacked;
    w->repeat = (int32_t)o->repeat;
    w->no_update = (int32_t)o->no_update;
    w->adam = (ex_adam){.learning_rate = (float)o->learning_rate,
                        .beta1 = .9F,
                        .beta2 = .95F,
                        .epsilon = 1e-8F,
                        .weight_decay = (float)o->weight_decay};
    w->max_norm = o->clip;
    w->resume = o->resume;
    w->save = o->save;
    w->save_every = o->save_every;
    w->gradients = o->gradients;
    w->clock = (int32_t)o->clock;
    w->measure_communication = (int)o->communication;
    return 0;
}

static int run_rank(ex_rank *rank)
{
    const inputs *in = rank->user;
    hbp_context *context = NULL;
    ex_record record = {0};
    summary sum = {.in = in, .is_first = rank->comm->rank == 0};
    ex_walk_options w = {.on_step = on_step, .user = &sum, .record = in->options->unpacked ? NULL : &record};
    int failed = hbp_context_create(NULL, &context) < 0 ? ex_fail(&rank->fault, "out of memory")
                                                        : prepare(in, rank, &w);
    snprintf(rank->comm->where, sizeof rank->comm->where, "the beginning");
    failed = ex_agree(rank->comm, failed, &rank->fault);
    if (!failed && sum.is_first)
        warn_of_others(in, rank->device);
    if (!failed)
        failed = ex_walk(&w, context, rank->device, rank->comm, &rank->fault);
    if (!failed && sum.is_first) {
        print_summary(&sum, rank);
        if (w.record)
            failed = finish_record(in, context, rank, &record, &rank->fault);
    }
    ex_record_free(&record);
    hbp_context_free(context);
    return failed;
}

int ex_run_command(const ex_options *options)
{
    ex_fault fault = {0};
    inputs in = {.options = options};
    int status = 1;
    if (read_inputs(&in, &fault) < 0)
        fprintf(stderr, "hbp_executor: %s\n", fault.text);
    else
        status = ex_ranks_run(options, run_rank, &in);
    free_inputs(&in);
    return status;
}
