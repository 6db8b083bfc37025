#include "comm/comm.h"

int ex_comm_bind(ex_comm *comm, ex_device *device)
{
    comm->device = device;
    return comm->fault.failed ? -1 : 0;
}

void ex_comm_free(ex_comm *comm)
{
    if (comm)
        comm->ops->free(comm);
}
