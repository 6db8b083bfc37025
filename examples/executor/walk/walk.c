#include "walk/walk.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/transformer.h"
#include "walk/agree.h"
#include "walk/batch.h"
#include "walk/check.h"
#include "walk/state.h"

enum { MAX_DEGREES = 31 };

/* A pack as this rank runs it. */
typedef struct item {
    int64_t pack; /* row of the plan; -1: a sample of its own */
    int64_t first, count;
    const ex_group *group;
    int32_t recompute;
} item;

typedef struct walk {
    const ex_walk_options *o;
    hbp_context *context;
    ex_device *device;
    ex_comm *comm;
    ex_fault *fault;
    ex_parameters parameters;
    ex_model model;
    int has_parameters, has_model;
    ex_group alone;
    ex_group groups[MAX_DEGREES]; /* this rank's, a degree each */
    int32_t group_count;
    ex_batch batch;
    double *weights; /* [samples of the step] */
    int64_t weight_room;
    ex_measured *measured; /* [items of the step] */
    int64_t measured_room;
    int64_t zero_ns; /* when the run began */
    int64_t updates;
    uint32_t state_crc;  /* of the state gone on from */
    int64_t epoch_first; /* the epoch's step of the plan's row 0 */
    float *kept;         /* gradients while a pack is repeated */
} walk;

/* Passes on what stuck on the device or the communicator. */
static int check_faults(walk *w)
{
    if (w->device->fault.failed)
        return ex_fail(w->fault, "%s: %s", w->comm->where, w->device->fault.text);
    if (w->comm->fault.failed)
        return ex_fail(w->fault, "%s", w->comm->fault.text);
    return w->fault->failed ? -1 : 0;
}

/* What must be the same on every rank for the run to make sense. */
typedef struct agreement {
    uint64_t digest;
    ex_shape shape;
    int64_t first_step, steps, updates;
    uint64_t seed, tokens;
    int32_t normaliser, recompute, unpacked, repeat, no_update;
    ex_adam adam;
    double max_norm;
    int32_t type, records;
    uint32_t state_crc, unused; /* no gaps: agreements are compared whole */
} agreement;

#define PART(field, name)                                                                                    \
    {                                                                                                        \
        offsetof(agreement, field), sizeof(((agreement *)0)->field), name                                    \
    }

static const struct {
    size_t at, bytes;
    const char *name;
} parts[] = {PART(digest, "the plan"),
             PART(shape, "the model (--model)"),
             PART(updates, "the state resumed from (--resume)"),
             PART(state_crc, "the state resumed from (--resume)"),
             PART(state_crc, "the state of --resume"),
             PART(first_step, "the first step (--step, --resume)"),
             PART(steps, "--steps"),
             PART(seed, "--seed"),
             PART(tokens, "the tokens (--tokens, --end-token, --seed)"),
             PART(normaliser, "--loss"),
             PART(recompute, "--recompute"),
             PART(unpacked, "--unpacked"),
             PART(repeat, "--repeat"),
             PART(no_update, "--no-update"),
             PART(adam, "--learning-rate or --weight-decay"),
             PART(max_norm, "--clip"),
             PART(type, "--type"),
             PART(records, "whether packs are recorded")};

/* The first part that differs; NULL: none. */
static const char *find_difference(const agreement *a, const agreement *b)
{
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (memcmp((const char *)a + parts[i].at, (const char *)b + parts[i].at, parts[i].bytes) != 0)
            return parts[i].name;
    return NULL;
}

static int agree(walk *w, int64_t first, int64_t steps)
{
    const ex_walk_options *o = w->o;
    agreement own;
    memset(&own, 0, sizeof own);
    hbp_plan_summary s = {.struct_size = sizeof s};
    (void)hbp_plan_get_summary(w->context, o->plan, &s);
    own.digest = s.digest;
    own.shape = *o->shape;
    own.first_step = first;
    own.steps = steps;
    own.updates = w->updates;
    own.state_crc = w->state_crc;
    own.seed = o->seed;
    own.normaliser = o->normaliser;
    own.recompute = o->recompute;
    own.unpacked = o->unpacked;
    own.repeat = o->repeat;
    own.no_update = o->no_update;
    own.tokens = ex_tokens_digest(o->tokens);
    own.records = o->record != NULL;
    own.adam = o->adam;
    own.max_norm = o->max_norm;
    own.type = w->device->type;
    agreement *all = calloc((size_t)w->comm->ranks, sizeof *all);
    if (!all)
        return ex_fail(w->fault, "no memory for %d ranks", (int)w->comm->ranks);
    w->comm->ops->gather_host(w->comm, &own, all, sizeof own);
    int bad = w->comm->fault.failed ? ex_fail(w->fault, "%s", w->comm->fault.text) : 0;
    for (int32_t r = 1; r < w->comm->ranks && !bad; r++) {
        const char *part = find_difference(&all[0], &all[r]);
        if (!part)
            continue;
        if (w->comm->rank == 0)
            ex_fail(
                w->fault,
                "ranks 0 and %d differ in %s; plan digests %016llx and %016llx: every rank needs the same "
                "plan, model, state and options",
                (int)r, part, (unsigned long long)all[0].digest, (unsigned long long)all[r].digest);
        w->fault->failed = 1;
        bad = -2;
    }
    free(all);
    return bad;
}

/* Makes the groups of every degree that the steps hold: collective, in the same order on every rank. */
static int make_groups(walk *w, int64_t first, int64_t steps)
{
    const hbp_plan *plan = w->o->plan;
    hbp_plan_view view = {.struct_size = sizeof view};
    (void)hbp_plan_get_view(plan, &view);
    w->alone = (ex_group){.first = w->comm->rank, .size = 1};
    if (w->o->unpacked)
        return 0;
    int32_t degrees[MAX_DEGREES];
    int32_t count = 0;
    for (int64_t p = view.micro_batch_offsets[view.step_offsets[first]];
         p < view.micro_batch_offsets[view.step_offsets[first + steps]]; p++) {
        int32_t at = 0;
        while (at < count && degrees[at] < view.pack_sp[p])
            at++;
        if (view.pack_sp[p] == 1 || (at < count && degrees[at] == view.pack_sp[p]))
            continue;
        if (count == MAX_DEGREES || w->comm->ranks % view.pack_sp[p])
            return ex_fail(w->fault, "pack %lld has SP degree %d, which does not divide %d ranks",
                           (long long)p, (int)view.pack_sp[p], (int)w->comm->ranks);
        memmove(degrees + at + 1, degrees + at, (size_t)(count - at) * sizeof *degrees);
        degrees[at] = view.pack_sp[p];
        count++;
    }
    for (int32_t i = 0; i < count; i++) {
        ex_group *g = &w->groups[i];
        *g = (ex_group){.size = degrees[i]};
        w->comm->ops->make_group(w->comm, g);
        w->group_count = i + 1;
    }
    return check_faults(w);
}

static const ex_group *find_group(const walk *w, int32_t sp)
{
    for (int32_t i = 0; i < w->group_count; i++)
        if (w->groups[i].size == sp)
            return &w->groups[i];
    return &w->alone;
}

static int prepare(walk *w, int64_t *first, int64_t *steps)
{
    const ex_walk_options *o = w->o;
    hbp_plan_view view = {.struct_size = sizeof view};
    (void)hbp_plan_get_view(o->plan, &view);
    int64_t all = view.steps;
    hbp_plan_summary s;
    s.struct_size = sizeof s;
    if (hbp_plan_get_summary(w->context, o->plan, &s) < 0)
        return ex_fail(w->fault, "%s", hbp_context_message(w->context));
    w->epoch_first = s.first_step;
    w->batch.shifted_loss = s.shifted_loss;
    *first = o->first_step < 0 ? 0 : o->first_step;
    w->has_parameters = ex_parameters_create(w->device, o->shape, o->seed, &w->parameters) == 0;
    if (!w->has_parameters)
        return check_faults(w);
    if (o->resume) {
        ex_run_state run = {.seed = o->seed, .normaliser = o->normaliser};
        if (ex_state_load(o->resume, w->context, o->plan, &run, &w->parameters, w->fault) < 0)
            return -1;
        w->updates = run.updates;
        w->state_crc = run.crc;
        *first = run.step - w->epoch_first;
        if (o->first_step >= 0 && o->first_step != *first)
            return ex_fail(w->fault, "%s stands before step %lld, not %lld; leave --step out", o->resume,
                           (long long)*first, (long long)o->first_step);
        if (*first >= all)
            return ex_fail(w->fault, "%s stands at the plan's end, after its %lld steps; plan another epoch",
                           o->resume, (long long)all);
    }
    if (*first >= all)
        return ex_fail(w->fault, "step %lld is not in the plan, which has %lld", (long long)*first,
                       (long long)all);
    if (o->repeat > EX_REPEATS)
        return ex_fail(w->fault, "%d repeats of a pack; at most %d", (int)o->repeat, EX_REPEATS);
    *steps = o->steps > 0 && o->steps < all - *first ? o->steps : all - *first;
    w->has_model = ex_model_create(w->device, w->comm, &w->parameters, o->arena_bytes, &w->model) == 0;
    if (!w->has_model)
        return check_faults(w);
    w->model.measure_communication = o->measure_communication;
    if (o->repeat > 1)
        w->kept = w->device->ops->allocate(w->device, w->parameters.elements * 4);
    return check_faults(w);
}

/* Runs one pack `repeat` times for its time; all but the last time its gradients are put back. */
static int run_item(walk *w, const item *it, int64_t step_first, ex_measured *m)
{
    ex_device *device = w->device;
    ex_parameters *p = &w->parameters;
    if (ex_batch_fill(&w->batch, w->context, w->o->plan, it->pack, it->first, it->count, w->weights,
                      step_first, w->o->tokens, it->group, it->recompute, w->fault) < 0)
        return -1;
    int32_t repeat = w->o->repeat > 1 ? w->o->repeat : 1;
    m->repeats = repeat;
    m->clock = w->o->clock;
    double loss = repeat > 1 ? ex_model_take_loss(&w->model) : 0;
    if (repeat > 1)
        device->ops->copy(device, w->kept, p->gradients, p->elements * 4);
    for (int32_t i = 0; i < repeat; i++) {
        if (i > 0) {
            device->ops->copy(device, p->gradients, w->kept, p->elements * 4);
            ex_model_take_loss(&w->model);
        }
        ex_device_sync(device);
        w->model.arena_most = 0;
        w->model.communication_ns = 0;
        m->start_ns[i] = ex_now_ns() - w->zero_ns;
        int64_t start = ex_clock_ns(w->o->clock);
        if (ex_model_run(&w->model, &w->batch.pack) < 0)
            return check_faults(w);
        m->end_ns[i] = m->start_ns[i] + (ex_clock_ns(w->o->clock) - start);
        m->communication_ns[i] = w->model.communication_ns;
    }
    if (repeat > 1)
        loss += ex_model_take_loss(&w->model);
    m->peak_bytes = device->allocated - w->model.arena_bytes + w->model.arena_most;
    m->tokens = w->batch.pack.pack_tokens;
    m->sum_squares = w->batch.sum_squares;
    m->recompute = it->recompute;
    if (repeat > 1)
        device->ops->copy_in(device, w->model.loss, &loss, sizeof loss);
    return check_faults(w);
}

static int make_weights(walk *w, int64_t step, int64_t samples)
{
    if (samples > w->weight_room) {
        double *grown = realloc(w->weights, (size_t)samples * sizeof *grown);
        if (!grown)
            return ex_fail(w->fault, "no memory for a step of %lld samples", (long long)samples);
        w->weights = grown;
        w->weight_room = samples;
    }
    int64_t count = 0;
    if (samples > 0 && hbp_plan_copy_loss_weights(w->context, w->o->plan, step, w->o->normaliser, w->weights,
                                                  samples, &count) < 0)
        return ex_fail(w->fault, "%s", hbp_context_message(w->context));
    return 0;
}

static int make_measured(walk *w, int64_t count)
{
    if (count <= w->measured_room)
        return 0;
    ex_measured *grown = realloc(w->measured, (size_t)count * sizeof *grown);
    if (!grown)
        return ex_fail(w->fault, "no memory for a step of %lld packs", (long long)count);
    w->measured = grown;
    w->measured_room = count;
    return 0;
}

/* This rank's packs of a step, in order. */
static int run_packs(walk *w, int64_t step, int64_t *samples)
{
    const ex_walk_options *o = w->o;
    const hbp_plan *plan = o->plan;
    hbp_plan_view view = {.struct_size = sizeof view};
    (void)hbp_plan_get_view(plan, &view);
    const int64_t *micro = view.step_offsets + step;
    int64_t first = view.pack_offsets[view.micro_batch_offsets[micro[0]]];
    int64_t end = view.pack_offsets[view.micro_batch_offsets[micro[1]]];
    *samples = end - first;
    if (make_weights(w, step, end - first) < 0)
        return -1;
    const ex_check check = {.plan = plan, .recompute = o->recompute};
    if (o->unpacked) {
        ex_measured ignored;
        memset(&ignored, 0, sizeof ignored);
        for (int64_t i = first + w->comm->rank; i < end; i += w->comm->ranks) {
            item it = {-1, i, 1, &w->alone, ex_check_recompute(&check, -1)};
            if (run_item(w, &it, first, &ignored) < 0)
                return -1;
        }
        return 0;
    }
    int64_t count = micro[1] - micro[0];
    if (make_measured(w, count) < 0)
        return -1;
    memset(w->measured, 0, (size_t)count * sizeof *w->measured);
    for (int64_t m = 0; m < count; m++) {
        int64_t pack = hbp_plan_get_rank_pack(plan, step, m, w->comm->rank);
        snprintf(w->comm->where, sizeof w->comm->where, "step %lld, micro-batch %lld",
                 (long long)(w->epoch_first + step), (long long)m);
        item it = {pack, view.pack_offsets[pack], view.pack_offsets[pack + 1] - view.pack_offsets[pack],
                   find_group(w, view.pack_sp[pack]), ex_check_recompute(&check, pack)};
        w->measured[m].pack = pack;
        w->measured[m].sp = it.group->size;
        w->measured[m].samples = it.count;
        w->measured[m].micro_batch = (int32_t)m;
        w->measured[m].step = w->epoch_first + step;
        if (run_item(w, &it, first, &w->measured[m]) < 0)
            return -1;
    }
    return o->record ? ex_record_add(o->record, w->comm, w->measured, count, w->fault) : 0;
}

/* The sum over ranks, in their order. */
static int sum_loss(walk *w, double *loss)
{
    double own = ex_model_take_loss(&w->model);
    double *all = calloc((size_t)w->comm->ranks, sizeof *all);
    if (!all)
        return ex_fail(w->fault, "no memory for %d losses", (int)w->comm->ranks);
    w->comm->ops->gather_host(w->comm, &own, all, sizeof own);
    *loss = 0;
    for (int32_t r = 0; r < w->comm->ranks; r++)
        *loss += all[r];
    free(all);
    return check_faults(w);
}

static int optimise(walk *w, ex_step *s)
{
    const ex_walk_options *o = w->o;
    ex_adam adam = o->adam;
    w->updates++;
    adam.correction1 = (float)(1 - pow(adam.beta1, (double)w->updates));
    adam.correction2 = (float)(1 - pow(adam.beta2, (double)w->updates));
    adam.gradient_scale = 1;
    if (o->no_update) {
        adam.learning_rate = 0;
        adam.weight_decay = 0;
    }
    ex_model_step(&w->model, adam, o->max_norm, &s->norm);
    return check_faults(w);
}

static int run_step(walk *w, int64_t row, int is_last)
{
    const ex_walk_options *o = w->o;
    hbp_plan_view view = {.struct_size = sizeof view};
    (void)hbp_plan_get_view(o->plan, &view);
    ex_step s = {
        .step = w->epoch_first + row, .predicted_ns = view.step_ns[row], .tokens = view.step_tokens[row]};
    const int64_t *micro = view.step_offsets + row;
    s.micro_batches = micro[1] - micro[0];
    int64_t start = ex_now_ns();
    if (run_packs(w, row, &s.samples) < 0)
        return -1;
    int64_t packed = ex_now_ns();
    snprintf(w->comm->where, sizeof w->comm->where, "step %lld, gradients", (long long)s.step);
    if (sum_loss(w, &s.loss) < 0)
        return -1;
    if (!isfinite(s.loss))
        return ex_fail(w->fault, "step %lld: the loss is %g; a smaller learning rate may help",
                       (long long)s.step, s.loss);
    if (w->comm->ranks > 1)
        w->comm->ops->all_reduce(w->comm, &w->comm->world, w->parameters.gradients, w->parameters.elements);
    if (ex_device_sync(w->device) < 0 || check_faults(w) < 0)
        return check_faults(w);
    int64_t reduced = ex_now_ns();
    if (o->gradients && is_last && w->comm->rank == 0 &&
        ex_state_write_gradients(o->gradients, &w->parameters, w->fault) < 0)
        return -1;
    int64_t written = ex_now_ns();
    if (optimise(w, &s) < 0)
        return -1;
    int64_t end = ex_now_ns();
    s.packs_ns = packed - start;
    s.reduce_ns = reduced - packed;
    s.optimise_ns = end - written;
    s.ns = end - start - (written - reduced);
    if (o->on_step)
        o->on_step(o->user, &s);
    return 0;
}

static int save_state(walk *w, int64_t step)
{
    const ex_run_state run = {
        .step = step, .updates = w->updates, .seed = w->o->seed, .normaliser = w->o->normaliser};
    return ex_state_save(w->o->save, w->context, w->o->plan, &run, &w->parameters, w->fault);
}

static int run_steps(walk *w, int64_t first, int64_t steps)
{
    const ex_walk_options *o = w->o;
    for (int64_t i = 0; i < steps; i++) {
        if (run_step(w, first + i, i + 1 == steps) < 0)
            return -1;
        int due = i + 1 == steps || (o->save_every > 0 && (i + 1) % o->save_every == 0);
        if (o->save && due && w->comm->rank == 0 && save_state(w, w->epoch_first + first + i + 1) < 0)
            return -1;
    }
    return 0;
}

static int run(walk *w)
{
    int64_t first = 0;
    int64_t steps = 0;
    snprintf(w->comm->where, sizeof w->comm->where, "the beginning");
    int failed = prepare(w, &first, &steps);
    failed = ex_agree(w->comm, failed, w->fault);
    if (!failed)
        failed = agree(w, first, steps);
    if (failed)
        return failed;
    if (make_groups(w, first, steps) < 0)
        return -1;
    failed = ex_agree(w->comm, 0, w->fault); /* clocks begin together */
    if (failed)
        return failed;
    w->zero_ns = ex_now_ns();
    return check_faults(w) < 0 ? -1 : run_steps(w, first, steps);
}

int ex_walk(const ex_walk_options *options, hbp_context *context, ex_device *device, ex_comm *comm,
            ex_fault *fault)
{
    walk w = {.o = options, .context = context, .device = device, .comm = comm, .fault = fault};
    int failed = run(&w);
    for (int32_t i = 0; i < w.group_count; i++)
        comm->ops->free_group(comm, &w.groups[i]);
    if (w.kept)
        device->ops->release(device, w.kept);
    if (w.has_model)
        ex_model_free(&w.model);
    if (w.has_parameters)
        ex_parameters_free(&w.parameters);
    ex_batch_free(&w.batch);
    free(w.weights);
    free(w.measured);
    return failed;
}
