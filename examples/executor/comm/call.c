#include "comm/call.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { PIECE = 512 }; /* sums kept at once; on the stack */

double ex_call_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int ex_call_fail(ex_comm *comm, const ex_group *group, const char *what, const char *format, ...)
{
    char reason[384], ranks[64];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    if (group->size == 1)
        snprintf(ranks, sizeof ranks, "rank %d", (int)group->first);
    else
        snprintf(ranks, sizeof ranks, "ranks %d..%d", (int)group->first,
                 (int)(group->first + group->size - 1));
    return ex_fail(&comm->fault, "rank %d of %d: %s of %s%s%s: %s", (int)comm->rank, (int)comm->ranks, what,
                   ranks, comm->where[0] ? " in " : "", comm->where, reason);
}

int ex_call_late(ex_comm *comm, const ex_group *group, const char *what, const unsigned char *missing)
{
    enum { NAMED = 8 };
    char from[160] = "";
    size_t used = 0;
    int32_t count = 0;
    for (int32_t r = 0; missing && r < group->size; r++) {
        if (!missing[r] || ++count > NAMED)
            continue;
        used += (size_t)snprintf(from + used, sizeof from - used, "%s%d", count == 1 ? "" : ", ",
                                 (int)(group->first + r));
    }
    if (count > NAMED)
        snprintf(from + used, sizeof from - used, " and %d more", (int)(count - NAMED));
    return ex_call_fail(comm, group, what, "no answer for %g s%s%s; a rank is gone or hangs", comm->limit_s,
                        count == 0   ? ""
                        : count == 1 ? " from rank "
                                     : " from ranks ",
                        from);
}

int ex_call_begin(ex_comm *comm, const ex_group *group, const char *what, int64_t count)
{
    if (comm->fault.failed)
        return -1;
    if (!comm->device)
        return ex_call_fail(comm, group, what, "no device is bound to the communicator");
    if (group->rank < 0 || group->rank >= group->size || group->first + group->rank != comm->rank)
        return ex_call_fail(comm, group, what, "this rank is not in the group");
    if (count < 0)
        return ex_call_fail(comm, group, what, "a size of %lld; at least 0", (long long)count);
    return 0;
}

int ex_call_place(const ex_comm *comm, ex_group *group)
{
    int32_t size = group->size;
    group->first = comm->rank / size * size;
    group->rank = group->first + size <= comm->ranks ? comm->rank - group->first : -1;
    return group->rank >= 0;
}

void ex_call_sum(float *to, const float *const *from, int32_t ranks, int64_t count)
{
    double sum[PIECE];
    for (int64_t at = 0; at < count; at += PIECE) {
        int64_t n = count - at < PIECE ? count - at : PIECE;
        for (int64_t i = 0; i < n; i++)
            sum[i] = (double)from[0][at + i];
        for (int32_t r = 1; r < ranks; r++)
            for (int64_t i = 0; i < n; i++)
                sum[i] += (double)from[r][at + i];
        for (int64_t i = 0; i < n; i++)
            to[at + i] = (float)sum[i];
    }
}
