/* The numbers of hbp__tight_pack that no paper or proof fixes: packs over the bound for time, which
 * bench_packs shows (benchmarks/README.md); "chosen" where no benchmark set one. Work is counted, never
 * timed. */
#ifndef HBP_SOLVE_TIGHT_TUNING_H
#define HBP_SOLVE_TIGHT_TUNING_H

#include <stdint.h>

/* Operations after which effort 1 begins no other try, which each effort more doubles. bench_packs. */
#define HBP__TIGHT_WORK (INT64_C(1) << 31)
/* The most operations of one try, of all packs and of some; and how many without a pack won end the search.
 * None hangs on the effort: what a lower effort tries a higher one tries as well, and ends with no more
 * packs. Chosen. */
#define HBP__TIGHT_TRY_WORK    HBP__TIGHT_WORK
#define HBP__TIGHT_REPAIR_WORK (HBP__TIGHT_WORK / 4)
#define HBP__TIGHT_IDLE_WORK   (4 * HBP__TIGHT_WORK)
/* The same of a brief search, which ends as well with a try that wins less than one pack in so many: the
 * first tries win nearly all. bench_packs. */
#define HBP__TIGHT_BRIEF_WORK  (HBP__TIGHT_WORK / 16)
#define HBP__TIGHT_BRIEF_WORTH 500
/* Rows of a relaxation, at first and at their finest. bench_packs. */
#define HBP__TIGHT_FIRST_ROWS 128
#define HBP__TIGHT_MOST_ROWS  1024
/* Packs below which a repair is not worth its while; passes with the finest rows that may win nothing.
 * Chosen. */
#define HBP__TIGHT_FEW_PACKS 8
#define HBP__TIGHT_PATIENCE  3
/* Patterns taken from a round of pricing, at most; the weight of prices in proportion to size, at first.
 * Chosen. */
#define HBP__TIGHT_BATCH 128
#define HBP__TIGHT_FAIR  .8

/* Under a cap on weight. A million documents, 200 in a pack at most: 537 packs over the bound of 29,902
 * without, 2 with. */

/* Of every light class one item in so many stays loose, try after try; 0: none. Chosen. */
#define HBP__GLUE_LOOSE 64, 16, 0
/* Light classes that a composite draws from; partners below this share of a pack come first. Chosen. */
#define HBP__GLUE_REACH 64
#define HBP__GLUE_SMALL 8
/* Halvings of the packs that items are spread over; the share of the packs that one must be able to win; the
 * share of the room that closes gaps. Chosen. */
#define HBP__LEVEL_HALVINGS 6
#define HBP__LEVEL_CLOSE    4096
#define HBP__LEVEL_LAST     16

#endif
