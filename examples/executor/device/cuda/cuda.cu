/* A GPU: its memory, copies between it and the host, and its table of operations. */
#include <cstdio>
#include <cstring>
#include <new>

#include "device/cuda/attention.cuh"
#include "device/cuda/device.cuh"

namespace ex_cuda
{

namespace
{

constexpr int least_capability = 8; /* bfloat16 on tensor cores, cp.async: compute capability 8.0 */

void *allocate(ex_device *device, int64_t bytes)
{
    if (!ready(device))
        return nullptr;
    if (bytes < 0) {
        ex_fail(&device->fault, "%s: allocation of %lld bytes", device->name, (long long)bytes);
        return nullptr;
    }
    void *memory = nullptr;
    const cudaError_t status = cudaMalloc(&memory, bytes > 0 ? (size_t)bytes : 1);
    if (status != cudaSuccess) {
        size_t free_bytes = 0, total_bytes = 0;
        cudaGetLastError(); /* it has been seen */
        cudaMemGetInfo(&free_bytes, &total_bytes);
        ex_fail(&device->fault, "%s: allocation of %lld bytes: %s; %lld of %lld bytes are free", device->name,
                (long long)bytes, cudaGetErrorString(status), (long long)free_bytes, (long long)total_bytes);
        return nullptr;
    }
    of(device)->bytes[memory] = bytes;
    device->allocated += bytes;
    if (device->allocated > device->most_allocated)
        device->most_allocated = device->allocated;
    return memory;
}

/* Also after a failure: what is there is given back. */
void release(ex_device *device, void *memory)
{
    if (!memory)
        return;
    Device *const own = of(device);
    const auto found = own->bytes.find(memory);
    if (found == own->bytes.end()) {
        ex_fail(&device->fault, "%s: release of memory that it did not allocate", device->name);
        return;
    }
    device->allocated -= found->second;
    own->bytes.erase(found);
    cudaSetDevice(own->index);
    succeeded(device, cudaFree(memory), "cudaFree");
}

void memory(ex_device *device, int64_t *free_bytes, int64_t *total_bytes)
{
    size_t free_there = 0, total = 0;
    if (ready(device))
        succeeded(device, cudaMemGetInfo(&free_there, &total), "cudaMemGetInfo");
    *free_bytes = (int64_t)free_there;
    *total_bytes = (int64_t)total;
}

void sync(ex_device *device)
{
    if (!ready(device))
        return;
    succeeded(device, cudaStreamSynchronize(of(device)->stream), "sync");
    of(device)->staged = 0;
}

/* Through pinned memory, so that the copy waits its turn in the stream while the host goes on. */
void copy_in(ex_device *device, void *to, const void *host, int64_t bytes)
{
    Device *const own = of(device);
    for (int64_t at = 0, piece; at < bytes && ready(device); at += piece) {
        if (own->staged == staging_bytes)
            sync(device);
        piece = least(bytes - at, staging_bytes - own->staged);
        char *const staging = own->staging + own->staged;
        memcpy(staging, static_cast<const char *>(host) + at, (size_t)piece);
        succeeded(device,
                  cudaMemcpyAsync(static_cast<char *>(to) + at, staging, (size_t)piece,
                                  cudaMemcpyHostToDevice, own->stream),
                  "copy_in");
        own->staged = least(staging_bytes, own->staged + (piece + 255) / 256 * 256);
    }
}

void copy_out(ex_device *device, void *host, const void *from, int64_t bytes)
{
    if (bytes <= 0 || !ready(device))
        return;
    if (succeeded(device,
                  cudaMemcpyAsync(host, from, (size_t)bytes, cudaMemcpyDeviceToHost, of(device)->stream),
                  "copy_out"))
        sync(device);
}

void copy(ex_device *device, void *to, const void *from, int64_t bytes)
{
    if (bytes > 0 && ready(device))
        succeeded(device,
                  cudaMemcpyAsync(to, from, (size_t)bytes, cudaMemcpyDeviceToDevice, of(device)->stream),
                  "copy");
}

void zero(ex_device *device, void *to, int64_t bytes)
{
    if (bytes > 0 && ready(device))
        succeeded(device, cudaMemsetAsync(to, 0, (size_t)bytes, of(device)->stream), "zero");
}

/* Also of a device that was opened in part. */
void free_device(ex_device *device)
{
    Device *const own = of(device);
    cudaSetDevice(own->index);
    if (own->stream)
        cudaStreamSynchronize(own->stream);
    if (own->blas)
        cublasDestroy(own->blas);
    release(device, own->workspace);
    release(device, own->partials);
    if (own->staging)
        cudaFreeHost(own->staging);
    if (own->stream)
        cudaStreamDestroy(own->stream);
    cudaGetLastError(); /* of a device that failed: not of whoever calls next */
    delete own;
}

const ex_device_ops operations = {free_device,
                                  allocate,
                                  release,
                                  memory,
                                  copy_in,
                                  copy_out,
                                  copy,
                                  zero,
                                  sync,
                                  gemm,
                                  embed,
                                  embed_back,
                                  norm,
                                  norm_back,
                                  rotary,
                                  ex_cuda_attention,
                                  ex_cuda_attention_back,
                                  ex_cuda_attention_scratch,
                                  swiglu,
                                  swiglu_back,
                                  add,
                                  add_bias,
                                  bias_back,
                                  split,
                                  merge,
                                  cross_entropy,
                                  adam,
                                  cast,
                                  sum_squares};

bool blas_succeeded(ex_device *device, cublasStatus_t status, const char *where)
{
    if (status != CUBLAS_STATUS_SUCCESS)
        ex_fail(&device->fault, "%s: %s: %s", device->name, where, cublasGetStatusString(status));
    return status == CUBLAS_STATUS_SUCCESS;
}

/* Whether the GPU is there and able; fills in what it is. */
bool find_gpu(ex_device *device)
{
    Device *const own = of(device);
    int count = 0;
    snprintf(device->name, sizeof device->name, "GPU %d", own->index);
    if (!succeeded(device, cudaGetDeviceCount(&count), "cudaGetDeviceCount"))
        return false;
    if (own->index < 0 || own->index >= count) {
        ex_fail(&device->fault, "no GPU %d: there are %d, counted from 0", own->index, count);
        return false;
    }
    cudaDeviceProp properties;
    if (!succeeded(device, cudaGetDeviceProperties(&properties, own->index), "cudaGetDeviceProperties") ||
        !succeeded(device, cudaSetDevice(own->index), "cudaSetDevice"))
        return false;
    snprintf(device->name, sizeof device->name, "%.120s", properties.name);
    own->multiprocessors = properties.multiProcessorCount;
    own->capability = properties.major;
    static_assert(sizeof device->identity == sizeof properties.uuid, "an UUID has 16 bytes");
    memcpy(device->identity, &properties.uuid, sizeof device->identity);
    own->shared_bytes = (int64_t)properties.sharedMemPerBlockOptin;
    if (properties.major < least_capability) {
        ex_fail(&device->fault, "GPU %d, %s, has compute capability %d.%d; the least is %d.0", own->index,
                device->name, properties.major, properties.minor, least_capability);
        return false;
    }
    return true;
}

/* What cuBLAS recommends: 32 MiB from Hopper on, 4 MiB before. Its own would be allocated at times of its
 * choosing, and products must not depend on which of several it took. */
int64_t workspace_bytes(int capability)
{
    return capability >= 9 ? 32 << 20 : 4 << 20;
}

bool prepare(ex_device *device)
{
    Device *const own = of(device);
    /* bf16 results are rounded once, from fp32 sums; fp32 products are not rounded to TF32. */
    const cublasMath_t math =
        (cublasMath_t)((int)CUBLAS_DEFAULT_MATH | (int)CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION);
    if (!find_gpu(device) ||
        !succeeded(device, cudaStreamCreateWithFlags(&own->stream, cudaStreamNonBlocking),
                   "cudaStreamCreate") ||
        !succeeded(device, cudaMallocHost((void **)&own->staging, (size_t)staging_bytes), "cudaMallocHost"))
        return false;
    device->stream = own->stream;
    const int64_t bytes = workspace_bytes(own->capability);
    own->workspace = allocate(device, bytes);
    own->partials = own->workspace ? allocate(device, partial_bytes) : nullptr;
    /* The stream comes first: setting it takes the workspace away. */
    return own->partials && blas_succeeded(device, cublasCreate(&own->blas), "cublasCreate") &&
           blas_succeeded(device, cublasSetStream(own->blas, own->stream), "cublasSetStream") &&
           blas_succeeded(device, cublasSetWorkspace(own->blas, own->workspace, (size_t)bytes),
                          "cublasSetWorkspace") &&
           blas_succeeded(device, cublasSetMathMode(own->blas, math), "cublasSetMathMode");
}

} // namespace

void gemm(ex_device *device, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, const void *a,
          const void *b, float beta, void *c, int c_f32)
{
    if (m <= 0 || n <= 0 || !ready(device))
        return;
    if (m > INT32_MAX || n > INT32_MAX || k > INT32_MAX) {
        ex_fail(&device->fault, "%s: gemm of m %lld, n %lld, k %lld; a side has at most %d", device->name,
                (long long)m, (long long)n, (long long)k, INT32_MAX);
        return;
    }
    const cudaDataType_t type = device->type == EX_BF16 ? CUDA_R_16BF : CUDA_R_32F;
    const int64_t c_bytes = c_f32 ? 4 : (int64_t)ex_type_bytes(device->type);
    if (k <= 0) {
        if (beta == 0.0f)
            zero(device, c, m * n * c_bytes);
        return;
    }
    /* cuBLAS sees columns: what is stored is c^T = op(b)^T op(a)^T. */
    const float alpha = 1.0f;
    blas_succeeded(device,
                   cublasGemmEx(of(device)->blas, trans_b ? CUBLAS_OP_T : CUBLAS_OP_N,
                                trans_a ? CUBLAS_OP_T : CUBLAS_OP_N, (int)n, (int)m, (int)k, &alpha, b, type,
                                (int)(trans_b ? k : n), a, type, (int)(trans_a ? m : k), &beta, c,
                                c_f32 ? CUDA_R_32F : type, (int)n, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
                   "gemm");
}

} // namespace ex_cuda

ex_device *ex_cuda_open(ex_type type, int32_t index, ex_fault *fault)
{
    ex_cuda::Device *const own = new (std::nothrow) ex_cuda::Device{};
    if (!own) {
        ex_fail(fault, "no memory for GPU %d", (int)index);
        return nullptr;
    }
    own->base.ops = &ex_cuda::operations;
    own->base.type = type;
    own->index = index;
    if (ex_cuda::prepare(&own->base))
        return &own->base;
    ex_fail(fault, "%s", own->base.fault.text);
    ex_cuda::free_device(&own->base);
    return nullptr;
}

int ex_cuda_count(void)
{
    int count = 0;
    if (cudaGetDeviceCount(&count) == cudaSuccess)
        return count;
    cudaGetLastError(); /* no driver, no GPU: not an error of what follows */
    return 0;
}
