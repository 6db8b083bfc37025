/* Operations on rows: embedding, bias, SwiGLU. */
#include "device/cuda/device.cuh"
#include "device/cuda/elements.cuh"

namespace ex_cuda
{

namespace
{

/* Rows are copied as words of whatever size they and their places allow. */
template <typename W>
__global__ void copy_rows(const void *table_bytes, const int32_t *tokens, int64_t T, int64_t words,
                          void *out_bytes)
{
    const W *const table = static_cast<const W *>(table_bytes);
    W *const out = static_cast<W *>(out_bytes);
    for (int64_t t = row_first(); t < T; t += row_step()) {
        const W *const from = table + tokens[t] * words;
        for (int64_t j = threadIdx.x; j < words; j += blockDim.x)
            out[t * words + j] = from[j];
    }
}

/* A warp looks at 32 places of `order` and, for every token that begins at one of them, sums all its rows in
 * `order`'s order, for 32 V columns. Lanes look at 32 places ahead together, so that the loads of rows do not
 * wait for one another. */
template <typename T, int V>
__global__ void __launch_bounds__(block_threads, 4)
    sum_token_rows(const void *d_out_bytes, const int32_t *tokens, const int32_t *order, int64_t count,
                   int64_t width, float *grad)
{
    const T *const d_out = static_cast<const T *>(d_out_bytes);
    const int lane = static_cast<int>(threadIdx.x);
    const int64_t column = (static_cast<int64_t>(blockIdx.y) * 32 + lane) * V;
    const bool inside = column < width;
    for (int64_t begin = row_first() * 32; begin < count; begin += row_step() * 32) {
        const int64_t own = begin + lane;
        const int32_t token = own < count ? tokens[order[own]] : -1;
        const bool starts = own < count && (own == 0 || tokens[order[own - 1]] != token);
        unsigned left = __ballot_sync(0xffffffffu, starts);
        while (left) {
            const int first = __ffs(static_cast<int>(left)) - 1;
            left &= left - 1;
            const int32_t summed = __shfl_sync(0xffffffffu, token, first);
            float sums[V] = {};
            for (int64_t at = begin + first;; at += 32) {
                const bool there = at + lane < count;
                const int32_t row = there ? order[at + lane] : 0;
                const unsigned same = __ballot_sync(0xffffffffu, there && tokens[row] == summed);
                const int rows_here = same == 0xffffffffu ? 32 : __ffs(static_cast<int>(~same)) - 1;
#pragma unroll 4
                for (int i = 0; i < rows_here; i++) {
                    const int64_t from = __shfl_sync(0xffffffffu, row, i);
                    float x[V];
                    load(d_out + from * width + (inside ? column : 0), x);
#pragma unroll
                    for (int v = 0; v < V; v++)
                        sums[v] += x[v];
                }
                if (rows_here < 32)
                    break;
            }
            if (inside) {
                float *const to = grad + summed * width + column;
                float before[V];
                load(to, before);
#pragma unroll
                for (int v = 0; v < V; v++)
                    sums[v] += before[v];
                store(to, sums);
            }
        }
    }
}

template <typename T, int V>
__global__ void add_to_rows(void *x_bytes, const void *bias_bytes, int64_t count, int64_t pieces)
{
    T *const x = static_cast<T *>(x_bytes);
    const T *const bias = static_cast<const T *>(bias_bytes);
    for (int64_t t = row_first(); t < count; t += row_step()) {
        for (int64_t j = threadIdx.x; j < pieces; j += blockDim.x) {
            T *const place = x + (t * pieces + j) * V;
            float sums[V], more[V];
            load(place, sums);
            load(bias + j * V, more);
#pragma unroll
            for (int v = 0; v < V; v++)
                sums[v] += more[v];
            store(place, sums);
        }
    }
}

/* silu(g) = g / (1 + e^-g): where e^-g overflows it is -0. */
template <typename T, int V>
__global__ void swiglu_rows(const void *x_bytes, int64_t count, int64_t pieces, void *out_bytes)
{
    const T *const x = static_cast<const T *>(x_bytes);
    T *const out = static_cast<T *>(out_bytes);
    for (int64_t t = row_first(); t < count; t += row_step()) {
        for (int64_t j = threadIdx.x; j < pieces; j += blockDim.x) {
            float gate[V], up[V];
            load(x + (2 * t * pieces + j) * V, gate);
            load(x + ((2 * t + 1) * pieces + j) * V, up);
#pragma unroll
            for (int v = 0; v < V; v++)
                up[v] *= gate[v] / (1.0f + expf(-gate[v]));
            store(out + (t * pieces + j) * V, up);
        }
    }
}

/* silu' = s (1 + g (1 - s)) for s = 1 / (1 + e^-g). */
template <typename T, int V>
__global__ void swiglu_back_rows(const void *x_bytes, const void *d_out_bytes, int64_t count, int64_t pieces,
                                 void *d_x_bytes)
{
    const T *const x = static_cast<const T *>(x_bytes), *const d_out = static_cast<const T *>(d_out_bytes);
    T *const d_x = static_cast<T *>(d_x_bytes);
    for (int64_t t = row_first(); t < count; t += row_step()) {
        for (int64_t j = threadIdx.x; j < pieces; j += blockDim.x) {
            const int64_t at_gate = (2 * t * pieces + j) * V, at_up = ((2 * t + 1) * pieces + j) * V;
            float gate[V], up[V], d[V], d_gate[V], d_up[V];
            load(x + at_gate, gate);
            load(x + at_up, up);
            load(d_out + (t * pieces + j) * V, d);
#pragma unroll
            for (int v = 0; v < V; v++) {
                const float s = 1.0f / (1.0f + expf(-gate[v]));
                d_gate[v] = d[v] * up[v] * s * (1.0f + gate[v] * (1.0f - s));
                d_up[v] = d[v] * gate[v] * s;
            }
            store(d_x + at_gate, d_gate);
            store(d_x + at_up, d_up);
        }
    }
}

} // namespace

void embed(ex_device *device, const void *table, const int32_t *tokens, int64_t T, int64_t width, void *out)
{
    if (T <= 0 || width <= 0 || !ready(device))
        return;
    const int64_t bytes = width * (int64_t)ex_type_bytes(device->type);
    const bool wide = bytes % 16 == 0 && aligned(table, out);
    const int64_t word = wide ? 16 : (int64_t)ex_type_bytes(device->type);
    const auto kernel = wide                      ? copy_rows<uint4>
                        : device->type == EX_BF16 ? copy_rows<unsigned short>
                                                  : copy_rows<unsigned>;
    const Shape shape = rows(device, T, bytes / word);
    EX_LAUNCH(kernel, shape.grid, shape.block, 0, of(device)->stream, table, tokens, T, bytes / word, out);
    launched(device, "embed");
}

void embed_back(ex_device *device, const void *d_out, const int32_t *tokens, const int32_t *order, int64_t T,
                int64_t width, float *grad)
{
    if (T <= 0 || width <= 0 || !ready(device))
        return;
    const bool wide = is_wide(device, width, d_out, grad);
    const int64_t columns = 32 * (wide ? lanes_of(device->type) : 1);
    const auto kernel = EX_PICK(device, wide, sum_token_rows);
    const dim3 block(32, block_threads / 32);
    const dim3 grid(blocks_for(device, T, 32 * block.y), (unsigned)((width + columns - 1) / columns));
    if (grid.y > 65535) {
        ex_fail(&device->fault, "%s: embed_back of rows of %lld elements; the most is %lld", device->name,
                (long long)width, (long long)(65535 * columns));
        return;
    }
    EX_LAUNCH(kernel, grid, block, 0, of(device)->stream, d_out, tokens, order, T, width, grad);
    launched(device, "embed_back");
}

void add_bias(ex_device *device, void *x, const void *bias, int64_t T, int64_t width)
{
    if (T <= 0 || width <= 0 || !ready(device))
        return;
    const bool wide = is_wide(device, width, x, bias);
    const int64_t pieces = wide ? width / lanes_of(device->type) : width;
    const auto kernel = EX_PICK(device, wide, add_to_rows);
    const Shape shape = rows(device, T, pieces);
    EX_LAUNCH(kernel, shape.grid, shape.block, 0, of(device)->stream, x, bias, T, pieces);
    launched(device, "add_bias");
}

void swiglu(ex_device *device, const void *x, int64_t T, int64_t f, void *out)
{
    if (T <= 0 || f <= 0 || !ready(device))
        return;
    const bool wide = is_wide(device, f, x, out);
    const int64_t pieces = wide ? f / lanes_of(device->type) : f;
    const auto kernel = EX_PICK(device, wide, swiglu_rows);
    const Shape shape = rows(device, T, pieces);
    EX_LAUNCH(kernel, shape.grid, shape.block, 0, of(device)->stream, x, T, pieces, out);
    launched(device, "swiglu");
}

void swiglu_back(ex_device *device, const void *x, const void *d_out, int64_t T, int64_t f, void *d_x)
{
    if (T <= 0 || f <= 0 || !ready(device))
        return;
    const bool wide = is_wide(device, f, x, d_out, d_x);
    const int64_t pieces = wide ? f / lanes_of(device->type) : f;
    const auto kernel = EX_PICK(device, wide, swiglu_back_rows);
    const Shape shape = rows(device, T, pieces);
    EX_LAUNCH(kernel, shape.grid, shape.block, 0, of(device)->stream, x, d_out, T, pieces, d_x);
    launched(device, "swiglu_back");
}

} // namespace ex_cuda
