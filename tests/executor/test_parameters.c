#include <math.h>

#include "../test.h"
#include "model/parameters.h"

static ex_shape small(int linked, int bias)
{
    return (ex_shape){.layers = 3,
                      .hidden = 24,
                      .ffn = 40,
                      .heads = 4,
                      .kv_heads = 2,
                      .head_dim = 10,
                      .vocab = 33,
                      .tied_embeddings = linked,
                      .qkv_bias = bias,
                      .theta = 10000,
                      .epsilon = 1e-5F};
}

static ex_device *open_cpu(ex_type type)
{
    ex_fault fault = {0};
    ex_device *device = ex_cpu_open(type, 1, &fault);
    ck_assert_msg(device != NULL, "%s", fault.text);
    return device;
}

/* Master weights on the host. */
static float *read_master(const ex_parameters *p)
{
    float *master = malloc((size_t)p->elements * sizeof *master);
    p->device->ops->copy_out(p->device, master, p->master, p->elements * (int64_t)sizeof *master);
    return master;
}

START_TEST(tensors_have_their_places)
{
    const int linked = _i & 1, bias = _i >> 1;
    ex_shape s = small(linked, bias);
    ex_device *device = open_cpu(EX_F32);
    int64_t before = device->allocated;
    ex_parameters p;
    ck_assert_int_eq(ex_parameters_allocate(device, &s, &p), 0);
    const char *names[] = {"norm1", "qkv", "qkv_bias", "out", "norm2", "gate_up", "down"};
    const int64_t rows[] = {1, 80, 1, 24, 1, 80, 24};
    const int64_t columns[] = {24, 24, 80, 40, 24, 24, 40};
    int64_t sum = 0;
    for (int64_t t = 0; t < p.count; t++) {
        sum += p.tensors[t].rows * p.tensors[t].columns;
        ck_assert_int_eq(p.tensors[t].offset % 64, 0);
        int64_t end = t + 1 < p.count ? p.tensors[t + 1].offset : p.elements;
        int64_t gap = end - p.tensors[t].offset - p.tensors[t].rows * p.tensors[t].columns;
        ck_assert(gap >= 0 && gap < 64);
    }
    ck_assert_int_eq(sum, ex_shape_parameters(&s));
    for (int l = 0; l < 3; l++)
        for (int which = EX_NORM1; which < EX_LAYER_TENSORS; which++) {
            const ex_tensor *tensor = ex_parameters_get(&p, l, which);
            if (which == EX_QKV_BIAS && !bias) {
                ck_assert_ptr_null(tensor);
                continue;
            }
            char name[48];
            snprintf(name, sizeof name, "layers.%d.%s", l, names[which]);
            ck_assert_str_eq(tensor->name, name);
            ck_assert_int_eq(tensor->rows, rows[which]);
            ck_assert_int_eq(tensor->columns, columns[which]);
        }
    ck_assert_str_eq(ex_parameters_get(&p, -1, EX_EMBEDDING)->name, "embedding");
    ck_assert_str_eq(ex_parameters_get(&p, -1, EX_FINAL_NORM)->name, "final_norm");
    if (linked)
        ck_assert_ptr_null(ex_parameters_get(&p, -1, EX_OUTPUT));
    else
        ck_assert_str_eq(ex_parameters_get(&p, -1, EX_OUTPUT)->name, "output");
    ex_parameters_free(&p);
    ck_assert_int_eq(device->allocated, before);
    ex_device_free(device);
}
END_TEST

/* Mean and standard deviation of a tensor. */
static void moments(const float *x, const ex_tensor *t, double *mean, double *deviation)
{
    int64_t n = t->rows * t->columns;
    double sum = 0, squares = 0;
    for (int64_t i = t->offset; i < t->offset + n; i++) {
        sum += x[i];
        squares += (double)x[i] * x[i];
    }
    *mean = sum / (double)n;
    *deviation = sqrt(squares / (double)n - *mean * *mean);
}

START_TEST(beginnings)
{
    ex_shape s = small(1, 1);
    s.hidden = 500;
    s.vocab = 2300; /* more than a piece, 1 Mi elements */
    s.ffn = 300;
    ex_device *device = open_cpu(EX_F32);
    ex_parameters p;
    ck_assert_int_eq(ex_parameters_create(device, &s, 11, &p), 0);
    float *master = read_master(&p);
    for (int64_t t = 0; t < p.count; t++) {
        const ex_tensor *tensor = &p.tensors[t];
        const char *name = strrchr(tensor->name, '.') ? strrchr(tensor->name, '.') + 1 : tensor->name;
        double mean, deviation;
        moments(master, tensor, &mean, &deviation);
        double expected = strcmp(name, "out") == 0 || strcmp(name, "down") == 0 ? .02 / sqrt(6) : .02;
        double n = (double)(tensor->rows * tensor->columns);
        if (tensor->rows == 1) {
            ck_assert_double_eq(mean, strstr(name, "norm") ? 1 : 0);
            ck_assert_double_eq(deviation, 0);
        } else {
            ck_assert_msg(fabs(mean) < 5 * expected / sqrt(n), "%s: mean %g", tensor->name, mean);
            ck_assert_msg(fabs(deviation / expected - 1) < 5 / sqrt(n), "%s: deviation %g", tensor->name,
                          deviation);
        }
    }
    /* One element in two is below 0, about 31.4 % beyond one deviation; neighbours are not alike. */
    int64_t n = (int64_t)s.vocab * s.hidden, below = 0, beyond = 0;
    double product = 0;
    for (int64_t i = 0; i < n; i++) {
        below += master[i] < 0;
        beyond += fabsf(master[i]) > .02F;
        product += i ? (double)master[i] * master[i - 1] : 0;
    }
    ck_assert(llabs(2 * below - n) < 6000);
    ck_assert_msg(beyond > n * 31 / 100 && beyond < n * 34 / 100, "%lld of %lld", (long long)beyond,
                  (long long)n);
    ck_assert(fabs(product / (double)n) < 5 * .0004 / sqrt((double)n));
    free(master);
    ex_parameters_free(&p);
    ex_device_free(device);
}
END_TEST

/* The generator as it is documented, element by element. */
static float expected_draw(uint64_t seed, uint64_t place, double deviation)
{
    uint64_t counters[] = {1, place + 1}, z = seed;
    for (int i = 0; i < 2; i++) {
        z += counters[i] * UINT64_C(0x9e3779b97f4a7c15);
        z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
        z ^= z >> 31;
    }
    int64_t sum = -2 * 65535;
    for (int i = 0; i < 64; i += 16)
        sum += (int64_t)(z >> i & 0xffff);
    return (float)sum * (float)(deviation / sqrt((65536. * 65536 - 1) / 3));
}

START_TEST(weights_depend_on_seed_and_place_alone)
{
    ex_shape s = small(1, 0);
    s.hidden = 500;
    s.vocab = 2300;
    ex_device *device = open_cpu(EX_F32);
    ex_parameters p;
    ck_assert_int_eq(ex_parameters_create(device, &s, 99, &p), 0);
    float *master = read_master(&p);
    const ex_tensor *tensors[] = {ex_parameters_get(&p, -1, EX_EMBEDDING), ex_parameters_get(&p, 0, EX_QKV),
                                  ex_parameters_get(&p, 2, EX_GATE_UP)};
    int64_t wrong = 0;
    for (int t = 0; t < 3; t++)
        for (int64_t i = 0; i < tensors[t]->rows * tensors[t]->columns; i++) {
            int64_t place = tensors[t]->offset + i;
            wrong += master[place] != expected_draw(99, (uint64_t)place, .02);
        }
    ck_assert_int_eq(wrong, 0);
    /* What is read is what the masters are. */
    ck_assert_int_eq(memcmp(p.weights, p.master, (size_t)p.elements * sizeof(float)), 0);
    free(master);
    ex_parameters_free(&p);
    ck_assert_int_eq(ex_parameters_create(device, &s, 100, &p), 0);
    float *other = read_master(&p);
    int64_t same = 0;
    for (int64_t i = 0; i < 10000; i++)
        same += other[i] == expected_draw(99, (uint64_t)i, .02);
    ck_assert_int_lt(same, 20);
    free(other);
    ex_parameters_free(&p);
    ex_device_free(device);
}
END_TEST

START_TEST(bf16_weights_are_rounded_masters)
{
    ex_shape s = small(1, 1);
    ex_device *device = open_cpu(EX_BF16);
    ex_parameters p;
    ck_assert_int_eq(ex_parameters_create(device, &s, 3, &p), 0);
    const uint16_t *weights = p.weights;
    int64_t wrong = 0;
    for (int64_t i = 0; i < p.elements; i++) {
        uint32_t bits = (uint32_t)weights[i] << 16;
        float value;
        memcpy(&value, &bits, sizeof value);
        wrong += !(fabsf(value - p.master[i]) <= fabsf(p.master[i]) / 256);
    }
    ck_assert_int_eq(wrong, 0);
    ex_parameters_free(&p);
    ex_device_free(device);
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    ex_shape s = small(0, 1);
    ex_fault fault = {0};
    ex_parameters p;
    ex_device *device = ex_counting_open(EX_BF16, INT64_C(1) << 40, NULL, &fault);
    ck_assert_int_eq(ex_parameters_create(device, &s, 1, &p), 0);
    int64_t all = device->allocated;
    ck_assert(all >= 18 * ex_shape_parameters(&s));
    ex_parameters_free(&p);
    ex_device_free(device);
    for (int64_t limit = 0; limit < all; limit += all / 20) {
        device = ex_counting_open(EX_BF16, limit, NULL, &fault);
        ck_assert_int_eq(ex_parameters_create(device, &s, 1, &p), -1);
        ck_assert_int_eq(device->fault.failed, 1);
        ck_assert_int_eq(device->allocated, 0);
        ex_parameters_free(&p); /* of nothing */
        ex_device_free(device);
    }
}
END_TEST

TEST_MAIN_LOOPS("parameters", NULL, NULL, {tensors_have_their_places, 0, 4}, {beginnings, 0, 1},
                {weights_depend_on_seed_and_place_alone, 0, 1}, {bf16_weights_are_rounded_masters, 0, 1},
                {every_allocation_may_fail, 0, 1})
