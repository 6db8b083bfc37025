/* CUDA attention, forward and backward, against a naive computation in double precision.
 *
 * Tolerances are bounds on rounding, element by element, not guesses. The oracle starts from the rounded
 * elements. Let u be the rounding of an element. The tensor-core kernels round probabilities P and slopes dS
 * to elements before they multiply, and results at the end: out is off by u (sum of P |V| + |out|), the sum
 * of out times d_out by u times that with |d_out|, dV by u (sum of P |d_out| + |dV|), and dQ and dK likewise
 * from dS. Everything else is fp32, which the same bounds with 5e-6 for u cover. Inputs are sparse: most
 * elements are 0, so that a result has few terms, and one key too many or too few is outside of its bound in
 * some element. */
#include "device_cases.h"
#include "executor/cuda_under_test.h"
#include "test.h"

typedef struct outcome {
    double *out, *log_sums, *d_qkv;
    double *out_bound, *d_qkv_bound;
} outcome;

static double rounding(ex_type type)
{
    return type == EX_BF16 ? 0x1p-8 + 5e-6 : 5e-6;
}

/* All results for one head of one document. */
static void expect_head(const oracle_head *head, const double *qkv, const double *d_out, double u,
                        outcome *want, double *log_sums)
{
    int64_t dim = head->dim, length = head->length;
    double *p = oracle_doubles(length), scale = 1 / sqrt((double)dim);
    for (int64_t i = 0; i < length; i++) {
        int64_t row = (head->first + i) * head->stride,
                out_row = (head->first + i) * head->out_stride + head->out;
        const double *q = qkv + row + head->query, *d = d_out + out_row;
        double *out = want->out + out_row, *bound = want->out_bound + out_row, delta = 0, delta_bound = 0;
        log_sums[head->first + i] = oracle_probabilities(head, qkv, i, p);
        for (int64_t j = 0; j <= i; j++) {
            const double *v = qkv + (head->first + j) * head->stride + head->value;
            for (int64_t e = 0; e < dim; e++) {
                out[e] += p[j] * v[e];
                bound[e] += u * p[j] * fabs(v[e]);
            }
        }
        for (int64_t e = 0; e < dim; e++) {
            bound[e] += u * fabs(out[e]);
            delta += out[e] * d[e];
            delta_bound += bound[e] * fabs(d[e]);
        }
        for (int64_t j = 0; j <= i; j++) {
            int64_t other = (head->first + j) * head->stride;
            const double *k = qkv + other + head->key, *v = qkv + other + head->value;
            double slope = p[j] * (oracle_dot(d, v, dim) - delta);
            double slope_bound = u * fabs(slope) + p[j] * delta_bound;
            for (int64_t e = 0; e < dim; e++) {
                want->d_qkv[row + head->query + e] += scale * slope * k[e];
                want->d_qkv_bound[row + head->query + e] += scale * slope_bound * fabs(k[e]);
                want->d_qkv[other + head->key + e] += scale * slope * q[e];
                want->d_qkv_bound[other + head->key + e] += scale * slope_bound * fabs(q[e]);
                want->d_qkv[other + head->value + e] += p[j] * d[e];
                want->d_qkv_bound[other + head->value + e] += u * p[j] * fabs(d[e]);
            }
        }
    }
    free(p);
}

static void near_bound(const device_case *c, const char *name, const double *got, const double *want,
                       const double *bound, double u, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        double most = bound[i] + u * fabs(want[i]) + 1e-12;
        ck_assert_msg(fabs(got[i] - want[i]) <= most, "%s: %s[%lld of %lld] is %.9g; %.9g +- %.3g is right",
                      c->what, name, (long long)i, (long long)count, got[i], want[i], most);
    }
}

/* Mostly zeros; what is not is in (-size, size). */
static double *draw_sparse(device_case *c, int64_t count, double size)
{
    double *values = case_draw(c, count, size, 1);
    for (int64_t i = 0; i < count; i++)
        if (case_random(c) > 0.2)
            values[i] = 0;
    return values;
}

/* A pack on the device, and what attention makes of it. */
typedef struct pack {
    ex_heads heads;
    ex_documents documents;
    int64_t S, width, out_width;
    int32_t *host_borders;
    double *x, *d_y;
    void *qkv, *d_out, *out, *d_qkv, *scratch;
    float *log_sums;
} pack;

static pack pack_of(device_case *c, const int32_t *lengths, int64_t count, ex_heads heads, double size)
{
    pack k = {.heads = heads, .width = (heads.heads + 2 * (int64_t)heads.kv_heads) * heads.dim};
    k.out_width = (int64_t)heads.heads * heads.dim;
    k.host_borders = calloc((size_t)count + 1, sizeof *k.host_borders);
    ck_assert_ptr_nonnull(k.host_borders);
    for (int64_t i = 0; i < count; i++) {
        k.host_borders[i + 1] = k.host_borders[i] + lengths[i];
        if (lengths[i] > k.documents.longest)
            k.documents.longest = lengths[i];
    }
    k.S = k.host_borders[count];
    k.documents.borders = case_ints(c, k.host_borders, count + 1);
    k.documents.host_borders = k.host_borders;
    k.documents.count = count;
    k.x = draw_sparse(c, k.S * k.width, size);
    k.d_y = draw_sparse(c, k.S * k.out_width, 1);
    k.qkv = case_elements(c, k.x, k.S * k.width);
    k.d_out = case_elements(c, k.d_y, k.S * k.out_width);
    k.out = case_elements(c, NULL, k.S * k.out_width);
    k.d_qkv = case_elements(c, NULL, k.S * k.width);
    k.log_sums = case_floats(c, NULL, k.S * heads.heads);
    int64_t bytes = c->device->ops->attention_scratch(c->device, k.S, heads);
    ck_assert_int_eq(bytes, k.S * heads.heads * 4);
    k.scratch = case_floats(c, NULL, bytes / 4);
    CASE(c, "%lld documents of %lld tokens, the longest %d, heads %d / %d of %d, %s", (long long)count,
         (long long)k.S, (int)k.documents.longest, (int)heads.heads, (int)heads.kv_heads, (int)heads.dim,
         c->device->type == EX_BF16 ? "bf16" : "fp32");
    return k;
}

static void run(device_case *c, const pack *k)
{
    const ex_device_ops *ops = c->device->ops;
    ops->attention(c->device, k->qkv, &k->documents, k->S, k->heads, k->out, k->log_sums);
    ops->attention_back(c->device, k->qkv, k->out, k->d_out, k->log_sums, &k->documents, k->S, k->heads,
                        k->d_qkv, k->scratch);
    ck_assert_msg(ex_device_sync(c->device) == 0, "%s: %s", c->what, c->device->fault.text);
    ck_assert_str_eq(ex_emulator_error(), "");
}

static void compare(device_case *c, const pack *k)
{
    ex_type type = c->device->type;
    outcome want = {.out = case_zeros(c, k->S * k->out_width),
                    .log_sums = case_zeros(c, k->S * k->heads.heads),
                    .d_qkv = case_zeros(c, k->S * k->width),
                    .out_bound = case_zeros(c, k->S * k->out_width),
                    .d_qkv_bound = case_zeros(c, k->S * k->width)};
    for (int64_t i = 0; i < k->documents.count; i++) {
        for (int32_t h = 0; h < k->heads.heads; h++) {
            oracle_head head = oracle_head_of(k->host_borders, i, k->heads, h);
            expect_head(&head, k->x, k->d_y, rounding(type), &want, want.log_sums + h * k->S);
        }
    }
    double u = rounding(type);
    near_bound(c, "out", case_take(c, k->out, k->S * k->out_width, type), want.out, want.out_bound, u,
               k->S * k->out_width);
    near_bound(c, "d_qkv", case_take(c, k->d_qkv, k->S * k->width, type), want.d_qkv, want.d_qkv_bound, u,
               k->S * k->width);
    case_near(c, "log_sums", case_take(c, k->log_sums, k->S * k->heads.heads, EX_F32), want.log_sums,
              k->S * k->heads.heads, 1e-5); /* fp32 for every type */
}

static void pack_end(device_case *c, pack *k)
{
    case_end(c);
    free(k->host_borders);
}

static void check(ex_device *device, const int32_t *lengths, int64_t count, ex_heads heads, double size)
{
    device_case c = {.device = device, .state = (uint64_t)(count + heads.dim * 7 + lengths[0] * 1000)};
    pack k = pack_of(&c, lengths, count, heads, size);
    run(&c, &k);
    compare(&c, &k);
    pack_end(&c, &k);
}

#define CHECK(device, size, heads, ...)                                                                      \
    check(device, (const int32_t[]){__VA_ARGS__}, sizeof((const int32_t[]){__VA_ARGS__}) / 4, heads, size)
#define HEADS(...) ((ex_heads){__VA_ARGS__})

static ex_device *open_device(ex_type type)
{
    ex_fault fault = {0};
    ex_device *device = ex_cuda_open(type, 0, &fault);
    ck_assert_msg(device != NULL, "%s", fault.text);
    return device;
}

static void check_shapes(ex_type type)
{
    ex_device *device = open_device(type);
    CHECK(device, 1, HEADS(1, 1, 8), 1);
    CHECK(device, 2, HEADS(2, 1, 16), 63, 1, 64, 65, 0, 31);
    CHECK(device, 2, HEADS(1, 1, 32), 127, 128, 129, 1, 1);
    CHECK(device, 3, HEADS(4, 1, 64), 33, 95, 2);
    CHECK(device, 2, HEADS(1, 1, 64), 300, 5);
    CHECK(device, 2, HEADS(8, 8, 80), 3, 40);
    CHECK(device, 2, HEADS(8, 1, 96), 32, 17);
    CHECK(device, 2, HEADS(2, 2, 128), 65, 1, 130);
    CHECK(device, 12, HEADS(2, 1, 128), 150); /* nearly one key a query */
    ex_device_free(device);
}

START_TEST(float_shapes)
{
    check_shapes(EX_F32);
}
END_TEST

START_TEST(bfloat16_shapes)
{
    check_shapes(EX_BF16);
}
END_TEST

/* Shapes that the tensor-core kernels leave to the plain ones, and wide heads. */
START_TEST(other_shapes)
{
    ex_device *device = open_device(EX_BF16);
    CHECK(device, 2, HEADS(2, 1, 20), 33, 7);
    CHECK(device, 2, HEADS(1, 1, 136), 40);
    ex_device_free(device);
    device = open_device(EX_F32);
    CHECK(device, 2, HEADS(1, 1, 1), 3);
    CHECK(device, 2, HEADS(1, 1, 256), 35);
    ex_device_free(device);
}
END_TEST

/* bfloat16 rows that begin between multiples of 16 bytes. */
START_TEST(misaligned)
{
    ex_device *device = open_device(EX_BF16);
    device_case c = {.device = device, .state = 1};
    pack k = pack_of(&c, (const int32_t[]){40, 3}, 2, HEADS(2, 1, 16), 2);
    char *at = device->ops->allocate(device, k.S * k.width * 2 + 2);
    ck_assert_ptr_nonnull(at);
    device->ops->copy(device, at + 2, k.qkv, k.S * k.width * 2);
    void *whole = k.qkv;
    k.qkv = at + 2;
    run(&c, &k);
    compare(&c, &k);
    k.qkv = whole;
    device->ops->release(device, at);
    pack_end(&c, &k);
    ex_device_free(device);
}
END_TEST

/* More documents than a kernel's list holds: those that are not listed find themselves. Several have the
 * length at which the list ends. */
static void check_many(ex_type type, int32_t common, int32_t others)
{
    enum { count = 470 };
    int32_t lengths[count];
    for (int32_t i = 0; i < count; i++)
        lengths[i] = i % 7 == 3 ? others : common;
    lengths[200] = 70;
    lengths[count - 1] = 33;
    ex_device *device = open_device(type);
    check(device, lengths, count, HEADS(1, 1, 8), 2);
    ex_device_free(device);
}

START_TEST(many_documents)
{
    check_many(EX_BF16, 1, 3);
    check_many(EX_F32, 2, 0);
}
END_TEST

/* Results do not depend on which thread or block comes first, to the last bit: no race, and no sum whose
 * order is open. */
START_TEST(orders)
{
    static const int32_t lengths[] = {70, 1, 33};
    static const struct {
        ex_type type;
        ex_heads heads;
    } cases[] = {{EX_F32, {4, 2, 16}}, {EX_BF16, {4, 2, 16}}, {EX_BF16, {2, 1, 128}}};
    for (int i = 0; i < 3; i++) {
        ex_device *device = open_device(cases[i].type);
        device_case c = {.device = device, .state = 9};
        pack k = pack_of(&c, lengths, 3, cases[i].heads, 2);
        double *first[3] = {0};
        for (int order = 0; order < 3; order++) {
            ex_emulator_set_order((ex_emulator_order)order, 77);
            run(&c, &k);
            double *got[3] = {case_take(&c, k.out, k.S * k.out_width, device->type),
                              case_take(&c, k.d_qkv, k.S * k.width, device->type),
                              case_take(&c, k.log_sums, k.S * k.heads.heads, EX_F32)};
            int64_t counts[3] = {k.S * k.out_width, k.S * k.width, k.S * k.heads.heads};
            for (int j = 0; j < 3; j++) {
                if (order == 0)
                    first[j] = got[j];
                ck_assert_msg(memcmp(first[j], got[j], (size_t)counts[j] * sizeof(double)) == 0,
                              "%s: order %d changes result %d", c.what, order, j);
            }
        }
        ex_emulator_set_order(EX_EMULATOR_FORWARD, 0);
        pack_end(&c, &k);
        ex_device_free(device);
    }
}
END_TEST

static void check_refused(ex_heads heads, int64_t count, int64_t S, const char *text)
{
    static const int32_t borders[] = {0, 3};
    ex_device *device = open_device(EX_BF16);
    ex_documents documents = {.borders = borders, .host_borders = borders, .count = count, .longest = 3};
    device->ops->attention(device, NULL, &documents, S, heads, NULL, NULL);
    ck_assert_msg(strstr(device->fault.text, text) != NULL, "'%s' lacks '%s'", device->fault.text, text);
    ck_assert_msg(strstr(device->fault.text, device->name) != NULL, "%s", device->fault.text);
    device->ops->attention_back(device, NULL, NULL, NULL, NULL, &documents, S, heads, NULL, NULL);
    ck_assert_int_eq(ex_device_sync(device), -1);
    ck_assert_msg(strstr(device->fault.text, text) != NULL, "'%s' lacks '%s'", device->fault.text, text);
    ex_device_free(device);
}

START_TEST(refusals)
{
    check_refused(HEADS(1, 1, 257), 1, 3, "heads of 257 dimensions; attention takes 1 to 256");
    check_refused(HEADS(1, 1, 0), 1, 3, "heads of 0 dimensions");
    check_refused(HEADS(6, 4, 16), 1, 3, "6 query heads do not divide among 4 key-value heads");
    check_refused(HEADS(2, 0, 16), 1, 3, "2 query heads do not divide among 0 key-value heads");
    check_refused(HEADS(1, 1, 16), 1, 4, "1 documents end at token 3 of 4");
    check_refused(HEADS(1, 1, 16), 0, 4, "0 documents end at token 0 of 4");
    check_refused(HEADS(65536, 1, 16), 1, 3, "a grid of 1 x 65536");
}
END_TEST

/* No tokens: nothing to do, and nothing that fails. */
START_TEST(nothing)
{
    static const int32_t borders[] = {0, 0};
    for (int64_t count = 0; count < 2; count++) {
        ex_device *device = open_device(EX_BF16);
        ex_documents documents = {.borders = borders, .host_borders = borders, .count = count};
        device->ops->attention(device, NULL, &documents, 0, HEADS(2, 1, 16), NULL, NULL);
        device->ops->attention_back(device, NULL, NULL, NULL, NULL, &documents, 0, HEADS(2, 1, 16), NULL,
                                    NULL);
        ck_assert_msg(ex_device_sync(device) == 0, "%s", device->fault.text);
        ex_device_free(device);
    }
}
END_TEST

#ifndef EX_ON_GPU
/* Whichever call of the runtime fails, the device says so and what comes later does nothing. */
START_TEST(failing_calls)
{
    int failed = 0, succeeded = 0;
    for (int64_t n = 1; n < 100 && !succeeded; n++) {
        ex_device *device = open_device(EX_BF16);
        device_case c = {.device = device, .state = 3};
        pack k = pack_of(&c, (const int32_t[]){20}, 1, HEADS(1, 1, 128), 1);
        ex_emulator_fail_call(n);
        const ex_device_ops *ops = device->ops;
        ops->attention(device, k.qkv, &k.documents, k.S, k.heads, k.out, k.log_sums);
        ops->attention_back(device, k.qkv, k.out, k.d_out, k.log_sums, &k.documents, k.S, k.heads, k.d_qkv,
                            k.scratch);
        ex_emulator_fail_call(0);
        if (device->fault.failed) {
            failed++;
            ck_assert_msg(strstr(device->fault.text, device->name) != NULL, "%s", device->fault.text);
        } else {
            succeeded++;
        }
        free(k.host_borders);
        while (c.host_count)
            free(c.hosts[--c.host_count]);
        while (c.holds)
            ops->release(device, c.held[--c.holds].at);
        ex_device_free(device);
        ex_emulator_clear();
    }
    ck_assert_int_ge(failed, 6); /* three kernels with shared memory to ask for, and their launches */
    ck_assert_int_eq(succeeded, 1);
}
END_TEST

TEST_MAIN("cuda_attention", float_shapes, bfloat16_shapes, other_shapes, misaligned, many_documents, orders,
          refusals, nothing, failing_calls)
#else
TEST_MAIN("cuda_attention", float_shapes, bfloat16_shapes, other_shapes, misaligned, many_documents, orders,
          refusals, nothing)
#endif
