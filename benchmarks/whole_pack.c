#include "whole_pack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "model/run.h"
#include "operations.h"

enum { MOST_PARTS = 40 };

/* An operation of the pack, at the pack's shape: how often each layer takes it, how often a recomputed layer
 * takes it once more, and how often the pack takes it outside layers. */
typedef struct part {
    bench_operation operation;
    double layer, again, outside;
    double seconds; /* as last measured */
} part;

typedef struct whole {
    const bench_rates *rates;
    ex_shape shape;
    int64_t T, e;
    int64_t rows; /* of logits held at once */
    int32_t borders[5];
    part parts[MOST_PARTS];
    int count;
    ex_comm *comm;
    ex_parameters parameters;
    ex_model model;
    ex_group alone;
    ex_pack pack;
    int32_t *tokens, *targets, *positions;
    float *weights;
    ex_run run; /* of one layer alone */
    void *x;
    void *gradient; /* what the layer's output is given, anew each time: its own would grow without end */
} whole;

static void need(const whole *w)
{
    bench_rates_need(w->rates);
    if (!w->comm->fault.failed)
        return;
    fprintf(stderr, "%s\n", w->comm->fault.text);
    exit(1);
}

static bench_shape rows_of(const whole *w, int kind, int64_t T, int64_t n)
{
    const ex_shape *s = &w->shape;
    return (bench_shape){.kind = kind,
                         .T = T,
                         .n = n,
                         .k = s->vocab,
                         .heads = {s->heads, s->kv_heads, s->head_dim},
                         .borders = w->borders,
                         .documents = 4};
}

static void add(whole *w, double layer, double again, double outside, bench_shape shape)
{
    part *p = &w->parts[w->count++];
    p->layer = layer;
    p->again = again;
    p->outside = outside;
    bench_operation_open(w->rates, &shape, &p->operation);
}

/* y [T, out] = x W^T, the gradient of W and that of x, as model/product.c has them; `counts` as in part. */
static void add_products(whole *w, const double counts[3], int64_t T, int64_t in, int64_t out, int adds)
{
    bench_shape forward = {.kind = BENCH_PRODUCT, .trans_b = 1, .T = T, .n = out, .k = in, .adds = adds};
    bench_shape of_weights = {
        .kind = BENCH_PRODUCT, .trans_a = 1, .T = out, .n = in, .k = T, .adds = 1, .sums_f32 = 1};
    bench_shape of_input = {.kind = BENCH_PRODUCT, .T = T, .n = in, .k = out};
    add(w, counts[0], counts[1], counts[2], forward);
    add(w, counts[0], 0, counts[2], of_weights);
    add(w, counts[0], 0, counts[2], of_input);
}

static void add_parts(whole *w)
{
    const ex_shape *s = &w->shape;
    const int64_t wide = (int64_t)s->heads * s->head_dim;
    const int64_t all = wide + 2 * (int64_t)s->kv_heads * s->head_dim;
    const double twice[] = {1, 1, 0}, once[] = {1, 0, 0}, chunks = (double)w->T / (double)w->rows;
    const double head[] = {0, 0, chunks};
    add_products(w, twice, w->T, s->hidden, all, 0);
    add_products(w, twice, w->T, wide, s->hidden, 1);
    add_products(w, twice, w->T, s->hidden, 2 * (int64_t)s->ffn, 0);
    add_products(w, once, w->T, s->ffn, s->hidden, 1);
    add_products(w, head, w->rows, s->hidden, s->vocab, 0);
    add(w, 1, 1, 0, rows_of(w, BENCH_ATTENTION, w->T, 0));
    add(w, 1, 0, 0, rows_of(w, BENCH_ATTENTION_BACK, w->T, 0));
    add(w, 1, 1, 0, rows_of(w, BENCH_ROTARY, w->T, 0));
    add(w, 1, 0, 0, rows_of(w, BENCH_ROTARY_BACK, w->T, 0));
    add(w, 2, 2, 0, rows_of(w, BENCH_NORM, w->T, s->hidden));
    add(w, 2, 0, 0, rows_of(w, BENCH_NORM_BACK, w->T, s->hidden));
    add(w, 1, 1, 0, rows_of(w, BENCH_SWIGLU, w->T, s->ffn));
    add(w, 1, 0, 0, rows_of(w, BENCH_SWIGLU_BACK, w->T, s->ffn));
    add(w, 2, 1, 0, rows_of(w, BENCH_COPY, w->T, s->hidden));
    add(w, 0, 0, 1, rows_of(w, BENCH_ZERO, w->T, s->hidden));
    add(w, 0, 0, 1, rows_of(w, BENCH_EMBED, w->T, s->hidden));
    add(w, 0, 0, 1, rows_of(w, BENCH_EMBED_BACK, w->T, s->hidden));
    add(w, 0, 0, chunks, rows_of(w, BENCH_NORM, w->rows, s->hidden));
    add(w, 0, 0, chunks, rows_of(w, BENCH_ENTROPY, w->rows, s->vocab));
    add(w, 0, 0, chunks, rows_of(w, BENCH_NORM_BACK, w->rows, s->hidden));
}

/* Half of the pack is one document, then a quarter and two eighths. */
static void make_pack(whole *w)
{
    const int64_t T = w->T;
    const int64_t borders[] = {0, T / 2, T / 2 + T / 4, T / 2 + T / 4 + T / 8, T};
    for (int i = 0; i < 5; i++)
        w->borders[i] = (int32_t)borders[i];
    w->tokens = bench_allocate(T, 4);
    w->targets = bench_allocate(T, 4);
    w->positions = bench_allocate(T, 4);
    w->weights = bench_allocate(T, 4);
    int document = 0;
    for (int64_t t = 0; t < T; t++) {
        document += t == borders[document + 1];
        w->tokens[t] = (int32_t)(t * 31 % w->shape.vocab);
        w->targets[t] = (int32_t)((t + 1) * 31 % w->shape.vocab);
        w->positions[t] = (int32_t)(t - borders[document]);
        w->weights[t] = 1 / (float)T;
    }
    w->alone = (ex_group){.size = 1};
    w->pack = (ex_pack){&w->alone, T, 0, w->tokens, w->targets, w->positions, w->weights, w->borders, 4};
}

static void make_model(whole *w)
{
    ex_device *device = w->rates->device;
    int64_t none = ex_model_measure(device, &w->shape, 1, w->T, 4, 0);
    int64_t all = ex_model_measure(device, &w->shape, 1, w->T, 4, w->shape.layers);
    bench_rates_need(w->rates);
    ex_fault fault = {0};
    w->comm = ex_self_open(&fault);
    if (!w->comm) {
        fprintf(stderr, "%s\n", fault.text);
        exit(1);
    }
    ex_comm_bind(w->comm, device);
    ex_parameters_create(device, &w->shape, 1, &w->parameters);
    need(w);
    ex_model_create(device, w->comm, &w->parameters, none > all ? none : all, &w->model);
    need(w);
    w->rows = w->model.chunk_rows < w->T ? w->model.chunk_rows : w->T;
}

/* A layer of the pack as the model runs it, its operands where the model would have them. */
static void make_layer(whole *w)
{
    const ex_shape *s = &w->shape;
    const int64_t wide = (int64_t)s->heads * s->head_dim;
    ex_run *r = &w->run;
    *r = (ex_run){.model = &w->model,
                  .device = w->rates->device,
                  .pack = &w->pack,
                  .shape = &w->shape,
                  .sp = 1,
                  .T = w->T,
                  .S = w->T,
                  .e = w->e,
                  .all = {s->heads, s->kv_heads, s->head_dim},
                  .mine = {s->heads, s->kv_heads, s->head_dim},
                  .q_all = wide,
                  .w_all = wide + 2 * (int64_t)s->kv_heads * s->head_dim,
                  .q_mine = wide,
                  .w_mine = wide + 2 * (int64_t)s->kv_heads * s->head_dim};
    r->positions = bench_rates_load(w->rates, w->positions, w->T * 4);
    r->documents = (ex_documents){bench_rates_load(w->rates, w->borders, (int64_t)sizeof w->borders),
                                  w->borders, 4, w->borders[1]};
    r->gradient = bench_rates_fill(w->rates, w->T * s->hidden * w->e);
    w->gradient = bench_rates_fill(w->rates, w->T * s->hidden * w->e);
    w->x = bench_rates_fill(w->rates, w->T * s->hidden * w->e);
}

static void prepare_layer(void *user)
{
    whole *w = user;
    w->run.device->ops->copy(w->run.device, w->run.gradient, w->gradient, w->T * w->shape.hidden * w->e);
    w->model.arena_used = 0;
}

static void run_layer(void *user)
{
    whole *w = user;
    ex_kept kept = {.x = w->x, .begin = w->model.arena_used};
    if (ex_layer_keep(&w->run, 0, &kept))
        return;
    void *out = ex_push_elements(&w->run, w->T, w->shape.hidden);
    if (!out)
        return;
    ex_layer_finish(&w->run, 0, &kept, out);
    ex_layer_back(&w->run, 0, &kept);
}

static void run_pack(void *user)
{
    whole *w = user;
    w->pack.recompute = 0;
    ex_model_run(&w->model, &w->pack);
}

static void run_recomputed(void *user)
{
    whole *w = user;
    w->pack.recompute = w->shape.layers;
    ex_model_run(&w->model, &w->pack);
}

static void close_all(whole *w)
{
    ex_device *device = w->rates->device;
    void *const own[] = {w->run.positions, (void *)(uintptr_t)w->run.documents.borders, w->run.gradient,
                         w->gradient, w->x};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        device->ops->release(device, own[i]);
    for (int i = 0; i < w->count; i++)
        bench_operation_close(&w->parts[i].operation);
    ex_model_free(&w->model);
    ex_parameters_free(&w->parameters);
    ex_comm_free(w->comm);
    free(w->tokens);
    free(w->targets);
    free(w->positions);
    free(w->weights);
}

/* What is printed at the end, of all pairs. */
typedef struct figures {
    double layer[BENCH_MOST_PAIRS], layer_over[BENCH_MOST_PAIRS];
    double pack[BENCH_MOST_PAIRS], pack_over[BENCH_MOST_PAIRS];
    double again_over_none[BENCH_MOST_PAIRS], again_over_sum[BENCH_MOST_PAIRS];
} figures;

static void measure(whole *w, figures *f, int32_t pair)
{
    double layer = 0, again = 0, outside = 0;
    for (int i = 0; i < w->count; i++) {
        part *p = &w->parts[i];
        p->seconds = bench_rates_time(w->rates, &p->operation.work);
        layer += p->layer * p->seconds;
        again += p->again * p->seconds;
        outside += p->outside * p->seconds;
    }
    const double layers = w->shape.layers, sum = outside + layers * layer;
    /* Something to prepare: each is run once a measurement. */
    const bench_work one = {run_layer, prepare_layer, w, 0}, none = {run_pack, prepare_layer, w, 0};
    const bench_work all = {run_recomputed, prepare_layer, w, 0};
    f->layer[pair] = bench_rates_time(w->rates, &one);
    f->pack[pair] = bench_rates_time(w->rates, &none);
    double recomputed = bench_rates_time(w->rates, &all);
    need(w);
    f->layer_over[pair] = f->layer[pair] / layer;
    f->pack_over[pair] = f->pack[pair] / sum;
    f->again_over_none[pair] = recomputed / f->pack[pair];
    f->again_over_sum[pair] = (sum + layers * again) / sum;
}

static void print(const whole *w, figures *f)
{
    const int32_t n = w->rates->pairs;
    bench_spread layer = bench_spread_of(f->layer_over, n), pack = bench_spread_of(f->pack_over, n);
    bench_spread again = bench_spread_of(f->again_over_none, n);
    bench_line("a layer, forward and backward", "%10.3f ms", 1e3 * bench_median(f->layer, n));
    bench_check(layer.median <= 1.3, "  over the sum of its operations alone", "<= 1.3",
                "%.3f (%.3f .. %.3f)", layer.median, layer.low, layer.high);
    double seconds = bench_median(f->pack, n);
    bench_line("the pack", "%10.3f ms, %.0f tokens/s", 1e3 * seconds, (double)w->T / seconds);
    bench_check(pack.median <= 1.3, "  over the sum of its operations alone", "<= 1.3", "%.3f (%.3f .. %.3f)",
                pack.median, pack.low, pack.high);
    bench_line("all layers recomputed over none", "%.3f (%.3f .. %.3f); by the operations %.3f", again.median,
               again.low, again.high, bench_median(f->again_over_sum, n));
}

void bench_whole_pack(const bench_rates *rates, const ex_shape *shape, int64_t tokens)
{
    whole *w = bench_allocate(1, sizeof *w);
    memset(w, 0, sizeof *w);
    w->rates = rates;
    w->shape = *shape;
    w->T = tokens;
    w->e = (int64_t)ex_type_bytes(rates->device->type);
    bench_section("A pack of %lld tokens: %d layers, documents of %lld, %lld, %lld and %lld",
                  (long long)tokens, (int)shape->layers, (long long)tokens / 2, (long long)tokens / 4,
                  (long long)tokens / 8, (long long)tokens / 8);
    make_pack(w);
    make_model(w);
    make_layer(w);
    add_parts(w);
    figures f;
    for (int32_t pair = 0; pair < rates->pairs; pair++)
        measure(w, &f, pair);
    print(w, &f);
    close_all(w);
    free(w);
}
