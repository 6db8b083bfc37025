/* The classic packers on a histogram. Each equals its item-by-item form, at a cost that depends on the number
 * of classes and of different packs, not of items. */
#ifndef HBP_SOLVE_HISTOGRAM_PACK_H
#define HBP_SOLVE_HISTOGRAM_PACK_H

#include "solve/packing/packer.h"

/* Packs the classes from the largest down by `rule`: best fit decreasing, first fit decreasing (Johnson
 * 1974), or worst fit decreasing, which is shortest-pack-first histogram packing (Krell et al. 2021) with its
 * items placed one at a time. Appends to `patterns`. HBP_E_INFEASIBLE when an item fits no pack. O((classes +
 * state changes) log packs). */
hbp_status hbp__histogram_pack(hbp_context *context, const hbp__classes *classes, hbp__room room,
                               hbp__pack_rule rule, hbp__patterns *patterns);

/* HBP_E_INFEASIBLE when an item fits no pack, naming its size or weight. */
hbp_status hbp__classes_fit(hbp_context *context, const hbp__classes *classes, hbp__room room);

#endif
