/* What every operation would read and write, looked up. */
#include <inttypes.h>

#include "device/counting.h"
#include "device/cpu.h"

/* Rows x columns; -1, which no lookup takes, where that passes an int64. */
static int64_t area(int64_t rows, int64_t columns)
{
    if (rows < 0 || columns < 0 || (columns && rows > INT64_MAX / columns))
        return -1;
    return rows * columns;
}

static void elements(ex_device *device, const char *operation, const char *what, const void *at,
                     int64_t count)
{
    ex_counting_holds(device, operation, what, at, count, (int64_t)ex_type_bytes(device->type));
}

/* Things of 4 bytes: fp32 and int32. */
static void words(ex_device *device, const char *operation, const char *what, const void *at, int64_t count)
{
    ex_counting_holds(device, operation, what, at, count, 4);
}

/* What an operation writes must not be what it reads. */
static void apart(ex_device *device, const char *operation, const void *to, int64_t to_bytes,
                  const void *from, int64_t from_bytes)
{
    uintptr_t a = (uintptr_t)to, b = (uintptr_t)from;
    if (!device->fault.failed && a < b + (uintptr_t)from_bytes && b < a + (uintptr_t)to_bytes)
        ex_fail(&device->fault, "%s: %s: writes where it reads", device->name, operation);
}

static void count_gemm(ex_device *device, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k,
                       const void *a, const void *b, float beta, void *c, int c_f32)
{
    int64_t element = (int64_t)ex_type_bytes(device->type), c_bytes = c_f32 ? 4 : element;
    (void)trans_a;
    (void)trans_b;
    elements(device, "gemm", "a", a, area(m, k));
    elements(device, "gemm", "b", b, area(k, n));
    ex_counting_holds(device, "gemm", "c", c, area(m, n), c_bytes);
    if (!device->fault.failed && beta != 0.0f && beta != 1.0f)
        ex_fail(&device->fault, "%s: gemm: beta is %g; it is 0 or 1", device->name, (double)beta);
    if (device->fault.failed)
        return;
    apart(device, "gemm", c, m * n * c_bytes, a, m * k * element);
    apart(device, "gemm", c, m * n * c_bytes, b, k * n * element);
}

/* Rows of the table are not known here; at least one is read. */
static void count_embed(ex_device *device, const void *table, const int32_t *tokens, int64_t T, int64_t width,
                        void *out)
{
    elements(device, "embed", "table", table, T > 0 ? width : 0);
    words(device, "embed", "tokens", tokens, T);
    elements(device, "embed", "out", out, area(T, width));
}

static void count_embed_back(ex_device *device, const void *d_out, const int32_t *tokens,
                             const int32_t *order, int64_t T, int64_t width, float *grad)
{
    elements(device, "embed_back", "d_out", d_out, area(T, width));
    words(device, "embed_back", "tokens", tokens, T);
    words(device, "embed_back", "order", order, T);
    words(device, "embed_back", "grad", grad, T > 0 ? width : 0);
}

static void count_norm(ex_device *device, const void *x, const void *weight, int64_t T, int64_t width,
                       float epsilon, void *out, float *inverse)
{
    elements(device, "norm", "x", x, area(T, width));
    elements(device, "norm", "weight", weight, width);
    elements(device, "norm", "out", out, area(T, width));
    words(device, "norm", "inverse", inverse, T);
    if (!device->fault.failed && !(epsilon > 0.0f))
        ex_fail(&device->fault, "%s: norm: epsilon is %g; it is above 0", device->name, (double)epsilon);
}

static void count_norm_back(ex_device *device, const void *x, const void *weight, const float *inverse,
                            const void *d_out, int64_t T, int64_t width, void *d_x, float *d_weight)
{
    elements(device, "norm_back", "x", x, area(T, width));
    elements(device, "norm_back", "weight", weight, width);
    words(device, "norm_back", "inverse", inverse, T);
    elements(device, "norm_back", "d_out", d_out, area(T, width));
    elements(device, "norm_back", "d_x", d_x, area(T, width));
    words(device, "norm_back", "d_weight", d_weight, width);
}

static void count_rotary(ex_device *device, void *x, const int32_t *positions, int64_t T, int64_t stride,
                         int32_t heads, int32_t dim, float theta, int back)
{
    (void)theta;
    (void)back;
    if (!device->fault.failed && (dim < 2 || dim % 2 || (int64_t)heads * dim > stride))
        ex_fail(&device->fault, "%s: rotary: %d heads of %d elements in rows of %" PRId64, device->name,
                (int)heads, (int)dim, stride);
    elements(device, "rotary", "x", x, T > 0 ? area(T - 1, stride) + (int64_t)heads * dim : 0);
    words(device, "rotary", "positions", positions, T);
}

static int heads_are_fit(ex_device *device, const char *operation, ex_heads heads)
{
    if (!device->fault.failed &&
        (heads.heads < 1 || heads.kv_heads < 1 || heads.dim < 1 || heads.heads % heads.kv_heads))
        ex_fail(&device->fault, "%s: %s: %d heads of %d elements, %d of keys and values", device->name,
                operation, (int)heads.heads, (int)heads.dim, (int)heads.kv_heads);
    return !device->fault.failed;
}

static void check_documents(ex_device *device, const char *operation, const ex_documents *documents,
                            int64_t S)
{
    int32_t longest = 0;
    words(device, operation, "borders", documents->borders, documents->count + 1);
    for (int64_t i = 0; i < documents->count && !device->fault.failed; i++) {
        int32_t from = documents->host_borders[i], to = documents->host_borders[i + 1];
        if (from < 0 || from > to || to > S || (i == 0 && from != 0))
            ex_fail(&device->fault, "%s: %s: document %" PRId64 " is tokens %d to %d of %" PRId64,
                    device->name, operation, i, (int)from, (int)to, S);
        longest = to - from > longest ? to - from : longest;
    }
    if (!device->fault.failed && longest > documents->longest)
        ex_fail(&device->fault, "%s: %s: a document has %d tokens; the longest is said to have %d",
                device->name, operation, (int)longest, (int)documents->longest);
}

static int64_t qkv_width(ex_heads heads)
{
    return (heads.heads + 2 * (int64_t)heads.kv_heads) * heads.dim;
}

static void count_attention(ex_device *device, const void *qkv, const ex_documents *documents, int64_t S,
                            ex_heads heads, void *out, float *log_sums)
{
    if (!heads_are_fit(device, "attention", heads))
        return;
    check_documents(device, "attention", documents, S);
    elements(device, "attention", "qkv", qkv, area(S, qkv_width(heads)));
    elements(device, "attention", "out", out, area(S, (int64_t)heads.heads * heads.dim));
    words(device, "attention", "log_sums", log_sums, area(S, heads.heads));
}

/* Without a device to be like: as the CPU's. */
static int64_t count_attention_scratch(ex_device *device, int64_t S, ex_heads heads)
{
    ex_device *like = ex_counting_of(device)->like;
    return like ? like->ops->attention_scratch(like, S, heads) : ex_cpu_attention_scratch(device, S, heads);
}

static void count_attention_back(ex_device *device, const void *qkv, const void *out, const void *d_out,
                                 const float *log_sums, const ex_documents *documents, int64_t S,
                                 ex_heads heads, void *d_qkv, void *scratch)
{
    static const char name[] = "attention_back";
    if (!heads_are_fit(device, name, heads))
        return;
    check_documents(device, name, documents, S);
    elements(device, name, "qkv", qkv, area(S, qkv_width(heads)));
    elements(device, name, "out", out, area(S, (int64_t)heads.heads * heads.dim));
    elements(device, name, "d_out", d_out, area(S, (int64_t)heads.heads * heads.dim));
    words(device, name, "log_sums", log_sums, area(S, heads.heads));
    elements(device, name, "d_qkv", d_qkv, area(S, qkv_width(heads)));
    ex_counting_holds(device, name, "scratch", scratch, count_attention_scratch(device, S, heads), 1);
    int64_t bytes = S * qkv_width(heads) * (int64_t)ex_type_bytes(device->type);
    apart(device, name, d_qkv, bytes, qkv, bytes);
}

static void count_swiglu(ex_device *device, const void *x, int64_t T, int64_t f, void *out)
{
    elements(device, "swiglu", "x", x, area(T, 2 * f));
    elements(device, "swiglu", "out", out, area(T, f));
}

static void count_swiglu_back(ex_device *device, const void *x, const void *d_out, int64_t T, int64_t f,
                              void *d_x)
{
    elements(device, "swiglu_back", "x", x, area(T, 2 * f));
    elements(device, "swiglu_back", "d_out", d_out, area(T, f));
    elements(device, "swiglu_back", "d_x", d_x, area(T, 2 * f));
}

static void count_add(ex_device *device, void *to, const void *from, int64_t count)
{
    elements(device, "add", "to", to, count);
    elements(device, "add", "from", from, count);
}

static void count_add_bias(ex_device *device, void *x, const void *bias, int64_t T, int64_t width)
{
    elements(device, "add_bias", "x", x, area(T, width));
    elements(device, "add_bias", "bias", bias, width);
}

static void count_bias_back(ex_device *device, const void *d_x, int64_t T, int64_t width, float *grad)
{
    elements(device, "bias_back", "d_x", d_x, area(T, width));
    words(device, "bias_back", "grad", grad, width);
}

/* Looks up the whole and the cut rows of a split or a merge. */
static void check_cut(ex_device *device, const char *operation, const void *whole, const void *cut, int64_t T,
                      ex_heads all, int32_t sp)
{
    int fits = sp > 0 && all.heads > 0 && all.dim > 0 && all.kv_heads >= 0 && all.heads % sp == 0 &&
               (all.kv_heads % sp == 0 || sp % all.kv_heads == 0);
    if (!device->fault.failed && !fits)
        ex_fail(&device->fault, "%s: %s: %d heads and %d key-value heads do not divide among %d ranks",
                device->name, operation, (int)all.heads, (int)all.kv_heads, (int)sp);
    if (device->fault.failed)
        return;
    int64_t kv = all.kv_heads && all.kv_heads < sp ? 1 : all.kv_heads / sp;
    elements(device, operation, "the whole", whole, area(T, qkv_width(all)));
    elements(device, operation, "the parts", cut, area(T * sp, (all.heads / sp + 2 * kv) * all.dim));
}

static void count_split(ex_device *device, const void *x, int64_t T, ex_heads all, int32_t sp, void *out)
{
    check_cut(device, "split", x, out, T, all, sp);
}

static void count_merge(ex_device *device, const void *x, int64_t T, ex_heads all, int32_t sp, void *out)
{
    check_cut(device, "merge", out, x, T, all, sp);
}

static void count_cross_entropy(ex_device *device, void *logits, const int32_t *targets, const float *weights,
                                int64_t T, int64_t vocab, double *loss)
{
    elements(device, "cross_entropy", "logits", logits, area(T, vocab));
    words(device, "cross_entropy", "targets", targets, T);
    words(device, "cross_entropy", "weights", weights, T);
    ex_counting_holds(device, "cross_entropy", "loss", loss, 1, 8);
}

static void count_adam(ex_device *device, int64_t count, const float *grad, float *master, float *mean,
                       float *variance, void *weights, ex_adam options)
{
    words(device, "adam", "grad", grad, count);
    words(device, "adam", "master", master, count);
    words(device, "adam", "mean", mean, count);
    words(device, "adam", "variance", variance, count);
    elements(device, "adam", "weights", weights, count);
    if (!device->fault.failed && !(options.correction1 > 0.0f && options.correction2 > 0.0f))
        ex_fail(&device->fault, "%s: adam: corrections %g and %g; both are above 0", device->name,
                (double)options.correction1, (double)options.correction2);
}

static void count_cast(ex_device *device, const float *from, void *to, int64_t count)
{
    words(device, "cast", "from", from, count);
    elements(device, "cast", "to", to, count);
}

static void count_sum_squares(ex_device *device, const float *x, int64_t count, double *sum)
{
    words(device, "sum_squares", "x", x, count);
    ex_counting_holds(device, "sum_squares", "sum", sum, 1, 8);
}

void ex_counting_operations(ex_device_ops *ops)
{
    ops->gemm = count_gemm;
    ops->embed = count_embed;
    ops->embed_back = count_embed_back;
    ops->norm = count_norm;
    ops->norm_back = count_norm_back;
    ops->rotary = count_rotary;
    ops->attention = count_attention;
    ops->attention_scratch = count_attention_scratch;
    ops->attention_back = count_attention_back;
    ops->swiglu = count_swiglu;
    ops->swiglu_back = count_swiglu_back;
    ops->add = count_add;
    ops->add_bias = count_add_bias;
    ops->bias_back = count_bias_back;
    ops->split = count_split;
    ops->merge = count_merge;
    ops->cross_entropy = count_cross_entropy;
    ops->adam = count_adam;
    ops->cast = count_cast;
    ops->sum_squares = count_sum_squares;
}
