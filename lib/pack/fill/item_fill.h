/* From "which pack holds which item" to packs. */
#ifndef HBP_PACK_ITEM_FILL_H
#define HBP_PACK_ITEM_FILL_H

#include "data/packs/items.h"
#include "data/packs/packs.h"

/* How many samples each item holds, as scratch; *out is NULL when nothing is linked. O(samples). */
hbp_status hbp__items_weights(hbp_context *context, const hbp__items *items, uint32_t **out);

/* HBP_E_INFEASIBLE: item `i` holds more samples than the `max_samples` of a pack. */
hbp_status hbp__items_refuse_linked(hbp_context *context, const hbp__items *items, int64_t i,
                                    int64_t max_samples);

/* HBP_E_INFEASIBLE when an item holds more samples than `max_samples`; `weight` as above. */
hbp_status hbp__items_check_weights(hbp_context *context, const hbp__items *items, const uint32_t *weight,
                                    int64_t max_samples);

/* Packs of the items, pack_of[item] in [0, packs); pack p belongs to group[p], or to group 0 when `group` is
 * NULL. Items of a pack stand in order of size. *out is not measured. O(samples). */
hbp_status hbp__item_fill_name(hbp_context *context, const hbp__items *items, const uint32_t *pack_of,
                               int64_t packs, const int32_t *group, hbp_packs **out);

#endif
