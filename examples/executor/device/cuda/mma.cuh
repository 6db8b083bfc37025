/* The instructions that CUDA C++ has no words for: products of a warp on tensor cores (bf16, fp32 sums),
 * loads of their fragments, copies to shared memory that go on beside arithmetic. Inline PTX under nvcc, the
 * emulator's equivalents elsewhere. Layouts are of the PTX manual, "Matrix fragments for mma.m16n8k16": lane
 * 4 r + c holds of a 16 x 8 result the columns 2 c, 2 c + 1 of rows r and r + 8. */
#ifndef EX_DEVICE_CUDA_MMA_CUH
#define EX_DEVICE_CUDA_MMA_CUH

#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#ifndef __CUDACC__
#include <warp_matrix.h>
#endif

namespace ex_mma
{

/* A place in shared memory as these instructions take it. */
#ifdef __CUDACC__
typedef uint32_t shared_at;
static __device__ __forceinline__ shared_at shared_place(void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}
#else
typedef char *shared_at;
static inline shared_at shared_place(void *p)
{
    return (char *)p;
}
#endif

/* d [16, 8] += a [16, 16] b [16, 8]. */
static __device__ __forceinline__ void multiply(float (&d)[4], const uint32_t (&a)[4], uint32_t b0,
                                                uint32_t b1)
{
#ifdef __CUDACC__
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
    const uint32_t b[2] = {b0, b1};
    ex_emulator::mma_m16n8k16_bf16(d, a, b, d);
#endif
}

/* d [16, 8] = a [16, 16] b [16, 8]. */
static __device__ __forceinline__ void multiply_first(float (&d)[4], const uint32_t (&a)[4], uint32_t b0,
                                                      uint32_t b1)
{
#ifdef __CUDACC__
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%10, %10, %10, %10};"
        : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(0.0f));
#else
    const uint32_t b[2] = {b0, b1};
    const float zeros[4] = {};
    ex_emulator::mma_m16n8k16_bf16(d, a, b, zeros);
#endif
}

/* Four 8 x 8 matrices; lane 8 i + r gives the place of row r of matrix i. */
static __device__ __forceinline__ void load_matrices(uint32_t (&to)[4], shared_at row)
{
#ifdef __CUDACC__
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(row)
                 : "memory");
#else
    ex_emulator::ldmatrix(to, 4, false, row);
#endif
}

/* The same, each matrix transposed on the way. */
static __device__ __forceinline__ void load_transposed(uint32_t (&to)[4], shared_at row)
{
#ifdef __CUDACC__
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(row)
                 : "memory");
#else
    ex_emulator::ldmatrix(to, 4, true, row);
#endif
}

/* 16 bytes to shared memory, from global memory past L1, or zeros where `there` is false. */
static __device__ __forceinline__ void copy_16(shared_at to, const void *from, bool there)
{
#ifdef __CUDACC__
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :
                 : "r"(to), "l"(__cvta_generic_to_global(from)), "r"(there ? 16 : 0)
                 : "memory");
#else
    ex_emulator::cp_async(to, from, 16, there ? 16 : 0);
#endif
}

static __device__ __forceinline__ void copy_4(shared_at to, const void *from, bool there)
{
#ifdef __CUDACC__
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
                 :
                 : "r"(to), "l"(__cvta_generic_to_global(from)), "r"(there ? 4 : 0)
                 : "memory");
#else
    ex_emulator::cp_async(to, from, 4, there ? 4 : 0);
#endif
}

/* Closes a group of this thread's copies. */
static __device__ __forceinline__ void copies_end()
{
#ifdef __CUDACC__
    asm volatile("cp.async.commit_group;" ::: "memory");
#else
    ex_emulator::cp_async_commit();
#endif
}

/* Waits for all groups of this thread; others' copies are seen after a barrier. */
static __device__ __forceinline__ void copies_wait()
{
#ifdef __CUDACC__
    asm volatile("cp.async.wait_group 0;" ::: "memory");
#else
    ex_emulator::cp_async_wait(0);
#endif
}

/* Two elements in a register, `low` at the lower address. */
static __device__ __forceinline__ uint32_t pack(float low, float high)
{
#ifdef __CUDACC__
    uint32_t both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
#else
    return (uint32_t)__bfloat16_as_ushort(__float2bfloat16_rn(low)) |
           (uint32_t)__bfloat16_as_ushort(__float2bfloat16_rn(high)) << 16;
#endif
}

/* 2^x to about 2 units in the last place; results below 2^-126 are 0. */
static __device__ __forceinline__ float exp2_fast(float x)
{
#ifdef __CUDACC__
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#else
    return exp2f(x);
#endif
}

} // namespace ex_mma

#endif
