/* Rates of one device of the executor: work on it is timed beside a ceiling of the same device, in turn. */
#ifndef BENCH_RATES_H
#define BENCH_RATES_H

#include <stdint.h>

#include "device/device.h"

enum { BENCH_MOST_PAIRS = 15, BENCH_OPERANDS = 7 };

typedef struct bench_rates {
    ex_device *device;
    int by_cpu;    /* seconds of this process on the CPU: one thread on a machine that others use as well */
    int32_t pairs; /* 1 .. BENCH_MOST_PAIRS */
} bench_rates;

/* What is timed. */
typedef struct bench_work {
    void (*run)(void *user);
    void (*prepare)(void *user); /* before each run, not timed; NULL: none, and short runs are repeated */
    void *user;
    double done; /* flop or bytes of a run */
} bench_work;

/* Median and quartiles. */
typedef struct bench_spread {
    double low, median, high;
} bench_spread;

bench_spread bench_spread_of(double *values, int32_t count); /* sorts them */

/* Ends the program with the device's message when it has failed. */
void bench_rates_need(const bench_rates *rates);

/* Seconds of one run, one measurement. */
double bench_rates_time(const bench_rates *rates, const bench_work *work);

/* Median seconds of a run of `work`; `share`: its rate over that of `ceiling`, measured before it each time.
 */
double bench_rates_beside(const bench_rates *rates, const bench_work *work, const bench_work *ceiling,
                          bench_spread *share);

/* Device memory of numbers in -1 .. 1, or of zeros, or a copy of the host's. */
void *bench_rates_fill(const bench_rates *rates, int64_t bytes);
void *bench_rates_zeros(const bench_rates *rates, int64_t bytes);
void *bench_rates_load(const bench_rates *rates, const void *host, int64_t bytes);

#endif
