/* What the parts of a probe share: who measures, for how long, and what was found. */
#ifndef EX_PROBE_PROBING_H
#define EX_PROBE_PROBING_H

#include "probe/probe.h"

enum { EX_PROBE_REPEATS = 32 };

typedef struct ex_probing {
    ex_device *device;
    ex_comm *comm;
    ex_fault *fault;
    hbp_context *context; /* rank 0's, as is the machine */
    hbp_machine *machine;
    double (*now)(void);
    ex_heads heads;
    int64_t largest; /* bytes of the largest copy and collective */
    int64_t memory;  /* bytes of a rank */
    int64_t room;    /* bytes that the buffers of one measurement may take, the same on all ranks */
    double *all;     /* scratch [EX_PROBE_REPEATS * ranks] */
    char source[64]; /* "Intel Xeon, 2026-11-22" */
    double best_gemm, last_gemm; /* flop/s: the most, and at the largest size */
    double best_attention, last_attention;
    double last_copy; /* bytes/s */
} ex_probing;

/* One call of what is measured, given to the device. */
typedef void (*ex_probe_work)(void *user);

/* Seconds of one call and how repeats differed: the median, and the interquartile range / median. */
typedef struct ex_probe_time {
    double seconds;
    double spread;
} ex_probe_time;

/* The largest `value` of all ranks, on all of them; NaN after a failure. */
double ex_probe_agree(ex_probing *p, double value);

/* Times `work` on all ranks at once: begun together, as long as the slowest rank takes; about `budget_s`, but
 * 2 calls to warm up and 3 repeats at least. Calls that are short are repeated between two looks at the
 * clock. -1 after a failure. */
int ex_probe_time_work(ex_probing *p, ex_probe_work work, void *user, double budget_s, ex_probe_time *time);

/* Median and interquartile range (linear between neighbours) / median of samples [count >= 1]; sorts them. */
ex_probe_time ex_probe_summarise(double *samples, int32_t count);

/* Device memory [bytes] filled with numbers in -1 .. 1; NULL after a failure. */
void *ex_probe_fill(ex_probing *p, int64_t bytes);

/* 0, or -1 with `fault` set from the device's, the communicator's or, given a status below 0, the context's.
 */
int ex_probe_check(ex_probing *p, hbp_status status);

/* gemm, attention and copies into rates and best_*; collectives into the machine. Each takes about
 * `budget_s`. */
int ex_probe_gemm(ex_probing *p, double budget_s);
int ex_probe_attention(ex_probing *p, double budget_s);
int ex_probe_copy(ex_probing *p, double budget_s);
int ex_probe_collectives(ex_probing *p, double budget_s);

/* The dense bf16 peak of the GPU named `device` by the preset that knows it; 0 when none does. */
double ex_probe_known_peak(hbp_context *context, const char *device);

#endif
