/* comm/nccl against an NCCL on paper: processes that share a file of memory instead of GPUs, operations that
 * end some looks at the stream later, communicators that are ready some looks after they were asked for. What
 * a GPU does with it is not tested here. */
#include "test.h"

#include <nccl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "comm_cases.h"

/* The file itself: it is built with NCCL alone. */
#include "comm/nccl/nccl.c"

enum { RANKS = 8, COMMS = 64, ROOM = 4 << 20, LOOKS = 3 };

/* What all processes see. */
typedef struct shared {
    atomic_int posted[COMMS][RANKS]; /* operations whose data lie there */
    atomic_int taken[COMMS][RANKS];  /* operations that this rank has done with */
    atomic_int gpu[RANKS];
    atomic_int aborted[RANKS];
    atomic_int open[RANKS]; /* communicators not destroyed */
    struct {
        int ok;
        int64_t checks;
        char said[700];
    } rank[RANKS];
    char data[RANKS][ROOM]; /* what each rank sends, one operation at a time */
} shared;

static shared *all;
static pid_t process[RANKS];
static int self; /* this process */

/* What goes wrong, set before the ranks begin: for rank `fault_rank` alone. */
static int fault_rank, no_gpu, one_gpu, no_id, state_after;
static ncclResult_t bad_state;
static cudaError_t bad_stream;
static cudaError_t last_error; /* as CUDA keeps it */

struct ncclComm {
    int id, first, size, rank;
    int looks; /* until it is ready */
    int turn;  /* operations so far */
    int splits;
    int closing;
    ncclComm_t *made; /* where a split's result goes once it is ready */
    struct ncclComm *child;
};

typedef enum { ALL_TO_ALL, ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER } kind;

/* The one operation on the stream. */
static struct {
    int on, posted, sends, receives, group;
    kind kind;
    ncclComm_t comm;
    const char *send;
    char *recv;
    size_t bytes; /* of a block */
    int looks;
} op;
static struct {
    int id, first, size, turn;
} before; /* this rank's operation before, whose data others may still read */

static int faulty(void)
{
    return self == fault_rank;
}

static void *real(const void *pointer)
{
    return (void *)((uintptr_t)pointer - PLAIN_AWAY);
}

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = no_gpu && faulty() ? 0 : RANKS;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    all->gpu[self] = device;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device)
{
    memset(properties->uuid.bytes, one_gpu ? 1 : device, sizeof properties->uuid.bytes);
    return cudaSuccess;
}

const char *cudaGetErrorString(cudaError_t error)
{
    return error == cudaSuccess ? "no error" : "an unspecified launch failure";
}

const char *ncclGetErrorString(ncclResult_t result)
{
    return result == ncclRemoteError ? "remote process exited" : "unhandled system error";
}

const char *ncclGetLastError(ncclComm_t comm)
{
    return comm->id ? "of a group" : "of the world";
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    memset(id->internal, 0x6b, sizeof id->internal);
    return no_id ? ncclSystemError : ncclSuccess;
}

static ncclComm_t comm_new(int id, int first, int size, int rank)
{
    ncclComm_t comm = calloc(1, sizeof *comm);
    *comm = (struct ncclComm){.id = id, .first = first, .size = size, .rank = rank, .looks = LOOKS};
    all->open[self]++;
    return comm;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t *config)
{
    for (size_t i = 0; i < sizeof id.internal; i++)
        if (id.internal[i] != 0x6b)
            return ncclInvalidUsage;
    if (config->blocking || rank != self || all->gpu[self] != rank)
        return ncclInvalidUsage;
    *comm = comm_new(0, 0, ranks, rank);
    return ncclInProgress;
}

/* Numbers of communicators are the same on all ranks: by the number of the split and the color. */
ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *made, ncclConfig_t *config)
{
    int split = comm->splits++, size = 0;
    if (config || key != comm->rank || comm->looks)
        return ncclInvalidUsage;
    comm->looks = LOOKS;
    comm->made = NULL;
    if (color == NCCL_SPLIT_NOCOLOR)
        return ncclInProgress;
    size = split % 2 ? 4 : 2; /* as the cases make them */
    if (comm->rank / size != color)
        return ncclInvalidUsage;
    comm->child = comm_new(1 + split * 4 + color, color * size, size, comm->rank - color * size);
    comm->made = made;
    return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *state)
{
    *state = ncclSuccess;
    if (bad_state && faulty() && comm->turn > state_after)
        *state = bad_state;
    else if (comm->looks) {
        *state = ncclInProgress;
        comm->looks--;
    } else if (comm->made) {
        *comm->made = comm->child;
        comm->made = NULL;
    }
    return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
    comm->looks = LOOKS;
    comm->closing = 1;
    return ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    if (!comm->closing || comm->looks)
        abort();
    all->open[self]--;
    free(comm);
    return ncclSuccess;
}

/* What is on the stream of an aborted communicator ends without an effect. */
ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    if (op.comm == comm)
        op.on = 0;
    all->aborted[self]++;
    all->open[self]--;
    free(comm);
    return ncclSuccess;
}

static ncclResult_t give(kind what, const void *send, void *recv, size_t bytes, ncclComm_t comm)
{
    if (comm->looks || comm->closing || op.on || bytes * (size_t)comm->size > ROOM)
        return ncclInvalidUsage;
    op.on = 1;
    op.posted = 0;
    op.kind = what;
    op.comm = comm;
    op.send = real(send);
    op.recv = real(recv);
    op.bytes = bytes;
    op.looks = LOOKS;
    comm->turn++;
    return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void *send, void *recv, size_t count, ncclDataType_t type, ncclRedOp_t sum,
                           ncclComm_t comm, cudaStream_t stream)
{
    (void)stream, (void)sum;
    return type == ncclFloat ? give(ALL_REDUCE, send, recv, count * 4, comm) : ncclInvalidUsage;
}

ncclResult_t ncclAllGather(const void *send, void *recv, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream)
{
    (void)stream;
    return type == ncclInt8 ? give(ALL_GATHER, send, recv, count, comm) : ncclInvalidUsage;
}

ncclResult_t ncclReduceScatter(const void *send, void *recv, size_t count, ncclDataType_t type,
                               ncclRedOp_t sum, ncclComm_t comm, cudaStream_t stream)
{
    (void)stream, (void)sum;
    return type == ncclFloat ? give(REDUCE_SCATTER, send, recv, count * 4, comm) : ncclInvalidUsage;
}

ncclResult_t ncclGroupStart(void)
{
    op.group = 1;
    op.sends = op.receives = 0;
    return ncclSuccess;
}

ncclResult_t ncclSend(const void *send, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream)
{
    (void)stream;
    if (!op.group || type != ncclInt8 || peer != op.sends++)
        return ncclInvalidUsage;
    if (peer == 0) {
        op.comm = comm;
        op.send = send;
        op.bytes = count;
    }
    return (const char *)send == op.send + (size_t)peer * count && count == op.bytes ? ncclSuccess
                                                                                     : ncclInvalidUsage;
}

ncclResult_t ncclRecv(void *recv, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream)
{
    (void)stream, (void)comm;
    if (!op.group || type != ncclInt8 || peer != op.receives++)
        return ncclInvalidUsage;
    if (peer == 0)
        op.recv = recv;
    return (char *)recv == op.recv + (size_t)peer * count && count == op.bytes ? ncclSuccess
                                                                               : ncclInvalidUsage;
}

ncclResult_t ncclGroupEnd(void)
{
    op.group = 0;
    if (op.sends != op.comm->size || op.receives != op.comm->size)
        return ncclInvalidUsage;
    return give(ALL_TO_ALL, op.send, op.recv, op.bytes, op.comm);
}

static int all_have(atomic_int counts[COMMS][RANKS], int id, int first, int size, int turn)
{
    for (int r = 0; r < size; r++)
        if (counts[id][first + r] < turn)
            return 0;
    return 1;
}

/* In rank order, in fp64, rounded once. */
static void sum_block(float *to, size_t from, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        double sum = 0;
        for (int r = 0; r < op.comm->size; r++)
            sum += (double)((float *)(void *)all->data[op.comm->first + r])[from + i];
        to[i] = (float)sum;
    }
}

static void take(void)
{
    size_t place = (size_t)op.comm->rank, floats = op.bytes / 4;
    for (int r = 0; r < op.comm->size; r++) {
        const char *from = all->data[op.comm->first + r];
        if (op.kind == ALL_TO_ALL)
            memcpy(op.recv + (size_t)r * op.bytes, from + place * op.bytes, op.bytes);
        else if (op.kind == ALL_GATHER)
            memcpy(op.recv + (size_t)r * op.bytes, from, op.bytes);
    }
    if (op.kind == ALL_REDUCE)
        sum_block((float *)(void *)op.recv, 0, floats);
    else if (op.kind == REDUCE_SCATTER)
        sum_block((float *)(void *)op.recv, place * floats, floats);
}

static cudaError_t keep(cudaError_t error)
{
    return last_error = error;
}

/* Every look brings the operation on by one part. */
cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    if (stream != (void *)&op)
        return cudaErrorUnknown;
    if (bad_stream && faulty())
        return keep(bad_stream);
    if (!op.on)
        return cudaSuccess;
    ncclComm_t c = op.comm;
    if (!op.posted) {
        if (!all_have(all->taken, before.id, before.first, before.size, before.turn))
            return keep(cudaErrorNotReady);
        size_t blocks = op.kind == ALL_TO_ALL || op.kind == REDUCE_SCATTER ? (size_t)c->size : 1;
        memcpy(all->data[self], op.send, op.bytes * blocks);
        all->posted[c->id][self] = c->turn;
        op.posted = 1;
    }
    if (!all_have(all->posted, c->id, c->first, c->size, c->turn) || op.looks-- > 0)
        return keep(cudaErrorNotReady);
    take();
    all->taken[c->id][self] = c->turn;
    before.id = c->id;
    before.first = c->first;
    before.size = c->size;
    before.turn = c->turn;
    op.on = 0;
    return cudaSuccess;
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t last = last_error;
    last_error = cudaSuccess;
    return last;
}

static void begin(void)
{
    FILE *file = tmpfile();
    ck_assert(file && !ftruncate(fileno(file), sizeof *all));
    all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
    ck_assert(all != MAP_FAILED);
    fclose(file);
    fault_rank = no_gpu = one_gpu = no_id = state_after = 0;
    bad_state = ncclSuccess;
    bad_stream = cudaSuccess;
}

typedef void (*body)(comm_case *c);

static void run_rank(int rank, int ranks, const char *path, double limit_s, body then)
{
    char text[16];
    ex_fault fault = {0};
    self = rank;
    snprintf(text, sizeof text, "%d", rank);
    setenv("RANK", text, 1);
    snprintf(text, sizeof text, "%d", ranks);
    setenv("WORLD_SIZE", text, 1);
    ex_comm *comm = ex_nccl_open(path, 60, &fault);
    all->rank[rank].ok = comm != NULL;
    if (comm) {
        ex_device device = plain_device(0);
        comm_case c = {.comm = comm, .device = &device};
        device.stream = &op;
        comm->limit_s = limit_s;
        ex_comm_bind(comm, &device);
        then(&c);
        fault = comm->fault;
        all->rank[rank].ok = !c.bad && !fault.failed;
        all->rank[rank].checks = c.checks;
        if (c.bad)
            memcpy(fault.text, c.said, sizeof fault.text);
        if (fault.failed)
            comm->ops->abandon(comm, fault.text);
        ex_comm_free(comm);
    }
    memcpy(all->rank[rank].said, fault.text, sizeof fault.text);
    _exit(0);
}

/* All ranks, processes that meet by a file. */
static void run(int ranks, double limit_s, body then)
{
    char path[] = "/tmp/hbp-nccl-XXXXXX";
    close(mkstemp(path));
    memset(all->posted, 0, offsetof(shared, data));
    unsetenv("OMPI_COMM_WORLD_SIZE"), unsetenv("PMIX_RANK"), unsetenv("PMI_RANK");
    for (int r = 0; r < ranks; r++) {
        process[r] = fork();
        ck_assert_int_ge(process[r], 0);
        if (!process[r])
            run_rank(r, ranks, path, limit_s, then);
    }
    for (int r = 0; r < ranks; r++) {
        int status = 0;
        ck_assert_int_eq(waitpid(process[r], &status, 0), process[r]);
        ck_assert_msg(status == 0 || WTERMSIG(status) == SIGKILL, "rank %d: status %d", r, status);
    }
    unlink(path);
}

#define SAYS(r, words)                                                                                       \
    ck_assert_msg(strstr(all->rank[r].said, words) && !all->rank[r].ok, "rank %d: '%s' lacks '%s'",          \
                  (int)(r), all->rank[r].said, words)

static void every_case(comm_case *c)
{
    comm_cases(c, 30000);
    if (last_error)
        ex_fail(&c->comm->fault, "an error is left behind for whoever looks after his launch");
}

START_TEST(every_call_on_any_number_of_ranks)
{
    begin();
    for (int ranks = 1; ranks <= RANKS; ranks += ranks < 4 ? 1 : 2) {
        run(ranks, 60, every_case);
        for (int r = 0; r < ranks; r++) {
            ck_assert_msg(all->rank[r].ok, "%d of %d: %s", r, ranks, all->rank[r].said);
            ck_assert_int_gt(all->rank[r].checks, 50);
            ck_assert_int_eq(all->open[r], 0); /* all destroyed, and none by force */
            ck_assert_int_eq(all->aborted[r], 0);
            ck_assert_int_eq(all->gpu[r], r);
        }
    }
}
END_TEST

static void call_once(comm_case *c)
{
    void *data = c->device->ops->allocate(c->device, 64);
    snprintf(c->comm->where, sizeof c->comm->where, "step 4, micro-batch 1");
    c->comm->ops->all_reduce(c->comm, &c->comm->world, data, 16);
    c->comm->ops->all_gather(c->comm, &c->comm->world, data, data, 4); /* without an effect after a failure */
    c->device->ops->release(c->device, data);
}

/* Ranks 0, 1 and 3 call; rank 2 does something else. */
static void one_hangs(comm_case *c)
{
    if (c->comm->rank == 2)
        while (all->aborted[0] + all->aborted[1] + all->aborted[3] < 3)
            sched_yield();
    call_once(c);
}

static void one_dies(comm_case *c)
{
    if (c->comm->rank == 2)
        kill(getpid(), SIGKILL);
    call_once(c);
}

static void one_gives_up(comm_case *c)
{
    if (c->comm->rank == 2)
        ex_fail(&c->comm->fault, "out of memory");
    else
        call_once(c);
}

START_TEST(a_rank_that_hangs_ends_the_call)
{
    begin();
    run(4, .3, one_hangs);
    int late = 0;
    for (int r = 0; r < 4; r++) {
        ck_assert(!all->rank[r].ok && all->rank[r].said[0]);
        ck_assert_int_eq(all->open[r], 0);
        late +=
            r != 2 && strstr(all->rank[r].said, "of 4: all-reduce of ranks 0..3 in step 4, micro-batch 1: "
                                                "no answer for 0.3 s; a rank is gone or hangs") != NULL;
    }
    ck_assert_int_ge(late, 1); /* the others may have been told by those who gave up first */
}
END_TEST

START_TEST(a_rank_that_goes_ends_the_call)
{
    begin();
    run(4, 100, one_dies);
    SAYS(0, "rank 0 of 4: all-reduce of ranks 0..3 in step 4, micro-batch 1: rank 0 of 4: rank 2 is gone");
    SAYS(1, "rank 1 of 4: rank 0 gave up: rank 0 of 4: rank 2 is gone: its connection is closed");
    SAYS(3, "rank 3 of 4: rank 0 gave up: rank 0 of 4: rank 2 is gone: its connection is closed");
    run(4, 100, one_gives_up);
    for (int r = 0; r < 4; r++)
        SAYS(r, "out of memory");
    SAYS(3, "rank 3 of 4: all-reduce of ranks 0..3 in step 4, micro-batch 1: rank 3 of 4: rank 0 gave up: ");
    for (int r = 0; r < 4; r++)
        ck_assert(all->aborted[r] == 1 && all->open[r] == 0);
}
END_TEST

START_TEST(what_nccl_and_cuda_say_is_told)
{
    begin();
    fault_rank = 1;
    bad_state = ncclRemoteError;
    run(3, 100, call_once);
    SAYS(
        1,
        "rank 1 of 3: all-reduce of ranks 0..2 in step 4, micro-batch 1: NCCL: remote process exited: of the "
        "world");
    SAYS(0, "remote process exited");
    SAYS(2, "remote process exited");
    begin();
    fault_rank = 2;
    bad_stream = cudaErrorUnknown;
    run(3, 100, call_once);
    SAYS(2, "rank 2 of 3: all-reduce of ranks 0..2 in step 4, micro-batch 1: CUDA: an unspecified launch");
    SAYS(0, "an unspecified launch failure");
}
END_TEST

/* A group that cannot be made, while others are at it. */
static void split(comm_case *c)
{
    ex_group group = {.size = 2};
    c->comm->ops->make_group(c->comm, &group);
    if (!c->comm->fault.failed)
        call_once(c);
}

START_TEST(a_split_that_fails_is_told)
{
    begin();
    fault_rank = 3;
    state_after = -1;
    bad_state = ncclSystemError;
    run(4, 100, split);
    for (int r = 0; r < 4; r++)
        SAYS(r, "NCCL: unhandled system error");
    SAYS(3, "rank 3 of 4: opening of ranks 0..3: NCCL: unhandled system error");
    SAYS(2, "rank 3 gave up: rank 3 of 4: opening");
}
END_TEST

START_TEST(a_rank_without_gpu_is_told)
{
    begin();
    fault_rank = 1;
    no_gpu = 1;
    run(3, 100, call_once);
    SAYS(1, "rank 1 of 3: NCCL needs a GPU, and there is none");
    SAYS(0, "rank 1 gave up: rank 1 of 3: NCCL needs a GPU");
    SAYS(2, "NCCL needs a GPU");
    begin();
    one_gpu = 1;
    run(2, 100, call_once);
    SAYS(0, "rank 0 of 2: rank 1 has the same GPU, and NCCL takes one rank a GPU; start fewer ranks");
    begin();
    no_id = 1;
    run(2, 100, call_once);
    SAYS(0, "rank 0 of 2: rank 0 got no id of NCCL: unhandled system error");
    SAYS(1, "rank 1 of 2: rank 0 got no id of NCCL");
}
END_TEST

static void on_a_cpu(comm_case *c)
{
    float data[4] = {0};
    c->device->host_memory = 1;
    c->comm->ops->all_reduce(c->comm, &c->comm->world, data, 4);
}

START_TEST(a_device_that_is_no_gpu_is_refused)
{
    begin();
    run(2, 100, on_a_cpu);
    for (int r = 0; r < 2; r++)
        SAYS(r, "NCCL moves memory of GPUs; the device is plain memory");
}
END_TEST

TEST_MAIN("nccl", every_call_on_any_number_of_ranks, a_rank_that_hangs_ends_the_call,
          a_rank_that_goes_ends_the_call, what_nccl_and_cuda_say_is_told, a_split_that_fails_is_told,
          a_rank_without_gpu_is_told, a_device_that_is_no_gpu_is_refused)
