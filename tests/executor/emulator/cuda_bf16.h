/* bfloat16 with CUDA's rounding: to nearest, ties to even; every NaN becomes 0x7fff. */
#ifndef EX_EMULATOR_CUDA_BF16_H
#define EX_EMULATOR_CUDA_BF16_H

#include "cuda_runtime.h"

struct alignas(2) __nv_bfloat16 {
    unsigned short bits;

    __nv_bfloat16() = default;
    __nv_bfloat16(float value)
    {
        const unsigned wide = __float_as_uint(value);
        bits = static_cast<unsigned short>(
            (wide & 0x7fffffffu) > 0x7f800000u ? 0x7fffu : (wide + 0x7fffu + (wide >> 16 & 1u)) >> 16);
    }
    operator float() const
    {
        return __uint_as_float(static_cast<unsigned>(bits) << 16);
    }
};

struct alignas(4) __nv_bfloat162 {
    __nv_bfloat16 x, y;
};

typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;

inline __nv_bfloat16 __float2bfloat16(float value)
{
    return __nv_bfloat16(value);
}

inline __nv_bfloat16 __float2bfloat16_rn(float value)
{
    return __nv_bfloat16(value);
}

inline float __bfloat162float(__nv_bfloat16 value)
{
    return static_cast<float>(value);
}

inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y)
{
    return {__nv_bfloat16(x), __nv_bfloat16(y)};
}

inline __nv_bfloat162 __float22bfloat162_rn(float2 value)
{
    return {__nv_bfloat16(value.x), __nv_bfloat16(value.y)};
}

inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 x, __nv_bfloat16 y)
{
    return {x, y};
}

inline float2 __bfloat1622float2(__nv_bfloat162 value)
{
    return {static_cast<float>(value.x), static_cast<float>(value.y)};
}

inline float __low2float(__nv_bfloat162 value)
{
    return static_cast<float>(value.x);
}

inline float __high2float(__nv_bfloat162 value)
{
    return static_cast<float>(value.y);
}

inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 value)
{
    return value.bits;
}

inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits)
{
    __nv_bfloat16 value;
    value.bits = bits;
    return value;
}

#endif
