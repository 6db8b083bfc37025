/* Cases of memory, products, rows and vectors. Included by device_cases.h. */
#ifndef TESTS_EXECUTOR_DEVICE_CASES_ROWS_H
#define TESTS_EXECUTOR_DEVICE_CASES_ROWS_H

static inline void case_memory(device_case *c)
{
    ex_device *device = c->device;
    const ex_device_ops *ops = device->ops;
    CASE(c, "memory");
    unsigned char from[1000], to[1000];
    for (int i = 0; i < 1000; i++)
        from[i] = (unsigned char)(i * 7);
    int64_t before = device->allocated;
    device->most_allocated = before;
    char *a = ops->allocate(device, 1000), *b = ops->allocate(device, 1000);
    ck_assert_msg(a && b, "%s", device->fault.text);
    ck_assert_uint_eq((uintptr_t)a % 256, 0);
    ck_assert_uint_eq((uintptr_t)b % 256, 0);
    ck_assert_int_eq(device->allocated, before + 2000);
    ops->copy_in(device, a, from, 1000);
    ops->copy(device, b, a, 1000);
    ops->zero(device, b + 100, 300);
    ops->copy_out(device, to, b, 1000);
    for (int i = 0; i < 1000; i++)
        ck_assert_int_eq(to[i], i >= 100 && i < 400 ? 0 : from[i]);
    ops->release(device, a);
    ck_assert_int_eq(device->allocated, before + 1000);
    ops->release(device, b);
    ops->release(device, NULL);
    ck_assert_int_eq(device->allocated, before);
    ck_assert_int_eq(device->most_allocated, before + 2000);
    int64_t free_bytes = -1, total_bytes = -1;
    ops->memory(device, &free_bytes, &total_bytes);
    ck_assert(free_bytes > 0 && free_bytes <= total_bytes);
    case_end(c);
}

static inline void case_gemm_once(device_case *c, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k,
                                  float beta, int c_f32)
{
    ex_device *device = c->device;
    CASE(c, "gemm %d %d of %lld x %lld x %lld, beta %g, c_f32 %d", trans_a, trans_b, (long long)m,
         (long long)n, (long long)k, (double)beta, c_f32);
    const double *a = case_draw(c, m * k, 1, 1), *b = case_draw(c, k * n, 1, 1);
    double *want = case_draw(c, m * n, 3, !c_f32);
    void *on_a = case_elements(c, a, m * k), *on_b = case_elements(c, b, k * n);
    ex_type type = c_f32 ? EX_F32 : device->type;
    void *on_c = case_put(c, beta == 0.0f ? NULL : want, m * n, type);
    oracle_gemm(trans_a, trans_b, m, n, k, a, b, (double)beta, want);
    device->ops->gemm(device, trans_a, trans_b, m, n, k, on_a, on_b, beta, on_c, c_f32);
    case_near(c, "c", case_take(c, on_c, m * n, type), want, m * n, c_f32 ? 4e-6 : c->tolerance);
    case_end(c);
}

static inline void case_gemm(device_case *c)
{
    static const int64_t sizes[][3] = {{1, 1, 1},   {3, 5, 7},      {16, 16, 16},  {33, 70, 129},
                                       {1, 64, 40}, {300, 20, 270}, {20, 270, 300}};
    int count = c->large ? 7 : 4;
    for (int i = 0; i < count; i++) {
        const int64_t *s = sizes[i];
        for (int kind = 0; kind < 16; kind++)
            case_gemm_once(c, kind & 1, kind >> 1 & 1, s[0], s[1], s[2], kind & 4 ? 1.0f : 0.0f,
                           kind >> 3 & 1);
    }
}

/* Tokens [T] below `vocab`, and their order by token. */
static inline void case_tokens(device_case *c, int64_t T, int32_t vocab, int32_t *tokens, int32_t *order)
{
    int64_t at = 0;
    for (int64_t t = 0; t < T; t++)
        tokens[t] = (int32_t)(case_random(c) * case_random(c) * vocab);
    for (int32_t token = 0; token < vocab; token++)
        for (int64_t t = 0; t < T; t++)
            if (tokens[t] == token)
                order[at++] = (int32_t)t;
}

static inline void case_embed_once(device_case *c, int64_t T, int32_t vocab, int64_t width)
{
    ex_device *device = c->device;
    int32_t tokens[512], order[512];
    ck_assert_int_le(T, 512);
    CASE(c, "embed of %lld tokens of %d, width %lld", (long long)T, (int)vocab, (long long)width);
    case_tokens(c, T, vocab, tokens, order);
    const double *table = case_draw(c, vocab * width, 1, 1), *d_y = case_draw(c, T * width, 1, 1);
    double *y = case_zeros(c, T * width), *d_table = case_draw(c, vocab * width, 1, 0);
    float *grad = case_floats(c, d_table, vocab * width);
    for (int64_t t = 0; t < T; t++) {
        for (int64_t j = 0; j < width; j++) {
            y[t * width + j] = table[tokens[t] * width + j];
            d_table[tokens[t] * width + j] += d_y[t * width + j];
        }
    }
    int32_t *on_tokens = case_ints(c, tokens, T), *on_order = case_ints(c, order, T);
    void *out = case_elements(c, NULL, T * width);
    device->ops->embed(device, case_elements(c, table, vocab * width), on_tokens, T, width, out);
    case_near(c, "out", case_take(c, out, T * width, device->type), y, T * width, 0);
    device->ops->embed_back(device, case_elements(c, d_y, T * width), on_tokens, on_order, T, width, grad);
    case_floats_near(c, "grad", grad, d_table, vocab * width);
    case_end(c);
}

static inline void case_embed(device_case *c)
{
    case_embed_once(c, 1, 1, 1);
    case_embed_once(c, 37, 11, 24);
    case_embed_once(c, 5, 1000, 64);
    if (c->large)
        case_embed_once(c, 512, 30, 1030);
}

static inline void case_norm_once(device_case *c, int64_t T, int64_t width)
{
    ex_device *device = c->device;
    CASE(c, "norm of %lld rows of %lld", (long long)T, (long long)width);
    const double *x = case_draw(c, T * width, 2, 1), *weight = case_draw(c, width, 1, 1);
    const double *d_y = case_draw(c, T * width, 1, 1);
    double *y = case_zeros(c, T * width), *inverse = case_zeros(c, T);
    double *d_x = case_draw(c, T * width, 1, 1), *d_weight = case_draw(c, width, 1, 0);
    void *on_x = case_elements(c, x, T * width), *on_weight = case_elements(c, weight, width);
    void *out = case_elements(c, NULL, T * width), *on_d_x = case_elements(c, d_x, T * width);
    float *on_inverse = case_floats(c, NULL, T), *on_d_weight = case_floats(c, d_weight, width);
    oracle_norm(x, weight, T, width, (double)1e-5f, y, inverse);
    oracle_norm_back(x, weight, inverse, d_y, T, width, d_x, d_weight);
    device->ops->norm(device, on_x, on_weight, T, width, 1e-5f, out, on_inverse);
    case_elements_near(c, "out", out, y, T * width);
    case_floats_near(c, "inverse", on_inverse, inverse, T);
    device->ops->norm_back(device, on_x, on_weight, on_inverse, case_elements(c, d_y, T * width), T, width,
                           on_d_x, on_d_weight);
    case_elements_near(c, "d_x", on_d_x, d_x, T * width);
    case_floats_near(c, "d_weight", on_d_weight, d_weight, width);
    case_end(c);
}

static inline void case_norm(device_case *c)
{
    case_norm_once(c, 1, 1);
    case_norm_once(c, 5, 67);
    case_norm_once(c, 70, 64);
    if (c->large)
        case_norm_once(c, 300, 520);
}

static inline void case_swiglu_once(device_case *c, int64_t T, int64_t f, double size)
{
    ex_device *device = c->device;
    CASE(c, "swiglu of %lld rows of %lld", (long long)T, (long long)f);
    const double *x = case_draw(c, T * 2 * f, size, 1), *d_y = case_draw(c, T * f, 1, 1);
    double *y = case_zeros(c, T * f), *d_x = case_zeros(c, T * 2 * f);
    oracle_swiglu(x, T, f, y);
    oracle_swiglu_back(x, d_y, T, f, d_x);
    void *on_x = case_elements(c, x, T * 2 * f), *out = case_elements(c, NULL, T * f);
    void *on_d_x = case_elements(c, NULL, T * 2 * f);
    device->ops->swiglu(device, on_x, T, f, out);
    case_elements_near(c, "out", out, y, T * f);
    device->ops->swiglu_back(device, on_x, case_elements(c, d_y, T * f), T, f, on_d_x);
    case_elements_near(c, "d_x", on_d_x, d_x, T * 2 * f);
    device->ops->swiglu_back(device, on_x, case_elements(c, d_y, T * f), T, f, on_x);
    case_elements_near(c, "d_x in place of x", on_x, d_x, T * 2 * f);
    case_end(c);
}

static inline void case_swiglu(device_case *c)
{
    case_swiglu_once(c, 1, 1, 1);
    case_swiglu_once(c, 9, 77, 8);
    case_swiglu_once(c, 4, 64, 300); /* where e^x is beyond fp32 */
    if (c->large)
        case_swiglu_once(c, 33, 1030, 4);
}

/* add, add_bias, bias_back, cast, sum_squares. */
static inline void case_sums_once(device_case *c, int64_t T, int64_t width)
{
    ex_device *device = c->device;
    const ex_device_ops *ops = device->ops;
    int64_t count = T * width;
    CASE(c, "sums of %lld rows of %lld", (long long)T, (long long)width);
    const double *x = case_draw(c, count, 1, 1), *bias = case_draw(c, width, 1, 1);
    const double *exact = case_draw(c, count, 1, 0);
    double *to = case_draw(c, count, 2, 1), *biased = case_zeros(c, count);
    double *grad = case_draw(c, width, 1, 0), *rounded = case_zeros(c, count), squares = 0.75;
    void *on_x = case_elements(c, x, count), *on_to = case_elements(c, to, count);
    void *on_bias = case_elements(c, bias, width), *on_rounded = case_elements(c, NULL, count);
    float *on_grad = case_floats(c, grad, width), *on_exact = case_floats(c, exact, count);
    double *on_sum = case_bytes(c, &squares, sizeof squares);
    for (int64_t i = 0; i < count; i++) {
        to[i] += x[i];
        biased[i] = x[i] + bias[i % width];
        grad[i % width] += x[i];
        rounded[i] = (double)case_element(device->type, exact[i]);
        squares += exact[i] * exact[i];
    }
    ops->add(device, on_to, on_x, count);
    case_elements_near(c, "to", on_to, to, count);
    ops->bias_back(device, on_x, T, width, on_grad);
    case_floats_near(c, "grad", on_grad, grad, width);
    ops->add_bias(device, on_x, on_bias, T, width);
    case_elements_near(c, "x", on_x, biased, count);
    ops->cast(device, on_exact, on_rounded, count);
    case_near(c, "cast", case_take(c, on_rounded, count, device->type), rounded, count, 0);
    ops->sum_squares(device, on_exact, count, on_sum);
    double sum;
    ops->copy_out(device, &sum, on_sum, sizeof sum);
    case_near(c, "sum of squares", &sum, &squares, 1, 1e-7);
    case_end(c);
}

static inline void case_sums(device_case *c)
{
    case_sums_once(c, 1, 1);
    case_sums_once(c, 7, 33);
    case_sums_once(c, 130, 24);
    if (c->large)
        case_sums_once(c, 600, 530);
}

static inline void case_cross_entropy_once(device_case *c, int64_t T, int32_t vocab, double size)
{
    ex_device *device = c->device;
    CASE(c, "cross-entropy of %lld rows of %d, logits to %g", (long long)T, (int)vocab, size);
    double *logits = case_draw(c, T * vocab, size, 1), *weights = case_draw(c, T, 1, 0), loss = 2.5;
    void *on_logits = case_elements(c, logits, T * vocab);
    int32_t targets[512];
    ck_assert_int_le(T, 512);
    for (int64_t t = 0; t < T; t++) {
        targets[t] = (int32_t)(case_random(c) * vocab);
        weights[t] = t % 5 == 3 ? 0 : fabs(weights[t]);
        if (t % 10 == 3)
            targets[t] = -1; /* of a row of weight 0 */
    }
    float *on_weights = case_floats(c, weights, T);
    int32_t *on_targets = case_ints(c, targets, T);
    double *on_loss = case_bytes(c, &loss, sizeof loss);
    loss += oracle_cross_entropy(logits, targets, weights, T, vocab);
    device->ops->cross_entropy(device, on_logits, on_targets, on_weights, T, vocab, on_loss);
    case_elements_near(c, "gradient", on_logits, logits, T * vocab);
    double got;
    device->ops->copy_out(device, &got, on_loss, sizeof got);
    case_near(c, "loss", &got, &loss, 1, 1e-6);
    case_end(c);
}

static inline void case_cross_entropy(device_case *c)
{
    case_cross_entropy_once(c, 1, 2, 1);
    case_cross_entropy_once(c, 14, 100, 5);
    case_cross_entropy_once(c, 5, 31, 200); /* one logit takes all */
    if (c->large)
        case_cross_entropy_once(c, 21, 5003, 5);
}

static inline void case_adam_once(device_case *c, int64_t count, ex_adam options)
{
    ex_device *device = c->device;
    CASE(c, "adam of %lld", (long long)count);
    const double *grad = case_draw(c, count, 3, 0);
    double *master = case_draw(c, count, 1, 0), *mean = case_draw(c, count, 1, 0);
    double *variance = case_draw(c, count, 1, 0);
    for (int64_t i = 0; i < count; i++)
        variance[i] = fabs(variance[i]);
    float *on_grad = case_floats(c, grad, count), *on_master = case_floats(c, master, count);
    float *on_mean = case_floats(c, mean, count), *on_variance = case_floats(c, variance, count);
    void *weights = case_elements(c, NULL, count);
    oracle_adam(count, grad, master, mean, variance, options);
    device->ops->adam(device, count, on_grad, on_master, on_mean, on_variance, weights, options);
    case_floats_near(c, "master", on_master, master, count);
    case_floats_near(c, "mean", on_mean, mean, count);
    case_floats_near(c, "variance", on_variance, variance, count);
    double *rounded = case_take(c, on_master, count, EX_F32);
    for (int64_t i = 0; i < count; i++)
        rounded[i] = (double)case_element(device->type, rounded[i]);
    case_near(c, "weights", case_take(c, weights, count, device->type), rounded, count, 0);
    case_end(c);
}

static inline void case_adam(device_case *c)
{
    ex_adam first = {.learning_rate = .01f,
                     .beta1 = .9f,
                     .beta2 = .95f,
                     .epsilon = 1e-8f,
                     .weight_decay = .1f,
                     .correction1 = .1f,
                     .correction2 = .05f,
                     .gradient_scale = .3f};
    ex_adam later = first;
    later.correction1 = .99f;
    later.correction2 = .6f;
    later.gradient_scale = 1;
    case_adam_once(c, 1, first);
    case_adam_once(c, 77, later);
    if (c->large)
        case_adam_once(c, 5000, first);
}

#endif
