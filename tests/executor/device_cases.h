/* What every device passes: each operation against device_oracle.h. run_device_cases runs all of them; a
 * device that is slow (an emulated one) leaves out the larger sizes. Results are prepared with NaNs, so that
 * one not written is found, and lie between guards, so that a write beside them is. */
#ifndef TESTS_EXECUTOR_DEVICE_CASES_H
#define TESTS_EXECUTOR_DEVICE_CASES_H

#include "test.h"
#include <stdio.h>

#include "device_oracle.h"

enum { CASE_GUARD = 256, CASE_HELD = 32 };

typedef struct device_case {
    ex_device *device;
    double tolerance; /* of elements, relative to the largest of a result */
    int large;
    uint64_t state; /* of the random numbers */
    char what[160];
    struct {
        char *at; /* device, the guard before included */
        int64_t bytes;
    } held[CASE_HELD];
    int holds;
    double *hosts[CASE_HELD];
    int host_count;
} device_case;

static inline double case_random(device_case *c)
{
    uint64_t z = c->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

/* The nearest element, of bfloat16 the one with an even last bit of two. */
static inline float case_element(ex_type type, double x)
{
    float f = (float)x;
    if (type == EX_F32 || f == 0.0f)
        return f;
    int exponent;
    double fraction = frexp((double)f, &exponent); /* 8 bits of it remain */
    return (float)ldexp(nearbyint(ldexp(fraction, 8)), exponent - 8);
}

/* `count` elements in (-size, size), kept until the case ends. */
static inline double *case_draw(device_case *c, int64_t count, double size, int elements)
{
    double *values = oracle_doubles(count);
    for (int64_t i = 0; i < count; i++)
        values[i] =
            (double)case_element(elements ? c->device->type : EX_F32, size * (2 * case_random(c) - 1));
    return c->hosts[c->host_count++] = values;
}

static inline double *case_zeros(device_case *c, int64_t count)
{
    return c->hosts[c->host_count++] = oracle_doubles(count);
}

static inline void *case_bytes(device_case *c, const void *host, int64_t bytes)
{
    unsigned char guard[CASE_GUARD];
    memset(guard, 0xa5, sizeof guard);
    char *at = c->device->ops->allocate(c->device, bytes + 2 * CASE_GUARD);
    ck_assert_msg(at != NULL, "%s: %s", c->what, c->device->fault.text);
    ck_assert_int_lt(c->holds, CASE_HELD);
    c->held[c->holds].at = at;
    c->held[c->holds++].bytes = bytes;
    c->device->ops->copy_in(c->device, at, guard, CASE_GUARD);
    c->device->ops->copy_in(c->device, at + CASE_GUARD, host, bytes);
    c->device->ops->copy_in(c->device, at + CASE_GUARD + bytes, guard, CASE_GUARD);
    return at + CASE_GUARD;
}

/* Values on the device as elements, as fp32; NULL: NaNs. */
static inline void *case_put(device_case *c, const double *values, int64_t count, ex_type type)
{
    int64_t bytes = count * (int64_t)ex_type_bytes(type);
    unsigned char *host = malloc((size_t)bytes + 1);
    ck_assert_ptr_nonnull(host);
    memset(host, 0xff, (size_t)bytes);
    for (int64_t i = 0; values && i < count; i++) {
        float f = case_element(type, values[i]);
        uint32_t bits;
        memcpy(&bits, &f, sizeof bits);
        uint16_t high = (uint16_t)(bits >> 16);
        if (type == EX_F32)
            memcpy(host + i * 4, &bits, 4);
        else
            memcpy(host + i * 2, &high, 2);
    }
    void *at = case_bytes(c, host, bytes);
    free(host);
    return at;
}

static inline void *case_elements(device_case *c, const double *values, int64_t count)
{
    return case_put(c, values, count, c->device->type);
}

static inline float *case_floats(device_case *c, const double *values, int64_t count)
{
    return case_put(c, values, count, EX_F32);
}

static inline int32_t *case_ints(device_case *c, const int32_t *values, int64_t count)
{
    return case_bytes(c, values, count * 4);
}

static inline double *case_take(device_case *c, const void *from, int64_t count, ex_type type)
{
    int64_t each = (int64_t)ex_type_bytes(type);
    unsigned char *host = malloc((size_t)(count * each) + 1);
    ck_assert_ptr_nonnull(host);
    c->device->ops->copy_out(c->device, host, from, count * each);
    double *values = case_zeros(c, count);
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        uint16_t high;
        if (type == EX_F32) {
            memcpy(&bits, host + i * 4, 4);
        } else {
            memcpy(&high, host + i * 2, 2);
            bits = (uint32_t)high << 16;
        }
        float f;
        memcpy(&f, &bits, sizeof f);
        values[i] = (double)f;
    }
    free(host);
    return values;
}

/* Every value is within tolerance * (what it should be + the largest of all). */
static inline void case_near(device_case *c, const char *name, const double *got, const double *want,
                             int64_t count, double tolerance)
{
    double largest = 0;
    for (int64_t i = 0; i < count; i++)
        largest = fmax(largest, fabs(want[i]));
    for (int64_t i = 0; i < count; i++)
        if (!(fabs(got[i] - want[i]) <= tolerance * (fabs(want[i]) + largest)))
            ck_abort_msg("%s: %s[%lld of %lld] is %.9g; it should be %.9g (the largest %.3g)", c->what, name,
                         (long long)i, (long long)count, got[i], want[i], largest);
}

static inline void case_elements_near(device_case *c, const char *name, const void *at, const double *want,
                                      int64_t count)
{
    case_near(c, name, case_take(c, at, count, c->device->type), want, count, c->tolerance);
}

/* What is fp32 on every device and comes from elements without rounding between. */
static inline void case_floats_near(device_case *c, const char *name, const float *at, const double *want,
                                    int64_t count)
{
    case_near(c, name, case_take(c, at, count, EX_F32), want, count, 4e-6);
}

/* Ends a case: nothing failed, the guards stand, memory goes back. */
static inline void case_end(device_case *c)
{
    ex_device *device = c->device;
    ck_assert_msg(ex_device_sync(device) == 0, "%s: %s", c->what, device->fault.text);
    while (c->holds) {
        unsigned char guards[2][CASE_GUARD];
        c->holds--;
        char *at = c->held[c->holds].at;
        device->ops->copy_out(device, guards[0], at, CASE_GUARD);
        device->ops->copy_out(device, guards[1], at + CASE_GUARD + c->held[c->holds].bytes, CASE_GUARD);
        for (int i = 0; i < 2 * CASE_GUARD; i++)
            ck_assert_msg(guards[i / CASE_GUARD][i % CASE_GUARD] == 0xa5, "%s: writes %s an allocation",
                          c->what, i < CASE_GUARD ? "before" : "behind");
        device->ops->release(device, at);
    }
    while (c->host_count)
        free(c->hosts[--c->host_count]);
}

#define CASE(c, ...) snprintf((c)->what, sizeof(c)->what, __VA_ARGS__)

#include "device_cases_attention.h"
#include "device_cases_rows.h"

static inline void run_device_cases(ex_device *device, double tolerance, int large)
{
    device_case c = {.device = device, .tolerance = tolerance, .large = large, .state = 20};
    int64_t before = device->allocated;
    case_memory(&c);
    case_gemm(&c);
    case_embed(&c);
    case_norm(&c);
    case_rotary(&c);
    case_swiglu(&c);
    case_sums(&c);
    case_split(&c);
    case_cross_entropy(&c);
    case_adam(&c);
    case_attention(&c);
    ck_assert_int_eq(device->allocated, before);
}

#endif
