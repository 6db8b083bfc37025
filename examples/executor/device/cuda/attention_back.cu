/* Attention on tensor cores, backward. Two kernels, so that nothing is added to from several blocks and
 * results are the same in every run: one has a tile of keys and sums the gradients of keys and values over
 * the queries that see them, head by head of the group; the other has a tile of queries and sums their
 * gradient over keys. Scores are computed in both, 7 products of tiles where FlashAttention-2 with atomic
 * sums has 5.
 *
 * With P = exp(score - log_sum), delta = sum of out times d_out: dS = P (d_out V^T - delta), and then
 * dV = P^T d_out, dK = scale dS^T Q, dQ = scale dS K (Dao 2023, section 3.1). */
#include "device/cuda/attention_tensor.cuh"

#include "device/cuda/attention_tiles.cuh"

namespace ex_attention
{
namespace
{

constexpr float log2_e = 1.44269504088896f;

/* Keys pass by two buffers: one is filled while the other is multiplied. */
template <int32_t wide> struct keys_sizes {
    static constexpr int32_t key_rows = 64, query_rows = wide > 64 ? 32 : 64;
    static constexpr int32_t m = 1, n = query_rows / 8;
    static constexpr int32_t key_tile = key_rows * wide * 2, query_tile = query_rows * wide * 2;
    static constexpr int32_t stage = 2 * query_tile + 2 * query_rows * 4; /* queries, outs, log sums, delta */
    static constexpr int32_t bytes = 2 * key_tile + 2 * stage;
    static_assert(block_warps * m * 16 == key_rows, "warps share the keys");
    static_assert(2 * query_rows <= block_threads, "each thread copies at most one number of a row");
};

/* Results of keys by queries: row of a key, column of a query. */
template <int32_t wide>
__global__ void __launch_bounds__(block_threads, 2)
    back_keys(const __nv_bfloat16 *qkv, const __nv_bfloat16 *d_out, const float *log_sums, const float *delta,
              const int32_t *borders, const __grid_constant__ work_list work, shape sizes, float scale,
              __nv_bfloat16 *d_qkv)
{
    typedef keys_sizes<wide> own;
    constexpr int32_t m = own::m, n = own::n;
    piece here;
    if (!find_piece<own::key_rows, first_tile>(work, borders, (int32_t)blockIdx.x, &here))
        return;
    EX_SHARED(char, shared);
    const ex_mma::shared_at keys = ex_mma::shared_place(shared), values = keys + own::key_tile;
    const ex_mma::shared_at stages = values + own::key_tile;
    const int32_t key_head = (int32_t)blockIdx.y, lane = (int32_t)threadIdx.x % 32, warp = warp_index();
    const int32_t warp_row = here.row + warp * 16 * m;
    const int64_t stride = sizes.stride(), out_stride = (int64_t)sizes.heads * sizes.dim;
    const copier<wide> of_qkv(stride, sizes.dim), of_out(out_stride, sizes.dim);
    const int64_t key_at = (int64_t)(sizes.heads + key_head) * sizes.dim;
    const int64_t to_value = (int64_t)sizes.kv_heads * sizes.dim;

    const __nv_bfloat16 *const key = of_qkv.chunk_of(qkv + (here.begin + here.row) * stride + key_at, stride);
    of_qkv.template copy<own::key_rows>(keys, key, here.length - here.row);
    of_qkv.template copy<own::key_rows>(values, key + to_value, here.length - here.row);

    /* What is copied next; the first query that sees the tile's first key is that of its own row. */
    const int32_t last_head = (key_head + 1) * sizes.group() - 1;
    int32_t head = key_head * sizes.group(), start = here.row, stage = 0;
    const auto copy_stage = [&]() {
        const ex_mma::shared_at to = stages + stage * own::stage;
        const int64_t token = here.begin + start;
        of_qkv.template copy<own::query_rows>(
            to, of_qkv.chunk_of(qkv + token * stride + (int64_t)head * sizes.dim, stride),
            here.length - start);
        of_out.template copy<own::query_rows>(
            to + own::query_tile,
            of_out.chunk_of(d_out + token * out_stride + (int64_t)head * sizes.dim, out_stride),
            here.length - start);
        const int32_t thread = (int32_t)threadIdx.x, row = thread % own::query_rows;
        if (thread < 2 * own::query_rows)
            ex_mma::copy_4(to + 2 * own::query_tile + thread * 4,
                           (thread < own::query_rows ? log_sums : delta) + head * sizes.tokens + token + row,
                           start + row < here.length);
        ex_mma::copies_end();
    };
    copy_stage();

    float key_sums[m][wide / 8][4] = {}, value_sums[m][wide / 8][4] = {};
    for (bool more = true; more;) {
        const int32_t now = start, current = stage;
        ex_mma::copies_wait();
        __syncthreads(); /* this stage is there, and nobody reads the other one any more */
        stage ^= 1;
        start += own::query_rows;
        if (start >= here.length) {
            start = here.row;
            head++;
        }
        more = head <= last_head;
        if (more)
            copy_stage();
        if (now + own::query_rows <= warp_row || warp_row >= here.length)
            continue;

        const ex_mma::shared_at queries = stages + current * own::stage, outs = queries + own::query_tile;
        const float *const logs =
            (const float *)(shared + 2 * own::key_tile + current * own::stage + 2 * own::query_tile);
        float weights[m][n][4], slopes[m][n][4];
        multiply_rows<m, n, wide>(weights, keys + warp * 16 * m * wide * 2, queries);
        multiply_rows<m, n, wide>(slopes, values + warp * 16 * m * wide * 2, outs);
        const bool diagonal = now < warp_row + 16 * m - 1;
#pragma unroll
        for (int32_t j = 0; j < n; j++) {
            const int32_t column = 8 * j + lane % 4 * 2;
            const float2 log_sum = *(const float2 *)(logs + column);
            const float2 offset = *(const float2 *)(logs + own::query_rows + column);
#pragma unroll
            for (int32_t e = 0; e < 4; e++) {
                float weight = ex_mma::exp2_fast(
                    fmaf(weights[0][j][e], scale, -log2_e * (e % 2 ? log_sum.y : log_sum.x)));
                if (diagonal && now + column + e % 2 < warp_row + lane / 4 + e / 2 * 8)
                    weight = 0.0f;
                weights[0][j][e] = weight;
                slopes[0][j][e] = weight * (slopes[0][j][e] - (e % 2 ? offset.y : offset.x));
            }
        }
        multiply_weights<m, n, wide>(value_sums, weights, outs);
        multiply_weights<m, n, wide>(key_sums, slopes, queries);
    }

    const float of_keys = scale / log2_e, key_factors[m][2] = {{of_keys, of_keys}};
    const float value_factors[m][2] = {{1.0f, 1.0f}};
    const int32_t own_rows = warp * 16 * m * wide * 2;
    __nv_bfloat16 *const to = d_qkv + (here.begin + warp_row) * stride + key_at;
    store_rows<m, wide>(to, stride, here.length - warp_row, sizes.dim, key_sums, key_factors,
                        shared + own_rows);
    store_rows<m, wide>(to + to_value, stride, here.length - warp_row, sizes.dim, value_sums, value_factors,
                        shared + own::key_tile + own_rows);
}

template <int32_t wide> struct queries_sizes {
    static constexpr int32_t query_rows = 128, key_rows = 32;
    static constexpr int32_t m = 2, n = key_rows / 8;
    static constexpr int32_t key_tile = key_rows * wide * 2, query_tile = query_rows * wide * 2;
    static constexpr int32_t bytes = 2 * query_tile + 4 * key_tile;
    static_assert(block_warps * m * 16 == query_rows, "warps share the queries");
};

template <int32_t wide>
__global__ void __launch_bounds__(block_threads, 2)
    back_queries(const __nv_bfloat16 *qkv, const __nv_bfloat16 *d_out, const float *log_sums,
                 const float *delta, const int32_t *borders, const __grid_constant__ work_list work,
                 shape sizes, float scale, __nv_bfloat16 *d_qkv)
{
    typedef queries_sizes<wide> own;
    constexpr int32_t m = own::m, n = own::n;
    piece here;
    if (!find_piece<own::query_rows, last_tile>(work, borders, (int32_t)blockIdx.x, &here))
        return;
    EX_SHARED(char, shared);
    const ex_mma::shared_at queries = ex_mma::shared_place(shared), outs = queries + own::query_tile;
    const ex_mma::shared_at stages = outs + own::query_tile;
    const int32_t head = (int32_t)blockIdx.y, key_head = head / sizes.group();
    const int32_t lane = (int32_t)threadIdx.x % 32, warp = warp_index();
    const int32_t warp_row = here.row + warp * 16 * m;
    const int64_t stride = sizes.stride(), out_stride = (int64_t)sizes.heads * sizes.dim;
    const int64_t to_value = (int64_t)sizes.kv_heads * sizes.dim;
    const copier<wide> of_qkv(stride, sizes.dim);
    const __nv_bfloat16 *key =
        of_qkv.chunk_of(qkv + here.begin * stride + (int64_t)(sizes.heads + key_head) * sizes.dim, stride);

    of_qkv.template copy<own::query_rows>(
        queries, of_qkv.chunk_of(qkv + (here.begin + here.row) * stride + (int64_t)head * sizes.dim, stride),
        here.length - here.row);
    copier<wide>(out_stride, sizes.dim)
        .template copy<own::query_rows>(
            outs,
            of_qkv.chunk_of(d_out + (here.begin + here.row) * out_stride + (int64_t)head * sizes.dim,
                            out_stride),
            here.length - here.row);
    int32_t start = 0, stage = 0;
    const auto copy_stage = [&]() {
        const ex_mma::shared_at to = stages + stage * 2 * own::key_tile;
        of_qkv.template copy<own::key_rows>(to, key, here.length - start);
        of_qkv.template copy<own::key_rows>(to + own::key_tile, key + to_value, here.length - start);
        ex_mma::copies_end();
    };
    copy_stage();

    float logs[m][2], offsets[m][2], sums[m][wide / 8][4] = {};
#pragma unroll
    for (int32_t i = 0; i < 2 * m; i++) {
        const int32_t row = warp_row + 8 * i + lane / 4;
        const int64_t at = head * sizes.tokens + here.begin + row;
        logs[i / 2][i % 2] = row < here.length ? -log2_e * log_sums[at] : 0.0f;
        offsets[i / 2][i % 2] = row < here.length ? delta[at] : 0.0f;
    }
    const int32_t end = min(here.row + own::query_rows, here.length);
    while (start < end) {
        const ex_mma::shared_at keys = stages + stage * 2 * own::key_tile, values = keys + own::key_tile;
        const int32_t now = start;
        ex_mma::copies_wait();
        __syncthreads(); /* this stage is there, and nobody reads the other one any more */
        stage ^= 1;
        start += own::key_rows;
        key += own::key_rows * stride;
        if (start < end)
            copy_stage();
        if (now >= warp_row + 16 * m || warp_row >= here.length)
            continue;

        float weights[m][n][4], slopes[m][n][4];
        multiply_rows<m, n, wide>(weights, queries + warp * 16 * m * wide * 2, keys);
        multiply_rows<m, n, wide>(slopes, outs + warp * 16 * m * wide * 2, values);
        const bool diagonal = start > warp_row + 1;
#pragma unroll
        for (int32_t i = 0; i < m; i++) {
#pragma unroll
            for (int32_t j = 0; j < n; j++) {
#pragma unroll
                for (int32_t e = 0; e < 4; e++) {
                    const float weight = ex_mma::exp2_fast(fmaf(weights[i][j][e], scale, logs[i][e / 2]));
                    const int32_t row = warp_row + 16 * i + lane / 4 + e / 2 * 8;
                    const bool behind = diagonal && now + 8 * j + lane % 4 * 2 + e % 2 > row;
                    slopes[i][j][e] = behind ? 0.0f : weight * (slopes[i][j][e] - offsets[i][e / 2]);
                }
            }
        }
        multiply_weights<m, n, wide>(sums, slopes, keys);
    }

    float factors[m][2];
#pragma unroll
    for (int32_t i = 0; i < m; i++)
        factors[i][0] = factors[i][1] = scale / log2_e;
    store_rows<m, wide>(d_qkv + (here.begin + warp_row) * stride + (int64_t)head * sizes.dim, stride,
                        here.length - warp_row, sizes.dim, sums, factors, shared + warp * 16 * m * wide * 2);
}

template <int32_t wide>
void launch(ex_device *device, const void *qkv, const void *d_out, const float *log_sums, const float *delta,
            const ex_documents *documents, const shape &sizes, void *d_qkv)
{
    typedef keys_sizes<wide> of_keys;
    typedef queries_sizes<wide> of_queries;
    work_list work;
    dim3 grid;
    const float scale = scale_of(sizes) * log2_e; /* scores are exponents of 2 */
    const auto keys = back_keys<wide>;
    if (prepare(device, documents, sizes.tokens, of_keys::key_rows, sizes.kv_heads, keys, of_keys::bytes,
                &work, &grid)) {
        EX_LAUNCH(keys, grid, dim3(block_threads), of_keys::bytes, stream_of(device),
                  (const __nv_bfloat16 *)qkv, (const __nv_bfloat16 *)d_out, log_sums, delta,
                  documents->borders, work, sizes, scale, (__nv_bfloat16 *)d_qkv);
        launched(device, "attention_back, keys");
    }
    const auto queries = back_queries<wide>;
    if (prepare(device, documents, sizes.tokens, of_queries::query_rows, sizes.heads, queries,
                of_queries::bytes, &work, &grid)) {
        EX_LAUNCH(queries, grid, dim3(block_threads), of_queries::bytes, stream_of(device),
                  (const __nv_bfloat16 *)qkv, (const __nv_bfloat16 *)d_out, log_sums, delta,
                  documents->borders, work, sizes, scale, (__nv_bfloat16 *)d_qkv);
        launched(device, "attention_back, queries");
    }
}

} // namespace

void tensor_back(ex_device *device, const void *qkv, const void *d_out, const float *log_sums,
                 const float *delta, const ex_documents *documents, const shape &sizes, void *d_qkv)
{
    (sizes.dim <= 64 ? launch<64> : launch<128>)(device, qkv, d_out, log_sums, delta, documents, sizes,
                                                 d_qkv);
}

} // namespace ex_attention
