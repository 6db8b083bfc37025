/* Timing a call on all ranks at once. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/quantiles.h"
#include "probe/probing.h"

/* A repeat lasts so long at least where one call is shorter, so that starting and looking at the clock do not
 * count. */
#define SHORTEST_S 5e-3

enum { MOST_CALLS = 64, FILL_BYTES = 1 << 18 };

int ex_probe_check(ex_probing *p, hbp_status status)
{
    if (p->device->fault.failed)
        return ex_fail(p->fault, "%s", p->device->fault.text);
    if (p->comm->fault.failed)
        return ex_fail(p->fault, "%s", p->comm->fault.text);
    if (status < 0)
        return ex_fail(p->fault, "%s", hbp_context_message(p->context));
    return p->fault->failed ? -1 : 0;
}

double ex_probe_agree(ex_probing *p, double value)
{
    p->comm->ops->gather_host(p->comm, &value, p->all, (int64_t)sizeof value);
    if (ex_probe_check(p, HBP_OK))
        return NAN;
    double most = p->all[0];
    for (int32_t r = 1; r < p->comm->ranks; r++)
        most = p->all[r] > most ? p->all[r] : most;
    return most;
}

ex_probe_time ex_probe_summarise(double *samples, int32_t count)
{
    ex_sort_reals(samples, count);
    double median = ex_quantile(samples, count, .5);
    double range = ex_quantile(samples, count, .75) - ex_quantile(samples, count, .25);
    return (ex_probe_time){median, median > 0 ? range / median : 0};
}

/* Seconds of `calls` calls, from when all ranks are there. */
static double run(ex_probing *p, ex_probe_work work, void *user, int32_t calls)
{
    ex_probe_agree(p, 0);
    double begin = p->now();
    for (int32_t i = 0; i < calls && !p->fault->failed; i++)
        work(user);
    ex_device_sync(p->device);
    return p->now() - begin;
}

int ex_probe_time_work(ex_probing *p, ex_probe_work work, void *user, double budget_s, ex_probe_time *time)
{
    run(p, work, user, 1);
    /* A clock that did not move would make everything that follows infinite. */
    double once = ex_probe_agree(p, fmax(run(p, work, user, 1), 1e-9));
    if (ex_probe_check(p, HBP_OK))
        return -1;
    double target = fmin(SHORTEST_S, budget_s / 4);
    int32_t calls = (int32_t)fmin(fmax(target / once, 1), MOST_CALLS);
    int32_t repeats = (int32_t)fmin(fmax(budget_s / (once * calls), 3), EX_PROBE_REPEATS);
    double own[EX_PROBE_REPEATS];
    for (int32_t i = 0; i < repeats; i++)
        own[i] = run(p, work, user, calls) / calls;
    if (ex_probe_check(p, HBP_OK))
        return -1;
    p->comm->ops->gather_host(p->comm, own, p->all, repeats * (int64_t)sizeof *own);
    if (ex_probe_check(p, HBP_OK))
        return -1;
    for (int32_t i = 0; i < repeats; i++)
        for (int32_t r = 0; r < p->comm->ranks; r++)
            own[i] = fmax(own[i], p->all[r * repeats + i]);
    *time = ex_probe_summarise(own, repeats);
    if (!(time->seconds > 0))
        time->seconds = 1e-9;
    return 0;
}

void *ex_probe_fill(ex_probing *p, int64_t bytes)
{
    char *memory = p->device->ops->allocate(p->device, bytes);
    char *piece = malloc(FILL_BYTES);
    if (!piece)
        ex_fail(p->fault, "no memory for %d bytes to fill the device's with", FILL_BYTES);
    if (!memory || !piece || ex_probe_check(p, HBP_OK)) {
        free(piece);
        ex_probe_check(p, HBP_OK);
        p->device->ops->release(p->device, memory);
        return NULL;
    }
    uint32_t state = 1;
    for (size_t i = 0; i < FILL_BYTES; i += ex_type_bytes(p->device->type)) {
        state = state * 1664525u + 1013904223u;
        float value = (float)(int32_t)state / 2147483648.f;
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        if (p->device->type == EX_BF16) {
            uint16_t upper = (uint16_t)(bits >> 16);
            memcpy(piece + i, &upper, sizeof upper);
        } else {
            memcpy(piece + i, &bits, sizeof bits);
        }
    }
    for (int64_t at = 0; at < bytes; at += FILL_BYTES)
        p->device->ops->copy_in(p->device, memory + at, piece,
                                bytes - at < FILL_BYTES ? bytes - at : FILL_BYTES);
    free(piece);
    return memory;
}
