/* What launchers say in the environment. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "comm/rendezvous.h"

/* Reads a whole number in least .. most; *value stays when the variable is not set. */
static int read_number(const char *name, long least, long most, int32_t *value, ex_fault *fault)
{
    const char *text = getenv(name);
    char *end;
    if (!text)
        return 0;
    errno = 0;
    long number = strtol(text, &end, 10);
    if (end == text || *end || errno || number < least || number > most)
        return ex_fail(fault, "%s is '%.64s'; it must be a whole number in %ld..%ld", name, text, least,
                       most);
    *value = (int32_t)number;
    return 0;
}

/* FNV-1a of the texts that tell this run from others; 0 when there are none. */
static uint64_t run_of_environment(void)
{
    static const char *const names[] = {"TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "SLURM_JOB_ID"};
    uint64_t hash = 14695981039346656037u;
    int any = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *text = getenv(names[i]);
        any |= text != NULL;
        for (const char *at = text ? text : ""; *at; at++)
            hash = (hash ^ (unsigned char)*at) * 1099511628211u;
        hash = (hash ^ 0xff) * 1099511628211u;
    }
    return any && hash ? hash : 0;
}

int ex_meeting_from_environment(const char *file, double limit_s, ex_meeting *meeting, ex_fault *fault)
{
    static const struct {
        const char *rank, *ranks, *node_rank, *node_ranks;
    } launchers[] = {{"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
                     {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
                      "OMPI_COMM_WORLD_LOCAL_SIZE"},
                     {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
                     {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", NULL}};
    *meeting = (ex_meeting){.rank = -1, .node_rank = -1, .node_ranks = -1, .limit_s = limit_s, .file = file};
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers && meeting->rank < 0; i++) {
        if (!getenv(launchers[i].rank))
            continue;
        if (read_number(launchers[i].ranks, 1, 1 << 20, &meeting->ranks, fault) ||
            read_number(launchers[i].rank, 0, INT_MAX, &meeting->rank, fault) ||
            read_number(launchers[i].node_rank, 0, 1 << 20, &meeting->node_rank, fault) ||
            (launchers[i].node_ranks &&
             read_number(launchers[i].node_ranks, 1, 1 << 20, &meeting->node_ranks, fault)))
            return -1;
        if (meeting->rank >= 0 && meeting->ranks < 1)
            return ex_fail(fault, "%s is set and %s is not: how many ranks are there?", launchers[i].rank,
                           launchers[i].ranks);
        if (meeting->rank >= meeting->ranks && meeting->ranks)
            return ex_fail(fault, "%s is %d; %s is %d, so ranks are 0..%d", launchers[i].rank,
                           (int)meeting->rank, launchers[i].ranks, (int)meeting->ranks,
                           (int)meeting->ranks - 1);
    }
    if (meeting->rank < 0)
        return ex_fail(fault,
                       "which rank this is cannot be known: RANK and WORLD_SIZE are not set; start the "
                       "executor by torchrun or an MPI launcher, or set them");
    meeting->run = run_of_environment();
    if (file || meeting->ranks == 1)
        return 0;
    meeting->address = getenv("MASTER_ADDR");
    if (!meeting->address || !*meeting->address)
        return ex_fail(fault,
                       "MASTER_ADDR is not set: the ranks cannot find rank 0; set it and MASTER_PORT, or "
                       "name a rendezvous file");
    if (!getenv("MASTER_PORT"))
        return ex_fail(fault, "MASTER_PORT is not set: the ranks cannot find rank 0");
    return read_number("MASTER_PORT", 1, 65535, &meeting->port, fault);
}
