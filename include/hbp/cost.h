/* The cost model: (model, machine, measurements) -> nanoseconds and bytes. Immutable once made; shareable.
 *
 * For a pack of S tokens and Q = sum of squared document lengths on an SP group of d ranks that recomputes c
 * of L layers:
 *
 *   T = (a1 S (1 + r1 c/L) + a2 Q (1 + r2 c/L)) / d + (l_d + v_d S)(1 + r3 c/L) + B          [ns]
 *   M = static + S/d (act (L - c) + kept c + (c > 0) work + logits + (d > 1) buffer)        [bytes]
 *
 * A cost may charge a pack's vision units, too: av V (1 + rv c/L) / d more time, V/d vision_bytes more
 * memory. Results are rounded to integers, so that plans compare integers. */
#ifndef HBP_COST_H
#define HBP_COST_H

#include <stdint.h>

#include "hbp/context.h"
#include "hbp/machine.h"
#include "hbp/model.h"

/* How weights, gradients and optimiser states are sharded (ZeRO). 0 is the default, stage 3. */
enum { HBP_ZERO_DEFAULT = 0, HBP_ZERO_1 = 1, HBP_ZERO_2 = 2, HBP_ZERO_3 = 3, HBP_ZERO_NONE = 4 };

/* The most GPUs of a cost. */
#define HBP_MAX_RANKS 262144

HBP_BEGIN_DECLS

typedef struct hbp_cost hbp_cost;

typedef struct hbp_cost_options {
    uint32_t struct_size;
    int32_t zero_stage;          /* HBP_ZERO_* */
    int32_t fused_cross_entropy; /* nonzero: logits are never held whole */
    int32_t max_sp;              /* allow no degree above it; 0: the model's and machine's own limit */
    double dp_overlap;     /* share of ZeRO traffic hidden behind compute, 0..1; 0: none, until measured */
    double sp_overlap;     /* share of all-to-all hidden, 0..1 */
    int64_t reserve_bytes; /* kept free on each GPU (CUDA context, NCCL, fragmentation); 0: 4 GiB; -1: none */
    int64_t pack_overhead_ns; /* launch and host time of a micro-batch, added to B */
    int32_t shard_ranks;      /* consecutive ranks that ZeRO shards over, replicas outside (HSDP); 0: all */
    int32_t lockstep_ranks;   /* as in hbp_cost_terms; 0: shard_ranks under ZeRO-3, else all. With fewer than
                                 all, ZeRO-2 accumulates gradients and reduces them once a step, as ZeRO-1 */
    int32_t uneven_micro_batches; /* as in hbp_cost_terms */
    int32_t reserved;
} hbp_cost_options;

HBP_API void hbp_cost_options_init(hbp_cost_options *options, uint32_t struct_size);

/* Derives every term from the shape of the model and the fields of the machine (docs: cost model). Returns
 * HBP_E_INVALID naming an unknown or senseless field (0 GPUs, lockstep sets that ZeRO-3's shards cross),
 * HBP_E_INFEASIBLE when the model's states alone do not fit. Keeps neither argument. Thread: one per context.
 */
HBP_API hbp_status hbp_cost_create(hbp_context *context, const hbp_model *model, const hbp_machine *machine,
                                   const hbp_cost_options *options, hbp_cost **out);

/* The terms themselves, for a trainer that knows them and to read them back. Tables have `degrees` rows. */
typedef struct hbp_cost_terms {
    uint32_t struct_size;
    int32_t ranks;               /* N, all GPUs; at most HBP_MAX_RANKS */
    int32_t domain_ranks;        /* consecutive ranks on fast links; a degree that fits stays inside; 0: N */
    int32_t layers;              /* L, layers that can be recomputed */
    double ns_per_token;         /* a1: forward and backward of one token on one GPU */
    double ns_per_token_squared; /* a2 */
    double recompute_linear;     /* r1: share of a1 that recomputing all layers adds */
    double recompute_attention;  /* r2 */
    double recompute_communication; /* r3 */
    double pack_ns;                 /* B, paid once a micro-batch */
    double step_ns;                 /* paid once a step */
    double static_bytes;            /* per rank: weights, gradients, optimiser, gathered layers */
    double activation_bytes;        /* act, per layer and token */
    double recomputed_bytes;        /* kept, per layer and token */
    double working_bytes;           /* work, per token, of the one layer in recomputation */
    double logits_bytes;            /* per token */
    double sp_buffer_bytes;         /* per token, all-to-all buffers */
    int64_t limit_bytes;            /* HBM less the reserve */
    int32_t degrees;                /* rows of the three tables below, ascending in degree, first is 1 */
    const int32_t *degree;          /* [degrees] allowed SP degrees */
    const double *sp_latency_ns;    /* [degrees] l_d */
    const double *sp_ns_per_token;  /* [degrees] v_d, per token of the pack */
    double ns_per_vision;           /* av: forward and backward of one vision unit on one GPU; 0: free */
    double recompute_vision;        /* rv: share of av that recomputing all layers adds */
    double vision_bytes;            /* activations of one vision unit */
    int32_t lockstep_ranks;         /* M, consecutive ranks that wait for one another in every micro-batch;
                                       0: N. 1: the ranks of each pack alone (docs: lockstep) */
    int32_t uneven_micro_batches;   /* nonzero: ranks skip a micro-batch in which their lockstep set has no
                                       samples, at no cost; 0: they run a dummy */
} hbp_cost_terms;

HBP_API void hbp_cost_terms_init(hbp_cost_terms *terms, uint32_t struct_size);

/* Makes a cost from given terms; tables are copied. HBP_E_INVALID names a negative or non-finite term, a
 * degree out of order or one that does not divide the ranks. */
HBP_API hbp_status hbp_cost_create_terms(hbp_context *context, const hbp_cost_terms *terms, hbp_cost **out);

/* Copies the terms out; the tables stay owned by the cost. Thread: shareable. */
HBP_API hbp_status hbp_cost_get_terms(hbp_context *context, const hbp_cost *cost, hbp_cost_terms *terms);

/* Where a term (a field name of hbp_cost_terms) came from: "analysis", "given", "fit of 120 packs"; NULL for
 * no such term. Owned by the cost. Thread: shareable. */
HBP_API const char *hbp_cost_get_source(const hbp_cost *cost, const char *term);

/* What a trainer measured: columns of `count` packs. peak_bytes may be NULL. */
typedef struct hbp_measurements {
    uint32_t struct_size;
    int64_t count;
    const int32_t *sp;
    const int32_t *recompute;
    const int64_t *tokens;
    const int64_t *sum_squares;
    const int64_t *time_ns;
    const int64_t *peak_bytes;
} hbp_measurements;

/* How well a fit explains what it was given; relative errors are |predicted - measured| / measured. */
typedef struct hbp_fit_report {
    uint32_t struct_size;
    int32_t terms_fitted; /* terms taken from the measurements; the others keep the prior's value */
    double median_time_error;
    double p95_time_error;
    double max_time_error;
    double median_bytes_error; /* 0 without peak_bytes */
    double max_bytes_error;
    double prior_median_time_error; /* of the prior on the same packs */
} hbp_fit_report;

/* Fits a1, a2, B and each measured degree's v_d, and with peak_bytes static, act and, where the numbers of
 * recomputed layers differ, kept: non-negative regression on relative errors in which a pack that took three
 * times as long as its like hardly matters (Huber). B and v_d keep the prior's proportion to a1, static and
 * kept to act, where the packs cannot tell them from it (all of one length, all on one degree); r1, r2, l_d,
 * work, logits and buffer are fitted where the packs show that the prior's are wrong. All else is the
 * prior's; the sources of the result say which is which. Returns HBP_E_INFEASIBLE with two terms' names when
 * the measurements cannot tell them apart (a1 and a2 when every document has one length, any with fewer packs
 * than terms), HBP_E_INVALID for a row that makes no sense, HBP_E_CANCELLED. `report` may be NULL. O(count).
 * Thread: one per context. */
HBP_API hbp_status hbp_cost_fit(hbp_context *context, const hbp_cost *prior,
                                const hbp_measurements *measurements, hbp_cost **out, hbp_fit_report *report);

HBP_API void hbp_cost_free(hbp_cost *cost);

/* Predicted time in ns and peak bytes per rank of one pack; -1 when `sp` is not an allowed degree or
 * `recompute` is outside [0, layers]. Thread: shareable. */
HBP_API int64_t hbp_cost_predict_pack_ns(const hbp_cost *cost, int32_t sp, int32_t recompute, int64_t tokens,
                                         double sum_squares);
HBP_API int64_t hbp_cost_predict_pack_bytes(const hbp_cost *cost, int32_t sp, int32_t recompute,
                                            int64_t tokens);

/* The same for a pack that holds `vision` vision units as well; -1, too, for a negative number. */
HBP_API int64_t hbp_cost_predict_vision_pack_ns(const hbp_cost *cost, int32_t sp, int32_t recompute,
                                                int64_t tokens, double sum_squares, int64_t vision);
HBP_API int64_t hbp_cost_predict_vision_pack_bytes(const hbp_cost *cost, int32_t sp, int32_t recompute,
                                                   int64_t tokens, int64_t vision);

/* The most tokens that a pack on `sp` ranks with `recompute` layers recomputed may hold, at most
 * HBP_MAX_LENGTH; 0 when none fits. */
HBP_API int64_t hbp_cost_predict_capacity(const hbp_cost *cost, int32_t sp, int32_t recompute);

/* The fewest layers to recompute so that a pack of `tokens` fits on `sp` ranks (HBP, Algorithm 4), -1 when
 * even all layers do not suffice or the degree is not allowed. Thread: shareable. */
HBP_API int32_t hbp_cost_predict_recompute(const hbp_cost *cost, int32_t sp, int64_t tokens);

HBP_END_DECLS

#endif
