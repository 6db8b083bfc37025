#include "fiber.h"

#include <cstdint>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define EX_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define EX_ASAN 1
#endif
#endif
#ifdef EX_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#if defined(__x86_64__)
/* void ex_emulator_swap(void **save, void *load): what the System V ABI wants kept goes on the stack. Saving
 * the signal mask as swapcontext does would cost two system calls, and a warp's product is 64 switches. */
asm(R"(
    .text
    .globl ex_emulator_swap
    .type ex_emulator_swap, @function
ex_emulator_swap:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size ex_emulator_swap, .-ex_emulator_swap
)");
extern "C" void ex_emulator_swap(void **save, void *load);
#endif

namespace ex_emulator
{

bool fiber_stack(Fiber &fiber, std::size_t bytes)
{
    const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    void *const memory =
        mmap(nullptr, bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory, page, PROT_NONE) != 0)
        return false;
    fiber.stack = static_cast<char *>(memory) + page;
    fiber.stack_bytes = bytes;
    return true;
}

void fiber_begin(Fiber &fiber, void (*entry)())
{
#ifdef EX_ASAN /* a fiber that was left in its middle leaves poison behind */
    __asan_unpoison_memory_region(fiber.stack, fiber.stack_bytes);
#endif
#if defined(__x86_64__)
    /* Six registers, the entry as the address to return to, and a null one for the entry itself: the ABI
     * wants the stack 8 past a multiple of 16 where a function begins. */
    void **const end = reinterpret_cast<void **>(fiber.stack + fiber.stack_bytes);
    std::memset(end - 8, 0, 8 * sizeof *end);
    end[-2] = reinterpret_cast<void *>(entry);
    fiber.top = end - 8;
#else
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack;
    fiber.context.uc_stack.ss_size = fiber.stack_bytes;
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, entry, 0);
#endif
}

void fiber_switch(Fiber &from, Fiber &to)
{
#ifdef EX_ASAN
    void *fake;
    __sanitizer_start_switch_fiber(&fake, to.stack, to.stack_bytes);
#endif
#if defined(__x86_64__)
    ex_emulator_swap(&from.top, to.top);
#else
    swapcontext(&from.context, &to.context);
#endif
#ifdef EX_ASAN
    __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
}

void fiber_arrived(Fiber &came_from)
{
#ifdef EX_ASAN
    const void *bottom;
    std::size_t bytes;
    __sanitizer_finish_switch_fiber(nullptr, &bottom, &bytes);
    came_from.stack = const_cast<char *>(static_cast<const char *>(bottom));
    came_from.stack_bytes = bytes;
#else
    (void)came_from;
#endif
}

} // namespace ex_emulator
