/* What communication costs on a machine: Ulysses all-to-alls and ZeRO's collectives. */
#ifndef HBP_COST_COMMUNICATION_H
#define HBP_COST_COMMUNICATION_H

#include <stdint.h>

#include "base/context.h"
#include "data/machine/machine.h"
#include "data/model/model.h"

/* The GPUs of a machine, as ranks. */
typedef struct hbp__fabric {
    const hbp_machine *machine;
    int32_t ranks;
    int32_t domain; /* consecutive ranks on fast links, divides ranks */
} hbp__fabric;

/* Checks what a cost reads of the machine, and counts its ranks. HBP_E_INVALID names the field. */
hbp_status hbp__cost_read_fabric(hbp_context *context, const hbp_machine *machine, hbp__fabric *fabric);

/* Elements that one layer's all-to-alls (q, k, v, out) carry per token in one pass on SP groups of degree
 * `sp`: k and v heads are repeated up to one per rank when sp > kv. */
double hbp__cost_sp_elements(const hbp_model_fields *model, int32_t sp);

/* Bytes that the all-to-alls of all layers, forward and backward, begin with on a rank, per token of the
 * pack.
 */
double hbp__cost_exchanged_bytes(const hbp_model_fields *model, int32_t sp);

/* l_d and v_d of hbp/cost.h, nothing hidden: 4 all-to-alls a layer forward and 4 backward, bf16. *source is
 * the measurement's, NULL when derived from link speeds. */
void hbp__cost_all_to_all(const hbp__fabric *fabric, const hbp_model_fields *model, int32_t sp,
                          double *latency_ns, double *ns_per_token, const char **source);

/* Time of `calls` collectives (HBP_COLLECTIVE_*, not all-to-all) over all ranks that handle `bytes` bytes in
 * total; ns. */
double hbp__cost_ring_ns(const hbp__fabric *fabric, int32_t collective, double calls, double bytes,
                         const char **source);

#endif
