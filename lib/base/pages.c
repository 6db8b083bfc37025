/* madvise is no part of POSIX. */
#define _DEFAULT_SOURCE

#include "base/pages.h"

#ifdef __linux__
#include <sys/mman.h>
#endif

#define LARGE_PAGE (UINT64_C(1) << 21)

uint64_t hbp__pages_for(uint64_t bytes)
{
#ifdef MADV_HUGEPAGE
    return bytes < 2 * LARGE_PAGE ? 0 : LARGE_PAGE;
#else
    (void)bytes;
    return 0;
#endif
}

void hbp__pages_advise(void *block, uint64_t bytes)
{
#ifdef MADV_HUGEPAGE
    if (!block || !hbp__pages_for(bytes))
        return;
    const uint64_t begin = (uint64_t)(uintptr_t)block, over = begin % LARGE_PAGE;
    const uint64_t from = over ? begin - over + LARGE_PAGE : begin;
    /* The last one where it is used to half at least, and the block's own: one that begins on a large page
     * was made to end on one. */
    const uint64_t end = (begin + bytes + (over ? 0 : LARGE_PAGE / 2)) / LARGE_PAGE * LARGE_PAGE;
    if (from < end)
        (void)madvise((char *)block + (from - begin), (size_t)(end - from), MADV_HUGEPAGE);
#else
    (void)block;
    (void)bytes;
#endif
}
