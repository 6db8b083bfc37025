/* RMSNorm and its gradient, and gradients that are sums over rows. Such a sum has two stages, without
 * atomics, so that it is the same in every run: each block sums some rows into a row of `partials`, and a
 * second kernel adds those. */
#include "device/cuda/device.cuh"
#include "device/cuda/elements.cuh"

namespace ex_cuda
{

namespace
{

constexpr int64_t static_shared_bytes = 1024;                          /* at least what per_warp takes */
constexpr int64_t free_shared_bytes = 48 * 1024 - static_shared_bytes; /* what is there without asking */

/* A warp a row. The second reading finds the row in L1. */
template <typename T, int V>
__global__ void __launch_bounds__(128)
    norm_rows(const void *x_bytes, const void *weight_bytes, int64_t count, int64_t width, float epsilon,
              void *out_bytes, float *inverse)
{
    const T *const x = static_cast<const T *>(x_bytes), *const weight = static_cast<const T *>(weight_bytes);
    T *const out = static_cast<T *>(out_bytes);
    for (int64_t t = row_first(); t < count; t += row_step()) {
        const T *const row = x + t * width;
        float squares = 0;
        for (int64_t j = static_cast<int64_t>(threadIdx.x) * V; j < width; j += 32 * V) {
            float a[V];
            load(row + j, a);
#pragma unroll
            for (int v = 0; v < V; v++)
                squares += a[v] * a[v];
        }
        const float factor = 1.0f / sqrtf(warp_sum(squares) / static_cast<float>(width) + epsilon);
        if (threadIdx.x == 0)
            inverse[t] = factor;
        for (int64_t j = static_cast<int64_t>(threadIdx.x) * V; j < width; j += 32 * V) {
            float a[V], w[V];
            load(row + j, a);
            load(weight + j, w);
#pragma unroll
            for (int v = 0; v < V; v++)
                a[v] = a[v] * factor * w[v];
            store(out + t * width + j, a);
        }
    }
}

/* With y = x / rms: d_x = (d_y - y mean(d_y y)) / rms for d_y = d_out weight, and d_weight = sum d_out y. A
 * block takes a row at a time; a thread always has the same columns, whose sums of d_weight it keeps in its
 * own part of shared memory [width]. */
template <typename T, int V>
__global__ void __launch_bounds__(block_threads, 4)
    norm_back_rows(const void *x_bytes, const void *weight_bytes, const float *inverse,
                   const void *d_out_bytes, int64_t count, int64_t width, void *d_x_bytes, float *partials)
{
    EX_SHARED(float, sums);
    EX_SHARED_ARRAY(float, per_warp, 32);
    const T *const x = static_cast<const T *>(x_bytes), *const weight = static_cast<const T *>(weight_bytes),
                   *const d_out = static_cast<const T *>(d_out_bytes);
    T *const d_x = static_cast<T *>(d_x_bytes);
    const int64_t first = static_cast<int64_t>(threadIdx.x) * V, step = static_cast<int64_t>(blockDim.x) * V;
    const float zeros[V] = {};
    for (int64_t j = first; j < width; j += step)
        store(sums + j, zeros);
    for (int64_t t = blockIdx.x; t < count; t += gridDim.x) {
        const float factor = inverse[t];
        float products = 0;
        for (int64_t j = first; j < width; j += step) {
            float a[V], d[V], w[V], sum[V];
            load(x + t * width + j, a);
            load(d_out + t * width + j, d);
            load(weight + j, w);
            load(sums + j, sum);
#pragma unroll
            for (int v = 0; v < V; v++) {
                products += a[v] * (d[v] * w[v]);
                sum[v] += d[v] * (a[v] * factor);
            }
            store(sums + j, sum);
        }
        const float along =
            block_sum(products, per_warp) / static_cast<float>(width) * factor * factor * factor;
        for (int64_t j = first; j < width; j += step) {
            float a[V], d[V], w[V], to[V];
            load(x + t * width + j, a);
            load(d_out + t * width + j, d);
            load(weight + j, w);
            load(d_x + t * width + j, to);
#pragma unroll
            for (int v = 0; v < V; v++)
                to[v] += d[v] * w[v] * factor - a[v] * along;
            store(d_x + t * width + j, to);
        }
        __syncthreads(); /* per_warp is written again */
    }
    for (int64_t j = first; j < width; j += step) {
        float sum[V];
        load(sums + j, sum);
        store(partials + blockIdx.x * width + j, sum);
    }
}

/* Block (32, 8): 32 V columns, the rows of this blockIdx.y of `count`. */
template <typename T, int V>
__global__ void __launch_bounds__(block_threads, 4)
    sum_columns(const void *x_bytes, int64_t count, int64_t width, float *partials)
{
    EX_SHARED_ARRAY(float, tile, 8 * 32 * V);
    const T *const x = static_cast<const T *>(x_bytes);
    const int64_t column = (static_cast<int64_t>(blockIdx.x) * 32 + threadIdx.x) * V;
    float sums[V] = {};
    if (column < width) {
#pragma unroll 4
        for (int64_t t = static_cast<int64_t>(blockIdx.y) * 8 + threadIdx.y; t < count;
             t += static_cast<int64_t>(gridDim.y) * 8) {
            float a[V];
            load(x + t * width + column, a);
#pragma unroll
            for (int v = 0; v < V; v++)
                sums[v] += a[v];
        }
    }
    store(tile + (threadIdx.y * 32 + threadIdx.x) * V, sums);
    __syncthreads();
    if (threadIdx.y == 0 && column < width) {
        for (int y = 1; y < 8; y++) {
            float more[V];
            load(tile + (y * 32 + static_cast<int>(threadIdx.x)) * V, more);
#pragma unroll
            for (int v = 0; v < V; v++)
                sums[v] += more[v];
        }
        store(partials + blockIdx.y * width + column, sums);
    }
}

/* to [width] += the sum of partials [count, width]. Block (32, 8), a column a lane. */
__global__ void __launch_bounds__(block_threads, 4)
    add_rows(const float *partials, int64_t count, int64_t width, float *to)
{
    EX_SHARED_ARRAY(float, tile, 8 * 32);
    const int64_t column = static_cast<int64_t>(blockIdx.x) * 32 + threadIdx.x;
    float sum = 0;
    if (column < width) {
#pragma unroll 8
        for (int64_t t = threadIdx.y; t < count; t += 8)
            sum += partials[t * width + column];
    }
    tile[threadIdx.y * 32 + threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y == 0 && column < width) {
        for (int y = 1; y < 8; y++)
            sum += tile[y * 32 + static_cast<int>(threadIdx.x)];
        to[column] += sum;
    }
}

void add_row_partials(ex_device *device, int64_t count, int64_t width, float *to, const char *operation)
{
    EX_LAUNCH(add_rows, dim3((unsigned)((width + 31) / 32)), dim3(32, 8), 0, of(device)->stream,
              static_cast<const float *>(of(device)->partials), count, width, to);
    launched(device, operation);
}

/* How many rows of partials there may be; 0 with a fault where not even one fits. */
int64_t most_partials(ex_device *device, int64_t width, int64_t most_width, const char *operation)
{
    if (width <= most_width)
        return partial_bytes / (width * (int64_t)sizeof(float));
    ex_fail(&device->fault, "%s: %s of rows of %lld elements; the most is %lld", device->name, operation,
            (long long)width, (long long)most_width);
    return 0;
}

} // namespace

void norm(ex_device *device, const void *x, const void *weight, int64_t T, int64_t width, float epsilon,
          void *out, float *inverse)
{
    if (T <= 0 || width <= 0 || !ready(device))
        return;
    const auto kernel = EX_PICK(device, is_wide(device, width, x, weight, out), norm_rows);
    const Shape shape = warps(device, T);
    EX_LAUNCH(kernel, shape.grid, shape.block, 0, of(device)->stream, x, weight, T, width, epsilon, out,
              inverse);
    launched(device, "norm");
}

void norm_back(ex_device *device, const void *x, const void *weight, const float *inverse, const void *d_out,
               int64_t T, int64_t width, void *d_x, float *d_weight)
{
    if (T <= 0 || width <= 0 || !ready(device))
        return;
    const int64_t most_width = (of(device)->shared_bytes - static_shared_bytes) / (int64_t)sizeof(float);
    const int64_t most = most_partials(device, width, most_width, "norm_back");
    if (!most)
        return;
    const bool wide = is_wide(device, width, x, weight, d_out, d_x);
    const auto kernel = EX_PICK(device, wide, norm_back_rows);
    const int64_t pieces = wide ? width / lanes_of(device->type) : width;
    const int64_t shared = width * (int64_t)sizeof(float);
    const unsigned threads = (unsigned)least(block_threads, (pieces + 31) / 32 * 32);
    const int64_t blocks = least(least(T, most), int64_t{4} * of(device)->multiprocessors);
    if (shared > free_shared_bytes &&
        !succeeded(device,
                   cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared),
                   "norm_back"))
        return;
    EX_LAUNCH(kernel, dim3((unsigned)blocks), dim3(threads), (size_t)shared, of(device)->stream, x, weight,
              inverse, d_out, T, width, d_x, static_cast<float *>(of(device)->partials));
    launched(device, "norm_back");
    add_row_partials(device, blocks, width, d_weight, "norm_back");
}

void bias_back(ex_device *device, const void *d_x, int64_t T, int64_t width, float *grad)
{
    if (T <= 0 || width <= 0 || !ready(device))
        return;
    const int64_t most = most_partials(device, width, partial_bytes / (int64_t)sizeof(float), "bias_back");
    if (!most)
        return;
    const bool wide = is_wide(device, width, d_x);
    const auto kernel = EX_PICK(device, wide, sum_columns);
    const int64_t columns = 32 * (wide ? lanes_of(device->type) : 1);
    const int64_t across = (width + columns - 1) / columns;
    const int64_t wanted = (int64_t{8} * of(device)->multiprocessors + across - 1) / across;
    const int64_t down = least(least((T + 7) / 8, most), wanted);
    EX_LAUNCH(kernel, dim3((unsigned)across, (unsigned)down), dim3(32, 8), 0, of(device)->stream, d_x, T,
              width, static_cast<float *>(of(device)->partials));
    launched(device, "bias_back");
    add_row_partials(device, down, width, grad, "bias_back");
}

} // namespace ex_cuda
