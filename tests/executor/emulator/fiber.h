/* Coroutines on own stacks. */
#ifndef EX_EMULATOR_FIBER_H
#define EX_EMULATOR_FIBER_H

#include <cstddef>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace ex_emulator
{

struct Fiber {
    char *stack = nullptr; /* null: the thread's own */
    std::size_t stack_bytes = 0;
#if defined(__x86_64__)
    void *top = nullptr;
#else
    ucontext_t context;
#endif
};

/* A stack with a page below it that faults. */
bool fiber_stack(Fiber &fiber, std::size_t bytes);
/* The next switch to `fiber` calls entry(), which must not return. */
void fiber_begin(Fiber &fiber, void (*entry)());
void fiber_switch(Fiber &from, Fiber &to);
/* First statement of an entry: tells AddressSanitizer that the switch is over, and learns the bounds of the
 * stack that was left, which is another one when another thread runs kernels. */
void fiber_arrived(Fiber &came_from);

} // namespace ex_emulator

#endif
