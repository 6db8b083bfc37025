/* Attention on tensor cores, forward: FlashAttention-2 (Dao 2023, algorithm 1) with the causal mask inside
 * documents. A block has 128 queries of one head of one document, 32 rows a warp; tiles of 64 keys and their
 * values pass by, the first to the one on the diagonal. */
#include "device/cuda/attention_tensor.cuh"

#include "device/cuda/attention_tiles.cuh"

namespace ex_attention
{
namespace
{

constexpr int32_t query_rows = 128, key_rows = 64;
constexpr int32_t m = 2, n = key_rows / 8; /* 16-row and 8-column pieces of a warp's scores */
static_assert(block_warps * m * 16 == query_rows, "warps share the queries");

template <int32_t wide> constexpr int32_t forward_bytes = (query_rows + 2 * key_rows) * wide * 2;

/* Scores of keys behind their query become -inf: row i of the warp's first row sees keys up to first + i. */
__device__ __forceinline__ void mask(float (&scores)[m][n][4], int32_t keys_behind)
{
    const int32_t lane = (int32_t)threadIdx.x % 32;
#pragma unroll
    for (int32_t i = 0; i < m; i++) {
#pragma unroll
        for (int32_t j = 0; j < n; j++) {
#pragma unroll
            for (int32_t e = 0; e < 4; e++) {
                const int32_t row = 16 * i + lane / 4 + e / 2 * 8, column = 8 * j + lane % 4 * 2 + e % 2;
                if (column > row + keys_behind)
                    scores[i][j][e] = -INFINITY;
            }
        }
    }
}

/* One tile of the online softmax: scores become exp2(scale (score - maximum)), sums and totals shrink to the
 * new maxima. `most` holds raw scores; totals are the lane's own part of a row. */
template <int32_t wide>
__device__ __forceinline__ void soften(float (&scores)[m][n][4], float (&sums)[m][wide / 8][4],
                                       float (&most)[m][2], float (&totals)[m][2], float scale)
{
#pragma unroll
    for (int32_t i = 0; i < m; i++) {
#pragma unroll
        for (int32_t half = 0; half < 2; half++) {
            float now = most[i][half];
#pragma unroll
            for (int32_t j = 0; j < n; j++)
                now = fmaxf(now, fmaxf(scores[i][j][2 * half], scores[i][j][2 * half + 1]));
            now = fmaxf(now, __shfl_xor_sync(0xffffffffu, now, 1));
            now = fmaxf(now, __shfl_xor_sync(0xffffffffu, now, 2));
            /* Finite: every query sees key 0, which is in the first tile. */
            const float offset = now * scale;
            /* 1 where the maximum stays: most * scale - offset in one fused operation is what the product was
             * rounded by, which thousands of tiles would add up. */
            const float shrink = ex_mma::exp2_fast((most[i][half] - now) * scale);
            most[i][half] = now;
            float total = totals[i][half] * shrink;
#pragma unroll
            for (int32_t j = 0; j < n; j++) {
#pragma unroll
                for (int32_t e = 2 * half; e < 2 * half + 2; e++) {
                    scores[i][j][e] = ex_mma::exp2_fast(fmaf(scores[i][j][e], scale, -offset));
                    total += scores[i][j][e];
                }
            }
            totals[i][half] = total;
#pragma unroll
            for (int32_t j = 0; j < wide / 8; j++) {
                sums[i][j][2 * half] *= shrink;
                sums[i][j][2 * half + 1] *= shrink;
            }
        }
    }
}

/* scale: that of the scores times log2(e). */
template <int32_t wide>
__global__ void __launch_bounds__(block_threads, 2)
    forward(const __nv_bfloat16 *qkv, const int32_t *borders, const __grid_constant__ work_list work,
            shape sizes, float scale, __nv_bfloat16 *out, float *log_sums)
{
    piece here;
    if (!find_piece<query_rows, last_tile>(work, borders, (int32_t)blockIdx.x, &here))
        return;
    EX_SHARED(char, shared);
    const ex_mma::shared_at queries = ex_mma::shared_place(shared);
    const ex_mma::shared_at keys = queries + query_rows * wide * 2, values = keys + key_rows * wide * 2;
    const int32_t head = (int32_t)blockIdx.y, key_head = head / sizes.group();
    const int32_t lane = (int32_t)threadIdx.x % 32, warp = warp_index();
    const int32_t warp_row = here.row + warp * 16 * m;
    const int64_t stride = sizes.stride();
    const copier<wide> copier(stride, sizes.dim);
    const __nv_bfloat16 *const first = qkv + here.begin * stride;
    const __nv_bfloat16 *key = copier.chunk_of(first + (int64_t)(sizes.heads + key_head) * sizes.dim, stride);
    const int64_t to_value = (int64_t)sizes.kv_heads * sizes.dim;

    copier.template copy<query_rows>(
        queries, copier.chunk_of(first + here.row * stride + (int64_t)head * sizes.dim, stride),
        here.length - here.row);
    copier.template copy<key_rows>(keys, key, here.length);
    ex_mma::copies_end();

    float sums[m][wide / 8][4] = {}, totals[m][2] = {}, most[m][2];
#pragma unroll
    for (int32_t i = 0; i < m; i++)
        most[i][0] = most[i][1] = -INFINITY;
    /* Values travel while scores are multiplied, the next keys while values are. */
    const int32_t end = min(here.row + query_rows, here.length);
    int32_t start = 0;
    const auto copy_values = [&]() {
        ex_mma::copies_wait();
        __syncthreads();
        copier.template copy<key_rows>(values, key + to_value, here.length - start);
        ex_mma::copies_end();
    };
    const auto copy_next_keys = [&]() {
        ex_mma::copies_wait();
        __syncthreads();
        start += key_rows;
        key += key_rows * stride;
        if (start < end) {
            copier.template copy<key_rows>(keys, key, here.length - start);
            ex_mma::copies_end();
        }
    };
    const int32_t seen = warp_row < here.length ? min(warp_row + 16 * m, end) : 0; /* keys, by this warp */
    while (start < seen) {
        float scores[m][n][4];
        copy_values();
        multiply_rows<m, n, wide>(scores, queries + warp * 16 * m * wide * 2, keys);
        copy_next_keys();
        if (start > warp_row + 1)
            mask(scores, warp_row - start + key_rows);
        soften<wide>(scores, sums, most, totals, scale);
        multiply_weights<m, n, wide>(sums, scores, values);
    }
    while (start < end) {
        copy_values();
        copy_next_keys();
    }

    float factors[m][2];
#pragma unroll
    for (int32_t i = 0; i < m; i++) {
#pragma unroll
        for (int32_t half = 0; half < 2; half++) {
            float total = totals[i][half];
            total += __shfl_xor_sync(0xffffffffu, total, 1);
            total += __shfl_xor_sync(0xffffffffu, total, 2);
            factors[i][half] = 1.0f / total;
            const int32_t row = warp_row + 16 * i + 8 * half + lane / 4;
            if (lane % 4 == 0 && row < here.length)
                log_sums[head * sizes.tokens + here.begin + row] =
                    (most[i][half] * scale + log2f(total)) * 0.693147180559945f;
        }
    }
    store_rows<m, wide>(out + ((here.begin + warp_row) * sizes.heads + head) * sizes.dim,
                        (int64_t)sizes.heads * sizes.dim, here.length - warp_row, sizes.dim, sums, factors,
                        shared + warp * 16 * m * wide * 2);
}

template <int32_t wide>
void launch(ex_device *device, const void *qkv, const ex_documents *documents, const shape &sizes, void *out,
            float *log_sums)
{
    work_list work;
    dim3 grid;
    const auto kernel = forward<wide>;
    if (prepare(device, documents, sizes.tokens, query_rows, sizes.heads, kernel, forward_bytes<wide>, &work,
                &grid)) {
        EX_LAUNCH(kernel, grid, dim3(block_threads), forward_bytes<wide>, stream_of(device),
                  (const __nv_bfloat16 *)qkv, documents->borders, work, sizes,
                  scale_of(sizes) * 1.44269504088896f, (__nv_bfloat16 *)out, log_sums);
        launched(device, "attention");
    }
}

} // namespace

void tensor_forward(ex_device *device, const void *qkv, const ex_documents *documents, const shape &sizes,
                    void *out, float *log_sums)
{
    (sizes.dim <= 64 ? launch<64> : launch<128>)(device, qkv, documents, sizes, out, log_sums);
}

} // namespace ex_attention
