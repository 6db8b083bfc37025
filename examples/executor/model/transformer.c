#include "model/transformer.h"

#include <stdlib.h>

#include "model/run.h"

/* Logits held at once: about 2^26 elements (128 MiB in bf16), a multiple of 128 rows, enough for full matrix
 * products. */
static int64_t default_chunk_rows(const ex_shape *shape)
{
    int64_t rows = (INT64_C(1) << 26) / shape->vocab / 128 * 128;
    return rows < 128 ? 128 : rows > 4096 ? 4096 : rows;
}

int ex_model_create(ex_device *device, ex_comm *comm, ex_parameters *parameters, int64_t arena_bytes,
                    ex_model *model)
{
    *model = (ex_model){.device = device,
                        .comm = comm,
                        .parameters = parameters,
                        .arena_bytes = arena_bytes,
                        .chunk_rows = default_chunk_rows(&parameters->shape)};
    model->arena = device->ops->allocate(device, arena_bytes);
    model->loss = device->ops->allocate(device, 2 * (int64_t)sizeof(double));
    if (device->fault.failed) {
        ex_model_free(model);
        return -1;
    }
    device->ops->zero(device, model->loss, 2 * (int64_t)sizeof(double));
    return 0;
}

void ex_model_free(ex_model *model)
{
    if (!model->device)
        return;
    if (model->arena)
        model->device->ops->release(model->device, model->arena);
    if (model->loss)
        model->device->ops->release(model->device, model->loss);
    *model = (ex_model){0};
}

static int check_tokens(const ex_run *run)
{
    const ex_pack *p = run->pack;
    ex_fault *fault = &run->device->fault;
    int32_t vocab = run->shape->vocab;
    for (int64_t t = 0; t < run->T; t++) {
        if (p->tokens[t] < 0 || p->tokens[t] >= vocab)
            return ex_fail(fault, "token %lld of a chunk is %d; the vocabulary has 0 .. %d", (long long)t,
                           (int)p->tokens[t], (int)vocab - 1);
        if (p->weights[t] != 0 && (p->targets[t] < 0 || p->targets[t] >= vocab))
            return ex_fail(fault, "the target of token %lld of a chunk is %d; the vocabulary has 0 .. %d",
                           (long long)t, (int)p->targets[t], (int)vocab - 1);
    }
    return 0;
}

static int check(const ex_run *run)
{
    const ex_pack *p = run->pack;
    const ex_shape *s = run->shape;
    ex_fault *fault = &run->device->fault;
    if (p->pack_tokens < 1 || p->pack_tokens > INT32_MAX)
        return ex_fail(fault, "a pack of %lld tokens; between 1 and %d can be run", (long long)p->pack_tokens,
                       (int)INT32_MAX);
    if (run->sp < 1 || p->pack_tokens % run->sp)
        return ex_fail(fault, "a pack of %lld tokens on %d ranks: not the same number on each",
                       (long long)p->pack_tokens, (int)run->sp);
    if (s->heads % run->sp || (s->kv_heads % run->sp && run->sp % s->kv_heads))
        return ex_fail(fault, "%d heads and %d key-value heads do not divide among %d ranks", (int)s->heads,
                       (int)s->kv_heads, (int)run->sp);
    if (p->recompute < 0 || p->recompute > s->layers)
        return ex_fail(fault, "a pack recomputes %d layers; the model has %d", (int)p->recompute,
                       (int)s->layers);
    if (p->documents < 1 || p->borders[0] != 0 || p->borders[p->documents] != p->pack_tokens)
        return ex_fail(fault, "%lld documents do not cover a pack of %lld tokens", (long long)p->documents,
                       (long long)p->pack_tokens);
    for (int64_t i = 0; i < p->documents; i++)
        if (p->borders[i + 1] <= p->borders[i])
            return ex_fail(fault, "document %lld of a pack ends at token %d and begins at %d", (long long)i,
                           (int)p->borders[i + 1], (int)p->borders[i]);
    return check_tokens(run);
}

static ex_run begin(ex_model *model, const ex_pack *pack)
{
    const ex_shape *s = &model->parameters->shape;
    int32_t sp = pack->group->size;
    ex_run run = {.model = model,
                  .device = model->device,
                  .pack = pack,
                  .shape = s,
                  .sp = sp,
                  .S = pack->pack_tokens,
                  .e = (int64_t)ex_type_bytes(model->device->type),
                  .all = {s->heads, s->kv_heads, s->head_dim}};
    if (sp > 0) {
        int32_t kv = s->kv_heads / sp;
        run.T = run.S / sp;
        run.mine = (ex_heads){s->heads / sp, kv ? kv : 1, s->head_dim};
    }
    run.q_all = (int64_t)s->heads * s->head_dim;
    run.w_all = run.q_all + 2 * (int64_t)s->kv_heads * s->head_dim;
    run.q_mine = (int64_t)run.mine.heads * s->head_dim;
    run.w_mine = run.q_mine + 2 * (int64_t)run.mine.kv_heads * s->head_dim;
    model->arena_used = 0;
    return run;
}

/* Tokens 0 .. T - 1 by their number, ties ascending: a counting sort, O(T + vocab). */
static int sort_tokens(const ex_run *run, int32_t *order)
{
    int32_t vocab = run->shape->vocab;
    int32_t *places = calloc((size_t)vocab + 1, sizeof *places);
    if (!places)
        return ex_fail(&run->device->fault, "no host memory to sort the tokens of a vocabulary of %d",
                       (int)vocab);
    for (int64_t t = 0; t < run->T; t++)
        places[run->pack->tokens[t] + 1]++;
    for (int32_t v = 0; v < vocab; v++)
        places[v + 1] += places[v];
    for (int64_t t = 0; t < run->T; t++)
        order[places[run->pack->tokens[t]]++] = (int32_t)t;
    free(places);
    return 0;
}

static void *push_in(ex_run *run, const void *host, int64_t bytes)
{
    void *at = ex_push(run, bytes);
    if (at)
        run->device->ops->copy_in(run->device, at, host, bytes);
    return at;
}

/* The pack's numbers go to the device: 20 bytes a token. */
static int load(ex_run *run)
{
    const ex_pack *p = run->pack;
    int64_t bytes = run->T * (int64_t)sizeof(int32_t);
    int32_t *order = malloc((size_t)bytes);
    if (!order)
        return ex_fail(&run->device->fault, "no host memory to sort %lld tokens", (long long)run->T);
    if (sort_tokens(run, order) == 0) {
        run->tokens = push_in(run, p->tokens, bytes);
        run->targets = push_in(run, p->targets, bytes);
        run->positions = push_in(run, p->positions, bytes);
        run->weights = push_in(run, p->weights, bytes);
        run->order = push_in(run, order, bytes);
        run->documents = (ex_documents){
            .borders = push_in(run, p->borders, (p->documents + 1) * (int64_t)sizeof *p->borders),
            .host_borders = p->borders,
            .count = p->documents};
        for (int64_t i = 0; i < p->documents; i++)
            if (p->borders[i + 1] - p->borders[i] > run->documents.longest)
                run->documents.longest = p->borders[i + 1] - p->borders[i];
        run->gradient = ex_push_elements(run, run->T, run->shape->hidden);
    }
    free(order);
    return ex_run_failed(run) ? -1 : 0;
}

/* The output of a recomputed layer goes where the frame of what it would keep began. That frame holds x2, in
 * whose place the output is made, so far from its beginning that the two do not overlap. */
static void *take_down(ex_run *run, int32_t layer, const ex_kept *kept)
{
    int64_t bytes = run->T * run->shape->hidden * run->e;
    ex_layer_finish(run, layer, kept, kept->x2);
    run->model->arena_used = kept->begin;
    void *out = ex_push(run, bytes);
    if (out)
        run->device->ops->copy(run->device, out, kept->x2, bytes);
    return out;
}

/* Forward through one layer, which leaves on the arena [what it keeps][output], or, recomputed, [output]. *x
 * goes from input to output. */
static int forward(ex_run *run, int32_t layer, ex_kept *kept, void **x)
{
    kept->x = *x;
    kept->begin = run->model->arena_used;
    if (ex_layer_keep(run, layer, kept))
        return -1;
    if (layer < run->pack->recompute) {
        *x = take_down(run, layer, kept);
    } else {
        *x = ex_push_elements(run, run->T, run->shape->hidden);
        if (*x)
            ex_layer_finish(run, layer, kept, *x);
    }
    return *x ? 0 : -1;
}

static int run_layers(ex_run *run, ex_kept *kept)
{
    const ex_shape *s = run->shape;
    ex_device *device = run->device;
    void *x = ex_push_elements(run, run->T, s->hidden);
    if (!x)
        return -1;
    device->ops->embed(device, ex_weights(run, -1, EX_EMBEDDING), run->tokens, run->T, s->hidden, x);
    for (int32_t l = 0; l < s->layers; l++)
        if (forward(run, l, &kept[l], &x))
            return -1;
    if (ex_head_run(run, x))
        return -1;
    /* A layer's frame lies on top of those before it; what lies above it is done with. */
    for (int32_t l = s->layers - 1; l >= 0; l--) {
        if (l < run->pack->recompute) {
            run->model->arena_used = kept[l].begin;
            if (ex_layer_keep(run, l, &kept[l]))
                return -1;
        }
        if (ex_layer_back(run, l, &kept[l]))
            return -1;
    }
    device->ops->embed_back(device, run->gradient, run->tokens, run->order, run->T, s->hidden,
                            ex_gradients(run, -1, EX_EMBEDDING));
    return 0;
}

int ex_model_run(ex_model *model, const ex_pack *pack)
{
    ex_run run = begin(model, pack);
    if (ex_run_failed(&run) || check(&run) || load(&run))
        return -1;
    ex_kept *kept = calloc((size_t)run.shape->layers, sizeof *kept);
    if (!kept)
        return ex_fail(&model->device->fault, "no host memory for %d layers", (int)run.shape->layers);
    int status = run_layers(&run, kept);
    free(kept);
    model->arena_used = 0;
    if (ex_device_sync(model->device) || ex_run_failed(&run))
        return -1;
    return status;
}
