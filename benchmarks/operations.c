#include "operations.h"

#include <stdlib.h>

#include "common.h"

/* Of rotary positions and of norms: any will do. */
#define THETA   500000.0F
#define EPSILON 1e-5F

static void run(void *user)
{
    const bench_operation *o = user;
    const bench_shape *s = &o->shape;
    const ex_device_ops *ops = o->device->ops;
    void *const *at = o->at;
    const int32_t dim = s->heads.dim;
    const int64_t row = (s->heads.heads + 2 * (int64_t)s->heads.kv_heads) * dim;
    const ex_adam adam = {1e-3F, .9F, .95F, 1e-8F, .1F, .5F, .5F, 1};
    switch (s->kind) {
    case BENCH_PRODUCT:
        ops->gemm(o->device, s->trans_a, s->trans_b, s->T, s->n, s->k, at[0], at[1], s->adds ? 1 : 0, at[2],
                  s->sums_f32);
        break;
    case BENCH_COPY:
        ops->copy(o->device, at[1], at[0], s->T * s->n * (int64_t)ex_type_bytes(o->device->type));
        break;
    case BENCH_ZERO:
        ops->zero(o->device, at[0], s->T * s->n * (int64_t)ex_type_bytes(o->device->type));
        break;
    case BENCH_EMBED:
        ops->embed(o->device, at[0], at[1], s->T, s->n, at[2]);
        break;
    case BENCH_EMBED_BACK:
        ops->embed_back(o->device, at[0], at[1], at[2], s->T, s->n, at[3]);
        break;
    case BENCH_NORM:
        ops->norm(o->device, at[0], at[1], s->T, s->n, EPSILON, at[2], at[3]);
        break;
    case BENCH_NORM_BACK:
        ops->norm_back(o->device, at[0], at[1], at[2], at[3], s->T, s->n, at[4], at[5]);
        break;
    case BENCH_ROTARY:
    case BENCH_ROTARY_BACK:
        ops->rotary(o->device, at[0], at[1], s->T, row, s->heads.heads + s->heads.kv_heads, dim, THETA,
                    s->kind == BENCH_ROTARY_BACK);
        break;
    case BENCH_SPLIT:
        ops->split(o->device, at[0], s->T, s->heads, (int32_t)s->k, at[1]);
        break;
    case BENCH_MERGE:
        ops->merge(o->device, at[0], s->T, s->heads, (int32_t)s->k, at[1]);
        break;
    case BENCH_ATTENTION:
        ops->attention(o->device, at[0], &o->of, s->T, s->heads, at[1], at[2]);
        break;
    case BENCH_ATTENTION_BACK:
        ops->attention_back(o->device, at[0], at[1], at[3], at[2], &o->of, s->T, s->heads, at[4], at[5]);
        break;
    case BENCH_SWIGLU:
        ops->swiglu(o->device, at[0], s->T, s->n, at[1]);
        break;
    case BENCH_SWIGLU_BACK: /* in place, numbers would dwindle from run to run */
        ops->swiglu_back(o->device, at[0], at[1], s->T, s->n, at[2]);
        break;
    case BENCH_ENTROPY:
        ops->cross_entropy(o->device, at[0], at[1], at[2], s->T, s->n, at[3]);
        break;
    default:
        ops->adam(o->device, s->n, at[0], at[1], at[2], at[3], at[4], adam);
        break;
    }
}

/* Device [count] of t * most / count: tokens in ascending order, or with most = count 0, 1, 2 ... */
static void *ascending(const bench_rates *rates, int64_t count, int64_t most)
{
    int32_t *values = bench_allocate(count, sizeof *values);
    for (int64_t t = 0; t < count; t++)
        values[t] = (int32_t)(t * most / count);
    void *at = bench_rates_load(rates, values, count * (int64_t)sizeof *values);
    free(values);
    return at;
}

static void open_product(const bench_rates *r, bench_operation *o, int64_t e)
{
    const bench_shape *s = &o->shape;
    o->at[0] = bench_rates_fill(r, s->T * s->k * e);
    o->at[1] = bench_rates_fill(r, s->k * s->n * e);
    o->at[2] = bench_rates_zeros(r, s->T * s->n * (s->sums_f32 ? 4 : e));
    o->work.done = 2. * (double)s->T * (double)s->n * (double)s->k;
}

static void open_attention(const bench_rates *r, bench_operation *o, int64_t e)
{
    const bench_shape *s = &o->shape;
    const int64_t wide = (int64_t)s->heads.heads * s->heads.dim;
    const int64_t row = wide + 2 * (int64_t)s->heads.kv_heads * s->heads.dim;
    o->of = (ex_documents){.host_borders = s->borders, .count = s->documents};
    double squares = 0;
    for (int64_t i = 0; i < s->documents; i++) {
        int32_t length = s->borders[i + 1] - s->borders[i];
        squares += (double)length * length;
        o->of.longest = length > o->of.longest ? length : o->of.longest;
    }
    o->of.borders = o->at[6] = bench_rates_load(r, s->borders, (s->documents + 1) * 4);
    o->at[0] = bench_rates_fill(r, s->T * row * e);
    o->at[1] = bench_rates_fill(r, s->T * wide * e);
    o->at[2] = bench_rates_fill(r, s->T * s->heads.heads * 4);
    o->work.done = (s->kind == BENCH_ATTENTION ? 2 : 5) * squares * (double)wide;
    if (s->kind == BENCH_ATTENTION)
        return;
    /* The backward pass reads what the forward one has written. */
    o->device->ops->attention(o->device, o->at[0], &o->of, s->T, s->heads, o->at[1], o->at[2]);
    o->at[3] = bench_rates_fill(r, s->T * wide * e);
    o->at[4] = bench_rates_zeros(r, s->T * row * e);
    o->at[5] = bench_rates_zeros(r, o->device->ops->attention_scratch(o->device, s->T, s->heads));
}

/* Operations on heads: rows of queries, keys and values. */
static void open_heads(const bench_rates *r, bench_operation *o, int64_t e)
{
    const bench_shape *s = &o->shape;
    const int64_t heads = s->heads.heads + (int64_t)s->heads.kv_heads, dim = s->heads.dim;
    const int64_t row = (heads + s->heads.kv_heads) * dim;
    o->at[0] = bench_rates_fill(r, s->T * row * e);
    int turns = s->kind == BENCH_ROTARY || s->kind == BENCH_ROTARY_BACK;
    o->at[1] = turns ? ascending(r, s->T, s->T) : bench_rates_zeros(r, s->T * row * e);
    o->work.done = 2. * (double)(s->T * (turns ? heads * dim : row) * e) + (turns ? 4. * (double)s->T : 0);
}

static void open_rows(const bench_rates *r, bench_operation *o, int64_t e)
{
    const bench_shape *s = &o->shape;
    const int64_t rows = s->T * s->n * e;
    switch (s->kind) {
    case BENCH_COPY:
        o->at[0] = bench_rates_fill(r, rows);
        o->at[1] = bench_rates_zeros(r, rows);
        o->work.done = 2. * (double)rows;
        break;
    case BENCH_ZERO:
        o->at[0] = bench_rates_zeros(r, rows);
        o->work.done = (double)rows;
        break;
    case BENCH_EMBED:
        o->at[0] = bench_rates_fill(r, s->k * s->n * e);
        o->at[1] = ascending(r, s->T, s->k);
        o->at[2] = bench_rates_zeros(r, rows);
        o->work.done = 2. * (double)rows + 4. * (double)s->T;
        break;
    case BENCH_EMBED_BACK: {
        int64_t sums = s->k < s->T ? s->k : s->T;
        o->at[0] = bench_rates_fill(r, rows);
        o->at[1] = ascending(r, s->T, s->k);
        o->at[2] = ascending(r, s->T, s->T);
        o->at[3] = bench_rates_zeros(r, s->k * s->n * 4);
        o->work.done = (double)rows + 8. * (double)(sums * s->n + s->T);
        break;
    }
    case BENCH_NORM:
        o->at[0] = bench_rates_fill(r, rows);
        o->at[1] = bench_rates_fill(r, s->n * e);
        o->at[2] = bench_rates_zeros(r, rows);
        o->at[3] = bench_rates_zeros(r, s->T * 4);
        o->work.done = 2. * (double)rows + 4. * (double)s->T;
        break;
    case BENCH_NORM_BACK:
        o->at[0] = bench_rates_fill(r, rows);
        o->at[1] = bench_rates_fill(r, s->n * e);
        o->at[2] = bench_rates_zeros(r, s->T * 4);
        o->device->ops->norm(o->device, o->at[0], o->at[1], s->T, s->n, EPSILON,
                             o->at[4] = bench_rates_zeros(r, rows), o->at[2]);
        o->at[3] = bench_rates_fill(r, rows);
        o->at[5] = bench_rates_zeros(r, s->n * 4);
        o->work.done = 4. * (double)rows + 4. * (double)s->T;
        break;
    default: /* SwiGLU: n of 2 n */
        o->at[0] = bench_rates_fill(r, 2 * rows);
        o->at[1] = bench_rates_fill(r, rows);
        o->at[2] = s->kind == BENCH_SWIGLU_BACK ? bench_rates_zeros(r, 2 * rows) : NULL;
        o->work.done = (s->kind == BENCH_SWIGLU_BACK ? 5. : 3.) * (double)rows;
        break;
    }
}

static void open_entropy(const bench_rates *r, bench_operation *o, int64_t e)
{
    const bench_shape *s = &o->shape;
    float *weights = bench_allocate(s->T, sizeof *weights);
    for (int64_t t = 0; t < s->T; t++)
        weights[t] = 1;
    o->at[0] = bench_rates_fill(r, s->T * s->n * e);
    o->at[1] = ascending(r, s->T, s->n);
    o->at[2] = bench_rates_load(r, weights, s->T * 4);
    o->at[3] = bench_rates_zeros(r, 8);
    o->work.done = 2. * (double)(s->T * s->n * e);
    free(weights);
}

static void open_adam(const bench_rates *r, bench_operation *o, int64_t e)
{
    const int64_t n = o->shape.n;
    o->at[0] = bench_rates_fill(r, n * 4);
    for (int i = 1; i < 4; i++)
        o->at[i] = bench_rates_zeros(r, n * 4);
    o->at[4] = bench_rates_fill(r, n * e);
    o->work.done = (double)(n * (28 + e)); /* four read, three written, and the weights */
}

void bench_operation_open(const bench_rates *rates, const bench_shape *shape, bench_operation *o)
{
    const int64_t e = (int64_t)ex_type_bytes(rates->device->type);
    *o = (bench_operation){.device = rates->device, .shape = *shape, .work = {.run = run, .user = o}};
    switch (shape->kind) {
    case BENCH_PRODUCT:
        open_product(rates, o, e);
        break;
    case BENCH_ATTENTION:
    case BENCH_ATTENTION_BACK:
        open_attention(rates, o, e);
        break;
    case BENCH_ROTARY:
    case BENCH_ROTARY_BACK:
    case BENCH_SPLIT:
    case BENCH_MERGE:
        open_heads(rates, o, e);
        break;
    case BENCH_ENTROPY:
        open_entropy(rates, o, e);
        break;
    case BENCH_ADAM:
        open_adam(rates, o, e);
        break;
    default:
        open_rows(rates, o, e);
        break;
    }
    bench_rates_need(rates);
}

void bench_operation_close(bench_operation *o)
{
    for (int i = 0; i < BENCH_OPERANDS; i++)
        o->device->ops->release(o->device, o->at[i]);
    *o = (bench_operation){0};
}
