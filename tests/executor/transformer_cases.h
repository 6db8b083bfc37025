/* Ways to run the same samples through examples/executor/model, on any device: against the oracle, and
 * against one another. Ranks are threads (comm/local). */
#ifndef HBP_TESTS_EXECUTOR_TRANSFORMER_CASES_H
#define HBP_TESTS_EXECUTOR_TRANSFORMER_CASES_H

#include <pthread.h>

#include "../test.h"
#include "comm/comm.h"
#include "device/device.h"
#include "executor/llama_oracle.h"
#include "model/transformer.h"

enum { SAMPLES = 8, MOST_RANKS = 8, MOST_PACKS = 10, ARENA_BYTES = 4 << 20 };

/* 56 tokens in all, a multiple of 8. */
static const int case_lengths[SAMPLES] = {5, 12, 1, 9, 3, 17, 2, 7};
enum { CASE_TOKENS = 56 };

/* One pack: `count` samples `ids` in this order on ranks first .. first + sp - 1, padded to `tokens` (0:
 * none). The padding lengthens the last document when `inside`, else is a document. No samples: a dummy. */
typedef struct case_pack {
    int first, sp, recompute, count;
    int ids[SAMPLES];
    int tokens, inside;
} case_pack;

typedef struct arrangement {
    const char *name;
    int ranks;
    int chunk_rows; /* 0: the model's own */
    int count;
    case_pack packs[MOST_PACKS];
} arrangement;

/* The device under test, the shape, and what all arrangements share. */
typedef struct bench {
    ex_device *(*open)(ex_type type, ex_fault *fault);
    ex_type type;
    ex_shape shape;
    ex_device *device; /* holds `parameters`, which name the tensors' places */
    ex_parameters parameters;
    float *master; /* [elements] what every run begins with */
    int32_t tokens[SAMPLES][32];
    int32_t targets[SAMPLES][32];
    float weights[SAMPLES][32];
} bench;

/* Loss and gradients of one arrangement, summed over ranks. */
typedef struct outcome {
    double loss;
    float *gradients;
    int64_t arena_most; /* of rank 0 */
} outcome;

static inline uint32_t case_random(uint32_t *state)
{
    *state = *state * 1664525U + 1013904223U;
    return *state >> 8;
}

/* Matrices large enough that attention is far from uniform and gradients are far from zero; norms and biases
 * that are not 1 and 0. On the grid of bfloat16, so that every type has the same weights. */
static inline void case_stir(bench *b)
{
    uint32_t state = 7;
    const ex_parameters *p = &b->parameters;
    for (int64_t t = 0; t < p->count; t++)
        for (int64_t i = 0; i < p->tensors[t].rows * p->tensors[t].columns; i++) {
            float *w = &b->master[p->tensors[t].offset + i];
            if (p->tensors[t].rows > 1)
                *w *= 8;
            else
                *w += (float)(case_random(&state) % 1000) / 1500 - .3F;
            uint32_t bits;
            memcpy(&bits, w, sizeof bits);
            bits &= 0xffff0000;
            memcpy(w, &bits, sizeof bits);
        }
}

static inline bench *bench_open(ex_device *(*open)(ex_type, ex_fault *), ex_type type, ex_shape shape)
{
    bench *b = calloc(1, sizeof *b);
    ck_assert_ptr_nonnull(b);
    ex_fault fault = {0};
    b->open = open;
    b->type = type;
    b->shape = shape;
    b->device = open(type, &fault);
    ck_assert_msg(b->device != NULL, "%s", fault.text);
    ck_assert_msg(ex_parameters_create(b->device, &shape, 5, &b->parameters) == 0, "%s",
                  b->device->fault.text);
    size_t bytes = (size_t)b->parameters.elements * sizeof(float);
    b->master = malloc(bytes);
    b->device->ops->copy_out(b->device, b->master, b->parameters.master, (int64_t)bytes);
    case_stir(b);
    uint32_t state = 1;
    for (int i = 0; i < SAMPLES; i++)
        for (int t = 0; t < case_lengths[i]; t++) {
            b->tokens[i][t] = (int32_t)(case_random(&state) % (uint32_t)shape.vocab);
            b->targets[i][t] = (int32_t)(case_random(&state) % (uint32_t)shape.vocab);
            /* prompts weigh nothing, and their targets need not be tokens */
            b->weights[i][t] = t < case_lengths[i] / 4 ? 0 : (float)(case_random(&state) % 100 + 1) / 100;
            if (b->weights[i][t] == 0)
                b->targets[i][t] = -1;
        }
    return b;
}

static inline void bench_close(bench *b)
{
    ex_parameters_free(&b->parameters);
    ex_device_free(b->device);
    free(b->master);
    free(b);
}

/* A rank's thread. */
typedef struct case_rank {
    const bench *b;
    const arrangement *a;
    ex_comm *comm;
    outcome *out;    /* of rank 0 */
    char text[1100]; /* what failed */
} case_rank;

/* The whole pack in host memory. */
typedef struct case_numbers {
    int32_t tokens[CASE_TOKENS * 2], targets[CASE_TOKENS * 2], positions[CASE_TOKENS * 2];
    float weights[CASE_TOKENS * 2];
    int32_t borders[SAMPLES + 2];
    int64_t documents, total;
} case_numbers;

static inline void case_lay(const bench *b, const case_pack *p, case_numbers *n)
{
    memset(n, 0, sizeof *n);
    int at = 0;
    for (int i = 0; i < p->count; i++) {
        int id = p->ids[i];
        for (int t = 0; t < case_lengths[id]; t++, at++) {
            n->tokens[at] = b->tokens[id][t];
            n->targets[at] = b->targets[id][t];
            n->weights[at] = b->weights[id][t];
            n->positions[at] = t;
        }
        n->borders[++n->documents] = at;
    }
    for (int t = at; t < p->tokens; t++) {
        n->tokens[t] = 3;
        n->targets[t] = -100;
        n->positions[t] = t ? n->positions[t - 1] + 1 : 0;
    }
    if (p->tokens > at && p->inside)
        n->borders[n->documents] = p->tokens;
    else if (p->tokens > at)
        n->borders[++n->documents] = p->tokens;
    n->total = n->borders[n->documents];
}

static inline int case_run_pack(const bench *b, ex_model *model, const ex_group *group, const case_pack *p)
{
    case_numbers n;
    case_lay(b, p, &n);
    int64_t from = n.total / group->size * group->rank;
    ex_pack pack = {.group = group,
                    .pack_tokens = n.total,
                    .recompute = p->recompute,
                    .tokens = n.tokens + from,
                    .targets = n.targets + from,
                    .positions = n.positions + from,
                    .weights = n.weights + from,
                    .borders = n.borders,
                    .documents = n.documents};
    return ex_model_run(model, &pack);
}

static inline void case_run_packs(case_rank *r, ex_model *model)
{
    ex_comm *comm = r->comm;
    ex_group groups[9] = {0};
    for (int size = 1; size <= r->a->ranks; size *= 2) {
        groups[size].size = size;
        comm->ops->make_group(comm, &groups[size]);
    }
    if (r->a->chunk_rows)
        model->chunk_rows = r->a->chunk_rows;
    for (int i = 0; i < r->a->count; i++) {
        const case_pack *p = &r->a->packs[i];
        if (comm->rank >= p->first && comm->rank < p->first + p->sp &&
            case_run_pack(r->b, model, &groups[p->sp], p))
            break;
    }
    double loss = ex_model_take_loss(model);
    double losses[MOST_RANKS] = {0};
    int64_t elements = model->parameters->elements;
    comm->ops->all_reduce(comm, &comm->world, model->parameters->gradients, elements);
    comm->ops->gather_host(comm, &loss, losses, sizeof loss);
    if (comm->rank == 0) {
        for (int i = 0; i < comm->ranks; i++)
            r->out->loss += losses[i];
        model->device->ops->copy_out(model->device, r->out->gradients, model->parameters->gradients,
                                     elements * (int64_t)sizeof(float));
        r->out->arena_most = model->arena_most;
    }
    for (int size = 1; size <= r->a->ranks; size *= 2)
        comm->ops->free_group(comm, &groups[size]);
}

static inline void *case_rank_main(void *argument)
{
    case_rank *r = argument;
    const bench *b = r->b;
    ex_fault fault = {0};
    ex_parameters parameters = {0};
    ex_model model = {0};
    ex_device *device = b->open(b->type, &fault);
    if (!device) {
        r->comm->ops->abandon(r->comm, fault.text);
        memcpy(r->text, fault.text, sizeof fault.text);
        return NULL;
    }
    if (ex_comm_bind(r->comm, device) == 0 && ex_parameters_create(device, &b->shape, 5, &parameters) == 0 &&
        ex_model_create(device, r->comm, &parameters, ARENA_BYTES, &model) == 0) {
        device->ops->copy_in(device, parameters.master, b->master,
                             parameters.elements * (int64_t)sizeof(float));
        device->ops->cast(device, parameters.master, parameters.weights, parameters.elements);
        case_run_packs(r, &model);
    }
    if (device->fault.failed)
        r->comm->ops->abandon(r->comm, device->fault.text);
    snprintf(r->text, sizeof r->text, "%s%s", device->fault.text, r->comm->fault.text);
    ex_model_free(&model);
    ex_parameters_free(&parameters);
    ex_device_free(device);
    return NULL;
}

/* Runs an arrangement; free_outcome frees what it gives. */
static inline outcome run_arrangement(const bench *b, const arrangement *a)
{
    ex_comm *comms[MOST_RANKS];
    case_rank ranks[MOST_RANKS];
    pthread_t threads[MOST_RANKS];
    ex_fault fault = {0};
    outcome out = {.gradients = calloc((size_t)b->parameters.elements, sizeof(float))};
    ck_assert_msg(ex_local_open(a->ranks, 60, comms, &fault) == 0, "%s", fault.text);
    for (int i = 0; i < a->ranks; i++) {
        ranks[i] = (case_rank){.b = b, .a = a, .comm = comms[i], .out = &out};
        ck_assert_int_eq(pthread_create(&threads[i], NULL, case_rank_main, &ranks[i]), 0);
    }
    for (int i = 0; i < a->ranks; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < a->ranks; i++) {
        ex_comm_free(comms[i]);
        ck_assert_msg(ranks[i].text[0] == '\0', "%s, rank %d: %s", a->name, i, ranks[i].text);
    }
    return out;
}

static inline void free_outcome(outcome *out)
{
    free(out->gradients);
}

/* Every tensor: the largest difference against the largest value. Returns the worst ratio. */
static inline double compare_outcomes(const bench *b, const char *name, const outcome *expected,
                                      const outcome *got, double tolerance)
{
    double worst = fabs(got->loss - expected->loss) / fabs(expected->loss);
    ck_assert_msg(worst <= tolerance, "%s: loss %.9g instead of %.9g", name, got->loss, expected->loss);
    for (int64_t t = 0; t < b->parameters.count; t++) {
        const ex_tensor *tensor = &b->parameters.tensors[t];
        double largest = 0, difference = 0;
        for (int64_t i = tensor->offset; i < tensor->offset + tensor->rows * tensor->columns; i++) {
            largest = fmax(largest, fabs(expected->gradients[i]));
            double d = fabs((double)got->gradients[i] - expected->gradients[i]);
            difference = d > difference || isnan(d) ? d : difference;
        }
        ck_assert_msg(difference <= tolerance * largest && largest > 0,
                      "%s: gradient of %s differs by %.3g where the largest is %.3g", name, tensor->name,
                      difference, largest);
        worst = fmax(worst, difference / largest);
    }
    return worst;
}

/* The oracle's answer for all samples. */
static inline outcome run_oracle(const bench *b)
{
    int64_t elements = b->parameters.elements;
    double *w = oracle_zeros(elements);
    double *g = oracle_zeros(elements);
    for (int64_t i = 0; i < elements; i++)
        w[i] = b->master[i];
    oracle o = {&b->parameters, w, g};
    outcome out = {.gradients = calloc((size_t)elements, sizeof(float))};
    for (int i = 0; i < SAMPLES; i++)
        out.loss += oracle_sample(&o, case_lengths[i], b->tokens[i], b->targets[i], b->weights[i]);
    for (int64_t i = 0; i < elements; i++)
        out.gradients[i] = (float)g[i];
    free(w);
    free(g);
    return out;
}

#define ALL_SAMPLES                                                                                          \
    8,                                                                                                       \
    {                                                                                                        \
        0, 1, 2, 3, 4, 5, 6, 7                                                                               \
    }

static const arrangement unpacked = {"one by one",
                                     1,
                                     0,
                                     8,
                                     {{0, 1, 0, 1, {0}, 0, 0},
                                      {0, 1, 0, 1, {1}, 0, 0},
                                      {0, 1, 0, 1, {2}, 0, 0},
                                      {0, 1, 0, 1, {3}, 0, 0},
                                      {0, 1, 0, 1, {4}, 0, 0},
                                      {0, 1, 0, 1, {5}, 0, 0},
                                      {0, 1, 0, 1, {6}, 0, 0},
                                      {0, 1, 0, 1, {7}, 0, 0}}};

/* Every one has the same samples, so the same loss and gradients. The first FEW are for slow devices. */
enum { FEW_ARRANGEMENTS = 4 };
static const arrangement arrangements[] = {
    {"packed, chunks of 13 logits", 1, 13, 1, {{0, 1, 0, ALL_SAMPLES, 0, 0}}},
    {"SP 2, one layer recomputed", 2, 0, 1, {{0, 2, 1, ALL_SAMPLES, 64, 0}}},
    {"SP 4 > key-value heads", 4, 0, 1, {{0, 4, 0, ALL_SAMPLES, 0, 0}}},
    {"groups of 4, 2, 1 and 1",
     8,
     0,
     4,
     {{0, 4, 1, 3, {5, 0, 2}, 24, 0},
      {4, 2, 0, 2, {1, 6}, 0, 0},
      {6, 1, 0, 1, {3}, 0, 0},
      {7, 1, 2, 2, {7, 4}, 0, 0}}},
    {"packed", 1, 0, 1, {{0, 1, 0, ALL_SAMPLES, 0, 0}}},
    {"packed in another order", 1, 0, 1, {{0, 1, 0, 8, {7, 2, 5, 0, 6, 1, 4, 3}, 0, 0}}},
    {"two packs, one recomputed",
     1,
     0,
     2,
     {{0, 1, 0, 4, {6, 3, 1, 4}, 0, 0}, {0, 1, 2, 4, {5, 0, 2, 7}, 0, 0}}},
    {"padding as a document", 1, 0, 1, {{0, 1, 1, ALL_SAMPLES, 64, 0}}},
    {"padding in the last document", 1, 0, 1, {{0, 1, 0, ALL_SAMPLES, 64, 1}}},
    {"SP 2", 2, 0, 1, {{0, 2, 0, ALL_SAMPLES, 0, 0}}},
    {"SP 4, all recomputed, padding", 4, 3, 1, {{0, 4, 2, ALL_SAMPLES, 60, 1}}},
    {"SP 8", 8, 0, 1, {{0, 8, 0, ALL_SAMPLES, 0, 0}}},
    {"SP 8, recomputed, another order", 8, 0, 1, {{0, 8, 2, 8, {5, 4, 3, 2, 1, 0, 7, 6}, 72, 0}}},
    {"groups that change, and dummies",
     8,
     0,
     9,
     {{0, 2, 0, 2, {7, 2}, 0, 0},
      {2, 2, 1, 1, {1}, 0, 0},
      {4, 4, 2, 2, {3, 4}, 0, 0},
      {0, 8, 0, 1, {5}, 24, 0},
      {0, 1, 0, 0, {0}, 2, 0},
      {1, 1, 1, 1, {6}, 0, 0},
      {2, 2, 0, 0, {0}, 4, 0},
      {4, 2, 2, 1, {0}, 6, 1},
      {6, 2, 1, 0, {0}, 2, 0}}},
};

/* Loss and gradients: one by one against the oracle within `oracle_tolerance`, all other arrangements (the
 * first `count`) against one by one within `tolerance`. Prints nothing; returns the worst ratio among the
 * arrangements. */
static inline double run_transformer_cases(ex_device *(*open)(ex_type, ex_fault *), ex_type type,
                                           ex_shape shape, size_t count, double oracle_tolerance,
                                           double tolerance)
{
    bench *b = bench_open(open, type, shape);
    outcome expected = run_oracle(b);
    outcome single = run_arrangement(b, &unpacked);
    compare_outcomes(b, "the oracle", &expected, &single, oracle_tolerance);
    double worst = 0;
    for (size_t i = 0; i < count; i++) {
        outcome got = run_arrangement(b, &arrangements[i]);
        worst = fmax(worst, compare_outcomes(b, arrangements[i].name, &single, &got, tolerance));
        free_outcome(&got);
    }
    free_outcome(&expected);
    free_outcome(&single);
    bench_close(b);
    return worst;
}

/* Eight heads so that eight ranks can share them. */
static inline ex_shape case_shape(int kv_heads, int head_dim, int linked, int bias)
{
    return (ex_shape){.layers = 2,
                      .hidden = 32,
                      .ffn = 40,
                      .heads = 8,
                      .kv_heads = kv_heads,
                      .head_dim = head_dim,
                      .vocab = 50,
                      .tied_embeddings = linked,
                      .qkv_bias = bias,
                      .theta = 10000,
                      .epsilon = 1e-5F};
}

#endif
