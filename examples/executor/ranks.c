#include "ranks.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int is_cuda(const ex_options *o)
{
    return o->device ? o->device == EX_CUDA : ex_cuda_count() > 0;
}

static ex_device *open_device(const ex_options *o, const ex_comm *comm, ex_fault *fault)
{
    ex_type type = o->type ? (ex_type)(o->type - 1) : is_cuda(o) ? EX_BF16 : EX_F32;
    if (!is_cuda(o))
        return ex_cpu_open(type, (int32_t)o->threads, fault);
    int gpus = ex_cuda_count();
    return ex_cuda_open(type, gpus > 0 ? comm->node_rank % gpus : 0, fault);
}

/* How many ranks share the device's memory: on the CPU those of the node. A launcher may show each rank a GPU
 * of its own, all of them number 0, so that GPUs are told apart by what they are. Collective: afterwards all
 * devices are open and have taken what memory they take for themselves. */
static int count_sharers(ex_rank *rank)
{
    ex_comm *comm = rank->comm;
    ex_device *device = rank->device;
    size_t bytes = sizeof device->identity;
    char *all = malloc((size_t)comm->ranks * bytes);
    if (!all)
        return ex_fail(&rank->fault, "no memory for %d ranks", (int)comm->ranks);
    snprintf(comm->where, sizeof comm->where, "the beginning");
    comm->ops->gather_host(comm, device->identity, all, (int64_t)bytes);
    rank->sharers = device->host_memory ? comm->node_ranks : 0;
    for (int32_t r = 0; r < comm->ranks && !device->host_memory && !comm->fault.failed; r++)
        rank->sharers += memcmp(all + (size_t)r * bytes, device->identity, bytes) == 0;
    free(all);
    return comm->fault.failed ? ex_fail(&rank->fault, "%s", comm->fault.text) : 0;
}

static ex_comm *open_comm(const ex_options *o, ex_fault *fault)
{
    int launched = ex_mpi_launched() || getenv("WORLD_SIZE");
    int64_t kind = o->comm;
    if (kind == EX_COMM_AUTO)
        kind = !launched ? EX_COMM_SELF : is_cuda(o) || !ex_mpi_launched() ? EX_COMM_NCCL : EX_COMM_MPI;
    if (kind == EX_COMM_NCCL)
        return ex_nccl_open(o->rendezvous, o->limit_s, fault);
    return kind == EX_COMM_MPI ? ex_mpi_open(o->limit_s, fault) : ex_self_open(fault);
}

typedef struct job {
    const ex_options *options;
    int (*work)(ex_rank *rank);
    ex_rank rank;
    int result;
} job;

/* Messages of several ranks of a process are one after another, and only the first of each is news. */
static void report(const ex_rank *rank)
{
    if (!rank->fault.text[0])
        return;
    fflush(stdout);
    char own[32]; /* what failed among ranks says which one it is */
    int length = snprintf(own, sizeof own, "rank %d of ", (int)rank->comm->rank);
    if (rank->comm->ranks > 1 && strncmp(rank->fault.text, own, (size_t)length) != 0)
        fprintf(stderr, "hbp_executor: rank %d: %s\n", (int)rank->comm->rank, rank->fault.text);
    else
        fprintf(stderr, "hbp_executor: %s\n", rank->fault.text);
    fflush(stderr);
}

static void *run_rank(void *argument)
{
    job *j = argument;
    ex_rank *rank = &j->rank;
    rank->device = open_device(j->options, rank->comm, &rank->fault);
    if (rank->device && ex_comm_bind(rank->comm, rank->device) < 0)
        ex_fail(&rank->fault, "%s", rank->comm->fault.text);
    if (!rank->fault.failed)
        count_sharers(rank);
    j->result = rank->fault.failed ? -1 : j->work(rank);
    if (j->result < 0)
        report(rank);
    if (j->result == -1)
        rank->comm->ops->abandon(rank->comm, rank->fault.text);
    ex_device_free(rank->device);
    return NULL;
}

/* Virtual ranks: a thread each. */
static int run_virtual(const ex_options *o, int (*work)(ex_rank *rank), void *user)
{
    int32_t ranks = (int32_t)o->virtual_ranks;
    ex_fault fault = {0};
    ex_comm **comms = calloc((size_t)ranks, sizeof *comms);
    job *jobs = calloc((size_t)ranks, sizeof *jobs);
    pthread_t *threads = calloc((size_t)ranks, sizeof *threads);
    int failed = !comms || !jobs || !threads ? ex_fail(&fault, "no memory for %d ranks", (int)ranks)
                                             : ex_local_open(ranks, o->limit_s, comms, &fault);
    int32_t started = 0;
    for (int32_t r = 0; r < ranks && !failed; r++) {
        jobs[r] = (job){.options = o, .work = work, .rank = {.comm = comms[r], .user = user}};
        if (pthread_create(&threads[r], NULL, run_rank, &jobs[r]) != 0) {
            failed = ex_fail(&fault, "cannot start a thread for rank %d of %d", (int)r, (int)ranks);
            comms[r]->ops->abandon(comms[r], fault.text);
        } else
            started++;
    }
    int bad = failed;
    for (int32_t r = 0; r < started; r++) {
        pthread_join(threads[r], NULL);
        bad |= jobs[r].result;
    }
    for (int32_t r = 0; comms && r < ranks; r++)
        ex_comm_free(comms[r]);
    if (fault.failed)
        fprintf(stderr, "hbp_executor: %s\n", fault.text);
    free(threads);
    free(jobs);
    free(comms);
    return bad ? 1 : 0;
}

/* How many processes a launcher says it started; 1 where there is none. */
static long count_launched(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "WORLD_SIZE"};
    long most = 1;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *text = getenv(names[i]);
        long count = text ? strtol(text, NULL, 10) : 1;
        most = count > most ? count : most;
    }
    return most;
}

int ex_ranks_run(const ex_options *o, int (*work)(ex_rank *rank), void *user)
{
    if (o->virtual_ranks > 0 && count_launched() > 1) { /* each would write the same files */
        fprintf(
            stderr,
            "hbp_executor: --virtual %lld in each of %ld processes that a launcher started; leave out one "
            "of the two\n",
            (long long)o->virtual_ranks, count_launched());
        return 1;
    }
    if (o->virtual_ranks > 0)
        return run_virtual(o, work, user);
    ex_fault fault = {0};
    ex_comm *comm = open_comm(o, &fault);
    if (!comm) {
        fprintf(stderr, "hbp_executor: %s\n", fault.text);
        return 1;
    }
    job j = {.options = o, .work = work, .rank = {.comm = comm, .user = user}};
    run_rank(&j);
    ex_comm_free(comm);
    return j.result ? 1 : 0;
}
