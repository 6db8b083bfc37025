#include <time.h>

#include "model/run.h"

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* One block of `bytes` to and from every rank of the group. Timed with the device idle on both sides, so that
 * neither the work before nor the launch alone is counted. */
static int all_to_all(ex_run *run, const void *send, void *recv, int64_t bytes)
{
    ex_model *m = run->model;
    int64_t begun = 0;
    if (m->measure_communication) {
        if (ex_device_sync(run->device))
            return -1;
        begun = now_ns();
    }
    m->comm->ops->all_to_all(m->comm, run->pack->group, send, recv, bytes);
    if (m->measure_communication) {
        if (ex_device_sync(run->device))
            return -1;
        m->communication_ns += now_ns() - begun;
    }
    return ex_run_failed(run) ? -1 : 0;
}

static ex_heads heads(const ex_run *run, int with_kv)
{
    ex_heads all = run->all;
    if (!with_kv)
        all.kv_heads = 0;
    return all;
}

int ex_to_heads(ex_run *run, const void *by_tokens, int with_kv, void *by_heads)
{
    int64_t width = with_kv ? run->w_mine : run->q_mine;
    int64_t mark = run->model->arena_used;
    void *send = ex_push_elements(run, run->S, width);
    if (!send)
        return -1;
    run->device->ops->split(run->device, by_tokens, run->T, heads(run, with_kv), run->sp, send);
    int status = all_to_all(run, send, by_heads, run->T * width * run->e);
    run->model->arena_used = mark;
    return status;
}

int ex_to_tokens(ex_run *run, const void *by_heads, int with_kv, void *by_tokens)
{
    int64_t width = with_kv ? run->w_mine : run->q_mine;
    int64_t mark = run->model->arena_used;
    void *recv = ex_push_elements(run, run->S, width);
    if (!recv)
        return -1;
    /* Rows of by_heads are tokens of the whole pack: block p is rank p's as it stands. */
    if (all_to_all(run, by_heads, recv, run->T * width * run->e))
        return -1;
    run->device->ops->merge(run->device, recv, run->T, heads(run, with_kv), run->sp, by_tokens);
    run->model->arena_used = mark;
    return 0;
}
