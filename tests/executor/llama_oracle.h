/* The transformer once more, in double precision, one sample at a time, token by token, in plain loops: what
 * examples/executor/model is held to. Shares nothing with it but the places of the tensors. */
#ifndef HBP_TESTS_EXECUTOR_LLAMA_ORACLE_H
#define HBP_TESTS_EXECUTOR_LLAMA_ORACLE_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/parameters.h"

typedef struct oracle {
    const ex_parameters *places; /* of tensors: names and offsets alone */
    const double *w;             /* [places->elements] */
    double *g;                   /* gradients are added to; NULL: forward alone */
} oracle;

/* What one layer computes for one sample of n tokens. */
typedef struct oracle_layer {
    double *x, *n1, *q, *k, *v, *p, *o, *x2, *n2, *gate, *up, *act; /* p [heads][n][n]: probabilities */
} oracle_layer;

static inline double *oracle_zeros(int64_t count)
{
    double *a = calloc((size_t)count + 1, sizeof *a);
    if (!a)
        abort();
    return a;
}

static inline const double *oracle_w(const oracle *o, int layer, int which)
{
    return o->w + ex_parameters_get(o->places, layer, which)->offset;
}

static inline double *oracle_g(const oracle *o, int layer, int which)
{
    return o->g + ex_parameters_get(o->places, layer, which)->offset;
}

/* y += W x, and the two transposes. */
static inline void oracle_times(const double *w, int out, int in, const double *x, double *y)
{
    for (int i = 0; i < out; i++)
        for (int j = 0; j < in; j++)
            y[i] += w[i * in + j] * x[j];
}

static inline void oracle_times_back(const double *w, int out, int in, const double *x, const double *d_y,
                                     double *d_x, double *d_w)
{
    for (int i = 0; i < out; i++)
        for (int j = 0; j < in; j++) {
            d_x[j] += w[i * in + j] * d_y[i];
            d_w[i * in + j] += d_y[i] * x[j];
        }
}

static inline double oracle_rms(const double *x, int width, double epsilon)
{
    double sum = 0;
    for (int i = 0; i < width; i++)
        sum += x[i] * x[i];
    return sqrt(sum / width + epsilon);
}

static inline void oracle_norm(const double *x, const double *w, int width, double epsilon, double *y)
{
    double rms = oracle_rms(x, width, epsilon);
    for (int i = 0; i < width; i++)
        y[i] = x[i] / rms * w[i];
}

/* y_i = w_i x_i / r, dr / dx_j = x_j / (width r). */
static inline void oracle_norm_back(const double *x, const double *w, int width, double epsilon,
                                    const double *d_y, double *d_x, double *d_w)
{
    double rms = oracle_rms(x, width, epsilon);
    double along = 0;
    for (int i = 0; i < width; i++) {
        d_w[i] += d_y[i] * x[i] / rms;
        along += d_y[i] * w[i] * x[i];
    }
    for (int i = 0; i < width; i++)
        d_x[i] += d_y[i] * w[i] / rms - x[i] * along / (width * rms * rms * rms);
}

static inline void oracle_turn(double *head, int dim, double theta, double position, double sign)
{
    for (int i = 0; i < dim / 2; i++) {
        double angle = sign * position / pow(theta, 2. * i / dim);
        double a = head[i];
        double b = head[i + dim / 2];
        head[i] = a * cos(angle) - b * sin(angle);
        head[i + dim / 2] = b * cos(angle) + a * sin(angle);
    }
}

static inline void oracle_attend(const ex_shape *s, int n, oracle_layer *l)
{
    int d = s->head_dim;
    for (int h = 0; h < s->heads; h++) {
        int kv = h / (s->heads / s->kv_heads);
        for (int i = 0; i < n; i++) {
            const double *q = l->q + ((int64_t)i * s->heads + h) * d;
            double *p = l->p + ((int64_t)h * n + i) * n;
            double sum = 0;
            for (int j = 0; j <= i; j++) {
                const double *k = l->k + ((int64_t)j * s->kv_heads + kv) * d;
                double score = 0;
                for (int c = 0; c < d; c++)
                    score += q[c] * k[c];
                p[j] = exp(score / sqrt(d)); /* scores are small here */
                sum += p[j];
            }
            for (int j = 0; j <= i; j++) {
                p[j] /= sum;
                for (int c = 0; c < d; c++)
                    l->o[((int64_t)i * s->heads + h) * d + c] +=
                        p[j] * l->v[((int64_t)j * s->kv_heads + kv) * d + c];
            }
        }
    }
}

static inline void oracle_attend_back(const ex_shape *s, int n, const oracle_layer *l, const double *d_o,
                                      double *d_q, double *d_k, double *d_v)
{
    int d = s->head_dim;
    for (int h = 0; h < s->heads; h++) {
        int kv = h / (s->heads / s->kv_heads);
        for (int i = 0; i < n; i++) {
            int64_t qi = ((int64_t)i * s->heads + h) * d;
            const double *p = l->p + ((int64_t)h * n + i) * n;
            double mean = 0;
            for (int pass = 0; pass < 2; pass++) /* first the mean of d_p under p, then d_score */
                for (int j = 0; j <= i; j++) {
                    int64_t kj = ((int64_t)j * s->kv_heads + kv) * d;
                    double d_p = 0;
                    for (int c = 0; c < d; c++)
                        d_p += d_o[qi + c] * l->v[kj + c];
                    if (pass == 0) {
                        mean += p[j] * d_p;
                        continue;
                    }
                    double d_score = p[j] * (d_p - mean) / sqrt(d);
                    for (int c = 0; c < d; c++) {
                        d_v[kj + c] += p[j] * d_o[qi + c];
                        d_q[qi + c] += d_score * l->k[kj + c];
                        d_k[kj + c] += d_score * l->q[qi + c];
                    }
                }
        }
    }
}

static inline void oracle_forward(const oracle *o, int layer, int n, oracle_layer *l, double *out)
{
    const ex_shape *s = &o->places->shape;
    int h = s->hidden, d = s->head_dim, qs = s->heads * d, ks = s->kv_heads * d, f = s->ffn;
    l->n1 = oracle_zeros((int64_t)n * h);
    l->q = oracle_zeros((int64_t)n * qs);
    l->k = oracle_zeros((int64_t)n * ks);
    l->v = oracle_zeros((int64_t)n * ks);
    l->p = oracle_zeros((int64_t)s->heads * n * n);
    l->o = oracle_zeros((int64_t)n * qs);
    l->x2 = oracle_zeros((int64_t)n * h);
    l->n2 = oracle_zeros((int64_t)n * h);
    l->gate = oracle_zeros((int64_t)n * f);
    l->up = oracle_zeros((int64_t)n * f);
    l->act = oracle_zeros((int64_t)n * f);
    const double *w = oracle_w(o, layer, EX_QKV);
    for (int t = 0; t < n; t++) {
        double *q = l->q + t * qs, *k = l->k + t * ks, *v = l->v + t * ks;
        oracle_norm(l->x + t * h, oracle_w(o, layer, EX_NORM1), h, s->epsilon, l->n1 + t * h);
        if (s->qkv_bias) {
            const double *b = oracle_w(o, layer, EX_QKV_BIAS);
            memcpy(q, b, (size_t)qs * sizeof *q);
            memcpy(k, b + qs, (size_t)ks * sizeof *k);
            memcpy(v, b + qs + ks, (size_t)ks * sizeof *v);
        }
        oracle_times(w, qs, h, l->n1 + t * h, q);
        oracle_times(w + qs * h, ks, h, l->n1 + t * h, k);
        oracle_times(w + (qs + ks) * h, ks, h, l->n1 + t * h, v);
        for (int i = 0; i < s->heads; i++)
            oracle_turn(q + i * d, d, s->theta, t, 1);
        for (int i = 0; i < s->kv_heads; i++)
            oracle_turn(k + i * d, d, s->theta, t, 1);
    }
    oracle_attend(s, n, l);
    for (int t = 0; t < n; t++) {
        memcpy(l->x2 + t * h, l->x + t * h, (size_t)h * sizeof(double));
        oracle_times(oracle_w(o, layer, EX_OUT), h, qs, l->o + t * qs, l->x2 + t * h);
        oracle_norm(l->x2 + t * h, oracle_w(o, layer, EX_NORM2), h, s->epsilon, l->n2 + t * h);
        oracle_times(oracle_w(o, layer, EX_GATE_UP), f, h, l->n2 + t * h, l->gate + t * f);
        oracle_times(oracle_w(o, layer, EX_GATE_UP) + f * h, f, h, l->n2 + t * h, l->up + t * f);
        for (int i = t * f; i < (t + 1) * f; i++)
            l->act[i] = l->gate[i] / (1 + exp(-l->gate[i])) * l->up[i];
        memcpy(out + t * h, l->x2 + t * h, (size_t)h * sizeof(double));
        oracle_times(oracle_w(o, layer, EX_DOWN), h, f, l->act + t * f, out + t * h);
    }
}

/* d [n][hidden] goes from the gradient of the layer's output to that of its input. */
static inline void oracle_backward(const oracle *o, int layer, int n, const oracle_layer *l, double *dx)
{
    const ex_shape *s = &o->places->shape;
    int h = s->hidden, d = s->head_dim, qs = s->heads * d, ks = s->kv_heads * d, f = s->ffn;
    double *d_o = oracle_zeros((int64_t)n * qs), *d_q = oracle_zeros((int64_t)n * qs);
    double *d_k = oracle_zeros((int64_t)n * ks), *d_v = oracle_zeros((int64_t)n * ks);
    for (int t = 0; t < n; t++) {
        double *d_act = oracle_zeros(f), *d_gate = oracle_zeros(f), *d_up = oracle_zeros(f);
        double *d_n2 = oracle_zeros(h);
        oracle_times_back(oracle_w(o, layer, EX_DOWN), h, f, l->act + t * f, dx + t * h, d_act,
                          oracle_g(o, layer, EX_DOWN));
        for (int i = 0; i < f; i++) {
            double g = l->gate[t * f + i], sigma = 1 / (1 + exp(-g));
            d_up[i] = d_act[i] * g * sigma;
            d_gate[i] = d_act[i] * l->up[t * f + i] * (sigma + g * sigma * (1 - sigma));
        }
        oracle_times_back(oracle_w(o, layer, EX_GATE_UP), f, h, l->n2 + t * h, d_gate, d_n2,
                          oracle_g(o, layer, EX_GATE_UP));
        oracle_times_back(oracle_w(o, layer, EX_GATE_UP) + f * h, f, h, l->n2 + t * h, d_up, d_n2,
                          oracle_g(o, layer, EX_GATE_UP) + f * h);
        oracle_norm_back(l->x2 + t * h, oracle_w(o, layer, EX_NORM2), h, s->epsilon, d_n2, dx + t * h,
                         oracle_g(o, layer, EX_NORM2));
        oracle_times_back(oracle_w(o, layer, EX_OUT), h, qs, l->o + t * qs, dx + t * h, d_o + t * qs,
                          oracle_g(o, layer, EX_OUT));
        free(d_act);
        free(d_gate);
        free(d_up);
        free(d_n2);
    }
    oracle_attend_back(s, n, l, d_o, d_q, d_k, d_v);
    const double *w = oracle_w(o, layer, EX_QKV);
    double *g = oracle_g(o, layer, EX_QKV);
    for (int t = 0; t < n; t++) {
        double *d_n1 = oracle_zeros(h);
        for (int i = 0; i < s->heads; i++)
            oracle_turn(d_q + t * qs + i * d, d, s->theta, t, -1);
        for (int i = 0; i < s->kv_heads; i++)
            oracle_turn(d_k + t * ks + i * d, d, s->theta, t, -1);
        const double *parts[] = {d_q + t * qs, d_k + t * ks, d_v + t * ks};
        const int widths[] = {qs, ks, ks};
        for (int p = 0, row = 0; p < 3; row += widths[p++]) {
            for (int i = 0; s->qkv_bias && i < widths[p]; i++)
                oracle_g(o, layer, EX_QKV_BIAS)[row + i] += parts[p][i];
            oracle_times_back(w + row * h, widths[p], h, l->n1 + t * h, parts[p], d_n1, g + row * h);
        }
        oracle_norm_back(l->x + t * h, oracle_w(o, layer, EX_NORM1), h, s->epsilon, d_n1, dx + t * h,
                         oracle_g(o, layer, EX_NORM1));
        free(d_n1);
    }
    free(d_o);
    free(d_q);
    free(d_k);
    free(d_v);
}

/* Weighted loss of n tokens of the last layer's output, and its gradient by it when o->g. */
static inline double oracle_head(const oracle *o, int n, const double *x, const int32_t *targets,
                                 const float *weights, double *dx)
{
    const ex_shape *s = &o->places->shape;
    int h = s->hidden, table = s->tied_embeddings ? EX_EMBEDDING : EX_OUTPUT;
    double loss = 0;
    for (int t = 0; t < n; t++) {
        double *normed = oracle_zeros(h), *d_normed = oracle_zeros(h), *logits = oracle_zeros(s->vocab);
        oracle_norm(x + t * h, oracle_w(o, -1, EX_FINAL_NORM), h, s->epsilon, normed);
        oracle_times(oracle_w(o, -1, table), s->vocab, h, normed, logits);
        double sum = 0;
        for (int v = 0; v < s->vocab; v++)
            sum += exp(logits[v]);
        if (weights[t] != 0) {
            loss += weights[t] * (log(sum) - logits[targets[t]]);
            for (int v = 0; v < s->vocab; v++)
                logits[v] = weights[t] * (exp(logits[v]) / sum - (v == targets[t]));
            if (o->g) {
                oracle_times_back(oracle_w(o, -1, table), s->vocab, h, normed, logits, d_normed,
                                  oracle_g(o, -1, table));
                oracle_norm_back(x + t * h, oracle_w(o, -1, EX_FINAL_NORM), h, s->epsilon, d_normed,
                                 dx + t * h, oracle_g(o, -1, EX_FINAL_NORM));
            }
        }
        free(normed);
        free(d_normed);
        free(logits);
    }
    return loss;
}

/* The weighted loss of one sample; its gradients are added to o->g. */
static inline double oracle_sample(const oracle *o, int n, const int32_t *tokens, const int32_t *targets,
                                   const float *weights)
{
    const ex_shape *s = &o->places->shape;
    int h = s->hidden;
    oracle_layer *layers = calloc((size_t)s->layers, sizeof *layers);
    double *x = oracle_zeros((int64_t)n * h), *dx = oracle_zeros((int64_t)n * h);
    for (int t = 0; t < n; t++)
        memcpy(x + t * h, oracle_w(o, -1, EX_EMBEDDING) + tokens[t] * h, (size_t)h * sizeof *x);
    for (int l = 0; l < s->layers; l++) {
        layers[l].x = x;
        x = oracle_zeros((int64_t)n * h);
        oracle_forward(o, l, n, &layers[l], x);
    }
    double loss = oracle_head(o, n, x, targets, weights, dx);
    free(x);
    for (int l = s->layers - 1; l >= 0; l--) {
        oracle_layer *k = &layers[l];
        if (o->g)
            oracle_backward(o, l, n, k, dx);
        double *all[] = {k->x, k->n1, k->q, k->k, k->v, k->p, k->o, k->x2, k->n2, k->gate, k->up, k->act};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
            free(all[i]);
    }
    for (int t = 0; o->g && t < n; t++)
        for (int i = 0; i < h; i++)
            oracle_g(o, -1, EX_EMBEDDING)[tokens[t] * h + i] += dx[t * h + i];
    free(dx);
    free(layers);
    return loss;
}

#endif
