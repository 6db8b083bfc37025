/* How ranks of comm/mpi exchange messages. */
#ifndef EX_COMM_MPI_MESSAGES_H
#define EX_COMM_MPI_MESSAGES_H

#include <mpi.h>
#include <stdint.h>

#include "comm/comm.h"

/* The calls, which tags tell apart. */
enum {
    EX_MPI_ALL_TO_ALL,
    EX_MPI_ALL_REDUCE,
    EX_MPI_ALL_GATHER,
    EX_MPI_REDUCE_SCATTER,
    EX_MPI_HOST,
    EX_MPI_KINDS
};

extern const char *const ex_mpi_names[EX_MPI_KINDS];

/* To and from one peer. */
typedef struct ex_mpi_message {
    const void *send;
    void *recv;
    int64_t send_bytes;
    int64_t recv_bytes;
} ex_mpi_message;

typedef struct ex_mpi_comm {
    ex_comm comm;
    MPI_Comm all;
    int initialised;          /* MPI, by us */
    int crowded;              /* more ranks than processors on this node */
    int64_t most_piece;       /* 0: none but STAGE's */
    ex_mpi_message *messages; /* [ranks] of the present exchange, by place in the group */
    MPI_Request *requests;    /* [2 ranks] receives, then sends */
    MPI_Status *statuses;     /* [2 ranks] */
    int *done;                /* [2 ranks] */
    unsigned char *missing;   /* [ranks] */
    const float **summands;   /* [ranks] */
    char *stage;              /* host memory that grows as it is needed */
    int64_t stage_bytes;
} ex_mpi_comm;

static inline ex_mpi_comm *ex_mpi_of(ex_comm *comm)
{
    return (ex_mpi_comm *)comm;
}

/* Keeps MPI's text for `error` as the call's fault. Returns -1. */
int ex_mpi_fail(ex_comm *comm, const ex_group *group, const char *what, int error);

/* Bytes of a block that are moved at once: the same on all ranks of a group. */
int64_t ex_mpi_piece(const ex_mpi_comm *m, const ex_group *group);

/* Host memory of `bytes` for the call, until the next one asks; NULL: comm->fault. */
void *ex_mpi_stage(ex_mpi_comm *m, const ex_group *group, int kind, int64_t bytes);

/* Sends and receives m->messages, all but this rank's own, and waits for them. 0 or -1 (comm->fault). */
int ex_mpi_exchange(ex_mpi_comm *m, const ex_group *group, int kind);

void ex_mpi_all_to_all(ex_comm *, const ex_group *, const void *send, void *recv, int64_t bytes);
void ex_mpi_all_reduce(ex_comm *, const ex_group *, float *data, int64_t count);
void ex_mpi_all_gather(ex_comm *, const ex_group *, const void *send, void *recv, int64_t bytes);
void ex_mpi_reduce_scatter(ex_comm *, const ex_group *, const float *send, float *recv, int64_t count);
void ex_mpi_gather_host(ex_comm *, const void *send, void *recv, int64_t bytes);

#endif
