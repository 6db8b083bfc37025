/* Rank 0's end: it listens until every rank has come. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "comm/call.h"
#include "comm/rendezvous_meet.h"
#include "comm/rendezvous_words.h"
#include "comm/wire.h"

enum { GUESTS = 256 }; /* connections that have not said yet who they are */

/* Strangers do not stay longer, nor ranks that stopped in the middle of a word. */
#define PATIENCE_S 5.

typedef struct guest {
    int socket;
    double since;
    size_t got;
    unsigned char hello[EX_HELLO_BYTES];
} guest;

typedef struct host {
    ex_rendezvous *r;
    const ex_meeting *meeting;
    ex_ticket ticket;
    int listener;
    int32_t come; /* ranks, this one with them */
    int32_t guests;
    guest guest[GUESTS];
    struct pollfd polls[GUESTS + 1];
} host;

static uint64_t draw_nonce(void)
{
    uint64_t nonce = 0;
    FILE *file = fopen("/dev/urandom", "rb");
    if (file) {
        if (fread(&nonce, sizeof nonce, 1, file) != 1)
            nonce = 0;
        fclose(file);
    }
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return nonce ^ ((uint64_t)now.tv_sec << 30) ^ (uint64_t)now.tv_nsec ^ ((uint64_t)getpid() << 40);
}

static int begin_listening(host *h)
{
    int32_t first = h->meeting->file ? 0 : h->meeting->port, ports = first ? EX_MEETING_PORTS : 1;
    for (int32_t i = 0; i < ports && first + i < 65536; i++) {
        int32_t port = first + i;
        h->listener = ex_wire_listen(&port);
        h->ticket.port = port;
        if (h->listener >= 0)
            return 0;
        if (errno != EADDRINUSE && errno != EACCES)
            break;
    }
    return ex_fail(&h->r->fault, "rank 0 cannot listen on any of the ports %d..%d: %s", (int)first,
                   (int)(first + ports - 1), strerror(errno));
}

static void forget(host *h, int32_t index, int keep_socket)
{
    if (!keep_socket)
        close(h->guest[index].socket);
    h->guest[index] = h->guest[--h->guests];
}

static void welcome(host *h)
{
    unsigned char greeting[EX_GREETING_BYTES];
    int socket = accept(h->listener, NULL, NULL);
    if (socket < 0)
        return;
    if (h->guests == GUESTS)
        forget(h, 0, 0);
    ex_words_greeting(greeting, h->ticket.nonce);
    if (ex_wire_prepare(socket) || ex_wire_send(socket, greeting, sizeof greeting, 0)) {
        close(socket);
        return;
    }
    h->guest[h->guests++] = (guest){.socket = socket, .since = ex_call_now()};
}

static void refuse(int socket, const char *text)
{
    ex_wire_send_frame(socket, EX_WIRE_REFUSED, text, strlen(text), ex_call_now() + .1);
}

/* A whole word of guest `index`: a rank of this run stays, ranks that contradict end the meeting, all else
 * goes.
 */
static int admit(host *h, int32_t index)
{
    ex_rendezvous *r = h->r;
    ex_hello hello;
    guest *g = &h->guest[index];
    if (ex_words_read_hello(g->hello, &hello) || hello.nonce != h->ticket.nonce) {
        forget(h, index, 0);
        return 0;
    }
    if (hello.run && h->meeting->run && hello.run != h->meeting->run) {
        refuse(g->socket, "rank 0 belongs to another run");
        forget(h, index, 0);
        return 0;
    }
    if (hello.ranks != (uint32_t)r->ranks)
        ex_fail(&r->fault, "rank %u counts %u ranks and rank 0 counts %d: WORLD_SIZE differs", hello.rank,
                hello.ranks, (int)r->ranks);
    else if (hello.rank == 0 || hello.rank >= (uint32_t)r->ranks)
        ex_fail(&r->fault, "a rank came as rank %u; there are 1..%d to come", hello.rank, (int)r->ranks - 1);
    else if (r->socket[hello.rank] >= 0)
        ex_fail(&r->fault, "two processes came as rank %u", hello.rank);
    if (r->fault.failed) {
        ex_wire_send_frame(g->socket, EX_WIRE_ABANDON, r->fault.text, strlen(r->fault.text),
                           ex_call_now() + .1);
        forget(h, index, 0);
        return -1;
    }
    r->socket[hello.rank] = g->socket;
    h->come++;
    forget(h, index, 1);
    return 0;
}

static int hear(host *h, int32_t index)
{
    guest *g = &h->guest[index];
    ssize_t n = recv(g->socket, g->hello + g->got, sizeof g->hello - g->got, 0);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) {
        forget(h, index, 0);
        return 0;
    }
    g->got += n > 0 ? (size_t)n : 0;
    return g->got == sizeof g->hello ? admit(h, index) : 0;
}

/* One look at all connections. From the last to the first, because forgetting one moves the last into its
 * place. */
static int attend(host *h, double deadline)
{
    double now = ex_call_now();
    h->polls[0] = (struct pollfd){.fd = h->listener, .events = POLLIN};
    int32_t known = h->guests;
    for (int32_t i = 0; i < known; i++)
        h->polls[i + 1] = (struct pollfd){.fd = h->guest[i].socket, .events = POLLIN};
    double left = deadline - now < .1 ? deadline - now : .1;
    if (poll(h->polls, (nfds_t)known + 1, left > 0 ? (int)(left * 1e3) + 1 : 0) < 0)
        return errno == EINTR ? 0 : ex_fail(&h->r->fault, "rank 0 cannot wait: %s", strerror(errno));
    for (int32_t i = known - 1; i >= 0; i--) {
        if (h->polls[i + 1].revents) {
            if (hear(h, i))
                return -1;
        } else if (now - h->guest[i].since > PATIENCE_S) {
            forget(h, i, 0);
        }
    }
    if (h->polls[0].revents)
        welcome(h);
    return 0;
}

static int fail_missing(host *h)
{
    char missing[200] = "";
    size_t used = 0;
    int32_t count = 0;
    for (int32_t rank = 1; rank < h->r->ranks; rank++)
        if (h->r->socket[rank] < 0 && ++count <= 16)
            used += (size_t)snprintf(missing + used, sizeof missing - used, "%s%d", count > 1 ? ", " : "",
                                     (int)rank);
    if (count > 16)
        snprintf(missing + used, sizeof missing - used, " and %d more", (int)count - 16);
    return ex_fail(&h->r->fault, "rank 0 of %d, port %d: rank%s %s did not come within %g s",
                   (int)h->r->ranks, (int)h->ticket.port, count > 1 ? "s" : "", missing, h->meeting->limit_s);
}

static int receive_all(host *h)
{
    ex_rendezvous *r = h->r;
    double deadline = ex_call_now() + h->meeting->limit_s;
    if (begin_listening(h))
        return -1;
    h->ticket.run = h->meeting->run;
    h->ticket.nonce = draw_nonce();
    if (h->meeting->file) {
        ex_ticket_addresses(&h->ticket);
        if (ex_ticket_write(h->meeting->file, &h->ticket, &r->fault))
            return -1;
    }
    for (h->come = 1; h->come < r->ranks;) {
        if (attend(h, deadline))
            return -1;
        if (h->come < r->ranks && ex_call_now() >= deadline)
            return fail_missing(h);
    }
    for (int32_t rank = 1; rank < r->ranks; rank++)
        if (ex_wire_send_frame(r->socket[rank], EX_WIRE_GO, NULL, 0, deadline + 1))
            return ex_fail(&r->fault, "rank %d went again before all had come", (int)rank);
    return 0;
}

int ex_meeting_host(ex_rendezvous *rendezvous, const ex_meeting *meeting)
{
    host *h = calloc(1, sizeof *h);
    if (!h)
        return ex_fail(&rendezvous->fault, "no memory to meet %d ranks", (int)rendezvous->ranks);
    h->r = rendezvous;
    h->meeting = meeting;
    h->listener = -1;
    int status = receive_all(h);
    while (h->guests)
        forget(h, h->guests - 1, 0);
    if (h->listener >= 0)
        close(h->listener);
    /* The file has served; a later run must not find it. */
    if (meeting->file && h->ticket.nonce)
        unlink(meeting->file);
    free(h);
    return status;
}
