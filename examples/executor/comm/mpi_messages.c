/* Every call is messages among the group's ranks over one communicator: so a wait that is too long can say
 * who has not answered, groups cost nothing, sums have an order, and no call of MPI that waits inside is
 * needed after the beginning. A message is at most a piece long, which keeps counts within an int and buffers
 * small. */
#include "comm/comm.h"

#ifdef EX_MPI

#include "comm/mpi_messages.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "comm/call.h"
#include "comm/mpi_piece.h"

/* A call moves at most STAGE bytes of its group at once. */
enum { STAGE = 16 << 20, LEAST_PIECE = 4096 };

const char *const ex_mpi_names[EX_MPI_KINDS] = {"all-to-all", "all-reduce", "all-gather", "reduce-scatter",
                                                "gathering"};

int ex_mpi_fail(ex_comm *comm, const ex_group *group, const char *what, int error)
{
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    if (MPI_Error_string(error, text, &length))
        snprintf(text, sizeof text, "error %d", error);
    return ex_call_fail(comm, group, what, "MPI: %s", text);
}

/* Between two looks: goes on looking for about as long as the bytes may take, giving the processor away where
 * ranks share it, and then sleeps. */
static void pause_after(const ex_mpi_comm *m, double waited_s, int64_t bytes)
{
    if (waited_s >= 5e-5 + 1e-9 * (double)bytes)
        nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
    else if (m->crowded)
        sched_yield();
}

/* Whether what has come from place p of the group is what this call expects. `error`: MPI's, as of a message
 * too long. */
static int check_received(ex_mpi_comm *m, const ex_group *group, int tag, int32_t p, const MPI_Status *status,
                          int error)
{
    const char *what = ex_mpi_names[tag % EX_MPI_KINDS];
    int count = 0, peer = (int)(group->first + p);
    if (status->MPI_TAG >= 0 && status->MPI_TAG != tag)
        return ex_call_fail(&m->comm, group, what, "rank %d calls %s of %d ranks", peer,
                            ex_mpi_names[status->MPI_TAG % EX_MPI_KINDS], status->MPI_TAG / EX_MPI_KINDS);
    int class = MPI_SUCCESS;
    if (error && !MPI_Error_class(error, &class) && class == MPI_ERR_TRUNCATE)
        return ex_call_fail(&m->comm, group, what, "rank %d sends more than the %lld bytes expected", peer,
                            (long long)m->messages[p].recv_bytes);
    if (error)
        return ex_mpi_fail(&m->comm, group, what, error);
    MPI_Get_count(status, MPI_BYTE, &count);
    if (count != m->messages[p].recv_bytes)
        return ex_call_fail(&m->comm, group, what, "rank %d sends %d bytes; this rank expects %lld", peer,
                            count, (long long)m->messages[p].recv_bytes);
    return 0;
}

static int late(ex_mpi_comm *m, const ex_group *group, int tag)
{
    for (int32_t p = 0; p < group->size; p++)
        m->missing[p] =
            m->requests[p] != MPI_REQUEST_NULL || m->requests[group->size + p] != MPI_REQUEST_NULL;
    return ex_call_late(&m->comm, group, ex_mpi_names[tag % EX_MPI_KINDS], m->missing);
}

/* Waits for the requests of an exchange; the limit begins anew with each that ends. After a failure some stay
 * open: nothing moves them on, as this rank calls MPI no more but to abort. */
static int wait_all(ex_mpi_comm *m, const ex_group *group, int tag, int64_t bytes)
{
    int32_t size = group->size;
    int open = 2 * (size - 1);
    double since = ex_call_now();
    while (open) {
        int ended = 0;
        int error = MPI_Testsome(2 * size, m->requests, &ended, m->done, m->statuses);
        if (error && error != MPI_ERR_IN_STATUS)
            return ex_mpi_fail(&m->comm, group, ex_mpi_names[tag % EX_MPI_KINDS], error);
        for (int i = 0; i < ended; i++) {
            int bad = error ? m->statuses[i].MPI_ERROR : MPI_SUCCESS;
            if (m->done[i] < size && check_received(m, group, tag, m->done[i], &m->statuses[i], bad))
                return -1;
            if (bad)
                return ex_mpi_fail(&m->comm, group, ex_mpi_names[tag % EX_MPI_KINDS], bad);
        }
        if (ended > 0) {
            open -= ended;
            since = ex_call_now();
            continue;
        }
        double waited_s = ex_call_now() - since;
        if (waited_s >= m->comm.limit_s)
            return late(m, group, tag);
        pause_after(m, waited_s, bytes);
    }
    return 0;
}

/* Sends and receives m->messages. Receives take any tag: messages of a pair of ranks stay in order, so the
 * next one is the peer's next call, be it the same or not. */
int ex_mpi_exchange(ex_mpi_comm *m, const ex_group *group, int kind)
{
    int32_t size = group->size, most = (1 << 15) / EX_MPI_KINDS - 1;
    int tag = (size < most ? size : most) * EX_MPI_KINDS + kind, error = MPI_SUCCESS;
    int64_t bytes = 0;
    for (int32_t i = 0; i < 2 * size; i++)
        m->requests[i] = MPI_REQUEST_NULL;
    for (int32_t i = 1; i < size && !error; i++) {
        int32_t p = (group->rank + size - i) % size;
        error = MPI_Irecv(m->messages[p].recv, (int)m->messages[p].recv_bytes, MPI_BYTE, group->first + p,
                          MPI_ANY_TAG, m->all, &m->requests[p]);
        bytes += m->messages[p].recv_bytes;
    }
    for (int32_t i = 1; i < size && !error; i++) {
        int32_t p = (group->rank + i) % size;
        error = MPI_Isend(m->messages[p].send, (int)m->messages[p].send_bytes, MPI_BYTE, group->first + p,
                          tag, m->all, &m->requests[size + p]);
        bytes += m->messages[p].send_bytes;
    }
    if (error)
        return ex_mpi_fail(&m->comm, group, ex_mpi_names[kind], error);
    return wait_all(m, group, tag, bytes);
}

int64_t ex_mpi_piece(const ex_mpi_comm *m, const ex_group *group)
{
    int64_t piece = STAGE / group->size / LEAST_PIECE * LEAST_PIECE;
    if (piece < LEAST_PIECE)
        piece = LEAST_PIECE;
    return m->most_piece && m->most_piece < piece ? m->most_piece : piece;
}

void *ex_mpi_stage(ex_mpi_comm *m, const ex_group *group, int kind, int64_t bytes)
{
    if (bytes <= m->stage_bytes)
        return m->stage;
    free(m->stage);
    m->stage_bytes = 0;
    m->stage = malloc((size_t)bytes);
    if (m->stage)
        m->stage_bytes = bytes;
    else
        ex_call_fail(&m->comm, group, ex_mpi_names[kind], "no memory for %lld bytes", (long long)bytes);
    return m->stage;
}

void ex_mpi_set_piece(ex_comm *comm, int64_t bytes)
{
    ex_mpi_of(comm)->most_piece = bytes && bytes < 4 ? 4 : bytes / 4 * 4;
}

#endif
