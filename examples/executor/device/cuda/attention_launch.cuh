/* What every launch of an attention kernel needs on the host's side. */
#ifndef EX_DEVICE_CUDA_ATTENTION_LAUNCH_CUH
#define EX_DEVICE_CUDA_ATTENTION_LAUNCH_CUH

#include <cmath>

#include "device/cuda/attention_work.cuh"
#include "device/cuda/device.cuh"

namespace ex_attention
{

using ex_cuda::launched;

static inline cudaStream_t stream_of(ex_device *device)
{
    return ex_cuda::of(device)->stream;
}

static inline float scale_of(const shape &sizes)
{
    return (float)(1.0 / std::sqrt((double)sizes.dim));
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
    if (bytes > ex_cuda::of(device)->shared_bytes) {
        ex_fail(&device->fault, "%s: attention takes %d bytes of shared memory a block; the most is %lld",
                device->name, (int)bytes, (long long)ex_cuda::of(device)->shared_bytes);
        return false;
    }
    *grid = dim3((unsigned)blocks, (unsigned)heads);
    /* 48 KiB is what a kernel gets without asking. */
    return blocks > 0 &&
           (bytes <= 48 * 1024 ||
            ex_cuda::succeeded(
                device, cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
                "shared memory of an attention kernel"));
}

} // namespace ex_attention

#endif
