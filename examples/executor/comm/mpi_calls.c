/* The calls of comm/mpi, each made of exchanges of messages. On a device whose memory the host does not see,
 * pieces go through the stage. */
#include "comm/comm.h"

#ifdef EX_MPI

#include <string.h>

#include "comm/call.h"
#include "comm/mpi_messages.h"
#include "comm/self.h"

/* Up to so many bytes of all ranks together an all-reduce is one exchange of everything: the latency counts,
 * not the bytes. */
enum { GATHERED = 32 << 10 };

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* What every data call does first: 0 when it goes on over MPI. */
static int begin(ex_comm *comm, const ex_group *group, int kind, int64_t count)
{
    if (ex_call_begin(comm, group, ex_mpi_names[kind], count))
        return -1;
    if (ex_device_sync(comm->device))
        return ex_call_fail(comm, group, ex_mpi_names[kind], "%s", comm->device->fault.text);
    return 0;
}

void ex_mpi_all_to_all(ex_comm *comm, const ex_group *group, const void *send, void *recv, int64_t bytes)
{
    ex_mpi_comm *m = ex_mpi_of(comm);
    ex_device *d = comm->device;
    int32_t size = group->size, rank = group->rank;
    if (size == 1) {
        ex_self_ops.all_to_all(comm, group, send, recv, bytes);
        return;
    }
    if (begin(comm, group, EX_MPI_ALL_TO_ALL, bytes) || !bytes)
        return;
    int64_t piece = least(ex_mpi_piece(m, group), bytes);
    char *stage = d->host_memory ? NULL : ex_mpi_stage(m, group, EX_MPI_ALL_TO_ALL, 2 * size * piece);
    if (!d->host_memory && !stage)
        return;
    d->ops->copy(d, (char *)recv + rank * bytes, (const char *)send + rank * bytes, bytes);
    for (int64_t at = 0; at < bytes; at += piece) {
        int64_t n = least(piece, bytes - at);
        for (int32_t p = 0; p < size; p++) {
            const char *from = (const char *)send + p * bytes + at;
            char *to = (char *)recv + p * bytes + at;
            if (stage && p != rank)
                d->ops->copy_out(d, stage + p * piece, from, n);
            m->messages[p] = (ex_mpi_message){.send = stage ? stage + p * piece : from,
                                              .recv = stage ? stage + (size + p) * piece : to,
                                              .send_bytes = n,
                                              .recv_bytes = n};
        }
        if (ex_mpi_exchange(m, group, EX_MPI_ALL_TO_ALL))
            return;
        for (int32_t p = 0; stage && p < size; p++)
            if (p != rank)
                d->ops->copy_in(d, (char *)recv + p * bytes + at, stage + (size + p) * piece, n);
    }
}

/* Host memory: recv [size][bytes] but for this rank's own block. */
static int gather(ex_mpi_comm *m, const ex_group *group, int kind, const char *send, char *recv,
                  int64_t stride, int64_t bytes)
{
    for (int32_t p = 0; p < group->size; p++)
        m->messages[p] = (ex_mpi_message){
            .send = send, .recv = recv + p * stride, .send_bytes = bytes, .recv_bytes = bytes};
    return ex_mpi_exchange(m, group, kind);
}

void ex_mpi_all_gather(ex_comm *comm, const ex_group *group, const void *send, void *recv, int64_t bytes)
{
    ex_mpi_comm *m = ex_mpi_of(comm);
    ex_device *d = comm->device;
    int32_t size = group->size, rank = group->rank;
    if (size == 1) {
        ex_self_ops.all_gather(comm, group, send, recv, bytes);
        return;
    }
    if (begin(comm, group, EX_MPI_ALL_GATHER, bytes) || !bytes)
        return;
    int64_t piece = least(ex_mpi_piece(m, group), bytes);
    char *stage = d->host_memory ? NULL : ex_mpi_stage(m, group, EX_MPI_ALL_GATHER, (size + 1) * piece);
    if (!d->host_memory && !stage)
        return;
    if ((char *)recv + rank * bytes != send)
        d->ops->copy(d, (char *)recv + rank * bytes, send, bytes);
    for (int64_t at = 0; at < bytes; at += piece) {
        int64_t n = least(piece, bytes - at);
        const char *from = (const char *)send + at;
        if (stage)
            d->ops->copy_out(d, stage + size * piece, from, n);
        if (stage ? gather(m, group, EX_MPI_ALL_GATHER, stage + size * piece, stage, piece, n)
                  : gather(m, group, EX_MPI_ALL_GATHER, from, (char *)recv + at, bytes, n))
            return;
        for (int32_t p = 0; stage && p < size; p++)
            if (p != rank)
                d->ops->copy_in(d, (char *)recv + p * bytes + at, stage + p * piece, n);
    }
}

void ex_mpi_reduce_scatter(ex_comm *comm, const ex_group *group, const float *send, float *recv,
                           int64_t count)
{
    ex_mpi_comm *m = ex_mpi_of(comm);
    ex_device *d = comm->device;
    int32_t size = group->size, rank = group->rank;
    if (size == 1) {
        ex_self_ops.reduce_scatter(comm, group, send, recv, count);
        return;
    }
    if (begin(comm, group, EX_MPI_REDUCE_SCATTER, count) || !count)
        return;
    int64_t piece = least(ex_mpi_piece(m, group) / (int64_t)sizeof *send, count);
    int64_t parts = d->host_memory ? size : 2 * size;
    float *stage = ex_mpi_stage(m, group, EX_MPI_REDUCE_SCATTER, parts * piece * (int64_t)sizeof *stage);
    if (!stage)
        return;
    float *outgoing = d->host_memory ? NULL : stage + size * piece;
    for (int64_t at = 0; at < count; at += piece) {
        int64_t n = least(piece, count - at), bytes = n * (int64_t)sizeof *send;
        for (int32_t p = 0; p < size; p++) {
            const float *from = send + p * count + at;
            if (outgoing)
                d->ops->copy_out(d, outgoing + p * piece, from, bytes);
            if (outgoing)
                from = outgoing + p * piece;
            m->messages[p] = (ex_mpi_message){
                .send = from, .recv = stage + p * piece, .send_bytes = bytes, .recv_bytes = bytes};
            m->summands[p] = p == rank ? from : stage + p * piece;
        }
        if (ex_mpi_exchange(m, group, EX_MPI_REDUCE_SCATTER))
            return;
        ex_call_sum(outgoing ? outgoing : recv + at, m->summands, size, n);
        if (outgoing)
            d->ops->copy_in(d, recv + at, outgoing, bytes);
    }
}

/* All elements are gathered, and every rank sums. */
static int sum_few(ex_mpi_comm *m, const ex_group *group, float *data, int64_t count, float *stage)
{
    int64_t bytes = count * (int64_t)sizeof *data;
    if (gather(m, group, EX_MPI_ALL_REDUCE, (const char *)data, (char *)stage, bytes, bytes))
        return -1;
    for (int32_t p = 0; p < group->size; p++)
        m->summands[p] = p == group->rank ? data : stage + p * count;
    ex_call_sum(data, m->summands, group->size, count);
    return 0;
}

/* Each rank sums a share, and the shares are gathered. Either way an element is summed in rank order. */
static int sum_many(ex_mpi_comm *m, const ex_group *group, float *data, int64_t count, float *stage)
{
    int32_t size = group->size, rank = group->rank;
    int64_t width = (int64_t)sizeof *data;
    int64_t share = (count + size - 1) / size, first = least(rank * share, count);
    int64_t own = least(share, count - first);
    for (int32_t p = 0; p < size; p++) {
        int64_t from = least(p * share, count);
        m->messages[p] = (ex_mpi_message){.send = data + from,
                                          .recv = stage + p * share,
                                          .send_bytes = least(share, count - from) * width,
                                          .recv_bytes = own * width};
        m->summands[p] = p == rank ? data + first : stage + p * share;
    }
    if (ex_mpi_exchange(m, group, EX_MPI_ALL_REDUCE))
        return -1;
    ex_call_sum(data + first, m->summands, size, own);
    for (int32_t p = 0; p < size; p++) {
        int64_t from = least(p * share, count);
        m->messages[p] = (ex_mpi_message){.send = data + first,
                                          .recv = data + from,
                                          .send_bytes = own * width,
                                          .recv_bytes = least(share, count - from) * width};
    }
    return ex_mpi_exchange(m, group, EX_MPI_ALL_REDUCE);
}

void ex_mpi_all_reduce(ex_comm *comm, const ex_group *group, float *data, int64_t count)
{
    ex_mpi_comm *m = ex_mpi_of(comm);
    ex_device *d = comm->device;
    int32_t size = group->size;
    if (size == 1) {
        ex_self_ops.all_reduce(comm, group, data, count);
        return;
    }
    if (begin(comm, group, EX_MPI_ALL_REDUCE, count) || !count)
        return;
    int64_t width = (int64_t)sizeof *data, piece = ex_mpi_piece(m, group) / width;
    int64_t chunk = least(piece * size, count), parts = chunk + size + GATHERED / width;
    float *stage = ex_mpi_stage(m, group, EX_MPI_ALL_REDUCE, (parts + (d->host_memory ? 0 : chunk)) * width);
    if (!stage)
        return;
    for (int64_t at = 0; at < count; at += chunk) {
        int64_t n = least(chunk, count - at);
        float *host = d->host_memory ? data + at : stage + parts;
        if (!d->host_memory)
            d->ops->copy_out(d, host, data + at, n * width);
        int few = n <= piece && n * size * width <= GATHERED;
        if (few ? sum_few(m, group, host, n, stage) : sum_many(m, group, host, n, stage))
            return;
        if (!d->host_memory)
            d->ops->copy_in(d, data + at, host, n * width);
    }
}

void ex_mpi_gather_host(ex_comm *comm, const void *send, void *recv, int64_t bytes)
{
    ex_mpi_comm *m = ex_mpi_of(comm);
    const ex_group *world = &comm->world;
    if (comm->fault.failed)
        return;
    if (bytes > 0)
        memmove((char *)recv + comm->rank * bytes, send, (size_t)bytes);
    int64_t piece = ex_mpi_piece(m, world), at = 0;
    do { /* once even without bytes: a barrier */
        int64_t n = least(piece, bytes - at);
        if (comm->ranks > 1 &&
            gather(m, world, EX_MPI_HOST, (const char *)send + at, (char *)recv + at, bytes, n))
            return;
        at += n;
    } while (at < bytes);
}

#endif
