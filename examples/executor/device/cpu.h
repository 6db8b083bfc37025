/* The inside of the CPU's device: its state, its elements as floats, and its operations by file. */
#ifndef EX_DEVICE_CPU_H
#define EX_DEVICE_CPU_H

#include <stdint.h>
#include <string.h>

#include "device/device.h"

enum {
    EX_CPU_BLOCK = 512,    /* elements that are held as floats at a time, on the stack */
    EX_CPU_LANES = 16,     /* partial sums and maxima that a reduction keeps, so that it vectorises */
    EX_CPU_TILE = 128,     /* queries and keys in a tile of attention's scores */
    EX_CPU_MOST_DIM = 256, /* of a head */
    EX_CPU_PANEL = 256     /* rows, columns and depth that a product of bfloat16 widens at a time */
};

typedef struct ex_cpu {
    ex_device device;    /* first: a device is cast to it */
    int64_t limit_bytes; /* allocated at most; INT64_MAX: what the machine has */
    float *scratch;      /* [EX_CPU_SCRATCH] of attention and of products of bfloat16 */
} ex_cpu;

/* Floats of scratch: two tiles of scores and five panels of heads (cpu_attention.c), more than the three
 * squares of cpu_product.c. */
#define EX_CPU_SCRATCH (2 * EX_CPU_TILE * EX_CPU_TILE + 5 * EX_CPU_TILE * EX_CPU_MOST_DIM + 3 * EX_CPU_TILE)

static inline ex_cpu *ex_cpu_of(ex_device *device)
{
    return (ex_cpu *)(void *)device;
}

/* From now on allocations that would hold more than `bytes` in all fail. */
void ex_cpu_limit(ex_device *device, int64_t bytes);

/* cpu_memory.c: bytes that this process can still get, and all it could have: the least of MemAvailable and
 * of the limits of its control groups (v1, v2). Files are looked for under `root` ("" but in tests). Where
 * nothing is known both are INT64_MAX. */
void ex_cpu_memory(const char *root, int64_t *free_bytes, int64_t *total_bytes);
/* The processor's model name. */
void ex_cpu_name(const char *root, char *name, size_t size);

/* cpu_product.c: c [m, n] = alpha op(a) op(b) + beta c in fp32, rows lda, ldb, ldc apart. Sides fit an int.
 */
void ex_cpu_sgemm(int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, float alpha, const float *a,
                  int64_t lda, const float *b, int64_t ldb, float beta, float *c, int64_t ldc);
/* The same without OpenBLAS: what ex_cpu_sgemm is where that is missing. */
void ex_cpu_plain_sgemm(int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, float alpha,
                        const float *a, int64_t lda, const float *b, int64_t ldb, float beta, float *c,
                        int64_t ldc);
void ex_cpu_threads(int32_t threads);
/* The first product, which makes the library of products take its memory; -1 without it. */
int ex_cpu_warm(void);
void ex_cpu_gemm(ex_device *device, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, const void *a,
                 const void *b, float beta, void *c, int c_f32);

/* cpu_attention.c */
void ex_cpu_attention(ex_device *device, const void *qkv, const ex_documents *documents, int64_t S,
                      ex_heads heads, void *out, float *log_sums);
void ex_cpu_attention_back(ex_device *device, const void *qkv, const void *out, const void *d_out,
                           const float *log_sums, const ex_documents *documents, int64_t S, ex_heads heads,
                           void *d_qkv, void *scratch);
/* Bytes: sums of d_out * out by token and, for bfloat16, one head's gradients in fp32. */
int64_t ex_cpu_attention_scratch(ex_device *device, int64_t S, ex_heads heads);

/* cpu_rows.c */
void ex_cpu_embed(ex_device *device, const void *table, const int32_t *tokens, int64_t T, int64_t width,
                  void *out);
void ex_cpu_embed_back(ex_device *device, const void *d_out, const int32_t *tokens, const int32_t *order,
                       int64_t T, int64_t width, float *grad);
void ex_cpu_norm(ex_device *device, const void *x, const void *weight, int64_t T, int64_t width,
                 float epsilon, void *out, float *inverse);
void ex_cpu_norm_back(ex_device *device, const void *x, const void *weight, const float *inverse,
                      const void *d_out, int64_t T, int64_t width, void *d_x, float *d_weight);
void ex_cpu_swiglu(ex_device *device, const void *x, int64_t T, int64_t f, void *out);
void ex_cpu_swiglu_back(ex_device *device, const void *x, const void *d_out, int64_t T, int64_t f, void *d_x);
void ex_cpu_cross_entropy(ex_device *device, void *logits, const int32_t *targets, const float *weights,
                          int64_t T, int64_t vocab, double *loss);

/* cpu_heads.c */
void ex_cpu_rotary(ex_device *device, void *x, const int32_t *positions, int64_t T, int64_t stride,
                   int32_t heads, int32_t dim, float theta, int back);
void ex_cpu_split(ex_device *device, const void *x, int64_t T, ex_heads all, int32_t sp, void *out);
void ex_cpu_merge(ex_device *device, const void *x, int64_t T, ex_heads all, int32_t sp, void *out);

/* cpu_vectors.c */
void ex_cpu_add(ex_device *device, void *to, const void *from, int64_t count);
void ex_cpu_add_bias(ex_device *device, void *x, const void *bias, int64_t T, int64_t width);
void ex_cpu_bias_back(ex_device *device, const void *d_x, int64_t T, int64_t width, float *grad);
void ex_cpu_adam(ex_device *device, int64_t count, const float *grad, float *master, float *mean,
                 float *variance, void *weights, ex_adam options);
void ex_cpu_cast(ex_device *device, const float *from, void *to, int64_t count);
void ex_cpu_sum_squares(ex_device *device, const float *x, int64_t count, double *sum);

#endif
