/* One pack under way on one rank: what the parts of a forward and backward pass share. T is the tokens of
 * this rank's chunk, S those of the whole pack, e the bytes of an element. */
#ifndef EX_MODEL_RUN_H
#define EX_MODEL_RUN_H

#include <stdint.h>

#include "model/transformer.h"

typedef struct ex_run {
    ex_model *model;
    ex_device *device;
    const ex_pack *pack;
    const ex_shape *shape;
    int32_t sp;
    int64_t T;
    int64_t S;
    int64_t e;
    ex_heads all;  /* heads of the model */
    ex_heads mine; /* heads of this rank during attention: heads / sp and max(1, kv / sp) */
    int64_t q_all; /* elements of a row of all heads' queries; of their queries, keys and values; ... */
    int64_t w_all;
    int64_t q_mine; /* ... and of this rank's heads */
    int64_t w_mine;
    int32_t *tokens;    /* device [T] */
    int32_t *targets;   /* device [T] */
    int32_t *positions; /* device [T] */
    float *weights;     /* device [T] */
    int32_t *order;     /* device [T] tokens by their number, as embed_back wants them */
    ex_documents documents;
    void *gradient; /* [T, hidden] of the loss by the residual stream, where the backward pass stands */
} ex_run;

/* What a layer keeps for its backward pass, on the arena. In elements a token: hidden each for x, normed1, x2
 * and normed2, queries + 2 kv and queries for attention, 3 ffn; fp32: 2 for the norms and one a head. With e
 * = 2: 8 h + 4 d_h (a + k) + 4 a + 6 f + 8 bytes, the cost model's count and the norms' 8. Where sp > 1 the
 * attention's output is held twice, by heads (attention's backward reads it) and by tokens (the output
 * projection's does), and normed1 is computed again instead: the same where a d_h = h. Replicated keys and
 * values (sp > k) add 4 d_h (sp - k). */
typedef struct ex_kept {
    void *x;         /* [T, hidden] the layer's input: below the layer's own frame */
    float *inverse1; /* [T] */
    void *normed1;   /* [T, hidden]; NULL where sp > 1 */
    void *qkv;       /* [S, w_mine] after rotary positions and exchange */
    void *by_heads;  /* [S, q_mine] attention's output */
    float *log_sums; /* [heads / sp, S] */
    void *by_tokens; /* [T, q_all]; by_heads itself where sp = 1 */
    void *x2;        /* [T, hidden] */
    float *inverse2; /* [T] */
    void *normed2;   /* [T, hidden] */
    void *gate_up;   /* [T, 2 ffn] */
    void *gated;     /* [T, ffn] */
    int64_t begin;   /* arena_used with x on top, set before; x2 is at least T hidden elements above it */
    int64_t mlp;     /* arena_used below what the MLP keeps */
} ex_kept;

/* arena: a stack. NULL with the fault set when it is full; bytes are rounded up to 256. Whoever pushes for a
 * while notes arena_used and sets it back. */
void *ex_push(ex_run *run, int64_t bytes);
void *ex_push_elements(ex_run *run, int64_t rows, int64_t width);
/* 0 as long as neither the device nor the communicator has failed. */
int ex_run_failed(const ex_run *run);

/* Weights and gradients of a tensor. */
const void *ex_weights(const ex_run *run, int32_t layer, int32_t which);
float *ex_gradients(const ex_run *run, int32_t layer, int32_t which);

/* product: y [rows, out] = x W^T for W [out, in] (added to y when `add`). Backward: gradient of W += d_y^T x,
 * then d_x [rows, in] = d_y W, which may be x itself. */
void ex_project(ex_run *run, const void *w, int64_t rows, int64_t in, int64_t out, const void *x, int add,
                void *y);
void ex_project_back(ex_run *run, const void *w, int64_t rows, int64_t in, int64_t out, const void *x,
                     const void *d_y, void *d_x, float *d_w);

/* exchange: DeepSpeed-Ulysses (Jacobs et al. 2023, section 3), sp > 1. From rows of all heads for this rank's
 * tokens to rows of this rank's heads for all tokens, and back; kv 0: queries alone. Scratch comes from the
 * arena and is given back. */
int ex_to_heads(ex_run *run, const void *by_tokens, int with_kv, void *by_heads);
int ex_to_tokens(ex_run *run, const void *by_heads, int with_kv, void *by_tokens);

/* layer: forward from kept->x; `out` [T, hidden], which may be x2, gets the layer's output; ex_layer_keep
 * stops before the last product, which a backward pass does not need. Backward turns run->gradient from that
 * of the output into that of the input. */
int ex_layer_keep(ex_run *run, int32_t layer, ex_kept *kept);
void ex_layer_finish(ex_run *run, int32_t layer, const ex_kept *kept, void *out);
int ex_layer_back(ex_run *run, int32_t layer, const ex_kept *kept);

/* head: final norm, logits and loss of x [T, hidden], chunk_rows tokens at a time, forward and backward at
 * once: run->gradient is overwritten. */
int ex_head_run(ex_run *run, const void *x);

#endif
