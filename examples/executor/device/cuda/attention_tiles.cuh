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

/* Index of the warp, from a shuffle, by which the compiler knows it to be the same in all lanes. */
__device__ __forceinline__ int32_t warp_index()
{
    return __shfl_sync(0xffffffffu, (int32_t)threadIdx.x / 32, 0);
}

/* Bytes from the first of a tile to chunk `chunk` of row `row`. */
template <int32_t wide> __device__ __forceinline__ int32_t chunk_at(int32_t row, int32_t chunk)
{
    return row * wide * 2 + (chunk ^ (row & 7)) * 16;
}

/* Copies of tiles from rows of a matrix, as one thread sees them: one chunk of every few rows. */
template <int32_t wide> struct copier {
    static constexpr int32_t chunks = wide / 8, at_once = block_threads / chunks;
    static_assert(at_once % 8 == 0, "the place of a chunk in its row stays from copy to copy");
    int32_t step;  /* bytes between rows that the thread copies */
    int32_t place; /* of the thread's first chunk in a tile, bytes */
    int32_t row;   /* past every tile for a thread whose chunk is none of the head's dimensions */

    __device__ __forceinline__ copier(int64_t stride, int32_t dim)
        : step((int32_t)(stride * at_once * 2)), row((int32_t)threadIdx.x / chunks)
    {
        const int32_t chunk = (int32_t)threadIdx.x % chunks;
        place = chunk_at<wide>(row, chunk);
        if (chunk * 8 >= dim)
            row = INT32_MAX / 2;
    }

    /* What the thread copies first of a tile whose first row begins at `from`. */
    static __device__ __forceinline__ const __nv_bfloat16 *chunk_of(const __nv_bfloat16 *from, int64_t stride)
    {
        return from + (int32_t)threadIdx.x / chunks * stride + (int32_t)threadIdx.x % chunks * 8;
    }

    /* Starts to copy a tile of `rows` rows, of which `left` are there and the others become zero. */
    template <int32_t rows>
    __device__ __forceinline__ void copy(ex_mma::shared_at to, const __nv_bfloat16 *chunk, int32_t left) const
    {
#pragma unroll
        for (int32_t i = 0; i < rows / at_once; i++)
            ex_mma::copy_16(to + place + i * at_once * wide * 2, (const char *)chunk + (int64_t)step * i,
                            row + i * at_once < left);
    }
};

/* Where a lane points for four 8 x 8 matrices of a 16 x 16 piece. Matrices land in registers in an order that
 * makes neighbours of what one product takes: by columns (upper left, lower left, upper right, lower right)
 * for left factors, and for right ones that are transposed on the way; by rows for the other right ones. */
template <int32_t wide, bool by_columns> struct pointer {
    int32_t row, bent;

    __device__ __forceinline__ pointer()
    {
        const int32_t lane = (int32_t)threadIdx.x % 32, turn = lane & 7, one = lane >> 3 & 1, two = lane >> 4;
        row = (turn + (by_columns ? one : two) * 8) * wide * 2;
        bent = (by_columns ? two : one) ^ turn;
    }

    /* Bytes from the tile's first to what the lane points at of the piece at row 16 i, column 16 j; both are
     * constants, written so that four values serve all pieces. */
    __device__ __forceinline__ int32_t at(int32_t i, int32_t j) const
    {
        const int32_t chunk = 2 * j;
        return row + ((chunk & 7) ^ bent) * 16 + (chunk & ~7) * 16 + i * 16 * wide * 2;
    }
};

/* sums [16 m, 8 n] = a [16 m, wide] b [8 n, wide]^T. `a` is the warp's first row, `b` the tile's. */
template <int32_t m, int32_t n, int32_t wide>
__device__ __forceinline__ void multiply_rows(float (&sums)[m][n][4], ex_mma::shared_at a,
                                              ex_mma::shared_at b)
{
    static_assert(n % 2 == 0, "sixteen rows of b are loaded at once");
    const pointer<wide, true> of_a;
    const pointer<wide, false> of_b;
#pragma unroll
    for (int32_t k = 0; k < wide / 16; k++) {
        uint32_t left[m][4];
#pragma unroll
        for (int32_t i = 0; i < m; i++)
            ex_mma::load_matrices(left[i], a + of_a.at(i, k));
#pragma unroll
        for (int32_t j = 0; j < n; j += 2) {
            uint32_t right[4];
            ex_mma::load_matrices(right, b + of_b.at(j / 2, k));
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
    const pointer<wide, true> of_b;
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
            ex_mma::load_transposed(right, b + of_b.at(k, j / 2));
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
