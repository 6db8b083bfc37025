/* How kernels are launched and take shared memory: by CUDA under nvcc, by the emulator of tests/executor
 * elsewhere (a C++ compiler with tests/executor/emulator first in its include path). */
#ifndef EX_DEVICE_CUDA_LAUNCH_CUH
#define EX_DEVICE_CUDA_LAUNCH_CUH

#include <cuda_runtime.h>

#ifdef __CUDACC__

/* EX_LAUNCH((kernel<float, 4>), grid, block, shared_bytes, stream, arguments...): a template's arguments need
 * the parentheses. A failure is met by cudaGetLastError. */
#define EX_LAUNCH(kernel, grid, block, shared_bytes, stream, ...)                                            \
    (kernel)<<<(grid), (block), (shared_bytes), (stream)>>>(__VA_ARGS__)

/* type *name: the block's dynamic shared memory, aligned to 16 bytes. */
#define EX_SHARED(type, name)                                                                                \
    extern __shared__ __align__(16) unsigned char ex_shared_bytes[];                                         \
    type *const name = reinterpret_cast<type *>(ex_shared_bytes)

/* type name[count] in shared memory, aligned to 16 bytes; count is a constant. */
#define EX_SHARED_ARRAY(type, name, count) __shared__ __align__(16) type name[count]

#else

#define EX_LAUNCH(kernel, grid, block, shared_bytes, stream, ...)                                            \
    ex_emulator::launch_kernel(#kernel, kernel, grid, block, shared_bytes, stream, ##__VA_ARGS__)

#define EX_SHARED(type, name) type *const name = reinterpret_cast<type *>(ex_emulator::shared_dynamic())

#define EX_SHARED_ARRAY(type, name, count)                                                                   \
    static const char name##_key = 0;                                                                        \
    type(&name)[count] =                                                                                     \
        *static_cast<type(*)[count]>(ex_emulator::shared_array(&name##_key, sizeof(type[count]), 16))

#endif

#endif
