/* Figures of a benchmark for machines to compare: what $BENCH_JSON names gets them as JSON when bench_end is
 * called. */
#ifndef BENCH_METRICS_H
#define BENCH_METRICS_H

typedef enum bench_better { BENCH_LOWER, BENCH_HIGHER } bench_better;

/* Notes a figure of a row ("": of no row) of the section at hand. Figures of the clock have a unit of time or
 * of something a second; others are the same on every machine. One that is not finite is written as null. */
void bench_metric(const char *row, const char *name, bench_better better, double value, const char *unit);

/* The same of a figure that was measured beside a yardstick in the same run: `ratio` is value / yardstick,
 * and is what runs are compared by. */
void bench_metric_beside(const char *row, const char *name, bench_better better, double value,
                         const char *unit, const char *yardstick, double ratio);

/* For common.c. The heading that the next figures stand under; writes what was noted, 0 on success. */
void bench_metrics_section(const char *heading);
int bench_metrics_write(void);

#endif
