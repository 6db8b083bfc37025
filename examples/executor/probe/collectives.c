/* Latency and bus bandwidth of the four collectives by group size. All groups of a size run at once, as they
 * do in a step; sizes in bytes are what nccl-tests calls them, so that the same fit serves. */
#include <math.h>
#include <stdio.h>

#include "probe/probing.h"

enum { MOST_SIZES = 10, FIRST_BYTES = 4096, LEAST_SIZES = 3, STEP = 8 };

typedef struct collective {
    ex_probing *p;
    const ex_group *group;
    int32_t kind;
    int64_t bytes;
    void *send, *recv;
} collective;

static void call(void *user)
{
    collective *c = user;
    ex_comm *comm = c->p->comm;
    int64_t share = c->bytes / c->group->size / 16 * 16; /* of a rank */
    if (c->group->rank < 0)                              /* after the last whole group of this size */
        return;
    switch (c->kind) {
    case HBP_COLLECTIVE_ALL_TO_ALL:
        comm->ops->all_to_all(comm, c->group, c->send, c->recv, share);
        break;
    case HBP_COLLECTIVE_ALL_GATHER:
        comm->ops->all_gather(comm, c->group, c->send, c->recv, share);
        break;
    case HBP_COLLECTIVE_REDUCE_SCATTER:
        comm->ops->reduce_scatter(comm, c->group, c->send, c->recv, share / 4);
        break;
    default:
        comm->ops->all_reduce(comm, c->group, c->send, c->bytes / 4);
    }
}

/* Times the sizes one by one into bytes and ns [count]. */
static int time_sizes(collective *c, double budget_s, double *bytes, double *ns, double *spreads,
                      int32_t *count)
{
    ex_probing *p = c->p;
    double begin = p->now(), longest = 0;
    *count = 0;
    for (c->bytes = FIRST_BYTES; c->bytes <= p->largest && *count < MOST_SIZES; c->bytes *= STEP) {
        double spent = ex_probe_agree(p, p->now() - begin);
        if (ex_probe_check(p, HBP_OK))
            return -1;
        if (*count >= LEAST_SIZES && 5 * longest * STEP > budget_s - spent)
            break;
        ex_probe_time time;
        if (ex_probe_time_work(p, call, c, fmax(budget_s - spent, 0) / 3, &time))
            return -1;
        longest = time.seconds;
        bytes[*count] = (double)c->bytes;
        ns[*count] = time.seconds * 1e9;
        spreads[(*count)++] = time.spread;
    }
    return 0;
}

/* Measures one collective over groups of one size. Where other work on the machine makes the times not grow
 * with the size it measures once more; if they still do not, all of the longest call is put down to
 * bandwidth. */
static int measure(collective *c, double budget_s)
{
    ex_probing *p = c->p;
    double bytes[MOST_SIZES], ns[MOST_SIZES], spreads[MOST_SIZES];
    int32_t ranks = c->group->size, count = 0;
    for (int attempt = 0; attempt < 2; attempt++) {
        if (time_sizes(c, budget_s / (attempt + 1), bytes, ns, spreads, &count))
            return -1;
        hbp_status status = HBP_OK;
        if (p->machine)
            status = hbp_machine_fit_collective(p->context, p->machine, c->kind, ranks, bytes, ns, count,
                                                p->source);
        double unfit = ex_probe_agree(p, status == HBP_E_INVALID);
        if (ex_probe_check(p, status == HBP_E_INVALID ? HBP_OK : status))
            return -1;
        if (unfit > 0 && attempt == 0)
            continue;
        if (!p->machine)
            return 0;
        double share = (double)(ranks - 1) / ranks * (c->kind == HBP_COLLECTIVE_ALL_REDUCE ? 2 : 1);
        hbp_machine_collective found = {.struct_size = sizeof found};
        (void)hbp_machine_get_collective(p->machine, c->kind, ranks, &found);
        if (unfit > 0)
            found = (hbp_machine_collective){
                sizeof found, c->kind, ranks, 0, share * bytes[count - 1] / ns[count - 1] * 1e9, 0,
                p->source};
        found.spread = ex_probe_summarise(spreads, count).seconds;
        return ex_probe_check(p, hbp_machine_set_collective(p->context, p->machine, &found));
    }
    return 0;
}

static int measure_group(ex_probing *p, const ex_group *group, double budget_s)
{
    collective c = {.p = p, .group = group};
    int status = -1;
    c.send = ex_probe_fill(p, p->largest);
    c.recv = c.send ? ex_probe_fill(p, p->largest) : NULL;
    if (c.recv) {
        /* Sums stay finite however often they are summed again. */
        p->device->ops->zero(p->device, c.send, p->largest);
        for (c.kind = status = 0; c.kind < HBP_COLLECTIVE_COUNT && status == 0; c.kind++)
            status = measure(&c, budget_s / HBP_COLLECTIVE_COUNT);
    }
    p->device->ops->release(p->device, c.recv);
    p->device->ops->release(p->device, c.send);
    return status;
}

/* The group size after `size`: powers of two, the ranks of a node, all ranks; 0 after the last. */
static int32_t next_size(const ex_comm *comm, int32_t size)
{
    int32_t next = comm->ranks;
    int64_t power = 2;
    if (size >= comm->ranks)
        return 0;
    while (power <= size)
        power *= 2;
    if (power < next)
        next = (int32_t)power;
    return comm->node_ranks > size && comm->node_ranks < next ? comm->node_ranks : next;
}

int ex_probe_collectives(ex_probing *p, double budget_s)
{
    int32_t sizes = 0;
    for (int32_t size = next_size(p->comm, 1); size; size = next_size(p->comm, size))
        sizes++;
    for (int32_t size = next_size(p->comm, 1); size; size = next_size(p->comm, size)) {
        ex_group group = {.size = size};
        int made = size < p->comm->ranks;
        if (made)
            p->comm->ops->make_group(p->comm, &group);
        else
            group = p->comm->world;
        if (ex_probe_check(p, HBP_OK))
            return -1;
        int status = measure_group(p, &group, budget_s / sizes);
        if (made)
            p->comm->ops->free_group(p->comm, &group);
        if (status)
            return -1;
    }
    return 0;
}
