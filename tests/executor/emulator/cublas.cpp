#include "cublas_v2.h"

#include <algorithm>
#include <vector>

#include "cuda_bf16.h"
#include "state.h"

struct ex_emulated_cublas {
    cudaStream_t stream = nullptr;
};

namespace
{

using namespace ex_emulator;

struct Matrix {
    const void *data;
    cudaDataType type;
    std::int64_t leading;
};

bool supported(cudaDataType type)
{
    return type == CUDA_R_32F || type == CUDA_R_16BF;
}

std::size_t element_bytes(cudaDataType type)
{
    return type == CUDA_R_16BF ? 2 : 4;
}

float element(const Matrix &matrix, std::int64_t row, std::int64_t column)
{
    const std::int64_t at = row + column * matrix.leading;
    return matrix.type == CUDA_R_16BF
               ? static_cast<float>(static_cast<const __nv_bfloat16 *>(matrix.data)[at])
               : static_cast<const float *>(matrix.data)[at];
}

/* op(matrix) [rows, columns], rows first. */
std::vector<float> gather(const Matrix &matrix, bool transpose, int rows, int columns)
{
    std::vector<float> out(static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns));
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++)
            out[static_cast<std::size_t>(i) * static_cast<std::size_t>(columns) +
                static_cast<std::size_t>(j)] = transpose ? element(matrix, j, i) : element(matrix, i, j);
    return out;
}

bool lies_on_device(const Matrix &matrix, std::int64_t rows, std::int64_t columns)
{
    const std::int64_t count = (columns - 1) * matrix.leading + rows;
    return on_device(matrix.data, static_cast<std::size_t>(count) * element_bytes(matrix.type));
}

struct Gemm {
    bool trans_a, trans_b;
    int m, n, k;
    float alpha, beta;
    Matrix a, b;
    void *c;
    cudaDataType type_c;
    std::int64_t ldc;
};

void multiply(const Gemm &g)
{
    if (!lies_on_device(g.a, g.trans_a ? g.k : g.m, g.trans_a ? g.m : g.k) ||
        !lies_on_device(g.b, g.trans_b ? g.n : g.k, g.trans_b ? g.k : g.n) ||
        !lies_on_device({g.c, g.type_c, g.ldc}, g.m, g.n))
        return fault("cublasGemmEx: a matrix of a product m %d, n %d, k %d ends outside of its allocation",
                     g.m, g.n, g.k);
    const std::vector<float> a = gather(g.a, g.trans_a, g.m, g.k), b = gather(g.b, g.trans_b, g.k, g.n);
    const std::size_t n = static_cast<std::size_t>(g.n), k = static_cast<std::size_t>(g.k);
    std::vector<float> row(n);
    for (std::size_t i = 0; i < static_cast<std::size_t>(g.m); i++) {
        std::fill(row.begin(), row.end(), 0.0f);
        for (std::size_t p = 0; p < k; p++)
            for (std::size_t j = 0; j < n; j++)
                row[j] += a[i * k + p] * b[p * n + j];
        for (std::size_t j = 0; j < n; j++) {
            const std::size_t at = i + j * static_cast<std::size_t>(g.ldc);
            if (g.type_c == CUDA_R_16BF) {
                __nv_bfloat16 *const c = static_cast<__nv_bfloat16 *>(g.c) + at;
                *c = __nv_bfloat16(g.alpha * row[j] + (g.beta == 0 ? 0.0f : g.beta * static_cast<float>(*c)));
            } else {
                float *const c = static_cast<float *>(g.c) + at;
                *c = g.alpha * row[j] + (g.beta == 0 ? 0.0f : g.beta * *c);
            }
        }
    }
}

} // namespace

cublasStatus_t cublasCreate(cublasHandle_t *handle)
{
    const Guard guard(lock());
    if (made_to_fail())
        return CUBLAS_STATUS_NOT_INITIALIZED;
    *handle = new ex_emulated_cublas;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy(cublasHandle_t handle)
{
    delete handle;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream)
{
    const Guard guard(lock());
    if (made_to_fail())
        return CUBLAS_STATUS_NOT_INITIALIZED;
    handle->stream = stream;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace(cublasHandle_t, void *workspace, std::size_t bytes)
{
    const Guard guard(lock());
    if (made_to_fail() || !on_device(workspace, bytes) || reinterpret_cast<std::uintptr_t>(workspace) % 256)
        return CUBLAS_STATUS_INVALID_VALUE;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t)
{
    const Guard guard(lock());
    return made_to_fail() ? CUBLAS_STATUS_NOT_INITIALIZED : CUBLAS_STATUS_SUCCESS;
}

const char *cublasGetStatusString(cublasStatus_t status)
{
    switch (status) {
    case CUBLAS_STATUS_SUCCESS:
        return "success";
    case CUBLAS_STATUS_NOT_INITIALIZED:
        return "the library was not initialized";
    case CUBLAS_STATUS_INVALID_VALUE:
        return "an unsupported value or parameter was passed to the function";
    case CUBLAS_STATUS_EXECUTION_FAILED:
        return "the function failed to launch on the GPU";
    case CUBLAS_STATUS_NOT_SUPPORTED:
        return "the functionality requested is not supported";
    }
    return "unknown";
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m,
                            int n, int k, const void *alpha, const void *a, cudaDataType type_a, int lda,
                            const void *b, cudaDataType type_b, int ldb, const void *beta, void *c,
                            cudaDataType type_c, int ldc, cublasComputeType_t compute, cublasGemmAlgo_t)
{
    const Guard guard(lock());
    if (made_to_fail())
        return CUBLAS_STATUS_EXECUTION_FAILED;
    const Gemm g = {op_a == CUBLAS_OP_T,
                    op_b == CUBLAS_OP_T,
                    m,
                    n,
                    k,
                    *static_cast<const float *>(alpha),
                    *static_cast<const float *>(beta),
                    {a, type_a, lda},
                    {b, type_b, ldb},
                    c,
                    type_c,
                    ldc};
    if (m < 0 || n < 0 || k < 0 || lda < (g.trans_a ? k : m) || ldb < (g.trans_b ? n : k) || ldc < m)
        return CUBLAS_STATUS_INVALID_VALUE;
    /* The combinations of the table at cublasGemmEx: fp32 arithmetic, equal inputs, results as they or fp32.
     */
    if (type_a != type_b || !supported(type_a) || (type_c != CUDA_R_32F && type_c != type_a) ||
        (compute != CUBLAS_COMPUTE_32F && compute != CUBLAS_COMPUTE_32F_PEDANTIC))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (m && n && k)
        give(handle->stream, [g]() { multiply(g); });
    return CUBLAS_STATUS_SUCCESS;
}
