/* Rotary positions, and heads between sequence and head parallelism. */
#include <inttypes.h>
#include <math.h>

#include "device/cpu_elements.h"

enum { MOST_PAIRS = EX_CPU_MOST_DIM / 2 };

/* Whether a head fits what is held on the stack and in the scratch. */
static int head_fits(ex_device *device, int32_t dim)
{
    if (dim <= EX_CPU_MOST_DIM)
        return 1;
    ex_fail(&device->fault, "%s: a head of %d elements; the CPU's operations hold heads of at most %d",
            device->name, (int)dim, (int)EX_CPU_MOST_DIM);
    return 0;
}

/* Angles are taken in double: a float's would be wrong by 1 / 100 at position 200000. */
void ex_cpu_rotary(ex_device *device, void *x, const int32_t *positions, int64_t T, int64_t stride,
                   int32_t heads, int32_t dim, float theta, int back)
{
    if (device->fault.failed || !head_fits(device, dim))
        return;
    double frequency[MOST_PAIRS];
    float cosine[MOST_PAIRS], sine[MOST_PAIRS], buffer[EX_CPU_MOST_DIM];
    int32_t half = dim / 2;
    for (int32_t i = 0; i < half; i++)
        frequency[i] = pow((double)theta, -2.0 * i / dim);
    for (int64_t t = 0; t < T; t++) {
        for (int32_t i = 0; i < half; i++) {
            double angle = positions[t] * frequency[i];
            cosine[i] = (float)cos(angle);
            sine[i] = (float)(back ? -sin(angle) : sin(angle));
        }
        for (int32_t h = 0; h < heads; h++) {
            int64_t at = t * stride + (int64_t)h * dim;
            ex_cpu_load(device->type, x, at, dim, buffer);
            float *head = ex_cpu_open_block(device->type, x, at, buffer);
            for (int32_t i = 0; i < half; i++) {
                float a = head[i], b = head[half + i];
                head[i] = a * cosine[i] - b * sine[i];
                head[half + i] = a * sine[i] + b * cosine[i];
            }
            ex_cpu_close_block(device->type, x, at, dim, head);
        }
    }
}

/* How heads lie on one of sp ranks. */
typedef struct share {
    int64_t heads, kv_heads; /* of a rank */
    int32_t ranks_per_kv;    /* that hold the same key-value head */
    int64_t width;           /* elements of a rank's row */
} share;

static int share_of(ex_device *device, ex_heads all, int32_t sp, share *out)
{
    if (sp < 1 || all.heads % sp || (all.kv_heads % sp && (all.kv_heads == 0 || sp % all.kv_heads))) {
        ex_fail(&device->fault, "%s: %d heads and %d key-value heads do not divide among %d ranks",
                device->name, (int)all.heads, (int)all.kv_heads, (int)sp);
        return -1;
    }
    out->heads = all.heads / sp;
    out->kv_heads = all.kv_heads && all.kv_heads < sp ? 1 : all.kv_heads / sp;
    out->ranks_per_kv = all.kv_heads && all.kv_heads < sp ? sp / all.kv_heads : 1;
    out->width = (out->heads + 2 * out->kv_heads) * all.dim;
    return 0;
}

/* Rank p's first key-value head. */
static int64_t first_kv(const share *part, int32_t p)
{
    return part->ranks_per_kv > 1 ? p / part->ranks_per_kv : p * part->kv_heads;
}

void ex_cpu_split(ex_device *device, const void *x, int64_t T, ex_heads all, int32_t sp, void *out)
{
    share part;
    if (device->fault.failed || share_of(device, all, sp, &part))
        return;
    ex_type type = device->type;
    int64_t element = (int64_t)ex_type_bytes(type), dim = all.dim;
    int64_t width = (all.heads + 2 * (int64_t)all.kv_heads) * dim;
    size_t query_bytes = (size_t)(part.heads * dim * element),
           kv_bytes = (size_t)(part.kv_heads * dim * element);
    for (int32_t p = 0; p < sp; p++) {
        for (int64_t t = 0; t < T; t++) {
            char *to = ex_cpu_at(type, out, (p * T + t) * part.width);
            const char *row = ex_cpu_at_const(type, x, t * width);
            memcpy(to, row + p * part.heads * dim * element, query_bytes);
            for (int64_t kind = 0; kind < 2 && kv_bytes; kind++)
                memcpy(to + query_bytes + (size_t)kind * kv_bytes,
                       row + (all.heads + kind * all.kv_heads + first_kv(&part, p)) * dim * element,
                       kv_bytes);
        }
    }
}

/* One key-value head from the ranks that hold it, summed in fp32 in their order and rounded once. */
static void merge_head(ex_type type, const void *x, int64_t from, int64_t apart, int32_t ranks, int64_t dim,
                       void *out, int64_t at)
{
    float sums[EX_CPU_BLOCK], buffer[EX_CPU_BLOCK];
    for (int64_t j = 0; j < dim; j += EX_CPU_BLOCK) {
        int64_t n = dim - j < EX_CPU_BLOCK ? dim - j : EX_CPU_BLOCK;
        memset(sums, 0, sizeof sums);
        for (int32_t r = 0; r < ranks; r++) {
            const float *head = ex_cpu_load(type, x, from + r * apart + j, n, buffer);
            for (int64_t i = 0; i < n; i++)
                sums[i] += head[i];
        }
        float *to = ex_cpu_open_block(type, out, at + j, sums);
        if (to != sums)
            memcpy(to, sums, (size_t)n * sizeof *to);
        ex_cpu_close_block(type, out, at + j, n, sums);
    }
}

void ex_cpu_merge(ex_device *device, const void *x, int64_t T, ex_heads all, int32_t sp, void *out)
{
    share part;
    if (device->fault.failed || share_of(device, all, sp, &part))
        return;
    ex_type type = device->type;
    int64_t dim = all.dim, width = (all.heads + 2 * (int64_t)all.kv_heads) * dim;
    size_t query_bytes = (size_t)(part.heads * dim) * ex_type_bytes(type);
    for (int64_t t = 0; t < T; t++) {
        for (int32_t p = 0; p < sp; p++)
            memcpy(ex_cpu_at(type, out, t * width + p * part.heads * dim),
                   ex_cpu_at_const(type, x, (p * T + t) * part.width), query_bytes);
        for (int64_t kind = 0; kind < 2; kind++) {
            for (int64_t g = 0; g < all.kv_heads; g++) {
                int64_t p = part.ranks_per_kv > 1 ? g * part.ranks_per_kv : g / part.kv_heads;
                int64_t place = part.heads + kind * part.kv_heads + g % part.kv_heads;
                merge_head(type, x, (p * T + t) * part.width + place * dim, T * part.width, part.ranks_per_kv,
                           dim, out, t * width + (all.heads + kind * all.kv_heads + g) * dim);
            }
        }
    }
}
