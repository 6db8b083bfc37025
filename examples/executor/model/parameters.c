#include "model/parameters.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Elements drawn on the host at a time: 4 MiB. */
enum { PIECE = 1 << 20, ALIGNMENT = 64 };

static int64_t layer_tensors(const ex_shape *shape)
{
    return shape->qkv_bias ? EX_LAYER_TENSORS : EX_LAYER_TENSORS - 1;
}

static void append(ex_parameters *p, const char *prefix, const char *name, int64_t rows, int64_t columns)
{
    ex_tensor *tensor = &p->tensors[p->count++];
    snprintf(tensor->name, sizeof tensor->name, "%s%s", prefix, name);
    tensor->rows = rows;
    tensor->columns = columns;
    tensor->offset = p->elements;
    p->elements += (rows * columns + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* A matrix [rows, columns] takes `columns` numbers to `rows`: y = x W^T. */
static int lay_out(ex_parameters *p)
{
    const ex_shape *s = &p->shape;
    int64_t most = s->layers * layer_tensors(s) + 3;
    p->tensors = calloc((size_t)most, sizeof *p->tensors);
    if (!p->tensors)
        return ex_fail(&p->device->fault, "no host memory for the names of %lld tensors", (long long)most);
    int64_t h = s->hidden;
    int64_t queries = (int64_t)s->heads * s->head_dim;
    int64_t qkv = queries + 2 * (int64_t)s->kv_heads * s->head_dim;
    append(p, "", "embedding", s->vocab, h);
    for (int32_t l = 0; l < s->layers; l++) {
        char prefix[24];
        snprintf(prefix, sizeof prefix, "layers.%d.", (int)l);
        append(p, prefix, "norm1", 1, h);
        append(p, prefix, "qkv", qkv, h);
        if (s->qkv_bias)
            append(p, prefix, "qkv_bias", 1, qkv);
        append(p, prefix, "out", h, queries);
        append(p, prefix, "norm2", 1, h);
        append(p, prefix, "gate_up", 2 * (int64_t)s->ffn, h);
        append(p, prefix, "down", h, s->ffn);
    }
    append(p, "", "final_norm", 1, h);
    if (!s->tied_embeddings)
        append(p, "", "output", s->vocab, h);
    return 0;
}

int ex_parameters_allocate(ex_device *device, const ex_shape *shape, ex_parameters *parameters)
{
    *parameters = (ex_parameters){.device = device, .shape = *shape};
    if (lay_out(parameters))
        return -1;
    int64_t elements = parameters->elements;
    float **arrays[] = {&parameters->master, &parameters->gradients, &parameters->mean,
                        &parameters->variance};
    parameters->weights = device->ops->allocate(device, elements * (int64_t)ex_type_bytes(device->type));
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        *arrays[i] = device->ops->allocate(device, elements * (int64_t)sizeof(float));
        if (*arrays[i])
            device->ops->zero(device, *arrays[i], elements * (int64_t)sizeof(float));
    }
    if (device->fault.failed) {
        ex_parameters_free(parameters);
        return -1;
    }
    return 0;
}

/* splitmix64's output function (Steele, Lea and Flood 2014) at counter `place` of `stream`. */
static uint64_t hash(uint64_t stream, uint64_t place)
{
    uint64_t z = stream + (place + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* The sum of four uniform 16-bit integers (Irwin-Hall), less its mean, times `scale`: bell-shaped, cut
 * at 3.46 standard deviations. Exact but for one product, so that hosts with different libraries of functions
 * draw the same bits, which a logarithm would not promise. */
static float draw(uint64_t stream, uint64_t place, float scale)
{
    uint64_t z = hash(stream, place);
    int32_t sum = (int32_t)((z & 0xffff) + ((z >> 16) & 0xffff) + ((z >> 32) & 0xffff) + (z >> 48));
    return (float)(sum - 2 * 65535) * scale;
}

/* What a tensor begins as: all of it `constant`, or drawn with standard deviation `deviation` > 0. */
typedef struct beginning {
    float constant;
    double deviation;
} beginning;

static beginning begin(const ex_parameters *p, int64_t tensor)
{
    const char *dot = strrchr(p->tensors[tensor].name, '.');
    const char *name = dot ? dot + 1 : p->tensors[tensor].name;
    if (strcmp(name, "norm1") == 0 || strcmp(name, "norm2") == 0 || strcmp(name, "final_norm") == 0)
        return (beginning){1, 0};
    if (strcmp(name, "qkv_bias") == 0)
        return (beginning){0, 0};
    /* What is added to the residual 2 layers times grows with the root of that number (GPT-2). */
    int residual = strcmp(name, "out") == 0 || strcmp(name, "down") == 0;
    return (beginning){0, residual ? .02 / sqrt(2. * p->shape.layers) : .02};
}

static int draw_all(ex_parameters *p, uint64_t seed)
{
    /* The variance of one uniform integer below 2^16 is (2^32 - 1) / 12; of four, a third of 2^32 - 1. */
    const double unit = sqrt((65536. * 65536 - 1) / 3);
    const uint64_t stream = hash(seed, 0); /* streams of neighbouring seeds begin far apart */
    float *piece = malloc(PIECE * sizeof *piece);
    if (!piece)
        return ex_fail(&p->device->fault, "no host memory for %lld bytes of weights",
                       (long long)(PIECE * sizeof *piece));
    for (int64_t t = 0; t < p->count; t++) {
        const ex_tensor *tensor = &p->tensors[t];
        int64_t count = tensor->rows * tensor->columns;
        beginning with = begin(p, t);
        float scale = (float)(with.deviation / unit);
        for (int64_t from = 0; from < count; from += PIECE) {
            int64_t length = count - from < PIECE ? count - from : PIECE;
            for (int64_t i = 0; i < length; i++)
                piece[i] = with.deviation > 0 ? draw(stream, (uint64_t)(tensor->offset + from + i), scale)
                                              : with.constant;
            p->device->ops->copy_in(p->device, p->master + tensor->offset + from, piece,
                                    length * (int64_t)sizeof *piece);
        }
    }
    free(piece);
    p->device->ops->cast(p->device, p->master, p->weights, p->elements);
    return ex_device_sync(p->device);
}

int ex_parameters_create(ex_device *device, const ex_shape *shape, uint64_t seed, ex_parameters *parameters)
{
    if (ex_parameters_allocate(device, shape, parameters))
        return -1;
    if (draw_all(parameters, seed)) {
        ex_parameters_free(parameters);
        return -1;
    }
    return 0;
}

void ex_parameters_free(ex_parameters *parameters)
{
    if (!parameters->device)
        return;
    void *arrays[] = {parameters->weights, parameters->master, parameters->gradients, parameters->mean,
                      parameters->variance};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        if (arrays[i])
            parameters->device->ops->release(parameters->device, arrays[i]);
    free(parameters->tensors);
    *parameters = (ex_parameters){0};
}

const ex_tensor *ex_parameters_get(const ex_parameters *parameters, int32_t layer, int32_t which)
{
    const ex_shape *shape = &parameters->shape;
    int64_t in_layer = layer_tensors(shape);
    if (layer < 0) {
        if (which == EX_EMBEDDING)
            return &parameters->tensors[0];
        int64_t place = 1 + shape->layers * in_layer + (which == EX_OUTPUT);
        return place < parameters->count ? &parameters->tensors[place] : NULL;
    }
    if (which == EX_QKV_BIAS && !shape->qkv_bias)
        return NULL;
    int64_t place = which > EX_QKV_BIAS && !shape->qkv_bias ? which - 1 : which;
    return &parameters->tensors[1 + layer * in_layer + place];
}
