/* One rank of a run under an MPI launcher: every case of comm_cases.h, with messages of at most PIECE bytes.
 * usage: calls RANKS PIECE LARGE      RANKS: how many there should be; LARGE: bytes of the longest block */
#include "../comm_cases.h"
#include "comm/mpi_piece.h"

/* Ranks of this machine are all the ranks there are. */
static void check_node(comm_case *c)
{
    case_expect(c, c->comm->node_ranks == c->comm->ranks && c->comm->node_rank == c->comm->rank,
                "place %d of %d on this node", (int)c->comm->node_rank, (int)c->comm->node_ranks);
    case_expect(c, !strcmp(c->comm->name, "mpi") && ex_mpi_launched(), "an MPI launcher is not seen");
}

int main(int count, char **arguments)
{
    ex_fault fault = {0};
    if (count != 4)
        return 2;
    ex_comm *comm = ex_mpi_open(60, &fault);
    if (!comm) {
        fprintf(stderr, "%s\n", fault.text);
        return 1;
    }
    ex_mpi_set_piece(comm, atoll(arguments[2]));
    ex_device host = plain_device(1), away = plain_device(0);
    comm_case c = {.comm = comm, .device = &host};
    case_expect(&c, comm->ranks == atoi(arguments[1]), "%s ranks were started", arguments[1]);
    check_node(&c);
    int64_t large = atoll(arguments[3]), less = large < 300000 ? large : 300000;
    comm_cases(&c, large);
    c.device = &away;
    comm_cases(&c, less);
    /* A host's and another device in one group move the same pieces. */
    c.device = comm->rank % 2 ? &host : &away;
    comm_cases(&c, less);
    if (c.bad || c.checks < 150) {
        fprintf(stderr, "%lld of %lld checks are bad: %s\n", (long long)c.bad, (long long)c.checks, c.said);
        comm->ops->abandon(comm, c.said);
    }
    ex_comm_free(comm);
    return 0;
}
