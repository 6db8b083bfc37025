/* Plain attention: tiles of 32 rows, 8 threads a row, everything fp32 in shared memory and FMAs. It is there
 * to be right: for comparing with the CPU in fp32, and for shapes that the tensor-core kernels do not take.
 *
 * Eight threads share a row, and a warp holds four whole rows, so that maxima and sums of a row are shuffles
 * and a row of probabilities is written and read by one warp. Thread `lane` of a row has columns lane,
 * lane + 8, ... of scores and of sums. Rows in shared memory are an odd number of words apart: eight rows at
 * one column lie in eight banks. */
#include "device/cuda/attention_plain.cuh"

#include "device/cuda/attention_launch.cuh"
#include "device/cuda/elements.cuh"

namespace ex_attention
{
namespace
{

constexpr int32_t tile = 32, row_threads = 8, threads = tile * row_threads, columns = tile / row_threads;
constexpr int32_t score_pitch = tile + 1;

__host__ __device__ int32_t pitch_of(int32_t dim)
{
    return dim | 1;
}

/* Rows first .. first + 31 of a matrix with `stride` elements between rows; rows past `rows` become zero. */
template <typename T>
__device__ void load_rows(float *to, const T *from, int64_t stride, int32_t first, int32_t rows, int32_t dim)
{
    const int32_t pitch = pitch_of(dim);
    for (int32_t i = (int32_t)threadIdx.x; i < tile * dim; i += threads) {
        const int32_t row = i / dim, column = i - row * dim;
        to[row * pitch + column] =
            first + row < rows ? ex_cuda::to_float(from[(first + row) * stride + column]) : 0.0f;
    }
}

__device__ float dot(const float *a, const float *b, int32_t dim)
{
    float sum = 0.0f;
    for (int32_t i = 0; i < dim; i++)
        sum = fmaf(a[i], b[i], sum);
    return sum;
}

/* sums[j] += weights [32] times column lane + 8 j of rows [32, dim]. */
template <int32_t wide>
__device__ void add_rows(float (&sums)[wide / row_threads], const float *weights, const float *rows,
                         int32_t lane, int32_t dim)
{
    const int32_t pitch = pitch_of(dim);
    for (int32_t i = 0; i < tile; i++) {
        const float weight = weights[i];
#pragma unroll
        for (int32_t j = 0; j < wide / row_threads; j++) {
            if (lane + row_threads * j < dim)
                sums[j] = fmaf(weight, rows[i * pitch + lane + row_threads * j], sums[j]);
        }
    }
}

template <typename T, int32_t wide>
__device__ void store_row(T *to, const float (&sums)[wide / row_threads], float factor, int32_t lane,
                          int32_t dim)
{
#pragma unroll
    for (int32_t j = 0; j < wide / row_threads; j++) {
        if (lane + row_threads * j < dim)
            ex_cuda::from_float(sums[j] * factor, to + lane + row_threads * j);
    }
}

template <typename T, int32_t wide>
__global__ void __launch_bounds__(threads)
    forward(const T *qkv, const int32_t *borders, const __grid_constant__ work_list work, shape sizes,
            float scale, T *out, float *log_sums)
{
    piece here;
    if (!find_piece<tile, last_tile>(work, borders, (int32_t)blockIdx.x, &here))
        return;
    EX_SHARED(float, shared);
    const int32_t dim = sizes.dim, pitch = pitch_of(dim);
    float *queries = shared, *keys = queries + tile * pitch, *values = keys + tile * pitch;
    float *scores = values + tile * pitch;
    const int32_t head = (int32_t)blockIdx.y, key_head = head / sizes.group();
    const int32_t row = (int32_t)threadIdx.x / row_threads, lane = (int32_t)threadIdx.x % row_threads;
    const int64_t stride = sizes.stride();
    const T *first = qkv + here.begin * stride;
    const T *first_key = first + (int64_t)(sizes.heads + key_head) * dim;
    const int32_t query = here.row + row;

    load_rows(queries, first + (int64_t)head * dim, stride, here.row, here.length, dim);
    float most = -INFINITY, total = 0.0f, sums[wide / row_threads] = {};
    for (int32_t start = 0; start < here.row + tile && start < here.length; start += tile) {
        __syncthreads(); /* the last tile has been read */
        load_rows(keys, first_key, stride, start, here.length, dim);
        load_rows(values, first_key + (int64_t)sizes.kv_heads * dim, stride, start, here.length, dim);
        __syncthreads();
        float score[columns], tile_most = most, tile_total = 0.0f;
#pragma unroll
        for (int32_t j = 0; j < columns; j++) {
            const int32_t key = lane + row_threads * j;
            score[j] = start + key <= query ? scale * dot(queries + row * pitch, keys + key * pitch, dim)
                                            : -INFINITY;
            tile_most = fmaxf(tile_most, score[j]);
        }
        for (int32_t step = row_threads / 2; step; step /= 2)
            tile_most = fmaxf(tile_most, __shfl_xor_sync(0xffffffffu, tile_most, step));
        /* Key 0 is seen by every query, so that the maximum is finite from the first tile on. */
        const float shrink = expf(most - tile_most);
        most = tile_most;
#pragma unroll
        for (int32_t j = 0; j < columns; j++) {
            const float weight = expf(score[j] - most);
            scores[row * score_pitch + lane + row_threads * j] = weight;
            tile_total += weight;
        }
        for (int32_t step = row_threads / 2; step; step /= 2)
            tile_total += __shfl_xor_sync(0xffffffffu, tile_total, step);
        total = fmaf(total, shrink, tile_total);
#pragma unroll
        for (int32_t j = 0; j < wide / row_threads; j++)
            sums[j] *= shrink;
        __syncwarp();
        add_rows<wide>(sums, scores + row * score_pitch, values, lane, dim);
        __syncwarp();
    }
    if (query >= here.length)
        return;
    store_row<T, wide>(out + ((here.begin + query) * sizes.heads + head) * dim, sums, 1.0f / total, lane,
                       dim);
    if (lane == 0)
        log_sums[head * sizes.tokens + here.begin + query] = most + logf(total);
}

/* Gradients of a tile of keys and values: the queries of the group's heads pass by, one head after the other,
 * so that sums have one order. */
template <typename T, int32_t wide>
__global__ void __launch_bounds__(threads)
    back_keys(const T *qkv, const T *d_out, const float *log_sums, const float *delta, const int32_t *borders,
              const __grid_constant__ work_list work, shape sizes, float scale, T *d_qkv)
{
    piece here;
    if (!find_piece<tile, first_tile>(work, borders, (int32_t)blockIdx.x, &here))
        return;
    EX_SHARED(float, shared);
    const int32_t dim = sizes.dim, pitch = pitch_of(dim);
    float *keys = shared, *values = keys + tile * pitch, *queries = values + tile * pitch;
    float *outs = queries + tile * pitch, *weights = outs + tile * pitch;
    float *slopes = weights + tile * score_pitch;
    const int32_t key_head = (int32_t)blockIdx.y;
    const int32_t row = (int32_t)threadIdx.x / row_threads, lane = (int32_t)threadIdx.x % row_threads;
    const int64_t stride = sizes.stride(), out_stride = (int64_t)sizes.heads * dim;
    const int64_t key_at = (int64_t)(sizes.heads + key_head) * dim, to_value = (int64_t)sizes.kv_heads * dim;
    const T *first = qkv + here.begin * stride;
    const int32_t key = here.row + row;

    load_rows(keys, first + key_at, stride, here.row, here.length, dim);
    load_rows(values, first + key_at + to_value, stride, here.row, here.length, dim);
    float key_sums[wide / row_threads] = {}, value_sums[wide / row_threads] = {};
    for (int32_t head = key_head * sizes.group(); head < (key_head + 1) * sizes.group(); head++) {
        const int64_t of_rows = head * sizes.tokens + here.begin;
        for (int32_t start = here.row; start < here.length; start += tile) {
            __syncthreads();
            load_rows(queries, first + (int64_t)head * dim, stride, start, here.length, dim);
            load_rows(outs, d_out + here.begin * out_stride + (int64_t)head * dim, out_stride, start,
                      here.length, dim);
            __syncthreads();
#pragma unroll
            for (int32_t j = 0; j < columns; j++) {
                const int32_t column = lane + row_threads * j, query = start + column;
                float weight = 0.0f, slope = 0.0f;
                if (key <= query && query < here.length) {
                    weight = expf(scale * dot(keys + row * pitch, queries + column * pitch, dim) -
                                  log_sums[of_rows + query]);
                    slope = weight *
                            (dot(values + row * pitch, outs + column * pitch, dim) - delta[of_rows + query]);
                }
                weights[row * score_pitch + column] = weight;
                slopes[row * score_pitch + column] = slope;
            }
            __syncwarp();
            add_rows<wide>(value_sums, weights + row * score_pitch, outs, lane, dim);
            add_rows<wide>(key_sums, slopes + row * score_pitch, queries, lane, dim);
            __syncwarp();
        }
    }
    if (key >= here.length)
        return;
    T *to = d_qkv + (here.begin + key) * stride + key_at;
    store_row<T, wide>(to, key_sums, scale, lane, dim);
    store_row<T, wide>(to + to_value, value_sums, 1.0f, lane, dim);
}

/* Gradients of a tile of queries: the keys pass by. */
template <typename T, int32_t wide>
__global__ void __launch_bounds__(threads)
    back_queries(const T *qkv, const T *d_out, const float *log_sums, const float *delta,
                 const int32_t *borders, const __grid_constant__ work_list work, shape sizes, float scale,
                 T *d_qkv)
{
    piece here;
    if (!find_piece<tile, last_tile>(work, borders, (int32_t)blockIdx.x, &here))
        return;
    EX_SHARED(float, shared);
    const int32_t dim = sizes.dim, pitch = pitch_of(dim);
    float *keys = shared, *values = keys + tile * pitch, *queries = values + tile * pitch;
    float *outs = queries + tile * pitch, *slopes = outs + tile * pitch;
    const int32_t head = (int32_t)blockIdx.y, key_head = head / sizes.group();
    const int32_t row = (int32_t)threadIdx.x / row_threads, lane = (int32_t)threadIdx.x % row_threads;
    const int64_t stride = sizes.stride(), out_stride = (int64_t)sizes.heads * dim;
    const T *first = qkv + here.begin * stride;
    const T *first_key = first + (int64_t)(sizes.heads + key_head) * dim;
    const int32_t query = here.row + row;
    const bool there = query < here.length;
    const int64_t of_row = head * sizes.tokens + here.begin + query;

    load_rows(queries, first + (int64_t)head * dim, stride, here.row, here.length, dim);
    load_rows(outs, d_out + here.begin * out_stride + (int64_t)head * dim, out_stride, here.row, here.length,
              dim);
    const float log_sum = there ? log_sums[of_row] : 0.0f, offset = there ? delta[of_row] : 0.0f;
    float sums[wide / row_threads] = {};
    for (int32_t start = 0; start < here.row + tile && start < here.length; start += tile) {
        __syncthreads();
        load_rows(keys, first_key, stride, start, here.length, dim);
        load_rows(values, first_key + (int64_t)sizes.kv_heads * dim, stride, start, here.length, dim);
        __syncthreads();
#pragma unroll
        for (int32_t j = 0; j < columns; j++) {
            const int32_t column = lane + row_threads * j;
            float slope = 0.0f;
            if (there && start + column <= query) {
                const float weight =
                    expf(scale * dot(queries + row * pitch, keys + column * pitch, dim) - log_sum);
                slope = weight * (dot(outs + row * pitch, values + column * pitch, dim) - offset);
            }
            slopes[row * score_pitch + column] = slope;
        }
        __syncwarp();
        add_rows<wide>(sums, slopes + row * score_pitch, keys, lane, dim);
        __syncwarp();
    }
    if (there)
        store_row<T, wide>(d_qkv + (here.begin + query) * stride + (int64_t)head * dim, sums, scale, lane,
                           dim);
}

template <typename T, int32_t wide>
void launch_forward(ex_device *device, const void *qkv, const ex_documents *documents, const shape &sizes,
                    void *out, float *log_sums)
{
    work_list work;
    dim3 grid;
    const int32_t bytes = (3 * tile * pitch_of(sizes.dim) + tile * score_pitch) * 4;
    const auto kernel = forward<T, wide>;
    if (prepare(device, documents, sizes.tokens, tile, sizes.heads, kernel, bytes, &work, &grid)) {
        EX_LAUNCH(kernel, grid, dim3(threads), bytes, stream_of(device), (const T *)qkv, documents->borders,
                  work, sizes, scale_of(sizes), (T *)out, log_sums);
        launched(device, "attention");
    }
}

template <typename T, int32_t wide>
void launch_back(ex_device *device, const void *qkv, const void *d_out, const float *log_sums,
                 const float *delta, const ex_documents *documents, const shape &sizes, void *d_qkv)
{
    work_list work;
    dim3 grid;
    const int32_t rows = tile * pitch_of(sizes.dim) * 4, scores = tile * score_pitch * 4;
    const auto keys = back_keys<T, wide>;
    if (prepare(device, documents, sizes.tokens, tile, sizes.kv_heads, keys, 4 * rows + 2 * scores, &work,
                &grid)) {
        EX_LAUNCH(keys, grid, dim3(threads), 4 * rows + 2 * scores, stream_of(device), (const T *)qkv,
                  (const T *)d_out, log_sums, delta, documents->borders, work, sizes, scale_of(sizes),
                  (T *)d_qkv);
        launched(device, "attention_back, keys");
    }
    const auto queries = back_queries<T, wide>;
    if (prepare(device, documents, sizes.tokens, tile, sizes.heads, queries, 4 * rows + scores, &work,
                &grid)) {
        EX_LAUNCH(queries, grid, dim3(threads), 4 * rows + scores, stream_of(device), (const T *)qkv,
                  (const T *)d_out, log_sums, delta, documents->borders, work, sizes, scale_of(sizes),
                  (T *)d_qkv);
        launched(device, "attention_back, queries");
    }
}

} // namespace

void plain_forward(ex_device *device, const void *qkv, const ex_documents *documents, const shape &sizes,
                   void *out, float *log_sums)
{
    const auto launch =
        device->type == EX_BF16
            ? (sizes.dim <= 128 ? launch_forward<__nv_bfloat16, 128> : launch_forward<__nv_bfloat16, 256>)
            : (sizes.dim <= 128 ? launch_forward<float, 128> : launch_forward<float, 256>);
    launch(device, qkv, documents, sizes, out, log_sums);
}

void plain_back(ex_device *device, const void *qkv, const void *d_out, const float *log_sums,
                const float *delta, const ex_documents *documents, const shape &sizes, void *d_qkv)
{
    const auto launch =
        device->type == EX_BF16
            ? (sizes.dim <= 128 ? launch_back<__nv_bfloat16, 128> : launch_back<__nv_bfloat16, 256>)
            : (sizes.dim <= 128 ? launch_back<float, 128> : launch_back<float, 256>);
    launch(device, qkv, d_out, log_sums, delta, documents, sizes, d_qkv);
}

} // namespace ex_attention
