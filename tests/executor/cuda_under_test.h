/* What runs the CUDA device in a test: the emulator (no GPU takes part) or, in programs compiled with
 * EX_ON_GPU, the machine's GPU. A GPU has one order of threads, its own; repeated runs take the place of
 * several. What a test asks of the emulator alone (failing calls, work that waits) is left out there. */
#ifndef HBP_TESTS_EXECUTOR_CUDA_UNDER_TEST_H
#define HBP_TESTS_EXECUTOR_CUDA_UNDER_TEST_H

#include "emulator/emulator.h"

#ifdef EX_ON_GPU
#define ex_emulator_set_order(order, seed) ((void)(order), (void)(seed))
#define ex_emulator_error()                ""
#define ex_emulator_allocated()            0
#endif

#endif
