/* The inside of the CUDA device: its state, checks, the shapes of grids, and its operations by file. */
#ifndef EX_DEVICE_CUDA_DEVICE_CUH
#define EX_DEVICE_CUDA_DEVICE_CUH

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "device/cuda/launch.cuh"
#include "device/device.h"

namespace ex_cuda
{

constexpr int64_t partial_bytes = 16 << 20; /* for reductions in two stages */
constexpr int64_t staging_bytes = 4 << 20;  /* pinned, between the host and copies that run later */
constexpr int block_threads = 256;

struct Device {
    ex_device base; /* first: a device is cast to it */
    int index;
    int multiprocessors;
    int capability;       /* compute capability's first number: 9 for Hopper */
    int64_t shared_bytes; /* that a block may ask for */
    cudaStream_t stream;  /* also base.stream */
    cublasHandle_t blas;
    void *workspace; /* of cuBLAS */
    void *partials;  /* [partial_bytes] */
    char *staging;   /* [staging_bytes] */
    int64_t staged;  /* bytes of it that copies given to the stream may still read */
    std::unordered_map<void *, int64_t> bytes; /* of each allocation */
};

static inline Device *of(ex_device *device)
{
    return reinterpret_cast<Device *>(device);
}

/* Makes a failure of the runtime the device's, with where it was met; false when there was one. */
static inline bool succeeded(ex_device *device, cudaError_t status, const char *where)
{
    if (status != cudaSuccess)
        ex_fail(&device->fault, "%s: %s: %s", device->name, where, cudaGetErrorString(status));
    return status == cudaSuccess;
}

/* Whether the device still runs; makes it the calling thread's. First in every operation. What others' calls
 * left behind (a query of a stream that was not ready) is no failure of the operation. */
static inline bool ready(ex_device *device)
{
    if (device->fault.failed || !succeeded(device, cudaSetDevice(of(device)->index), "cudaSetDevice"))
        return false;
    cudaGetLastError();
    return true;
}

/* After every launch. What goes wrong while a kernel runs is met by sync. */
static inline void launched(ex_device *device, const char *operation)
{
    succeeded(device, cudaGetLastError(), operation);
}

/* Elements that fill 16 bytes. */
static inline int64_t lanes_of(ex_type type)
{
    return type == EX_BF16 ? 8 : 4;
}

static inline bool aligned()
{
    return true;
}

template <typename... P> static inline bool aligned(const void *first, P... rest)
{
    return reinterpret_cast<uintptr_t>(first) % 16 == 0 && aligned(rest...);
}

/* Whether rows of `width` elements at these places can be read 16 bytes at a time. */
template <typename... P> static inline bool is_wide(const ex_device *device, int64_t width, P... places)
{
    return width % lanes_of(device->type) == 0 && aligned(places...);
}

/* The instance of a kernel for the device's type, by 16 bytes or by elements. */
#define EX_PICK(device, wide, kernel)                                                                        \
    ((device)->type == EX_BF16 ? ((wide) ? kernel<__nv_bfloat16, 8> : kernel<__nv_bfloat16, 1>)              \
                               : ((wide) ? kernel<float, 4> : kernel<float, 1>))

struct Shape {
    dim3 grid, block;
};

static inline int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Blocks that fill the GPU twice over; the kernel strides. */
static inline unsigned blocks_for(ex_device *device, int64_t pieces, int64_t pieces_per_block)
{
    const int64_t blocks = (pieces + pieces_per_block - 1) / pieces_per_block;
    return static_cast<unsigned>(least(blocks, int64_t{16} * of(device)->multiprocessors));
}

/* For a kernel that strides over `pieces` by threads. */
static inline Shape flat(ex_device *device, int64_t pieces)
{
    return {dim3(blocks_for(device, pieces, block_threads)), dim3(block_threads)};
}

/* For a kernel that strides over T rows by threadIdx.y and over `pieces` of each by threadIdx.x. */
static inline Shape rows(ex_device *device, int64_t T, int64_t pieces)
{
    unsigned across = 32;
    while (across < pieces && across < block_threads)
        across *= 2;
    const unsigned down = block_threads / across;
    return {dim3(blocks_for(device, T, down)), dim3(across, down)};
}

/* For a kernel of one warp a row. */
static inline Shape warps(ex_device *device, int64_t T)
{
    return {dim3(blocks_for(device, T, 4)), dim3(32, 4)};
}

/* cuda.cu */
void gemm(ex_device *device, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, const void *a,
          const void *b, float beta, void *c, int c_f32);

/* rows.cu */
void embed(ex_device *device, const void *table, const int32_t *tokens, int64_t T, int64_t width, void *out);
void embed_back(ex_device *device, const void *d_out, const int32_t *tokens, const int32_t *order, int64_t T,
                int64_t width, float *grad);
void add_bias(ex_device *device, void *x, const void *bias, int64_t T, int64_t width);
void swiglu(ex_device *device, const void *x, int64_t T, int64_t f, void *out);
void swiglu_back(ex_device *device, const void *x, const void *d_out, int64_t T, int64_t f, void *d_x);

/* norm.cu */
void norm(ex_device *device, const void *x, const void *weight, int64_t T, int64_t width, float epsilon,
          void *out, float *inverse);
void norm_back(ex_device *device, const void *x, const void *weight, const float *inverse, const void *d_out,
               int64_t T, int64_t width, void *d_x, float *d_weight);
void bias_back(ex_device *device, const void *d_x, int64_t T, int64_t width, float *grad);

/* heads.cu */
void rotary(ex_device *device, void *x, const int32_t *positions, int64_t T, int64_t stride, int32_t heads,
            int32_t dim, float theta, int back);
void split(ex_device *device, const void *x, int64_t T, ex_heads all, int32_t sp, void *out);
void merge(ex_device *device, const void *x, int64_t T, ex_heads all, int32_t sp, void *out);

/* entropy.cu */
void cross_entropy(ex_device *device, void *logits, const int32_t *targets, const float *weights, int64_t T,
                   int64_t vocab, double *loss);

/* vectors.cu */
void add(ex_device *device, void *to, const void *from, int64_t count);
void adam(ex_device *device, int64_t count, const float *grad, float *master, float *mean, float *variance,
          void *weights, ex_adam options);
void cast(ex_device *device, const float *from, void *to, int64_t count);
void sum_squares(ex_device *device, const float *x, int64_t count, double *sum);

/* *to += the sum of `count` numbers, in an order that depends on `count` alone. */
void add_partials(ex_device *device, const double *partials, int64_t count, double *to,
                  const char *operation);

} // namespace ex_cuda

#endif
