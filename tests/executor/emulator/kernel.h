/* What a kernel sees: its place in the grid, barriers, operations of a warp, shared memory, fast functions.
 */
#ifndef EX_EMULATOR_KERNEL_H
#define EX_EMULATOR_KERNEL_H

#include <functional>
#include <tuple>
#include <type_traits>

namespace ex_emulator
{

struct Place {
    uint3 thread, block;
    dim3 block_size, grid_size;
};
extern Place *here; /* of the thread that runs */

void barrier(const char *file, int line);

/* An operation of the lanes in `mask`: once all of them are here, with the same operation, the last one calls
 * it on what each gave (null for others), and they go on. */
typedef void (*Operation)(void *const lanes[32], unsigned mask);
void meet(unsigned mask, Operation operation, void *lane);

/* The block's memory of `bytes` that belongs to `key`, the same for all its threads; and its dynamic one. */
void *shared_array(const void *key, std::size_t bytes, std::size_t alignment);
void *shared_dynamic();

struct Launch {
    const char *name;
    const void *kernel;
    dim3 grid, block;
    std::size_t shared_bytes;
    std::function<void()> body; /* one thread of it */
};
void launch(Launch &&launch, cudaStream_t stream);

template <typename... P, typename... A>
void launch_kernel(const char *name, void (*kernel)(P...), dim3 grid, dim3 block, std::size_t shared_bytes,
                   cudaStream_t stream, A &&...arguments)
{
    /* Parameters are passed by value when the kernel is launched, as CUDA passes them. */
    std::tuple<std::decay_t<P>...> values(static_cast<P>(arguments)...);
    launch({name, reinterpret_cast<const void *>(kernel), grid, block, shared_bytes,
            [kernel, values]() { std::apply(kernel, values); }},
           stream);
}

template <typename T> struct Shuffle {
    T given, got;
    int from; /* lane to read; outside of 0..31 or not taking part: its own value */
};

template <typename T> void shuffle(void *const lanes[32], unsigned mask)
{
    for (int i = 0; i < 32; i++) {
        if (!(mask >> i & 1))
            continue;
        Shuffle<T> *const lane = static_cast<Shuffle<T> *>(lanes[i]);
        const bool there = lane->from >= 0 && lane->from < 32 && (mask >> lane->from & 1);
        lane->got = there ? static_cast<Shuffle<T> *>(lanes[lane->from])->given : lane->given;
    }
}

int lane_index();

template <typename T> T shuffle_from(unsigned mask, T value, int from)
{
    Shuffle<T> lane = {value, value, from};
    meet(mask, shuffle<T>, &lane);
    return lane.got;
}

} // namespace ex_emulator

#define threadIdx (ex_emulator::here->thread)
#define blockIdx  (ex_emulator::here->block)
#define blockDim  (ex_emulator::here->block_size)
#define gridDim   (ex_emulator::here->grid_size)
#define warpSize  32

#define __syncthreads() ex_emulator::barrier(__FILE__, __LINE__)

void __syncwarp(unsigned mask = 0xffffffffu);
unsigned __ballot_sync(unsigned mask, int predicate);

inline int __any_sync(unsigned mask, int predicate)
{
    return __ballot_sync(mask, predicate) != 0;
}

inline int __all_sync(unsigned mask, int predicate)
{
    return __ballot_sync(mask, predicate) == mask;
}

inline void __threadfence()
{
}

inline void __threadfence_block()
{
}

/* `width` divides the warp into parts of their own: a power of two. */
template <typename T> T __shfl_sync(unsigned mask, T value, int from, int width = 32)
{
    const int lane = ex_emulator::lane_index();
    return ex_emulator::shuffle_from(mask, value, (lane & ~(width - 1)) + (from & (width - 1)));
}

template <typename T> T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32)
{
    const int lane = ex_emulator::lane_index(), from = lane ^ bits;
    const bool later_part = (from & ~(width - 1)) > (lane & ~(width - 1));
    return ex_emulator::shuffle_from(mask, value, later_part ? lane : from);
}

template <typename T> T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32)
{
    const int lane = ex_emulator::lane_index(), from = lane + static_cast<int>(delta);
    const bool inside = (lane & (width - 1)) + static_cast<int>(delta) < width;
    return ex_emulator::shuffle_from(mask, value, inside ? from : lane);
}

template <typename T> T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32)
{
    const int lane = ex_emulator::lane_index(), from = lane - static_cast<int>(delta);
    const bool inside = (lane & (width - 1)) >= static_cast<int>(delta);
    return ex_emulator::shuffle_from(mask, value, inside ? from : lane);
}

template <typename T> T atomicAdd(T *to, T value)
{
    const T before = *to;
    *to = before + value;
    return before;
}

inline unsigned atomicMax(unsigned *to, unsigned value)
{
    const unsigned before = *to;
    *to = before > value ? before : value;
    return before;
}

template <typename T> T __ldg(const T *from)
{
    return *from;
}

inline float __expf(float x)
{
    return std::exp(x);
}

inline float __logf(float x)
{
    return std::log(x);
}

inline float __log2f(float x)
{
    return std::log2(x);
}

inline float __powf(float x, float y)
{
    return std::pow(x, y);
}

inline float __fdividef(float x, float y)
{
    return x / y;
}

inline float __frcp_rn(float x)
{
    return 1.0f / x;
}

inline float __fmaf_rn(float x, float y, float z)
{
    return std::fma(x, y, z);
}

inline float rsqrtf(float x)
{
    return 1.0f / std::sqrt(x);
}

inline float __uint_as_float(unsigned bits)
{
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

inline int __ffs(int bits)
{
    return __builtin_ffs(bits);
}

/* Of pi x; through double, as CUDA's is right to 2 units in the last place. */
inline void sincospif(float x, float *sine, float *cosine)
{
    const double angle = 3.14159265358979323846 * static_cast<double>(x);
    *sine = static_cast<float>(std::sin(angle));
    *cosine = static_cast<float>(std::cos(angle));
}

inline unsigned __float_as_uint(float value)
{
    unsigned bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

template <typename T> constexpr T min(T a, T b)
{
    return b < a ? b : a;
}

template <typename T> constexpr T max(T a, T b)
{
    return a < b ? b : a;
}

#endif
