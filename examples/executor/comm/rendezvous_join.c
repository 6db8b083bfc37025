/* The others' end: they look for rank 0 until it lets them in. */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "comm/call.h"
#include "comm/rendezvous_meet.h"
#include "comm/rendezvous_words.h"

/* How long one address may take to let itself be connected to, and to greet. */
#define GREETING_S .5

/* What one attempt came to. */
enum { IN = 0, NOT_HERE = 1, OVER = -1 };

typedef struct seeker {
    ex_rendezvous *r;
    const ex_meeting *meeting;
    double deadline;
    char why[EX_WIRE_TEXT];     /* of the last attempt that failed */
    char refused[EX_WIRE_TEXT]; /* rank 0's words when it refused, which tell more */
} seeker;

/* With a greeting heard: says who we are and waits for all to come. */
static int enter(seeker *s, int socket, uint64_t nonce)
{
    unsigned char word[EX_HELLO_BYTES];
    ex_hello hello = {nonce, s->meeting->run, (uint32_t)s->r->rank, (uint32_t)s->r->ranks};
    int kind = 0;
    uint64_t bytes = 0;
    ex_words_hello(word, &hello);
    /* Rank 0 knows better when it has waited too long: it began before. */
    double patience = s->deadline + GREETING_S;
    if (ex_wire_send(socket, word, sizeof word, s->deadline) ||
        ex_wire_receive_head(socket, &kind, &bytes, patience)) {
        snprintf(s->why, sizeof s->why, "it closed the connection");
        return NOT_HERE;
    }
    if (kind == EX_WIRE_GO && bytes == 0)
        return IN;
    if (kind != EX_WIRE_ABANDON && kind != EX_WIRE_REFUSED) {
        snprintf(s->why, sizeof s->why, "it does not speak as rank 0 does");
        return NOT_HERE;
    }
    if (ex_wire_receive_text(socket, bytes, s->why, patience))
        snprintf(s->why, sizeof s->why, "it closed the connection");
    if (kind == EX_WIRE_REFUSED) {
        memcpy(s->refused, s->why, sizeof s->refused);
        return NOT_HERE;
    }
    ex_fail(&s->r->fault, "rank %d of %d: rank 0 gave up: %s", (int)s->r->rank, (int)s->r->ranks, s->why);
    return OVER;
}

/* `nonce` is what rank 0's file promises; NULL: any. */
static int try_address(seeker *s, const struct addrinfo *address, const uint64_t *nonce)
{
    double deadline = ex_call_now() + GREETING_S;
    if (deadline > s->deadline)
        deadline = s->deadline;
    int socket = ex_wire_connect(address->ai_addr, address->ai_addrlen, deadline);
    if (socket < 0) {
        snprintf(s->why, sizeof s->why, "%s", strerror(errno));
        return NOT_HERE;
    }
    unsigned char greeting[EX_GREETING_BYTES];
    uint64_t got = 0;
    int status = NOT_HERE;
    int heard = ex_wire_receive(socket, greeting, sizeof greeting, deadline) == EX_WIRE_DONE;
    if (!heard || ex_words_read_greeting(greeting, &got))
        snprintf(s->why, sizeof s->why, "whoever listens there is not rank 0");
    else if (nonce && got != *nonce)
        snprintf(s->why, sizeof s->why, "another run listens there");
    else
        status = enter(s, socket, got);
    if (status == IN)
        s->r->socket[0] = socket;
    else
        close(socket);
    return status;
}

static int try_name(seeker *s, const char *name, int32_t port, const uint64_t *nonce)
{
    char service[16];
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *all = NULL;
    snprintf(service, sizeof service, "%d", (int)port);
    int error = getaddrinfo(name, service, &hints, &all);
    if (error) {
        snprintf(s->why, sizeof s->why, "%s", gai_strerror(error));
        return NOT_HERE;
    }
    int status = NOT_HERE;
    for (struct addrinfo *a = all; a && status == NOT_HERE && ex_call_now() < s->deadline; a = a->ai_next)
        status = try_address(s, a, nonce);
    freeaddrinfo(all);
    return status;
}

static int try_ports(seeker *s)
{
    int status = NOT_HERE;
    char first[EX_WIRE_TEXT]; /* rank 0 is most likely there, so that port's words are the ones to tell */
    memcpy(first, s->why, sizeof first);
    for (int32_t i = 0; i < EX_MEETING_PORTS && status == NOT_HERE && ex_call_now() < s->deadline; i++) {
        status = try_name(s, s->meeting->address, s->meeting->port + i, NULL);
        if (i == 0)
            memcpy(first, s->why, sizeof first);
    }
    memcpy(s->why, first, sizeof first);
    return status;
}

static int try_file(seeker *s)
{
    ex_ticket ticket;
    int status = NOT_HERE;
    if (ex_ticket_read(s->meeting->file, &ticket)) {
        snprintf(s->why, sizeof s->why, "the file is not there, or not one of a rendezvous");
        return NOT_HERE;
    }
    if (ticket.run && s->meeting->run && ticket.run != s->meeting->run) {
        snprintf(s->why, sizeof s->why, "the file is of another run");
        return NOT_HERE;
    }
    for (int32_t i = 0; i < ticket.count && status == NOT_HERE && ex_call_now() < s->deadline; i++)
        status = try_name(s, ticket.address[i], ticket.port, &ticket.nonce);
    if (status == NOT_HERE)
        snprintf(s->why, sizeof s->why,
                 "nobody listens where the file says; it may be left from an earlier run");
    return status;
}

int ex_meeting_join(ex_rendezvous *rendezvous, const ex_meeting *meeting)
{
    seeker s = {.r = rendezvous, .meeting = meeting, .deadline = ex_call_now() + meeting->limit_s};
    struct timespec pause = {.tv_nsec = 20000000};
    for (;;) {
        int status = meeting->file ? try_file(&s) : try_ports(&s);
        if (status != NOT_HERE)
            return status;
        if (ex_call_now() >= s.deadline)
            break;
        nanosleep(&pause, NULL);
    }
    const char *why = s.refused[0] ? s.refused : s.why;
    if (meeting->file)
        return ex_fail(&rendezvous->fault, "rank %d of %d: no rank 0 by the file %s within %g s: %s",
                       (int)rendezvous->rank, (int)rendezvous->ranks, meeting->file, meeting->limit_s, why);
    return ex_fail(&rendezvous->fault, "rank %d of %d: no rank 0 at %s port %d within %g s: %s",
                   (int)rendezvous->rank, (int)rendezvous->ranks, meeting->address, (int)meeting->port,
                   meeting->limit_s, why);
}
