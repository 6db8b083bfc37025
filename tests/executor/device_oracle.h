/* The operations of a device once more in double precision, by their definitions, in plain loops. Shares
 * nothing with any backend. */
#ifndef TESTS_EXECUTOR_DEVICE_ORACLE_H
#define TESTS_EXECUTOR_DEVICE_ORACLE_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "device/device.h"

static inline double *oracle_doubles(int64_t count)
{
    double *a = calloc((size_t)count + 1, sizeof *a);
    if (!a)
        abort();
    return a;
}

static inline double oracle_silu(double x)
{
    return x / (1 + exp(-x));
}

static inline void oracle_gemm(int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, const double *a,
                               const double *b, double beta, double *c)
{
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            double sum = 0;
            for (int64_t p = 0; p < k; p++)
                sum += (trans_a ? a[p * m + i] : a[i * k + p]) * (trans_b ? b[j * k + p] : b[p * n + j]);
            c[i * n + j] = (beta == 0 ? 0 : c[i * n + j]) + sum;
        }
    }
}

static inline void oracle_norm(const double *x, const double *weight, int64_t T, int64_t width,
                               double epsilon, double *out, double *inverse)
{
    for (int64_t t = 0; t < T; t++) {
        double squares = 0;
        for (int64_t j = 0; j < width; j++)
            squares += x[t * width + j] * x[t * width + j];
        inverse[t] = 1 / sqrt(squares / (double)width + epsilon);
        for (int64_t j = 0; j < width; j++)
            out[t * width + j] = x[t * width + j] * inverse[t] * weight[j];
    }
}

/* d(out_j)/d(x_i) = weight_j inverse ([i = j] - x_i x_j inverse^2 / width). */
static inline void oracle_norm_back(const double *x, const double *weight, const double *inverse,
                                    const double *d_out, int64_t T, int64_t width, double *d_x,
                                    double *d_weight)
{
    for (int64_t t = 0; t < T; t++) {
        const double *row = x + t * width, *d = d_out + t * width;
        double r = inverse[t];
        for (int64_t i = 0; i < width; i++) {
            d_weight[i] += d[i] * row[i] * r;
            for (int64_t j = 0; j < width; j++)
                d_x[t * width + i] +=
                    d[j] * weight[j] * r * ((i == j) - row[i] * row[j] * r * r / (double)width);
        }
    }
}

static inline void oracle_rotary(double *x, const int32_t *positions, int64_t T, int64_t stride,
                                 int32_t heads, int32_t dim, double theta, int back)
{
    for (int64_t t = 0; t < T; t++) {
        for (int32_t h = 0; h < heads; h++) {
            double *head = x + t * stride + h * dim;
            for (int32_t i = 0; i < dim / 2; i++) {
                double angle = positions[t] * pow(theta, -2.0 * i / dim) * (back ? -1 : 1);
                double a = head[i], b = head[i + dim / 2];
                head[i] = a * cos(angle) - b * sin(angle);
                head[i + dim / 2] = a * sin(angle) + b * cos(angle);
            }
        }
    }
}

/* Attention of one query head: probabilities [length, length] of one document, from its first row of qkv. */
typedef struct oracle_head {
    int64_t first, length, stride, query, key, value, out, out_stride, dim;
} oracle_head;

static inline oracle_head oracle_head_of(const int32_t *borders, int64_t document, ex_heads heads, int32_t h)
{
    int64_t dim = heads.dim, kv = h / (heads.heads / heads.kv_heads);
    oracle_head head = {.first = borders[document],
                        .length = borders[document + 1] - borders[document],
                        .stride = (heads.heads + 2 * heads.kv_heads) * dim,
                        .query = h * dim,
                        .key = (heads.heads + kv) * dim,
                        .value = (heads.heads + heads.kv_heads + kv) * dim,
                        .out = h * dim,
                        .out_stride = heads.heads * dim,
                        .dim = dim};
    return head;
}

static inline double oracle_dot(const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* Probabilities of query i of a head; its log-sum. */
static inline double oracle_probabilities(const oracle_head *head, const double *qkv, int64_t i, double *p)
{
    const double *q = qkv + (head->first + i) * head->stride + head->query;
    double most = -INFINITY, sum = 0;
    for (int64_t j = 0; j <= i; j++) {
        const double *k = qkv + (head->first + j) * head->stride + head->key;
        p[j] = oracle_dot(q, k, head->dim) / sqrt((double)head->dim);
        most = fmax(most, p[j]);
    }
    for (int64_t j = 0; j <= i; j++)
        sum += exp(p[j] - most);
    for (int64_t j = 0; j <= i; j++)
        p[j] = exp(p[j] - most) / sum;
    return most + log(sum);
}

static inline void oracle_attention(const double *qkv, const int32_t *borders, int64_t documents, int64_t S,
                                    ex_heads heads, double *out, double *log_sums)
{
    double *p = oracle_doubles(S);
    for (int64_t document = 0; document < documents; document++) {
        for (int32_t h = 0; h < heads.heads; h++) {
            oracle_head head = oracle_head_of(borders, document, heads, h);
            for (int64_t i = 0; i < head.length; i++) {
                double *to = out + (head.first + i) * head.out_stride + head.out;
                log_sums[h * S + head.first + i] = oracle_probabilities(&head, qkv, i, p);
                memset(to, 0, (size_t)head.dim * sizeof *to);
                for (int64_t j = 0; j <= i; j++)
                    for (int64_t d = 0; d < head.dim; d++)
                        to[d] += p[j] * qkv[(head.first + j) * head.stride + head.value + d];
            }
        }
    }
    free(p);
}

/* d_qkv += */
static inline void oracle_attention_back(const double *qkv, const double *d_out, const int32_t *borders,
                                         int64_t documents, int64_t S, ex_heads heads, double *d_qkv)
{
    double *p = oracle_doubles(S), *d_p = oracle_doubles(S);
    for (int64_t document = 0; document < documents; document++) {
        for (int32_t h = 0; h < heads.heads; h++) {
            oracle_head head = oracle_head_of(borders, document, heads, h);
            double scale = 1 / sqrt((double)head.dim);
            for (int64_t i = 0; i < head.length; i++) {
                int64_t row = (head.first + i) * head.stride;
                const double *d = d_out + (head.first + i) * head.out_stride + head.out;
                double mean = 0;
                oracle_probabilities(&head, qkv, i, p);
                for (int64_t j = 0; j <= i; j++) {
                    d_p[j] = oracle_dot(d, qkv + (head.first + j) * head.stride + head.value, head.dim);
                    mean += p[j] * d_p[j];
                }
                for (int64_t j = 0; j <= i; j++) {
                    int64_t other = (head.first + j) * head.stride;
                    double d_score = p[j] * (d_p[j] - mean) * scale;
                    for (int64_t x = 0; x < head.dim; x++) {
                        d_qkv[other + head.value + x] += p[j] * d[x];
                        d_qkv[other + head.key + x] += d_score * qkv[row + head.query + x];
                        d_qkv[row + head.query + x] += d_score * qkv[other + head.key + x];
                    }
                }
            }
        }
    }
    free(p);
    free(d_p);
}

static inline void oracle_swiglu(const double *x, int64_t T, int64_t f, double *out)
{
    for (int64_t t = 0; t < T; t++)
        for (int64_t j = 0; j < f; j++)
            out[t * f + j] = oracle_silu(x[2 * t * f + j]) * x[2 * t * f + f + j];
}

static inline void oracle_swiglu_back(const double *x, const double *d_out, int64_t T, int64_t f, double *d_x)
{
    for (int64_t t = 0; t < T; t++) {
        for (int64_t j = 0; j < f; j++) {
            double g = x[2 * t * f + j], s = 1 / (1 + exp(-g)), d = d_out[t * f + j];
            d_x[2 * t * f + j] = d * x[2 * t * f + f + j] * (s + g * s * (1 - s));
            d_x[2 * t * f + f + j] = d * oracle_silu(g);
        }
    }
}

/* For element e of rank p's row: which element of the whole row it is. */
static inline int64_t oracle_split_place(ex_heads all, int32_t sp, int32_t p, int64_t e)
{
    int64_t queries = (int64_t)(all.heads / sp) * all.dim;
    if (e < queries)
        return p * queries + e;
    int64_t kv_heads = all.kv_heads < sp ? 1 : all.kv_heads / sp;
    int64_t first =
        (int64_t)p * all.kv_heads / sp; /* both where heads are divided and where they are shared */
    int64_t kind = (e - queries) / (kv_heads * all.dim), rest = (e - queries) % (kv_heads * all.dim);
    return (all.heads + kind * all.kv_heads + first) * all.dim + rest;
}

static inline int64_t oracle_split_width(ex_heads all, int32_t sp)
{
    int64_t kv_heads = all.kv_heads && all.kv_heads < sp ? 1 : all.kv_heads / sp;
    return (all.heads / sp + 2 * kv_heads) * all.dim;
}

/* Loss; logits become gradients. */
static inline double oracle_cross_entropy(double *logits, const int32_t *targets, const double *weights,
                                          int64_t T, int64_t vocab)
{
    double loss = 0;
    for (int64_t t = 0; t < T; t++) {
        double *row = logits + t * vocab, sum = 0, most = -INFINITY;
        for (int64_t j = 0; j < vocab; j++)
            most = fmax(most, row[j]);
        for (int64_t j = 0; j < vocab; j++)
            sum += exp(row[j] - most);
        if (weights[t] != 0)
            loss += weights[t] * (most + log(sum) - row[targets[t]]);
        for (int64_t j = 0; j < vocab; j++)
            row[j] = weights[t] * (exp(row[j] - most) / sum - (weights[t] != 0 && j == targets[t]));
    }
    return loss;
}

static inline void oracle_adam(int64_t count, const double *grad, double *master, double *mean,
                               double *variance, ex_adam o)
{
    for (int64_t i = 0; i < count; i++) {
        double g = grad[i] * (double)o.gradient_scale;
        mean[i] = (double)o.beta1 * mean[i] + (1 - (double)o.beta1) * g;
        variance[i] = (double)o.beta2 * variance[i] + (1 - (double)o.beta2) * g * g;
        double m = mean[i] / (double)o.correction1, v = variance[i] / (double)o.correction2;
        master[i] -= (double)o.learning_rate *
                     (m / (sqrt(v) + (double)o.epsilon) + (double)o.weight_decay * master[i]);
    }
}

#endif
