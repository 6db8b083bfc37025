/* Attention of packed documents on a GPU: the three operations of device.h that are about it.
 *
 * bfloat16 with a head dimension of at most 128 that is a multiple of 8, on 16-byte aligned rows, goes to the
 * tensor cores (attention_forward.cu, attention_back.cu); everything else up to 256 dimensions goes to plain
 * kernels (attention_plain.cu). docs/explanation/attention-kernel.md explains both. */
#ifndef EX_DEVICE_CUDA_ATTENTION_CUH
#define EX_DEVICE_CUDA_ATTENTION_CUH

#include "device/device.h"

void ex_cuda_attention(ex_device *device, const void *qkv, const ex_documents *documents, int64_t S,
                       ex_heads heads, void *out, float *log_sums);
void ex_cuda_attention_back(ex_device *device, const void *qkv, const void *out, const void *d_out,
                            const float *log_sums, const ex_documents *documents, int64_t S, ex_heads heads,
                            void *d_qkv, void *scratch);
int64_t ex_cuda_attention_scratch(ex_device *device, int64_t S, ex_heads heads);

#endif
