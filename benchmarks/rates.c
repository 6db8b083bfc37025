#include "rates.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/quantiles.h"
#include "common.h"

/* A measurement lasts so long at least, where runs may be repeated in it. */
#define SHORTEST_S 5e-3

enum { MOST_RUNS = 256, PIECE_BYTES = 1 << 18 };

bench_spread bench_spread_of(double *values, int32_t count)
{
    ex_sort_reals(values, count);
    return (bench_spread){ex_quantile(values, count, .25), ex_quantile(values, count, .5),
                          ex_quantile(values, count, .75)};
}

void bench_rates_need(const bench_rates *rates)
{
    if (!ex_device_sync(rates->device))
        return;
    fflush(stdout);
    fprintf(stderr, "%s: %s\n", rates->device->name, rates->device->fault.text);
    exit(1);
}

static double now(const bench_rates *rates)
{
    bench_rates_need(rates);
    return rates->by_cpu ? bench_cpu() : bench_wall();
}

static double run(const bench_rates *rates, const bench_work *work, int32_t runs)
{
    if (work->prepare)
        work->prepare(work->user);
    double start = now(rates);
    for (int32_t i = 0; i < runs; i++)
        work->run(work->user);
    /* A clock that stood still must not divide by zero. */
    return fmax((now(rates) - start) / runs, 1e-9);
}

static int32_t enough(const bench_rates *rates, const bench_work *work)
{
    double once = run(rates, work, 1);
    return work->prepare ? 1 : (int32_t)fmin(fmax(SHORTEST_S / once, 1), MOST_RUNS);
}

double bench_rates_time(const bench_rates *rates, const bench_work *work)
{
    return run(rates, work, enough(rates, work));
}

double bench_rates_beside(const bench_rates *rates, const bench_work *work, const bench_work *ceiling,
                          bench_spread *share)
{
    double seconds[BENCH_MOST_PAIRS], shares[BENCH_MOST_PAIRS];
    run(rates, work, 1);
    int32_t runs = enough(rates, work), ceiling_runs = enough(rates, ceiling);
    for (int32_t i = 0; i < rates->pairs; i++) {
        double best = ceiling->done / run(rates, ceiling, ceiling_runs);
        seconds[i] = run(rates, work, runs);
        shares[i] = work->done / seconds[i] / best;
    }
    *share = bench_spread_of(shares, rates->pairs);
    return bench_median(seconds, rates->pairs);
}

static char *allocate(const bench_rates *rates, int64_t bytes)
{
    char *memory = rates->device->ops->allocate(rates->device, bytes > 0 ? bytes : 1);
    bench_rates_need(rates);
    return memory;
}

void *bench_rates_fill(const bench_rates *rates, int64_t bytes)
{
    char *memory = allocate(rates, bytes), *piece = bench_allocate(PIECE_BYTES, 1);
    const int64_t e = (int64_t)ex_type_bytes(rates->device->type);
    uint64_t state = 1;
    for (int64_t i = 0; i < PIECE_BYTES; i += e) {
        float value = (float)((int32_t)(bench_random(&state) >> 40) - (1 << 23)) / (float)(1 << 23);
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        uint16_t upper = (uint16_t)(bits >> 16);
        if (e == 2)
            memcpy(piece + i, &upper, sizeof upper);
        else
            memcpy(piece + i, &bits, sizeof bits);
    }
    for (int64_t at = 0; at < bytes; at += PIECE_BYTES)
        rates->device->ops->copy_in(rates->device, memory + at, piece,
                                    bytes - at < PIECE_BYTES ? bytes - at : PIECE_BYTES);
    free(piece);
    bench_rates_need(rates);
    return memory;
}

void *bench_rates_zeros(const bench_rates *rates, int64_t bytes)
{
    char *memory = allocate(rates, bytes);
    rates->device->ops->zero(rates->device, memory, bytes);
    bench_rates_need(rates);
    return memory;
}

void *bench_rates_load(const bench_rates *rates, const void *host, int64_t bytes)
{
    char *memory = allocate(rates, bytes);
    rates->device->ops->copy_in(rates->device, memory, host, bytes);
    bench_rates_need(rates);
    return memory;
}
