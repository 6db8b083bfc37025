/* Communication over NCCL. Communicators are nonblocking, and every call waits for its end by looking at the
 * stream and at the communicator, so that no rank waits longer than the limit: past it the communicators are
 * aborted, which lets the stream run dry. Small host data and the word that a rank goes down take the way by
 * which the ranks found one another. */
#include <cuda_runtime_api.h>
#include <nccl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "comm/call.h"
#include "comm/rendezvous.h"
#include "comm/self.h"

#if NCCL_VERSION_CODE < NCCL_VERSION(2, 18, 0)
#error "NCCL is too old: groups of ranks are made by ncclCommSplit, which 2.18 has"
#endif

/* How long to look without a pause, the pause afterwards, and how often to look for ranks that went. */
#define EAGER_S  1e-3
#define PAUSE_NS 20000
#define LOOK_S   1e-2

typedef struct nccl_comm {
    ex_comm comm;
    ex_comm *carrier; /* MPI where a launcher started us */
    ex_rendezvous *meeting;
    ncclComm_t world;   /* NULL for one rank */
    ncclComm_t *groups; /* [group_count] of the groups that were made */
    int32_t group_count;
    ncclComm_t splitting; /* where NCCL puts the next, in its own time */
    cudaUUID_t gpu;
} nccl_comm;

static nccl_comm *of(ex_comm *comm)
{
    return (nccl_comm *)comm;
}

/* After this the stream runs dry and no NCCL call is made. */
static void abort_all(nccl_comm *n)
{
    for (int32_t i = 0; i < n->group_count; i++)
        ncclCommAbort(n->groups[i]);
    n->group_count = 0;
    if (n->splitting)
        ncclCommAbort(n->splitting);
    n->splitting = NULL;
    if (n->world)
        ncclCommAbort(n->world);
    n->world = NULL;
}

static int fail_nccl(nccl_comm *n, const ex_group *group, const char *what, ncclResult_t result,
                     ncclComm_t comm)
{
    const char *more = comm ? ncclGetLastError(comm) : NULL;
    ex_call_fail(&n->comm, group, what, "NCCL: %s%s%s", ncclGetErrorString(result), more && *more ? ": " : "",
                 more ? more : "");
    abort_all(n);
    return -1;
}

/* One wait: when it began, when it looked for ranks that went. */
typedef struct patience {
    nccl_comm *n;
    const ex_group *group;
    const char *what;
    double since, looked;
} patience;

static patience begin_wait(nccl_comm *n, const ex_group *group, const char *what)
{
    double now = ex_call_now();
    return (patience){n, group, what, now, now};
}

/* Between two looks at what is waited for: 0 to go on, -1 when there is no sense in it. */
static int wait_more(patience *p)
{
    nccl_comm *n = p->n;
    double now = ex_call_now();
    if (now - p->looked >= LOOK_S) {
        p->looked = now;
        if (ex_rendezvous_look(n->meeting))
            ex_call_fail(&n->comm, p->group, p->what, "%s", n->meeting->fault.text);
    }
    if (!n->comm.fault.failed && now - p->since >= n->comm.limit_s)
        ex_call_late(&n->comm, p->group, p->what, NULL);
    if (n->comm.fault.failed) {
        abort_all(n);
        return -1;
    }
    if (now - p->since > EAGER_S)
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    else
        sched_yield();
    return 0;
}

/* Waits until `comm` is ready after a call on it that returned `result`. */
static int settle(nccl_comm *n, const ex_group *group, const char *what, ncclResult_t result, ncclComm_t comm)
{
    patience p = begin_wait(n, group, what);
    while (result == ncclInProgress && comm) {
        ncclResult_t state = ncclSuccess;
        result = ncclCommGetAsyncError(comm, &state);
        if (result == ncclSuccess)
            result = state;
        if (result == ncclInProgress && wait_more(&p))
            return -1;
    }
    return result == ncclSuccess ? 0 : fail_nccl(n, group, what, result, comm);
}

/* Like cudaStreamQuery, whose "not ready" stays behind as CUDA's last error: who looks for it after a launch
 * would take it for the launch's. */
static cudaError_t look_at_stream(cudaStream_t stream)
{
    cudaError_t error = cudaStreamQuery(stream);
    if (error == cudaErrorNotReady)
        cudaGetLastError();
    return error;
}

/* Waits for the end of what was given to the device's stream. */
static int wait_stream(nccl_comm *n, const ex_group *group, const char *what, ncclComm_t comm)
{
    patience p = begin_wait(n, group, what);
    cudaStream_t stream = n->comm.device->stream;
    cudaError_t error;
    while ((error = look_at_stream(stream)) == cudaErrorNotReady) {
        ncclResult_t state = ncclSuccess, result = ncclCommGetAsyncError(comm, &state);
        if (result == ncclSuccess)
            result = state;
        if (result != ncclSuccess && result != ncclInProgress)
            return fail_nccl(n, group, what, result, comm);
        if (wait_more(&p))
            return -1;
    }
    if (error == cudaSuccess)
        return 0;
    ex_call_fail(&n->comm, group, what, "CUDA: %s", cudaGetErrorString(error));
    abort_all(n);
    return -1;
}

/* The group's communicator when the call may begin; NULL when not, or when it is done already. */
static ncclComm_t begin_call(ex_comm *comm, const ex_group *group, const char *what, int64_t count)
{
    if (ex_call_begin(comm, group, what, count) || count == 0)
        return NULL;
    if (comm->device->host_memory || !comm->device->stream) {
        ex_call_fail(comm, group, what, "NCCL moves memory of GPUs; the device is %s", comm->device->name);
        return NULL;
    }
    if (!group->backend)
        ex_call_fail(comm, group, what, "the group has no communicator");
    return group->backend;
}

static void end_call(ex_comm *comm, const ex_group *group, const char *what, ncclResult_t result)
{
    nccl_comm *n = of(comm);
    if (!settle(n, group, what, result, group->backend))
        wait_stream(n, group, what, group->backend);
}

/* Sends and receives in one NCCL group: every version of NCCL runs them at once. */
static void nccl_all_to_all(ex_comm *comm, const ex_group *group, const void *send, void *recv, int64_t bytes)
{
    if (group->size == 1) {
        ex_self_ops.all_to_all(comm, group, send, recv, bytes);
        return;
    }
    ncclComm_t c = begin_call(comm, group, "all-to-all", bytes);
    if (!c)
        return;
    cudaStream_t stream = comm->device->stream;
    ncclResult_t result = ncclGroupStart();
    for (int32_t r = 0; r < group->size && result == ncclSuccess; r++) {
        result = ncclSend((const char *)send + r * bytes, (size_t)bytes, ncclInt8, r, c, stream);
        if (result == ncclSuccess)
            result = ncclRecv((char *)recv + r * bytes, (size_t)bytes, ncclInt8, r, c, stream);
    }
    ncclResult_t end = ncclGroupEnd();
    end_call(comm, group, "all-to-all", result == ncclSuccess ? end : result);
}

static void nccl_all_reduce(ex_comm *comm, const ex_group *group, float *data, int64_t count)
{
    if (group->size == 1) {
        ex_self_ops.all_reduce(comm, group, data, count);
        return;
    }
    ncclComm_t c = begin_call(comm, group, "all-reduce", count);
    if (c)
        end_call(comm, group, "all-reduce",
                 ncclAllReduce(data, data, (size_t)count, ncclFloat, ncclSum, c, comm->device->stream));
}

static void nccl_all_gather(ex_comm *comm, const ex_group *group, const void *send, void *recv, int64_t bytes)
{
    if (group->size == 1) {
        ex_self_ops.all_gather(comm, group, send, recv, bytes);
        return;
    }
    ncclComm_t c = begin_call(comm, group, "all-gather", bytes);
    if (c)
        end_call(comm, group, "all-gather",
                 ncclAllGather(send, recv, (size_t)bytes, ncclInt8, c, comm->device->stream));
}

static void nccl_reduce_scatter(ex_comm *comm, const ex_group *group, const float *send, float *recv,
                                int64_t count)
{
    if (group->size == 1) {
        ex_self_ops.reduce_scatter(comm, group, send, recv, count);
        return;
    }
    ncclComm_t c = begin_call(comm, group, "reduce-scatter", count);
    if (c)
        end_call(comm, group, "reduce-scatter",
                 ncclReduceScatter(send, recv, (size_t)count, ncclFloat, ncclSum, c, comm->device->stream));
}

static void nccl_gather_host(ex_comm *comm, const void *send, void *recv, int64_t bytes)
{
    if (!comm->fault.failed && ex_rendezvous_gather(of(comm)->meeting, send, recv, bytes)) {
        ex_call_fail(comm, &comm->world, "gathering", "%s", of(comm)->meeting->fault.text);
        abort_all(of(comm));
    }
}

static void nccl_abandon(ex_comm *comm, const char *text)
{
    ex_fail(&comm->fault, "%s", text);
    abort_all(of(comm));
    ex_rendezvous_abandon(of(comm)->meeting, text);
}

static void nccl_make_group(ex_comm *comm, ex_group *group)
{
    nccl_comm *n = of(comm);
    int32_t size = group->size;
    ex_self_ops.make_group(comm, group);
    int in = group->rank >= 0;
    if (comm->fault.failed || size == 1 || size > comm->ranks)
        return;
    if (size == comm->ranks) {
        group->backend = n->world;
        return;
    }
    ncclComm_t *groups = realloc(n->groups, (size_t)(n->group_count + 1) * sizeof *groups);
    if (!groups) {
        ex_fail(&comm->fault, "no memory for the communicators of groups of %d ranks", (int)size);
        return;
    }
    n->groups = groups;
    ncclResult_t result = ncclCommSplit(n->world, in ? group->first / size : NCCL_SPLIT_NOCOLOR, comm->rank,
                                        &n->splitting, NULL);
    if (settle(n, &comm->world, "split into groups", result, n->world) || !in)
        return;
    patience p = begin_wait(n, &comm->world, "split into groups");
    while (!__atomic_load_n(&n->splitting, __ATOMIC_ACQUIRE))
        if (wait_more(&p))
            return;
    if (settle(n, group, "opening", ncclInProgress, n->splitting))
        return;
    group->backend = n->groups[n->group_count++] = n->splitting;
    n->splitting = NULL;
}

/* Frees a communicator on which all is done. */
static int finish(nccl_comm *n, const ex_group *group, ncclComm_t comm)
{
    if (settle(n, group, "closing", ncclCommFinalize(comm), comm))
        return -1;
    ncclCommDestroy(comm);
    return 0;
}

static void nccl_free_group(ex_comm *comm, ex_group *group)
{
    nccl_comm *n = of(comm);
    for (int32_t i = 0; i < n->group_count && !comm->fault.failed; i++)
        if (n->groups[i] == group->backend && !finish(n, group, n->groups[i])) {
            n->groups[i] = n->groups[--n->group_count];
            break;
        }
    group->backend = NULL;
}

/* Ranks leave together: who closed its connections early would look as if it had gone. */
static void nccl_free(ex_comm *comm)
{
    nccl_comm *n = of(comm);
    char nothing = 0;
    while (n->group_count && !comm->fault.failed) {
        ex_group group = comm->world;
        group.backend = n->groups[0];
        nccl_free_group(comm, &group);
    }
    if (n->world && !comm->fault.failed && !finish(n, &comm->world, n->world))
        n->world = NULL;
    abort_all(n);
    if (!comm->fault.failed && ex_rendezvous_gather(n->meeting, &nothing, &nothing, 0))
        ex_fail(&comm->fault, "%s", n->meeting->fault.text);
    ex_rendezvous_free(n->meeting);
    /* MPI's own end would wait for ranks that do not come. */
    if (n->carrier && comm->fault.failed)
        ex_fail(&n->carrier->fault, "%s", comm->fault.text);
    ex_comm_free(n->carrier);
    free(n->groups);
    free(n);
}

static const ex_comm_ops nccl_ops = {
    .free = nccl_free,
    .make_group = nccl_make_group,
    .free_group = nccl_free_group,
    .all_to_all = nccl_all_to_all,
    .all_reduce = nccl_all_reduce,
    .all_gather = nccl_all_gather,
    .reduce_scatter = nccl_reduce_scatter,
    .gather_host = nccl_gather_host,
    .abandon = nccl_abandon,
};

static int meet(nccl_comm *n, const char *file, double limit_s, ex_fault *fault)
{
    ex_meeting meeting;
    if (!file && ex_mpi_launched()) {
        n->carrier = ex_mpi_open(limit_s, fault);
        n->meeting = n->carrier ? ex_rendezvous_over(n->carrier, fault) : NULL;
    } else if (!ex_meeting_from_environment(file, limit_s, &meeting, fault)) {
        n->meeting = ex_rendezvous_open(&meeting, fault);
    }
    if (!n->meeting)
        return -1;
    n->comm.rank = n->meeting->rank;
    n->comm.ranks = n->meeting->ranks;
    n->comm.node_rank = n->meeting->node_rank;
    n->comm.node_ranks = n->meeting->node_ranks;
    n->comm.world = (ex_group){.size = n->comm.ranks, .rank = n->comm.rank};
    return 0;
}

/* The GPU of this rank: that of its place on the node, as the device's. */
static int choose_gpu(nccl_comm *n)
{
    int gpus = 0;
    struct cudaDeviceProp properties = {0};
    cudaError_t error = cudaGetDeviceCount(&gpus);
    if (error == cudaSuccess && gpus > 0)
        error = cudaSetDevice(n->comm.node_rank % gpus);
    if (error == cudaSuccess && gpus > 0)
        error = cudaGetDeviceProperties(&properties, n->comm.node_rank % gpus);
    n->gpu = properties.uuid;
    if (error != cudaSuccess)
        return ex_fail(&n->comm.fault, "rank %d of %d: CUDA: %s", (int)n->comm.rank, (int)n->comm.ranks,
                       cudaGetErrorString(error));
    if (gpus < 1)
        return ex_fail(&n->comm.fault, "rank %d of %d: NCCL needs a GPU, and there is none",
                       (int)n->comm.rank, (int)n->comm.ranks);
    return 0;
}

/* NCCL takes one rank a GPU: said here, where it can be said what to do. */
static int check_gpus(nccl_comm *n)
{
    int32_t ranks = n->comm.ranks;
    cudaUUID_t *all = calloc((size_t)ranks, sizeof *all);
    int failed = all ? 0 : ex_fail(&n->comm.fault, "no memory for the GPUs of %d ranks", (int)ranks);
    if (!failed && ex_rendezvous_gather(n->meeting, &n->gpu, all, (int64_t)sizeof n->gpu))
        failed = ex_fail(&n->comm.fault, "%s", n->meeting->fault.text);
    for (int32_t r = 0; !failed && r < ranks; r++)
        if (r != n->comm.rank && memcmp(&all[r], &n->gpu, sizeof n->gpu) == 0)
            failed = ex_fail(&n->comm.fault,
                             "rank %d of %d: rank %d has the same GPU, and NCCL takes one rank a GPU; start "
                             "fewer ranks, or use --comm mpi, or --virtual %d in one process",
                             (int)n->comm.rank, (int)ranks, (int)r, (int)ranks);
    free(all);
    return failed;
}

/* What rank 0 tells all before NCCL begins. */
typedef struct beginning {
    int failed; /* rank 0 has no id */
    ncclUniqueId id;
} beginning;

static int open_world(nccl_comm *n)
{
    beginning b = {0};
    if (choose_gpu(n) || check_gpus(n))
        return -1;
    ncclResult_t result = n->comm.rank || n->comm.ranks == 1 ? ncclSuccess : ncclGetUniqueId(&b.id);
    b.failed = result != ncclSuccess;
    if (ex_rendezvous_broadcast(n->meeting, &b, (int64_t)sizeof b))
        return ex_fail(&n->comm.fault, "%s", n->meeting->fault.text);
    if (b.failed)
        return ex_fail(&n->comm.fault, "rank %d of %d: rank 0 got no id of NCCL%s%s", (int)n->comm.rank,
                       (int)n->comm.ranks, n->comm.rank ? "" : ": ",
                       n->comm.rank ? "" : ncclGetErrorString(result));
    if (n->comm.ranks == 1)
        return 0;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    result = ncclCommInitRankConfig(&n->world, n->comm.ranks, b.id, n->comm.rank, &config);
    if (settle(n, &n->comm.world, "opening", result, n->world))
        return -1;
    n->comm.world.backend = n->world;
    return 0;
}

ex_comm *ex_nccl_open(const char *rendezvous, double limit_s, ex_fault *fault)
{
    nccl_comm *n = calloc(1, sizeof *n);
    if (!n) {
        ex_fail(fault, "no memory for a communicator");
        return NULL;
    }
    n->comm.ops = &nccl_ops;
    n->comm.limit_s = limit_s;
    n->comm.name = "nccl";
    if (meet(n, rendezvous, limit_s, fault)) {
        ex_comm_free(n->carrier);
        free(n);
        return NULL;
    }
    if (open_world(n)) {
        ex_fail(fault, "%s", n->comm.fault.text);
        if (!n->carrier) /* MPI's launcher ends the others when this process does */
            ex_rendezvous_abandon(n->meeting, fault->text);
        nccl_free(&n->comm);
        return NULL;
    }
    return &n->comm;
}
