#include "comm/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "comm/call.h"

void ex_wire_put(unsigned char *at, uint64_t value, int bytes)
{
    for (int i = bytes - 1; i >= 0; i--, value >>= 8)
        at[i] = (unsigned char)value;
}

uint64_t ex_wire_get(const unsigned char *at, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++)
        value = value << 8 | at[i];
    return value;
}

int ex_wire_wait(int socket, int to_write, double deadline)
{
    for (;;) {
        double left = deadline - ex_call_now();
        struct pollfd p = {.fd = socket, .events = to_write ? POLLOUT : POLLIN};
        int n = poll(&p, 1, left > 0 ? (int)fmin(ceil(left * 1e3), 1e9) : 0);
        if (n > 0)
            return EX_WIRE_DONE;
        if (n < 0 && errno != EINTR)
            return EX_WIRE_GONE;
        if (ex_call_now() >= deadline)
            return EX_WIRE_LATE;
    }
}

/* Whether to try again after a transfer of `n` bytes: 1, or what the wait came to. */
static int again(int socket, ssize_t n, int to_write, double deadline)
{
    if (n > 0)
        return 1;
    if (n == 0 && !to_write)
        return EX_WIRE_GONE;
    if (n < 0 && errno == EINTR)
        return 1;
    if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK)
        return EX_WIRE_GONE;
    int status = ex_wire_wait(socket, to_write, deadline);
    return status == EX_WIRE_DONE ? 1 : status;
}

int ex_wire_send(int socket, const void *data, size_t bytes, double deadline)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t n = send(socket, (const char *)data + done, bytes - done, MSG_NOSIGNAL);
        int more = again(socket, n, 1, deadline);
        if (more != 1)
            return more;
        done += n > 0 ? (size_t)n : 0;
    }
    return EX_WIRE_DONE;
}

int ex_wire_receive(int socket, void *data, size_t bytes, double deadline)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t n = recv(socket, (char *)data + done, bytes - done, 0);
        int more = again(socket, n, 0, deadline);
        if (more != 1)
            return more;
        done += n > 0 ? (size_t)n : 0;
    }
    return EX_WIRE_DONE;
}

int ex_wire_send_frame(int socket, int kind, const void *data, size_t bytes, double deadline)
{
    unsigned char head[EX_WIRE_HEAD];
    ex_wire_put(head, (uint64_t)kind, 4);
    ex_wire_put(head + 4, bytes, 8);
    int status = ex_wire_send(socket, head, sizeof head, deadline);
    return status ? status : ex_wire_send(socket, data, bytes, deadline);
}

int ex_wire_receive_head(int socket, int *kind, uint64_t *bytes, double deadline)
{
    unsigned char head[EX_WIRE_HEAD];
    int status = ex_wire_receive(socket, head, sizeof head, deadline);
    if (status)
        return status;
    *kind = (int)ex_wire_get(head, 4);
    *bytes = ex_wire_get(head + 4, 8);
    return EX_WIRE_DONE;
}

int ex_wire_receive_text(int socket, uint64_t bytes, char *text, double deadline)
{
    size_t kept = bytes < EX_WIRE_TEXT - 1 ? (size_t)bytes : EX_WIRE_TEXT - 1;
    int status = ex_wire_receive(socket, text, kept, deadline);
    text[status ? 0 : kept] = '\0';
    for (char *at = text; *at; at++)
        if ((unsigned char)*at < 0x20 || *at == 0x7f)
            *at = '?';
    return status;
}

int ex_wire_prepare(int socket)
{
    int on = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    int flags = fcntl(socket, F_GETFL);
    if (flags < 0 || fcntl(socket, F_SETFL, flags | O_NONBLOCK) < 0)
        return -1;
    return fcntl(socket, F_SETFD, FD_CLOEXEC) < 0 ? -1 : 0;
}

static int give_up(int file)
{
    int error = errno;
    close(file);
    errno = error;
    return -1;
}

int ex_wire_connect(const struct sockaddr *address, socklen_t bytes, double deadline)
{
    int file = socket(address->sa_family, SOCK_STREAM, 0);
    if (file < 0)
        return -1;
    if (ex_wire_prepare(file))
        return give_up(file);
    if (connect(file, address, bytes) == 0)
        return file;
    if (errno != EINPROGRESS)
        return give_up(file);
    int error = ETIMEDOUT;
    socklen_t size = sizeof error;
    if (ex_wire_wait(file, 1, deadline) == EX_WIRE_DONE &&
        getsockopt(file, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0)
        return file;
    errno = error;
    return give_up(file);
}

/* One family; IPv6 takes IPv4 as well. */
static int listen_on(int family, int32_t *port)
{
    int on = 1, off = 0;
    struct sockaddr_in six_less = {.sin_family = AF_INET, .sin_port = htons((uint16_t)*port)};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)*port)};
    struct sockaddr_storage any = {0};
    socklen_t size = family == AF_INET6 ? sizeof six : sizeof six_less;
    memcpy(&any, family == AF_INET6 ? (void *)&six : (void *)&six_less, size);
    int file = socket(family, SOCK_STREAM, 0);
    if (file < 0)
        return -1;
    setsockopt(file, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (family == AF_INET6)
        setsockopt(file, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (ex_wire_prepare(file) || bind(file, (struct sockaddr *)&any, size) || listen(file, 1024) ||
        getsockname(file, (struct sockaddr *)&any, &size))
        return give_up(file);
    memcpy(family == AF_INET6 ? (void *)&six : (void *)&six_less, &any, size);
    *port = ntohs(family == AF_INET6 ? six.sin6_port : six_less.sin_port);
    return file;
}

int ex_wire_listen(int32_t *port)
{
    int file = listen_on(AF_INET6, port);
    return file < 0 && errno != EADDRINUSE ? listen_on(AF_INET, port) : file;
}
