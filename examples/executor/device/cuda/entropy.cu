/* Softmax cross-entropy and its gradient in one kernel. */
#include <cfloat>

#include "device/cuda/device.cuh"
#include "device/cuda/elements.cuh"

namespace ex_cuda
{

namespace
{

constexpr int entropy_threads = 512;

/* The largest of some numbers, and the sum of e^(number - largest): updated with more of them as they come
 * (Milakov and Gimelshein, "Online normalizer calculation for softmax", algorithm 3). */
struct Softmax {
    float largest, sum;
};

static __device__ __forceinline__ Softmax join(Softmax a, Softmax b)
{
    const float largest = fmaxf(a.largest, b.largest);
    return {largest, a.sum * expf(a.largest - largest) + b.sum * expf(b.largest - largest)};
}

static __device__ __forceinline__ Softmax warp_join(Softmax own)
{
#pragma unroll
    for (int bit = 16; bit > 0; bit /= 2) {
        const Softmax other = {__shfl_xor_sync(0xffffffffu, own.largest, bit),
                               __shfl_xor_sync(0xffffffffu, own.sum, bit)};
        own = join(own, other);
    }
    return own;
}

/* A block a row. The row is read twice, the second time from L2 where vocab is of common size. A target that
 * is no token makes the loss NaN: the host cannot be told from here. */
template <typename T, int V>
__global__ void __launch_bounds__(entropy_threads)
    entropy_rows(void *logits_bytes, const int32_t *targets, const float *weights, int64_t vocab,
                 double *losses)
{
    EX_SHARED_ARRAY(float, largest, 32);
    EX_SHARED_ARRAY(float, sums, 32);
    T *const row = static_cast<T *>(logits_bytes) + blockIdx.x * vocab;
    const float weight = weights[blockIdx.x];
    const int64_t first = static_cast<int64_t>(threadIdx.x) * V, step = static_cast<int64_t>(blockDim.x) * V;
    if (weight == 0.0f) {
        const float zeros[V] = {};
        for (int64_t j = first; j < vocab; j += step)
            store(row + j, zeros);
        if (threadIdx.x == 0)
            losses[blockIdx.x] = 0;
        return;
    }
    const int64_t target = targets[blockIdx.x];
    const bool is_token = target >= 0 && target < vocab;
    /* Before it is overwritten; all threads are past this at the barrier below. */
    const float right = is_token ? to_float(row[target]) : 0.0f;
    Softmax own = {-FLT_MAX, 0};
    for (int64_t j = first; j < vocab; j += step) {
        float x[V];
        load(row + j, x);
        float most = own.largest;
#pragma unroll
        for (int v = 0; v < V; v++)
            most = fmaxf(most, x[v]);
        float more = 0;
#pragma unroll
        for (int v = 0; v < V; v++)
            more += expf(x[v] - most);
        own.sum = own.sum * expf(own.largest - most) + more;
        own.largest = most;
    }
    own = warp_join(own);
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    if (lane == 0) {
        largest[warp] = own.largest;
        sums[warp] = own.sum;
    }
    __syncthreads();
    own = {lane < warps ? largest[lane] : -FLT_MAX, lane < warps ? sums[lane] : 0.0f};
    own = warp_join(own);
    if (threadIdx.x == 0) {
        const double nll = log(static_cast<double>(own.sum)) -
                           (static_cast<double>(right) - static_cast<double>(own.largest));
        losses[blockIdx.x] = is_token ? static_cast<double>(weight) * nll : nan("");
    }
    const float factor = weight / own.sum;
    for (int64_t j = first; j < vocab; j += step) {
        float x[V];
        load(row + j, x);
#pragma unroll
        for (int v = 0; v < V; v++)
            x[v] = expf(x[v] - own.largest) * factor - (j + v == target ? weight : 0.0f);
        store(row + j, x);
    }
}

} // namespace

void cross_entropy(ex_device *device, void *logits, const int32_t *targets, const float *weights, int64_t T,
                   int64_t vocab, double *loss)
{
    const int64_t row_bytes = vocab * (int64_t)ex_type_bytes(device->type);
    const int64_t most = partial_bytes / (int64_t)sizeof(double); /* rows whose losses are held at once */
    double *const losses = static_cast<double *>(of(device)->partials);
    for (int64_t t = 0; t < T && vocab > 0 && ready(device); t += most) {
        const int64_t count = least(most, T - t);
        void *const at = static_cast<char *>(logits) + t * row_bytes;
        const bool wide = is_wide(device, vocab, at);
        const auto kernel = EX_PICK(device, wide, entropy_rows);
        const int64_t pieces = wide ? vocab / lanes_of(device->type) : vocab;
        const unsigned threads = (unsigned)least(entropy_threads, (pieces + 31) / 32 * 32);
        EX_LAUNCH(kernel, dim3((unsigned)count), dim3(threads), 0, of(device)->stream, at, targets + t,
                  weights + t, vocab, losses);
        launched(device, "cross_entropy");
        add_partials(device, losses, count, loss, "cross_entropy");
    }
}

} // namespace ex_cuda
