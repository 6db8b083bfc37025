/* Measured collectives of a machine, and how latency and bandwidth are fitted to timings. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/options.h"
#include "data/machine/machine.h"

/* The first row not before (collective, ranks). */
static int64_t find_collective(const hbp_machine *machine, int32_t collective, int32_t ranks)
{
    int64_t i = 0;
    while (i < machine->collective_count &&
           (machine->collectives[i].collective < collective ||
            (machine->collectives[i].collective == collective && machine->collectives[i].ranks < ranks)))
        i++;
    return i;
}

static int is_collective(const hbp_machine *machine, int64_t row, int32_t collective, int32_t ranks)
{
    return row < machine->collective_count && machine->collectives[row].collective == collective &&
           machine->collectives[row].ranks == ranks;
}

static hbp_status check_collective(hbp_context *context, const hbp__collective *c)
{
    if (c->collective < 0 || c->collective >= HBP_COLLECTIVE_COUNT)
        return hbp__fail(context, HBP_E_INVALID, "collective is %d; it must be a HBP_COLLECTIVE_* value",
                         (int)c->collective);
    if (c->ranks < 2)
        return hbp__fail(context, HBP_E_INVALID, "ranks is %d; a collective has at least 2", (int)c->ranks);
    if (!(isfinite(c->latency_ns) && c->latency_ns >= 0))
        return hbp__fail(context, HBP_E_INVALID, "latency_ns is %g; it must be finite and at least 0",
                         c->latency_ns);
    if (!(isfinite(c->bytes_per_s) && c->bytes_per_s > 0))
        return hbp__fail(context, HBP_E_INVALID, "bytes_per_s is %g; it must be finite and above 0",
                         c->bytes_per_s);
    if (!(isfinite(c->spread) && c->spread >= 0))
        return hbp__fail(context, HBP_E_INVALID, "spread is %g; it must be finite and at least 0", c->spread);
    return HBP_OK;
}

hbp_status hbp__machine_set_collective(hbp_context *context, hbp_machine *machine, int32_t collective,
                                       int32_t ranks, double latency_ns, double bytes_per_s, double spread,
                                       const char *source)
{
    hbp__collective fresh = {collective, ranks, latency_ns, bytes_per_s, spread, ""};
    HBP__TRY(check_collective(context, &fresh));
    HBP__TRY(hbp__machine_check_text(context, "source", source));
    snprintf(fresh.source, sizeof fresh.source, "%s", source);
    int64_t row = find_collective(machine, collective, ranks);
    if (!is_collective(machine, row, collective, ranks)) {
        int64_t count = machine->collective_count + 1;
        hbp__collective *rows =
            hbp__renew(&machine->memory, machine->collectives, (uint64_t)count, sizeof *rows);
        if (!rows)
            return hbp__fail_memory(context, "collectives");
        memmove(rows + row + 1, rows + row, (size_t)(count - 1 - row) * sizeof *rows);
        machine->collectives = rows;
        machine->collective_count = count;
    }
    machine->collectives[row] = fresh;
    return HBP_OK;
}

hbp_status hbp_machine_set_collective(hbp_context *context, hbp_machine *machine,
                                      const hbp_machine_collective *collective)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, machine, "machine"));
    HBP__TRY(hbp__require(context, collective, "collective"));
    hbp_machine_collective c;
    HBP__TRY(hbp__options_read(context, &c, sizeof c, collective, "hbp_machine_collective"));
    return hbp__machine_set_collective(context, machine, c.collective, c.ranks, c.latency_ns, c.bytes_per_s,
                                       c.spread, c.source ? c.source : "given");
}

int32_t hbp_machine_get_collective(const hbp_machine *machine, int32_t collective, int32_t ranks,
                                   hbp_machine_collective *found)
{
    hbp_machine_collective all = {0};
    int64_t row = machine ? find_collective(machine, collective, ranks) : 0;
    int is_there = machine && is_collective(machine, row, collective, ranks);
    if (is_there) {
        const hbp__collective *c = &machine->collectives[row];
        all = (hbp_machine_collective){0,         c->collective, c->ranks, c->latency_ns, c->bytes_per_s,
                                       c->spread, c->source};
    }
    return hbp__view_write(found, is_there ? machine : NULL, &all, sizeof all) == HBP_OK;
}

hbp_status hbp__fit_timings(hbp_context *context, const hbp__timing *timings, int64_t count, double factor,
                            double *latency_ns, double *bytes_per_s)
{
    /* Weighted by 1 / time squared, about the weighted means. */
    double weights = 0, mean_moved = 0, mean_ns = 0;
    for (int64_t i = 0; i < count; i++) {
        double ns = timings[i].ns, moved = factor * timings[i].bytes, weight = 1 / ns / ns;
        weights += weight;
        mean_moved += weight * moved;
        mean_ns += weight * ns;
    }
    if (weights > 0) {
        mean_moved /= weights;
        mean_ns /= weights;
    }
    double spread = 0, rise = 0, squares = 0, products = 0;
    for (int64_t i = 0; i < count; i++) {
        double ns = timings[i].ns, moved = factor * timings[i].bytes, weight = 1 / ns / ns;
        spread += weight * (moved - mean_moved) * (moved - mean_moved);
        rise += weight * (moved - mean_moved) * (ns - mean_ns);
        squares += weight * moved * moved;
        products += weight * moved * ns;
    }
    if (!(spread > 0))
        return hbp__fail(context, HBP_E_INVALID,
                         "%lld timings of fewer than two sizes; latency and bandwidth need at least two",
                         (long long)count);
    double slope = rise / spread;
    double latency = mean_ns - slope * mean_moved;
    if (latency < 0) { /* the best line through 0 */
        latency = 0;
        slope = products / squares;
    }
    if (!(slope > 1e-9)) /* or 1e18 bytes per second, which none reaches */
        return hbp__fail(context, HBP_E_INVALID, "the times do not grow with the size");
    *latency_ns = latency;
    *bytes_per_s = 1e9 / slope;
    return HBP_OK;
}

double hbp__bus_factor(int32_t collective, int32_t ranks)
{
    double share = (double)(ranks - 1) / ranks;
    return collective == HBP_COLLECTIVE_ALL_REDUCE ? 2 * share : share;
}

hbp_status hbp_machine_fit_collective(hbp_context *context, hbp_machine *machine, int32_t collective,
                                      int32_t ranks, const double *bytes, const double *ns, int64_t count,
                                      const char *source)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, machine, "machine"));
    HBP__TRY(hbp__require(context, bytes, "bytes"));
    HBP__TRY(hbp__require(context, ns, "ns"));
    HBP__TRY(check_collective(context, &(hbp__collective){collective, ranks, 0, 1, 0, ""}));
    if (count < 0)
        return hbp__fail(context, HBP_E_INVALID, "count is %lld; it must be at least 0", (long long)count);
    for (int64_t i = 0; i < count; i++)
        if (!(isfinite(bytes[i]) && bytes[i] > 0 && isfinite(ns[i]) && ns[i] > 0))
            return hbp__fail(context, HBP_E_INVALID,
                             "timing %lld is %g ns for %g bytes; both must be finite and above 0",
                             (long long)i, ns[i], bytes[i]);
    hbp__timing *rows = hbp__new(&context->memory, (uint64_t)count, sizeof *rows);
    if (!rows)
        return hbp__fail_memory(context, "timings");
    for (int64_t i = 0; i < count; i++)
        rows[i] = (hbp__timing){bytes[i], ns[i]};
    double latency = 0, bandwidth = 0;
    hbp_status status =
        hbp__fit_timings(context, rows, count, hbp__bus_factor(collective, ranks), &latency, &bandwidth);
    hbp__delete(&context->memory, rows);
    if (status < 0)
        return status;
    return hbp__machine_set_collective(context, machine, collective, ranks, latency, bandwidth, 0,
                                       source ? source : "given");
}
