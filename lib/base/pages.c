/* madvise is no part of POSIX. */
#define _DEFAULT_SOURCE

#include "base/pages.h"

#ifdef __linux__
#include <sys/mman.h>
#endif

#define LARGE_PAGE (UINT64_C(1) << 21)

void hbp__pages_advise(void *block, uint64_t bytes)
{
#ifdef MADV_HUGEPAGE
    if (!block || bytes < 2 * LARGE_PAGE)
        return;
    const uint64_t from = ((uint64_t)(uintptr_t)block + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE;
    const uint64_t end = ((uint64_t)(uintptr_t)block + bytes) / LARGE_PAGE * LARGE_PAGE;
    if (from < end)
        (void)madvise((char *)block + (from - (uint64_t)(uintptr_t)block), (size_t)(end - from),
                      MADV_HUGEPAGE);
#else
    (void)block;
    (void)bytes;
#endif
}
