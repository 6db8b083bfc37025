/* Operations on vectors: sums, biases, the optimiser. */
#include <math.h>

#include "device/cpu_elements.h"

enum { BLOCK = EX_CPU_BLOCK };

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Elements [at, at + count) of `to` += those of `from` from 0. */
static void add_elements(ex_type type, void *to, int64_t at, const void *from, int64_t count)
{
    float to_buffer[BLOCK], from_buffer[BLOCK];
    for (int64_t j = 0; j < count; j += BLOCK) {
        int64_t n = least(BLOCK, count - j);
        const float *more = ex_cpu_load(type, from, j, n, from_buffer);
        ex_cpu_load(type, to, at + j, n, to_buffer);
        float *sums = ex_cpu_open_block(type, to, at + j, to_buffer);
        for (int64_t i = 0; i < n; i++)
            sums[i] += more[i];
        ex_cpu_close_block(type, to, at + j, n, sums);
    }
}

void ex_cpu_add(ex_device *device, void *to, const void *from, int64_t count)
{
    if (!device->fault.failed)
        add_elements(device->type, to, 0, from, count);
}

void ex_cpu_add_bias(ex_device *device, void *x, const void *bias, int64_t T, int64_t width)
{
    if (device->fault.failed)
        return;
    for (int64_t t = 0; t < T; t++)
        add_elements(device->type, x, t * width, bias, width);
}

void ex_cpu_bias_back(ex_device *device, const void *d_x, int64_t T, int64_t width, float *grad)
{
    if (device->fault.failed)
        return;
    float buffer[BLOCK];
    for (int64_t j = 0; j < width; j += BLOCK) {
        double sums[BLOCK] = {0};
        int64_t n = least(BLOCK, width - j);
        for (int64_t t = 0; t < T; t++) {
            const float *d = ex_cpu_load(device->type, d_x, t * width + j, n, buffer);
            for (int64_t i = 0; i < n; i++)
                sums[i] += (double)d[i];
        }
        for (int64_t i = 0; i < n; i++)
            grad[j + i] = (float)((double)grad[j + i] + sums[i]);
    }
}

void ex_cpu_adam(ex_device *device, int64_t count, const float *grad, float *master, float *mean,
                 float *variance, void *weights, ex_adam options)
{
    if (device->fault.failed)
        return;
    const float beta1 = options.beta1, beta2 = options.beta2, rate = options.learning_rate;
    const float scale1 = 1.0f / options.correction1, scale2 = 1.0f / options.correction2;
    for (int64_t j = 0; j < count; j += BLOCK) {
        int64_t n = least(BLOCK, count - j);
        for (int64_t i = j; i < j + n; i++) {
            float g = grad[i] * options.gradient_scale;
            mean[i] = beta1 * mean[i] + (1.0f - beta1) * g;
            variance[i] = beta2 * variance[i] + (1.0f - beta2) * g * g;
            float step = mean[i] * scale1 / (sqrtf(variance[i] * scale2) + options.epsilon);
            master[i] -= rate * (step + options.weight_decay * master[i]);
        }
        ex_cpu_cast(device, master + j, ex_cpu_at(device->type, weights, j), n);
    }
}

void ex_cpu_cast(ex_device *device, const float *from, void *to, int64_t count)
{
    if (device->fault.failed)
        return;
    if (device->type == EX_F32 && count > 0)
        memmove(to, from, (size_t)count * sizeof *from);
    ex_cpu_close_block(device->type, to, 0, count, from);
}

void ex_cpu_sum_squares(ex_device *device, const float *x, int64_t count, double *sum)
{
    if (device->fault.failed)
        return;
    double lanes[EX_CPU_LANES] = {0};
    int64_t i = 0;
    for (; i + EX_CPU_LANES <= count; i += EX_CPU_LANES)
        for (int64_t lane = 0; lane < EX_CPU_LANES; lane++)
            lanes[lane] += (double)x[i + lane] * (double)x[i + lane];
    for (int64_t lane = 0; i < count; i++, lane++)
        lanes[lane] += (double)x[i] * (double)x[i];
    for (int64_t lane = 0; lane < EX_CPU_LANES; lane++)
        *sum += lanes[lane];
}
