#include <stdlib.h>

#include "model/transformer.h"

/* More than any memory, less than any address space. */
#define UNLIMITED (INT64_C(1) << 50)
#define ARENA     (INT64_C(1) << 46)

static void no_all_to_all(ex_comm *comm, const ex_group *group, const void *send, void *recv, int64_t bytes)
{
    (void)comm;
    (void)group;
    (void)send;
    (void)recv;
    (void)bytes;
}

/* The numbers of a pack that weighs something everywhere; what they are does not matter. */
typedef struct numbers {
    int32_t *zeros;
    float *weights;
    int32_t *borders;
} numbers;

static int make_numbers(numbers *n, int64_t chunk, int64_t pack_tokens, int64_t documents)
{
    n->zeros = calloc((size_t)chunk, sizeof *n->zeros);
    n->weights = malloc((size_t)chunk * sizeof *n->weights);
    n->borders = malloc(((size_t)documents + 1) * sizeof *n->borders);
    if (!n->zeros || !n->weights || !n->borders)
        return -1;
    for (int64_t t = 0; t < chunk; t++)
        n->weights[t] = 1;
    for (int64_t i = 0; i <= documents; i++)
        n->borders[i] = (int32_t)(pack_tokens / documents * i + pack_tokens % documents * i / documents);
    return 0;
}

static int64_t run(ex_device *counting, const ex_shape *shape, const ex_pack *pack)
{
    static const ex_comm_ops ops = {.all_to_all = no_all_to_all};
    ex_comm comm = {.ops = &ops, .ranks = pack->group->size, .device = counting, .name = "none"};
    ex_parameters parameters;
    ex_model model;
    if (ex_parameters_allocate(counting, shape, &parameters))
        return -1;
    int64_t most = -1;
    if (ex_model_create(counting, &comm, &parameters, ARENA, &model) == 0) {
        if (ex_model_run(&model, pack) == 0)
            most = model.arena_most;
        ex_model_free(&model);
    }
    ex_parameters_free(&parameters);
    return most;
}

int64_t ex_model_measure(ex_device *device, const ex_shape *shape, int32_t sp, int64_t pack_tokens,
                         int64_t documents, int32_t recompute)
{
    if (sp < 1 || documents < 1 || pack_tokens < documents || pack_tokens > INT32_MAX)
        return ex_fail(&device->fault, "no pack has %lld tokens in %lld documents on %d ranks",
                       (long long)pack_tokens, (long long)documents, (int)sp);
    ex_device *counting = ex_counting_open(device->type, UNLIMITED, device, &device->fault);
    if (!counting)
        return -1;
    numbers n = {0};
    int64_t most = -1;
    if (make_numbers(&n, pack_tokens / sp + 1, pack_tokens, documents)) {
        ex_fail(&device->fault, "no host memory to measure a pack of %lld tokens", (long long)pack_tokens);
    } else {
        ex_group group = {.first = 0, .size = sp, .rank = 0};
        ex_pack pack = {&group,  pack_tokens, recompute, n.zeros,  n.zeros,
                        n.zeros, n.weights,   n.borders, documents};
        most = run(counting, shape, &pack);
        if (counting->fault.failed)
            ex_fail(&device->fault, "%s", counting->fault.text);
    }
    free(n.zeros);
    free(n.weights);
    free(n.borders);
    ex_device_free(counting);
    return most;
}
