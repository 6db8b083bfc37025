/* CUDA's short vectors, aligned as CUDA aligns them, so that UBSan finds a misaligned access. */
#ifndef EX_EMULATOR_VECTOR_TYPES_H
#define EX_EMULATOR_VECTOR_TYPES_H

#define EX_VECTOR_TYPE(base, name, alignment)                                                                \
    struct alignas(alignment) name##2                                                                        \
    {                                                                                                        \
        base x, y;                                                                                           \
    };                                                                                                       \
    struct name##3                                                                                           \
    {                                                                                                        \
        base x, y, z;                                                                                        \
    };                                                                                                       \
    struct alignas(2 * alignment) name##4                                                                    \
    {                                                                                                        \
        base x, y, z, w;                                                                                     \
    };                                                                                                       \
    inline name##2 make_##name##2(base x, base y)                                                            \
    {                                                                                                        \
        return {x, y};                                                                                       \
    }                                                                                                        \
    inline name##3 make_##name##3(base x, base y, base z)                                                    \
    {                                                                                                        \
        return {x, y, z};                                                                                    \
    }                                                                                                        \
    inline name##4 make_##name##4(base x, base y, base z, base w)                                            \
    {                                                                                                        \
        return {x, y, z, w};                                                                                 \
    }

EX_VECTOR_TYPE(float, float, 8)
EX_VECTOR_TYPE(int, int, 8)
EX_VECTOR_TYPE(unsigned, uint, 8)
EX_VECTOR_TYPE(unsigned short, ushort, 4)

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_)
    {
    }
};

#endif
