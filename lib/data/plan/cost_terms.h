/* The lists of a cost's terms: who checks, writes or reads them all goes through these. */
#ifndef HBP_DATA_COST_TERMS_H
#define HBP_DATA_COST_TERMS_H

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
    X(degrees)                                                                                               \
    X(degree)                                                                                                \
    HBP__COST_TABLES(X)

#endif
