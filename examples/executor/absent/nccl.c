/* Stands in for comm/nccl in an executor without NCCL. */
#include "comm/comm.h"

ex_comm *ex_nccl_open(const char *rendezvous, double limit_s, ex_fault *fault)
{
    (void)rendezvous;
    (void)limit_s;
    ex_fail(fault,
            "this executor was built without NCCL; use hbp_executor_cuda, built where nccl.h is found");
    return NULL;
}
