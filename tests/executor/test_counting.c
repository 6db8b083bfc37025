/* The device that counts: what it holds, and every operation with each of its arguments one byte short. */
#include "test.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/device.h"

static ex_device *open_counting(ex_type type, int64_t limit)
{
    ex_fault fault = {0};
    ex_device *device = ex_counting_open(type, limit, NULL, &fault);
    ck_assert_msg(device != NULL, "%s", fault.text);
    return device;
}

START_TEST(counts)
{
    ex_device *device = open_counting(EX_F32, 10000);
    const ex_device_ops *ops = device->ops;
    void *held[200], *first = ops->allocate(device, 5000);
    int64_t free_bytes, total_bytes;
    ck_assert_ptr_nonnull(first);
    for (int i = 0; i < 200; i++) {
        held[i] = ops->allocate(device, i % 7);
        ck_assert_ptr_nonnull(held[i]);
        ck_assert_uint_eq((uintptr_t)held[i] % 256, 0);
    }
    ops->memory(device, &free_bytes, &total_bytes);
    ck_assert_int_eq(device->allocated, 5000 + 28 * 21 + 0 + 1 + 2 + 3);
    ck_assert_int_eq(free_bytes, 10000 - device->allocated);
    ck_assert_int_eq(total_bytes, 10000);
    int64_t most = device->allocated;
    for (int i = 0; i < 200; i++) /* in another order */
        ops->release(device, held[i * 77 % 200]);
    ops->release(device, NULL);
    ck_assert_int_eq(device->allocated, 5000);
    ck_assert_int_eq(device->most_allocated, most);
    ck_assert_int_eq(ex_device_sync(device), 0);
    ck_assert_int_eq(device->host_memory, 0);
    ck_assert_ptr_null(ops->allocate(device, 5001));
    ck_assert_str_eq(device->fault.text, "counting: 5001 bytes asked for; 5000 of 10000 are free");
    ck_assert_int_eq(ex_device_sync(device), -1);
    ck_assert_ptr_null(ops->allocate(device, 1));
    ex_device_free(device);
}
END_TEST

START_TEST(released_once)
{
    for (int again = 0; again < 2; again++) {
        ex_device *device = open_counting(EX_F32, 1000);
        char *a = device->ops->allocate(device, 100);
        if (again)
            device->ops->release(device, a);
        ck_assert_int_eq(ex_device_sync(device), 0);
        device->ops->release(device, again ? a : a + 8);
        ck_assert_str_eq(device->fault.text,
                         "counting: release of what was not allocated, or was released before");
        ex_device_free(device);
    }
}
END_TEST

/* Who touches an address is ended. */
START_TEST(addresses_are_of_nothing)
{
    ex_device *device = open_counting(EX_F32, 1000);
    volatile char *a = device->ops->allocate(device, 100);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        close(STDERR_FILENO);
        (void)a[0];
        _exit(0);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(!WIFEXITED(status) || WEXITSTATUS(status) != 0);
    ex_device_free(device);
}
END_TEST

static const int32_t borders[] = {0, 3, 5};
static const ex_heads heads = {4, 2, 8};

typedef struct operation {
    const char *name;
    struct {
        const char *what;
        int64_t count;
        int each; /* bytes; 0: an element's */
    } takes[8];
} operation;

/* T 5, width 12, f 6, vocab 9, sp 2. */
static const operation operations[] = {
    {"copy_in", {{"to", 100, 1}}},
    {"copy_out", {{"from", 100, 1}}},
    {"copy", {{"to", 100, 1}, {"from", 100, 1}}},
    {"zero", {{"to", 100, 1}}},
    {"gemm", {{"a", 6, 0}, {"b", 12, 0}, {"c", 8, 4}}},
    {"embed", {{"table", 12, 0}, {"tokens", 5, 4}, {"out", 60, 0}}},
    {"embed_back", {{"d_out", 60, 0}, {"tokens", 5, 4}, {"order", 5, 4}, {"grad", 12, 4}}},
    {"norm", {{"x", 60, 0}, {"weight", 12, 0}, {"out", 60, 0}, {"inverse", 5, 4}}},
    {"norm_back",
     {{"x", 60, 0},
      {"weight", 12, 0},
      {"inverse", 5, 4},
      {"d_out", 60, 0},
      {"d_x", 60, 0},
      {"d_weight", 12, 4}}},
    {"rotary", {{"x", 4 * 12 + 8, 0}, {"positions", 5, 4}}},
    {"attention", {{"borders", 3, 4}, {"qkv", 5 * 64, 0}, {"out", 5 * 32, 0}, {"log_sums", 20, 4}}},
    {"attention_back",
     {{"borders", 3, 4},
      {"qkv", 5 * 64, 0},
      {"out", 5 * 32, 0},
      {"d_out", 5 * 32, 0},
      {"log_sums", 20, 4},
      {"d_qkv", 5 * 64, 0},
      {"scratch", 0, 1}}},
    {"swiglu", {{"x", 60, 0}, {"out", 30, 0}}},
    {"swiglu_back", {{"x", 60, 0}, {"d_out", 30, 0}, {"d_x", 60, 0}}},
    {"add", {{"to", 60, 0}, {"from", 60, 0}}},
    {"add_bias", {{"x", 60, 0}, {"bias", 12, 0}}},
    {"bias_back", {{"d_x", 60, 0}, {"grad", 12, 4}}},
    {"split", {{"the whole", 5 * 64, 0}, {"the parts", 2 * 5 * 32, 0}}},
    {"merge", {{"the whole", 5 * 64, 0}, {"the parts", 2 * 5 * 32, 0}}},
    {"cross_entropy", {{"logits", 45, 0}, {"targets", 5, 4}, {"weights", 5, 4}, {"loss", 1, 8}}},
    {"adam", {{"grad", 7, 4}, {"master", 7, 4}, {"mean", 7, 4}, {"variance", 7, 4}, {"weights", 7, 0}}},
    {"cast", {{"from", 7, 4}, {"to", 7, 0}}},
    {"sum_squares", {{"x", 7, 4}, {"sum", 1, 8}}},
};

enum { OPERATIONS = sizeof operations / sizeof *operations };

static void call(ex_device *device, int which, void **p)
{
    const ex_device_ops *ops = device->ops;
    ex_documents documents = {p[0], borders, 2, 3};
    ex_adam adam = {.correction1 = 1, .correction2 = 1};
    char host[100] = {0};
    switch (which) {
    case 0:
        ops->copy_in(device, p[0], host, 100);
        break;
    case 1:
        ops->copy_out(device, host, p[0], 100);
        break;
    case 2:
        ops->copy(device, p[0], p[1], 100);
        break;
    case 3:
        ops->zero(device, p[0], 100);
        break;
    case 4:
        ops->gemm(device, 0, 1, 2, 4, 3, p[0], p[1], 1, p[2], 1);
        break;
    case 5:
        ops->embed(device, p[0], p[1], 5, 12, p[2]);
        break;
    case 6:
        ops->embed_back(device, p[0], p[1], p[2], 5, 12, p[3]);
        break;
    case 7:
        ops->norm(device, p[0], p[1], 5, 12, 1e-5f, p[2], p[3]);
        break;
    case 8:
        ops->norm_back(device, p[0], p[1], p[2], p[3], 5, 12, p[4], p[5]);
        break;
    case 9:
        ops->rotary(device, p[0], p[1], 5, 12, 1, 8, 1e4f, 0);
        break;
    case 10:
        ops->attention(device, p[1], &documents, 5, heads, p[2], p[3]);
        break;
    case 11:
        ops->attention_back(device, p[1], p[2], p[3], p[4], &documents, 5, heads, p[5], p[6]);
        break;
    case 12:
        ops->swiglu(device, p[0], 5, 6, p[1]);
        break;
    case 13:
        ops->swiglu_back(device, p[0], p[1], 5, 6, p[2]);
        break;
    case 14:
        ops->add(device, p[0], p[1], 60);
        break;
    case 15:
        ops->add_bias(device, p[0], p[1], 5, 12);
        break;
    case 16:
        ops->bias_back(device, p[0], 5, 12, p[1]);
        break;
    case 17:
        ops->split(device, p[0], 5, heads, 2, p[1]);
        break;
    case 18:
        ops->merge(device, p[1], 5, heads, 2, p[0]);
        break;
    case 19:
        ops->cross_entropy(device, p[0], p[1], p[2], 5, 9, p[3]);
        break;
    case 20:
        ops->adam(device, 7, p[0], p[1], p[2], p[3], p[4], adam);
        break;
    case 21:
        ops->cast(device, p[0], p[1], 7);
        break;
    default:
        ops->sum_squares(device, p[0], 7, p[1]);
        break;
    }
}

/* Calls an operation with argument `wrong` as it should not be: 0 one byte short, 1 in no allocation, 2 half
 * an element on; -1: all are right. */
static void check_call(ex_type type, int which, int wrong, int how)
{
    ex_device *device = open_counting(type, INT64_MAX);
    const operation *o = &operations[which];
    void *p[8] = {0};
    int64_t bytes[8] = {0};
    int each = 0;
    for (int i = 0; i < 8 && o->takes[i].what; i++) {
        int size = o->takes[i].each ? o->takes[i].each : (int)ex_type_bytes(type);
        bytes[i] = o->takes[i].count * size;
        if (!strcmp(o->takes[i].what, "scratch"))
            bytes[i] = device->ops->attention_scratch(device, 5, heads);
        each = i == wrong ? size : each;
        char *at =
            device->ops->allocate(device, bytes[i] + (i == wrong ? (how == 2 ? size / 2 : -(how == 0)) : 0));
        p[i] = i != wrong ? at : how == 1 ? at + bytes[i] : how == 2 ? at + size / 2 : at;
    }
    call(device, which, p);
    char want[300];
    if (wrong < 0)
        ck_assert_msg(ex_device_sync(device) == 0, "%s", device->fault.text);
    else {
        const char *what = o->takes[wrong].what;
        if (how == 0)
            snprintf(want, sizeof want,
                     "counting: %s: %s takes %" PRId64 " bytes; its allocation of %" PRId64 " has %" PRId64
                     " from there on",
                     o->name, what, bytes[wrong], bytes[wrong] - 1, bytes[wrong] - 1);
        else if (how == 1)
            snprintf(want, sizeof want, "counting: %s: %s is in no allocation", o->name, what);
        else
            snprintf(want, sizeof want, "counting: %s: %s is not aligned to %d bytes", o->name, what, each);
        if (how == 2 && each == 1)
            ck_assert_int_eq(ex_device_sync(device), 0);
        else
            ck_assert_str_eq(device->fault.text, want);
    }
    ex_device_free(device);
}

START_TEST(every_argument)
{
    for (int type = 0; type < 2; type++) {
        for (int which = 0; which < OPERATIONS; which++) {
            check_call(type ? EX_BF16 : EX_F32, which, -1, 0);
            for (int i = 0; i < 8 && operations[which].takes[i].what; i++)
                for (int how = 0; how < 3; how++)
                    check_call(type ? EX_BF16 : EX_F32, which, i, how);
        }
    }
}
END_TEST

/* None of them is left out above: all others of the struct are met in the other tests. */
START_TEST(operations_are_all)
{
    ck_assert_uint_eq(sizeof(ex_device_ops) / sizeof(void (*)(void)), OPERATIONS + 6);
}
END_TEST

START_TEST(arguments_that_no_memory_helps)
{
    static const char *wants[] = {
        "counting: gemm: beta is 0.5; it is 0 or 1",
        "counting: gemm: writes where it reads",
        "counting: norm: epsilon is 0; it is above 0",
        "counting: rotary: 2 heads of 8 elements in rows of 12",
        "counting: rotary: 1 heads of 7 elements in rows of 12",
        "counting: attention: 4 heads of 8 elements, 3 of keys and values",
        "counting: attention: document 1 is tokens 3 to 6 of 5",
        "counting: attention_back: a document has 3 tokens; the longest is said to have 2",
        "counting: attention_back: writes where it reads",
        "counting: split: 6 heads and 2 key-value heads do not divide among 4 ranks",
        "counting: merge: 6 heads and 4 key-value heads do not divide among 6 ranks",
        "counting: adam: corrections 0 and 1; both are above 0",
        "counting: add: to is asked for -1 elements",
        "counting: add_bias: x is asked for -1 elements",
        "counting: copy: from is in no allocation",
    };
    for (int i = 0; i < 15; i++) {
        ex_device *device = open_counting(EX_F32, INT64_MAX);
        const ex_device_ops *ops = device->ops;
        char *a = ops->allocate(device, 1 << 20), *b = ops->allocate(device, 1 << 20);
        char *c = ops->allocate(device, 1 << 20);
        float *f = (float *)(void *)c;
        int32_t *n = (int32_t *)(void *)c;
        const int32_t far[] = {0, 3, 6};
        ex_documents documents = {n, i == 6 ? far : borders, 2, i == 7 ? 2 : 3};
        ex_heads h = {4, i == 5 ? 3 : 2, 8};
        switch (i) {
        case 0:
            ops->gemm(device, 0, 0, 1, 1, 1, a, b, .5f, c, 0);
            break;
        case 1:
            ops->gemm(device, 0, 0, 4, 4, 4, a, b, 1, b + 60, 0);
            break;
        case 2:
            ops->norm(device, a, a, 1, 1, 0, b, f);
            break;
        case 3:
            ops->rotary(device, a, n, 1, 12, 2, 8, 1e4f, 0);
            break;
        case 4:
            ops->rotary(device, a, n, 1, 12, 1, 7, 1e4f, 0);
            break;
        case 5:
        case 6:
            ops->attention(device, a, &documents, 5, h, b, f);
            break;
        case 7:
            ops->attention_back(device, a, a, a, f, &documents, 5, h, b, c);
            break;
        case 8:
            ops->attention_back(device, a, b, b, f, &documents, 5, h, a, c);
            break;
        case 9:
            ops->split(device, a, 1, (ex_heads){6, 2, 8}, 4, b);
            break;
        case 10:
            ops->merge(device, a, 1, (ex_heads){6, 4, 8}, 6, b);
            break;
        case 11:
            ops->adam(device, 1, f, f, f, f, a, (ex_adam){.correction2 = 1});
            break;
        case 12:
            ops->add(device, a, b, -1);
            break;
        case 13:
            ops->add_bias(device, a, b, INT64_MAX / 2, 4);
            break;
        default:
            ops->release(device, b);
            ops->copy(device, a, b, 1);
            break;
        }
        ck_assert_str_eq(device->fault.text, wants[i]);
        ck_assert_int_eq(ex_device_sync(device), -1);
        ex_device_free(device);
    }
}
END_TEST

START_TEST(scratch_is_that_of_another)
{
    ex_fault fault = {0};
    ex_device *cpu = ex_cpu_open(EX_BF16, 1, &fault);
    ck_assert_ptr_nonnull(cpu);
    ex_device *like = ex_counting_open(EX_F32, 1000, cpu, &fault);
    ex_device *alone = open_counting(EX_F32, 1000);
    int64_t of_cpu = cpu->ops->attention_scratch(cpu, 100, heads);
    ck_assert_int_eq(like->ops->attention_scratch(like, 100, heads), of_cpu);
    ck_assert_int_ne(alone->ops->attention_scratch(alone, 100, heads), of_cpu);
    ck_assert_int_gt(alone->ops->attention_scratch(alone, 100, heads), 0);
    ex_device_free(alone);
    ex_device_free(like);
    ex_device_free(cpu);
}
END_TEST

START_TEST(host_reads_zeros)
{
    ex_device *device = open_counting(EX_F32, 1000);
    void *a = device->ops->allocate(device, 16);
    unsigned char host[16];
    memset(host, 7, sizeof host);
    device->ops->copy_out(device, host, a, 16);
    for (int i = 0; i < 16; i++)
        ck_assert_int_eq(host[i], 0);
    ex_device_free(device);
}
END_TEST

TEST_MAIN("counting", counts, released_once, addresses_are_of_nothing, every_argument, operations_are_all,
          arguments_that_no_memory_helps, scratch_is_that_of_another, host_reads_zeros)
