/* Attention without tensor cores: fp32 throughout, for every type and head dimension up to 256. */
#ifndef EX_DEVICE_CUDA_ATTENTION_PLAIN_CUH
#define EX_DEVICE_CUDA_ATTENTION_PLAIN_CUH

#include "device/cuda/attention_work.cuh"

namespace ex_attention
{

constexpr int32_t plain_widest = 256;

void plain_forward(ex_device *device, const void *qkv, const ex_documents *documents, const shape &sizes,
                   void *out, float *log_sums);
/* delta [heads, tokens] = sum over a row of out times d_out. */
void plain_back(ex_device *device, const void *qkv, const void *d_out, const float *log_sums,
                const float *delta, const ex_documents *documents, const shape &sizes, void *d_qkv);

} // namespace ex_attention

#endif
