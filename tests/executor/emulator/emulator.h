/* Runs CUDA kernels on the processor. The headers of this folder are named as CUDA's; a .cu file that
 * launches by EX_LAUNCH and takes its shared memory by EX_SHARED and EX_SHARED_ARRAY (device/cuda/launch.cuh)
 * compiles as C++ with this folder first in the include path.
 *
 * Every thread of a block is a fiber, blocks run one after another, and a fiber runs until it meets a barrier
 * or an operation of its warp. What is given to a stream runs when somebody waits for the stream, so that
 * work which nobody waited for is not there yet. Found are: a barrier or warp operation that not all threads
 * reach, shared memory read before it is written (it begins as NaN, as cudaMalloc's does), launches above the
 * limits, copies outside of allocations; under AddressSanitizer accesses outside of shared arrays and
 * allocations; and races between barriers, which give different results in different orders of threads. */
#ifndef EX_EMULATOR_H
#define EX_EMULATOR_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ex_emulator_order {
    EX_EMULATOR_FORWARD = 0, /* warps in step */
    EX_EMULATOR_REVERSE = 1, /* a warp goes as far as it can before the next one moves */
    EX_EMULATOR_SHUFFLED = 2 /* now one, now the other, from a seed */
} ex_emulator_order;

/* The order in which threads and blocks run from now on. */
void ex_emulator_set_order(ex_emulator_order order, uint64_t seed);

/* Bytes of the emulated GPU (1 GiB at first). */
void ex_emulator_set_memory(int64_t bytes);

/* The n-th call of the runtime or of cuBLAS from now on that can fail does so; 0: none does. */
void ex_emulator_fail_call(int64_t n);

/* What went wrong in a kernel or a copy since the last clear: one line; "" when nothing did. */
const char *ex_emulator_error(void);
void ex_emulator_clear(void);

/* Bytes and allocations that cudaMalloc gave and cudaFree has not taken. */
int64_t ex_emulator_allocated(void);

#ifdef __cplusplus
}
#endif

#endif
