/* Rotary positions, and heads between sequence and head parallelism. */
#include <cmath>

#include "device/cuda/device.cuh"
#include "device/cuda/elements.cuh"

namespace ex_cuda
{

namespace
{

/* A thread has V pairs of a token and turns them in every head, so that each sine is taken once. Angles are
 * counted in half turns and in double until the whole turns are off: a float's would be wrong by 1 / 100 at
 * position 200000. */
template <typename T, int V>
__global__ void rotate(void *x_bytes, const int32_t *positions, int64_t count, int64_t stride, int32_t heads,
                       int32_t dim, double log2_theta, int back)
{
    T *const x = static_cast<T *>(x_bytes);
    const int32_t half = dim / 2;
    for (int32_t i = static_cast<int32_t>(threadIdx.x) * V; i < half;
         i += static_cast<int32_t>(blockDim.x) * V) {
        double half_turns[V]; /* a position */
#pragma unroll
        for (int v = 0; v < V; v++)
            half_turns[v] = exp2(-2.0 * (i + v) / dim * log2_theta) * 0.31830988618379067154; /* / pi */
        for (int64_t t = row_first(); t < count; t += row_step()) {
            float cosine[V], sine[V];
#pragma unroll
            for (int v = 0; v < V; v++) {
                const double angle = positions[t] * half_turns[v];
                sincospif(static_cast<float>(angle - 2.0 * rint(0.5 * angle)), &sine[v], &cosine[v]);
                if (back)
                    sine[v] = -sine[v];
            }
            T *place = x + t * stride + i;
            for (int32_t h = 0; h < heads; h++, place += dim) {
                float a[V], b[V];
                load(place, a);
                load(place + half, b);
#pragma unroll
                for (int v = 0; v < V; v++) {
                    const float first = a[v] * cosine[v] - b[v] * sine[v];
                    b[v] = a[v] * sine[v] + b[v] * cosine[v];
                    a[v] = first;
                }
                store(place, a);
                store(place + half, b);
            }
        }
    }
}

/* How heads lie on one of sp ranks; widths in elements. */
struct Share {
    int64_t queries;       /* of a rank's heads */
    int64_t keys;          /* of a rank's key heads, and of its value heads */
    int64_t width;         /* of a rank's row: queries + 2 keys */
    int64_t all_queries;   /* of all heads */
    int64_t all_keys;      /* of all key heads */
    int64_t all_width;     /* of a row of all */
    int32_t ranks_per_key; /* that hold the same key-value head */
};

/* Words of `W` bytes. Rows of out are [sp][T]. */
template <typename W>
__global__ void split_rows(const void *x_bytes, int64_t count, int64_t ranks, Share share, void *out_bytes)
{
    const W *const x = static_cast<const W *>(x_bytes);
    W *const out = static_cast<W *>(out_bytes);
    for (int64_t r = row_first(); r < count * ranks; r += row_step()) {
        const int64_t p = r / count, t = r - p * count;
        const int64_t first_key = p / share.ranks_per_key * share.keys;
        for (int64_t j = threadIdx.x; j < share.width; j += blockDim.x) {
            int64_t from = p * share.queries + j;
            if (j >= share.queries) {
                const int64_t key = j - share.queries;
                from = share.all_queries + first_key +
                       (key < share.keys ? key : share.all_keys + key - share.keys);
            }
            out[r * share.width + j] = x[t * share.all_width + from];
        }
    }
}

/* What came from several ranks is summed in fp32 in their order and rounded once. */
template <typename T, int V>
__global__ void merge_rows(const void *x_bytes, int64_t count, Share share, void *out_bytes)
{
    const T *const x = static_cast<const T *>(x_bytes);
    T *const out = static_cast<T *>(out_bytes);
    const int64_t pieces = share.all_width / V;
    for (int64_t t = row_first(); t < count; t += row_step()) {
        for (int64_t piece = threadIdx.x; piece < pieces; piece += blockDim.x) {
            const int64_t j = piece * V;
            int64_t p = 0, from = 0;
            int32_t ranks = 1;
            if (j < share.all_queries) {
                p = j / share.queries;
                from = j - p * share.queries;
            } else {
                const int64_t pair = j - share.all_queries;
                const bool value = pair >= share.all_keys;
                const int64_t key = value ? pair - share.all_keys : pair, owner = key / share.keys;
                ranks = share.ranks_per_key;
                p = owner * ranks;
                from = share.queries + (value ? share.keys : 0) + key - owner * share.keys;
            }
            const T *place = x + (p * count + t) * share.width + from;
            float sums[V];
            load(place, sums);
            for (int32_t r = 1; r < ranks; r++) {
                float more[V];
                place += count * share.width;
                load(place, more);
#pragma unroll
                for (int v = 0; v < V; v++)
                    sums[v] += more[v];
            }
            store(out + t * share.all_width + j, sums);
        }
    }
}

/* False with a fault where heads do not divide. */
bool share_of(ex_device *device, ex_heads all, int32_t sp, Share *share)
{
    if (sp < 1 || all.heads % sp || (all.kv_heads % sp && (all.kv_heads == 0 || sp % all.kv_heads))) {
        ex_fail(&device->fault, "%s: %d heads and %d key-value heads do not divide among %d ranks",
                device->name, (int)all.heads, (int)all.kv_heads, (int)sp);
        return false;
    }
    const bool shared = all.kv_heads > 0 && all.kv_heads < sp;
    const int64_t dim = all.dim;
    share->queries = all.heads / sp * dim;
    share->keys = (shared ? 1 : all.kv_heads / sp) * dim;
    share->width = share->queries + 2 * share->keys;
    share->all_queries = all.heads * dim;
    share->all_keys = all.kv_heads * dim;
    share->all_width = share->all_queries + 2 * share->all_keys;
    share->ranks_per_key = shared ? sp / all.kv_heads : 1;
    return true;
}

} // namespace

void rotary(ex_device *device, void *x, const int32_t *positions, int64_t T, int64_t stride, int32_t heads,
            int32_t dim, float theta, int back)
{
    if (T <= 0 || heads <= 0 || dim < 2 || !ready(device))
        return;
    const int64_t half = dim / 2;
    const bool wide = dim % 2 == 0 && is_wide(device, half, x) && stride % lanes_of(device->type) == 0;
    const auto kernel = EX_PICK(device, wide, rotate);
    const int64_t pieces = wide ? half / lanes_of(device->type) : half;
    unsigned across = 1; /* heads are few vectors wide: lanes of a warp take several tokens */
    while (across < pieces && across < block_threads)
        across *= 2;
    const dim3 block(across, block_threads / across);
    EX_LAUNCH(kernel, dim3(blocks_for(device, T, block.y)), block, 0, of(device)->stream, x, positions, T,
              stride, heads, dim, std::log2(static_cast<double>(theta)), back);
    launched(device, "rotary");
}

void split(ex_device *device, const void *x, int64_t T, ex_heads all, int32_t sp, void *out)
{
    Share share;
    if (!ready(device) || !share_of(device, all, sp, &share) || T <= 0)
        return;
    const int64_t lanes = lanes_of(device->type);
    const bool wide = all.dim % lanes == 0 && aligned(x, out);
    if (wide) { /* counted in words */
        share.queries /= lanes, share.keys /= lanes, share.width /= lanes;
        share.all_queries /= lanes, share.all_keys /= lanes, share.all_width /= lanes;
    }
    const auto kernel = wide                      ? split_rows<uint4>
                        : device->type == EX_BF16 ? split_rows<unsigned short>
                                                  : split_rows<unsigned>;
    const Shape shape = rows(device, T * sp, share.width);
    EX_LAUNCH(kernel, shape.grid, shape.block, 0, of(device)->stream, x, T, static_cast<int64_t>(sp), share,
              out);
    launched(device, "split");
}

void merge(ex_device *device, const void *x, int64_t T, ex_heads all, int32_t sp, void *out)
{
    Share share;
    if (!ready(device) || !share_of(device, all, sp, &share) || T <= 0)
        return;
    const bool wide = is_wide(device, all.dim, x, out);
    const auto kernel = EX_PICK(device, wide, merge_rows);
    const Shape shape = rows(device, T, wide ? share.all_width / lanes_of(device->type) : share.all_width);
    EX_LAUNCH(kernel, shape.grid, shape.block, 0, of(device)->stream, x, T, share, out);
    launched(device, "merge");
}

} // namespace ex_cuda
