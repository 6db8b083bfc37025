/* Cases that every communicator passes: each rank, a thread or a process, runs them all in the same order.
 * Nothing here ends a rank: what differs is kept in `said`, and whoever started the ranks looks there. */
#ifndef TESTS_EXECUTOR_COMM_CASES_H
#define TESTS_EXECUTOR_COMM_CASES_H

#include <stdarg.h>
#include <stdio.h>

#include "comm/comm.h"
#include "plain_device.h"

typedef struct comm_case {
    ex_comm *comm;
    ex_device *device;
    int64_t checks;
    int64_t bad;
    char said[600]; /* of the first that is bad */
} comm_case;

static inline void case_expect(comm_case *c, int so, const char *format, ...)
{
    c->checks++;
    if (so || c->bad++)
        return;
    va_list arguments;
    va_start(arguments, format);
    int used = snprintf(c->said, sizeof c->said, "rank %d of %d: ", (int)c->comm->rank, (int)c->comm->ranks);
    used += vsnprintf(c->said + used, sizeof c->said - (size_t)used, format, arguments);
    va_end(arguments);
    if (c->comm->fault.failed && used < (int)sizeof c->said)
        snprintf(c->said + used, sizeof c->said - (size_t)used, " (%s)", c->comm->fault.text);
}

static inline uint32_t case_hash(uint64_t x)
{
    x = (x ^ (x >> 31)) * 0x9e3779b97f4a7c15ull;
    x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9ull;
    return (uint32_t)(x >> 32);
}

/* What rank `from` has for rank `to` at place i in the call `turn`. */
static inline unsigned char case_byte(int turn, int32_t from, int32_t to, int64_t i)
{
    return (unsigned char)case_hash((((uint64_t)turn * 64 + (uint64_t)from) * 64 + (uint64_t)to) * (1 << 24) +
                                    (uint64_t)i);
}

/* Values of very different size and either sign: sums of them depend on the arithmetic; and some so large
 * that they take the others with them where they cancel, so that sums depend on the order too. */
static inline float case_float(int turn, int32_t from, int64_t i)
{
    uint32_t h = case_hash(((uint64_t)turn * 64 + (uint64_t)from) * (1 << 24) + (uint64_t)i);
    float value = (float)(int32_t)(h & 0xffff) - 32768.f;
    if (i % 8 == 1 && h >> 31)
        return value < 0 ? -0x1p70f : 0x1p70f;
    return h >> 30 & 1 ? value * 1e-3f : value * 16.f;
}

static inline float case_sum(int turn, const ex_group *group, int64_t i)
{
    double sum = 0;
    for (int32_t r = 0; r < group->size; r++)
        sum += (double)case_float(turn, group->first + r, i);
    return (float)sum;
}

/* A device array from a host one, and back. */
static inline void *case_put(comm_case *c, const void *host, int64_t bytes)
{
    void *data = c->device->ops->allocate(c->device, bytes);
    if (bytes)
        c->device->ops->copy_in(c->device, data, host, bytes);
    return data;
}

static inline void case_take(comm_case *c, void *host, void *data, int64_t bytes)
{
    if (bytes)
        c->device->ops->copy_out(c->device, host, data, bytes);
    c->device->ops->release(c->device, data);
}

static inline void case_all_to_all(comm_case *c, const ex_group *group, int turn, int64_t bytes)
{
    int64_t all = bytes * group->size, wrong = 0;
    unsigned char *host = malloc((size_t)all + 1);
    for (int32_t p = 0; p < group->size; p++)
        for (int64_t i = 0; i < bytes; i++)
            host[p * bytes + i] = case_byte(turn, c->comm->rank, group->first + p, i);
    void *send = case_put(c, host, all), *recv = case_put(c, host, all);
    c->comm->ops->all_to_all(c->comm, group, send, recv, bytes);
    case_take(c, host, recv, all);
    for (int32_t p = 0; p < group->size; p++)
        for (int64_t i = 0; i < bytes; i++)
            wrong += host[p * bytes + i] != case_byte(turn, group->first + p, c->comm->rank, i);
    case_expect(c, !wrong, "all-to-all of %lld bytes over %d: %lld wrong", (long long)bytes, (int)group->size,
                (long long)wrong);
    case_take(c, host, send, all);
    wrong = 0;
    for (int32_t p = 0; p < group->size; p++)
        for (int64_t i = 0; i < bytes; i++)
            wrong += host[p * bytes + i] != case_byte(turn, c->comm->rank, group->first + p, i);
    case_expect(c, !wrong, "all-to-all changed what was sent");
    free(host);
}

static inline void case_all_gather(comm_case *c, const ex_group *group, int turn, int64_t bytes, int in_place)
{
    int64_t all = bytes * group->size, wrong = 0;
    unsigned char *host = malloc((size_t)all + 1);
    memset(host, 0x5a, (size_t)all);
    for (int64_t i = 0; i < bytes; i++)
        host[group->rank * bytes + i] = case_byte(turn, c->comm->rank, 0, i);
    char *recv = case_put(c, host, all);
    char *send = in_place ? recv + group->rank * bytes : case_put(c, host + group->rank * bytes, bytes);
    c->comm->ops->all_gather(c->comm, group, send, recv, bytes);
    if (!in_place)
        c->device->ops->release(c->device, send);
    case_take(c, host, recv, all);
    for (int32_t p = 0; p < group->size; p++)
        for (int64_t i = 0; i < bytes; i++)
            wrong += host[p * bytes + i] != case_byte(turn, group->first + p, 0, i);
    case_expect(c, !wrong, "all-gather of %lld bytes over %d: %lld wrong", (long long)bytes, (int)group->size,
                (long long)wrong);
    free(host);
}

static inline void case_all_reduce(comm_case *c, const ex_group *group, int turn, int64_t count)
{
    int64_t bytes = count * 4, wrong = 0;
    float *host = malloc((size_t)bytes + 1);
    for (int64_t i = 0; i < count; i++)
        host[i] = case_float(turn, c->comm->rank, i);
    float *data = case_put(c, host, bytes);
    c->comm->ops->all_reduce(c->comm, group, data, count);
    case_take(c, host, data, bytes);
    for (int64_t i = 0; i < count; i++)
        wrong += host[i] != case_sum(turn, group, i);
    case_expect(c, !wrong, "all-reduce of %lld over %d: %lld wrong", (long long)count, (int)group->size,
                (long long)wrong);
    free(host);
}

static inline void case_reduce_scatter(comm_case *c, const ex_group *group, int turn, int64_t count)
{
    int64_t bytes = count * 4, wrong = 0;
    float *host = malloc((size_t)(bytes * group->size) + 1);
    for (int64_t i = 0; i < count * group->size; i++)
        host[i] = case_float(turn, c->comm->rank, i);
    float *send = case_put(c, host, bytes * group->size), *recv = case_put(c, host, bytes);
    c->comm->ops->reduce_scatter(c->comm, group, send, recv, count);
    c->device->ops->release(c->device, send);
    case_take(c, host, recv, bytes);
    for (int64_t i = 0; i < count; i++)
        wrong += host[i] != case_sum(turn, group, group->rank * count + i);
    case_expect(c, !wrong, "reduce-scatter of %lld over %d: %lld wrong", (long long)count, (int)group->size,
                (long long)wrong);
    free(host);
}

static inline void case_gather_host(comm_case *c, int turn, int64_t bytes)
{
    int32_t ranks = c->comm->ranks;
    int64_t wrong = 0;
    unsigned char *send = malloc((size_t)bytes + 1), *recv = malloc((size_t)(bytes * ranks) + 1);
    for (int64_t i = 0; i < bytes; i++)
        send[i] = case_byte(turn, c->comm->rank, 1, i);
    c->comm->ops->gather_host(c->comm, send, recv, bytes);
    for (int32_t p = 0; p < ranks; p++)
        for (int64_t i = 0; i < bytes; i++)
            wrong += recv[p * bytes + i] != case_byte(turn, p, 1, i);
    case_expect(c, !wrong, "gathering %lld host bytes: %lld wrong", (long long)bytes, (long long)wrong);
    free(send);
    free(recv);
}

static inline void case_every_call(comm_case *c, const ex_group *group, int turn, int64_t size)
{
    case_all_to_all(c, group, turn, size);
    case_all_gather(c, group, turn + 1, size, turn & 1);
    case_all_reduce(c, group, turn + 2, size / 4);
    case_reduce_scatter(c, group, turn + 3, size / 4);
}

/* Groups of different sizes beside one another, as SP groups of a micro-batch: each makes as many calls as it
 * likes, and then all meet. */
static inline void case_groups_at_once(comm_case *c, int turn)
{
    ex_group groups[3] = {{.size = 1}, {.size = 2}, {.size = 4}};
    for (int g = 0; g < 3; g++) {
        c->comm->ops->make_group(c->comm, &groups[g]);
        int32_t first = c->comm->rank / groups[g].size * groups[g].size;
        int whole = first + groups[g].size <= c->comm->ranks;
        case_expect(c, groups[g].first == first && groups[g].rank == (whole ? c->comm->rank - first : -1),
                    "group of %d: rank %d from %d", (int)groups[g].size, (int)groups[g].rank,
                    (int)groups[g].first);
    }
    /* Ranks 0..3 in one group, 4 and 5 in one, the rest alone. */
    int32_t r = c->comm->rank;
    const ex_group *mine = r < 4 && groups[2].rank >= 0        ? &groups[2]
                           : r / 2 == 2 && groups[1].rank >= 0 ? &groups[1]
                                                               : &groups[0];
    int calls = mine->size == 4 ? 3 : mine->size == 2 ? 7 : 1;
    for (int i = 0; i < calls; i++)
        case_every_call(c, mine, turn + 8 * i, 1000 + 12 * i);
    case_all_reduce(c, &c->comm->world, turn + 4, 1001);
    /* The same ranks in groups of two, then of four, without all meeting between. */
    for (int g = 1; g < 3; g++)
        if (groups[g].rank >= 0)
            case_every_call(c, &groups[g], turn + 16 * g, 76);
    for (int g = 0; g < 3; g++)
        c->comm->ops->free_group(c->comm, &groups[g]);
}

/* `large`: a size beyond which the backend cuts, several times. */
static inline void comm_cases(comm_case *c, int64_t large)
{
    const int64_t sizes[] = {0, 1, 4, 7, 63, 1028, 16387, large};
    const ex_group *world = &c->comm->world;
    ex_comm_bind(c->comm, c->device);
    case_expect(c, world->size == c->comm->ranks && world->rank == c->comm->rank && !world->first,
                "the world's shape");
    for (int s = 0; s < 8; s++) {
        case_every_call(c, world, 16 * s, sizes[s]);
        case_gather_host(c, 16 * s + 8, s < 7 ? sizes[s] : 0);
    }
    case_groups_at_once(c, 1024);
    case_expect(c, !c->comm->fault.failed, "a fault");
}

#endif
