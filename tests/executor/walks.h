/* Plans for the executor's tests, and runs of them on virtual ranks, threads of the test. */
#ifndef TESTS_EXECUTOR_WALKS_H
#define TESTS_EXECUTOR_WALKS_H

#include <math.h>
#include <pthread.h>

#include "comm/comm.h"
#include "device/device.h"
#include "test.h"
#include "walk/check.h"
#include "walk/walk.h"

/* 4 layers, 8 heads, 2 key-value heads: degrees 1, 2, 4, 8 are legal, and 4 and 8 repeat key-value heads. */
static inline hbp_model *walk_model(hbp_context *context)
{
    hbp_model_fields f = {.struct_size = sizeof f};
    f.layers = 4;
    f.hidden = 32;
    f.ffn = 48;
    f.heads = 8;
    f.kv_heads = 2;
    f.head_dim = 8;
    f.vocab = 61;
    hbp_model *model = NULL;
    OK(context, hbp_model_create(context, &f, &model));
    return model;
}

/* A cost of `ranks` ranks on which a rank holds about `capacity` tokens with nothing recomputed, so that
 * longer samples need higher degrees. */
static inline hbp_cost *walk_cost(hbp_context *context, int32_t ranks, int32_t max_sp, int64_t capacity)
{
    static const int32_t degree[] = {1, 2, 4, 8};
    static const double latency[] = {0, 3e5, 4e5, 5e5};
    static const double per_token[] = {0, 300, 350, 400};
    hbp_cost_terms t = {.struct_size = sizeof t};
    t.ranks = ranks;
    t.layers = 4;
    t.ns_per_token = 5000;
    t.ns_per_token_squared = 4;
    t.recompute_linear = .3;
    t.recompute_attention = .3;
    t.recompute_communication = .5;
    t.pack_ns = 20000;
    t.static_bytes = 1e5;
    t.activation_bytes = 1000;
    t.recomputed_bytes = 300;
    t.working_bytes = 1000;
    t.logits_bytes = 100;
    t.limit_bytes = 100000 + capacity * 4100;
    while (t.degrees < 4 && degree[t.degrees] <= max_sp)
        t.degrees++;
    t.degree = degree;
    t.sp_latency_ns = latency;
    t.sp_ns_per_token = per_token;
    hbp_cost *cost = NULL;
    OK(context, hbp_cost_create_terms(context, &t, &cost));
    return cost;
}

static inline hbp_lengths *walk_lengths(hbp_context *context, const uint32_t *tokens, int64_t count)
{
    hbp_lengths *lengths = NULL;
    OK(context, hbp_lengths_create_u32(context, tokens, count, NULL, &lengths));
    return lengths;
}

/* Lengths with a tail: most short, a few up to `longest`. */
static inline void walk_draw(uint32_t *tokens, int64_t count, uint32_t longest, uint32_t seed)
{
    uint32_t state = seed * 2654435761U + 1;
    for (int64_t i = 0; i < count; i++) {
        state = state * 1664525U + 1013904223U;
        uint32_t most = longest >> (state >> 28 & 7) % 5;
        tokens[i] = 1 + (state >> 8) % (most ? most : 1);
    }
    tokens[count / 2] = longest;
}

/* What one run came to. */
typedef struct walk_result {
    int status[16]; /* of each rank */
    char message[16][512];
    double loss, norm; /* of the last step */
    double losses[16];
    int64_t steps;
    ex_record record; /* rank 0's */
    char device[128];
} walk_result;

typedef struct walk_job {
    const ex_walk_options *options;
    ex_comm *comm;
    int32_t ranks;
    ex_type type;
    hbp_model *model;
    walk_result *result;
    int changed_seed; /* this rank differs */
} walk_job;

static inline void walk_on_step(void *user, const ex_step *s)
{
    walk_result *r = user;
    r->loss = s->loss;
    r->norm = s->norm;
    if (r->steps < 16)
        r->losses[r->steps] = s->loss;
    r->steps++;
}

static inline void *walk_rank(void *argument)
{
    walk_job *j = argument;
    int32_t rank = j->comm->rank;
    ex_fault fault = {0};
    ex_walk_options o = *j->options;
    walk_result ignored = {0};
    o.on_step = walk_on_step;
    o.user = rank == 0 ? j->result : &ignored;
    if (o.record)
        o.record = rank == 0 ? &j->result->record : &ignored.record;
    o.seed += (uint64_t)j->changed_seed;
    hbp_context *context = NULL;
    ex_device *device = ex_cpu_open(j->type, 1, &fault);
    hbp_context_create(NULL, &context);
    ex_comm_bind(j->comm, device);
    hbp_plan_summary all;
    all.struct_size = sizeof all;
    hbp_plan_get_summary(context, o.plan, &all);
    ex_check check = {.plan = o.plan,
                      .model = j->model,
                      .shape = o.shape,
                      .ranks = j->ranks,
                      .sharers = j->ranks,
                      .steps = all.steps,
                      .recompute = o.recompute,
                      .unpacked = o.unpacked};
    int status = ex_check_memory(&check, device, &o.arena_bytes, &fault);
    if (status == 0)
        status = ex_walk(&o, context, device, j->comm, &fault);
    j->result->status[rank] = status;
    snprintf(j->result->message[rank], sizeof j->result->message[rank], "%s", fault.text);
    if (rank == 0)
        snprintf(j->result->device, sizeof j->result->device, "%s", device->name);
    if (status == -1)
        j->comm->ops->abandon(j->comm, fault.text);
    ex_record_free(&ignored.record);
    ex_device_free(device);
    hbp_context_free(context);
    return NULL;
}

/* Runs `options` on `ranks` virtual ranks; `odd` is a rank that begins with other weights (-1: none). */
static inline void walk_run(const ex_walk_options *options, hbp_model *model, int32_t ranks, int odd,
                            ex_type type, walk_result *result)
{
    ex_comm *comms[16];
    ex_fault fault = {0};
    pthread_t threads[16];
    walk_job jobs[16];
    memset(result, 0, sizeof *result);
    ck_assert_msg(ex_local_open(ranks, 30, comms, &fault) == 0, "%s", fault.text);
    for (int32_t r = 0; r < ranks; r++) {
        jobs[r] = (walk_job){options, comms[r], ranks, type, model, result, odd == r};
        ck_assert_int_eq(pthread_create(&threads[r], NULL, walk_rank, &jobs[r]), 0);
    }
    for (int32_t r = 0; r < ranks; r++)
        pthread_join(threads[r], NULL);
    for (int32_t r = 0; r < ranks; r++)
        ex_comm_free(comms[r]);
}

static inline void walk_expect(const walk_result *result, int32_t ranks)
{
    for (int32_t r = 0; r < ranks; r++)
        ck_assert_msg(result->status[r] == 0, "rank %d: %s", (int)r, result->message[r]);
}

/* Tokens of a small vocabulary, and options that leave the weights as they are. */
static inline ex_walk_options walk_options(const hbp_plan *plan, const ex_shape *shape,
                                           const ex_tokens *tokens)
{
    return (ex_walk_options){.plan = plan,
                             .shape = shape,
                             .tokens = tokens,
                             .first_step = -1,
                             .seed = 7,
                             .recompute = -1,
                             .adam = {.learning_rate = .01F, .beta1 = .9F, .beta2 = .95F, .epsilon = 1e-8F},
                             .max_norm = 1};
}

/* Reads a gradient written by the walk: fp32 behind a head of 128 bytes. */
static inline float *walk_read(const char *folder, const char *name, int64_t *count)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s.npy", folder, name);
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "%s is not there", path);
    fseek(file, 0, SEEK_END);
    *count = (ftell(file) - 128) / 4;
    fseek(file, 128, SEEK_SET);
    float *values = malloc((size_t)*count * sizeof *values);
    ck_assert_int_eq((int)fread(values, 4, (size_t)*count, file), (int)*count);
    fclose(file);
    return values;
}

static const char *const walk_tensors[] = {"embedding", "final_norm", "output"};
static const char *const walk_layer_tensors[] = {"norm1", "qkv", "out", "norm2", "gate_up", "down"};

/* The largest difference of any tensor, as a share of the tensor's largest value. */
static inline double walk_differ(const char *first, const char *second)
{
    double most = 0;
    for (int i = 0; i < 3 + 4 * 6; i++) {
        char name[64];
        if (i < 3)
            snprintf(name, sizeof name, "%s", walk_tensors[i]);
        else
            snprintf(name, sizeof name, "layers.%d.%s", (i - 3) / 6, walk_layer_tensors[(i - 3) % 6]);
        int64_t count, other;
        float *a = walk_read(first, name, &count);
        float *b = walk_read(second, name, &other);
        ck_assert_int_eq((int)count, (int)other);
        double largest = 0, off = 0;
        for (int64_t k = 0; k < count; k++) {
            largest = fmax(largest, fabs((double)a[k]));
            off = fmax(off, fabs((double)a[k] - (double)b[k]));
        }
        ck_assert_msg(largest > 0, "%s is all zeros", name);
        most = fmax(most, off / largest);
        free(a);
        free(b);
    }
    return most;
}

#endif
