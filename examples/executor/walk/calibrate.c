#include "walk/calibrate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/transformer.h"
#include "walk/agree.h"

enum {
    SIZES = 6,  /* lengths: the largest and its halves */
    SHORT = 64, /* tokens of a document in packs of many */
    DEFAULT_TOKENS = 4096,
    MAX_DEGREES = 31
};

typedef struct calibration {
    const ex_calibrate_options *o;
    ex_device *device;
    ex_comm *comm;
    ex_record *record;
    ex_fault *fault;
    ex_parameters parameters;
    ex_model model;
    int has_parameters, has_model;
    ex_group groups[MAX_DEGREES]; /* groups[0]: alone */
    int32_t degrees;
    int64_t largest; /* tokens of a rank */
    int32_t *tokens, *targets, *positions, *borders;
    float *weights;
    int64_t begin_ns;
    int64_t packs;
} calibration;

static int check_faults(calibration *c)
{
    if (c->fault->failed)
        return -1;
    if (c->device->fault.failed)
        return ex_fail(c->fault, "%s", c->device->fault.text);
    return c->comm->fault.failed ? ex_fail(c->fault, "%s", c->comm->fault.text) : 0;
}

/* Halves the largest pack until it fits in memory beside the weights; *arena gets what it needs. */
static int find_largest(calibration *c, int64_t *arena)
{
    const ex_shape *shape = c->o->shape;
    int64_t states = ex_shape_parameters(shape) * (16 + (int64_t)ex_type_bytes(c->device->type));
    int64_t free_bytes, total_bytes;
    c->device->ops->memory(c->device, &free_bytes, &total_bytes);
    int64_t room = free_bytes / c->o->sharers - states;
    int64_t tokens = c->o->max_tokens > 0 ? c->o->max_tokens : DEFAULT_TOKENS;
    for (;; tokens /= 2) {
        *arena = 0;
        for (int32_t d = 0; d < c->degrees && *arena >= 0; d++) {
            int32_t sp = c->groups[d].size;
            int64_t bytes = ex_model_measure(c->device, shape, sp, tokens * sp, tokens * sp / SHORT + 1, 0);
            int64_t again =
                ex_model_measure(c->device, shape, sp, tokens * sp, tokens * sp / SHORT + 1, shape->layers);
            bytes = bytes < 0 || again > bytes ? again : bytes;
            *arena = again < 0 ? -1 : bytes > *arena ? bytes : *arena;
        }
        if (*arena < 0)
            return ex_fail(c->fault, "cannot measure a pack of %lld tokens: %s", (long long)tokens,
                           c->device->fault.text);
        if (*arena <= room || tokens <= SHORT)
            break;
    }
    if (*arena > room)
        return ex_fail(
            c->fault,
            "memory: %.2f GiB are free a rank; weights, optimiser and a pack of %lld tokens need %.2f",
            (double)(room + states) / (1 << 30), (long long)tokens, (double)(states + *arena) / (1 << 30));
    c->largest = tokens;
    return 0;
}

static int prepare(calibration *c)
{
    c->groups[0] = (ex_group){.first = c->comm->rank, .size = 1};
    c->degrees = 1;
    for (int32_t sp = 2; sp <= c->comm->ranks && c->degrees < MAX_DEGREES; sp *= 2)
        if (c->comm->ranks % sp == 0 && hbp_model_is_sp_legal(c->o->model, sp))
            c->groups[c->degrees++].size = sp;
    int64_t arena;
    if (find_largest(c, &arena) < 0)
        return -1;
    size_t chunk = (size_t)c->largest;
    size_t documents = (size_t)(c->largest * c->groups[c->degrees - 1].size / SHORT + 2);
    c->tokens = calloc(chunk, sizeof *c->tokens);
    c->targets = calloc(chunk, sizeof *c->targets);
    c->positions = calloc(chunk, sizeof *c->positions);
    c->weights = calloc(chunk, sizeof *c->weights);
    c->borders = calloc(documents, sizeof *c->borders);
    if (!c->tokens || !c->targets || !c->positions || !c->weights || !c->borders)
        return ex_fail(c->fault, "no memory for a pack of %lld tokens", (long long)c->largest);
    c->has_parameters = ex_parameters_create(c->device, c->o->shape, 1, &c->parameters) == 0;
    c->has_model =
        c->has_parameters && ex_model_create(c->device, c->comm, &c->parameters, arena, &c->model) == 0;
    return check_faults(c);
}

static void fill_pack(calibration *c, const ex_group *group, int64_t tokens, int many, int32_t recompute,
                      ex_pack *p)
{
    int64_t chunk = tokens / group->size;
    int64_t length = many ? SHORT : tokens;
    p->documents = 0;
    c->borders[0] = 0;
    while (c->borders[p->documents] < tokens) {
        int64_t end = c->borders[p->documents] + length;
        c->borders[++p->documents] = (int32_t)(end < tokens ? end : tokens);
    }
    for (int64_t t = 0; t < chunk; t++) {
        int64_t at = chunk * group->rank + t;
        c->tokens[t] = (int32_t)(at * 31 % c->o->shape->vocab);
        c->targets[t] = (int32_t)((at + 1) * 31 % c->o->shape->vocab);
        c->positions[t] = (int32_t)(at % length);
        c->weights[t] = 1 / (float)tokens;
    }
    p->group = group;
    p->pack_tokens = tokens;
    p->recompute = recompute;
    p->tokens = c->tokens;
    p->targets = c->targets;
    p->positions = c->positions;
    p->weights = c->weights;
    p->borders = c->borders;
}

static int run_pack(calibration *c, const ex_group *group, int64_t tokens, int many, int32_t recompute)
{
    ex_pack p;
    fill_pack(c, group, tokens, many, recompute, &p);
    ex_measured m;
    memset(&m, 0, sizeof m);
    m.pack = -1;
    m.step = c->packs;
    m.tokens = tokens;
    m.samples = p.documents;
    m.sp = group->size;
    m.recompute = recompute;
    m.clock = c->o->clock;
    m.repeats = c->o->repeat > 0 ? c->o->repeat : 3;
    m.repeats = m.repeats > EX_REPEATS ? EX_REPEATS : m.repeats;
    for (int64_t i = 0; i < p.documents; i++) {
        int64_t length = p.borders[i + 1] - p.borders[i];
        m.sum_squares += length * length;
    }
    c->model.arena_most = 0;
    for (int32_t i = 0; i < m.repeats; i++) {
        m.start_ns[i] = ex_now_ns() - c->begin_ns;
        int64_t start = ex_clock_ns(c->o->clock);
        if (ex_model_run(&c->model, &p) < 0)
            return check_faults(c);
        m.end_ns[i] = m.start_ns[i] + (ex_clock_ns(c->o->clock) - start);
    }
    ex_model_take_loss(&c->model);
    m.peak_bytes = c->device->allocated - c->model.arena_bytes + c->model.arena_most;
    int64_t row = c->record->count;
    if (ex_record_add(c->record, c->comm, &m, 1, c->fault) < 0)
        return -1;
    if (c->o->on_pack && c->begin_ns)
        c->o->on_pack(c->o->user, tokens, group->size, recompute, p.documents, c->record->time_ns[row]);
    c->packs++;
    return check_faults(c);
}

/* Every degree, few and many documents, nothing and all recomputed, at `tokens` tokens a rank. */
static int run_size(calibration *c, int64_t tokens)
{
    for (int32_t d = 0; d < c->degrees; d++)
        for (int many = 0; many < (tokens * c->groups[d].size > SHORT ? 2 : 1); many++)
            for (int all = 0; all < 2; all++) {
                const ex_group *g = &c->groups[d];
                snprintf(c->comm->where, sizeof c->comm->where, "a pack of %lld tokens",
                         (long long)(tokens * g->size));
                if (run_pack(c, g, tokens * g->size, many, all ? c->o->shape->layers : 0) < 0)
                    return -1;
            }
    return 0;
}

/* Whether time is up on rank 0, whose clock counts. */
static int is_late(calibration *c, int own)
{
    int *all = calloc((size_t)c->comm->ranks, sizeof *all);
    if (!all)
        return ex_fail(c->fault, "no memory for %d ranks", (int)c->comm->ranks);
    c->comm->ops->gather_host(c->comm, &own, all, sizeof own);
    own = all[0];
    free(all);
    return own;
}

static int run(calibration *c)
{
    snprintf(c->comm->where, sizeof c->comm->where, "the beginning");
    int failed = ex_agree(c->comm, prepare(c), c->fault);
    if (failed)
        return failed;
    for (int32_t d = 1; d < c->degrees; d++)
        c->comm->ops->make_group(c->comm, &c->groups[d]);
    if (check_faults(c) < 0 || run_pack(c, &c->groups[0], SHORT, 0, 0) < 0) /* warm caches and pages */
        return -1;
    c->record->count = 0;
    c->packs = 0;
    c->begin_ns = ex_now_ns();
    for (int i = SIZES - 1; i >= 0; i--) {
        int64_t tokens = c->largest >> i;
        if (tokens < SHORT)
            continue;
        int late = (double)(ex_now_ns() - c->begin_ns) > c->o->seconds * 1e9 && i < SIZES - 3;
        late = is_late(c, late);
        if (check_faults(c) < 0)
            return -1;
        if (late)
            break;
        if (run_size(c, tokens) < 0)
            return -1;
    }
    return check_faults(c);
}

int ex_calibrate(const ex_calibrate_options *options, ex_device *device, ex_comm *comm, ex_record *record,
                 ex_fault *fault)
{
    calibration c = {.o = options, .device = device, .comm = comm, .record = record, .fault = fault};
    int failed = run(&c);
    for (int32_t d = 1; d < c.degrees; d++)
        if (c.groups[d].backend)
            comm->ops->free_group(comm, &c.groups[d]);
    if (c.has_model)
        ex_model_free(&c.model);
    if (c.has_parameters)
        ex_parameters_free(&c.parameters);
    free(c.tokens);
    free(c.targets);
    free(c.positions);
    free(c.weights);
    free(c.borders);
    return failed;
}
