/* Of CUDA's interface what comm/nccl calls, for tests/executor/test_nccl.c, which defines it. */
#ifndef TESTS_EXECUTOR_NCCL_CUDA_RUNTIME_API_H
#define TESTS_EXECUTOR_NCCL_CUDA_RUNTIME_API_H

typedef enum {
    cudaSuccess = 0,
    cudaErrorNoDevice = 100,
    cudaErrorNotReady = 600,
    cudaErrorUnknown = 999
} cudaError_t;
typedef void *cudaStream_t;
typedef struct {
    char bytes[16];
} cudaUUID_t;
struct cudaDeviceProp {
    cudaUUID_t uuid;
};

cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaGetLastError(void);
const char *cudaGetErrorString(cudaError_t error);

#endif
