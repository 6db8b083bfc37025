/* One rank of a run in which the last rank goes wrong in its third exchange. Whoever meets a fault says it in
 * one line on stderr and abandons the others, as an executor does.
 * usage: lost WAY LIMIT      WAY: killed, stopped, device, leaves, differs, longer, shorter, none; LIMIT: in
 * seconds
 */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "../comm_cases.h"

static void broken_sync(ex_device *device)
{
    ex_fail(&device->fault, "GPU 1: an illegal address");
}

int main(int count, char **arguments)
{
    ex_fault fault = {0};
    if (count != 3)
        return 2;
    const char *way = arguments[1];
    ex_comm *comm = ex_mpi_open(atof(arguments[2]), &fault);
    if (!comm) {
        fprintf(stderr, "%s\n", fault.text);
        return 1;
    }
    ex_device device = plain_device(1);
    ex_device_ops broken = *device.ops;
    broken.sync = broken_sync;
    ex_comm_bind(comm, &device);
    enum { BYTES = 1000 };
    int32_t ranks = comm->ranks;
    float *send = calloc((size_t)ranks, BYTES), *recv = calloc((size_t)ranks, BYTES);
    for (int step = 1; step <= 5 && !comm->fault.failed; step++) {
        int wrong = step == 3 && comm->rank == ranks - 1;
        snprintf(comm->where, sizeof comm->where, "step %d, micro-batch 1", step);
        if (wrong && !strcmp(way, "killed"))
            raise(SIGKILL);
        if (wrong && !strcmp(way, "stopped"))
            raise(SIGSTOP);
        if (wrong && !strcmp(way, "device"))
            device.ops = &broken;
        if (wrong && !strcmp(way, "leaves"))
            break;
        int64_t bytes = BYTES / 2;
        if (wrong && !strcmp(way, "longer"))
            bytes = BYTES;
        if (wrong && !strcmp(way, "shorter"))
            bytes = BYTES / 4;
        if (wrong && !strcmp(way, "differs"))
            comm->ops->all_reduce(comm, &comm->world, send, 1);
        else
            comm->ops->all_to_all(comm, &comm->world, send, recv, bytes);
        while (wrong && (bytes != BYTES / 2 || !strcmp(way, "differs")))
            pause(); /* the others are to say it */
    }
    if (comm->fault.failed) {
        fprintf(stderr, "%s\n", comm->fault.text);
        comm->ops->abandon(comm, comm->fault.text);
        return 3; /* never reached */
    }
    ex_comm_free(comm);
    free(send);
    free(recv);
    return 0;
}
