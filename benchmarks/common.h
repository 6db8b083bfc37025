/* What the benchmarks share: data sets, clocks, medians, and lines that put a figure beside its target. */
#ifndef BENCH_COMMON_H
#define BENCH_COMMON_H

#include <hbp/hbp.h>
#include <stdint.h>

#include "metrics.h"

/* The longest sample of every data set; longer ones are dropped. */
#define BENCH_LONGEST 131072

/* Bytes a context's allocator holds, and the most it held at once. */
typedef struct bench_memory {
    int64_t live;
    int64_t peak;
} bench_memory;

typedef struct bench_data {
    const char *name;
    char origin[160]; /* the file, or how it was drawn */
    uint32_t *length; /* as in the file, over-long samples included */
    int64_t count;
} bench_data;

enum { BENCH_DATA_SETS = 7 };

/* A context that counts into `memory`, or one over malloc for NULL. Ends the program when it cannot be had.
 */
hbp_context *bench_context(bench_memory *memory);

/* Ends the program with the context's message when `status` is a failure. */
void bench_need(hbp_context *context, hbp_status status, const char *what);

/* So many nodes of a machine preset. */
hbp_machine *bench_nodes(hbp_context *context, const char *preset, int32_t nodes);

/* Ends the program when memory is exhausted. */
void *bench_allocate(int64_t count, int64_t size);

/* Seconds of this process on the CPU; seconds of the wall clock. */
double bench_cpu(void);
double bench_wall(void);

/* Sorts `values` and returns the middle one. */
double bench_median(double *values, int64_t count);

/* Least-significant-digit radix sort of (length, index) by length: 4 passes of 8 bits over an array built
 * from `length`. Returns the seconds it took on the CPU, building included. */
double bench_sort(const uint32_t *length, int64_t count);

/* Next of a SplitMix64 sequence (Steele, Lea, Flood 2014). */
uint64_t bench_random(uint64_t *state);

/* A heading; a line for a figure with its target, marked met or MISSED; a line for one without. The tally is
 * printed by bench_end, which writes the metrics and returns the program's exit status: 0, also when figures
 * are missed. */
void bench_section(const char *format, ...);
void bench_check(int met, const char *name, const char *target, const char *format, ...);
void bench_line(const char *name, const char *format, ...);
int bench_end(void);

/* The stand-in for HBP's data at any size: 939,344 parts lognormal(ln 350, 1.0) of at most 32K and 2,000
 * parts lognormal(ln 38000, 0.75) of at most 128K, mixed evenly. */
#define BENCH_STANDIN_SAMPLES INT64_C(941344)
uint32_t *bench_draw_standin(int64_t count, uint64_t seed);

/* Data set `index` in 0..BENCH_DATA_SETS: the stand-in first, then files of $HBP_DATA or of the default
 * folder, drawn from the recorded quantiles where the file is absent. 0 when there is neither; says so. */
int bench_data_open(hbp_context *context, int index, bench_data *data);
void bench_data_close(bench_data *data);

/* Lengths of a data set, over-long samples dropped. */
hbp_lengths *bench_lengths(hbp_context *context, const bench_data *data, int64_t longest);

/* OmniBal's length files, tokens and tiles, one sample after another until there are `count`; NULL, and a
 * line that says so, where they are absent. */
#define BENCH_VISION_SAMPLES INT64_C(70706)
hbp_lengths *bench_vision_lengths(hbp_context *context, int64_t count);

/* Lengths of these columns [count], which are freed. */
hbp_lengths *bench_lengths_of(hbp_context *context, uint32_t *tokens, uint32_t *vision, int32_t *modality,
                              int64_t count);

/* A preset model on `nodes` nodes of 8 H100; NULL, and the reason in `reason`, when the model does not fit.
 */
hbp_cost *bench_cost(hbp_context *context, const char *model, int32_t nodes, const char **reason);

/* How many packs there are; the tokens that a step of the groups carries. */
int64_t bench_count_packs(const hbp_packs *packs);

/* The digest of a plan. */
uint64_t bench_digest(hbp_context *context, const hbp_plan *plan);

/* The least packs that the first group needs. */
int64_t bench_packs_bound(const hbp_packs *packs);
int64_t bench_tokens_per_step(const hbp_groups *groups);

#endif
