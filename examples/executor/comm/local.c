/* Virtual ranks are threads of one process. A call is: every rank shows where its data lies and comes to the
 * group's barrier; copies its blocks out of the others' memory; comes to a barrier again, after which the
 * memory is its owner's. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "comm/call.h"
#include "comm/comm.h"
#include "comm/self.h"

enum { PIECE = 16384 }; /* floats of each rank that are summed at once outside the host's memory */

typedef struct local_rank {
    const char *what; /* the call it is in, the bytes it brought and where they lie */
    int64_t bytes;
    const void *send;
    uint64_t met; /* barriers it has come to */
    int reading;  /* it may be reading the others' memory */
} local_rank;

typedef struct local_group {
    struct local_group *next;
    int32_t first;
    int32_t size;
    pthread_cond_t moved; /* the barrier opened, a rank failed or left, or the last reader finished */
    uint64_t passed;      /* barriers that have opened */
    int32_t here;         /* ranks at the present one */
    int32_t readers;
    unsigned char *missing; /* [size] scratch for a message */
    local_rank rank[];      /* [size] */
} local_group;

typedef struct local_world {
    pthread_mutex_t lock; /* of everything below and of the groups */
    int32_t ranks;
    int32_t open; /* communicators not freed yet */
    local_group *groups;
    int failed;
    int32_t failed_rank;
    char text[512];       /* of the rank that failed first */
    unsigned char gone[]; /* [ranks] its communicator is freed */
} local_world;

typedef struct local_comm {
    ex_comm comm;
    local_world *world;
} local_comm;

static local_world *world_of(ex_comm *comm)
{
    return ((local_comm *)comm)->world;
}

static void wake_all(local_world *world)
{
    for (local_group *g = world->groups; g; g = g->next)
        pthread_cond_broadcast(&g->moved);
}

/* With the lock: this rank's fault, once set, becomes the world's. */
static void tell_fault(ex_comm *comm, local_world *world)
{
    if (world->failed)
        return;
    world->failed = 1;
    world->failed_rank = comm->rank;
    memcpy(world->text, comm->fault.text, sizeof world->text);
    wake_all(world);
}

static struct timespec deadline_after(double seconds)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    if (!(seconds < 1e8))
        seconds = 1e8;
    double whole = (double)(int64_t)seconds;
    t.tv_sec += (time_t)whole;
    t.tv_nsec += (long)((seconds - whole) * 1e9);
    if (t.tv_nsec >= 1000000000) {
        t.tv_sec++;
        t.tv_nsec -= 1000000000;
    }
    return t;
}

static void stop_reading(local_group *g, local_rank *self)
{
    if (!self->reading)
        return;
    self->reading = 0;
    if (--g->readers == 0)
        pthread_cond_broadcast(&g->moved);
}

/* With the lock: ends a call that failed here or elsewhere. The caller may free its memory after it, so the
 * others' copies out of that end first; a copy that hangs is waited for as long as any answer is. */
static int leave_failed(ex_comm *comm, const ex_group *group, const char *what)
{
    local_world *world = world_of(comm);
    local_group *g = group->backend;
    if (comm->fault.failed)
        tell_fault(comm, world);
    else
        ex_call_fail(comm, group, what, "rank %d gave up: %s", (int)world->failed_rank, world->text);
    stop_reading(g, &g->rank[group->rank]);
    struct timespec deadline = deadline_after(comm->limit_s);
    while (g->readers > 0 && pthread_cond_timedwait(&g->moved, &world->lock, &deadline) != ETIMEDOUT)
        ;
    return -1;
}

/* With the lock: a rank that cannot come any more, or -1. */
static int32_t gone_before(const local_world *world, const local_group *g)
{
    for (int32_t r = 0; r < g->size; r++)
        if (g->rank[r].met <= g->passed && world->gone[g->first + r])
            return g->first + r;
    return -1;
}

static int late(ex_comm *comm, const ex_group *group, const char *what)
{
    local_group *g = group->backend;
    for (int32_t r = 0; r < g->size; r++)
        g->missing[r] = g->rank[r].met <= g->passed;
    return ex_call_late(comm, group, what, g->missing);
}

/* The barrier. With `then_read` the caller may read the others' memory after it, until it comes to the next.
 */
static int meet(ex_comm *comm, const ex_group *group, const char *what, int then_read)
{
    local_world *world = world_of(comm);
    local_group *g = group->backend;
    local_rank *self = &g->rank[group->rank];
    int status = 0;
    pthread_mutex_lock(&world->lock);
    stop_reading(g, self);
    uint64_t turn = g->passed;
    self->met++;
    if (!world->failed && ++g->here == g->size) {
        g->here = 0;
        g->passed++;
        pthread_cond_broadcast(&g->moved);
    }
    struct timespec deadline = deadline_after(comm->limit_s);
    while (!world->failed && !comm->fault.failed && g->passed == turn) {
        int32_t gone = gone_before(world, g);
        if (gone >= 0)
            ex_call_fail(comm, group, what, "rank %d has left", (int)gone);
        else if (pthread_cond_timedwait(&g->moved, &world->lock, &deadline) == ETIMEDOUT &&
                 g->passed == turn && !world->failed)
            late(comm, group, what);
    }
    if (world->failed || comm->fault.failed) {
        status = leave_failed(comm, group, what);
    } else if (then_read) {
        self->reading = 1;
        g->readers++;
    }
    pthread_mutex_unlock(&world->lock);
    return status;
}

/* A failure of this rank alone inside a call: its device, its memory, or the ranks' calls differ. */
static int give_up(ex_comm *comm, const ex_group *group, const char *what)
{
    local_world *world = world_of(comm);
    pthread_mutex_lock(&world->lock);
    leave_failed(comm, group, what);
    pthread_mutex_unlock(&world->lock);
    return -1;
}

static void local_abandon(ex_comm *comm, const char *text)
{
    local_world *world = world_of(comm);
    ex_fail(&comm->fault, "%s", text);
    pthread_mutex_lock(&world->lock);
    tell_fault(comm, world);
    pthread_mutex_unlock(&world->lock);
}

/* Brings `send` to the group and waits for the others. Later writes of `send` must not overtake the copies,
 * and the bytes must be there: so the device is waited for. */
static int enter(ex_comm *comm, const ex_group *group, const char *what, const void *send, int64_t bytes,
                 int host)
{
    local_group *g = group->backend;
    int failed = host ? comm->fault.failed : ex_call_begin(comm, group, what, bytes);
    if (!failed && !g)
        failed = ex_call_fail(comm, group, what, "the group was not made");
    if (!failed && !host && ex_device_sync(comm->device))
        failed = ex_call_fail(comm, group, what, "%s", comm->device->fault.text);
    if (failed) {
        local_abandon(comm, comm->fault.text);
        return -1;
    }
    /* Only this rank writes its row, and nobody reads it before the barrier opens. */
    local_rank *self = &g->rank[group->rank];
    self->what = what;
    self->bytes = bytes;
    self->send = send;
    if (meet(comm, group, what, 1))
        return -1;
    for (int32_t r = 0; r < g->size; r++) {
        const local_rank *other = &g->rank[r];
        if (strcmp(other->what, what) == 0 && other->bytes == bytes)
            continue;
        ex_call_fail(comm, group, what, "this rank brings %lld bytes; rank %d calls %s with %lld",
                     (long long)bytes, (int)(g->first + r), other->what, (long long)other->bytes);
        return give_up(comm, group, what);
    }
    return 0;
}

/* Ends reading: nobody returns before all have read. */
static int leave(ex_comm *comm, const ex_group *group, const char *what, ex_device *device, int then_read)
{
    if (device && ex_device_sync(device)) {
        ex_call_fail(comm, group, what, "%s", device->fault.text);
        return give_up(comm, group, what);
    }
    return meet(comm, group, what, then_read);
}

static const char *data_of(const ex_group *group, int32_t r)
{
    const local_group *g = group->backend;
    return g->rank[r].send;
}

static void local_all_to_all(ex_comm *comm, const ex_group *group, const void *send, void *recv,
                             int64_t bytes)
{
    const char *what = "all-to-all";
    if (group->size == 1)
        ex_self_ops.all_to_all(comm, group, send, recv, bytes);
    else if (!enter(comm, group, what, send, bytes, 0)) {
        ex_device *d = comm->device;
        for (int32_t i = 0; bytes && i < group->size; i++) {
            int32_t r = (group->rank + i) % group->size; /* not all from the same rank at once */
            d->ops->copy(d, (char *)recv + r * bytes, data_of(group, r) + group->rank * bytes, bytes);
        }
        leave(comm, group, what, d, 0);
    }
}

static void local_all_gather(ex_comm *comm, const ex_group *group, const void *send, void *recv,
                             int64_t bytes)
{
    const char *what = "all-gather";
    if (group->size == 1)
        ex_self_ops.all_gather(comm, group, send, recv, bytes);
    else if (!enter(comm, group, what, send, bytes, 0)) {
        ex_device *d = comm->device;
        for (int32_t i = 0; bytes && i < group->size; i++) {
            int32_t r = (group->rank + i) % group->size;
            char *to = (char *)recv + r * bytes;
            if (to != data_of(group, r))
                d->ops->copy(d, to, data_of(group, r), bytes);
        }
        leave(comm, group, what, d, 0);
    }
}

/* to [count] = the sum over ranks of what they brought, from element `first` on. -1 without memory. */
static int sum_of(ex_comm *comm, const ex_group *group, float *to, int64_t first, int64_t count)
{
    int32_t size = group->size;
    ex_device *d = comm->device;
    const float **from = malloc((size_t)size * sizeof *from);
    float *room = d->host_memory ? NULL : malloc((size_t)size * PIECE * sizeof *room);
    int status = from && (room || d->host_memory) ? 0 : -1;
    if (!status && !room) {
        for (int32_t r = 0; r < size; r++)
            from[r] = (const float *)data_of(group, r) + first;
        ex_call_sum(to, from, size, count);
    }
    for (int64_t at = 0; !status && room && at < count; at += PIECE) {
        int64_t n = count - at < PIECE ? count - at : PIECE;
        for (int32_t r = 0; r < size; r++) {
            float *piece = room + (int64_t)r * PIECE;
            d->ops->copy_out(d, piece, (const float *)data_of(group, r) + first + at,
                             n * (int64_t)sizeof *piece);
            from[r] = piece;
        }
        ex_call_sum(room, from, size, n);
        d->ops->copy_in(d, to + at, room, n * (int64_t)sizeof *room);
    }
    if (status)
        ex_fail(&comm->fault, "rank %d of %d: no memory to sum over %d ranks", (int)comm->rank,
                (int)comm->ranks, (int)size);
    free(room);
    free(from);
    return status;
}

static void local_reduce_scatter(ex_comm *comm, const ex_group *group, const float *send, float *recv,
                                 int64_t count)
{
    const char *what = "reduce-scatter";
    if (group->size == 1) {
        ex_self_ops.reduce_scatter(comm, group, send, recv, count);
        return;
    }
    if (enter(comm, group, what, send, count * (int64_t)sizeof *send, 0))
        return;
    if (sum_of(comm, group, recv, group->rank * count, count))
        give_up(comm, group, what);
    else
        leave(comm, group, what, comm->device, 0);
}

/* Each rank sums a share of the elements into its own data, which nobody else reads before the barrier in
 * the middle; then all copy the shares. */
static void local_all_reduce(ex_comm *comm, const ex_group *group, float *data, int64_t count)
{
    const char *what = "all-reduce";
    if (group->size == 1) {
        ex_self_ops.all_reduce(comm, group, data, count);
        return;
    }
    if (enter(comm, group, what, data, count * (int64_t)sizeof *data, 0))
        return;
    ex_device *d = comm->device;
    int64_t share = (count + group->size - 1) / group->size, first = group->rank * share;
    if (first < count &&
        sum_of(comm, group, data + first, first, count - first < share ? count - first : share)) {
        give_up(comm, group, what);
        return;
    }
    if (leave(comm, group, what, d, 1))
        return;
    for (int32_t r = 0; r < group->size; r++) {
        first = r * share;
        int64_t n = count - first < share ? count - first : share;
        if (r != group->rank && n > 0)
            d->ops->copy(d, data + first, (const float *)data_of(group, r) + first,
                         n * (int64_t)sizeof *data);
    }
    leave(comm, group, what, d, 0);
}

static void local_gather_host(ex_comm *comm, const void *send, void *recv, int64_t bytes)
{
    const char *what = "gathering";
    const ex_group *group = &comm->world;
    if (comm->ranks == 1) {
        ex_self_ops.gather_host(comm, send, recv, bytes);
        return;
    }
    if (enter(comm, group, what, send, bytes, 1))
        return;
    for (int32_t r = 0; bytes > 0 && r < group->size; r++)
        memcpy((char *)recv + r * bytes, data_of(group, r), (size_t)bytes);
    leave(comm, group, what, NULL, 0);
}

static local_group *group_create(int32_t first, int32_t size)
{
    local_group *g = calloc(1, sizeof *g + (size_t)size * sizeof *g->rank);
    unsigned char *missing = calloc((size_t)size, 1);
    pthread_condattr_t monotonic;
    if (!g || !missing || pthread_condattr_init(&monotonic)) {
        free(missing);
        free(g);
        return NULL;
    }
    g->first = first;
    g->size = size;
    g->missing = missing;
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&g->moved, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return g;
}

/* The group's ranks find one object, which the first to come makes. */
static void local_make_group(ex_comm *comm, ex_group *group)
{
    local_world *world = world_of(comm);
    ex_self_ops.make_group(comm, group);
    if (comm->fault.failed || group->rank < 0 || group->size == 1)
        return;
    pthread_mutex_lock(&world->lock);
    local_group *g = world->groups;
    while (g && (g->first != group->first || g->size != group->size))
        g = g->next;
    if (!g && (g = group_create(group->first, group->size))) {
        g->next = world->groups;
        world->groups = g;
    }
    if (!g) {
        ex_fail(&comm->fault, "no memory for a group of %d ranks", (int)group->size);
        tell_fault(comm, world);
    }
    group->backend = g;
    pthread_mutex_unlock(&world->lock);
}

/* It stays the world's: other ranks may still be in it. */
static void local_free_group(ex_comm *comm, ex_group *group)
{
    (void)comm;
    group->backend = NULL;
}

static void world_free(local_world *world)
{
    while (world->groups) {
        local_group *g = world->groups;
        world->groups = g->next;
        pthread_cond_destroy(&g->moved);
        free(g->missing);
        free(g);
    }
    pthread_mutex_destroy(&world->lock);
    free(world);
}

static void local_free(ex_comm *comm)
{
    local_world *world = world_of(comm);
    pthread_mutex_lock(&world->lock);
    world->gone[comm->rank] = 1;
    int last = --world->open == 0;
    wake_all(world);
    pthread_mutex_unlock(&world->lock);
    if (last)
        world_free(world);
    free(comm);
}

static const ex_comm_ops local_ops = {
    .free = local_free,
    .make_group = local_make_group,
    .free_group = local_free_group,
    .all_to_all = local_all_to_all,
    .all_reduce = local_all_reduce,
    .all_gather = local_all_gather,
    .reduce_scatter = local_reduce_scatter,
    .gather_host = local_gather_host,
    .abandon = local_abandon,
};

int ex_local_open(int32_t ranks, double limit_s, ex_comm **comms, ex_fault *fault)
{
    if (ranks < 1)
        return ex_fail(fault, "%d virtual ranks; at least 1", (int)ranks);
    for (int32_t r = 0; r < ranks; r++)
        comms[r] = NULL;
    local_world *world = calloc(1, sizeof *world + (size_t)ranks);
    local_group *all = group_create(0, ranks);
    int failed = !world || !all || pthread_mutex_init(&world->lock, NULL);
    if (failed) {
        if (all)
            pthread_cond_destroy(&all->moved);
        free(all ? all->missing : NULL);
        free(all);
        free(world);
        return ex_fail(fault, "no memory for %d virtual ranks", (int)ranks);
    }
    world->ranks = ranks;
    world->groups = all;
    for (int32_t r = 0; r < ranks; r++) {
        local_comm *c = calloc(1, sizeof *c);
        if (!c) {
            while (r-- > 0) {
                free(comms[r]);
                comms[r] = NULL;
            }
            world_free(world);
            return ex_fail(fault, "no memory for %d virtual ranks", (int)ranks);
        }
        c->world = world;
        c->comm = (ex_comm){.ops = &local_ops,
                            .rank = r,
                            .ranks = ranks,
                            .node_rank = r,
                            .node_ranks = ranks,
                            .limit_s = limit_s,
                            .name = "local"};
        c->comm.world = (ex_group){.first = 0, .size = ranks, .rank = r, .backend = all};
        comms[r] = &c->comm;
    }
    world->open = ranks;
    return 0;
}
