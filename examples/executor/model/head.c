#include "model/run.h"

static int weighs_anything(const float *weights, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (weights[i] != 0)
            return 1;
    return 0;
}

/* What one chunk of tokens needs beside x. */
typedef struct chunk {
    void *normed;   /* [rows, hidden], then its gradient */
    float *inverse; /* [rows] */
    void *logits;   /* [rows, vocab], then their gradient */
} chunk;

/* Tokens first .. first + rows - 1. */
static void run_chunk(ex_run *run, const chunk *c, const void *x, int64_t first, int64_t rows)
{
    const ex_shape *s = run->shape;
    ex_device *device = run->device;
    int64_t skipped = first * s->hidden * run->e;
    const void *x_rows = (const char *)x + skipped;
    void *d_rows = (char *)run->gradient + skipped;
    int32_t table = s->tied_embeddings ? EX_EMBEDDING : EX_OUTPUT;
    const void *w_norm = ex_weights(run, -1, EX_FINAL_NORM);
    const void *w_out = ex_weights(run, -1, table);
    device->ops->norm(device, x_rows, w_norm, rows, s->hidden, s->epsilon, c->normed, c->inverse);
    ex_project(run, w_out, rows, s->hidden, s->vocab, c->normed, 0, c->logits);
    device->ops->cross_entropy(device, c->logits, run->targets + first, run->weights + first, rows, s->vocab,
                               run->model->loss);
    ex_project_back(run, w_out, rows, s->hidden, s->vocab, c->normed, c->logits, c->normed,
                    ex_gradients(run, -1, table));
    device->ops->norm_back(device, x_rows, w_norm, c->inverse, c->normed, rows, s->hidden, d_rows,
                           ex_gradients(run, -1, EX_FINAL_NORM));
}

int ex_head_run(ex_run *run, const void *x)
{
    const ex_shape *s = run->shape;
    int64_t most = run->model->chunk_rows < run->T ? run->model->chunk_rows : run->T;
    int64_t mark = run->model->arena_used;
    chunk c = {.normed = ex_push_elements(run, most, s->hidden),
               .inverse = ex_push(run, most * (int64_t)sizeof(float)),
               .logits = ex_push_elements(run, most, s->vocab)};
    if (ex_run_failed(run))
        return -1;
    run->device->ops->zero(run->device, run->gradient, run->T * s->hidden * run->e);
    for (int64_t first = 0; first < run->T; first += most) {
        int64_t rows = run->T - first < most ? run->T - first : most;
        /* Prompts, padding and dummies: no loss, no gradient. */
        if (weighs_anything(run->pack->weights + first, rows))
            run_chunk(run, &c, x, first, rows);
    }
    run->model->arena_used = mark;
    return 0;
}
