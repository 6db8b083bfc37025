/* Elements of the CPU's device as floats, and the loops over floats that several operations share. Every loop
 * is one that compilers vectorise without being allowed to reorder sums: reductions keep EX_CPU_LANES partial
 * results. */
#ifndef EX_DEVICE_CPU_ELEMENTS_H
#define EX_DEVICE_CPU_ELEMENTS_H

#include "device/cpu.h"

static inline float ex_cpu_float(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline uint32_t ex_cpu_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* To bfloat16, the nearest, ties to even; a NaN stays one. */
static inline uint16_t ex_cpu_narrow(float x)
{
    uint32_t bits = ex_cpu_bits(x);
    uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
    uint32_t nan =
        0u - (uint32_t)((bits & 0x7fffffffu) > 0x7f800000u); /* masks: a branch would not vectorise */
    return (uint16_t)((rounded & ~nan) | ((bits >> 16 | 0x40u) & nan));
}

static inline char *ex_cpu_at(ex_type type, void *base, int64_t element)
{
    return (char *)base + element * (int64_t)ex_type_bytes(type);
}

static inline const char *ex_cpu_at_const(ex_type type, const void *base, int64_t element)
{
    return (const char *)base + element * (int64_t)ex_type_bytes(type);
}

/* Elements [at, at + n) as floats: where they are, or widened into `buffer` [n]. */
static inline const float *ex_cpu_load(ex_type type, const void *base, int64_t at, int64_t n, float *buffer)
{
    const char *from = ex_cpu_at_const(type, base, at);
    if (type == EX_F32)
        return (const float *)(const void *)from;
    const uint16_t *narrow = (const uint16_t *)(const void *)from;
    for (int64_t i = 0; i < n; i++)
        buffer[i] = ex_cpu_float((uint32_t)narrow[i] << 16);
    return buffer;
}

/* Where elements [at, at + n) are to be written as floats; ex_cpu_close then makes them elements. */
static inline float *ex_cpu_open_block(ex_type type, void *base, int64_t at, float *buffer)
{
    return type == EX_F32 ? (float *)(void *)ex_cpu_at(type, base, at) : buffer;
}

static inline void ex_cpu_close_block(ex_type type, void *base, int64_t at, int64_t n, const float *buffer)
{
    if (type == EX_F32)
        return;
    uint16_t *narrow = (uint16_t *)(void *)ex_cpu_at(type, base, at);
    for (int64_t i = 0; i < n; i++)
        narrow[i] = ex_cpu_narrow(buffer[i]);
}

/* e^x within 2 ulp; 0 below -87.3, where it would not be normal; above 88.3 a number near e^88.3, which is
 * finite. Cody and Waite's reduction x = n ln 2 + r, |r| <= ln 2 / 2, and Taylor's polynomial of degree 7
 * (its rest is below 6e-9). */
static inline float ex_cpu_exp(float x)
{
    float shifted = x * 1.44269504f + 12582912.0f; /* 1.5 * 2^23: n in the lowest bits */
    float n = shifted - 12582912.0f;
    float r = x - n * 0.693359375f; /* exact: 10 bits times an n of at most 8 */
    r = r + n * 2.12194440e-4f;
    float p = 1.98412698e-4f;
    p = p * r + 1.38888889e-3f;
    p = p * r + 8.33333333e-3f;
    p = p * r + 4.16666667e-2f;
    p = p * r + 1.66666667e-1f;
    p = p * r + 0.5f;
    p = p * r * r + r + 1.0f;
    uint32_t bits = ex_cpu_bits(p * ex_cpu_float((ex_cpu_bits(shifted) + 127u) << 23));
    /* Outside, what was computed means nothing. Masks, for a branch would not vectorise. */
    uint32_t below = 0u - (uint32_t)(x < -87.3f), above = 0u - (uint32_t)(x > 88.3f);
    return ex_cpu_float((bits & ~(below | above)) | (ex_cpu_bits(2.2e38f) & above));
}

static inline float ex_cpu_fold(const float *lanes)
{
    float halves[EX_CPU_LANES];
    memcpy(halves, lanes, sizeof halves);
    for (int width = EX_CPU_LANES / 2; width > 0; width /= 2)
        for (int i = 0; i < width; i++)
            halves[i] += halves[i + width];
    return halves[0];
}

/* Sum of products. */
static inline float ex_cpu_dot(const float *a, const float *b, int64_t n)
{
    float lanes[EX_CPU_LANES] = {0};
    int64_t i = 0;
    for (; i + EX_CPU_LANES <= n; i += EX_CPU_LANES)
        for (int64_t lane = 0; lane < EX_CPU_LANES; lane++)
            lanes[lane] += a[i + lane] * b[i + lane];
    for (int64_t lane = 0; i < n; i++, lane++)
        lanes[lane] += a[i] * b[i];
    return ex_cpu_fold(lanes);
}

/* The largest of x and `most`. */
static inline float ex_cpu_largest(const float *x, int64_t n, float most)
{
    float lanes[EX_CPU_LANES];
    for (int64_t lane = 0; lane < EX_CPU_LANES; lane++)
        lanes[lane] = most;
    int64_t i = 0;
    for (; i + EX_CPU_LANES <= n; i += EX_CPU_LANES)
        for (int64_t lane = 0; lane < EX_CPU_LANES; lane++)
            lanes[lane] = x[i + lane] > lanes[lane] ? x[i + lane] : lanes[lane];
    for (int64_t lane = 0; i < n; i++, lane++)
        lanes[lane] = x[i] > lanes[lane] ? x[i] : lanes[lane];
    for (int64_t lane = 0; lane < EX_CPU_LANES; lane++)
        most = lanes[lane] > most ? lanes[lane] : most;
    return most;
}

/* to = e^(x - shift), and its sum. `to` may be x. */
static inline float ex_cpu_exponentials(float *to, const float *x, int64_t n, float shift)
{
    float lanes[EX_CPU_LANES] = {0};
    for (int64_t i = 0; i < n; i++)
        to[i] = ex_cpu_exp(x[i] - shift);
    int64_t i = 0;
    for (; i + EX_CPU_LANES <= n; i += EX_CPU_LANES)
        for (int64_t lane = 0; lane < EX_CPU_LANES; lane++)
            lanes[lane] += to[i + lane];
    for (int64_t lane = 0; i < n; i++, lane++)
        lanes[lane] += to[i];
    return ex_cpu_fold(lanes);
}

#endif
