/* Operations on vectors: sums, the optimiser. Those of a few elements more than a multiple of the width of a
 * piece leave the last ones to the threads that have nothing else. */
#include "device/cuda/device.cuh"
#include "device/cuda/elements.cuh"

namespace ex_cuda
{

namespace
{

template <typename T, int V> static __device__ __forceinline__ void add_piece(T *to, const T *from)
{
    float sums[V], more[V];
    load(to, sums);
    load(from, more);
#pragma unroll
    for (int v = 0; v < V; v++)
        sums[v] += more[v];
    store(to, sums);
}

template <typename T, int V>
__global__ void add_elements(void *to_bytes, const void *from_bytes, int64_t count)
{
    T *const to = static_cast<T *>(to_bytes);
    const T *const from = static_cast<const T *>(from_bytes);
    const int64_t pieces = count / V;
    for (int64_t i = flat_first(); i < pieces; i += flat_step())
        add_piece<T, V>(to + i * V, from + i * V);
    for (int64_t i = pieces * V + flat_first(); i < count; i += flat_step())
        add_piece<T, 1>(to + i, from + i);
}

template <typename T, int V> static __device__ __forceinline__ void cast_piece(const float *from, T *to)
{
    float x[V];
    load(from, x);
    store(to, x);
}

template <typename T, int V> __global__ void cast_elements(const float *from, void *to_bytes, int64_t count)
{
    T *const to = static_cast<T *>(to_bytes);
    const int64_t pieces = count / V;
    for (int64_t i = flat_first(); i < pieces; i += flat_step())
        cast_piece<T, V>(from + i * V, to + i * V);
    for (int64_t i = pieces * V + flat_first(); i < count; i += flat_step())
        cast_piece<T, 1>(from + i, to + i);
}

/* AdamW (Loshchilov and Hutter, "Decoupled Weight Decay Regularization", algorithm 2). */
template <typename T, int V>
static __device__ __forceinline__ void adam_piece(const float *grad, float *master, float *mean,
                                                  float *variance, T *weights, const ex_adam &o)
{
    float g[V], w[V], m[V], s[V];
    load(grad, g);
    load(master, w);
    load(mean, m);
    load(variance, s);
#pragma unroll
    for (int v = 0; v < V; v++) {
        const float scaled = g[v] * o.gradient_scale;
        m[v] = o.beta1 * m[v] + (1.0f - o.beta1) * scaled;
        s[v] = o.beta2 * s[v] + (1.0f - o.beta2) * scaled * scaled;
        const float step = m[v] / o.correction1 / (sqrtf(s[v] / o.correction2) + o.epsilon);
        w[v] -= o.learning_rate * (step + o.weight_decay * w[v]);
    }
    store(master, w);
    store(mean, m);
    store(variance, s);
    store(weights, w);
}

template <typename T, int V>
__global__ void __launch_bounds__(block_threads, 4)
    adam_elements(int64_t count, const float *grad, float *master, float *mean, float *variance,
                  void *weights_bytes, ex_adam options)
{
    T *const weights = static_cast<T *>(weights_bytes);
    const int64_t pieces = count / V;
    for (int64_t i = flat_first(); i < pieces; i += flat_step())
        adam_piece<T, V>(grad + i * V, master + i * V, mean + i * V, variance + i * V, weights + i * V,
                         options);
    for (int64_t i = pieces * V + flat_first(); i < count; i += flat_step())
        adam_piece<T, 1>(grad + i, master + i, mean + i, variance + i, weights + i, options);
}

/* Squares in double: a float's pass its range at 1.8e19, and what clips must see that. */
template <int V> __global__ void sum_squares_of(const float *x, int64_t count, double *partials)
{
    EX_SHARED_ARRAY(double, per_warp, 32);
    double sum = 0;
    const int64_t pieces = count / V;
    for (int64_t i = flat_first(); i < pieces; i += flat_step()) {
        float a[V];
        load(x + i * V, a);
#pragma unroll
        for (int v = 0; v < V; v++)
            sum += static_cast<double>(a[v]) * static_cast<double>(a[v]);
    }
    for (int64_t i = pieces * V + flat_first(); i < count; i += flat_step())
        sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
    sum = block_sum(sum, per_warp);
    if (threadIdx.x == 0)
        partials[blockIdx.x] = sum;
}

/* One block. */
__global__ void add_doubles(const double *partials, int64_t count, double *to)
{
    EX_SHARED_ARRAY(double, per_warp, 32);
    double sum = 0;
    for (int64_t i = threadIdx.x; i < count; i += blockDim.x)
        sum += partials[i];
    sum = block_sum(sum, per_warp);
    if (threadIdx.x == 0)
        *to += sum;
}

} // namespace

void add_partials(ex_device *device, const double *partials, int64_t count, double *to, const char *operation)
{
    if (!ready(device))
        return;
    EX_LAUNCH(add_doubles, dim3(1), dim3(block_threads), 0, of(device)->stream, partials, count, to);
    launched(device, operation);
}

void add(ex_device *device, void *to, const void *from, int64_t count)
{
    if (count <= 0 || !ready(device))
        return;
    const bool wide = aligned(to, from);
    const auto kernel = EX_PICK(device, wide, add_elements);
    const Shape shape = flat(device, wide ? count / lanes_of(device->type) + 1 : count);
    EX_LAUNCH(kernel, shape.grid, shape.block, 0, of(device)->stream, to, from, count);
    launched(device, "add");
}

void cast(ex_device *device, const float *from, void *to, int64_t count)
{
    if (count <= 0 || !ready(device))
        return;
    const bool wide = aligned(from, to);
    const auto kernel = EX_PICK(device, wide, cast_elements);
    const Shape shape = flat(device, wide ? count / lanes_of(device->type) + 1 : count);
    EX_LAUNCH(kernel, shape.grid, shape.block, 0, of(device)->stream, from, to, count);
    launched(device, "cast");
}

void adam(ex_device *device, int64_t count, const float *grad, float *master, float *mean, float *variance,
          void *weights, ex_adam options)
{
    if (count <= 0 || !ready(device))
        return;
    /* Five arrays go through a thread: 16 bytes of fp32 at a time, also where weights are bfloat16. */
    const bool wide = aligned(grad, master, mean, variance, weights);
    const auto kernel = device->type == EX_BF16
                            ? (wide ? adam_elements<__nv_bfloat16, 4> : adam_elements<__nv_bfloat16, 1>)
                            : (wide ? adam_elements<float, 4> : adam_elements<float, 1>);
    const Shape shape = flat(device, wide ? count / 4 + 1 : count);
    EX_LAUNCH(kernel, shape.grid, shape.block, 0, of(device)->stream, count, grad, master, mean, variance,
              weights, options);
    launched(device, "adam");
}

void sum_squares(ex_device *device, const float *x, int64_t count, double *sum)
{
    if (count <= 0 || !ready(device))
        return;
    const bool wide = aligned(x);
    const auto kernel = wide ? sum_squares_of<4> : sum_squares_of<1>;
    const Shape shape = flat(device, wide ? count / 4 + 1 : count);
    double *const partials = static_cast<double *>(of(device)->partials);
    EX_LAUNCH(kernel, shape.grid, shape.block, 0, of(device)->stream, x, count, partials);
    launched(device, "sum_squares");
    add_partials(device, partials, shape.grid.x, sum, "sum_squares");
}

} // namespace ex_cuda
