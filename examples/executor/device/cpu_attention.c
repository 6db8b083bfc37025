/* Causal attention in tiles, as FlashAttention (Dao et al. 2022, algorithms 1 and 4; 2023, section 3.1): a
 * tile of scores is a product of EX_CPU_TILE queries with as many keys, row maxima and sums are carried
 * along, and backward computes the probabilities again from the saved logarithms. Tiles above the diagonal
 * are left out. Work: about 2 (forward) and 5 (backward) products of length^2 / 2 * dim for every document
 * and head; memory: tiles, whatever the length. */
#include <inttypes.h>
#include <math.h>

#include "device/cpu_elements.h"

enum { TILE = EX_CPU_TILE };

/* Rows of one head: `at` is row 0's first element, rows are `stride` floats apart. */
typedef struct panel {
    const float *at;
    int64_t stride;
} panel;

/* One head of one document. */
typedef struct head_view {
    ex_type type;
    int64_t first, length; /* tokens */
    int64_t dim;
    int64_t stride;            /* elements of a row of qkv */
    int64_t query, key, value; /* their columns in it */
    int64_t out, out_stride;   /* column and row of out and d_out */
    float scale;
} head_view;

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static head_view view_of(ex_device *device, const ex_documents *documents, int64_t document, ex_heads heads,
                         int64_t head)
{
    int64_t dim = heads.dim, kv = head / (heads.heads / heads.kv_heads);
    return (head_view){.type = device->type,
                       .first = documents->host_borders[document],
                       .length = documents->host_borders[document + 1] - documents->host_borders[document],
                       .dim = dim,
                       .stride = (heads.heads + 2 * (int64_t)heads.kv_heads) * dim,
                       .query = head * dim,
                       .key = (heads.heads + kv) * dim,
                       .value = (heads.heads + heads.kv_heads + kv) * dim,
                       .out = head * dim,
                       .out_stride = heads.heads * dim,
                       .scale = (float)(1.0 / sqrt((double)dim))};
}

/* `rows` rows of a head from token `row` of the document; widened into `buffer` [rows, dim] if need be. */
static panel open_panel(const head_view *view, const void *base, int64_t stride, int64_t column, int64_t row,
                        int64_t rows, float *buffer)
{
    int64_t at = (view->first + row) * stride + column;
    if (view->type == EX_F32)
        return (panel){(const float *)base + at, stride};
    for (int64_t i = 0; i < rows; i++)
        ex_cpu_load(view->type, base, at + i * stride, view->dim, buffer + i * view->dim);
    return (panel){buffer, view->dim};
}

static panel qkv_panel(const head_view *view, const void *qkv, int64_t column, int64_t row, int64_t rows,
                       float *buffer)
{
    return open_panel(view, qkv, view->stride, column, row, rows, buffer);
}

/* The tiles and panels that lie in the device's scratch. */
typedef struct workspace {
    float *scores, *d_scores; /* [TILE, TILE] */
    float *panels[5];         /* [TILE, dim] */
    float *rows;              /* [3 TILE] */
} workspace;

static workspace workspace_of(ex_device *device)
{
    workspace work;
    work.scores = ex_cpu_of(device)->scratch;
    work.d_scores = work.scores + TILE * TILE;
    for (int i = 0; i < 5; i++)
        work.panels[i] = work.d_scores + TILE * TILE + i * TILE * EX_CPU_MOST_DIM;
    work.rows = work.panels[4] + TILE * EX_CPU_MOST_DIM;
    return work;
}

static int attention_fits(ex_device *device, const ex_documents *documents, int64_t S, ex_heads heads)
{
    const int32_t *borders = documents->host_borders;
    if (device->fault.failed)
        return 0;
    if (heads.dim > EX_CPU_MOST_DIM)
        return ex_fail(&device->fault, "%s: heads of %d elements; attention on the CPU holds at most %d",
                       device->name, (int)heads.dim, (int)EX_CPU_MOST_DIM),
               0;
    if (heads.kv_heads < 1 || heads.heads % heads.kv_heads)
        return ex_fail(&device->fault, "%s: %d heads cannot share %d key-value heads", device->name,
                       (int)heads.heads, (int)heads.kv_heads),
               0;
    for (int64_t i = 0; i < documents->count; i++)
        if (borders[i] > borders[i + 1] || borders[i] < 0 || borders[i + 1] > S)
            return ex_fail(&device->fault, "%s: document %" PRId64 " is tokens %d to %d of %" PRId64,
                           device->name, i, (int)borders[i], (int)borders[i + 1], S),
                   0;
    return 1;
}

/* Scores of queries [row, row + rows) with keys [column, column + columns): q k^T / sqrt(dim). */
static void score(const head_view *view, panel q, panel k, int64_t rows, int64_t columns, float *scores)
{
    ex_cpu_sgemm(0, 1, rows, columns, view->dim, view->scale, q.at, q.stride, k.at, k.stride, 0.0f, scores,
                 TILE);
}

/* Takes a tile into the running softmax: scores become exponentials below the new maxima, sums and the
 * output so far are scaled to them. `seen`: keys that row 0 sees; each further row sees one more. */
static void take_tile(const head_view *view, float *scores, int64_t rows, int64_t columns, int64_t seen,
                      float *maxima, float *sums, float *out)
{
    for (int64_t i = 0; i < rows; i++) {
        float *row = scores + i * TILE;
        int64_t n = least(columns, seen + i);
        float most = ex_cpu_largest(row, n, maxima[i]);
        float shrink = ex_cpu_exp(maxima[i] - most);
        sums[i] = sums[i] * shrink + ex_cpu_exponentials(row, row, n, most);
        maxima[i] = most;
        for (int64_t j = n; j < columns; j++)
            row[j] = 0.0f;
        for (int64_t d = 0; d < view->dim; d++)
            out[i * view->dim + d] *= shrink;
    }
}

static void attend(const head_view *view, const workspace *work, const void *qkv, void *out, float *log_sums)
{
    float *maxima = work->rows, *sums = work->rows + TILE, *result = work->panels[0];
    int64_t dim = view->dim;
    for (int64_t row = 0; row < view->length; row += TILE) {
        int64_t rows = least(TILE, view->length - row);
        panel q = qkv_panel(view, qkv, view->query, row, rows, work->panels[1]);
        memset(result, 0, (size_t)(rows * dim) * sizeof *result);
        for (int64_t i = 0; i < rows; i++) {
            maxima[i] = -1e30f; /* below every score, and finite: -inf less -inf is none */
            sums[i] = 0.0f;
        }
        for (int64_t column = 0; column < row + rows; column += TILE) {
            int64_t columns = least(TILE, row + rows - column);
            panel k = qkv_panel(view, qkv, view->key, column, columns, work->panels[2]);
            panel v = qkv_panel(view, qkv, view->value, column, columns, work->panels[3]);
            score(view, q, k, rows, columns, work->scores);
            take_tile(view, work->scores, rows, columns, row - column + 1, maxima, sums, result);
            ex_cpu_sgemm(0, 0, rows, dim, columns, 1.0f, work->scores, TILE, v.at, v.stride, 1.0f, result,
                         dim);
        }
        for (int64_t i = 0; i < rows; i++) {
            int64_t token = view->first + row + i, at = token * view->out_stride + view->out;
            log_sums[token] = maxima[i] + logf(sums[i]);
            float *from = result + i * dim, factor = 1.0f / sums[i];
            float *to = ex_cpu_open_block(view->type, out, at, from);
            for (int64_t d = 0; d < dim; d++)
                to[d] = from[d] * factor;
            ex_cpu_close_block(view->type, out, at, dim, to);
        }
    }
}

/* Tokens that no document holds get zeros. */
static void zero_rest(ex_device *device, const ex_documents *documents, int64_t S, int64_t width, void *to)
{
    int64_t first = documents->count ? documents->host_borders[0] : S;
    int64_t last = documents->count ? documents->host_borders[documents->count] : S;
    size_t row = (size_t)width * ex_type_bytes(device->type);
    memset(to, 0, (size_t)first * row);
    memset(ex_cpu_at(device->type, to, last * width), 0, (size_t)(S - last) * row);
}

void ex_cpu_attention(ex_device *device, const void *qkv, const ex_documents *documents, int64_t S,
                      ex_heads heads, void *out, float *log_sums)
{
    if (!attention_fits(device, documents, S, heads))
        return;
    workspace work = workspace_of(device);
    zero_rest(device, documents, S, (int64_t)heads.heads * heads.dim, out);
    for (int64_t i = 0; i < documents->count; i++) {
        for (int64_t h = 0; h < heads.heads; h++) {
            head_view view = view_of(device, documents, i, heads, h);
            attend(&view, &work, qkv, out, log_sums + h * S);
        }
    }
}

/* delta of algorithm 4: what every probability's gradient is less by, sum of d_out * out. */
static void sum_products(const head_view *view, const void *out, const void *d_out, float *delta)
{
    float out_buffer[EX_CPU_MOST_DIM], d_buffer[EX_CPU_MOST_DIM];
    for (int64_t i = 0; i < view->length; i++) {
        int64_t at = (view->first + i) * view->out_stride + view->out;
        const float *o = ex_cpu_load(view->type, out, at, view->dim, out_buffer);
        const float *d = ex_cpu_load(view->type, d_out, at, view->dim, d_buffer);
        delta[i] = ex_cpu_dot(o, d, view->dim);
    }
}

/* Where the gradients of a head's queries, keys and values are summed: in d_qkv itself when that is fp32. */
typedef struct sums_view {
    float *query, *key, *value; /* of the document's first token */
    int64_t stride;
} sums_view;

/* Scores become probabilities, d_scores (products of d_out and values) the scores' gradients. */
static void differentiate(const head_view *view, float *scores, float *d_scores, int64_t rows,
                          int64_t columns, int64_t seen, const float *log_sums, const float *delta)
{
    for (int64_t i = 0; i < rows; i++) {
        float *p = scores + i * TILE, *d = d_scores + i * TILE;
        int64_t n = seen + i < columns ? seen + i : columns;
        for (int64_t j = 0; j < n; j++) {
            p[j] = ex_cpu_exp(p[j] - log_sums[i]);
            d[j] = p[j] * (d[j] - delta[i]) * view->scale;
        }
        for (int64_t j = n; j < columns; j++)
            p[j] = d[j] = 0.0f;
    }
}

static void attend_back(const head_view *view, const workspace *work, const void *qkv, const void *d_out,
                        const float *log_sums, const float *delta, sums_view sums)
{
    int64_t dim = view->dim;
    for (int64_t column = 0; column < view->length; column += TILE) {
        int64_t columns = least(TILE, view->length - column);
        panel k = qkv_panel(view, qkv, view->key, column, columns, work->panels[0]);
        panel v = qkv_panel(view, qkv, view->value, column, columns, work->panels[1]);
        for (int64_t row = column; row < view->length; row += TILE) {
            int64_t rows = least(TILE, view->length - row);
            panel q = qkv_panel(view, qkv, view->query, row, rows, work->panels[2]);
            panel d = open_panel(view, d_out, view->out_stride, view->out, row, rows, work->panels[3]);
            score(view, q, k, rows, columns, work->scores);
            ex_cpu_sgemm(0, 1, rows, columns, dim, 1.0f, d.at, d.stride, v.at, v.stride, 0.0f, work->d_scores,
                         TILE);
            differentiate(view, work->scores, work->d_scores, rows, columns, row - column + 1,
                          log_sums + view->first + row, delta + row);
            ex_cpu_sgemm(1, 0, columns, dim, rows, 1.0f, work->scores, TILE, d.at, d.stride, 1.0f,
                         sums.value + column * sums.stride, sums.stride);
            ex_cpu_sgemm(1, 0, columns, dim, rows, 1.0f, work->d_scores, TILE, q.at, q.stride, 1.0f,
                         sums.key + column * sums.stride, sums.stride);
            ex_cpu_sgemm(0, 0, rows, dim, columns, 1.0f, work->d_scores, TILE, k.at, k.stride, 1.0f,
                         sums.query + row * sums.stride, sums.stride);
        }
    }
}

int64_t ex_cpu_attention_scratch(ex_device *device, int64_t S, ex_heads heads)
{
    int64_t floats = device->type == EX_F32 ? S : S + 3 * S * heads.dim;
    return floats * (int64_t)sizeof(float);
}

/* Rounds summed columns of a document into d_qkv. */
static void round_sums(const head_view *view, const float *sums, int64_t stride, void *d_qkv, int64_t column)
{
    for (int64_t i = 0; i < view->length; i++)
        ex_cpu_close_block(view->type, d_qkv, (view->first + i) * view->stride + column, view->dim,
                           sums + i * stride);
}

void ex_cpu_attention_back(ex_device *device, const void *qkv, const void *out, const void *d_out,
                           const float *log_sums, const ex_documents *documents, int64_t S, ex_heads heads,
                           void *d_qkv, void *scratch)
{
    if (!attention_fits(device, documents, S, heads))
        return;
    workspace work = workspace_of(device);
    int64_t dim = heads.dim, share = heads.heads / heads.kv_heads;
    float *delta = scratch, *head_sums = delta + S;
    if (device->type == EX_F32)
        memset(d_qkv, 0, (size_t)(S * (heads.heads + 2 * (int64_t)heads.kv_heads) * dim) * sizeof(float));
    else
        zero_rest(device, documents, S, (heads.heads + 2 * (int64_t)heads.kv_heads) * dim, d_qkv);
    for (int64_t i = 0; i < documents->count; i++) {
        for (int64_t h = 0; h < heads.heads; h++) {
            head_view view = view_of(device, documents, i, heads, h);
            sums_view sums = {head_sums, head_sums + dim, head_sums + 2 * dim, 3 * dim};
            if (view.type == EX_F32) {
                float *rows = (float *)d_qkv + view.first * view.stride;
                sums = (sums_view){rows + view.query, rows + view.key, rows + view.value, view.stride};
            } else {
                /* Keys and values go on summing over the queries' heads that share them. */
                size_t columns = (size_t)(h % share ? dim : 3 * dim);
                for (int64_t t = 0; t < view.length; t++)
                    memset(head_sums + t * 3 * dim, 0, columns * sizeof *head_sums);
            }
            sum_products(&view, out, d_out, delta);
            attend_back(&view, &work, qkv, d_out, log_sums + h * S, delta, sums);
            if (view.type == EX_F32)
                continue;
            round_sums(&view, sums.query, sums.stride, d_qkv, view.query);
            if (h % share == share - 1) {
                round_sums(&view, sums.key, sums.stride, d_qkv, view.key);
                round_sums(&view, sums.value, sums.stride, d_qkv, view.value);
            }
        }
    }
}
