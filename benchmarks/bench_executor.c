/* The executor's operations against the ceilings of the device they run on, measured in the same run; a layer
 * and a pack against the sum of their operations. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "operations.h"
#include "whole_pack.h"

typedef struct settings {
    const char *model; /* NULL: of the device's kind */
    int device;        /* 0: a GPU where there is one, 1: CPU, 2: CUDA */
    int type;          /* -1: of the device's kind */
    int is_small, is_attention;
    int32_t threads;
} settings;

/* Sizes, by the kind of device. */
typedef struct sizes {
    const char *model;
    int64_t squares[4];              /* sides of products, 0: none */
    int64_t copied;                  /* bytes */
    int64_t tokens;                  /* of products at the layer's shapes, of attention */
    int64_t longest, shortest, many; /* documents: the longest's halves down to the shortest; many of those */
    int64_t rows;                    /* tokens of elementwise operations */
    int64_t numbers;                 /* of Adam */
    int64_t pack;                    /* tokens of the whole pack */
} sizes;

/* Elementwise operations take more than caches hold, as copies do. */
static const sizes of_cpu = {"llama-3.1-8b,layers=2,hidden=512,ffn=1536,heads=8,kv_heads=2,head_dim=64,"
                             "vocab=4096",
                             {256, 512, 1024},
                             64 << 20,
                             512,
                             2048,
                             256,
                             32,
                             16384,
                             16 << 20,
                             1024};
static const sizes of_gpu = {"llama-3.1-8b,layers=2",
                             {2048, 4096, 8192, 16384},
                             1 << 30,
                             8192,
                             16384,
                             1024,
                             128,
                             32768,
                             256 << 20,
                             8192};

/* The same kinds of work in a twentieth of the time: whether the program runs, not what the device can do. */
static sizes make_small(sizes s)
{
    for (int i = 1; i < 4; i++)
        s.squares[i] = 0;
    s.copied /= 16;
    s.tokens /= 4;
    s.longest /= 4;
    s.shortest /= 4;
    s.rows /= 16;
    s.numbers /= 16;
    s.pack /= 4;
    return s;
}

typedef struct bench {
    bench_rates rates;
    sizes sizes;
    ex_shape shape;
    bench_operation product, copy; /* the ceilings */
    double product_rate, copy_rate;
} bench;

/* Median rate of what is its own ceiling. */
static double rate_of(const bench *b, const bench_operation *o)
{
    bench_spread unused;
    return o->work.done / bench_rates_beside(&b->rates, &o->work, &o->work, &unused);
}

static void find_ceilings(bench *b)
{
    bench_section("Ceilings");
    int64_t best = 0;
    for (int i = 0; i < 4 && b->sizes.squares[i]; i++) {
        const int64_t n = b->sizes.squares[i];
        bench_shape square = {.kind = BENCH_PRODUCT, .trans_b = 1, .T = n, .n = n, .k = n};
        bench_operation o;
        bench_operation_open(&b->rates, &square, &o);
        double rate = rate_of(b, &o);
        bench_operation_close(&o);
        char name[64];
        snprintf(name, sizeof name, "product %lld x %lld x %lld", (long long)n, (long long)n, (long long)n);
        bench_line(name, "%10.1f Gflop/s", rate / 1e9);
        if (rate > b->product_rate) {
            b->product_rate = rate;
            best = n;
        }
    }
    bench_shape square = {.kind = BENCH_PRODUCT, .trans_b = 1, .T = best, .n = best, .k = best};
    bench_operation_open(&b->rates, &square, &b->product);
    bench_shape copied = {.kind = BENCH_COPY,
                          .T = b->sizes.copied / 1024 / (int64_t)ex_type_bytes(b->rates.device->type),
                          .n = 1024};
    bench_operation_open(&b->rates, &copied, &b->copy);
    b->copy_rate = rate_of(b, &b->copy);
    char name[64];
    snprintf(name, sizeof name, "copy of %lld MiB, bytes read and written", (long long)b->sizes.copied >> 20);
    bench_line(name, "%10.1f GB/s", b->copy_rate / 1e9);
    bench_line("below", "share of the best product's or of the copy's rate in the same pair, quartiles");
}

/* One operation beside its ceiling. */
static void print_operation(const bench *b, const char *name, bench_shape shape)
{
    bench_operation o;
    bench_operation_open(&b->rates, &shape, &o);
    int flops =
        shape.kind == BENCH_PRODUCT || shape.kind == BENCH_ATTENTION || shape.kind == BENCH_ATTENTION_BACK;
    bench_spread share;
    double seconds = bench_rates_beside(&b->rates, &o.work, flops ? &b->product.work : &b->copy.work, &share);
    bench_line(name, "%10.3f ms %10.1f %s %6.3f (%.3f .. %.3f)", 1e3 * seconds, o.work.done / seconds / 1e9,
               flops ? "Gflop/s" : "GB/s   ", share.median, share.low, share.high);
    bench_metric_beside(name, "rate", BENCH_HIGHER, o.work.done / seconds / 1e9, flops ? "Gflop/s" : "GB/s",
                        flops ? "the best product" : "a copy", share.median);
    bench_operation_close(&o);
}

static void print_products(const bench *b)
{
    const ex_shape *s = &b->shape;
    const int64_t wide = (int64_t)s->heads * s->head_dim, T = b->sizes.tokens;
    const struct {
        const char *name;
        int64_t in, out;
    } layers[] = {{"queries, keys, values", s->hidden, wide + 2 * (int64_t)s->kv_heads * s->head_dim},
                  {"output", wide, s->hidden},
                  {"gate and up", s->hidden, 2 * (int64_t)s->ffn},
                  {"down", s->ffn, s->hidden},
                  {"logits", s->hidden, s->vocab}};
    bench_section("Products of %lld tokens", (long long)T);
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        const int64_t in = layers[i].in, out = layers[i].out;
        const struct {
            const char *name;
            bench_shape shape;
        } ways[] = {
            {"forward", {.trans_b = 1, .T = T, .n = out, .k = in}},
            {"gradient of weights", {.trans_a = 1, .T = out, .n = in, .k = T, .adds = 1, .sums_f32 = 1}},
            {"gradient of input", {.T = T, .n = in, .k = out}}};
        for (size_t j = 0; j < sizeof ways / sizeof *ways; j++) {
            char name[64];
            snprintf(name, sizeof name, "%s, %s", layers[i].name, ways[j].name);
            print_operation(b, name, ways[j].shape);
        }
    }
}

/* `count` documents of `length` tokens; bench_attention.py reads the lines. */
static void print_documents(const bench *b, int64_t count, int64_t length)
{
    const ex_shape *s = &b->shape;
    int32_t *borders = bench_allocate(count + 1, sizeof *borders);
    for (int64_t i = 0; i <= count; i++)
        borders[i] = (int32_t)(i * length);
    for (int back = 0; back < 2; back++) {
        char name[64];
        snprintf(name, sizeof name, "attention %lld x %lld, %s", (long long)count, (long long)length,
                 back ? "backward" : "forward");
        print_operation(b, name,
                        (bench_shape){.kind = back ? BENCH_ATTENTION_BACK : BENCH_ATTENTION,
                                      .T = count * length,
                                      .heads = {s->heads, s->kv_heads, s->head_dim},
                                      .borders = borders,
                                      .documents = count});
    }
    free(borders);
}

static void print_attention(const bench *b)
{
    bench_section("Attention, documents x tokens: %d heads, %d of keys and values, of %d each",
                  (int)b->shape.heads, (int)b->shape.kv_heads, (int)b->shape.head_dim);
    for (int64_t length = b->sizes.shortest; length <= b->sizes.longest; length *= 2)
        print_documents(b, b->sizes.longest / length, length);
    print_documents(b, b->sizes.longest / b->sizes.many, b->sizes.many);
}

static void print_elementwise(const bench *b)
{
    const ex_shape *s = &b->shape;
    const ex_heads heads = {s->heads, s->kv_heads, s->head_dim};
    const int64_t T = b->sizes.rows;
    const struct {
        const char *name;
        bench_shape shape;
    } list[] = {
        {"norm", {.kind = BENCH_NORM, .T = T, .n = s->hidden}},
        {"norm, backward", {.kind = BENCH_NORM_BACK, .T = T, .n = s->hidden}},
        {"rotary positions", {.kind = BENCH_ROTARY, .T = T, .heads = heads}},
        {"rotary positions, backward", {.kind = BENCH_ROTARY_BACK, .T = T, .heads = heads}},
        {"SwiGLU", {.kind = BENCH_SWIGLU, .T = T, .n = s->ffn}},
        {"SwiGLU, backward", {.kind = BENCH_SWIGLU_BACK, .T = T, .n = s->ffn}},
        {"cross-entropy and its gradient", {.kind = BENCH_ENTROPY, .T = T / 4, .n = s->vocab}},
        {"AdamW", {.kind = BENCH_ADAM, .n = b->sizes.numbers}},
        {"embedding", {.kind = BENCH_EMBED, .T = T, .n = s->hidden, .k = s->vocab}},
        {"embedding, backward", {.kind = BENCH_EMBED_BACK, .T = T, .n = s->hidden, .k = s->vocab}},
        {"split by heads, SP 2", {.kind = BENCH_SPLIT, .T = T, .heads = heads, .k = 2}},
        {"merge of heads, SP 2", {.kind = BENCH_MERGE, .T = T, .heads = heads, .k = 2}},
    };
    bench_section("Elementwise operations, %lld tokens (cross-entropy a quarter), bytes that must be moved",
                  (long long)T);
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        print_operation(b, list[i].name, list[i].shape);
}

static int usage(void)
{
    fprintf(stderr,
            "usage: bench_executor [--device cpu|cuda] [--type f32|bf16] [--model NAME] [--threads N]\n"
            "                      [--attention] [--small]\n"
            "--model as hbp takes it, with kv_heads even; --threads of products on the CPU (default 1; the\n"
            "wall clock counts where there are more); --attention: nothing else; --small: does it run?\n");
    return 2;
}

static int find(const char *const *names, const char *name)
{
    for (int i = 0; names[i]; i++)
        if (!strcmp(names[i], name))
            return i;
    return -1;
}

static int read_settings(settings *s, int argc, char **argv)
{
    static const char *const devices[] = {"cpu", "cuda", NULL}, *const types[] = {"f32", "bf16", NULL};
    int good = 1;
    for (int i = 1; i < argc && good; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        int flag = 1;
        if (!strcmp(argv[i], "--small"))
            s->is_small = 1;
        else if (!strcmp(argv[i], "--attention"))
            s->is_attention = 1;
        else
            flag = 0;
        if (flag)
            continue;
        i++;
        if (!strcmp(argv[i - 1], "--device"))
            good = (s->device = find(devices, value) + 1) > 0;
        else if (!strcmp(argv[i - 1], "--type"))
            good = (s->type = find(types, value)) >= 0;
        else if (!strcmp(argv[i - 1], "--threads"))
            good = (s->threads = (int32_t)strtol(value, NULL, 10)) > 0;
        else if (!strcmp(argv[i - 1], "--model"))
            good = *(s->model = value) != 0;
        else
            good = 0;
    }
    return good;
}

static void open_device(bench *b, const settings *s)
{
    int cuda = s->device == 2 || (s->device == 0 && ex_cuda_count() > 0);
    ex_type type = s->type < 0 ? (cuda ? EX_BF16 : EX_F32) : (ex_type)s->type;
    ex_fault fault = {0};
    ex_device *device = cuda ? ex_cuda_open(type, 0, &fault) : ex_cpu_open(type, s->threads, &fault);
    if (!device) {
        fprintf(stderr, "%s\n", fault.text);
        exit(1);
    }
    b->rates = (bench_rates){device, !cuda && s->threads == 1, s->is_small ? 3 : 5};
    b->sizes = cuda ? of_gpu : of_cpu;
    if (s->is_small)
        b->sizes = make_small(b->sizes);
}

static void open_shape(bench *b, const char *text)
{
    hbp_context *context = bench_context(NULL);
    ex_fault fault = {0};
    hbp_model *model = ex_model_read(context, text, &fault);
    if (model && !ex_shape_from_model(model, &b->shape, &fault) && b->shape.kv_heads % 2)
        ex_fail(&fault, "%d heads of keys and values do not divide by the 2 ranks of split",
                b->shape.kv_heads);
    if (fault.failed) {
        fprintf(stderr, "%s\n", fault.text);
        exit(1);
    }
    hbp_model_free(model);
    hbp_context_free(context);
}

int main(int argc, char **argv)
{
    settings s = {.type = -1, .threads = 1};
    if (!read_settings(&s, argc, argv))
        return usage();
    bench b = {.product_rate = 0};
    open_device(&b, &s);
    const char *model = s.model ? s.model : b.sizes.model;
    open_shape(&b, model);
    bench_section("Executor on %s, %s, medians of %d pairs, seconds of the %s%s", b.rates.device->name,
                  b.rates.device->type == EX_BF16 ? "bf16" : "f32", (int)b.rates.pairs,
                  b.rates.by_cpu ? "CPU, one thread" : "wall clock",
                  s.is_small ? "; sizes too small for conclusions" : "");
    bench_line("model", "%s", model);
    find_ceilings(&b);
    if (!s.is_attention)
        print_products(&b);
    print_attention(&b);
    if (!s.is_attention)
        print_elementwise(&b);
    bench_operation_close(&b.product);
    bench_operation_close(&b.copy);
    if (!s.is_attention)
        bench_whole_pack(&b.rates, &b.shape, b.sizes.pack);
    ex_device_free(b.rates.device);
    return bench_end();
}
