/* What every launch of an attention kernel needs on the host's side, and conversions of elements. */
#ifndef EX_DEVICE_CUDA_ATTENTION_LAUNCH_CUH
#define EX_DEVICE_CUDA_ATTENTION_LAUNCH_CUH

#include <cmath>

#include <cuda_bf16.h>

#include "device/cuda/attention_work.cuh"

namespace ex_attention
{

static __device__ __forceinline__ float to_float(float x)
{
    return x;
}

static __device__ __forceinline__ float to_float(__nv_bfloat16 x)
{
    return __bfloat162float(x);
}

template <typename T> __device__ T from_float(float x);

template <> __device__ __forceinline__ float from_float<float>(float x)
{
    return x;
}

template <> __device__ __forceinline__ __nv_bfloat16 from_float<__nv_bfloat16>(float x)
{
    return __float2bfloat16_rn(x);
}

static inline cudaStream_t stream_of(const ex_device *device)
{
    return (cudaStream_t)device->stream;
}

static inline float scale_of(const shape &sizes)
{
    return (float)(1.0 / std::sqrt((double)sizes.dim));
}

/* Makes a failure of the runtime the device's; false when there was one. */
static inline bool succeeded(ex_device *device, cudaError_t status, const char *what)
{
    if (status != cudaSuccess)
        ex_fail(&device->fault, "%s: %s: %s (%s)", device->name, what, cudaGetErrorString(status),
                cudaGetErrorName(status));
    return status == cudaSuccess;
}

static inline void launched(ex_device *device, const char *kernel)
{
    succeeded(device, cudaGetLastError(), kernel);
}

/* The grid for tiles of `rows` rows and `heads` heads, and `bytes` of shared memory for the kernel; false
 * when there is nothing to launch, or a failure. */
template <typename K>
static inline bool prepare(ex_device *device, const ex_documents *documents, int64_t tokens, int32_t rows,
                           int32_t heads, K *kernel, int32_t bytes, work_list *work, dim3 *grid)
{
    if (device->fault.failed)
        return false;
    const int64_t blocks = list_work(documents, tokens, rows, work);
    if (blocks > INT32_MAX || heads > 65535) {
        ex_fail(
            &device->fault,
            "%s: attention over %lld documents of %lld tokens and %d heads takes a grid of %lld x %d; the "
            "most is 2147483647 x 65535",
            device->name, (long long)documents->count, (long long)tokens, (int)heads, (long long)blocks,
            (int)heads);
        return false;
    }
    *grid = dim3((unsigned)blocks, (unsigned)heads);
    /* 48 KiB is what a kernel gets without asking. */
    return blocks > 0 &&
           (bytes <= 48 * 1024 ||
            succeeded(device,
                      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
                      "shared memory of an attention kernel"));
}

} // namespace ex_attention

#endif
