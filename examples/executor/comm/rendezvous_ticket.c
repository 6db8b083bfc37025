/* The file by which ranks find rank 0: a line "hbp-rendezvous 1 RUN NONCE PORT", then an address a line, then
 * "end". */
#include <errno.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "comm/rendezvous_meet.h"

#define HEAD "hbp-rendezvous 1 "

/* The address as a number; empty when it is of no use. */
static void show_address(const struct sockaddr *address, char text[EX_TICKET_ADDRESS])
{
    text[0] = '\0';
    if (!address || (address->sa_family != AF_INET && address->sa_family != AF_INET6))
        return;
    socklen_t bytes =
        address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    if (getnameinfo(address, bytes, text, EX_TICKET_ADDRESS, NULL, 0, NI_NUMERICHOST) ||
        strncmp(text, "fe80:", 5) == 0) /* of one link */
        text[0] = '\0';
}

static int is_loopback(const char *address)
{
    return strncmp(address, "127.", 4) == 0 || strcmp(address, "::1") == 0;
}

void ex_ticket_addresses(ex_ticket *ticket)
{
    struct ifaddrs *all = NULL;
    ticket->count = 0;
    if (getifaddrs(&all))
        all = NULL;
    for (int loopback = 0; loopback < 2; loopback++)
        for (struct ifaddrs *i = all; i && ticket->count < EX_TICKET_ADDRESSES; i = i->ifa_next) {
            char *text = ticket->address[ticket->count];
            show_address(i->ifa_addr, text);
            ticket->count += text[0] && is_loopback(text) == loopback;
        }
    if (all)
        freeifaddrs(all);
    if (!ticket->count)
        strcpy(ticket->address[ticket->count++], "127.0.0.1");
}

static int write_all(FILE *file, const ex_ticket *ticket)
{
    fprintf(file, HEAD "%" PRIx64 " %" PRIx64 " %d\n", ticket->run, ticket->nonce, (int)ticket->port);
    for (int32_t i = 0; i < ticket->count; i++)
        fprintf(file, "%s\n", ticket->address[i]);
    fprintf(file, "end\n");
    int bad = fflush(file) || ferror(file) || fsync(fileno(file));
    return fclose(file) || bad;
}

int ex_ticket_write(const char *path, const ex_ticket *ticket, ex_fault *fault)
{
    size_t room = strlen(path) + sizeof ".XXXXXX";
    char *fresh = malloc(room);
    if (!fresh)
        return ex_fail(fault, "no memory for the name of %s", path);
    snprintf(fresh, room, "%s.XXXXXX", path);
    int handle = mkstemp(fresh);
    FILE *file = handle < 0 ? NULL : fdopen(handle, "w");
    int bad = !file || write_all(file, ticket) || rename(fresh, path);
    if (bad) {
        ex_fail(fault, "cannot write the rendezvous file %s: %s", path, strerror(errno));
        if (handle >= 0)
            unlink(fresh);
        if (handle >= 0 && !file)
            close(handle);
    }
    free(fresh);
    return bad ? -1 : 0;
}

int ex_ticket_read(const char *path, ex_ticket *ticket)
{
    char line[EX_TICKET_ADDRESS + 32];
    int whole = 0, port = 0;
    FILE *file = fopen(path, "r");
    if (!file)
        return 1;
    ticket->count = 0;
    if (fgets(line, sizeof line, file) &&
        sscanf(line, HEAD "%" SCNx64 " %" SCNx64 " %d", &ticket->run, &ticket->nonce, &port) == 3 &&
        port > 0 && port < 65536)
        while (!whole && ticket->count < EX_TICKET_ADDRESSES && fgets(line, sizeof line, file)) {
            line[strcspn(line, "\n")] = '\0';
            whole = strcmp(line, "end") == 0;
            if (!whole && strlen(line) < EX_TICKET_ADDRESS)
                strcpy(ticket->address[ticket->count++], line);
        }
    fclose(file);
    ticket->port = port;
    return whole && ticket->count ? 0 : 1;
}
