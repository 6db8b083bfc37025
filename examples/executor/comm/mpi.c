#include "comm/comm.h"

#ifdef EX_MPI

#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "comm/call.h"
#include "comm/mpi_messages.h"
#include "comm/self.h"

static void mpi_make_group(ex_comm *comm, ex_group *group)
{
    ex_self_ops.make_group(comm, group);
}

static void mpi_free_group(ex_comm *comm, ex_group *group)
{
    ex_self_ops.free_group(comm, group);
}

static void mpi_abandon(ex_comm *comm, const char *text)
{
    ex_fail(&comm->fault, "%s", text);
    fflush(NULL);
    /* MPI_Abort asks the launcher, which may hang as well. */
    signal(SIGALRM, SIG_DFL);
    alarm(10);
    MPI_Abort(MPI_COMM_WORLD, 1);
    _exit(1);
}

static void release(ex_mpi_comm *m)
{
    free(m->messages);
    free(m->requests);
    free(m->statuses);
    free(m->done);
    free(m->missing);
    free(m->summands);
    free(m->stage);
    free(m);
}

/* Waits for all ranks, within the limit. */
static int meet(ex_mpi_comm *m)
{
    char nothing = 0;
    ex_mpi_gather_host(&m->comm, &nothing, &nothing, 0);
    return m->comm.fault.failed ? -1 : 0;
}

/* MPI_Init, MPI_Comm_split_type and MPI_Finalize wait for all ranks and cannot be watched: an alarm ends the
 * process, and with it the launcher's job. */
static void on_alarm(int number)
{
    static const char text[] = "hbp_executor: MPI: no answer from a rank within the limit at the beginning "
                               "or end; a rank is gone or "
                               "hangs\n";
    (void)number;
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0)
        _exit(2);
    _exit(1);
}

static void set_alarm(double limit_s)
{
    signal(SIGALRM, on_alarm);
    alarm(limit_s < 1e6 ? (unsigned)limit_s + 2 : 1000000);
}

static void clear_alarm(void)
{
    alarm(0);
    signal(SIGALRM, SIG_DFL);
}

/* The ranks meet before MPI_Finalize, so that one that is missing is named. */
static void mpi_free(ex_comm *comm)
{
    ex_mpi_comm *m = ex_mpi_of(comm);
    if (!comm->fault.failed && meet(m) && m->initialised) {
        fprintf(stderr, "%s\n", comm->fault.text);
        mpi_abandon(comm, comm->fault.text);
    }
    if (!comm->fault.failed) {
        set_alarm(comm->limit_s);
        MPI_Comm_free(&m->all);
        if (m->initialised)
            MPI_Finalize();
        clear_alarm();
    }
    release(m);
}

static const ex_comm_ops mpi_ops = {
    .free = mpi_free,
    .make_group = mpi_make_group,
    .free_group = mpi_free_group,
    .all_to_all = ex_mpi_all_to_all,
    .all_reduce = ex_mpi_all_reduce,
    .all_gather = ex_mpi_all_gather,
    .reduce_scatter = ex_mpi_reduce_scatter,
    .gather_host = ex_mpi_gather_host,
    .abandon = mpi_abandon,
};

/* Communicator of our own, whose messages meet no one else's. */
static int duplicate(ex_mpi_comm *m)
{
    MPI_Request request = MPI_REQUEST_NULL;
    int done = 0, error = MPI_Comm_idup(MPI_COMM_WORLD, &m->all, &request);
    double since = ex_call_now();
    while (!error && !done) {
        error = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        if (!error && !done && ex_call_now() - since >= m->comm.limit_s)
            return ex_call_late(&m->comm, &m->comm.world, "opening", NULL);
        if (!done)
            nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
    }
    if (!error)
        error = MPI_Comm_set_errhandler(m->all, MPI_ERRORS_RETURN);
    return error ? ex_mpi_fail(&m->comm, &m->comm.world, "opening", error) : 0;
}

/* Who shares this node. The call has no form that can be watched; all ranks meet just before it. */
static int find_node(ex_mpi_comm *m)
{
    MPI_Comm node = MPI_COMM_NULL;
    if (meet(m))
        return -1;
    int rank = 0, ranks = 1;
    set_alarm(m->comm.limit_s);
    int error = MPI_Comm_split_type(m->all, MPI_COMM_TYPE_SHARED, m->comm.rank, MPI_INFO_NULL, &node);
    if (!error)
        error = MPI_Comm_rank(node, &rank);
    if (!error)
        error = MPI_Comm_size(node, &ranks);
    if (!error)
        error = MPI_Comm_free(&node);
    clear_alarm();
    if (error)
        return ex_mpi_fail(&m->comm, &m->comm.world, "opening", error);
    m->comm.node_rank = rank;
    m->comm.node_ranks = ranks;
    m->crowded = ranks > sysconf(_SC_NPROCESSORS_ONLN);
    return 0;
}

static ex_mpi_comm *make(int32_t rank, int32_t ranks, double limit_s)
{
    ex_mpi_comm *m = calloc(1, sizeof *m);
    if (!m)
        return NULL;
    size_t n = (size_t)ranks;
    m->comm = (ex_comm){.ops = &mpi_ops, .rank = rank, .ranks = ranks, .limit_s = limit_s, .name = "mpi"};
    m->comm.world = (ex_group){.first = 0, .size = ranks, .rank = rank};
    m->all = MPI_COMM_NULL;
    m->messages = calloc(n, sizeof *m->messages);
    m->requests = calloc(2 * n, sizeof *m->requests);
    m->statuses = calloc(2 * n, sizeof *m->statuses);
    m->done = calloc(2 * n, sizeof *m->done);
    m->missing = calloc(n, 1);
    m->summands = calloc(n, sizeof *m->summands);
    if (m->messages && m->requests && m->statuses && m->done && m->missing && m->summands)
        return m;
    release(m);
    return NULL;
}

ex_comm *ex_mpi_open(double limit_s, ex_fault *fault)
{
    int there = 0, over = 0, provided = 0, rank = 0, ranks = 1;
    MPI_Finalized(&over);
    if (over) {
        ex_fail(fault, "MPI has been finalised");
        return NULL;
    }
    MPI_Initialized(&there);
    set_alarm(limit_s);
    int bad = !there && MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided);
    clear_alarm();
    if (bad) {
        ex_fail(fault, "MPI does not initialise");
        return NULL;
    }
    if (!there)
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    ex_mpi_comm *m = make(rank, ranks, limit_s);
    if (!m) {
        ex_fail(fault, "no memory for a communicator of %d ranks", ranks);
        return NULL;
    }
    m->initialised = !there;
    if (duplicate(m) || find_node(m)) {
        ex_fail(fault, "%s", m->comm.fault.text);
        release(m);
        return NULL;
    }
    return &m->comm;
}

/* OpenMPI's mpirun, PMIx (srun, prun) and PMI (MPICH's and Intel's mpiexec, srun). */
int ex_mpi_launched(void)
{
    const char *const set[] = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK"};
    for (int i = 0; i < 3; i++)
        if (getenv(set[i]))
            return 1;
    return 0;
}

#else

ex_comm *ex_mpi_open(double limit_s, ex_fault *fault)
{
    (void)limit_s;
    ex_fail(fault, "this executor was built without MPI");
    return NULL;
}

int ex_mpi_launched(void)
{
    return 0;
}

#endif
