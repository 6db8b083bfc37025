#include "model/run.h"

static int64_t bytes_of(const ex_run *run, int64_t width)
{
    return run->T * width * run->e;
}

/* What attention keeps. The MLP's comes on top once attention has given its scratch back, and goes before
 * attention's backward pass needs any. */
static int push_attention(ex_run *run, ex_kept *k)
{
    k->inverse1 = ex_push(run, run->T * (int64_t)sizeof(float));
    k->normed1 = run->sp == 1 ? ex_push_elements(run, run->T, run->shape->hidden) : NULL;
    k->qkv = ex_push_elements(run, run->S, run->w_mine);
    k->by_heads = ex_push_elements(run, run->S, run->q_mine);
    k->log_sums = ex_push(run, run->S * run->mine.heads * (int64_t)sizeof(float));
    k->by_tokens = run->sp == 1 ? k->by_heads : ex_push_elements(run, run->T, run->q_all);
    return ex_run_failed(run) ? -1 : 0;
}

static int push_mlp(ex_run *run, ex_kept *k)
{
    const ex_shape *s = run->shape;
    k->mlp = run->model->arena_used;
    int64_t short_of = k->begin + bytes_of(run, s->hidden) - run->model->arena_used;
    if (short_of > 0) /* few and narrow heads: x2 is to lie a row of hidden above the frame's beginning */
        ex_push(run, short_of);
    k->x2 = ex_push_elements(run, run->T, s->hidden);
    k->inverse2 = ex_push(run, run->T * (int64_t)sizeof(float));
    k->normed2 = ex_push_elements(run, run->T, s->hidden);
    k->gate_up = ex_push_elements(run, run->T, 2 * (int64_t)s->ffn);
    k->gated = ex_push_elements(run, run->T, s->ffn);
    return ex_run_failed(run) ? -1 : 0;
}

/* norm1 of the layer's input; the inverses come out the same each time. */
static void norm1(ex_run *run, int32_t layer, const ex_kept *k, void *normed)
{
    const ex_shape *s = run->shape;
    run->device->ops->norm(run->device, k->x, ex_weights(run, layer, EX_NORM1), run->T, s->hidden, s->epsilon,
                           normed, k->inverse1);
}

/* Queries, keys and values [T, w_all] of all heads, turned to their positions. */
static void make_qkv(ex_run *run, int32_t layer, const void *normed, void *qkv)
{
    const ex_shape *s = run->shape;
    const ex_device_ops *ops = run->device->ops;
    ex_project(run, ex_weights(run, layer, EX_QKV), run->T, s->hidden, run->w_all, normed, 0, qkv);
    if (s->qkv_bias)
        ops->add_bias(run->device, qkv, ex_weights(run, layer, EX_QKV_BIAS), run->T, run->w_all);
    ops->rotary(run->device, qkv, run->positions, run->T, run->w_all, s->heads + s->kv_heads, s->head_dim,
                s->theta, 0);
}

static int attend(ex_run *run, int32_t layer, const ex_kept *k)
{
    const ex_device_ops *ops = run->device->ops;
    if (run->sp == 1) {
        norm1(run, layer, k, k->normed1);
        make_qkv(run, layer, k->normed1, k->qkv);
    } else {
        int64_t mark = run->model->arena_used;
        void *qkv = ex_push_elements(run, run->T, run->w_all);
        int64_t before_normed = run->model->arena_used;
        void *normed = ex_push_elements(run, run->T, run->shape->hidden);
        if (ex_run_failed(run))
            return -1;
        norm1(run, layer, k, normed);
        make_qkv(run, layer, normed, qkv);
        run->model->arena_used = before_normed;
        if (ex_to_heads(run, qkv, 1, k->qkv))
            return -1;
        run->model->arena_used = mark;
    }
    ops->attention(run->device, k->qkv, &run->documents, run->S, run->mine, k->by_heads, k->log_sums);
    return run->sp == 1 ? 0 : ex_to_tokens(run, k->by_heads, 0, k->by_tokens);
}

int ex_layer_keep(ex_run *run, int32_t layer, ex_kept *k)
{
    const ex_shape *s = run->shape;
    ex_device *device = run->device;
    if (push_attention(run, k) || attend(run, layer, k) || push_mlp(run, k))
        return -1;
    device->ops->copy(device, k->x2, k->x, bytes_of(run, s->hidden));
    ex_project(run, ex_weights(run, layer, EX_OUT), run->T, run->q_all, s->hidden, k->by_tokens, 1, k->x2);
    device->ops->norm(device, k->x2, ex_weights(run, layer, EX_NORM2), run->T, s->hidden, s->epsilon,
                      k->normed2, k->inverse2);
    ex_project(run, ex_weights(run, layer, EX_GATE_UP), run->T, s->hidden, 2 * (int64_t)s->ffn, k->normed2, 0,
               k->gate_up);
    device->ops->swiglu(device, k->gate_up, run->T, s->ffn, k->gated);
    return ex_run_failed(run) ? -1 : 0;
}

void ex_layer_finish(ex_run *run, int32_t layer, const ex_kept *k, void *out)
{
    const ex_shape *s = run->shape;
    if (out != k->x2)
        run->device->ops->copy(run->device, out, k->x2, bytes_of(run, s->hidden));
    ex_project(run, ex_weights(run, layer, EX_DOWN), run->T, s->ffn, s->hidden, k->gated, 1, out);
}

/* Turns run->gradient from that of the layer's output into that of x2. Each gradient takes the place of what
 * it is the gradient of, once that has been read for the last time, so that nothing is needed beside what is
 * kept. */
static void mlp_back(ex_run *run, int32_t layer, const ex_kept *k)
{
    const ex_shape *s = run->shape;
    ex_device *device = run->device;
    ex_project_back(run, ex_weights(run, layer, EX_DOWN), run->T, s->ffn, s->hidden, k->gated, run->gradient,
                    k->gated, ex_gradients(run, layer, EX_DOWN));
    device->ops->swiglu_back(device, k->gate_up, k->gated, run->T, s->ffn, k->gate_up);
    ex_project_back(run, ex_weights(run, layer, EX_GATE_UP), run->T, s->hidden, 2 * (int64_t)s->ffn,
                    k->normed2, k->gate_up, k->normed2, ex_gradients(run, layer, EX_GATE_UP));
    device->ops->norm_back(device, k->x2, ex_weights(run, layer, EX_NORM2), k->inverse2, k->normed2, run->T,
                           s->hidden, run->gradient, ex_gradients(run, layer, EX_NORM2));
}

/* The gradient of attention's input by heads, [S, w_mine], from that of x2. */
static int attend_back(ex_run *run, int32_t layer, const ex_kept *k, void *d_qkv)
{
    ex_device *device = run->device;
    void *d_by_heads = ex_push_elements(run, run->S, run->q_mine);
    if (!d_by_heads)
        return -1;
    /* Attention's backward pass reads by_heads; by_tokens, where it is another, has been read here. */
    void *d_by_tokens = run->sp == 1 ? d_by_heads : k->by_tokens;
    ex_project_back(run, ex_weights(run, layer, EX_OUT), run->T, run->q_all, run->shape->hidden, k->by_tokens,
                    run->gradient, d_by_tokens, ex_gradients(run, layer, EX_OUT));
    if (run->sp > 1 && ex_to_heads(run, d_by_tokens, 0, d_by_heads))
        return -1;
    void *scratch = ex_push(run, device->ops->attention_scratch(device, run->S, run->mine));
    if (!scratch)
        return -1;
    device->ops->attention_back(device, k->qkv, k->by_heads, d_by_heads, k->log_sums, &run->documents, run->S,
                                run->mine, d_qkv, scratch);
    return 0;
}

/* Turns run->gradient from that of x2 into that of the layer's input. */
static int attention_back(ex_run *run, int32_t layer, const ex_kept *k)
{
    const ex_shape *s = run->shape;
    ex_model *m = run->model;
    ex_device *device = run->device;
    void *d_all = ex_push_elements(run, run->T, run->w_all);
    int64_t mark = m->arena_used;
    void *d_qkv = run->sp == 1 ? d_all : ex_push_elements(run, run->S, run->w_mine);
    int64_t above = m->arena_used;
    if (ex_run_failed(run) || attend_back(run, layer, k, d_qkv))
        return -1;
    m->arena_used = above;
    if (run->sp > 1 && ex_to_tokens(run, d_qkv, 1, d_all))
        return -1;
    m->arena_used = mark;
    device->ops->rotary(device, d_all, run->positions, run->T, run->w_all, s->heads + s->kv_heads,
                        s->head_dim, s->theta, 1);
    if (s->qkv_bias)
        device->ops->bias_back(device, d_all, run->T, run->w_all, ex_gradients(run, layer, EX_QKV_BIAS));
    void *normed = run->sp == 1 ? k->normed1 : ex_push_elements(run, run->T, s->hidden);
    if (!normed)
        return -1;
    if (run->sp > 1)
        norm1(run, layer, k, normed);
    ex_project_back(run, ex_weights(run, layer, EX_QKV), run->T, s->hidden, run->w_all, normed, d_all, normed,
                    ex_gradients(run, layer, EX_QKV));
    device->ops->norm_back(device, k->x, ex_weights(run, layer, EX_NORM1), k->inverse1, normed, run->T,
                           s->hidden, run->gradient, ex_gradients(run, layer, EX_NORM1));
    return 0;
}

int ex_layer_back(ex_run *run, int32_t layer, const ex_kept *k)
{
    mlp_back(run, layer, k);
    run->model->arena_used = k->mlp; /* the MLP is done with */
    return attention_back(run, layer, k);
}
