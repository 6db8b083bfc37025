/* Attention on tensor cores: bf16, heads of at most 128 dimensions in multiples of 8, rows that begin at
 * multiples of 16 bytes. Arguments as those of the plain kernels. */
#ifndef EX_DEVICE_CUDA_ATTENTION_TENSOR_CUH
#define EX_DEVICE_CUDA_ATTENTION_TENSOR_CUH

#include "device/cuda/attention_work.cuh"

namespace ex_attention
{

void tensor_forward(ex_device *device, const void *qkv, const ex_documents *documents, const shape &sizes,
                    void *out, float *log_sums);
void tensor_back(ex_device *device, const void *qkv, const void *d_out, const float *log_sums,
                 const float *delta, const ex_documents *documents, const shape &sizes, void *d_qkv);

} // namespace ex_attention

#endif
