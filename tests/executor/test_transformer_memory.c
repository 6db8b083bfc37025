/* Bytes of activations: what is measured on the counting device, what a run uses, what the formula says. */
#include "transformer_cases.h"

static ex_device *open_cpu(ex_type type, ex_fault *fault)
{
    return ex_cpu_open(type, 1, fault);
}

/* The counting device stands for a GPU: its attention's scratch is what the CPU device wants. */
static int64_t measure(ex_type type, const ex_shape *shape, int32_t sp, int64_t tokens, int64_t documents,
                       int32_t recompute)
{
    ex_fault fault = {0};
    ex_device *device = open_cpu(type, &fault);
    ck_assert_msg(device != NULL, "%s", fault.text);
    int64_t bytes = ex_model_measure(device, shape, sp, tokens, documents, recompute);
    ck_assert_msg(bytes > 0, "%s", device->fault.text);
    ex_device_free(device);
    return bytes;
}

static ex_shape preset(const char *name)
{
    hbp_context *context = test_context();
    hbp_model *model = NULL;
    OK(context, hbp_model_create_preset(context, name, &model));
    ex_shape shape;
    ex_fault fault = {0};
    ck_assert_msg(ex_shape_from_model(model, &shape, &fault) == 0, "%s", fault.text);
    hbp_model_free(model);
    hbp_context_free(context);
    return shape;
}

START_TEST(a_run_uses_what_was_measured)
{
    const ex_type type = _i ? EX_BF16 : EX_F32;
    for (int sp = 1; sp <= 8; sp *= 2)
        for (int recompute = 0; recompute <= 3; recompute++) {
            ex_shape shape = case_shape(2, 8, 0, 1);
            shape.layers = 3;
            bench *b = bench_open(open_cpu, type, shape);
            arrangement a = {"one pack", sp, 0, 1, {{0, sp, recompute, ALL_SAMPLES, 0, 0}}};
            outcome got = run_arrangement(b, &a);
            ck_assert_int_eq(got.arena_most, measure(type, &shape, sp, CASE_TOKENS, SAMPLES, recompute));
            free_outcome(&got);
            bench_close(b);
        }
}
END_TEST

/* One layer more, a token: the cost model's formula, at every degree. */
START_TEST(kept_by_a_layer)
{
    const char *names[] = {"llama-3.1-8b", "qwen2.5-14b", "llama-3.1-70b"};
    const int64_t T = 4096;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (int sp = 1; sp <= 16; sp *= 2) {
            ex_shape shape = preset(names[i]);
            if (shape.heads % sp)
                continue;
            int64_t h = shape.hidden, f = shape.ffn, a = shape.heads, k = shape.kv_heads, d = shape.head_dim;
            int64_t formula = 8 * h + 4 * d * (a + k) + 4 * a + 6 * f;
            int64_t replicated = sp > k ? 4 * d * (sp - k) : 0;
            shape.layers = 2;
            int64_t two = measure(EX_BF16, &shape, sp, T * sp, 5, 0);
            shape.layers = 3;
            int64_t three = measure(EX_BF16, &shape, sp, T * sp, 5, 0);
            ck_assert_int_eq(three - two, T * (formula + 8 + replicated));
        }
}
END_TEST

/* Where heads are few and narrow, a row of hidden elements lies below x2 all the same: a recomputed layer's
 * output is copied there out of x2, and the two must not overlap. */
START_TEST(kept_by_a_layer_of_narrow_attention)
{
    ex_shape shape = case_shape(2, 8, 0, 0);
    shape.hidden = 1024;
    shape.ffn = 64;
    const int64_t T = 4096;
    int64_t bytes[2];
    for (int i = 0; i < 2; i++) {
        shape.layers = 2 + i;
        bytes[i] = measure(EX_BF16, &shape, 2, T * 2, 5, 0);
    }
    /* attention keeps 4 + 2 (96 + 64 + 64) + 4 x 8 = 484 bytes, less than 2 x 1024 */
    ck_assert_int_eq(bytes[1] - bytes[0], T * (4 * 2048 + 4 + 6 * 64));
}
END_TEST

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* All of it, in bf16, for T tokens a rank that are a multiple of 256: the pack's numbers, the gradient of the
 * residual stream, the layers, and the larger of the head and one layer in recomputation. */
START_TEST(peak_is_the_sum_of_its_parts)
{
    ex_shape shape = preset("llama-3.1-8b");
    shape.layers = 6;
    const int64_t T = 8192, h = shape.hidden, rows = 512;
    for (int sp = 1; sp <= 16; sp *= 4)
        for (int recompute = 0; recompute <= shape.layers; recompute++) {
            int64_t layer =
                8 * h + 4 * 128 * (32 + 8) + 4 * 32 + 6 * shape.ffn + 8 + 4 * 128 * (sp > 8 ? sp - 8 : 0);
            int64_t inputs = 2 * h * recompute;
            int64_t forward = T * (inputs + (shape.layers - recompute) * layer + 2 * h) +
                              rows * (2 * h + 4 + 2 * shape.vocab);
            int64_t again = recompute ? T * (inputs - 2 * h + layer) : 0;
            ck_assert_int_eq(measure(EX_BF16, &shape, sp, T * sp, 5, recompute),
                             T * (20 + 2 * h) + 256 + most(forward, again));
        }
}
END_TEST

/* Where the MLP is small, attention's backward pass needs most. */
START_TEST(peak_of_attention)
{
    ex_shape shape = preset("llama-3.1-8b");
    shape.layers = 1;
    shape.ffn = 64;
    shape.vocab = 64;
    const int64_t T = 8192, h = shape.hidden, q = 4096, w = 6144, f = 64;
    for (int sp = 1; sp <= 4; sp *= 2) {
        ex_fault fault = {0};
        ex_device *device = open_cpu(EX_BF16, &fault);
        int64_t scratch = device->ops->attention_scratch(device, T * sp, (ex_heads){32 / sp, 8 / sp, 128});
        scratch = (scratch + 255) / 256 * 256;
        ex_device_free(device);
        int64_t below = T * (20 + 4 * h) + 256; /* numbers, gradient, embeddings */
        int64_t kept = T * (4 + 2 * w + (sp == 1 ? 2 * h + 2 * q : 4 * q) + 4 * 32);
        int64_t back =
            sp == 1 ? T * 2 * (w + q) + scratch
                    : T * 2 * w + most(most(T * 2 * (w + q + q), T * 2 * (w + q) + scratch), T * 4 * w);
        int64_t head = T * (4 * h + 4 + 6 * f + 2 * h) + 4096 * (2 * h + 4 + 2 * 64);
        ck_assert_int_eq(measure(EX_BF16, &shape, sp, T * sp, 5, 0), below + kept + most(back, head));
    }
}
END_TEST

START_TEST(kept_by_a_recomputed_layer)
{
    ex_shape shape = preset("llama-3.1-8b");
    const int64_t T = 4096;
    for (int sp = 1; sp <= 8; sp *= 8) {
        shape.layers = 5;
        int64_t five = measure(EX_BF16, &shape, sp, T * sp, 5, 5);
        shape.layers = 6;
        int64_t six = measure(EX_BF16, &shape, sp, T * sp, 5, 6);
        ck_assert_int_eq(six - five, T * 2 * shape.hidden);
        /* each layer more that is recomputed gives back all that it keeps but its input */
        int64_t formula = 8 * shape.hidden + 4 * 128 * (32 + 8) + 4 * 32 + 6 * shape.ffn + 8;
        int64_t before = measure(EX_BF16, &shape, sp, T * sp, 5, 2);
        int64_t after = measure(EX_BF16, &shape, sp, T * sp, 5, 3);
        ck_assert_int_eq(before - after, T * (formula - 2 * shape.hidden));
    }
}
END_TEST

START_TEST(linear_in_tokens)
{
    ex_shape shape = preset("llama-3.1-8b");
    for (int sp = 1; sp <= 4; sp *= 4) {
        int64_t bytes[3];
        for (int i = 0; i < 3; i++)
            bytes[i] = measure(EX_BF16, &shape, sp, 16384 * sp * (i + 1), 7, 4);
        ck_assert_int_eq(bytes[2] - bytes[1], bytes[1] - bytes[0]);
        /* nothing but the fixed room of logits is beside the line */
        ck_assert_int_le(llabs(2 * bytes[0] - bytes[1]), 256 << 20);
    }
    /* the borders alone are for documents */
    int64_t few = measure(EX_BF16, &shape, 1, 16384, 1, 0);
    int64_t many = measure(EX_BF16, &shape, 1, 16384, 1025, 0);
    ck_assert_int_eq(many - few, 4096);
}
END_TEST

START_TEST(what_cannot_be_measured)
{
    const struct {
        int32_t sp;
        int64_t tokens, documents;
        int32_t recompute;
        const char *text;
    } cases[] = {
        {0, 8, 1, 0, "no pack has 8 tokens in 1 documents on 0 ranks"},
        {1, 8, 9, 0, "no pack has 8 tokens in 9 documents on 1 ranks"},
        {1, 8, 0, 0, "no pack has 8 tokens in 0 documents on 1 ranks"},
        {1, INT64_C(1) << 31, 1, 0, "no pack has 2147483648 tokens"},
        {2, 7, 1, 0, "a pack of 7 tokens on 2 ranks: not the same number on each"},
        {16, 16, 1, 0, "8 heads and 2 key-value heads do not divide among 16 ranks"},
        {1, 8, 1, 3, "a pack recomputes 3 layers; the model has 2"},
    };
    ex_shape shape = case_shape(2, 8, 0, 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ex_fault fault = {0};
        ex_device *device = open_cpu(EX_F32, &fault);
        ck_assert_int_eq(ex_model_measure(device, &shape, cases[i].sp, cases[i].tokens, cases[i].documents,
                                          cases[i].recompute),
                         -1);
        ck_assert_msg(strstr(device->fault.text, cases[i].text) != NULL, "'%s' lacks '%s'",
                      device->fault.text, cases[i].text);
        ex_device_free(device);
    }
}
END_TEST

TEST_MAIN_LOOPS("transformer_memory", NULL, NULL, {a_run_uses_what_was_measured, 0, 2},
                {kept_by_a_layer, 0, 1}, {kept_by_a_recomputed_layer, 0, 1},
                {kept_by_a_layer_of_narrow_attention, 0, 1}, {peak_is_the_sum_of_its_parts, 0, 1},
                {peak_of_attention, 0, 1}, {linear_in_tokens, 0, 1}, {what_cannot_be_measured, 0, 1})
