/* Cases of attention and of heads on their way to it. Included by device_cases.h. */
#ifndef TESTS_EXECUTOR_DEVICE_CASES_ATTENTION_H
#define TESTS_EXECUTOR_DEVICE_CASES_ATTENTION_H

/* Forward and backward over documents of these lengths; scores of about `size`. */
static inline void case_attention_once(device_case *c, const int32_t *lengths, int64_t documents,
                                       ex_heads heads, double size)
{
    ex_device *device = c->device;
    const ex_device_ops *ops = device->ops;
    int32_t borders[16] = {0}, longest = 0;
    ck_assert_int_lt(documents, 16);
    for (int64_t i = 0; i < documents; i++) {
        borders[i + 1] = borders[i] + lengths[i];
        longest = lengths[i] > longest ? lengths[i] : longest;
    }
    int64_t S = borders[documents], width = (heads.heads + 2 * (int64_t)heads.kv_heads) * heads.dim;
    int64_t out_width = (int64_t)heads.heads * heads.dim;
    CASE(c, "attention of %lld documents, %lld tokens, the longest %d, heads %d / %d of %d",
         (long long)documents, (long long)S, (int)longest, (int)heads.heads, (int)heads.kv_heads,
         (int)heads.dim);

    ex_documents d = {.borders = case_ints(c, borders, documents + 1),
                      .host_borders = borders,
                      .count = documents,
                      .longest = longest};
    const double *x = case_draw(c, S * width, size, 1);
    const double *d_y = case_draw(c, S * out_width, 1, 1);
    double *y = case_zeros(c, S * out_width), *log_sums = case_zeros(c, S * heads.heads);
    double *d_x = case_zeros(c, S * width);
    oracle_attention(x, borders, documents, S, heads, y, log_sums);
    oracle_attention_back(x, d_y, borders, documents, S, heads, d_x);

    void *qkv = case_elements(c, x, S * width), *out = case_elements(c, NULL, S * out_width);
    float *sums = case_floats(c, NULL, S * heads.heads);
    ops->attention(device, qkv, &d, S, heads, out, sums);
    case_elements_near(c, "out", out, y, S * out_width);
    case_near(c, "log_sums", case_take(c, sums, S * heads.heads, EX_F32), log_sums, S * heads.heads,
              device->type == EX_F32 ? c->tolerance : 1e-3);

    void *d_out = case_elements(c, d_y, S * out_width), *d_qkv = case_elements(c, NULL, S * width);
    int64_t scratch_bytes = ops->attention_scratch(device, S, heads);
    void *scratch = case_elements(c, NULL, (scratch_bytes + 3) / (int64_t)ex_type_bytes(device->type));
    ops->attention_back(device, qkv, out, d_out, sums, &d, S, heads, d_qkv, scratch);
    case_elements_near(c, "d_qkv", d_qkv, d_x, S * width);
    case_near(c, "qkv afterwards", case_take(c, qkv, S * width, device->type), x, S * width, 0);
    case_end(c);
}

static inline void case_attention(device_case *c)
{
    case_attention_once(c, (const int32_t[]){1}, 1, (ex_heads){1, 1, 8}, 1);
    case_attention_once(c, (const int32_t[]){5, 1, 17, 0, 2}, 5, (ex_heads){4, 2, 8}, 2);
    case_attention_once(c, (const int32_t[]){33, 64, 7}, 3, (ex_heads){2, 1, 16}, 1);
    case_attention_once(c, (const int32_t[]){65}, 1, (ex_heads){1, 1, 128}, 1);
    if (!c->large)
        return;
    case_attention_once(c, (const int32_t[]){300, 1, 129, 128, 127}, 5, (ex_heads){4, 2, 64}, 1);
    case_attention_once(c, (const int32_t[]){40, 257}, 2, (ex_heads){6, 1, 16}, 3);
    case_attention_once(c, (const int32_t[]){200, 3}, 2, (ex_heads){2, 2, 128}, 1);
    case_attention_once(c, (const int32_t[]){2, 290}, 2, (ex_heads){3, 3, 8}, 6); /* nearly one-hot rows */
}

static inline void case_rotary_once(device_case *c, int64_t T, int32_t heads, int32_t dim, int64_t stride,
                                    int32_t farthest)
{
    ex_device *device = c->device;
    CASE(c, "rotary of %lld rows of %lld, %d heads of %d", (long long)T, (long long)stride, (int)heads,
         (int)dim);
    double *x = case_draw(c, T * stride, 1, 1), *turned = case_zeros(c, T * stride);
    int32_t *positions = malloc((size_t)(T + 1) * sizeof *positions);
    ck_assert_ptr_nonnull(positions);
    for (int64_t t = 0; t < T; t++)
        positions[t] = (int32_t)(case_random(c) * farthest);
    positions[T - 1] = farthest;
    memcpy(turned, x, (size_t)(T * stride) * sizeof *x);
    oracle_rotary(turned, positions, T, stride, heads, dim, 10000, 0);
    void *at = case_elements(c, x, T * stride);
    int32_t *places = case_ints(c, positions, T);
    device->ops->rotary(device, at, places, T, stride, heads, dim, 10000.0f, 0);
    case_elements_near(c, "turned", at, turned, T * stride);
    device->ops->rotary(device, at, places, T, stride, heads, dim, 10000.0f, 1);
    case_elements_near(c, "turned back", at, x, T * stride);
    free(positions);
    case_end(c);
}

static inline void case_rotary(device_case *c)
{
    case_rotary_once(c, 1, 1, 2, 2, 3);
    case_rotary_once(c, 13, 3, 8, 40, 100);
    case_rotary_once(c, 7, 2, 64, 128, 131071);
    case_rotary_once(c, 5, 1, 128, 131, 1000000);
}

/* split by the place of every element; merge of something else by the same map, transposed. */
static inline void case_split_once(device_case *c, int64_t T, ex_heads all, int32_t sp)
{
    ex_device *device = c->device;
    int64_t width = (all.heads + 2 * (int64_t)all.kv_heads) * all.dim, part = oracle_split_width(all, sp);
    CASE(c, "split of %lld rows of %d + 2 %d heads of %d among %d", (long long)T, (int)all.heads,
         (int)all.kv_heads, (int)all.dim, (int)sp);
    const double *x = case_draw(c, T * width, 1, 1), *y = case_draw(c, sp * T * part, 1, 1);
    double *split = case_zeros(c, sp * T * part), *merged = case_zeros(c, T * width);
    for (int32_t p = 0; p < sp; p++) {
        for (int64_t t = 0; t < T; t++) {
            for (int64_t e = 0; e < part; e++) {
                int64_t from = t * width + oracle_split_place(all, sp, p, e), to = (p * T + t) * part + e;
                split[to] = x[from];
                merged[from] += y[to];
            }
        }
    }
    void *whole = case_elements(c, x, T * width), *parts = case_elements(c, NULL, sp * T * part);
    device->ops->split(device, whole, T, all, sp, parts);
    case_near(c, "split", case_take(c, parts, sp * T * part, device->type), split, sp * T * part, 0);

    void *others = case_elements(c, y, sp * T * part), *sums = case_elements(c, NULL, T * width);
    device->ops->merge(device, others, T, all, sp, sums);
    case_elements_near(c, "merge", sums, merged, T * width);
    case_end(c);
}

static inline void case_split(device_case *c)
{
    case_split_once(c, 3, (ex_heads){4, 2, 8}, 1);
    case_split_once(c, 5, (ex_heads){8, 4, 6}, 2);
    case_split_once(c, 4, (ex_heads){8, 2, 16}, 8);
    case_split_once(c, 2, (ex_heads){8, 1, 4}, 4);
    case_split_once(c, 7, (ex_heads){6, 0, 10}, 3);
    case_split_once(c, 1, (ex_heads){16, 8, 128}, 8);
}

#endif
