#include "warp_matrix.h"

#include "cuda_bf16.h"

namespace ex_emulator
{

namespace
{

struct Mma {
    float *d;
    const std::uint32_t *a, *b;
    const float *c;
};

float half(std::uint32_t pair, int which)
{
    return __uint_as_float(which ? pair & 0xffff0000u : pair << 16);
}

/* Lane l = 4 g + t holds, of a, rows g (registers 0, 2) and g + 8 (1, 3), columns 2 t, 2 t + 1 (0, 1) and 8
 * more (2, 3); of b, column g, rows 2 t, 2 t + 1 (0) and 8 more (1); of c and d, rows g (0, 1) and g + 8
 * (2, 3), columns 2 t, 2 t + 1. */
void mma(void *const lanes[32], unsigned)
{
    float a[16][16], b[16][8];
    for (int l = 0; l < 32; l++) {
        const Mma *const lane = static_cast<Mma *>(lanes[l]);
        const int g = l / 4, t = l % 4;
        for (int r = 0; r < 4; r++)
            for (int i = 0; i < 2; i++)
                a[g + 8 * (r % 2)][2 * t + i + 8 * (r / 2)] = half(lane->a[r], i);
        for (int r = 0; r < 2; r++)
            for (int i = 0; i < 2; i++)
                b[2 * t + i + 8 * r][g] = half(lane->b[r], i);
    }
    for (int l = 0; l < 32; l++) {
        const Mma *const lane = static_cast<Mma *>(lanes[l]);
        for (int r = 0; r < 4; r++) {
            const int row = l / 4 + 8 * (r / 2), column = 2 * (l % 4) + r % 2;
            double sum = static_cast<double>(lane->c[r]);
            for (int k = 0; k < 16; k++)
                sum += static_cast<double>(a[row][k]) * static_cast<double>(b[k][column]);
            lane->d[r] = static_cast<float>(sum);
        }
    }
}

struct Ldmatrix {
    std::uint32_t *d;
    const unsigned short *row;
    int count;
    bool transpose;
};

void load_matrices(void *const lanes[32], unsigned)
{
    const int count = static_cast<Ldmatrix *>(lanes[0])->count;
    for (int l = 0; l < 32; l++) {
        const Ldmatrix *const lane = static_cast<Ldmatrix *>(lanes[l]);
        for (int m = 0; m < count; m++) {
            std::uint32_t pair = 0;
            for (int i = 0; i < 2; i++) {
                const int across = 2 * (l % 4) + i, down = l / 4;
                const int row = lane->transpose ? across : down, column = lane->transpose ? down : across;
                const unsigned short *const from = static_cast<Ldmatrix *>(lanes[8 * m + row])->row;
                pair |= static_cast<std::uint32_t>(from[column]) << (16 * i);
            }
            lane->d[m] = pair;
        }
    }
}

} // namespace

void mma_m16n8k16_bf16(float d[4], const std::uint32_t a[4], const std::uint32_t b[2], const float c[4])
{
    const float c_before[4] = {c[0], c[1], c[2], c[3]}; /* d may be c */
    Mma lane = {d, a, b, c_before};
    meet(0xffffffffu, mma, &lane);
}

void ldmatrix(std::uint32_t *d, int count, bool transpose, const void *row)
{
    struct alignas(16) Row { /* UBSan sees a misaligned one */
        unsigned short elements[8];
    };
    Ldmatrix lane = {d, static_cast<const Row *>(row)->elements, count, transpose};
    meet(0xffffffffu, load_matrices, &lane);
}

} // namespace ex_emulator
