/* The partitions near another one: every inner cut moved by up to a radius. */
#ifndef HBP_PIPELINE_NEAR_H
#define HBP_PIPELINE_NEAR_H

#include <stdint.h>

#include "base/context.h"
#include "pipeline/stages.h"

#define HBP__NEAR_RADIUS 64

/* So many are tried one by one; of more, only those that a recurrence finds are. */
#define HBP__NEAR_TRIED 1000000

/* Fills two lists with those that keep to the limits: by the variance of W_s, and by what is sent over the
 * cuts (OmniBal, section 3.3). Exact up to HBP__NEAR_TRIED of them. Past it the list by variance holds those
 * of the least sum over chunks of squared distance to the anchor's mean W_s / V, which is the variance when
 * neither the mean nor V is other than the anchor's and 1, and with V > 1 those among them that fit. Values
 * of the list by variance are the bits of the variance, which ascend with it; the other's are bytes. */
hbp_status hbp__rank_near(hbp_context *context, const hbp__stages *stages, const int32_t *anchor,
                          int32_t radius, hbp__cut_list *by_variance, hbp__cut_list *by_communication);

#endif
