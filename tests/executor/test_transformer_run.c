/* What a run refuses, what it asks of the communicator, and the optimiser's step. */
#include <time.h>

#include "transformer_cases.h"

static ex_device *open_cpu(ex_type type, ex_fault *fault)
{
    return ex_cpu_open(type, 1, fault);
}

/* A communicator that stands for the other ranks of a group: it counts, may rest, may fail. */
typedef struct stand_in {
    ex_comm comm;
    int calls;
    int fail_at; /* the call that fails; 0: none */
    long rest_ns;
    int64_t bytes;
} stand_in;

static void stand_in_all_to_all(ex_comm *comm, const ex_group *group, const void *send, void *recv,
                                int64_t bytes)
{
    stand_in *s = (stand_in *)comm;
    s->calls++;
    if (comm->fault.failed)
        return;
    s->bytes += bytes * group->size;
    if (s->calls == s->fail_at)
        ex_fail(&comm->fault, "rank 1 went away");
    memcpy(recv, send, (size_t)(bytes * group->size));
    nanosleep(&(struct timespec){0, s->rest_ns}, NULL);
}

static const ex_comm_ops stand_in_ops = {.all_to_all = stand_in_all_to_all};

/* One rank of a small model, and a good pack. */
typedef struct alone {
    ex_device *device;
    stand_in others;
    ex_parameters parameters;
    ex_model model;
    ex_group group;
    ex_pack pack;
    int32_t tokens[8], targets[8], positions[8], borders[4];
    float weights[8];
} alone;

static void alone_open(alone *a, ex_type type, int32_t sp, int64_t arena_bytes)
{
    memset(a, 0, sizeof *a);
    ex_fault fault = {0};
    a->device = open_cpu(type, &fault);
    ck_assert_msg(a->device != NULL, "%s", fault.text);
    ex_shape shape = case_shape(2, 8, 0, 1);
    a->others =
        (stand_in){.comm = {.ops = &stand_in_ops, .ranks = sp, .device = a->device, .name = "stand-in"}};
    ck_assert_int_eq(ex_parameters_create(a->device, &shape, 1, &a->parameters), 0);
    ck_assert_int_eq(ex_model_create(a->device, &a->others.comm, &a->parameters, arena_bytes, &a->model), 0);
    a->group = (ex_group){.size = sp};
    for (int i = 0; i < 8; i++) {
        a->tokens[i] = i;
        a->targets[i] = i + 1;
        a->positions[i] = i % 4;
        a->weights[i] = 1;
    }
    memcpy(a->borders, (int32_t[]){0, 4, 6, 8}, sizeof a->borders);
    a->pack = (ex_pack){&a->group, 8, 0, a->tokens, a->targets, a->positions, a->weights, a->borders, 3};
}

static void alone_close(alone *a)
{
    ex_model_free(&a->model);
    ex_parameters_free(&a->parameters);
    ex_device_free(a->device);
}

static void refuses(alone *a, const char *text)
{
    ck_assert_int_eq(ex_model_run(&a->model, &a->pack), -1);
    ck_assert_msg(strstr(a->device->fault.text, text) != NULL, "'%s' lacks '%s'", a->device->fault.text,
                  text);
    ck_assert_int_eq(ex_model_run(&a->model, &a->pack), -1); /* and stays failed */
    alone_close(a);
}

static int64_t count_nonzero(const float *x, int64_t count)
{
    int64_t nonzero = 0;
    for (int64_t i = 0; i < count; i++)
        nonzero += x[i] != 0;
    return nonzero;
}

START_TEST(bad_packs_are_named)
{
    alone a;
    const int64_t room = 1 << 20;
    alone_open(&a, EX_F32, 1, room);
    a.tokens[3] = 50;
    refuses(&a, "token 3 of a chunk is 50; the vocabulary has 0 .. 49");
    alone_open(&a, EX_F32, 1, room);
    a.tokens[7] = -1;
    refuses(&a, "token 7 of a chunk is -1; the vocabulary has 0 .. 49");
    alone_open(&a, EX_F32, 1, room);
    a.targets[2] = 50;
    refuses(&a, "the target of token 2 of a chunk is 50; the vocabulary has 0 .. 49");
    alone_open(&a, EX_F32, 1, room);
    a.pack.pack_tokens = 0;
    refuses(&a, "a pack of 0 tokens; between 1 and 2147483647 can be run");
    alone_open(&a, EX_F32, 3, room);
    refuses(&a, "a pack of 8 tokens on 3 ranks: not the same number on each");
    alone_open(&a, EX_F32, 0, room);
    refuses(&a, "a pack of 8 tokens on 0 ranks");
    alone_open(&a, EX_F32, 1, room);
    a.pack.recompute = -1;
    refuses(&a, "a pack recomputes -1 layers; the model has 2");
    alone_open(&a, EX_F32, 1, room);
    a.borders[3] = 7;
    refuses(&a, "3 documents do not cover a pack of 8 tokens");
    alone_open(&a, EX_F32, 1, room);
    a.borders[0] = 1;
    refuses(&a, "3 documents do not cover a pack of 8 tokens");
    alone_open(&a, EX_F32, 1, room);
    a.borders[2] = 4;
    refuses(&a, "document 1 of a pack ends at token 4 and begins at 4");
}
END_TEST

START_TEST(a_full_arena_is_named)
{
    alone a;
    alone_open(&a, EX_F32, 1, 1 << 20);
    a.pack.recompute = 1;
    ck_assert_int_eq(ex_model_run(&a.model, &a.pack), 0);
    int64_t most = a.model.arena_most;
    alone_close(&a);
    alone_open(&a, EX_F32, 1, most);
    a.pack.recompute = 1;
    ck_assert_int_eq(ex_model_run(&a.model, &a.pack), 0);
    alone_close(&a);
    alone_open(&a, EX_F32, 1, most - 1);
    a.pack.recompute = 1;
    refuses(&a, "activations: a pack of 8 tokens on 1 ranks with 1 of 2 layers recomputed needs");
    /* however little there is, it ends with the same words */
    for (int64_t room = 0; room < most; room += 2048) {
        alone_open(&a, EX_F32, 1, room);
        a.pack.recompute = 1;
        char text[64];
        snprintf(text, sizeof text, "of %lld are left", (long long)room);
        ck_assert_int_eq(ex_model_run(&a.model, &a.pack), -1);
        ck_assert_ptr_nonnull(
            strstr(a.device->fault.text, "activations: a pack of 8 tokens on 1 ranks with 1 of 2"));
        refuses(&a, text);
    }
}
END_TEST

START_TEST(all_to_alls_are_counted)
{
    for (int recompute = 0; recompute <= 2; recompute++) {
        alone a;
        alone_open(&a, EX_F32, 4, 1 << 20);
        a.pack.recompute = recompute;
        a.others.rest_ns = 100000;
        ck_assert_int_eq(ex_model_run(&a.model, &a.pack), 0);
        /* two a layer forward, two backward; qkv rows of 2 queries, key and value, output rows of 2 queries
         */
        ck_assert_int_eq(a.others.calls, 4 * 2 + 2 * recompute);
        ck_assert_int_eq(a.others.bytes, (2 * 2 + recompute) * 8 * (4 + 2) * 8 * (int64_t)sizeof(float));
        ck_assert_int_eq(a.model.communication_ns, 0);
        a.model.measure_communication = 1;
        ck_assert_int_eq(ex_model_run(&a.model, &a.pack), 0);
        ck_assert_int_ge(a.model.communication_ns, (8 + 2 * recompute) * 100000);
        alone_close(&a);
    }
}
END_TEST

START_TEST(a_lost_rank_ends_the_run)
{
    for (int call = 1; call <= 10; call++) {
        alone a;
        alone_open(&a, EX_F32, 4, 1 << 20);
        a.pack.recompute = 1;
        a.others.fail_at = call;
        ck_assert_int_eq(ex_model_run(&a.model, &a.pack), -1);
        ck_assert_int_eq(a.others.calls, call);
        ck_assert_str_eq(a.others.comm.fault.text, "rank 1 went away");
        alone_close(&a);
    }
}
END_TEST

START_TEST(nothing_to_learn_changes_nothing)
{
    alone a;
    alone_open(&a, EX_F32, 1, 1 << 20);
    memset(a.weights, 0, sizeof a.weights);
    for (int i = 0; i < 8; i++)
        a.targets[i] = -100;
    ck_assert_int_eq(ex_model_run(&a.model, &a.pack), 0);
    ck_assert_double_eq(ex_model_take_loss(&a.model), 0);
    ck_assert_int_eq(count_nonzero(a.parameters.gradients, a.parameters.elements), 0);
    alone_close(&a);
}
END_TEST

/* A chunk without a loss is not computed: logits of NaN would spoil the gradients. */
START_TEST(chunks_without_loss_are_skipped)
{
    alone a;
    alone_open(&a, EX_F32, 1, 1 << 20);
    const ex_tensor *output = ex_parameters_get(&a.parameters, -1, EX_OUTPUT);
    const float nan = NAN;
    a.device->ops->copy_in(a.device, (float *)a.parameters.weights + output->offset, &nan, sizeof nan);
    memset(a.weights, 0, sizeof a.weights);
    ck_assert_int_eq(ex_model_run(&a.model, &a.pack), 0);
    ck_assert_int_eq(count_nonzero(a.parameters.gradients, a.parameters.elements), 0);
    a.weights[7] = 1;
    ck_assert_int_eq(ex_model_run(&a.model, &a.pack), 0);
    ck_assert_int_gt(count_nonzero(a.parameters.gradients, a.parameters.elements), 0);
    alone_close(&a);
}
END_TEST

START_TEST(loss_is_taken_once)
{
    alone a;
    alone_open(&a, EX_F32, 1, 1 << 20);
    ck_assert_int_eq(ex_model_run(&a.model, &a.pack), 0);
    double once = ex_model_take_loss(&a.model);
    ck_assert(once > 8 * 3.5 && once < 8 * 4.3); /* about log 50 a token */
    ck_assert_double_eq(ex_model_take_loss(&a.model), 0);
    ck_assert_int_eq(ex_model_run(&a.model, &a.pack), 0);
    ck_assert_int_eq(ex_model_run(&a.model, &a.pack), 0);
    /* Products of single precision may be summed in another order the second time (OpenBLAS with AVX-512). */
    ck_assert_double_eq_tol(ex_model_take_loss(&a.model), 2 * once, 1e-5 * once);
    alone_close(&a);
}
END_TEST

/* AdamW in double precision (Loshchilov and Hutter 2019), tensor by tensor, for three steps. */
START_TEST(steps_are_adamw)
{
    const double max_norm = _i & 1 ? .5 : 0, decay = _i & 2 ? .1 : 0;
    alone a;
    alone_open(&a, _i & 4 ? EX_BF16 : EX_F32, 1, 1 << 20);
    ex_parameters *p = &a.parameters;
    int64_t n = p->elements;
    double *master = oracle_zeros(n), *mean = oracle_zeros(n), *variance = oracle_zeros(n);
    for (int64_t i = 0; i < n; i++)
        master[i] = p->master[i];
    uint32_t state = 9;
    for (int step = 1; step <= 3; step++) {
        double squares = 0, norm = -1, furthest = 0, unlike = 0;
        float *gradients = calloc((size_t)n, sizeof *gradients);
        for (int64_t t = 0; t < p->count; t++)
            for (int64_t i = 0; i < p->tensors[t].rows * p->tensors[t].columns; i++) {
                float g = ((float)(case_random(&state) % 2001) / 1000 - 1) * .01F * (float)step;
                gradients[p->tensors[t].offset + i] = g;
                squares += (double)g * g;
            }
        a.device->ops->copy_in(a.device, p->gradients, gradients, n * (int64_t)sizeof(float));
        ex_adam options = {.learning_rate = .01F,
                           .beta1 = .9F,
                           .beta2 = .99F,
                           .epsilon = 1e-8F,
                           .weight_decay = (float)decay,
                           .correction1 = (float)(1 - pow(.9, step)),
                           .correction2 = (float)(1 - pow(.99, step))};
        ck_assert_int_eq(ex_model_step(&a.model, options, max_norm, &norm), 0);
        ck_assert_double_eq_tol(norm, sqrt(squares), 1e-9 * sqrt(squares));
        double scale = max_norm > 0 && norm > max_norm ? max_norm / norm : 1;
        ck_assert(max_norm == 0 || scale < 1); /* it does clip */
        for (int64_t t = 0; t < p->count; t++)
            for (int64_t i = p->tensors[t].offset;
                 i < p->tensors[t].offset + p->tensors[t].rows * p->tensors[t].columns; i++) {
                double g = gradients[i] * scale;
                mean[i] = .9 * mean[i] + .1 * g;
                variance[i] = .99 * variance[i] + .01 * g * g;
                if (p->tensors[t].rows > 1)
                    master[i] -= .01 * decay * master[i];
                master[i] -=
                    .01 * (mean[i] / (1 - pow(.9, step))) / (sqrt(variance[i] / (1 - pow(.99, step))) + 1e-8);
                furthest = fmax(furthest, fabs(p->master[i] - master[i]));
                float weight = a.device->type == EX_F32 ? ((float *)p->weights)[i] : 0;
                if (a.device->type == EX_BF16) {
                    uint32_t bits = (uint32_t)((uint16_t *)p->weights)[i] << 16;
                    memcpy(&weight, &bits, sizeof weight);
                }
                double size = fabs(p->master[i]) + 1e-30;
                unlike = fmax(unlike, fabs((double)weight - p->master[i]) / size);
            }
        ck_assert_double_le(furthest, 3e-6);
        ck_assert_double_le(unlike, a.device->type == EX_F32 ? 0 : 1. / 256);
        ck_assert_int_eq(count_nonzero(p->gradients, n), 0);
        free(gradients);
    }
    free(master);
    free(mean);
    free(variance);
    alone_close(&a);
}
END_TEST

START_TEST(a_step_that_would_spoil_is_refused)
{
    alone a;
    alone_open(&a, EX_F32, 1, 1 << 20);
    a.parameters.gradients[5] = NAN;
    float before = a.parameters.master[5];
    double norm = -1;
    ck_assert_int_eq(ex_model_step(&a.model, (ex_adam){.learning_rate = 1}, 1, &norm), -1);
    ck_assert_ptr_nonnull(strstr(a.device->fault.text, "the gradients' norm is "));
    ck_assert_double_eq(norm, -1);
    ck_assert(a.parameters.master[5] == before);
    alone_close(&a);
}
END_TEST

START_TEST(creation_may_fail)
{
    ex_fault fault = {0};
    ex_shape shape = case_shape(2, 8, 0, 0);
    ex_device *device = ex_counting_open(EX_F32, 1 << 20, NULL, &fault);
    ex_parameters parameters;
    ex_model model;
    ck_assert_int_eq(ex_parameters_allocate(device, &shape, &parameters), 0);
    int64_t before = device->allocated;
    stand_in others = {.comm = {.ops = &stand_in_ops}};
    ck_assert_int_eq(ex_model_create(device, &others.comm, &parameters, 1 << 20, &model), -1);
    ck_assert_int_eq(device->fault.failed, 1);
    ck_assert_int_eq(device->allocated, before);
    ex_model_free(&model); /* of nothing */
    ex_parameters_free(&parameters);
    ex_device_free(device);
}
END_TEST

TEST_MAIN_LOOPS("transformer_run", NULL, NULL, {bad_packs_are_named, 0, 1},
                {chunks_without_loss_are_skipped, 0, 1}, {a_full_arena_is_named, 0, 1},
                {all_to_alls_are_counted, 0, 1}, {a_lost_rank_ends_the_run, 0, 1}, {loss_is_taken_once, 0, 1},
                {nothing_to_learn_changes_nothing, 0, 1}, {creation_may_fail, 0, 1},
                {a_step_that_would_spoil_is_refused, 0, 1}, {steps_are_adamw, 0, 8})
