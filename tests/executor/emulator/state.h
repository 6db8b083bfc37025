/* Shared by the parts of the emulator. One lock is held through every call and every kernel: virtual ranks
 * may be threads of one process. */
#ifndef EX_EMULATOR_STATE_H
#define EX_EMULATOR_STATE_H

#include <functional>
#include <mutex>

#include "cuda_runtime.h"
#include "emulator.h"

namespace ex_emulator
{

constexpr std::size_t most_shared_bytes = 227 * 1024, most_static_shared_bytes = 48 * 1024;

std::recursive_mutex &lock();
typedef std::lock_guard<std::recursive_mutex> Guard;

/* Keeps the first message, after which nothing runs until ex_emulator_clear. */
void fault(const char *format, ...) __attribute__((format(printf, 1, 2)));
bool faulted();

/* True when the test asked this call to fail. */
bool made_to_fail();

/* The status that cudaGetLastError gives next, and sets as it passes. */
cudaError_t set_last(cudaError_t status);

/* Dynamic shared memory that the kernel may have: cudaFuncSetAttribute raises it above 48 KiB. */
std::size_t shared_limit(const void *kernel);
/* Whether it was called for the kernel: without, static and dynamic shared memory have 48 KiB together. */
bool asked_for_shared(const void *kernel);

/* Runs all blocks now. */
void run(const Launch &launch);

/* Gives work to a stream: it runs when somebody waits for it, at once for the null stream. */
void give(cudaStream_t stream, std::function<void()> work);

/* True when [memory, memory + bytes) lies in one allocation of cudaMalloc. */
bool on_device(const void *memory, std::size_t bytes);

} // namespace ex_emulator

#endif
