/* Items spread over a number of packs set beforehand. */
#ifndef HBP_SOLVE_LEVEL_PACK_H
#define HBP_SOLVE_LEVEL_PACK_H

#include "solve/packing/packer.h"

/* Packs the classes from the largest down onto `packs` packs: worst fit, which gives every pack its share of
 * large and small items, and once all but 1 / `last` of the room is taken best fit, which closes gaps (0:
 * worst fit to the end). What fits none of them opens packs of its own. Appends to `patterns`. All items must
 * fit a pack. O((items + packs) log packs). */
hbp_status hbp__level_pack(hbp_context *context, const hbp__classes *classes, hbp__room room, int64_t packs,
                           int64_t last, hbp__patterns *patterns);

#endif
