/* How ranks that no MPI launcher started find one another, and a thin channel among them afterwards: a star
 * of TCP connections about rank 0. It carries what NCCL needs to begin, small host data, and the word that a
 * rank goes down. No wait is longer than the limit, and a rank whose connection breaks is noticed at once. */
#ifndef EX_COMM_RENDEZVOUS_H
#define EX_COMM_RENDEZVOUS_H

#include <stdint.h>

#include "base/fault.h"
#include "comm/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes that one rank may bring to a gathering. */
#define EX_RENDEZVOUS_MOST (INT64_C(1) << 28)

typedef struct ex_rendezvous {
    int32_t rank, ranks;
    int32_t node_rank, node_ranks;
    double limit_s;
    ex_fault fault; /* sticky */
    ex_comm *comm;  /* MPI carries it; else */
    int *socket;    /* [ranks] on rank 0, its own -1; [1] on others, that of rank 0 */
} ex_rendezvous;

/* Where a rank stands and whom it looks for. */
typedef struct ex_meeting {
    int32_t rank, ranks;
    int32_t node_rank, node_ranks; /* -1: found out, by host names */
    uint64_t run;                  /* tells runs apart; 0: does not */
    const char *address;           /* of rank 0, a name or number; NULL: see `file` */
    int32_t port;                  /* and the next 7, when others have it already */
    const char *file;              /* rank 0 writes here where it listens; a path that all ranks see */
    double limit_s;
} ex_meeting;

/* Fills `meeting` from the environment: RANK and WORLD_SIZE, or the variables of Slurm, OpenMPI or PMI;
 * LOCAL_RANK and LOCAL_WORLD_SIZE where they are set; without a `file` MASTER_ADDR and MASTER_PORT as well;
 * the run from TORCHELASTIC_RUN_ID or SLURM_JOB_ID. -1 with the name and value of what is wrong. */
int ex_meeting_from_environment(const char *file, double limit_s, ex_meeting *meeting, ex_fault *fault);

/* Returns on every rank when all have come. Strangers who connect to the port are sent away; what an earlier
 * run left in `file` is not believed: whoever listens must know the number that the file tells. NULL: a
 * message that names the ranks that did not come, or why this one cannot. */
ex_rendezvous *ex_rendezvous_open(const ex_meeting *meeting, ex_fault *fault);

/* Over a communicator that is there already; it stays the caller's. NULL without memory. */
ex_rendezvous *ex_rendezvous_over(ex_comm *comm, ex_fault *fault);

/* recv [ranks][bytes] gets what every rank brings, in rank order; a barrier. -1: rendezvous->fault. */
int ex_rendezvous_gather(ex_rendezvous *rendezvous, const void *send, void *recv, int64_t bytes);

/* data [bytes] of rank 0 comes to all. */
int ex_rendezvous_broadcast(ex_rendezvous *rendezvous, void *data, int64_t bytes);

/* Whether a rank has gone or given up meanwhile: -1 with its words in rendezvous->fault, else 0 at once. Rank
 * 0 tells the others: whoever waits by other means looks here from time to time. */
int ex_rendezvous_look(ex_rendezvous *rendezvous);

/* Tells all others that this rank goes down with `text`. Does not return over MPI. */
void ex_rendezvous_abandon(ex_rendezvous *rendezvous, const char *text);

void ex_rendezvous_free(ex_rendezvous *rendezvous); /* NULL is fine */

#ifdef __cplusplus
}
#endif

#endif
