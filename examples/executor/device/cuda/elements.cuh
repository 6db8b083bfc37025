/* Elements as floats, 16 bytes or one element at a time, and sums over warps and blocks whose order is fixed
 * by their shape. */
#ifndef EX_DEVICE_CUDA_ELEMENTS_CUH
#define EX_DEVICE_CUDA_ELEMENTS_CUH

#include <cstdint>
#include <cstring>

#include <cuda_bf16.h>
#include <cuda_runtime.h>

namespace ex_cuda
{

static __device__ __forceinline__ float to_float(float x)
{
    return x;
}

static __device__ __forceinline__ float to_float(__nv_bfloat16 x)
{
    return __bfloat162float(x);
}

static __device__ __forceinline__ void from_float(float x, float *to)
{
    *to = x;
}

static __device__ __forceinline__ void from_float(float x, __nv_bfloat16 *to)
{
    *to = __float2bfloat16_rn(x);
}

/* Two bfloat16 in a word, the first in its lower half. */
static __device__ __forceinline__ void unpack(unsigned word, float *x)
{
    x[0] = __uint_as_float(word << 16);
    x[1] = __uint_as_float(word & 0xffff0000u);
}

static __device__ __forceinline__ unsigned pack(float first, float second)
{
    const __nv_bfloat162 both = __floats2bfloat162_rn(first, second);
    unsigned word;
    memcpy(&word, &both, sizeof word);
    return word;
}

template <int V> static __device__ __forceinline__ void load(const float *from, float (&x)[V])
{
    if constexpr (V % 4 == 0) {
#pragma unroll
        for (int i = 0; i < V; i += 4) {
            const float4 four = *reinterpret_cast<const float4 *>(from + i);
            x[i] = four.x, x[i + 1] = four.y, x[i + 2] = four.z, x[i + 3] = four.w;
        }
    } else {
#pragma unroll
        for (int i = 0; i < V; i++)
            x[i] = from[i];
    }
}

template <int V> static __device__ __forceinline__ void load(const __nv_bfloat16 *from, float (&x)[V])
{
    if constexpr (V == 8) {
        const uint4 words = *reinterpret_cast<const uint4 *>(from);
        unpack(words.x, x), unpack(words.y, x + 2), unpack(words.z, x + 4), unpack(words.w, x + 6);
    } else {
#pragma unroll
        for (int i = 0; i < V; i++)
            x[i] = to_float(from[i]);
    }
}

template <int V> static __device__ __forceinline__ void store(float *to, const float (&x)[V])
{
    if constexpr (V % 4 == 0) {
#pragma unroll
        for (int i = 0; i < V; i += 4)
            *reinterpret_cast<float4 *>(to + i) = make_float4(x[i], x[i + 1], x[i + 2], x[i + 3]);
    } else {
#pragma unroll
        for (int i = 0; i < V; i++)
            to[i] = x[i];
    }
}

template <int V> static __device__ __forceinline__ void store(__nv_bfloat16 *to, const float (&x)[V])
{
    if constexpr (V == 8)
        *reinterpret_cast<uint4 *>(to) =
            make_uint4(pack(x[0], x[1]), pack(x[2], x[3]), pack(x[4], x[5]), pack(x[6], x[7]));
    else if constexpr (V == 4)
        *reinterpret_cast<uint2 *>(to) = make_uint2(pack(x[0], x[1]), pack(x[2], x[3]));
    else
#pragma unroll
        for (int i = 0; i < V; i++)
            from_float(x[i], to + i);
}

/* Every lane gets the same bits: each step adds the same two numbers in both lanes of a pair. */
template <typename T> static __device__ __forceinline__ T warp_sum(T x)
{
#pragma unroll
    for (int bit = 16; bit > 0; bit /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, bit);
    return x;
}

/* The sum over a block of up to 1024 threads, a multiple of 32, all in x; `shared` [32] is free again after
 * the next barrier. */
template <typename T> static __device__ __forceinline__ T block_sum(T x, T *shared)
{
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    x = warp_sum(x);
    if (lane == 0)
        shared[warp] = x;
    __syncthreads();
    return warp_sum(lane < blockDim.x / 32 ? shared[lane] : T(0));
}

/* Where a thread begins, and how far apart its pieces are. */
static __device__ __forceinline__ int64_t flat_first()
{
    return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

static __device__ __forceinline__ int64_t flat_step()
{
    return static_cast<int64_t>(gridDim.x) * blockDim.x;
}

static __device__ __forceinline__ int64_t row_first()
{
    return static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
}

static __device__ __forceinline__ int64_t row_step()
{
    return static_cast<int64_t>(gridDim.x) * blockDim.y;
}

} // namespace ex_cuda

#endif
