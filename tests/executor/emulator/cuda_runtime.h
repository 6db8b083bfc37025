/* CUDA's runtime and the language of its kernels, as far as device/cuda uses them, on the processor. */
#ifndef EX_EMULATOR_CUDA_RUNTIME_H
#define EX_EMULATOR_CUDA_RUNTIME_H

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "vector_types.h"

#define __global__
#define __device__
#define __host__
#define __constant__    static const
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(bytes) alignas(bytes)
/* There is no __shared__: a kernel takes its shared memory by EX_SHARED and EX_SHARED_ARRAY. */

enum cudaError_t {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInvalidConfiguration = 9,
    cudaErrorNoDevice = 100,
    cudaErrorInvalidDevice = 101,
    cudaErrorNotReady = 600,
    cudaErrorLaunchFailure = 719
};

enum cudaMemcpyKind {
    cudaMemcpyHostToHost = 0,
    cudaMemcpyHostToDevice = 1,
    cudaMemcpyDeviceToHost = 2,
    cudaMemcpyDeviceToDevice = 3,
    cudaMemcpyDefault = 4
};

enum cudaFuncAttribute {
    cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
    cudaFuncAttributePreferredSharedMemoryCarveout = 9
};

enum cudaDeviceAttr {
    cudaDevAttrMaxThreadsPerBlock = 1,
    cudaDevAttrMultiProcessorCount = 16,
    cudaDevAttrComputeCapabilityMajor = 75,
    cudaDevAttrComputeCapabilityMinor = 76,
    cudaDevAttrMaxSharedMemoryPerMultiprocessor = 81,
    cudaDevAttrMaxSharedMemoryPerBlockOptin = 97
};

struct cudaUUID_t {
    char bytes[16];
};

struct cudaDeviceProp {
    char name[256];
    cudaUUID_t uuid;
    std::size_t totalGlobalMem;
    std::size_t sharedMemPerBlock;
    std::size_t sharedMemPerBlockOptin;
    int maxThreadsPerBlock;
    int multiProcessorCount;
    int major;
    int minor;
    int l2CacheSize;
};

typedef struct ex_emulated_stream *cudaStream_t;
typedef struct ex_emulated_event *cudaEvent_t;

enum { cudaStreamDefault = 0, cudaStreamNonBlocking = 1 };
enum { cudaEventDefault = 0, cudaEventDisableTiming = 2 };
enum { cudaHostAllocDefault = 0 };

extern "C" {
cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device);
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device);
cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);
const char *cudaGetErrorString(cudaError_t status);
const char *cudaGetErrorName(cudaError_t status);
cudaError_t cudaMemGetInfo(std::size_t *free_bytes, std::size_t *total_bytes);
cudaError_t cudaFree(void *memory);
cudaError_t cudaFreeHost(void *memory);
cudaError_t cudaMemcpy(void *to, const void *from, std::size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void *to, const void *from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream = nullptr);
cudaError_t cudaMemset(void *to, int value, std::size_t bytes);
cudaError_t cudaMemsetAsync(void *to, int value, std::size_t bytes, cudaStream_t stream = nullptr);
cudaError_t cudaStreamCreate(cudaStream_t *stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags = 0);
cudaError_t cudaEventCreate(cudaEvent_t *event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t from, cudaEvent_t to);
}

namespace ex_emulator
{
cudaError_t allocate(void **memory, std::size_t bytes);
cudaError_t allocate_pinned(void **memory, std::size_t bytes);
cudaError_t set_attribute(const void *kernel, cudaFuncAttribute attribute, int value);
} // namespace ex_emulator

template <typename T> cudaError_t cudaMalloc(T **memory, std::size_t bytes)
{
    return ex_emulator::allocate(reinterpret_cast<void **>(memory), bytes);
}

template <typename T> cudaError_t cudaMallocHost(T **memory, std::size_t bytes)
{
    return ex_emulator::allocate_pinned(reinterpret_cast<void **>(memory), bytes);
}

template <typename T> cudaError_t cudaHostAlloc(T **memory, std::size_t bytes, unsigned)
{
    return ex_emulator::allocate_pinned(reinterpret_cast<void **>(memory), bytes);
}

template <typename K> cudaError_t cudaFuncSetAttribute(K *kernel, cudaFuncAttribute attribute, int value)
{
    return ex_emulator::set_attribute(reinterpret_cast<const void *>(kernel), attribute, value);
}

#include "kernel.h"

#endif
