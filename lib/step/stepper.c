/* A queue of steps between the trainer and a thread that plans them. Each place of the queue keeps the memory
 * of its batch, and the thread keeps its own in a pool, so that a run soon takes none but its plans'. */
#include "hbp/step.h"

#include <stdatomic.h>
#include <string.h>

#include "base/digest.h"
#include "base/options.h"
#include "base/pool.h"
#include "base/scratch.h"
#include "base/worker.h"
#include "data/lengths/lengths.h"
#include "data/lengths/lengths_make.h"
#include "data/plan/plan.h"
#include "step/step.h"

/* A length, a link, loss tokens, vision units and a kind. */
#define SAMPLE_BYTES 28

/* One step on its way. */
typedef struct place {
    int64_t *values; /* [room] samples: lengths [count], links [count], loss tokens, vision units, kinds */
    int64_t room;
    int64_t count;
    int32_t has_links;
    int32_t has_loss;
    int32_t shifted_loss;
    int32_t has_vision;
    int32_t has_modalities;
    hbp_lengths *lengths; /* instead of the values; NULL: none */
    hbp_plan *plan;
    hbp_status status;
    int64_t kept_bytes;
    char message[HBP__MESSAGE_BYTES];
} place;

struct hbp_stepper {
    hbp__memory memory;
    const hbp_cost *cost;
    hbp_step_options step_options;
    hbp_stepper_options options;
    hbp__pool pool;       /* the thread's */
    hbp_context *context; /* the thread's, over the pool */
    place *places;        /* [depth] step k in place k % depth */
    hbp__worker worker;
    int32_t working;    /* the thread was started */
    hbp__digest digest; /* the taker's; what follows are its news to whoever asks for a summary */
    _Atomic(int64_t) waited;
    _Atomic(int64_t) kept_bytes;
    _Atomic(uint64_t) digest_so_far;
};

static int64_t *links_of(const place *p)
{
    return p->values + p->count;
}

static uint32_t *loss_of(const place *p)
{
    return (uint32_t *)(p->values + 2 * p->count);
}

static uint32_t *vision_of(const place *p)
{
    return loss_of(p) + p->count;
}

static int32_t *modalities_of(const place *p)
{
    return (int32_t *)(vision_of(p) + p->count);
}

/* The data set of a place, in the pool unless the caller's. */
static hbp_status make_lengths(hbp_context *context, place *p)
{
    if (p->lengths)
        return HBP_OK;
    hbp_lengths_options options = {.struct_size = sizeof options,
                                   .loss_tokens = p->has_loss ? loss_of(p) : NULL,
                                   .links = p->has_links ? links_of(p) : NULL,
                                   .vision = p->has_vision ? vision_of(p) : NULL,
                                   .modalities = p->has_modalities ? modalities_of(p) : NULL,
                                   .shifted_loss = p->shifted_loss};
    return hbp__lengths_create_i64(context, p->values, p->count, &options, &p->lengths);
}

/* Plans step `job`, in a call of the thread's own context. The plan goes to the caller, who may keep it, so
 * it moves out of the pool. */
static void work(void *user, int64_t job)
{
    hbp_stepper *stepper = user;
    hbp_context *context = stepper->context;
    place *p = &stepper->places[job % stepper->options.depth];
    hbp_plan *plan = NULL;
    p->status = hbp__enter(context);
    if (p->status >= 0)
        p->status = make_lengths(context, p);
    if (p->status >= 0)
        p->status = hbp__step_plan(context, p->lengths, stepper->cost, &stepper->step_options, 1, &plan);
    if (plan) {
        p->plan = hbp__plan_copy(&stepper->memory, plan);
        if (!p->plan)
            p->status = hbp__fail_memory(context, "the plan");
    }
    memcpy(p->message, context->message, sizeof p->message);
    hbp_plan_free(plan);
    hbp_lengths_free(p->lengths);
    p->lengths = NULL;
    p->kept_bytes = stepper->pool.kept_bytes;
}

static hbp_status read_options(hbp_context *context, hbp_stepper *stepper,
                               const hbp_step_options *step_options, const hbp_stepper_options *options)
{
    hbp_stepper_options *o = &stepper->options;
    HBP__TRY(hbp__options_read(context, o, sizeof *o, options, "hbp_stepper_options"));
    if (!o->depth)
        o->depth = 2;
    HBP__TRY(hbp__options_read(context, &stepper->step_options, sizeof stepper->step_options, step_options,
                               "hbp_step_options"));
    hbp__step step;
    int64_t mark = hbp__scratch_mark(context);
    hbp_status status = hbp__step_open(context, NULL, stepper->cost, step_options, &step);
    hbp__step_close(&step);
    return hbp__leave(context, mark, status);
}

static hbp_status open_stepper(hbp_context *context, hbp_stepper *stepper,
                               const hbp_step_options *step_options, const hbp_stepper_options *options)
{
    HBP__TRY(read_options(context, stepper, step_options, options));
    stepper->places =
        hbp__new_zero(&stepper->memory, (uint64_t)stepper->options.depth, sizeof *stepper->places);
    if (!stepper->places)
        return hbp__fail_memory(context, "the stepper");
    hbp__memory pooled = hbp__pool_memory(&stepper->pool);
    stepper->context = hbp__context_new(&pooled);
    if (!stepper->context)
        return hbp__fail_memory(context, "the stepper");
    stepper->context->solver = context->solver;
    HBP__TRY(hbp__worker_open(context, &stepper->worker, stepper->options.depth, work, stepper));
    stepper->working = 1;
    return HBP_OK;
}

hbp_status hbp_stepper_create(hbp_context *context, const hbp_cost *cost,
                              const hbp_step_options *step_options, const hbp_stepper_options *options,
                              hbp_stepper **out)
{
    HBP__ENTER_OUT(context, out);
    HBP__TRY(hbp__require(context, cost, "cost"));
    hbp_stepper *stepper = hbp__new_zero(&context->memory, 1, sizeof *stepper);
    if (!stepper)
        return hbp__fail_memory(context, "the stepper");
    stepper->memory = context->memory;
    stepper->cost = cost;
    stepper->digest = hbp__digest_begin();
    atomic_init(&stepper->waited, 0);
    atomic_init(&stepper->kept_bytes, 0);
    atomic_init(&stepper->digest_so_far, hbp__digest_end(&stepper->digest));
    hbp__pool_open(&stepper->pool, &stepper->memory);
    hbp_status status = open_stepper(context, stepper, step_options, options);
    if (status < 0)
        hbp_stepper_free(stepper);
    else
        *out = stepper;
    return status;
}

void hbp_stepper_free(hbp_stepper *stepper)
{
    if (!stepper)
        return;
    hbp__memory memory = stepper->memory;
    if (stepper->working) {
        hbp__worker_stop(&stepper->worker);
        hbp_context_cancel(stepper->context);
        hbp__worker_close(&stepper->worker);
    }
    for (int32_t i = 0; stepper->places && i < stepper->options.depth; i++) {
        hbp_plan_free(stepper->places[i].plan);
        hbp_lengths_free(stepper->places[i].lengths);
        hbp__delete(&memory, stepper->places[i].values);
    }
    hbp__delete(&memory, stepper->places);
    hbp_context_free(stepper->context);
    hbp__pool_close(&stepper->pool);
    hbp__delete(&memory, stepper);
}

/* Waits for the place of the next step, or refuses it. */
static hbp_status next_place(hbp_context *context, hbp_stepper *stepper, place **p)
{
    HBP__TRY(hbp__tick(context, "submit", 0, 0));
    hbp__worker_counts counts = hbp__worker_count(&stepper->worker);
    if (!stepper->options.wait && counts.brought - counts.fetched == stepper->options.depth)
        return hbp__fail(context, HBP_E_INVALID,
                         "step %lld: %d steps are submitted and not taken, the most that the stepper's depth "
                         "allows",
                         (long long)counts.brought, (int)stepper->options.depth);
    int64_t job;
    HBP__TRY(hbp__worker_await_room(context, &stepper->worker, &job));
    *p = &stepper->places[job % stepper->options.depth];
    return HBP_OK;
}

/* Planning would find the same, but only once the step is taken. */
static hbp_status check_batch(hbp_context *context, const int64_t *lengths, int64_t count,
                              const hbp_lengths_options *options)
{
    HBP__TRY(hbp__lengths_check_count(context, count));
    for (int64_t i = 0; i < count; i++) {
        if (lengths[i] < 1 || lengths[i] > HBP_MAX_LENGTH)
            return hbp__lengths_check(context, "sample", i, lengths[i]);
        if (options->loss_tokens)
            HBP__TRY(hbp__lengths_check_loss(context, i, options->loss_tokens[i], lengths[i]));
        if (options->links)
            HBP__TRY(hbp__lengths_check_link(context, i, options->links[i]));
        if (options->vision)
            HBP__TRY(hbp__lengths_check_vision(context, i, options->vision[i]));
        if (options->modalities)
            HBP__TRY(hbp__lengths_check_modality(context, i, options->modalities[i]));
    }
    return HBP_OK;
}

/* Room for `count` samples; what was there is not kept. */
static hbp_status make_room(hbp_context *context, const hbp__memory *memory, place *p, int64_t count)
{
    if (count > p->room) {
        hbp__delete(memory, p->values);
        p->room = 0;
        p->values = hbp__new(memory, (uint64_t)count, SAMPLE_BYTES);
        if (!p->values)
            return hbp__fail_memory(context, "the lengths of a step");
        p->room = count;
    }
    p->count = count;
    return HBP_OK;
}

hbp_status hbp_stepper_submit(hbp_context *context, hbp_stepper *stepper, const int64_t *lengths,
                              int64_t count, const hbp_lengths_options *options)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, stepper, "stepper"));
    HBP__TRY(hbp__require(context, lengths, "lengths"));
    hbp_lengths_options all;
    HBP__TRY(hbp__options_read(context, &all, sizeof all, options, "hbp_lengths_options"));
    HBP__TRY(check_batch(context, lengths, count, &all));
    place *p;
    HBP__TRY(next_place(context, stepper, &p));
    HBP__TRY(make_room(context, &stepper->memory, p, count));
    p->has_loss = all.loss_tokens != NULL;
    p->has_links = all.links != NULL;
    p->has_vision = all.vision != NULL;
    p->has_modalities = all.modalities != NULL;
    p->shifted_loss = all.shifted_loss;
    memcpy(p->values, lengths, (size_t)count * sizeof *lengths);
    if (all.links)
        memcpy(links_of(p), all.links, (size_t)count * sizeof *all.links);
    if (all.loss_tokens)
        memcpy(loss_of(p), all.loss_tokens, (size_t)count * sizeof *all.loss_tokens);
    if (all.vision)
        memcpy(vision_of(p), all.vision, (size_t)count * sizeof *all.vision);
    if (all.modalities)
        memcpy(modalities_of(p), all.modalities, (size_t)count * sizeof *all.modalities);
    hbp__worker_bring(&stepper->worker);
    return HBP_OK;
}

hbp_status hbp_stepper_submit_lengths(hbp_context *context, hbp_stepper *stepper,
                                      const hbp_lengths *batch_lengths)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, stepper, "stepper"));
    HBP__TRY(hbp__require_samples(context, batch_lengths, "batch_lengths"));
    place *p;
    HBP__TRY(next_place(context, stepper, &p));
    p->lengths = hbp__lengths_retain(batch_lengths);
    hbp__worker_bring(&stepper->worker);
    return HBP_OK;
}

hbp_status hbp_stepper_take(hbp_context *context, hbp_stepper *stepper, hbp_plan **out)
{
    HBP__ENTER_OUT(context, out);
    HBP__TRY(hbp__require(context, stepper, "stepper"));
    HBP__TRY(hbp__tick(context, "take", 0, 0));
    hbp__worker_counts counts = hbp__worker_count(&stepper->worker);
    if (!stepper->options.wait && counts.brought == counts.fetched)
        return hbp__fail(context, HBP_E_INVALID, "step %lld is not submitted: there is none to take",
                         (long long)counts.fetched);
    int64_t job;
    int32_t waited;
    HBP__TRY(hbp__worker_await(context, &stepper->worker, &job, &waited));
    place *p = &stepper->places[job % stepper->options.depth];
    hbp_status status = p->status;
    *out = p->plan;
    p->plan = NULL;
    if (status < 0)
        hbp__fail(context, status, "step %lld: %s", (long long)job, p->message);
    hbp__digest_u64(&stepper->digest, *out ? (*out)->digest : (uint64_t)(int64_t)status);
    atomic_fetch_add(&stepper->waited, waited);
    atomic_store(&stepper->kept_bytes, p->kept_bytes);
    atomic_store(&stepper->digest_so_far, hbp__digest_end(&stepper->digest));
    hbp__worker_fetch(&stepper->worker);
    return status;
}

hbp_status hbp_stepper_get_summary(hbp_context *context, hbp_stepper *stepper, hbp_stepper_summary *summary)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, stepper, "stepper"));
    hbp__worker_counts counts = hbp__worker_count(&stepper->worker);
    hbp_stepper_summary all = {.struct_size = sizeof all,
                               .depth = stepper->options.depth,
                               .submitted = counts.brought,
                               .planned = counts.done,
                               .taken = counts.fetched,
                               .waited = atomic_load(&stepper->waited),
                               .kept_bytes = atomic_load(&stepper->kept_bytes),
                               .digest = atomic_load(&stepper->digest_so_far)};
    return hbp__struct_write(context, summary, &all, sizeof all, "hbp_stepper_summary");
}
