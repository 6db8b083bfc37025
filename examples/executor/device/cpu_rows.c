/* Operations on rows: embedding, RMSNorm, SwiGLU, cross-entropy. Sums that gradients are compared by are
 * folded into doubles block by block. */
#include <inttypes.h>
#include <math.h>

#include "device/cpu_elements.h"

enum { BLOCK = EX_CPU_BLOCK };

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

void ex_cpu_embed(ex_device *device, const void *table, const int32_t *tokens, int64_t T, int64_t width,
                  void *out)
{
    if (device->fault.failed)
        return;
    size_t bytes = (size_t)width * ex_type_bytes(device->type);
    for (int64_t t = 0; t < T; t++)
        memcpy(ex_cpu_at(device->type, out, t * width),
               ex_cpu_at_const(device->type, table, tokens[t] * width), bytes);
}

void ex_cpu_embed_back(ex_device *device, const void *d_out, const int32_t *tokens, const int32_t *order,
                       int64_t T, int64_t width, float *grad)
{
    if (device->fault.failed)
        return;
    for (int64_t from = 0, to; from < T; from = to) {
        int32_t token = tokens[order[from]];
        for (to = from + 1; to < T && tokens[order[to]] == token;)
            to++;
        for (int64_t j = 0; j < width; j += BLOCK) {
            double sums[BLOCK] = {0};
            int64_t n = least(BLOCK, width - j);
            for (int64_t i = from; i < to; i++) {
                float buffer[BLOCK];
                const float *d = ex_cpu_load(device->type, d_out, order[i] * width + j, n, buffer);
                for (int64_t x = 0; x < n; x++)
                    sums[x] += (double)d[x];
            }
            float *row = grad + token * width + j;
            for (int64_t x = 0; x < n; x++)
                row[x] = (float)((double)row[x] + sums[x]);
        }
    }
}

void ex_cpu_norm(ex_device *device, const void *x, const void *weight, int64_t T, int64_t width,
                 float epsilon, void *out, float *inverse)
{
    if (device->fault.failed)
        return;
    ex_type type = device->type;
    float x_buffer[BLOCK], w_buffer[BLOCK], out_buffer[BLOCK];
    for (int64_t t = 0; t < T; t++) {
        double squares = 0;
        for (int64_t j = 0; j < width; j += BLOCK) {
            int64_t n = least(BLOCK, width - j);
            const float *row = ex_cpu_load(type, x, t * width + j, n, x_buffer);
            squares += (double)ex_cpu_dot(row, row, n);
        }
        float factor = (float)(1.0 / sqrt(squares / (double)width + (double)epsilon));
        inverse[t] = factor;
        for (int64_t j = 0; j < width; j += BLOCK) {
            int64_t n = least(BLOCK, width - j);
            const float *row = ex_cpu_load(type, x, t * width + j, n, x_buffer);
            const float *w = ex_cpu_load(type, weight, j, n, w_buffer);
            float *to = ex_cpu_open_block(type, out, t * width + j, out_buffer);
            for (int64_t i = 0; i < n; i++)
                to[i] = row[i] * factor * w[i];
            ex_cpu_close_block(type, out, t * width + j, n, to);
        }
    }
}

/* With y = x / rms: d_x = (d_y - y mean(d_y y)) / rms for d_y = d_out weight, and d_weight = sum d_out y. */
static void norm_back_rows(ex_type type, const void *x, const void *weight, const float *inverse,
                           const void *d_out, int64_t T, int64_t width, void *d_x)
{
    float x_buffer[BLOCK], w_buffer[BLOCK], d_buffer[BLOCK], to_buffer[BLOCK];
    for (int64_t t = 0; t < T; t++) {
        double products = 0;
        for (int64_t j = 0; j < width; j += BLOCK) {
            int64_t n = least(BLOCK, width - j);
            const float *row = ex_cpu_load(type, x, t * width + j, n, x_buffer);
            const float *w = ex_cpu_load(type, weight, j, n, w_buffer);
            const float *d = ex_cpu_load(type, d_out, t * width + j, n, d_buffer);
            for (int64_t i = 0; i < n; i++)
                to_buffer[i] = d[i] * w[i];
            products += (double)ex_cpu_dot(to_buffer, row, n);
        }
        float factor = inverse[t];
        float along = (float)(products / (double)width) * factor * factor * factor;
        for (int64_t j = 0; j < width; j += BLOCK) {
            int64_t n = least(BLOCK, width - j);
            const float *row = ex_cpu_load(type, x, t * width + j, n, x_buffer);
            const float *w = ex_cpu_load(type, weight, j, n, w_buffer);
            const float *d = ex_cpu_load(type, d_out, t * width + j, n, d_buffer);
            ex_cpu_load(type, d_x, t * width + j, n, to_buffer);
            float *to = ex_cpu_open_block(type, d_x, t * width + j, to_buffer);
            for (int64_t i = 0; i < n; i++)
                to[i] += d[i] * w[i] * factor - row[i] * along;
            ex_cpu_close_block(type, d_x, t * width + j, n, to);
        }
    }
}

void ex_cpu_norm_back(ex_device *device, const void *x, const void *weight, const float *inverse,
                      const void *d_out, int64_t T, int64_t width, void *d_x, float *d_weight)
{
    if (device->fault.failed)
        return;
    ex_type type = device->type;
    float x_buffer[BLOCK], d_buffer[BLOCK];
    for (int64_t j = 0; j < width; j += BLOCK) {
        double sums[BLOCK] = {0};
        int64_t n = least(BLOCK, width - j);
        for (int64_t t = 0; t < T; t++) {
            const float *row = ex_cpu_load(type, x, t * width + j, n, x_buffer);
            const float *d = ex_cpu_load(type, d_out, t * width + j, n, d_buffer);
            float factor = inverse[t];
            for (int64_t i = 0; i < n; i++)
                sums[i] += (double)(d[i] * (row[i] * factor));
        }
        for (int64_t i = 0; i < n; i++)
            d_weight[j + i] = (float)((double)d_weight[j + i] + sums[i]);
    }
    norm_back_rows(type, x, weight, inverse, d_out, T, width, d_x);
}

void ex_cpu_swiglu(ex_device *device, const void *x, int64_t T, int64_t f, void *out)
{
    if (device->fault.failed)
        return;
    ex_type type = device->type;
    float gate_buffer[BLOCK], up_buffer[BLOCK], out_buffer[BLOCK];
    for (int64_t t = 0; t < T; t++) {
        for (int64_t j = 0; j < f; j += BLOCK) {
            int64_t n = least(BLOCK, f - j);
            const float *gate = ex_cpu_load(type, x, 2 * t * f + j, n, gate_buffer);
            const float *up = ex_cpu_load(type, x, 2 * t * f + f + j, n, up_buffer);
            float *to = ex_cpu_open_block(type, out, t * f + j, out_buffer);
            for (int64_t i = 0; i < n; i++)
                to[i] = gate[i] / (1.0f + ex_cpu_exp(-gate[i])) * up[i];
            ex_cpu_close_block(type, out, t * f + j, n, to);
        }
    }
}

/* Floats [n] become elements [at, at + n). */
static void store(ex_type type, void *base, int64_t at, int64_t n, const float *from)
{
    if (type == EX_F32)
        memcpy(ex_cpu_at(type, base, at), from, (size_t)n * sizeof *from);
    ex_cpu_close_block(type, base, at, n, from);
}

/* silu' = s (1 + g (1 - s)) for s = 1 / (1 + e^-g). d_x may be x: a loop that wrote there at once would not
 * be vectorised where it is. */
void ex_cpu_swiglu_back(ex_device *device, const void *x, const void *d_out, int64_t T, int64_t f, void *d_x)
{
    if (device->fault.failed)
        return;
    ex_type type = device->type;
    float gate_buffer[BLOCK], up_buffer[BLOCK], d_buffer[BLOCK], d_gate[BLOCK], d_up[BLOCK];
    for (int64_t t = 0; t < T; t++) {
        for (int64_t j = 0; j < f; j += BLOCK) {
            int64_t n = least(BLOCK, f - j), at = 2 * t * f + j;
            const float *gate = ex_cpu_load(type, x, at, n, gate_buffer);
            const float *up = ex_cpu_load(type, x, at + f, n, up_buffer);
            const float *d = ex_cpu_load(type, d_out, t * f + j, n, d_buffer);
            for (int64_t i = 0; i < n; i++) {
                float g = gate[i], s = 1.0f / (1.0f + ex_cpu_exp(-g)), u = up[i];
                d_gate[i] = d[i] * u * s * (1.0f + g * (1.0f - s));
                d_up[i] = d[i] * g * s;
            }
            store(type, d_x, at, n, d_gate);
            store(type, d_x, at + f, n, d_up);
        }
    }
}

/* Turns one row into weight * (softmax - one-hot); returns weight * nll. */
static double entropy_of_row(ex_type type, void *logits, int64_t at, int64_t vocab, int32_t target,
                             float weight)
{
    float buffer[BLOCK], exponentials[BLOCK];
    float most = -INFINITY;
    double sum = 0;
    for (int64_t j = 0; j < vocab; j += BLOCK) {
        int64_t n = least(BLOCK, vocab - j);
        most = ex_cpu_largest(ex_cpu_load(type, logits, at + j, n, buffer), n, most);
    }
    for (int64_t j = 0; j < vocab; j += BLOCK) {
        int64_t n = least(BLOCK, vocab - j);
        const float *row = ex_cpu_load(type, logits, at + j, n, buffer);
        sum += (double)ex_cpu_exponentials(exponentials, row, n, most);
    }
    float right = *ex_cpu_load(type, logits, at + target, 1, buffer);
    double loss = (double)weight * (log(sum) - ((double)right - (double)most));
    float factor = (float)((double)weight / sum);
    for (int64_t j = 0; j < vocab; j += BLOCK) {
        int64_t n = least(BLOCK, vocab - j);
        ex_cpu_load(type, logits, at + j, n, buffer);
        float *row = ex_cpu_open_block(type, logits, at + j, buffer);
        ex_cpu_exponentials(row, row, n, most);
        for (int64_t i = 0; i < n; i++)
            row[i] *= factor;
        if (target >= j && target < j + n)
            row[target - j] -= weight;
        ex_cpu_close_block(type, logits, at + j, n, row);
    }
    return loss;
}

void ex_cpu_cross_entropy(ex_device *device, void *logits, const int32_t *targets, const float *weights,
                          int64_t T, int64_t vocab, double *loss)
{
    if (device->fault.failed)
        return;
    for (int64_t t = 0; t < T; t++) {
        if (weights[t] == 0.0f) {
            memset(ex_cpu_at(device->type, logits, t * vocab), 0,
                   (size_t)vocab * ex_type_bytes(device->type));
            continue;
        }
        if (targets[t] < 0 || targets[t] >= vocab) {
            ex_fail(&device->fault, "%s: target %d of row %" PRId64 " is outside the vocabulary of %" PRId64,
                    device->name, (int)targets[t], t, vocab);
            return;
        }
        *loss += entropy_of_row(device->type, logits, t * vocab, vocab, targets[t], weights[t]);
    }
}
