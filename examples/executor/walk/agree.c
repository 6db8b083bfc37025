#include "walk/agree.h"

#include <stdlib.h>

int ex_agree(ex_comm *comm, int failed, ex_fault *fault)
{
    int *all = calloc((size_t)comm->ranks, sizeof *all);
    if (!all)
        return ex_fail(fault, "no memory for %d ranks", (int)comm->ranks);
    int own = failed != 0;
    comm->ops->gather_host(comm, &own, all, sizeof own);
    int32_t first = 0;
    while (first < comm->ranks && !all[first])
        first++;
    free(all);
    if (comm->fault.failed)
        return ex_fail(fault, "%s", comm->fault.text);
    if (first == comm->ranks)
        return 0;
    if (first != comm->rank)
        *fault = (ex_fault){.failed = 1};
    return -2;
}
