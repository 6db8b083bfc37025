/* The inside of a cost: its terms, in lists that whoever checks, writes or reads them all goes through, and
 * where each comes from. cost/ makes and evaluates it. */
#ifndef HBP_DATA_COST_H
#define HBP_DATA_COST_H

#include <stdint.h>

#include "base/memory.h"
#include "hbp/cost.h"

/* X(name): doubles, finite and at least 0. */
#define HBP__COST_NUMBERS(X)                                                                                 \
    X(ns_per_token)                                                                                          \
    X(ns_per_token_squared)                                                                                  \
    X(recompute_linear)                                                                                      \
    X(recompute_attention)                                                                                   \
    X(recompute_communication)                                                                               \
    X(pack_ns)                                                                                               \
    X(step_ns)                                                                                               \
    X(static_bytes)                                                                                          \
    X(activation_bytes)                                                                                      \
    X(recomputed_bytes)                                                                                      \
    X(working_bytes)                                                                                         \
    X(logits_bytes)                                                                                          \
    X(sp_buffer_bytes)

/* The same of vision units; absent from plan files whose cost does not charge those. */
#define HBP__COST_VISION_NUMBERS(X)                                                                          \
    X(ns_per_vision)                                                                                         \
    X(recompute_vision)                                                                                      \
    X(vision_bytes)

/* The same of lockstep sets, whole numbers; absent from files of costs under which all ranks are one set. */
#define HBP__COST_LOCKSTEP_NUMBERS(X)                                                                        \
    X(lockstep_ranks)                                                                                        \
    X(uneven_micro_batches)

/* The same of what hides traffic, doubles; absent from files of costs whose time is linear. */
#define HBP__COST_OVERLAP_NUMBERS(X)                                                                         \
    X(traffic_ns)                                                                                            \
    X(compute_overlap)                                                                                       \
    X(least_compute_ns)

/* X(name): whole numbers. */
#define HBP__COST_WHOLE_NUMBERS(X)                                                                           \
    X(ranks)                                                                                                 \
    X(domain_ranks)                                                                                          \
    X(layers)                                                                                                \
    X(limit_bytes)

/* X(name): tables of doubles, a row for each of `degrees` rows of `degree`. */
#define HBP__COST_TABLES(X)                                                                                  \
    X(sp_latency_ns)                                                                                         \
    X(sp_ns_per_token)

#define HBP__COST_TERMS(X)                                                                                   \
    HBP__COST_WHOLE_NUMBERS(X)                                                                               \
    HBP__COST_NUMBERS(X)                                                                                     \
    HBP__COST_VISION_NUMBERS(X)                                                                              \
    HBP__COST_LOCKSTEP_NUMBERS(X)                                                                            \
    HBP__COST_OVERLAP_NUMBERS(X)                                                                             \
    X(degrees)                                                                                               \
    X(degree)                                                                                                \
    HBP__COST_TABLES(X)

/* Every term has a source. */
enum {
#define HBP__COST_INDEX(name) HBP__COST_##name,
    HBP__COST_TERMS(HBP__COST_INDEX)
#undef HBP__COST_INDEX
        HBP__COST_TERM_COUNT
};

#define HBP__COST_SOURCE_BYTES 64
#define HBP__COST_NAME_BYTES   256

/* What a cost was derived from, for saying what would make room: zeros where that is not known. Neither a
 * term nor in files. */
typedef struct hbp__cost_origin {
    double parameters;
    double layer_parameters; /* of one layer */
    int64_t hbm_bytes;
    int64_t reserve_bytes;
    int32_t nodes;
    int32_t gpus_per_node;
    int32_t domain_gpus; /* with as many GPUs as it takes: of 36 GPUs of a gb200-nvl72, 72 */
    int32_t shard_ranks;
    int32_t given_shard_ranks; /* of the options: 0 where more nodes shard further */
    int32_t given_lockstep_ranks;
    int32_t max_sp;
    double peak_ns_per_token; /* of products at the GPU's peak, and of attention by squared token */
    double peak_ns_per_token_squared;
} hbp__cost_origin;

/* Whether compute hides traffic. */
static inline int hbp__cost_hides(const hbp_cost_terms *t)
{
    return t->compute_overlap > 0 && t->traffic_ns > 0;
}

/* Whether a pack's time is not linear in what it holds: its terms then have overlap numbers. */
static inline int hbp__cost_bends(const hbp_cost_terms *t)
{
    return hbp__cost_hides(t) || t->least_compute_ns > 0;
}

struct hbp_cost {
    hbp__memory memory;
    hbp_cost_terms terms; /* its tables point to the three below */
    int32_t *degree;      /* [terms.degrees] */
    double *sp_latency_ns;
    double *sp_ns_per_token;
    int32_t heads; /* 0 when made from terms: then every listed degree is legal */
    int32_t kv_heads;
    int32_t zero_stage;
    int64_t tokens_per_rank; /* the most padded tokens that a planner may put on a rank; 0: what memory holds.
                                Neither a term nor in files: see hbp__cost_capped */
    hbp__cost_origin origin;
    char source[HBP__COST_TERM_COUNT][HBP__COST_SOURCE_BYTES];
    char model_name[HBP__COST_NAME_BYTES]; /* "" where it is not known */
    char machine_name[HBP__COST_NAME_BYTES];
};

#endif
