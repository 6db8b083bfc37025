/* The two ends of a rendezvous: rank 0 listens, the others come. Rank 0 speaks first, so that a port that
 * someone else listens on gets no word from us. */
#ifndef EX_COMM_RENDEZVOUS_MEET_H
#define EX_COMM_RENDEZVOUS_MEET_H

#include "comm/rendezvous.h"

/* Ports from the meeting's on that are tried. */
enum { EX_MEETING_PORTS = 8 };

/* What rank 0's file says: where it listens, and the number that it greets with. */
enum { EX_TICKET_ADDRESSES = 16, EX_TICKET_ADDRESS = 64 };
typedef struct ex_ticket {
    uint64_t run, nonce;
    int32_t port;
    int32_t count;
    char address[EX_TICKET_ADDRESSES][EX_TICKET_ADDRESS];
} ex_ticket;

/* Fill socket [ranks] (rank 0) or socket [0], within the meeting's limit. -1: rendezvous->fault. */
int ex_meeting_host(ex_rendezvous *rendezvous, const ex_meeting *meeting);
int ex_meeting_join(ex_rendezvous *rendezvous, const ex_meeting *meeting);

/* Writes the file at once and whole (a new file, renamed); reads it: 0, 1 when there is none or it is not
 * one. */
int ex_ticket_write(const char *path, const ex_ticket *ticket, ex_fault *fault);
int ex_ticket_read(const char *path, ex_ticket *ticket);

/* Addresses of this host, those that others cannot reach last. */
void ex_ticket_addresses(ex_ticket *ticket);

#endif
