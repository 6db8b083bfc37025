/* Bytes on a socket under a deadline, and the frames of a rendezvous. Sockets do not block. */
#ifndef EX_COMM_WIRE_H
#define EX_COMM_WIRE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum { EX_WIRE_DATA = 1, EX_WIRE_GO, EX_WIRE_ABANDON, EX_WIRE_REFUSED };
enum { EX_WIRE_HEAD = 12, EX_WIRE_TEXT = 512 };

/* What a transfer came to. */
enum { EX_WIRE_DONE = 0, EX_WIRE_LATE = -1, EX_WIRE_GONE = -2 };

/* Big-endian integers. */
void ex_wire_put(unsigned char *at, uint64_t value, int bytes);
uint64_t ex_wire_get(const unsigned char *at, int bytes);

/* All of `bytes` before ex_call_now() passes `deadline`. */
int ex_wire_send(int socket, const void *data, size_t bytes, double deadline);
int ex_wire_receive(int socket, void *data, size_t bytes, double deadline);

/* A frame: kind (4 bytes), bytes (8), then they. */
int ex_wire_send_frame(int socket, int kind, const void *data, size_t bytes, double deadline);
int ex_wire_receive_head(int socket, int *kind, uint64_t *bytes, double deadline);

/* The words of a frame of `bytes` bytes, made printable and cut to the text [EX_WIRE_TEXT]. */
int ex_wire_receive_text(int socket, uint64_t bytes, char *text, double deadline);

/* Waits until the socket can be read (or written) or the deadline passes; an error counts as readable. */
int ex_wire_wait(int socket, int to_write, double deadline);

/* Nonblocking, closed on exec, without delay for small frames. 0 or -1 (errno). */
int ex_wire_prepare(int socket);

/* Connects within `deadline`; the socket, or -1 (errno). */
int ex_wire_connect(const struct sockaddr *address, socklen_t bytes, double deadline);

/* Listens on `port` of all addresses, 0: on any that is free; *port tells. -1: errno. */
int ex_wire_listen(int32_t *port);

#endif
