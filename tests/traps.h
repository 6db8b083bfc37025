/* Floating-point exceptions unmasked, as some hosts have them. Include it first. */
#ifndef HBP_TESTS_TRAPS_H
#define HBP_TESTS_TRAPS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* feenableexcept */
#endif
#include <fenv.h>

#define TRAPS (FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW)

/* Where they cannot be unmasked flags tell, though not where: traps_seen. */
static inline void traps_on(void)
{
    feclearexcept(FE_ALL_EXCEPT);
#if defined(__GLIBC__) && defined(__x86_64__)
    feenableexcept(TRAPS);
#endif
}

static inline int traps_seen(void)
{
    return fetestexcept(TRAPS);
}

#endif
