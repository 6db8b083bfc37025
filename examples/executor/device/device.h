/* A device: memory, and the operations that a transformer's training step is made of. Backends: the CPU
 * (OpenBLAS), CUDA (cuBLAS and own kernels), and one that runs nothing and counts memory.
 *
 * Matrices are row-major and without gaps unless a stride is given; T is a number of tokens. "Element" is the
 * device's type: float or bfloat16. Accumulation is in fp32 or better; gradients of weights, losses and the
 * optimiser's state are fp32 always. Operations are asynchronous where the backend is, ordered among
 * themselves, and void: a failure sticks in `fault` and is met at ex_device_sync. Pointers are of the device:
 * only copy_in and copy_out see host memory. A device belongs to one thread at a time. */
#ifndef EX_DEVICE_DEVICE_H
#define EX_DEVICE_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#include "base/fault.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ex_type { EX_F32 = 0, EX_BF16 = 1 } ex_type;

/* Bytes of an element. */
static inline size_t ex_type_bytes(ex_type type)
{
    return type == EX_BF16 ? 2 : 4;
}

typedef struct ex_device ex_device;

/* Documents laid end to end: document i is tokens borders[i] .. borders[i + 1] - 1; attention is causal
 * inside each. Both arrays are given, the same numbers: one for kernels, one for the host that launches them.
 */
typedef struct ex_documents {
    const int32_t *borders;      /* device [count + 1], borders[0] = 0 */
    const int32_t *host_borders; /* host [count + 1] */
    int64_t count;
    int32_t longest;
} ex_documents;

/* Heads as one rank holds them during attention: a row of qkv is `heads` queries, then `kv_heads` keys, then
 * `kv_heads` values, each of `dim` elements. heads % kv_heads == 0; query h reads key h / (heads / kv_heads).
 */
typedef struct ex_heads {
    int32_t heads;
    int32_t kv_heads;
    int32_t dim;
} ex_heads;

typedef struct ex_adam {
    float learning_rate, beta1, beta2, epsilon, weight_decay; /* AdamW: decay is decoupled */
    float correction1, correction2;                           /* 1 - beta^t for the step's t >= 1 */
    float gradient_scale; /* gradients are multiplied by it first: clipping */
} ex_adam;

typedef struct ex_device_ops {
    void (*free)(ex_device *);
    /* NULL after a failure that names the bytes asked for and those there. 256-byte aligned. */
    void *(*allocate)(ex_device *, int64_t bytes);
    void (*release)(ex_device *, void *);
    /* Bytes that could still be allocated, and all there are. */
    void (*memory)(ex_device *, int64_t *free_bytes, int64_t *total_bytes);
    void (*copy_in)(ex_device *, void *to, const void *host,
                    int64_t bytes); /* host may be reused on return */
    void (*copy_out)(ex_device *, void *host, const void *from, int64_t bytes); /* done on return */
    void (*copy)(ex_device *, void *to, const void *from, int64_t bytes);
    void (*zero)(ex_device *, void *to, int64_t bytes);
    /* Waits for everything given so far. */
    void (*sync)(ex_device *);

    /* c [m, n] = op(a) op(b) + beta c. op(a) is [m, k], stored [k, m] when trans_a; op(b) [k, n], stored [n,
     * k] when trans_b. a and b are elements; c is elements, or fp32 when c_f32. beta is 0 (c is not read)
     * or 1. */
    void (*gemm)(ex_device *, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, const void *a,
                 const void *b, float beta, void *c, int c_f32);

    /* out [T, width] = rows tokens[t] of table [vocab, width]. */
    void (*embed)(ex_device *, const void *table, const int32_t *tokens, int64_t T, int64_t width, void *out);
    /* grad [vocab, width] fp32, row tokens[t] += d_out [T, width]; `order` [T] lists 0 .. T - 1 by token,
     * ties ascending, so that every row is summed in one order. */
    void (*embed_back)(ex_device *, const void *d_out, const int32_t *tokens, const int32_t *order, int64_t T,
                       int64_t width, float *grad);

    /* RMSNorm: out = x / rms(x) * weight, rms = sqrt(mean x^2 + epsilon); inverse [T] gets 1 / rms. */
    void (*norm)(ex_device *, const void *x, const void *weight, int64_t T, int64_t width, float epsilon,
                 void *out, float *inverse);
    /* d_x [T, width] += its gradient; d_weight [width] fp32 += its gradient. */
    void (*norm_back)(ex_device *, const void *x, const void *weight, const float *inverse, const void *d_out,
                      int64_t T, int64_t width, void *d_x, float *d_weight);

    /* Rotary embedding in place on the first `heads` heads of rows of `stride` elements: for i < dim / 2 the
     * pair (i, i + dim / 2) turns by positions[t] * theta^(-2 i / dim), backwards when `back`. */
    void (*rotary)(ex_device *, void *x, const int32_t *positions, int64_t T, int64_t stride, int32_t heads,
                   int32_t dim, float theta, int back);

    /* Causal attention inside documents, scores scaled by 1 / sqrt(dim). S tokens; qkv [S, (heads + 2 kv)
     * dim], out [S, heads dim], log_sums [heads, S] = log of the sum of exponentials of each row of scores.
     */
    void (*attention)(ex_device *, const void *qkv, const ex_documents *, int64_t S, ex_heads, void *out,
                      float *log_sums);
    /* d_qkv is overwritten. `scratch` has ex_device_attention_scratch bytes. */
    void (*attention_back)(ex_device *, const void *qkv, const void *out, const void *d_out,
                           const float *log_sums, const ex_documents *, int64_t S, ex_heads, void *d_qkv,
                           void *scratch);
    int64_t (*attention_scratch)(ex_device *, int64_t S, ex_heads);

    /* out [T, f] = silu(x[:, :f]) * x[:, f:] for x [T, 2 f]; and d_x [T, 2 f] from d_out; d_x may be x. */
    void (*swiglu)(ex_device *, const void *x, int64_t T, int64_t f, void *out);
    void (*swiglu_back)(ex_device *, const void *x, const void *d_out, int64_t T, int64_t f, void *d_x);

    void (*add)(ex_device *, void *to, const void *from, int64_t count); /* to += from */
    void (*add_bias)(ex_device *, void *x, const void *bias, int64_t T,
                     int64_t width); /* every row += bias */
    void (*bias_back)(ex_device *, const void *d_x, int64_t T, int64_t width,
                      float *grad); /* grad += columns */

    /* Between sequence and heads, for an all-to-all over `sp` ranks. `split`: rows x [T, (heads + 2 kv) dim]
     * of all heads become out [sp][T][(heads / sp + 2 kv') dim], block p holding the heads of rank p; kv' =
     * max(1, kv / sp), and where sp > kv each key-value head goes to sp / kv ranks. `merge` is the reverse;
     * what came from several ranks is summed, so that merge is the transpose of split. kv_heads 0: rows of
     * heads alone. */
    void (*split)(ex_device *, const void *x, int64_t T, ex_heads all, int32_t sp, void *out);
    void (*merge)(ex_device *, const void *x, int64_t T, ex_heads all, int32_t sp, void *out);

    /* Softmax cross-entropy over logits [T, vocab]: *loss (fp64) += sum weights[t] * nll[t]; logits become
     * weights[t] * (softmax - one-hot of targets[t]). A row of weight 0 becomes zeros and may have any
     * target. */
    void (*cross_entropy)(ex_device *, void *logits, const int32_t *targets, const float *weights, int64_t T,
                          int64_t vocab, double *loss);

    /* One AdamW step on fp32 masters; `weights` gets them as elements. */
    void (*adam)(ex_device *, int64_t count, const float *grad, float *master, float *mean, float *variance,
                 void *weights, ex_adam);
    void (*cast)(ex_device *, const float *from, void *to, int64_t count);        /* fp32 to elements */
    void (*sum_squares)(ex_device *, const float *x, int64_t count, double *sum); /* *sum (device) += */
} ex_device_ops;

struct ex_device {
    const ex_device_ops *ops;
    ex_type type;
    ex_fault fault;
    char name[128];    /* "Intel Xeon", "NVIDIA H100 80GB HBM3" */
    int64_t allocated; /* bytes now, kept by allocate and release; and the most since it was last set */
    int64_t most_allocated;
    void *stream;      /* CUDA: the cudaStream_t all work is given to; else NULL */
    int host_memory;   /* 1: the host may read and write device memory itself (the CPU) */
    char identity[16]; /* CUDA: the GPU's UUID, the same for all ranks that share its memory */
};

/* 0, or -1 when something failed on the device, now or before (device->fault). */
int ex_device_sync(ex_device *device);

/* device/cpu: runs on this machine's processor, `threads` threads in matrix products (0: one). NULL without
 * memory. */
ex_device *ex_cpu_open(ex_type type, int32_t threads, ex_fault *fault);

/* device/counting: runs nothing; allocate gives addresses that must not be touched, and `allocated` counts.
 * Its operations check shapes and alignment of what they get, so that a dry run finds what a run would do.
 * attention_scratch is that of `like` when given. `limit_bytes`: what memory says is there. */
ex_device *ex_counting_open(ex_type type, int64_t limit_bytes, ex_device *like, ex_fault *fault);

/* device/cuda: GPU `index`. Where the executor was built without CUDA, fails saying so. */
ex_device *ex_cuda_open(ex_type type, int32_t index, ex_fault *fault);
int ex_cuda_count(void); /* GPUs to be seen; 0 without CUDA */

void ex_device_free(ex_device *device); /* NULL is fine */

#ifdef __cplusplus
}
#endif

#endif
