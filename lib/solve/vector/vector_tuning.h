/* The numbers of two-dimensional packing that no proof fixes: packs over the bound for time, which bench_isf
 * shows, and how unbalanced packs are, which bench_alike shows (benchmarks/README.md); "chosen" where no
 * benchmark set one. Work is counted, never timed. */
#ifndef HBP_SOLVE_VECTOR_TUNING_H
#define HBP_SOLVE_VECTOR_TUNING_H

#include <stdint.h>

/* Items up to which every method is tried; tries of balanced packings of so few. Chosen. */
#define HBP__VECTOR_FEW_ITEMS 2048
#define HBP__VECTOR_FEW_TRIES 8
/* Of more items, at effort 1: a packing with a share of one in so many more packs than the bound is good
 * enough; one with so many more is near, and best fit decreasing is not tried. bench_isf, < .7 s. */
#define HBP__VECTOR_CLOSE 1024
#define HBP__VECTOR_NEAR  128
/* Packs of fewer items are filled tightly first. Chosen. */
#define HBP__VECTOR_MANY_A_PACK 4
/* A balanced packing begins with a share of 1/(this x items of a pack) more packs than the bound. Chosen. */
#define HBP__VECTOR_EASE 64
/* Rounds of exchanges at effort 1: of packs past a capacity, and in the end. bench_alike. */
#define HBP__VECTOR_MEND_ROUNDS 12
#define HBP__VECTOR_LAST_ROUNDS 8

/* Capacity times values up to which patterns are tried at effort 1, as they take tables of the capacity;
 * comparisons of patterns at effort 1; values up to which one size alone is packed by patterns. Chosen. */
#define HBP__VECTOR_MOST_CELLS   (INT64_C(1) << 24)
#define HBP__VECTOR_MIX_WORK     (INT64_C(1) << 24)
#define HBP__VECTOR_MOST_CLASSES 4096
/* Patterns that are kept apart, each pair of which is compared; sets of items of one that may change hands;
 * passes over all pairs. Chosen. */
#define HBP__MIX_PATTERNS 256
#define HBP__MIX_SETS     160
#define HBP__MIX_PASSES   24

/* Packs of one cell that are looked at for an item, and cells whose packs may or may not fit. Chosen. */
#define HBP__GRID_LOOK  8
#define HBP__GRID_TRIES 6

/* Exchanges: items of a pack that one round looks at, slots without an item at most, buckets that packs are
 * sorted into. bench_alike has what they come to; chosen. */
#define HBP__BALANCE_WINDOW  12
#define HBP__BALANCE_SPARE   4
#define HBP__BALANCE_BUCKETS 4096
/* So many rounds that each bring less than a share of one in so many end the exchanges. Chosen. */
#define HBP__BALANCE_PATIENCE 3
#define HBP__BALANCE_WORTH    32
/* Packs that differ by less, about a two-thousandth of the capacities, squared, are left as they are. Chosen.
 */
#define HBP__BALANCE_ENOUGH (INT64_C(1) << 18)

#endif
