/* Loops compiled twice: for any processor of the architecture, and for vectors twice as long, where the
 * compiler can ask a running processor for them. Results are the same: the second has no fused operations. */
#ifndef HBP_BASE_WIDE_H
#define HBP_BASE_WIDE_H

/* Defined by the build where the compiler and its runtime library can. */
#ifdef HBP_HAS_AVX2_CHOICE
#define HBP__WIDE       __attribute__((target("avx2")))
#define hbp__has_wide() __builtin_cpu_supports("avx2")
#else
#define HBP__WIDE
#define hbp__has_wide() 0
#endif

#endif
