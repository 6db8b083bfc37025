#include "comm/rendezvous.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "comm/call.h"
#include "comm/rendezvous_meet.h"
#include "comm/wire.h"

enum { HOST_BYTES = 256 };

static int fail(ex_rendezvous *r, int32_t rank, const char *how)
{
    return ex_fail(&r->fault, "rank %d of %d: rank %d %s", (int)r->rank, (int)r->ranks, (int)rank, how);
}

/* Rank 0 to all others; who cannot hear it needs no word. */
static void tell_all(ex_rendezvous *r)
{
    double deadline = ex_call_now() + 1;
    for (int32_t rank = 1; rank < r->ranks; rank++)
        if (r->socket[rank] >= 0)
            ex_wire_send_frame(r->socket[rank], EX_WIRE_ABANDON, r->fault.text, strlen(r->fault.text),
                               deadline);
}

static void tell(ex_rendezvous *r)
{
    if (r->comm || !r->socket)
        return;
    if (r->rank == 0)
        tell_all(r);
    else if (r->socket[0] >= 0)
        ex_wire_send_frame(r->socket[0], EX_WIRE_ABANDON, r->fault.text, strlen(r->fault.text),
                           ex_call_now() + 1);
}

/* Any failure here is told to all at once. */
static int give_up(ex_rendezvous *r)
{
    tell(r);
    return -1;
}

static int heard_bad(ex_rendezvous *r, int32_t rank, int status)
{
    if (status == EX_WIRE_GONE)
        fail(r, rank, "is gone: its connection is closed");
    else if (status == EX_WIRE_LATE)
        ex_fail(&r->fault, "rank %d of %d: no answer for %g s from rank %d; it is gone or hangs",
                (int)r->rank, (int)r->ranks, r->limit_s, (int)rank);
    return -1;
}

/* The beginning of a frame of `rank`: data of `bytes`, or what ends the run. */
static int hear_data(ex_rendezvous *r, int32_t rank, int socket, uint64_t bytes, double deadline)
{
    int kind = 0;
    uint64_t got = 0;
    char text[EX_WIRE_TEXT];
    int status = ex_wire_receive_head(socket, &kind, &got, deadline);
    if (status)
        return heard_bad(r, rank, status);
    if (kind == EX_WIRE_ABANDON) {
        if (ex_wire_receive_text(socket, got, text, deadline))
            return fail(r, rank, "gave up without a word");
        return ex_fail(&r->fault, "rank %d of %d: rank %d gave up: %s", (int)r->rank, (int)r->ranks,
                       (int)rank, text);
    }
    if (kind != EX_WIRE_DATA || got != bytes)
        return ex_fail(
            &r->fault,
            "rank %d of %d: rank %d brought %llu bytes to a gathering of %llu: the ranks do not do the "
            "same",
            (int)r->rank, (int)r->ranks, (int)rank, (unsigned long long)got, (unsigned long long)bytes);
    return 0;
}

/* Takes from whoever speaks first, so that a word of giving up is heard whoever else is late. */
static int take_all(ex_rendezvous *r, unsigned char *recv, int64_t bytes, double deadline)
{
    struct pollfd *polls = malloc((size_t)r->ranks * sizeof *polls);
    if (!polls)
        return ex_fail(&r->fault, "no memory to hear %d ranks", (int)r->ranks);
    for (int32_t rank = 0; rank < r->ranks; rank++)
        polls[rank] = (struct pollfd){.fd = rank ? r->socket[rank] : -1, .events = POLLIN};
    for (int32_t left = r->ranks - 1; left > 0 && !r->fault.failed;) {
        double rest = deadline - ex_call_now();
        int n = poll(polls, (nfds_t)r->ranks, rest > 0 ? (int)(rest < 1e6 ? rest * 1e3 + 1 : 1e9) : 0);
        if (n < 0 && errno != EINTR)
            ex_fail(&r->fault, "rank 0 of %d cannot wait: %s", (int)r->ranks, strerror(errno));
        for (int32_t rank = 1; rank < r->ranks && !r->fault.failed; rank++) {
            if (polls[rank].fd < 0 || (n > 0 && !polls[rank].revents))
                continue;
            if (n == 0)
                heard_bad(r, rank, EX_WIRE_LATE);
            if (n <= 0 || hear_data(r, rank, r->socket[rank], (uint64_t)bytes, deadline))
                continue;
            int status = ex_wire_receive(r->socket[rank], recv + rank * bytes, (size_t)bytes, deadline);
            if (status)
                heard_bad(r, rank, status);
            polls[rank].fd = -1;
            left--;
        }
    }
    free(polls);
    return r->fault.failed ? -1 : 0;
}

static int gather_host(ex_rendezvous *r, const void *send, unsigned char *recv, int64_t bytes,
                       double deadline)
{
    memmove(recv, send, (size_t)bytes);
    if (take_all(r, recv, bytes, deadline))
        return give_up(r);
    for (int32_t rank = 1; rank < r->ranks; rank++) {
        int status = ex_wire_send_frame(r->socket[rank], EX_WIRE_DATA, recv, (size_t)(bytes * r->ranks),
                                        ex_call_now() + r->limit_s);
        if (status) {
            heard_bad(r, rank, status);
            return give_up(r);
        }
    }
    return 0;
}

static int gather_other(ex_rendezvous *r, const void *send, unsigned char *recv, int64_t bytes,
                        double deadline)
{
    int status = ex_wire_send_frame(r->socket[0], EX_WIRE_DATA, send, (size_t)bytes, deadline);
    /* Rank 0 waits as long for the last: it is to say who is missing. A rank 0 that is gone may have left
     * word. */
    deadline += 2;
    if (status == EX_WIRE_LATE)
        heard_bad(r, 0, status);
    else if (!hear_data(r, 0, r->socket[0], (uint64_t)(bytes * r->ranks), deadline) &&
             (status = ex_wire_receive(r->socket[0], recv, (size_t)(bytes * r->ranks), deadline)))
        heard_bad(r, 0, status);
    return r->fault.failed ? give_up(r) : 0;
}

int ex_rendezvous_gather(ex_rendezvous *r, const void *send, void *recv, int64_t bytes)
{
    if (r->fault.failed)
        return -1;
    if (bytes < 0 || bytes > EX_RENDEZVOUS_MOST / r->ranks)
        return ex_fail(&r->fault, "a gathering of %lld bytes a rank; at most %lld", (long long)bytes,
                       (long long)(EX_RENDEZVOUS_MOST / r->ranks));
    if (r->comm) {
        r->comm->ops->gather_host(r->comm, send, recv, bytes);
        return r->comm->fault.failed ? ex_fail(&r->fault, "%s", r->comm->fault.text) : 0;
    }
    double deadline = ex_call_now() + r->limit_s;
    if (r->ranks == 1) {
        memmove(recv, send, (size_t)bytes);
        return 0;
    }
    return r->rank == 0 ? gather_host(r, send, recv, bytes, deadline)
                        : gather_other(r, send, recv, bytes, deadline);
}

int ex_rendezvous_broadcast(ex_rendezvous *r, void *data, int64_t bytes)
{
    if (r->fault.failed)
        return -1;
    char *all = malloc((size_t)(bytes > 0 ? bytes : 1) * (size_t)r->ranks);
    if (!all)
        return ex_fail(&r->fault, "no memory for %lld bytes of %d ranks", (long long)bytes, (int)r->ranks);
    int status = ex_rendezvous_gather(r, data, all, bytes);
    if (status == 0)
        memcpy(data, all, (size_t)bytes);
    free(all);
    return status;
}

/* Data of a gathering that this rank has not come to yet stays where it is. */
static int look_at(ex_rendezvous *r, int32_t rank, int socket)
{
    unsigned char head[EX_WIRE_HEAD];
    ssize_t n = recv(socket, head, sizeof head, MSG_PEEK);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return 0;
    if (n <= 0)
        return heard_bad(r, rank, EX_WIRE_GONE);
    if (n < (ssize_t)sizeof head || ex_wire_get(head, 4) != EX_WIRE_ABANDON)
        return 0;
    return hear_data(r, rank, socket, 0, ex_call_now() + 1);
}

int ex_rendezvous_look(ex_rendezvous *r)
{
    if (r->fault.failed)
        return -1;
    if (r->comm)
        return r->comm->fault.failed ? ex_fail(&r->fault, "%s", r->comm->fault.text) : 0;
    if (r->rank)
        return look_at(r, 0, r->socket[0]);
    for (int32_t rank = 1; rank < r->ranks; rank++)
        if (look_at(r, rank, r->socket[rank]))
            return give_up(r);
    return 0;
}

void ex_rendezvous_abandon(ex_rendezvous *r, const char *text)
{
    if (r->comm)
        r->comm->ops->abandon(r->comm, text);
    ex_fail(&r->fault, "%s", text);
    tell(r);
}

/* What was not read would make the system drop the last words that are still under way. */
static void hang_up(int socket)
{
    char rest[4096];
    if (socket < 0)
        return;
    shutdown(socket, SHUT_WR);
    for (int i = 0; i < 64 && recv(socket, rest, sizeof rest, 0) > 0; i++)
        ;
    close(socket);
}

void ex_rendezvous_free(ex_rendezvous *r)
{
    if (!r)
        return;
    if (r->socket)
        for (int32_t i = 0; i < (r->rank ? 1 : r->ranks); i++)
            hang_up(r->socket[i]);
    free(r->socket);
    free(r);
}

static ex_rendezvous *make(int32_t rank, int32_t ranks, double limit_s, ex_fault *fault)
{
    ex_rendezvous *r = calloc(1, sizeof *r);
    if (!r) {
        ex_fail(fault, "no memory for a rendezvous of %d ranks", (int)ranks);
        return NULL;
    }
    r->rank = rank;
    r->ranks = ranks;
    r->limit_s = limit_s;
    return r;
}

/* Ranks whose hosts have this one's name are of its node. */
static int find_node(ex_rendezvous *r, const ex_meeting *meeting)
{
    char own[HOST_BYTES] = "";
    char *all = malloc((size_t)r->ranks * HOST_BYTES);
    if (!all)
        return ex_fail(&r->fault, "no memory for the names of %d hosts", (int)r->ranks);
    gethostname(own, sizeof own - 1);
    int status = ex_rendezvous_gather(r, own, all, HOST_BYTES);
    for (int32_t rank = 0; status == 0 && rank < r->ranks; rank++)
        if (memcmp(all + (size_t)rank * HOST_BYTES, own, HOST_BYTES) == 0) {
            r->node_rank += rank < r->rank;
            r->node_ranks++;
        }
    free(all);
    if (meeting->node_rank >= 0)
        r->node_rank = meeting->node_rank;
    if (meeting->node_ranks >= 0)
        r->node_ranks = meeting->node_ranks;
    return status;
}

ex_rendezvous *ex_rendezvous_open(const ex_meeting *meeting, ex_fault *fault)
{
    ex_rendezvous *r = make(meeting->rank, meeting->ranks, meeting->limit_s, fault);
    if (!r)
        return NULL;
    int32_t sockets = r->rank ? 1 : r->ranks;
    r->socket = malloc((size_t)sockets * sizeof *r->socket);
    for (int32_t i = 0; r->socket && i < sockets; i++)
        r->socket[i] = -1;
    int status = r->socket ? 0 : ex_fail(&r->fault, "no memory for a rendezvous of %d ranks", (int)r->ranks);
    if (status == 0 && r->ranks > 1) {
        status = r->rank ? ex_meeting_join(r, meeting) : ex_meeting_host(r, meeting);
        if (status && r->rank == 0)
            tell(r);
    }
    if (status == 0)
        status = find_node(r, meeting);
    if (status == 0)
        return r;
    ex_fail(fault, "%s", r->fault.text);
    ex_rendezvous_free(r);
    return NULL;
}

ex_rendezvous *ex_rendezvous_over(ex_comm *comm, ex_fault *fault)
{
    ex_rendezvous *r = make(comm->rank, comm->ranks, comm->limit_s, fault);
    if (!r)
        return NULL;
    r->comm = comm;
    r->node_rank = comm->node_rank;
    r->node_ranks = comm->node_ranks;
    return r;
}
