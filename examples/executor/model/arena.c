#include "model/run.h"

enum { ALIGNMENT = 256 };

void *ex_push(ex_run *run, int64_t bytes)
{
    ex_model *m = run->model;
    int64_t room = m->arena_bytes - m->arena_used;
    int64_t rounded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (rounded > room) {
        ex_fail(
            &run->device->fault,
            "activations: a pack of %lld tokens on %d ranks with %d of %d layers recomputed needs %lld bytes "
            "more where %lld of %lld are left",
            (long long)run->S, (int)run->sp, (int)run->pack->recompute, (int)run->shape->layers,
            (long long)rounded, (long long)room, (long long)m->arena_bytes);
        return NULL;
    }
    char *at = m->arena + m->arena_used;
    m->arena_used += rounded;
    if (m->arena_used > m->arena_most)
        m->arena_most = m->arena_used;
    return at;
}

void *ex_push_elements(ex_run *run, int64_t rows, int64_t width)
{
    return ex_push(run, rows * width * run->e);
}

int ex_run_failed(const ex_run *run)
{
    return run->device->fault.failed || run->model->comm->fault.failed;
}
