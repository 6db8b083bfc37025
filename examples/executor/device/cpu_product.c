/* Matrix products: OpenBLAS where it was found, else an own blocked loop; bfloat16 through fp32. */
#include <inttypes.h>
#ifdef EX_OPENBLAS
#include <cblas.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#endif

#include "device/cpu_elements.h"

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void scale(int64_t m, int64_t n, float beta, float *c, int64_t ldc)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            c[i * ldc + j] = beta == 0.0f ? 0.0f : beta * c[i * ldc + j];
}

/* Blocks of op(b) are copied so that their rows are without gaps; then four rows of c at a time take sums of
 * its rows. */
enum { DEPTH = 64, WIDTH = 256, ROWS = 4 };

static void add_rows(const float *factors, const float *block, int64_t k, int64_t n, float *c)
{
    for (int64_t p = 0; p < k; p++) {
        float factor = factors[p];
        const float *row = block + p * WIDTH;
        for (int64_t j = 0; j < n; j++)
            c[j] += factor * row[j];
    }
}

static void add_four_rows(const float *factors, const float *block, int64_t k, int64_t n, float *c,
                          int64_t ldc)
{
    float *c0 = c, *c1 = c + ldc, *c2 = c + 2 * ldc, *c3 = c + 3 * ldc;
    for (int64_t p = 0; p < k; p++) {
        const float *row = block + p * WIDTH;
        float f0 = factors[p], f1 = factors[DEPTH + p], f2 = factors[2 * DEPTH + p],
              f3 = factors[3 * DEPTH + p];
        for (int64_t j = 0; j < n; j++) {
            float x = row[j];
            c0[j] += f0 * x;
            c1[j] += f1 * x;
            c2[j] += f2 * x;
            c3[j] += f3 * x;
        }
    }
}

void ex_cpu_plain_sgemm(int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, float alpha,
                        const float *a, int64_t lda, const float *b, int64_t ldb, float beta, float *c,
                        int64_t ldc)
{
    float block[DEPTH * WIDTH], factors[ROWS * DEPTH];
    int64_t a_row = trans_a ? 1 : lda, a_column = trans_a ? lda : 1;
    int64_t b_row = trans_b ? 1 : ldb, b_column = trans_b ? ldb : 1;
    if (beta != 1.0f)
        scale(m, n, beta, c, ldc);
    for (int64_t p = 0; p < k; p += DEPTH) {
        int64_t depth = least(DEPTH, k - p);
        for (int64_t j = 0; j < n; j += WIDTH) {
            int64_t width = least(WIDTH, n - j);
            for (int64_t q = 0; q < depth; q++)
                for (int64_t x = 0; x < width; x++)
                    block[q * WIDTH + x] = b[(p + q) * b_row + (j + x) * b_column];
            for (int64_t i = 0; i < m; i += ROWS) {
                int64_t rows = least(ROWS, m - i);
                for (int64_t y = 0; y < rows; y++)
                    for (int64_t q = 0; q < depth; q++)
                        factors[y * DEPTH + q] = alpha * a[(i + y) * a_row + (p + q) * a_column];
                if (rows == ROWS) {
                    add_four_rows(factors, block, depth, width, c + i * ldc + j, ldc);
                    continue;
                }
                for (int64_t y = 0; y < rows; y++)
                    add_rows(factors + y * DEPTH, block, depth, width, c + (i + y) * ldc + j);
            }
        }
    }
}

#ifdef EX_OPENBLAS

/* The number of threads is the process's, so the device opened last decides; ranks that are threads of one
 * process ask for the same. */
void ex_cpu_threads(int32_t threads)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    if (openblas_get_num_threads() != threads)
        openblas_set_num_threads(threads);
    pthread_mutex_unlock(&lock);
}

/* OpenBLAS asks for its buffer, 128 MiB, again and again until there is one; so it is asked for here, where
 * it can be refused. */
int ex_cpu_warm(void)
{
    enum { BUFFER = 136 << 20, SIDE = 160 };
    void *room = malloc(BUFFER);
    float *square = malloc(3 * SIDE * SIDE * sizeof *square);
    int there = room && square;
    free(room);
    if (there) {
        memset(square, 0, 3 * SIDE * SIDE * sizeof *square);
        ex_cpu_sgemm(0, 0, SIDE, SIDE, SIDE, 1, square, SIDE, square + SIDE * SIDE, SIDE, 0,
                     square + 2 * SIDE * SIDE, SIDE);
    }
    free(square);
    return there ? 0 : -1;
}

void ex_cpu_sgemm(int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, float alpha, const float *a,
                  int64_t lda, const float *b, int64_t ldb, float beta, float *c, int64_t ldc)
{
    if (m == 0 || n == 0)
        return;
    if (k == 0) {
        scale(m, n, beta, c, ldc);
        return;
    }
    cblas_sgemm(CblasRowMajor, trans_a ? CblasTrans : CblasNoTrans, trans_b ? CblasTrans : CblasNoTrans,
                (blasint)m, (blasint)n, (blasint)k, alpha, a, (blasint)lda, b, (blasint)ldb, beta, c,
                (blasint)ldc);
}

#else

void ex_cpu_threads(int32_t threads)
{
    (void)threads;
}

int ex_cpu_warm(void)
{
    return 0;
}

void ex_cpu_sgemm(int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, float alpha, const float *a,
                  int64_t lda, const float *b, int64_t ldb, float beta, float *c, int64_t ldc)
{
    ex_cpu_plain_sgemm(trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

#endif

_Static_assert(3 * EX_CPU_PANEL * EX_CPU_PANEL <= EX_CPU_SCRATCH, "the scratch holds three squares");

/* Widens rows x columns elements from (row, column) of a matrix of rows `stride` apart into `to`. */
static void widen(const void *from, int64_t row, int64_t column, int64_t stride, int64_t rows,
                  int64_t columns, float *to)
{
    for (int64_t i = 0; i < rows; i++)
        ex_cpu_load(EX_BF16, from, (row + i) * stride + column, columns, to + i * columns);
}

/* Squares of c are summed in fp32 over the whole depth and rounded once. Widening costs 2 / EX_CPU_PANEL of a
 * conversion for each multiplication. */
static void gemm_bf16(ex_cpu *cpu, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, const void *a,
                      const void *b, float beta, void *c, int c_f32)
{
    const int64_t side = EX_CPU_PANEL, square = side * side;
    float *block_a = cpu->scratch, *block_b = block_a + square, *block_c = block_b + square;
    ex_type type_c = c_f32 ? EX_F32 : EX_BF16;
    for (int64_t i = 0; i < m; i += side) {
        int64_t rows = least(side, m - i);
        for (int64_t j = 0; j < n; j += side) {
            int64_t columns = least(side, n - j);
            for (int64_t y = 0; y < rows && beta != 0.0f; y++) {
                float *sums = block_c + y * columns;
                const float *before = ex_cpu_load(type_c, c, (i + y) * n + j, columns, sums);
                if (before != sums)
                    memcpy(sums, before, (size_t)columns * sizeof *sums);
            }
            for (int64_t p = 0; p < k || p == 0; p += side) {
                int64_t depth = least(side, k - p);
                if (trans_a)
                    widen(a, p, i, m, depth, rows, block_a);
                else
                    widen(a, i, p, k, rows, depth, block_a);
                if (trans_b)
                    widen(b, j, p, k, columns, depth, block_b);
                else
                    widen(b, p, j, n, depth, columns, block_b);
                ex_cpu_sgemm(trans_a, trans_b, rows, columns, depth, 1.0f, block_a, trans_a ? rows : depth,
                             block_b, trans_b ? depth : columns, p ? 1.0f : beta, block_c, columns);
            }
            for (int64_t y = 0; y < rows; y++) {
                const float *sums = block_c + y * columns;
                if (c_f32)
                    memcpy((float *)c + (i + y) * n + j, sums, (size_t)columns * sizeof *sums);
                else
                    ex_cpu_close_block(EX_BF16, c, (i + y) * n + j, columns, sums);
            }
        }
    }
}

void ex_cpu_gemm(ex_device *device, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, const void *a,
                 const void *b, float beta, void *c, int c_f32)
{
    if (device->fault.failed)
        return;
    if (m > INT32_MAX || n > INT32_MAX || k > INT32_MAX) {
        ex_fail(&device->fault,
                "%s: a product of sides %" PRId64 ", %" PRId64 ", %" PRId64 "; a side is at most %d",
                device->name, m, n, k, INT32_MAX);
        return;
    }
    if (device->type == EX_BF16)
        gemm_bf16(ex_cpu_of(device), trans_a, trans_b, m, n, k, a, b, beta, c, c_f32);
    else
        ex_cpu_sgemm(trans_a, trans_b, m, n, k, 1.0f, a, trans_a ? m : k, b, trans_b ? k : n, beta, c, n);
}
