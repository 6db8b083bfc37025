/* The emulator of CUDA, on kernels whose results are known and on kernels that are wrong. */
#include "emulator/emulator.h"

#include <check.h>
#include <cstring>
#include <vector>

#include <cuda_bf16.h>

#include "device/cuda/launch.cuh"
#include "emulator/warp_matrix.h"

namespace
{

/* Device memory that goes when the test does. */
template <typename T> struct Array {
    T *data = nullptr;
    std::size_t count;
    explicit Array(std::size_t count_) : count(count_)
    {
        ck_assert_int_eq(cudaMalloc(&data, count * sizeof(T)), cudaSuccess);
    }
    explicit Array(const std::vector<T> &from) : Array(from.size())
    {
        ck_assert_int_eq(cudaMemcpy(data, from.data(), count * sizeof(T), cudaMemcpyHostToDevice),
                         cudaSuccess);
    }
    Array(const Array &) = delete;
    Array &operator=(const Array &) = delete;
    ~Array()
    {
        cudaFree(data);
    }
    std::vector<T> read() const
    {
        std::vector<T> host(count);
        ck_assert_int_eq(cudaMemcpy(host.data(), data, count * sizeof(T), cudaMemcpyDeviceToHost),
                         cudaSuccess);
        return host;
    }
};

std::vector<float> counting(std::size_t count)
{
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; i++)
        values[i] = static_cast<float>((i * 37 + 11) % 101);
    return values;
}

/* Sums by a tree in shared memory; without the barriers when `broken`. */
template <bool broken> __global__ void block_sum(const float *x, float *out, int count)
{
    EX_SHARED(float, dynamic);
    EX_SHARED_ARRAY(float, last, 1);
    const int t = static_cast<int>(threadIdx.x), i = static_cast<int>(blockIdx.x * blockDim.x) + t;
    dynamic[t] = i < count ? x[i] : 0;
    for (int half = static_cast<int>(blockDim.x) / 2; half > 0; half /= 2) {
        if (!broken)
            __syncthreads();
        if (t < half)
            dynamic[t] += dynamic[t + half];
    }
    if (t == 0)
        last[0] = dynamic[0];
    __syncthreads();
    if (t == static_cast<int>(blockDim.x) - 1)
        out[blockIdx.x] = last[0];
}

template <bool broken> std::vector<float> sums_of(const std::vector<float> &x, unsigned threads)
{
    const unsigned blocks = static_cast<unsigned>((x.size() + threads - 1) / threads);
    const Array<float> in(x), out(blocks);
    EX_LAUNCH((block_sum<broken>), blocks, threads, threads * sizeof(float), nullptr, in.data, out.data,
              static_cast<int>(x.size()));
    ck_assert_int_eq(cudaGetLastError(), cudaSuccess);
    ck_assert_str_eq(ex_emulator_error(), "");
    return out.read();
}

const struct {
    ex_emulator_order order;
    uint64_t seed;
} orders[] = {{EX_EMULATOR_FORWARD, 0}, {EX_EMULATOR_REVERSE, 0}, {EX_EMULATOR_SHUFFLED, 3}};

START_TEST(blocks_share_memory_and_meet_at_barriers)
{
    ex_emulator_set_order(orders[_i].order, orders[_i].seed);
    const std::vector<float> x = counting(1000), got = sums_of<false>(x, 128);
    ck_assert_uint_eq(got.size(), 8);
    for (std::size_t b = 0; b < got.size(); b++) {
        float sum = 0;
        for (std::size_t i = 128 * b; i < 1000 && i < 128 * (b + 1); i++)
            sum += x[i];
        ck_assert_float_eq(got[b], sum);
    }
}
END_TEST

START_TEST(missing_barrier_shows_in_another_order)
{
    const std::vector<float> x = counting(128), right = sums_of<false>(x, 128);
    int wrong = 0;
    for (const auto &order : orders) {
        ex_emulator_set_order(order.order, order.seed);
        wrong += sums_of<true>(x, 128) != right; /* NaN, never written, is unequal as well */
    }
    ck_assert_int_gt(wrong, 0);
}
END_TEST

/* Two rounds through the same memory; without the barrier between them when `broken`, so that a warp that is
 * ahead overwrites what others have yet to read. */
template <bool broken> __global__ void two_rounds(float *out)
{
    EX_SHARED_ARRAY(float, per_warp, 4);
    const int t = static_cast<int>(threadIdx.x);
    float sum = 0;
    for (int round = 0; round < 2; round++) {
        if (t % 32 == 0)
            per_warp[t / 32] = static_cast<float>((round + 1) * (t / 32 + 1));
        __syncthreads();
        sum = 100 * sum + per_warp[0] + per_warp[1] + per_warp[2] + per_warp[3];
        if (!broken)
            __syncthreads();
    }
    out[t] = sum;
}

START_TEST(missing_second_barrier_shows)
{
    int wrong = 0;
    for (const auto &order : orders) {
        ex_emulator_set_order(order.order, order.seed);
        const Array<float> good(128), bad(128);
        EX_LAUNCH((two_rounds<false>), 1, 128, 0, nullptr, good.data);
        EX_LAUNCH((two_rounds<true>), 1, 128, 0, nullptr, bad.data);
        ck_assert_str_eq(ex_emulator_error(), "");
        const std::vector<float> right(128, 1020);
        ck_assert(good.read() == right);
        wrong += bad.read() != right;
    }
    ck_assert_int_ge(wrong, 1);
}
END_TEST

__global__ void shuffles(float *out)
{
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const float value = static_cast<float>(threadIdx.x);
    float *const row = out + 8 * threadIdx.x;
    row[0] = __shfl_xor_sync(0xffffffffu, value, 5);
    row[1] = __shfl_sync(0xffffffffu, value, 7);
    row[2] = __shfl_down_sync(0xffffffffu, value, 3);
    row[3] = __shfl_up_sync(0xffffffffu, value, 4);
    row[4] = __shfl_down_sync(0xffffffffu, value, 3, 8);
    row[5] = __shfl_sync(0xffffffffu, value, 1, 4);
    row[6] = static_cast<float>(__ballot_sync(0xffffffffu, lane < 5 || lane == 20));
    float sum = value;
    for (int bit = 16; bit > 0; bit /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, bit);
    row[7] = sum;
    __syncwarp();
}

START_TEST(lanes_shuffle)
{
    ex_emulator_set_order(orders[_i].order, orders[_i].seed);
    const Array<float> out(8 * 64);
    EX_LAUNCH(shuffles, 1, 64, 0, nullptr, out.data);
    ck_assert_str_eq(ex_emulator_error(), "");
    const std::vector<float> got = out.read();
    for (int t = 0; t < 64; t++) {
        const float *const row = got.data() + 8 * t;
        const int lane = t % 32, warp = t - lane;
        const int want[8] = {warp + (lane ^ 5),
                             warp + 7,
                             lane + 3 < 32 ? t + 3 : t,
                             lane >= 4 ? t - 4 : t,
                             lane % 8 + 3 < 8 ? t + 3 : t,
                             t - lane % 4 + 1,
                             0x10001f,
                             warp * 32 + 31 * 16};
        for (int i = 0; i < 8; i++)
            ck_assert_float_eq(row[i], static_cast<float>(want[i]));
    }
}
END_TEST

__global__ void plain_mma(const __nv_bfloat16 *a, const __nv_bfloat16 *b, float *d, int by_ldmatrix)
{
    EX_SHARED_ARRAY(__nv_bfloat16, tile_a, 16 * 16);
    EX_SHARED_ARRAY(__nv_bfloat16, tile_b, 16 * 8);
    const int lane = static_cast<int>(threadIdx.x), g = lane / 4, t = lane % 4;
    ex_emulator::cp_async(tile_a + 8 * lane, a + 8 * lane, 16, 16);
    ex_emulator::cp_async(tile_b + 4 * lane, b + 4 * lane, 8, 8);
    ex_emulator::cp_async_commit();
    ex_emulator::cp_async_wait(0);
    __syncthreads();
    std::uint32_t ra[4], rb[2];
    if (by_ldmatrix) {
        ex_emulator::ldmatrix(ra, 4, false, tile_a + (lane % 16) * 16 + lane / 16 * 8);
        ex_emulator::ldmatrix(rb, 2, true, tile_b + (lane % 16) * 8);
    } else {
        const auto pair = [](__nv_bfloat16 low, __nv_bfloat16 high) {
            return static_cast<std::uint32_t>(__bfloat16_as_ushort(low)) |
                   static_cast<std::uint32_t>(__bfloat16_as_ushort(high)) << 16;
        };
        for (int r = 0; r < 4; r++) {
            const __nv_bfloat16 *const at = tile_a + (g + r % 2 * 8) * 16 + 2 * t + r / 2 * 8;
            ra[r] = pair(at[0], at[1]);
        }
        for (int r = 0; r < 2; r++) {
            const __nv_bfloat16 *const at = tile_b + (2 * t + 8 * r) * 8 + g;
            rb[r] = pair(at[0], at[8]);
        }
    }
    float c[4] = {1, 2, 3, 4};
    ex_emulator::mma_m16n8k16_bf16(c, ra, rb, c);
    for (int i = 0; i < 4; i++)
        d[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = c[i];
}

START_TEST(warps_multiply_matrices)
{
    std::vector<__nv_bfloat16> a(16 * 16), b(16 * 8);
    for (std::size_t i = 0; i < a.size(); i++)
        a[i] = static_cast<float>(i * 29 % 17) - 8;
    for (std::size_t i = 0; i < b.size(); i++)
        b[i] = static_cast<float>(i * 31 % 13) - 6;
    const Array<__nv_bfloat16> da(a), db(b);
    const Array<float> d(16 * 8);
    EX_LAUNCH(plain_mma, 1, 32, 0, nullptr, da.data, db.data, d.data, _i);
    ck_assert_str_eq(ex_emulator_error(), "");
    const std::vector<float> got = d.read();
    for (std::size_t i = 0; i < 16; i++) {
        for (std::size_t j = 0; j < 8; j++) {
            float sum = static_cast<float>(1 + i / 8 * 2 + j % 2);
            for (std::size_t k = 0; k < 16; k++)
                sum += static_cast<float>(a[i * 16 + k]) * static_cast<float>(b[k * 8 + j]);
            ck_assert_float_eq(got[i * 8 + j], sum);
        }
    }
}
END_TEST

START_TEST(bfloat16_rounds_to_nearest_even)
{
    const struct {
        unsigned from, to;
    } cases[] = {{0x3f800000, 0x3f80}, {0x3f808000, 0x3f80}, {0x3f808001, 0x3f81}, {0x3f818000, 0x3f82},
                 {0x3f807fff, 0x3f80}, {0x7f7fffff, 0x7f80}, {0xff800000, 0xff80}, {0x7f800001, 0x7fff},
                 {0xffc00000, 0x7fff}, {0x80000000, 0x8000}, {0x00008000, 0x0000}, {0x00018000, 0x0002}};
    for (const auto &one : cases)
        ck_assert_uint_eq(__bfloat16_as_ushort(__float2bfloat16(__uint_as_float(one.from))), one.to);
    for (unsigned bits = 0; bits < 0x7f80; bits++) { /* every finite one survives the way there and back */
        const __nv_bfloat16 value = __ushort_as_bfloat16(static_cast<unsigned short>(bits));
        ck_assert_uint_eq(__bfloat16_as_ushort(__float2bfloat16(__bfloat162float(value))), bits);
    }
}
END_TEST

__global__ void half_at_barrier()
{
    if (threadIdx.x < 16)
        __syncthreads();
}

__global__ void two_barriers()
{
    if (threadIdx.x < 16)
        __syncthreads();
    else
        __syncthreads();
}

__global__ void half_shuffles()
{
    if (threadIdx.x < 16)
        (void)__shfl_sync(0xffffffffu, 1, 0);
}

__global__ void outside_of_mask()
{
    (void)__shfl_sync(0x0000ffffu, 1, 0);
}

__global__ void much_static()
{
    EX_SHARED_ARRAY(float, big, 12 * 1024 + 1);
    big[threadIdx.x] = 0;
}

__global__ void misaligned_copy(const float *from)
{
    EX_SHARED_ARRAY(float, tile, 8);
    ex_emulator::cp_async(tile + 1, from, 16, 16);
}

void expect_error(const char *text)
{
    ck_assert_int_ne(cudaDeviceSynchronize(), cudaSuccess);
    ck_assert_msg(strstr(ex_emulator_error(), text), "%s", ex_emulator_error());
    ex_emulator_clear();
    ck_assert_int_eq(cudaDeviceSynchronize(), cudaSuccess);
}

START_TEST(wrong_kernels_are_named)
{
    EX_LAUNCH(half_at_barrier, 1, 64, 0, nullptr);
    expect_error("half_at_barrier: block (0, 0, 0), thread (0, 0, 0): 16 of 64 threads wait at the barrier");
    EX_LAUNCH(two_barriers, 1, 64, 0, nullptr);
    expect_error("two different barriers");
    EX_LAUNCH(half_shuffles, 2, 32, 0, nullptr);
    expect_error("16 of 32 threads wait in operations of their warp that not all lanes of the mask reach; 16 "
                 "have ended");
    EX_LAUNCH(outside_of_mask, 1, 32, 0, nullptr);
    expect_error("with a mask that leaves it out");
    EX_LAUNCH(half_shuffles, 1, 16, 0, nullptr);
    expect_error("names lanes that the block does not have");
    EX_LAUNCH(much_static, 1, 32, 0, nullptr);
    expect_error("static shared memory");
    EX_LAUNCH((block_sum<true>), 1, 32, 48 * 1024, nullptr, nullptr, nullptr, 0); /* and 4 bytes of its own */
    expect_error("with the dynamic one");
    const Array<float> from(8);
    EX_LAUNCH(misaligned_copy, 1, 1, 0, nullptr, from.data);
    expect_error("misaligned");
}
END_TEST

/* A launch that is refused: cudaGetLastError says so at once. */
void expect_refusal(dim3 grid, dim3 block, std::size_t shared)
{
    const Array<float> x(16);
    EX_LAUNCH((block_sum<false>), grid, block, shared, nullptr, x.data, x.data, 0);
    ck_assert_int_eq(cudaGetLastError(), cudaErrorInvalidConfiguration);
    ck_assert_ptr_nonnull(strstr(ex_emulator_error(), "block_sum"));
    ex_emulator_clear();
}

START_TEST(launches_above_the_limits_are_refused)
{
    expect_refusal(1, 1025, 0);
    expect_refusal(1, dim3(32, 33), 0);
    expect_refusal(1, 0, 0);
    expect_refusal(0, 32, 0);
    expect_refusal(dim3(1, 65536), 32, 0);
    expect_refusal(1, 32, 48 * 1024 + 1);
    ck_assert_int_eq(
        cudaFuncSetAttribute(block_sum<false>, cudaFuncAttributeMaxDynamicSharedMemorySize, 227 * 1024 + 1),
        cudaErrorInvalidValue);
    ck_assert_int_eq(
        cudaFuncSetAttribute(block_sum<false>, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 * 1024),
        cudaSuccess);
    const Array<float> x(1024);
    EX_LAUNCH((block_sum<false>), 1, 32, 100 * 1024, nullptr, x.data, x.data, 0);
    ck_assert_int_eq(cudaDeviceSynchronize(), cudaSuccess);
    expect_refusal(1, 32, 100 * 1024 + 1);
}
END_TEST

__global__ void store(float *to, float value)
{
    to[threadIdx.x] = value;
}

START_TEST(streams_run_when_waited_for)
{
    cudaStream_t one, two;
    cudaEvent_t event;
    ck_assert_int_eq(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking), cudaSuccess);
    ck_assert_int_eq(cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking), cudaSuccess);
    ck_assert_int_eq(cudaEventCreate(&event), cudaSuccess);
    const Array<float> x(4);
    float *pinned;
    ck_assert_int_eq(cudaMallocHost(&pinned, sizeof *pinned), cudaSuccess);
    EX_LAUNCH(store, 1, 4, 0, one, x.data, 5.0f);
    ck_assert_int_eq(cudaStreamQuery(one), cudaErrorNotReady);
    ck_assert_int_eq(cudaGetLastError(), cudaErrorNotReady); /* it stays, as CUDA's does */
    ck_assert(std::isnan(x.data[0]));
    ck_assert_int_eq(cudaEventRecord(event, one), cudaSuccess);
    EX_LAUNCH(store, 1, 4, 0, one, x.data, 6.0f);
    ck_assert_int_eq(cudaStreamWaitEvent(two, event), cudaSuccess);
    ck_assert_int_eq(cudaMemcpyAsync(pinned, x.data, sizeof *pinned, cudaMemcpyDeviceToHost, two),
                     cudaSuccess);
    ck_assert(std::isnan(*pinned)); /* nobody waited yet */
    ck_assert_int_eq(cudaStreamSynchronize(two), cudaSuccess);
    ck_assert_float_eq(*pinned, 5); /* what stood before the event, and nothing after it */
    ck_assert_int_eq(cudaStreamSynchronize(one), cudaSuccess);
    ck_assert_float_eq(x.data[3], 6);
    /* Pageable memory is read before the copy returns, pinned memory when the stream comes to it. */
    float host = 7;
    *pinned = 1;
    ck_assert_int_eq(cudaMemcpyAsync(x.data, &host, sizeof host, cudaMemcpyHostToDevice, one), cudaSuccess);
    ck_assert_int_eq(cudaMemcpyAsync(x.data + 1, pinned, sizeof host, cudaMemcpyHostToDevice, one),
                     cudaSuccess);
    host = 8;
    *pinned = 2;
    ck_assert_int_eq(cudaStreamSynchronize(one), cudaSuccess);
    ck_assert_float_eq(x.data[0], 7);
    ck_assert_float_eq(x.data[1], 2);
    ck_assert_int_eq(cudaFreeHost(pinned), cudaSuccess);
    ck_assert_int_eq(cudaEventDestroy(event), cudaSuccess);
    ck_assert_int_eq(cudaStreamDestroy(one), cudaSuccess);
    ck_assert_int_eq(cudaStreamDestroy(two), cudaSuccess);
}
END_TEST

START_TEST(memory_is_counted_and_copies_are_checked)
{
    std::size_t free_before, free_after, total;
    ex_emulator_set_memory(1 << 20);
    ck_assert_int_eq(cudaMemGetInfo(&free_before, &total), cudaSuccess);
    ck_assert_uint_eq(total, 1 << 20);
    {
        const Array<float> x(1000);
        ck_assert_int_eq(cudaMemGetInfo(&free_after, &total), cudaSuccess);
        ck_assert_uint_eq(free_before - free_after, 4000);
        float host[1001] = {};
        ck_assert_int_ne(cudaMemcpy(x.data, host, sizeof host, cudaMemcpyHostToDevice), cudaSuccess);
        expect_error("outside of its allocation");
        ck_assert_int_ne(cudaMemcpy(host, x.data, 4, cudaMemcpyHostToDevice), cudaSuccess);
        expect_error("the kind 1 is not that of its ends");
        ck_assert_int_eq(cudaMemset(x.data + 1, 0, 4000), cudaSuccess);
        expect_error("memset of 4000 bytes outside of an allocation");
    }
    void *memory;
    ck_assert_int_eq(cudaMalloc(&memory, (1 << 20) + 1), cudaErrorMemoryAllocation);
    ck_assert_int_eq(cudaGetLastError(), cudaErrorMemoryAllocation);
    ck_assert_int_eq(cudaGetLastError(), cudaSuccess);
    ck_assert_int_eq(ex_emulator_allocated(), 0);
    ex_emulator_fail_call(2);
    ck_assert_int_eq(cudaMalloc(&memory, 16), cudaSuccess);
    ck_assert_int_eq(cudaMemset(memory, 0, 16), cudaErrorInvalidValue);
    ck_assert_int_eq(cudaMemset(memory, 0, 16), cudaSuccess);
    ck_assert_int_eq(cudaFree(memory), cudaSuccess);
}
END_TEST

Suite *suite()
{
    Suite *const s = suite_create("emulator");
    TCase *const t = tcase_create("emulator");
    tcase_add_loop_test(t, blocks_share_memory_and_meet_at_barriers, 0, 3);
    tcase_add_test(t, missing_barrier_shows_in_another_order);
    tcase_add_test(t, missing_second_barrier_shows);
    tcase_add_loop_test(t, lanes_shuffle, 0, 3);
    tcase_add_loop_test(t, warps_multiply_matrices, 0, 2);
    tcase_add_test(t, bfloat16_rounds_to_nearest_even);
    tcase_add_test(t, wrong_kernels_are_named);
    tcase_add_test(t, launches_above_the_limits_are_refused);
    tcase_add_test(t, streams_run_when_waited_for);
    tcase_add_test(t, memory_is_counted_and_copies_are_checked);
    suite_add_tcase(s, t);
    return s;
}

} // namespace

int main()
{
    SRunner *const runner = srunner_create(suite());
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
