/* Batches of lengths for steps under FlexSP's constants. */
#ifndef BENCH_BATCHES_H
#define BENCH_BATCHES_H

#include "common.h"

enum { BENCH_BATCH_SETS = 3 };

/* Opens wikipedia, code_files and reasoning; ends the program when one is not to be had. */
void bench_batches_open(hbp_context *context, bench_data data[BENCH_BATCH_SETS]);
void bench_batches_close(bench_data data[BENCH_BATCH_SETS]);

/* A family of batches: `samples` lengths each, for `ranks` GPUs trained at `limit_k`. */
typedef struct bench_batches {
    const bench_data *data;
    int limit_k;
    int32_t ranks;
    int32_t is_single; /* those that fill at most .95 of one micro-batch */
    int64_t samples;
    uint64_t seed;
} bench_batches;

/* What samples are padded to: twice the GPUs, past 64 GPUs twice 64, unless bench_batches_padded_to_all is
 * set. */
extern int bench_batches_padded_to_all;
int64_t bench_batches_multiple(int32_t ranks);

/* The longest sample that is taken: longer ones pass the limit, or what all ranks hold. */
int64_t bench_batches_longest(const bench_batches *batches, const hbp_cost *cost);

/* Draws batch `index`, with replacement, into length[samples]. Single micro-batches are drawn again until
 * they fit; 0 when none does. */
int bench_batches_draw(const bench_batches *batches, const hbp_cost *cost, int64_t index, uint32_t *length);

#endif
