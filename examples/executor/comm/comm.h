/* Communication among ranks. Backends: `self` (one rank), `local` (virtual ranks: threads of one process),
 * MPI, NCCL.
 *
 * All calls are collective over a group's ranks, in the same order on each. Data pointers are of the rank's
 * device; `host` calls take host memory. Like devices, a communicator is sticky: the first failure (a rank
 * gone, a wait longer than the limit) stays in `fault`, names the call, the group and the seconds waited, and
 * later calls return at once. No call waits for ever. */
#ifndef EX_COMM_COMM_H
#define EX_COMM_COMM_H

#include <stdint.h>

#include "base/fault.h"
#include "device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ex_comm ex_comm;

/* Consecutive ranks first .. first + size - 1. Groups of one rank need no backend. */
typedef struct ex_group {
    int32_t first;
    int32_t size;
    int32_t rank;  /* this rank's place in it: comm->rank - first */
    void *backend; /* the backend's own */
} ex_group;

typedef struct ex_comm_ops {
    void (*free)(ex_comm *);
    /* Makes the aligned groups of group->size ranks: sets first, rank and backend. Collective over all ranks,
     * once a size. Ranks after the last whole group are in none: rank -1. comm->world is made by open. */
    void (*make_group)(ex_comm *, ex_group *group);
    void (*free_group)(ex_comm *, ex_group *group);

    /* Block p of `send` goes to rank p of the group, whose block comes to block p of `recv`; `bytes` a block.
     */
    void (*all_to_all)(ex_comm *, const ex_group *, const void *send, void *recv, int64_t bytes);
    /* data [count] fp32 on every rank becomes the sum over ranks, the same bits on all. */
    void (*all_reduce)(ex_comm *, const ex_group *, float *data, int64_t count);
    /* recv gets every rank's `bytes`, in rank order; `send` may be this rank's place in recv. */
    void (*all_gather)(ex_comm *, const ex_group *, const void *send, void *recv, int64_t bytes);
    /* recv [count] = this rank's share of the sum over ranks of send [size * count], fp32. */
    void (*reduce_scatter)(ex_comm *, const ex_group *, const float *send, float *recv, int64_t count);

    /* Small host data of all ranks, in rank order, to all ranks: [ranks][bytes]. Also a barrier over all
     * ranks. */
    void (*gather_host)(ex_comm *, const void *send, void *recv, int64_t bytes);
    /* Tells the others that this rank goes down with `text`, so that they need not wait for the limit. Does
     * not return where the backend can only end the process (MPI_Abort). */
    void (*abandon)(ex_comm *, const char *text);
} ex_comm_ops;

struct ex_comm {
    const ex_comm_ops *ops;
    int32_t rank;
    int32_t ranks;
    int32_t node_rank;  /* place among the ranks of this node; picks the GPU */
    int32_t node_ranks; /* ranks on this node */
    double limit_s;     /* how long a call may wait */
    ex_fault fault;
    ex_device *device; /* whose memory the data calls take; set by ex_comm_bind before the first of them */
    ex_group world;
    const char *name; /* "self", "local", "mpi", "nccl" */
    char where[128];  /* what the rank is doing, for messages: "step 4, micro-batch 1"; set by the walk */
};

/* The device whose pointers the data calls will get. 0 or -1 (comm->fault). */
int ex_comm_bind(ex_comm *comm, ex_device *device);

/* comm/self: one rank. */
ex_comm *ex_self_open(ex_fault *fault);

/* comm/local: `ranks` virtual ranks in this process. Opens all of them; rank r belongs to the thread that
 * uses comms[r]. Devices of the ranks may be CPU or CUDA ones (on one GPU or several); all-to-all copies
 * between them. */
int ex_local_open(int32_t ranks, double limit_s, ex_comm **comms, ex_fault *fault);

/* comm/mpi: MPI_COMM_WORLD; MPI is initialised here if it is not yet. On a CUDA device data goes through host
 * memory. Where the executor was built without MPI, NULL and a message that says so. */
ex_comm *ex_mpi_open(double limit_s, ex_fault *fault);
/* Nonzero when this process was started by an MPI launcher (its environment says so) and MPI was built in. */
int ex_mpi_launched(void);

/* comm/nccl: ranks, rank and the unique id by MPI where a launcher started us, else by the environment as
 * torchrun sets it (RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT), or through a
 * file that all ranks see
 * (`rendezvous`: its path; NULL: the environment). NULL and a message where it was built without NCCL. */
ex_comm *ex_nccl_open(const char *rendezvous, double limit_s, ex_fault *fault);

void ex_comm_free(ex_comm *comm); /* NULL is fine */

#ifdef __cplusplus
}
#endif

#endif
