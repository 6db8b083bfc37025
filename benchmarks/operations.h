/* The operations of a training step as work to be timed, each at a shape of its own. */
#ifndef BENCH_OPERATIONS_H
#define BENCH_OPERATIONS_H

#include "rates.h"

enum {
    BENCH_PRODUCT, /* m, n, k, transposed as given */
    BENCH_COPY,    /* T rows of n elements, and so are those below; f stands for n */
    BENCH_ZERO,
    BENCH_EMBED, /* from a table of k rows */
    BENCH_EMBED_BACK,
    BENCH_NORM,
    BENCH_NORM_BACK,
    BENCH_ROTARY,
    BENCH_ROTARY_BACK,
    BENCH_SPLIT, /* over k ranks */
    BENCH_MERGE,
    BENCH_ATTENTION,
    BENCH_ATTENTION_BACK,
    BENCH_SWIGLU,
    BENCH_SWIGLU_BACK,
    BENCH_ENTROPY,
    BENCH_ADAM /* n elements */
};

/* What to open; fields that its kind does not name are not read. */
typedef struct bench_shape {
    int kind;
    int trans_a, trans_b, adds, sums_f32; /* of a product: beta is 1; c is fp32 */
    int64_t T, n, k;                      /* a product: m = T */
    ex_heads heads;
    const int32_t *borders; /* attention: host [documents + 1], kept by the caller */
    int64_t documents;
} bench_shape;

typedef struct bench_operation {
    ex_device *device;
    bench_shape shape;
    void *at[BENCH_OPERANDS]; /* device memory of its own */
    ex_documents of;
    bench_work work; /* its `done`: flop of products and attention, bytes of all others */
} bench_operation;

/* Attention's flop, s the length of a document: 2 s^2 a d_h forward and 5 backward, causal; products 2 m n k.
 * Bytes are those that must be moved: what is read once and what is written once. The operation must stay
 * where it is until it is closed. */
void bench_operation_open(const bench_rates *rates, const bench_shape *shape, bench_operation *o);
void bench_operation_close(bench_operation *o);

#endif
