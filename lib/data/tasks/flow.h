/* What moves when an output goes from one set of ranks to another, and what ranks hold. One piece for whoever
 * places slices, runs them or checks them. */
#ifndef HBP_DATA_FLOW_H
#define HBP_DATA_FLOW_H

#include <stdint.h>

#include "data/graph/meta_graph.h"

/* bytes x part / whole rounded up, for 0 <= part <= whole < 2^62, whole > 0. O(1). */
int64_t hbp__share_up(int64_t bytes, int64_t part, int64_t whole);

/* Bytes of one flow, one way. */
typedef struct hbp__flow {
    int64_t moved; /* leave their GPU: bytes (1 - |A and B| / max(|A|, |B|)) */
    int64_t
        crossing; /* leave their domain: bytes (1 - sum over domains i of min(|A_i| / |A|, |B_i| / |B|)) */
} hbp__flow;

/* Of `bytes` bytes, evenly spread over ranks `from` [froms], needed evenly on `to` [tos]; both ascending.
 * Shards are laid out as suits best. O(froms + tos). */
hbp__flow hbp__flow_between(const int32_t *from, int32_t froms, const int32_t *to, int32_t tos,
                            int32_t domain_gpus, int64_t bytes);

/* Bytes that rank-independent parts of operator `o` take on each of n GPUs: its activations' share. Rounded
 * up. */
int64_t hbp__operator_activation(const hbp__operator *o, int32_t n);

/* Bytes of its states on each of n GPUs, rounded up; on a rank that runs several operators with the same
 * weights the largest counts, once. */
int64_t hbp__operator_states(const hbp__operator *o, int32_t n);

#endif
