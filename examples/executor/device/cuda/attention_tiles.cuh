/* Tiles in shared memory and products of tiles, for the tensor-core kernels.
 *
 * A tile is rows of `wide` elements without gaps; heads with fewer dimensions are filled up with zeros, which
 * change no product. Chunk c (16 bytes, 8 elements) of row r lies at chunk c ^ (r & 7): the eight rows of one
 * chunk that ldmatrix takes at once, and the eight chunks of one row that a copy writes, then lie in
 * different banks. Blocks have 128 threads, 4 warps. */
#ifndef EX_DEVICE_CUDA_ATTENTION_TILES_CUH
#define EX_DEVICE_CUDA_ATTENTION_TILES_CUH

#include "device/cuda/attention_launch.cuh"
#include "device/cuda/mma.cuh"

namespace ex_attention
{

constexpr int32_t block_threads = 128, block_warps = 4;

/* Bytes from the first of a tile to chunk `chunk` of row `row`. */
template <int32_t wide> __device__ __forceinline__ int32_t chunk_at(int32_t row, int32_t chunk)
{
    return row * wide * 2 + (chunk ^ (row & 7)) * 16;
}

/* Starts to copy rows first .. first + rows - 1 of a matrix with `stride` elements between rows; what is past
 * row `length` or column `dim` becomes zero. */
template <int32_t rows, int32_t wide>
__device__ __forceinline__ void copy_tile(ex_mma::shared_at to, const __nv_bfloat16 *from, int64_t stride,
                                          int32_t first, int32_t length, int32_t dim)
{
    constexpr int32_t chunks = wide / 8, at_once = block_threads / chunks;
    const int32_t row = (int32_t)threadIdx.x / chunks, chunk = (int32_t)threadIdx.x % chunks;
    const bool inside = chunk * 8 < dim;
#pragma unroll
    for (int32_t i = 0; i < rows / at_once; i++) {
        const int32_t at = row + i * at_once;
        const bool there = inside && first + at < length;
        ex_mma::copy_16(to + chunk_at<wide>(at, chunk),
                        there ? from + (first + at) * stride + chunk * 8 : from, there);
    }
}

/* Bytes from a row's start to chunk `chunk` (a constant, even) + `side` (0 or 1) of a row that is `turn`
 * modulo 8, `bent` being side ^ turn: written so that few values are not constants. */
__device__ __forceinline__ int32_t bend(int32_t chunk, int32_t bent)
{
    return ((chunk & 7) ^ bent) * 16 + (chunk & ~7) * 16;
}

/* sums [16 m, 8 n] = a [16 m, wide] b [8 n, wide]^T. `a` is the warp's first row, `b` the tile's. */
template <int32_t m, int32_t n, int32_t wide>
__device__ __forceinline__ void multiply_rows(float (&sums)[m][n][4], ex_mma::shared_at a,
                                              ex_mma::shared_at b)
{
    static_assert(n % 2 == 0, "two matrices of eight rows are loaded at once");
    const int32_t lane = (int32_t)threadIdx.x % 32, turn = lane & 7;
    /* Lanes 0-7, 8-15, 16-23, 24-31 point at: rows 0-7 left, rows 8-15 left, 0-7 right, 8-15 right of a 16 x
     * 16 piece of a; of b, rows 0-7 left and right, then rows 8-15 left and right. */
    const int32_t a_row = (lane & 15) * wide * 2, b_row = (turn + (lane >> 4) * 8) * wide * 2;
    const int32_t a_bent = lane >> 4 ^ turn, b_bent = (lane >> 3 & 1) ^ turn;
#pragma unroll
    for (int32_t k = 0; k < wide / 16; k++) {
        uint32_t left[m][4];
#pragma unroll
        for (int32_t i = 0; i < m; i++)
            ex_mma::load_matrices(left[i], a + a_row + bend(2 * k, a_bent) + i * 16 * wide * 2);
#pragma unroll
        for (int32_t j = 0; j < n; j += 2) {
            uint32_t right[4];
            ex_mma::load_matrices(right, b + b_row + bend(2 * k, b_bent) + j * 8 * wide * 2);
#pragma unroll
            for (int32_t i = 0; i < m; i++) {
                if (k == 0) {
                    ex_mma::multiply_first(sums[i][j], left[i], right[0], right[1]);
                    ex_mma::multiply_first(sums[i][j + 1], left[i], right[2], right[3]);
                } else {
                    ex_mma::multiply(sums[i][j], left[i], right[0], right[1]);
                    ex_mma::multiply(sums[i][j + 1], left[i], right[2], right[3]);
                }
            }
        }
    }
}

/* sums [16 m, wide] += weights [16 m, 8 n] b [8 n, wide], weights as another product left them, rounded to
 * bf16: the layout of results is the layout of the left factor, so that they never leave their registers. */
template <int32_t m, int32_t n, int32_t wide>
__device__ __forceinline__ void multiply_weights(float (&sums)[m][wide / 8][4],
                                                 const float (&weights)[m][n][4], ex_mma::shared_at b)
{
    static_assert(n % 2 == 0, "a product takes 16 columns of weights");
    const int32_t lane = (int32_t)threadIdx.x % 32, turn = lane & 7;
    const int32_t row = (lane & 15) * wide * 2, bent = lane >> 4 ^ turn;
#pragma unroll
    for (int32_t k = 0; k < n / 2; k++) {
        uint32_t left[m][4];
#pragma unroll
        for (int32_t i = 0; i < m; i++) {
            left[i][0] = ex_mma::pack(weights[i][2 * k][0], weights[i][2 * k][1]);
            left[i][1] = ex_mma::pack(weights[i][2 * k][2], weights[i][2 * k][3]);
            left[i][2] = ex_mma::pack(weights[i][2 * k + 1][0], weights[i][2 * k + 1][1]);
            left[i][3] = ex_mma::pack(weights[i][2 * k + 1][2], weights[i][2 * k + 1][3]);
        }
#pragma unroll
        for (int32_t j = 0; j < wide / 8; j += 2) {
            uint32_t right[4];
            ex_mma::load_transposed(right, b + row + bend(j, bent) + k * 16 * wide * 2);
#pragma unroll
            for (int32_t i = 0; i < m; i++) {
                ex_mma::multiply(sums[i][j], left[i], right[0], right[1]);
                ex_mma::multiply(sums[i][j + 1], left[i], right[2], right[3]);
            }
        }
    }
}

/* Writes the warp's sums [16 m, wide], each row times its factor, as `rows` rows of `dim` elements. They pass
 * through `staging`, 16 m rows of a tile that only this warp reads, so that whole chunks are written.
 * factors[i][0] belongs to the lane's upper row, [1] to the one 8 below. */
template <int32_t m, int32_t wide>
__device__ __forceinline__ void store_rows(__nv_bfloat16 *to, int64_t stride, int32_t rows, int32_t dim,
                                           const float (&sums)[m][wide / 8][4], const float (&factors)[m][2],
                                           char *staging)
{
    const int32_t lane = (int32_t)threadIdx.x % 32, row = lane / 4;
    __syncwarp();
#pragma unroll
    for (int32_t i = 0; i < m; i++) {
#pragma unroll
        for (int32_t j = 0; j < wide / 8; j++) {
#pragma unroll
            for (int32_t half = 0; half < 2; half++)
                *(uint32_t *)(staging + chunk_at<wide>(16 * i + 8 * half + row, j) + lane % 4 * 4) =
                    ex_mma::pack(sums[i][j][2 * half] * factors[i][half],
                                 sums[i][j][2 * half + 1] * factors[i][half]);
        }
    }
    __syncwarp();
    constexpr int32_t chunks = wide / 8, at_once = 32 / chunks;
    const int32_t chunk = lane % chunks;
#pragma unroll
    for (int32_t i = 0; i < 16 * m / at_once; i++) {
        const int32_t at = lane / chunks + i * at_once;
        if (at < rows && chunk * 8 < dim)
            *(uint4 *)(to + at * stride + chunk * 8) = *(const uint4 *)(staging + chunk_at<wide>(at, chunk));
    }
}

} // namespace ex_attention

#endif
