#include "comm/self.h"

#include <stdlib.h>
#include <string.h>

#include "comm/call.h"

static void copy(ex_comm *comm, const void *send, void *recv, int64_t bytes)
{
    if (bytes && send != recv)
        comm->device->ops->copy(comm->device, recv, send, bytes);
}

static void self_free(ex_comm *comm)
{
    free(comm);
}

static void self_make_group(ex_comm *comm, ex_group *group)
{
    group->backend = NULL;
    if (group->size < 1)
        ex_fail(&comm->fault, "a group of %d ranks; at least 1", (int)group->size);
    else
        ex_call_place(comm, group);
}

static void self_free_group(ex_comm *comm, ex_group *group)
{
    (void)comm;
    group->backend = NULL;
}

static void self_all_to_all(ex_comm *comm, const ex_group *group, const void *send, void *recv, int64_t bytes)
{
    if (!ex_call_begin(comm, group, "all-to-all", bytes))
        copy(comm, send, recv, bytes);
}

static void self_all_reduce(ex_comm *comm, const ex_group *group, float *data, int64_t count)
{
    (void)data;
    ex_call_begin(comm, group, "all-reduce", count);
}

static void self_all_gather(ex_comm *comm, const ex_group *group, const void *send, void *recv, int64_t bytes)
{
    if (!ex_call_begin(comm, group, "all-gather", bytes))
        copy(comm, send, recv, bytes);
}

static void self_reduce_scatter(ex_comm *comm, const ex_group *group, const float *send, float *recv,
                                int64_t count)
{
    if (!ex_call_begin(comm, group, "reduce-scatter", count))
        copy(comm, send, recv, count * (int64_t)sizeof *recv);
}

static void self_gather_host(ex_comm *comm, const void *send, void *recv, int64_t bytes)
{
    if (!comm->fault.failed && bytes > 0)
        memmove(recv, send, (size_t)bytes);
}

static void self_abandon(ex_comm *comm, const char *text)
{
    ex_fail(&comm->fault, "%s", text);
}

const ex_comm_ops ex_self_ops = {
    .free = self_free,
    .make_group = self_make_group,
    .free_group = self_free_group,
    .all_to_all = self_all_to_all,
    .all_reduce = self_all_reduce,
    .all_gather = self_all_gather,
    .reduce_scatter = self_reduce_scatter,
    .gather_host = self_gather_host,
    .abandon = self_abandon,
};

ex_comm *ex_self_open(ex_fault *fault)
{
    ex_comm *comm = calloc(1, sizeof *comm);
    if (!comm) {
        ex_fail(fault, "no memory for a communicator of 1 rank");
        return NULL;
    }
    comm->ops = &ex_self_ops;
    comm->ranks = 1;
    comm->node_ranks = 1;
    comm->world.size = 1;
    comm->name = "self";
    return comm;
}
