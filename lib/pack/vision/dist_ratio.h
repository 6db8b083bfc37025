/* How unevenly the ranks of a micro-batch are loaded when packs are read in the order that they stand in. */
#ifndef HBP_PACK_DIST_RATIO_H
#define HBP_PACK_DIST_RATIO_H

#include <stdint.h>

/* OmniBal's DistRatio (section 3.2), the mean over micro-batches of sum over ranks (max - own) / (max ranks),
 * of load [packs], as their samplers deal packs out: rank r has the r-th of `ranks` stretches of equal
 * length, and micro-batch k consists of the k-th pack of each; the packs % ranks last packs belong to none.
 * (They also visit the micro-batches in a random order, which leaves the mean as it is.) 0 when there are
 * fewer packs than ranks; a micro-batch without load counts as even. O(packs). */
double hbp__dist_ratio(const int64_t *load, int64_t packs, int64_t ranks);

#endif
