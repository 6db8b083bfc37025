/* Checks shapes, picks kernels, and sums out times d_out, which both gradients need. */
#include "device/cuda/attention.cuh"

#include "device/cuda/attention_launch.cuh"
#include "device/cuda/attention_plain.cuh"
#include "device/cuda/attention_tensor.cuh"
#include "device/cuda/elements.cuh"

using namespace ex_attention;

namespace
{

constexpr int32_t delta_warps = 4;

/* delta[head, token] = sum of out times d_out over the head: a warp each, in fixed order. */
template <typename T>
__global__ void __launch_bounds__(32 * delta_warps)
    sum_products(const T *out, const T *d_out, shape sizes, float *delta)
{
    const int64_t at = (int64_t)blockIdx.x * delta_warps + threadIdx.x / 32; /* token * heads + head */
    const int32_t lane = (int32_t)threadIdx.x % 32;
    if (at >= sizes.tokens * sizes.heads)
        return;
    float sum = 0.0f;
    for (int32_t i = lane; i < sizes.dim; i += 32)
        sum = fmaf(ex_cuda::to_float(out[at * sizes.dim + i]), ex_cuda::to_float(d_out[at * sizes.dim + i]),
                   sum);
    sum = ex_cuda::warp_sum(sum);
    if (lane == 0)
        delta[at % sizes.heads * sizes.tokens + at / sizes.heads] = sum;
}

template <typename T>
void launch_products(ex_device *device, const void *out, const void *d_out, const shape &sizes, float *delta)
{
    const int64_t blocks = (sizes.tokens * sizes.heads + delta_warps - 1) / delta_warps;
    if (blocks > INT32_MAX) {
        ex_fail(&device->fault, "%s: attention over %lld tokens of %d heads; the most is %lld of both",
                device->name, (long long)sizes.tokens, (int)sizes.heads, (long long)delta_warps * INT32_MAX);
        return;
    }
    EX_LAUNCH(sum_products<T>, dim3((unsigned)blocks), dim3(32 * delta_warps), 0, stream_of(device),
              (const T *)out, (const T *)d_out, sizes, delta);
    launched(device, "attention_back, sums of out times d_out");
}

int64_t end_of(const ex_documents *documents)
{
    return documents->count > 0 ? documents->host_borders[documents->count] : 0;
}

/* Whether there is anything to do; bad shapes fail. */
bool usable(ex_device *device, const ex_documents *documents, int64_t S, ex_heads heads, shape *sizes)
{
    if (!ex_cuda::ready(device))
        return false;
    if (heads.dim < 1 || heads.dim > plain_widest)
        ex_fail(&device->fault, "%s: heads of %d dimensions; attention takes 1 to %d", device->name,
                (int)heads.dim, (int)plain_widest);
    else if (heads.kv_heads < 1 || heads.heads < 1 || heads.heads % heads.kv_heads)
        ex_fail(&device->fault, "%s: %d query heads do not divide among %d key-value heads", device->name,
                (int)heads.heads, (int)heads.kv_heads);
    else if (S < 0 || S > INT32_MAX || documents->count < 0 || end_of(documents) != S)
        ex_fail(&device->fault, "%s: %lld documents end at token %lld of %lld; the most is %d", device->name,
                (long long)documents->count, (long long)end_of(documents), (long long)S, INT32_MAX);
    *sizes = shape{S, heads.heads, heads.kv_heads, heads.dim};
    return !device->fault.failed && S > 0;
}

/* Whether the tensor-core kernels take it: whole chunks of 16 bytes, in rows and where they begin. */
bool fits_tensor(const ex_device *device, const shape &sizes, const void *qkv, const void *out,
                 const void *other)
{
    return device->type == EX_BF16 && sizes.dim <= 128 && sizes.dim % 8 == 0 &&
           ((uintptr_t)qkv | (uintptr_t)out | (uintptr_t)other) % 16 == 0;
}

} // namespace

void ex_cuda_attention(ex_device *device, const void *qkv, const ex_documents *documents, int64_t S,
                       ex_heads heads, void *out, float *log_sums)
{
    shape sizes;
    if (!usable(device, documents, S, heads, &sizes))
        return;
    const auto forward = fits_tensor(device, sizes, qkv, out, NULL) ? tensor_forward : plain_forward;
    forward(device, qkv, documents, sizes, out, log_sums);
}

void ex_cuda_attention_back(ex_device *device, const void *qkv, const void *out, const void *d_out,
                            const float *log_sums, const ex_documents *documents, int64_t S, ex_heads heads,
                            void *d_qkv, void *scratch)
{
    shape sizes;
    if (!usable(device, documents, S, heads, &sizes))
        return;
    float *const delta = (float *)scratch;
    if (device->type == EX_BF16)
        launch_products<__nv_bfloat16>(device, out, d_out, sizes, delta);
    else
        launch_products<float>(device, out, d_out, sizes, delta);
    const auto back = fits_tensor(device, sizes, qkv, d_out, d_qkv) ? tensor_back : plain_back;
    back(device, qkv, d_out, log_sums, delta, documents, sizes, d_qkv);
}

int64_t ex_cuda_attention_scratch(ex_device *device, int64_t S, ex_heads heads)
{
    (void)device;
    return S * heads.heads * (int64_t)sizeof(float);
}
