/* The CPU's device: every operation in both types, its own product, its memory, its faults. */
#include "test.h"
#include <inttypes.h>
#include <pthread.h>

#include "device/cpu_elements.h"
#include "device_cases.h"

static ex_device *open_cpu(ex_type type)
{
    ex_fault fault = {0};
    ex_device *device = ex_cpu_open(type, 0, &fault);
    ck_assert_msg(device != NULL, "%s", fault.text);
    return device;
}

START_TEST(every_operation_in_fp32)
{
    ex_device *device = open_cpu(EX_F32);
    run_device_cases(device, 3e-6, 1);
    ex_device_free(device);
}
END_TEST

/* bfloat16 keeps 8 bits, so a result is half of 2^-7 off at most and backward starts from rounded outputs. */
START_TEST(every_operation_in_bf16)
{
    ex_device *device = open_cpu(EX_BF16);
    run_device_cases(device, 6e-3, 1);
    ex_device_free(device);
}
END_TEST

/* The oracle's own backward: sum of d_out * out along a random direction, by central differences. */
START_TEST(oracle_is_its_own_derivative)
{
    device_case c = {.device = open_cpu(EX_F32), .state = 3};
    const int32_t borders[] = {0, 5, 6, 13};
    ex_heads heads = {4, 2, 6};
    int64_t S = 13, width = 8 * 6, out_width = 24, f = 7;
    double *x = case_draw(&c, S * width, 1, 0), *way = case_draw(&c, S * width, 1, 0);
    double *d_y = case_draw(&c, S * out_width, 1, 0), *moved = case_zeros(&c, S * width);
    double *y = case_zeros(&c, S * out_width), *other = case_zeros(&c, S * width);
    const double step = 1e-5;
    for (int operation = 0; operation < 4; operation++) {
        double *d_x = case_zeros(&c, S * width), *d_weight = case_zeros(&c, S * width), ends[2] = {0};
        int64_t count = operation == 1 ? 2 * f : operation == 2 ? S * 8 : S * width, n = S * out_width;
        int32_t target = 3;
        double weight = 0.7;
        for (int side = 0; side < 2; side++) {
            for (int64_t i = 0; i < count; i++)
                moved[i] = x[i] + (side ? step : -step) * way[i];
            if (operation == 0)
                oracle_attention(moved, borders, 3, S, heads, y, other);
            if (operation == 1)
                oracle_swiglu(moved, 1, n = f, y);
            if (operation == 2)
                oracle_norm(moved, d_y + 50, S, 8, 1e-5, y, other), n = S * 8;
            ends[side] = operation == 3 ? oracle_cross_entropy(moved, &target, &weight, 1, count)
                                        : oracle_dot(y, d_y, n);
        }
        if (operation == 0)
            oracle_attention_back(x, d_y, borders, 3, S, heads, d_x);
        if (operation == 1)
            oracle_swiglu_back(x, d_y, 1, f, d_x);
        if (operation == 2) {
            oracle_norm(x, d_y + 50, S, 8, 1e-5, y, other);
            oracle_norm_back(x, d_y + 50, other, d_y, S, 8, d_x, d_weight);
        }
        if (operation == 3) {
            memcpy(d_x, x, (size_t)count * sizeof *x);
            oracle_cross_entropy(d_x, &target, &weight, 1, count);
        }
        double slope = (ends[1] - ends[0]) / (2 * step), along = oracle_dot(d_x, way, count);
        ck_assert_msg(fabs(slope - along) < 1e-7 * (1 + fabs(slope)), "operation %d: %.10g, %.10g", operation,
                      slope, along);
    }
    case_end(&c);
    ex_device_free(c.device);
}
END_TEST

/* What ex_cpu_sgemm is without OpenBLAS, with gaps between rows. */
START_TEST(own_product)
{
    device_case c = {.device = open_cpu(EX_F32), .state = 5};
    for (int kind = 0; kind < 8; kind++) {
        int64_t m = 6 + kind, n = 261, k = 70 + kind;
        int trans_a = kind & 1, trans_b = kind >> 1 & 1;
        double beta = kind & 4 ? 1 : 0;
        CASE(&c, "own product %d", kind);
        double *a = case_draw(&c, m * k, 1, 0), *b = case_draw(&c, k * n, 1, 0);
        double *want = case_draw(&c, m * n, 1, 0), *got = case_zeros(&c, m * n);
        int64_t columns_a = trans_a ? m : k, columns_b = trans_b ? k : n, gap = 3;
        float *fa = calloc((size_t)((columns_a + gap) * (m + k)), sizeof *fa);
        float *fb = calloc((size_t)((columns_b + gap) * (n + k)), sizeof *fb);
        float *fc = calloc((size_t)((n + gap) * m), sizeof *fc);
        ck_assert(fa && fb && fc);
        for (int64_t i = 0; i < m * k; i++)
            fa[i / columns_a * (columns_a + gap) + i % columns_a] = (float)a[i];
        for (int64_t i = 0; i < k * n; i++)
            fb[i / columns_b * (columns_b + gap) + i % columns_b] = (float)b[i];
        for (int64_t i = 0; i < m * n; i++)
            fc[i / n * (n + gap) + i % n] = beta == 0 ? NAN : (float)want[i];
        oracle_gemm(trans_a, trans_b, m, n, k, a, b, beta, want);
        for (int64_t i = 0; i < m * n; i++) /* alpha 2 */
            want[i] += want[i] - (beta == 0 ? 0 : (double)fc[i / n * (n + gap) + i % n]);
        ex_cpu_plain_sgemm(trans_a, trans_b, m, n, k, 2.0f, fa, columns_a + gap, fb, columns_b + gap,
                           (float)beta, fc, n + gap);
        for (int64_t i = 0; i < m * n; i++)
            got[i] = (double)fc[i / n * (n + gap) + i % n];
        case_near(&c, "c", got, want, m * n, 2e-6);
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = n; j < n + gap; j++)
                ck_assert(fc[i * (n + gap) + j] == 0.0f);
        free(fa);
        free(fb);
        free(fc);
        case_end(&c);
    }
    ex_device_free(c.device);
}
END_TEST

START_TEST(exponentials)
{
    for (double x = -87.2; x < 88.2; x += 0.00317) {
        float f = (float)x;
        double want = exp((double)f), got = (double)ex_cpu_exp(f);
        ck_assert_msg(fabs(got - want) <= 2.5e-7 * want, "e^%.9g is %.9g; %.9g", (double)f, want, got);
    }
    ck_assert(ex_cpu_exp(0.0f) == 1.0f);
    ck_assert(ex_cpu_exp(-88.0f) == 0.0f);
    ck_assert(ex_cpu_exp(-1e30f) == 0.0f);
    ck_assert(ex_cpu_exp(-INFINITY) == 0.0f);
    ck_assert(isfinite(ex_cpu_exp(1e30f)) && ex_cpu_exp(1e30f) > 1e38f);
    ck_assert(isnan(ex_cpu_exp(NAN)));
}
END_TEST

START_TEST(rounding_to_bf16)
{
    device_case c = {.state = 9};
    for (int i = 0; i < 200000; i++) {
        float f = (float)ldexp(2 * case_random(&c) - 1, (int)(200 * case_random(&c)) - 100);
        if (i % 3 == 0) /* halfway between two, and just beside */
            f = ex_cpu_float((ex_cpu_bits(f) & 0xffff0000u) | (0x8000u + (uint32_t)(i / 3 % 3) - 1));
        float want = case_element(EX_BF16, (double)f);
        ck_assert(ex_cpu_float((uint32_t)ex_cpu_narrow(f) << 16) == want);
    }
    ck_assert_uint_eq(ex_cpu_narrow(INFINITY), 0x7f80);
    ck_assert_uint_eq(ex_cpu_narrow(-3.4e38f), 0xff80);
    ck_assert_uint_eq(ex_cpu_narrow(-0.0f), 0x8000);
    ck_assert(isnan(ex_cpu_float((uint32_t)ex_cpu_narrow(ex_cpu_float(0x7f800001u)) << 16)));
}
END_TEST

START_TEST(memory_that_is_not_there)
{
    ex_device *device = open_cpu(EX_F32);
    int64_t own = device->allocated, free_bytes, total_bytes;
    ck_assert_int_gt(own, 0);
    ex_cpu_limit(device, own + 1000);
    device->ops->memory(device, &free_bytes, &total_bytes);
    ck_assert_int_eq(free_bytes, 1000);
    ck_assert_int_eq(total_bytes, own + 1000);
    void *most = device->ops->allocate(device, 700);
    ck_assert_ptr_nonnull(most);
    ck_assert_ptr_null(device->ops->allocate(device, 301));
    char want[300];
    snprintf(want, sizeof want, "%s: 301 bytes asked for; 300 of %" PRId64 " are free", device->name,
             own + 1000);
    ck_assert_str_eq(device->fault.text, want);
    ck_assert_int_eq(device->allocated, own + 700);
    ck_assert_int_eq(ex_device_sync(device), -1);
    ck_assert_ptr_null(device->ops->allocate(device, 1)); /* sticky */
    ck_assert_str_eq(device->fault.text, want);
    float x[2] = {1, 2};
    device->ops->add(device, x, x, 2);
    ck_assert(x[0] == 1.0f && x[1] == 2.0f);
    device->ops->release(device, most);
    ck_assert_int_eq(device->allocated, own);
    ex_device_free(device);

    device = open_cpu(EX_BF16);
    device->ops->memory(device, &free_bytes, &total_bytes);
    ck_assert_ptr_null(device->ops->allocate(device, INT64_MAX));
    ck_assert_ptr_nonnull(strstr(device->fault.text, "9223372036854775807 bytes asked for"));
    ex_device_free(device);
    device = open_cpu(EX_F32);
    ck_assert_ptr_null(device->ops->allocate(device, -1));
    ck_assert_ptr_nonnull(strstr(device->fault.text, ": -1 bytes asked for"));
    ex_device_free(device);
}
END_TEST

/* Every check of arguments, each with its line. */
START_TEST(faults)
{
    static const char *wants[] = {"target 9 of row 1 is outside the vocabulary of 4",
                                  "a head of 258 elements; the CPU's operations hold heads of at most 256",
                                  "heads of 264 elements; attention on the CPU holds at most 256",
                                  "3 heads cannot share 2 key-value heads",
                                  "document 1 is tokens 2 to 9 of 4",
                                  "6 heads and 2 key-value heads do not divide among 4 ranks",
                                  "8 heads and 3 key-value heads do not divide among 2 ranks",
                                  "a product of sides 3000000000, 1, 1; a side is at most 2147483647"};
    for (int i = 0; i < 8; i++) {
        ex_device *device = open_cpu(EX_F32);
        const ex_device_ops *ops = device->ops;
        float x[8] = {0}, y[8] = {0};
        double loss = 0;
        int32_t borders[] = {0, 2, i == 4 ? 9 : 4}, targets[] = {0, 9};
        ex_documents documents = {borders, borders, 2, 2};
        if (i == 0)
            ops->cross_entropy(device, x, targets, (const float[]){1, 1}, 2, 4, &loss);
        if (i == 1)
            ops->rotary(device, x, targets, 1, 258, 1, 258, 10000.0f, 0);
        if (i == 2)
            ops->attention(device, x, &documents, 4, (ex_heads){1, 1, 264}, y, y);
        if (i == 3)
            ops->attention_back(device, x, x, x, x, &documents, 4, (ex_heads){3, 2, 8}, y, y);
        if (i == 4)
            ops->attention(device, x, &documents, 4, (ex_heads){1, 1, 8}, y, y);
        if (i == 5)
            ops->split(device, x, 1, (ex_heads){6, 2, 8}, 4, y);
        if (i == 6)
            ops->merge(device, x, 1, (ex_heads){8, 3, 8}, 2, y);
        if (i == 7)
            ops->gemm(device, 0, 0, 3000000000, 1, 1, x, x, 0, y, 0);
        ck_assert_int_eq(ex_device_sync(device), -1);
        ck_assert_msg(strstr(device->fault.text, wants[i]) && strstr(device->fault.text, device->name),
                      "%s: not: %s", device->fault.text, wants[i]);
        ex_device_free(device);
    }
}
END_TEST

enum {
    RANK_TOKENS = 150,
    RANK_DIM = 32,
    RANK_WIDTH = 4 * RANK_DIM,
    RANK_ELEMENTS = RANK_TOKENS * RANK_WIDTH
};

/* What a virtual rank does, its results kept. */
typedef struct virtual_rank {
    ex_type type;
    uint64_t seed;
    char failed[512];
    float results[3 * RANK_ELEMENTS];
} virtual_rank;

static void *run_rank(void *argument)
{
    virtual_rank *rank = argument;
    ex_fault fault = {0};
    ex_device *device = ex_cpu_open(rank->type, 1, &fault);
    if (!device) {
        snprintf(rank->failed, sizeof rank->failed, "%s", fault.text);
        return NULL;
    }
    const ex_device_ops *ops = device->ops;
    device_case random = {.device = device, .state = rank->seed};
    float *host = rank->results; /* drawn here first */
    void *buffers[6];
    for (int i = 0; i < RANK_ELEMENTS; i++)
        host[i] = (float)(2 * case_random(&random) - 1);
    for (int i = 0; i < 6; i++)
        buffers[i] = ops->allocate(device, RANK_ELEMENTS * 4);
    void *scratch =
        ops->allocate(device, ops->attention_scratch(device, RANK_TOKENS, (ex_heads){2, 1, RANK_DIM}));
    const int32_t borders[] = {0, 140, RANK_TOKENS};
    ex_documents documents = {borders, borders, 2, 140};
    ops->cast(device, host, buffers[0], RANK_ELEMENTS);
    for (int turn = 0; turn < 5; turn++) {
        ops->gemm(device, 1, 0, RANK_WIDTH, RANK_WIDTH, RANK_TOKENS, buffers[0], buffers[0], 0, buffers[1],
                  1);
        ops->attention(device, buffers[0], &documents, RANK_TOKENS, (ex_heads){2, 1, RANK_DIM}, buffers[2],
                       buffers[3]);
        ops->attention_back(device, buffers[0], buffers[2], buffers[2], buffers[3], &documents, RANK_TOKENS,
                            (ex_heads){2, 1, RANK_DIM}, buffers[4], scratch);
    }
    memset(rank->results, 0, sizeof rank->results);
    int64_t element = (int64_t)ex_type_bytes(rank->type);
    ops->copy_out(device, host, buffers[1], RANK_WIDTH * RANK_WIDTH * 4);
    ops->copy_out(device, host + RANK_ELEMENTS, buffers[2], RANK_ELEMENTS / 2 * element);
    ops->copy_out(device, host + 2 * RANK_ELEMENTS, buffers[4], RANK_ELEMENTS * element);
    if (ex_device_sync(device))
        snprintf(rank->failed, sizeof rank->failed, "%s", device->fault.text);
    for (int i = 0; i < 6; i++)
        ops->release(device, buffers[i]);
    ops->release(device, scratch);
    ex_device_free(device);
    return NULL;
}

/* Ranks that are threads of a process have a device each: the same bits as one after another. */
START_TEST(devices_of_threads)
{
    enum { RANKS = 6 };
    static virtual_rank alone[RANKS], together[RANKS];
    pthread_t threads[RANKS];
    for (int i = 0; i < RANKS; i++) {
        alone[i].type = together[i].type = i % 2 ? EX_BF16 : EX_F32;
        alone[i].seed = together[i].seed = (uint64_t)i;
        run_rank(&alone[i]);
        ck_assert_str_eq(alone[i].failed, "");
    }
    for (int i = 0; i < RANKS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, run_rank, &together[i]), 0);
    for (int i = 0; i < RANKS; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < RANKS; i++) {
        ck_assert_str_eq(together[i].failed, "");
        ck_assert_mem_eq(together[i].results, alone[i].results, sizeof alone[i].results);
        ck_assert(i == 0 || memcmp(alone[i].results, alone[i - 1].results, sizeof alone[i].results));
    }
}
END_TEST

TEST_MAIN("cpu", every_operation_in_fp32, every_operation_in_bf16, oracle_is_its_own_derivative, own_product,
          exponentials, rounding_to_bf16, memory_that_is_not_there, faults, devices_of_threads)
