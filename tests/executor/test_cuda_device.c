/* The CUDA device: every operation in both types and in several orders of threads, its memory and streams,
 * its faults. */
#include "executor/cuda_under_test.h"

#include <inttypes.h>
#include <math.h>

#include "device_cases.h"

enum { ORDERS = 3 };

static void set_order(int i)
{
    static const ex_emulator_order orders[ORDERS] = {EX_EMULATOR_FORWARD, EX_EMULATOR_REVERSE,
                                                     EX_EMULATOR_SHUFFLED};
    ex_emulator_set_order(orders[i], (uint64_t)i);
}

static ex_device *open_cuda(ex_type type)
{
    ex_fault fault = {0};
    ex_device *device = ex_cuda_open(type, 0, &fault);
    ck_assert_msg(device != NULL, "%s", fault.text);
    return device;
}

static void close_cuda(ex_device *device)
{
    ex_device_free(device);
    ck_assert_str_eq(ex_emulator_error(), "");
    ck_assert_int_eq(ex_emulator_allocated(), 0);
}

START_TEST(every_operation_in_fp32)
{
    set_order(_i);
    ex_device *device = open_cuda(EX_F32);
    run_device_cases(device, 3e-6, _i == 0);
    close_cuda(device);
}
END_TEST

/* As the CPU's: half of 2^-7 at most, and backward starts from rounded outputs. */
START_TEST(every_operation_in_bf16)
{
    set_order(_i);
    ex_device *device = open_cuda(EX_BF16);
    run_device_cases(device, 6e-3, 0);
    close_cuda(device);
}
END_TEST

/* Everything whose result is a sum, over sizes that leave blocks, warps and pieces unfilled. The results lie
 * one after another in `bits`, which is zeroed before. */
static void sums_of(ex_type type, unsigned char *bits, int64_t bytes)
{
    enum { T = 75, WIDTH = 264, VOCAB = 40 };
    device_case c = {.device = open_cuda(type), .state = 5};
    const ex_device_ops *ops = c.device->ops;
    int32_t tokens[T], order[T];
    case_tokens(&c, T, VOCAB, tokens, order);
    void *x = case_elements(&c, case_draw(&c, T * WIDTH, 1, 1), T * WIDTH);
    void *y = case_elements(&c, case_draw(&c, T * WIDTH, 1, 1), T * WIDTH);
    void *weight = case_elements(&c, case_draw(&c, WIDTH, 1, 1), WIDTH);
    float *factors = case_floats(&c, case_draw(&c, T, 1, 0), T);
    int32_t *on_tokens = case_ints(&c, tokens, T), *on_order = case_ints(&c, order, T);
    unsigned char *out = case_bytes(&c, bits, bytes);
    float *table = (float *)(void *)out, *d_weight = table + VOCAB * WIDTH, *bias = d_weight + WIDTH;
    double *numbers = (double *)(void *)(bias + WIDTH); /* a loss, a sum of squares */
    ck_assert_int_eq((unsigned char *)(numbers + 2) - out, bytes);
    ops->embed_back(c.device, x, on_tokens, on_order, T, WIDTH, table);
    ops->norm_back(c.device, x, weight, factors, y, T, WIDTH, y, d_weight);
    ops->bias_back(c.device, y, T, WIDTH, bias);
    ops->cross_entropy(c.device, x, on_tokens, factors, T, WIDTH, numbers);
    ops->sum_squares(c.device, table, VOCAB * WIDTH, numbers + 1);
    ops->copy_out(c.device, bits, out, bytes);
    case_end(&c);
    close_cuda(c.device);
}

START_TEST(sums_have_the_same_bits_in_every_order)
{
    enum { BYTES = (40 * 264 + 2 * 264) * 4 + 16 };
    static unsigned char first[BYTES], other[BYTES];
    ex_type type = _i ? EX_BF16 : EX_F32;
    for (int i = 0; i < ORDERS; i++) {
        set_order(i);
        memset(i ? other : first, 0, BYTES);
        sums_of(type, i ? other : first, BYTES);
        if (i)
            ck_assert_msg(!memcmp(first, other, BYTES), "order %d gives other bits", i);
    }
    int zeros = 0; /* what was compared is not nothing */
    for (int i = 0; i < BYTES; i++)
        zeros += !first[i];
    ck_assert_int_lt(zeros, BYTES / 4 * 3);
}
END_TEST

/* Rows that begin at any element, so that none can be read 16 bytes at a time, give what aligned ones do. */
START_TEST(places_need_not_be_aligned)
{
    enum { T = 9, F = 64, COUNT = T * 2 * F };
    ex_type type = _i ? EX_BF16 : EX_F32;
    int64_t element = (int64_t)ex_type_bytes(type);
    double results[2][COUNT];
    for (int shift = 0; shift < 2; shift++) {
        device_case c = {.device = open_cuda(type), .state = 6};
        const ex_device_ops *ops = c.device->ops;
        const double *values = case_draw(&c, COUNT, 2, 1);
        char *x = case_elements(&c, NULL, COUNT + 1), *y = case_elements(&c, NULL, COUNT + 1);
        x += shift * element;
        y += shift * element;
        ops->copy(c.device, x, case_elements(&c, values, COUNT), COUNT * element);
        ops->copy(c.device, y, case_elements(&c, values, COUNT), COUNT * element);
        float *inverse = case_floats(&c, NULL, T), *sums = case_floats(&c, case_zeros(&c, F), F);
        int32_t *positions = case_ints(&c, (int32_t[T]){0, 1, 2, 3, 100, 5000, 70000, 800000, 1 << 20}, T);
        ops->add(c.device, y, x, COUNT);
        ops->swiglu(c.device, y, T, F, x); /* the first half of x */
        ops->swiglu_back(c.device, y, x, T, F, y);
        ops->add_bias(c.device, y, x, T, 2 * F);
        ops->rotary(c.device, y, positions, T, 2 * F, 2, F, 1e4F, 0);
        ops->norm(c.device, y, x, T, 2 * F, 1e-5F, y, inverse);
        ops->bias_back(c.device, x, T, F, sums);
        ops->split(c.device, y, T, (ex_heads){4, 2, F / 4}, 2, x);
        ops->merge(c.device, x, T, (ex_heads){4, 2, F / 4}, 2, y);
        memcpy(results[shift], case_take(&c, y, COUNT, type), sizeof results[shift]);
        if (shift)
            case_near(&c, "an unaligned result", results[1], results[0], COUNT,
                      type == EX_BF16 ? 6e-3 : 3e-6);
        case_end(&c);
        close_cuda(c.device);
    }
}
END_TEST

START_TEST(host_memory_may_be_reused_at_once)
{
    ex_device *device = open_cuda(EX_F32);
    const ex_device_ops *ops = device->ops;
    enum { SMALL = 300, BIG = 5 << 20 }; /* more than is staged at a time */
    unsigned char *host = malloc(BIG), *back = malloc(BIG);
    ck_assert(host && back);
    char *at = ops->allocate(device, BIG);
    ck_assert_ptr_nonnull(at);
    for (int i = 0; i < SMALL; i++) {
        memset(host, i & 0xff, 16000);
        ops->copy_in(device, at + (int64_t)i * 16000, host, 16000);
    }
    memset(host, 0x77, 16000);
    ops->copy_out(device, back, at, (int64_t)SMALL * 16000);
    for (int i = 0; i < SMALL; i++)
        ck_assert_msg(back[i * 16000] == (i & 0xff) && back[i * 16000 + 15999] == (i & 0xff), "piece %d", i);
    for (int i = 0; i < BIG; i++)
        host[i] = (unsigned char)(i * 2654435761U >> 24);
    ops->copy_in(device, at, host, BIG);
    ops->copy_out(device, back, at, BIG);
    ck_assert_mem_eq(host, back, BIG);
    ops->release(device, at);
    close_cuda(device);
    free(host);
    free(back);
}
END_TEST

#ifndef EX_ON_GPU
/* Of the emulator's CUDA, in whose headers is C++. */
extern int cudaStreamQuery(void *stream);

/* A query of a stream that is not ready leaves an error behind that no launch made. */
START_TEST(errors_of_others_are_not_the_device_s)
{
    enum { NOT_READY = 600 };
    ex_device *device = open_cuda(EX_F32);
    float *x = device->ops->allocate(device, 64);
    device->ops->zero(device, x, 64);
    ck_assert_int_eq(cudaStreamQuery(device->stream), NOT_READY);
    device->ops->add(device, x, x, 16);
    ck_assert_msg(ex_device_sync(device) == 0, "%s", device->fault.text);
    device->ops->release(device, x);
    close_cuda(device);
}
END_TEST

START_TEST(work_waits_in_a_stream_of_its_own)
{
    ex_device *device = open_cuda(EX_F32);
    ck_assert_str_eq(device->name, "emulated GPU");
    ck_assert_ptr_nonnull(device->stream);
    ck_assert_int_eq(device->identity[0], 7);
    ck_assert_int_eq(device->identity[15], 7);
    ck_assert_int_eq(ex_cuda_count(), 1);
    float *x = device->ops->allocate(device, 4); /* the emulator's memory is the host's */
    device->ops->zero(device, x, 4);
    ck_assert(isnan(*x));
    ck_assert_int_eq(ex_device_sync(device), 0);
    ck_assert_float_eq(*x, 0);
    device->ops->release(device, x);
    close_cuda(device);
}
END_TEST

static void expect_fault(ex_device *device, const char *text)
{
    ck_assert_int_eq(ex_device_sync(device), -1);
    ck_assert_msg(strstr(device->fault.text, text), "%s", device->fault.text);
    ex_emulator_clear();
    ex_device_free(device);
    ck_assert_int_eq(ex_emulator_allocated(), 0);
}

START_TEST(faults_name_what_and_how_much)
{
    ex_fault fault = {0};
    ck_assert_ptr_null(ex_cuda_open(EX_F32, 1, &fault));
    ck_assert_str_eq(fault.text, "no GPU 1: there are 1, counted from 0");
    fault = (ex_fault){0};
    ck_assert_ptr_null(ex_cuda_open(EX_F32, -1, &fault));
    ck_assert_str_eq(fault.text, "no GPU -1: there are 1, counted from 0");

    ex_emulator_set_memory(64 << 20);
    ex_device *device = open_cuda(EX_BF16);
    int64_t free_bytes, total_bytes;
    device->ops->memory(device, &free_bytes, &total_bytes);
    ck_assert_int_eq(total_bytes, 64 << 20);
    ck_assert_int_eq(free_bytes, total_bytes - device->allocated);
    char text[200];
    snprintf(text, sizeof text,
             "emulated GPU: allocation of 100000000 bytes: out of memory; %" PRId64 " of %d bytes are free",
             free_bytes, 64 << 20);
    ck_assert_ptr_null(device->ops->allocate(device, 100000000));
    ck_assert_ptr_null(device->ops->allocate(device, 1)); /* failed devices do nothing */
    expect_fault(device, text);
    ex_emulator_set_memory(32 << 20);
    fault = (ex_fault){0};
    ck_assert_ptr_null(ex_cuda_open(EX_F32, 0, &fault));
    ck_assert_msg(strstr(fault.text, "emulated GPU: allocation of"), "%s", fault.text);
    ex_emulator_set_memory(1 << 30);

    float some = 0;
    device = open_cuda(EX_F32);
    device->ops->release(device, &some);
    expect_fault(device, "release of memory that it did not allocate");
    device = open_cuda(EX_F32);
    ck_assert_ptr_null(device->ops->allocate(device, -5));
    expect_fault(device, "allocation of -5 bytes");
    device = open_cuda(EX_F32);
    device->ops->gemm(device, 0, 0, 1, (int64_t)1 << 31, 1, &some, &some, 0, &some, 1);
    expect_fault(device, "gemm of m 1, n 2147483648, k 1; a side has at most 2147483647");
    device = open_cuda(EX_F32);
    device->ops->split(device, &some, 1, (ex_heads){6, 6, 8}, 4, &some);
    expect_fault(device, "6 heads and 6 key-value heads do not divide among 4 ranks");
    device = open_cuda(EX_F32);
    device->ops->merge(device, &some, 1, (ex_heads){12, 3, 8}, 4, &some);
    expect_fault(device, "12 heads and 3 key-value heads do not divide among 4 ranks");
    device = open_cuda(EX_F32);
    device->ops->norm_back(device, &some, &some, &some, &some, 1, 57857, &some, &some);
    expect_fault(device, "norm_back of rows of 57857 elements; the most is 57856");
    device = open_cuda(EX_F32);
    device->ops->bias_back(device, &some, 1, 4194305, &some);
    expect_fault(device, "bias_back of rows of 4194305 elements; the most is 4194304");
    device = open_cuda(EX_F32);
    device->ops->embed_back(device, &some, NULL, NULL, 1, 65535 * 32 + 1, &some);
    expect_fault(device, "embed_back of rows of 2097121 elements; the most is 2097120");
    device = open_cuda(EX_F32);
    char *memory = device->ops->allocate(device, 64);
    device->ops->copy(device, memory + 1, memory, 64); /* past its end: known when it runs */
    ck_assert_int_eq(ex_device_sync(device), -1);
    device->ops->release(device, memory);
    expect_fault(device, "sync: copy of 64 bytes");
}
END_TEST

#endif

/* Rows of many pieces; those of norm_back need more shared memory than a kernel has without asking. */
START_TEST(wide_rows_in_bf16)
{
    device_case c = {.device = open_cuda(EX_BF16), .tolerance = 6e-3, .state = 9};
    case_norm_once(&c, 1, 12288); /* 48 KiB and the sums of warps; first, since what is asked for stays */
    case_norm_once(&c, 2, 20000);
    case_embed_once(&c, 512, 30, 264);
    case_sums_once(&c, 200, 528);
    case_cross_entropy_once(&c, 11, 5008, 5);
    close_cuda(c.device);
}
END_TEST

START_TEST(target_that_is_no_token_gives_no_loss)
{
    device_case c = {.device = open_cuda(EX_F32), .state = 7};
    double *logits = case_draw(&c, 2 * 10, 1, 1);
    float *on_logits = case_floats(&c, logits, 2 * 10);
    double loss = 0;
    double *on_loss = case_bytes(&c, &loss, 8);
    float *weights = case_floats(&c, (double[2]){1, 1}, 2);
    int32_t *targets = case_ints(&c, (int32_t[2]){3, 10}, 2);
    c.device->ops->cross_entropy(c.device, on_logits, targets, weights, 2, 10, on_loss);
    c.device->ops->copy_out(c.device, &loss, on_loss, 8);
    ck_assert(isnan(loss));
    case_end(&c);
    close_cuda(c.device);
}
END_TEST

#ifndef EX_ON_GPU
/* One of each kind of call; returns whether anything failed. */
static int run_with_failure(int64_t n)
{
    ex_fault fault = {0};
    ex_emulator_fail_call(n);
    ex_device *device = ex_cuda_open(EX_BF16, 0, &fault);
    if (!device) {
        ck_assert_int_ne(fault.failed, 0);
        ck_assert_int_gt((int)strlen(fault.text), 10);
        ck_assert_int_eq(ex_emulator_allocated(), 0);
        ex_emulator_clear();
        return 1;
    }
    const ex_device_ops *ops = device->ops;
    int64_t free_bytes, total_bytes;
    uint16_t host[4096] = {0};
    double loss = 0;
    char *a = ops->allocate(device, sizeof host), *b = ops->allocate(device, sizeof host);
    char *c = ops->allocate(device, sizeof host), *order = ops->allocate(device, sizeof host);
    ops->memory(device, &free_bytes, &total_bytes);
    ops->copy_in(device, a, host, sizeof host);
    ops->copy(device, b, a, sizeof host);
    ops->zero(device, c, sizeof host);
    ops->zero(device, order, sizeof host);
    float *floats = (float *)(void *)c;
    const int32_t *ints = (const int32_t *)(const void *)order;
    ops->gemm(device, 0, 1, 16, 16, 16, a, b, 0, c, 1);
    ops->gemm(device, 0, 1, 16, 16, 0, a, b, 0, c, 1);
    ops->embed(device, a, ints, 1, 64, b);
    ops->embed_back(device, a, ints, ints, 1, 64, floats);
    ops->norm(device, a, b, 4, 16, 1, c, (float *)(void *)order);
    ops->norm_back(device, a, b, (float *)(void *)order, a, 2, 16384 / 16, a, floats);
    ops->zero(device, order, sizeof host);
    ops->rotary(device, a, ints, 4, 64, 2, 16, 1e4F, 1);
    ops->swiglu(device, a, 4, 16, b);
    ops->swiglu_back(device, a, b, 4, 16, c);
    ops->add(device, a, b, 4096);
    ops->add_bias(device, a, b, 4, 16);
    ops->bias_back(device, a, 4, 16, floats);
    ops->split(device, a, 2, (ex_heads){4, 2, 16}, 2, b);
    ops->merge(device, b, 2, (ex_heads){4, 2, 16}, 2, a);
    ops->cross_entropy(device, a, ints, floats, 4, 16, (double *)(void *)c);
    ops->adam(device, 256, floats, floats, floats, floats, a, (ex_adam){.correction1 = 1, .correction2 = 1});
    ops->cast(device, floats, a, 64);
    ops->sum_squares(device, floats, 64, (double *)(void *)b);
    ops->copy_out(device, &loss, b, 8);
    int failed = ex_device_sync(device) != 0;
    ck_assert_int_eq(failed, device->fault.failed != 0);
    if (failed)
        ck_assert_msg(strstr(device->fault.text, "emulated GPU: ") == device->fault.text, "%s",
                      device->fault.text);
    ops->release(device, a);
    ops->release(device, b);
    ops->release(device, c);
    ops->release(device, order);
    ex_device_free(device);
    ck_assert_int_eq(ex_emulator_allocated(), 0);
    ex_emulator_clear();
    return failed;
}

START_TEST(any_call_may_fail)
{
    int64_t n = 1;
    while (run_with_failure(n))
        n++;
    ck_assert_int_gt(n, 60);
    ex_emulator_fail_call(1);
    ck_assert_int_eq(ex_cuda_count(), 0);
    ck_assert_int_eq(run_with_failure(0), 0); /* what failed before leaves nothing behind */
}
END_TEST
#endif

TEST_SUITE_FUNCTION
{
    const test_entry entry[] = {
        {every_operation_in_fp32, 0, ORDERS},           {every_operation_in_bf16, 0, ORDERS},
        {sums_have_the_same_bits_in_every_order, 0, 2}, {places_need_not_be_aligned, 0, 2},
        {host_memory_may_be_reused_at_once, 0, 1},      {wide_rows_in_bf16, 0, 1},
#ifndef EX_ON_GPU
        {errors_of_others_are_not_the_device_s, 0, 1},  {work_waits_in_a_stream_of_its_own, 0, 1},
        {faults_name_what_and_how_much, 0, 1},          {any_call_may_fail, 0, 1},
#endif
        {target_that_is_no_token_gives_no_loss, 0, 1}};
    return test_suite("cuda_device", NULL, NULL, entry, sizeof entry / sizeof *entry);
}
