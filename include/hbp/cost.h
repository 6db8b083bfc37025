/* The transformer, the machine, and the cost model that both make: (model, machine, measurements) ->
 * nanoseconds and bytes; what a run measured, to fit it to.
 *
 * Stability: stable; terms are added at the ends of structs. */
#ifndef HBP_COST_H
#define HBP_COST_H

#include <stdint.h>

#include "hbp/base.h"

HBP_BEGIN_DECLS

/* ---- Presets ---- */

/* The names that hbp_model_create_preset, hbp_machine_create_preset, hbp_vlm_create_preset,
 * hbp_graph_create_workload and hbp_stack_read know: preset `index`, from 0, of the family "model",
 * "machine", "vlm", "workload", "stack" or "attention" (kernels); NULL past its end, and for no such family.
 * Static text. Thread: any. */
HBP_API const char *hbp_preset_get_name(const char *family, int64_t index);

/* ---- Model ---- */

/* The transformer: a preset, a set of fields, or a Hugging Face config.json. Immutable once made; shareable.
 */

/* Types of feed-forward network. */
enum { HBP_MLP_GATED = 0, HBP_MLP_PLAIN = 1 };

typedef struct hbp_model hbp_model;

/* A decoder-only transformer. Counts are plain counts, sizes are elements (not bytes). Zero means absent or,
 * where named, the default. Below 2^24 sums over a layer cannot overflow unnoticed. */
typedef struct hbp_model_fields {
    uint32_t struct_size;
    int32_t mlp;               /* [HBP_MLP_*] */
    int32_t tied_embeddings;   /* [flag] nonzero: the output projection shares the embedding's parameters */
    int32_t learned_positions; /* [0..2^24] positions with a learned embedding; 0: rotary */
    int32_t layers;            /* [1..2^24] */
    int32_t dense_layers;      /* [0..2^24] with experts: leading layers whose MLP is dense */
    int32_t hidden;            /* [1..2^24] */
    int32_t ffn;               /* [0..2^24] width of a dense MLP */
    int32_t heads;             /* [1..2^24] */
    int32_t kv_heads;          /* [0..2^24] 0: = heads */
    int32_t head_dim;          /* [0..2^24] 0: = hidden / heads */
    int32_t vocab;             /* [1..2^24] */
    int32_t experts;           /* [0..2^24] routed experts a layer; 0: a dense model */
    int32_t experts_active;    /* [0..2^24] routed experts a token takes (top-k) */
    int32_t experts_shared;    /* [0..2^24] experts every token takes */
    int32_t moe_ffn;           /* [0..2^24] width of one expert */
    int32_t
        mla_q_lora; /* [0..2^24] multi-head latent attention (DeepSeek-V2); mla_kv_lora > 0 switches it on */
    int32_t mla_kv_lora;  /* [0..2^24] */
    int32_t mla_nope_dim; /* [0..2^24] */
    int32_t mla_rope_dim; /* [0..2^24] */
    int32_t mla_v_dim;    /* [0..2^24] */
    int32_t qkv_bias;     /* [flag] nonzero: q, k and v projections have a bias (Qwen2.5) */
} hbp_model_fields;

/* Makes a model from fields. Returns HBP_E_INVALID naming the field and its value, HBP_E_NO_MEMORY.
 * Thread: one per context. */
HBP_API hbp_status hbp_model_create(hbp_context *context, const hbp_model_fields *fields, hbp_model **out);

/* Makes what a text describes: a preset, "llama-3.1-8b"; one with fields replaced,
 * "llama-3.1-8b,layers=4,vocab=1024"; or fields alone, "layers=4,hidden=512,...". A model with fields is
 * named "custom"; a preset's head_dim and kv_heads stay where hidden or heads are replaced. HBP_E_INVALID
 * names the text and what is wrong with it, and offers the nearest name of a preset or field. */
HBP_API hbp_status hbp_model_create_preset(hbp_context *context, const char *text, hbp_model **out);

/* Makes a model with the fields of `base` but for those that a text replaces, "layers=4,vocab=1024". */
HBP_API hbp_status hbp_model_create_variant(hbp_context *context, const hbp_model *base, const char *text,
                                            hbp_model **out);

/* Frees the model; NULL is allowed. Thread: any. */
HBP_API void hbp_model_free(hbp_model *model);

/* What follows from the fields. */
typedef struct hbp_model_summary {
    uint32_t struct_size;
    int32_t max_sp;                         /* the largest legal Ulysses degree */
    int64_t parameters;                     /* all of them, embeddings included */
    int64_t active_parameters;              /* that one token meets */
    int64_t matmul_parameters;              /* active, without embeddings, with the output projection: N_mm */
    int64_t activation_bytes;               /* per layer and token, nothing recomputed (mean over layers) */
    int64_t recomputed_bytes;               /* per layer and token, layer recomputed */
    int64_t logits_bytes;                   /* per token, cross-entropy not fused */
    double forward_flops_per_token;         /* 2 N_mm */
    double forward_flops_per_token_squared; /* causal attention, per document: 2 L a d_h */
} hbp_model_summary;

/* The model's name: the preset's, config.json's model_type, or "custom". Owned by the model. Thread:
 * shareable. */
HBP_API const char *hbp_model_get_name(const hbp_model *model);

/* Copies the fields, defaults filled in; then what follows from them. Thread: shareable. */
HBP_API hbp_status hbp_model_get_fields(hbp_context *context, const hbp_model *model,
                                        hbp_model_fields *fields);
HBP_API hbp_status hbp_model_get_summary(hbp_context *context, const hbp_model *model,
                                         hbp_model_summary *summary);

/* 1 when Ulysses sequence parallelism of degree `sp` is legal: heads % sp == 0 and (kv % sp == 0 or sp % kv
 * == 0), else 0 (DeepSpeed-Ulysses; MLA counts as kv = heads). Thread: shareable. */
HBP_API int32_t hbp_model_is_sp_legal(const hbp_model *model, int32_t sp);

/* ---- Machine ---- */

/* The machine: nodes, GPUs, links. A preset, a probe, measurements, or a profile file; every field remembers
 * where it came from. Mutable through apply and set; a cost takes a copy. */

/* Collectives whose speed can be measured. Bandwidth is NCCL's bus bandwidth in bytes/s. */
enum {
    HBP_COLLECTIVE_ALL_TO_ALL = 0,
    HBP_COLLECTIVE_ALL_GATHER = 1,
    HBP_COLLECTIVE_REDUCE_SCATTER = 2,
    HBP_COLLECTIVE_ALL_REDUCE = 3,
    HBP_COLLECTIVE_COUNT = 4
};

/* Rates of one device that were measured at a size. */
enum {
    HBP_RATE_GEMM = 0,      /* flop/s of a bf16 (CPU: fp32) product of size x size matrices */
    HBP_RATE_ATTENTION = 1, /* flop/s of causal attention over one document of `size` tokens, forward and
                               backward, 7 s^2 a d_h flops */
    HBP_RATE_COPY = 2,      /* bytes/s read and written by a copy of `size` bytes */
    HBP_RATE_COUNT = 3
};

typedef struct hbp_machine hbp_machine;

/* Zero means unknown; hbp_cost_create refuses a machine whose needed fields are unknown. */
typedef struct hbp_machine_fields {
    uint32_t struct_size;
    int32_t nodes;
    int32_t gpus_per_node;
    int32_t domain_gpus;  /* GPUs that reach one another over NVLink; 1: none */
    int32_t cpu_packages; /* topology of one node, as probed */
    int32_t numa_nodes;
    int32_t cores;
    int32_t processing_units;
    int64_t cpu_memory_bytes;
    int64_t hbm_bytes; /* of one GPU */
    double hbm_bytes_per_s;
    double flops_per_s;          /* dense bf16 peak of one GPU */
    double gemm_efficiency;      /* fraction of the peak that matrix products reach */
    double attention_efficiency; /* and that attention reaches */
    double nvlink_bytes_per_s;   /* one direction, per GPU, as NCCL reaches it */
    double network_bytes_per_s;  /* one direction, per GPU */
    double nvlink_latency_ns;    /* of one collective call inside the NVLink domain */
    double network_latency_ns;   /* and across it */
} hbp_machine_fields;

/* Makes a machine from fields; their source is "given". HBP_E_INVALID names a negative, NaN or infinite
 * field. Thread: one per context, as for every function here that takes one. */
HBP_API hbp_status hbp_machine_create(hbp_context *context, const hbp_machine_fields *fields,
                                      hbp_machine **out);

/* Makes what a text describes: one node of a preset, "h100"; four of them, "h100:4"; with fields replaced,
 * "h100:4,nvlink_bytes_per_s=4e11". Presets: a100-40, a100-80, a800-80, h100, h200, b200, gb200-nvl72.
 * HBP_E_INVALID names the text and what is wrong with it, and offers the nearest name of a preset or field.
 */
HBP_API hbp_status hbp_machine_create_preset(hbp_context *context, const char *text, hbp_machine **out);

/* A measured collective over `ranks` GPUs. */
typedef struct hbp_machine_collective {
    uint32_t struct_size;
    int32_t collective; /* [HBP_COLLECTIVE_*] */
    int32_t ranks;
    double latency_ns;  /* of a call */
    double bytes_per_s; /* bus bandwidth */
    double spread;      /* of repeats, their interquartile range / median; 0: not known */
    const char *source; /* at most 63 characters, NULL: "given"; owned by the machine when read back */
} hbp_machine_collective;

/* Adds a collective or replaces the one over as many GPUs. */
HBP_API hbp_status hbp_machine_set_collective(hbp_context *context, hbp_machine *machine,
                                              const hbp_machine_collective *collective);

/* Sets one collective over `ranks` GPUs from own timings [count]: the fit of hbp_machine_apply_nccl_tests.
 * `bytes` are sizes as nccl-tests counts them: a rank's send buffer, or of an all-gather what it receives.
 * HBP_E_INVALID for fewer than two sizes, and where time does not grow with the size. */
HBP_API hbp_status hbp_machine_fit_collective(hbp_context *context, hbp_machine *machine, int32_t collective,
                                              int32_t ranks, const double *bytes, const double *ns,
                                              int64_t count, const char *source);

/* Sets one field of hbp_machine_fields by its name. */
HBP_API hbp_status hbp_machine_set_field(hbp_context *context, hbp_machine *machine, const char *field,
                                         double value, const char *source);

/* Sets the fields that a text gives, "network_bytes_per_s=25e9,gemm_efficiency=0.52"; all of them, or after a
 * failure none. Their source is "given". */
HBP_API hbp_status hbp_machine_set_fields(hbp_context *context, hbp_machine *machine, const char *text);

/* A measured rate: `per_s` is the median of repeats and `spread` (their interquartile range) / median. */
typedef struct hbp_machine_rate {
    uint32_t struct_size;
    int32_t rate; /* [HBP_RATE_*] */
    int64_t size;
    double per_s;
    double spread;
    const char *source; /* device and date, at most 63 characters; owned by the machine when read back */
} hbp_machine_rate;

/* Adds a rate or replaces the one of the same type and size. Costs take those of attention and of products
 * from two sizes on (docs: stacks); copies are kept in profiles for whoever reads them. */
HBP_API hbp_status hbp_machine_set_rate(hbp_context *context, hbp_machine *machine,
                                        const hbp_machine_rate *rate);

/* Rate `index`, from 0, ascending in type, then size: fills *rate and returns 1, or returns 0 past the end.
 * Thread: shareable. */
HBP_API int32_t hbp_machine_get_rate(const hbp_machine *machine, int64_t index, hbp_machine_rate *rate);

/* Names the machine, at most 63 characters: what a profile's reader sees. */
HBP_API hbp_status hbp_machine_set_name(hbp_context *context, hbp_machine *machine, const char *name);

/* Frees the machine; NULL is allowed. Thread: any. */
HBP_API void hbp_machine_free(hbp_machine *machine);

/* The machine's name: the preset's, what was set, or "given". Owned by the machine. Thread: shareable. */
HBP_API const char *hbp_machine_get_name(const hbp_machine *machine);
HBP_API hbp_status hbp_machine_get_fields(hbp_context *context, const hbp_machine *machine,
                                          hbp_machine_fields *fields);

/* Where a field came from: "preset h100", "hwloc", "nccl-tests 2.19", "given", "unknown"; NULL for no such
 * field. Owned by the machine. */
HBP_API const char *hbp_machine_get_source(const hbp_machine *machine, const char *field);

/* A measured collective: fills *found and returns 1, or returns 0 when `ranks` was not measured. */
HBP_API int32_t hbp_machine_get_collective(const hbp_machine *machine, int32_t collective, int32_t ranks,
                                           hbp_machine_collective *found);

/* ---- Stack ---- */

/* The software stack: what a trainer's kernels and traffic reach on a GPU, beside the shape of the model and
 * the speed of the machine. It is a text: a preset, "fsdp-2023"; one with another attention kernel,
 * "fsdp-2023:fa2"; with fields replaced, "fsdp-2023,elementwise_bytes=200"; or fields alone,
 * "gemm_efficiency=0.7,attention_efficiency=0.5". hbp_preset_get_name("stack", i) lists presets,
 * ("attention", i) kernels. */

/* What a stack comes to for one model on one GPU (docs: stacks). */
typedef struct hbp_stack_fields {
    uint32_t struct_size;
    int32_t fused_cross_entropy; /* [flag] nonzero: logits are never held whole */
    double gemm_efficiency;      /* share of the peak that matrix products reach */
    double gemm_tokens;          /* a micro-batch of so many tokens on a rank reaches half of that: t of them
                                    1 / (1 + gemm_tokens / t) */
    double attention_efficiency; /* and that attention reaches on long documents, both passes together */
    double attention_tokens;     /* a document of so many tokens reaches half of that: s of them 1 / (1 +
                                    attention_tokens / s) */
    double forward_attention_efficiency; /* the same of the forward pass alone */
    double forward_attention_tokens;
    double elementwise_bytes;    /* moved by norms, activations, residuals: per layer, token and hidden unit,
                                    both passes */
    double logits_traffic_bytes; /* moved by logits and their loss: per token and entry of the vocabulary */
    double exchange_passes;     /* that split and merge around an all-to-all, each reading and writing what is
                                   exchanged */
    double recompute_products;  /* share of the forward pass's products that a recomputed layer repeats */
    double recompute_attention; /* and of its attention */
    double activations;         /* x activation_bytes of the model: what is kept */
    double logits_kept_bytes;   /* per token and entry of the vocabulary, unless cross-entropy is fused */
    double dp_overlap;          /* as in hbp_cost_options, where that is 0 */
    double sp_overlap;
    double compute_overlap; /* share of a micro-batch's compute that ZeRO traffic may run beside */
    double layer_ns;        /* per layer: the least that a micro-batch's compute takes, kernels however short
                             */
} hbp_stack_fields;

/* What the stack `text` comes to for a model on a machine; NULL: the machine's own efficiencies and nothing
 * else. Efficiencies that the machine was given, or that were measured on it, replace those of a preset;
 * attention that was measured at two lengths or more, and products at two sizes or more, have their own
 * curves. HBP_E_INVALID names the text and what
 * is wrong with it, and offers the nearest name. Thread: one per context. */
HBP_API hbp_status hbp_stack_read(hbp_context *context, const char *text, const hbp_model *model,
                                  const hbp_machine *machine, hbp_stack_fields *fields);

/* ---- Cost ---- */

/* The cost model: (model, machine, measurements) -> nanoseconds and bytes. Immutable once made; shareable.
 *
 * For a pack of S tokens and Q = sum of squared document lengths on an SP group of d ranks that recomputes c
 * of L layers:
 *
 *   C = (a1 S (1 + r1 c/L) + a2 Q (1 + r2 c/L)) / d, or least_compute_ns where that is more  [ns]
 *   T = C + (l_d + v_d S)(1 + r3 c/L) + B - min(G, w C)                                      [ns]
 *   M = static + S/d (act (L - c) + kept c + (c > 0) work + logits + (d > 1) buffer)        [bytes]
 *
 * A cost may charge a pack's vision units, too: av V (1 + rv c/L) / d more compute, V/d vision_bytes more
 * memory. Results are rounded to integers, so that plans compare integers. */

/* How weights, gradients and optimiser states are sharded (ZeRO). 0 is the default, stage 3. */
enum { HBP_ZERO_DEFAULT = 0, HBP_ZERO_1 = 1, HBP_ZERO_2 = 2, HBP_ZERO_3 = 3, HBP_ZERO_NONE = 4 };

/* The most GPUs of a cost. */
#define HBP_MAX_RANKS 262144

/* Memory that planners keep free on each GPU by default, for what no model of memory sees: the
 * CUDA context, NCCL's buffers, fragmentation. OmniBal keeps 5 GB (section 3.4). */
#define HBP_RESERVE_BYTES (INT64_C(4) << 30)

typedef struct hbp_cost hbp_cost;

typedef struct hbp_cost_options {
    uint32_t struct_size;
    int32_t zero_stage;          /* [HBP_ZERO_*] */
    int32_t fused_cross_entropy; /* [flag] nonzero: logits are never held whole */
    int32_t max_sp;    /* [0..INT32_MAX] allow no degree above it; 0: the model's and machine's own limit */
    double dp_overlap; /* [0..1] share of ZeRO traffic hidden behind compute; 0: the stack's, or none */
    double sp_overlap; /* [0..1] share of all-to-all hidden; 0: the stack's, or none */
    int64_t reserve_bytes;    /* [-1..INT64_MAX] kept free on each GPU (CUDA context, NCCL, fragmentation); 0:
                                 HBP_RESERVE_BYTES; -1: none */
    int64_t pack_overhead_ns; /* [0..INT64_MAX] launch and host time of a micro-batch, added to B */
    int32_t shard_ranks;      /* [0..HBP_MAX_RANKS] consecutive ranks that ZeRO shards over, replicas outside
                                 (HSDP); 0: all */
    int32_t lockstep_ranks; /* [0..HBP_MAX_RANKS] as in hbp_cost_terms; 0: shard_ranks under ZeRO-3, else all.
                               With fewer than all, ZeRO-2 accumulates gradients and reduces them once a step,
                               as ZeRO-1 */
    int32_t uneven_micro_batches; /* [flag] as in hbp_cost_terms */
    const char *stack; /* the software stack, as hbp_stack_read takes it; NULL: the machine's efficiencies,
                          nothing but products and attention takes time */
} hbp_cost_options;

/* Derives every term from the shape of the model and the fields of the machine (docs: cost model). Returns
 * HBP_E_INVALID naming an unknown or senseless field (0 GPUs, lockstep sets that ZeRO-3's shards cross),
 * HBP_E_INFEASIBLE when the model's states alone do not fit. Keeps neither argument. Thread: one per context.
 */
HBP_API hbp_status hbp_cost_create(hbp_context *context, const hbp_model *model, const hbp_machine *machine,
                                   const hbp_cost_options *options, hbp_cost **out);

/* The terms themselves, for a trainer that knows them and to read them back. Tables have `degrees` rows. */
typedef struct hbp_cost_terms {
    uint32_t struct_size;
    int32_t ranks;               /* [1..HBP_MAX_RANKS] N, all GPUs */
    int32_t domain_ranks;        /* consecutive ranks on fast links; a degree that fits stays inside; 0: N */
    int32_t layers;              /* [1..2^16] L, layers that can be recomputed */
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
    int64_t limit_bytes;            /* [0..INT64_MAX] HBM less the reserve */
    int32_t degrees;                /* rows of the three tables below, ascending in degree, first is 1 */
    const int32_t *degree;          /* [degrees] allowed SP degrees */
    const double *sp_latency_ns;    /* [degrees] l_d */
    const double *sp_ns_per_token;  /* [degrees] v_d, per token of the pack */
    double ns_per_vision;           /* av: forward and backward of one vision unit on one GPU; 0: free */
    double recompute_vision;        /* rv: share of av that recomputing all layers adds */
    double vision_bytes;            /* activations of one vision unit */
    int32_t lockstep_ranks;         /* M, consecutive ranks that wait for one another in every micro-batch;
                                       0: N. 1: the ranks of each pack alone (docs: lockstep) */
    int32_t uneven_micro_batches; /* [flag] nonzero: ranks skip a micro-batch in which their lockstep set has
                                     no samples, at no cost; 0: they run a padding pack */
    double traffic_ns;            /* G, of pack_ns: ZeRO traffic that a pack's compute may hide */
    double compute_overlap;       /* w: the share of compute, 0..1, that traffic may run beside */
    double least_compute_ns;      /* of a pack with samples: its kernels, however short */
} hbp_cost_terms;

/* Makes a cost from given terms; tables are copied. HBP_E_INVALID names a negative or non-finite term, a
 * degree out of order or one that does not divide the ranks. */
HBP_API hbp_status hbp_cost_create_terms(hbp_context *context, const hbp_cost_terms *terms, hbp_cost **out);

/* Makes a cost for plain packing on `ranks` ranks, where neither model nor machine is at hand: a pack takes 1
 * ns for each squared token of its samples, over its SP degree, and memory has no limit; every divisor of
 * `ranks` is a degree. With it groups made by hand, fill and balance need nothing else (examples/pack.c);
 * times in the plan are sums of squares, as HBP's Algorithm 7 compares them, and no predictions.
 * HBP_E_INVALID for ranks out of 1..HBP_MAX_RANKS. Thread: one per context. */
HBP_API hbp_status hbp_cost_create_plain(hbp_context *context, int32_t ranks, hbp_cost **out);

/* Copies the terms out; the tables stay owned by the cost. Thread: shareable. */
HBP_API hbp_status hbp_cost_get_terms(hbp_context *context, const hbp_cost *cost, hbp_cost_terms *terms);

/* Where a term (a field name of hbp_cost_terms) came from: "analysis", "given", "fit of 120 packs"; NULL for
 * no such term. Owned by the cost. Thread: shareable. */
HBP_API const char *hbp_cost_get_source(const hbp_cost *cost, const char *term);

/* Whose times these are: the names of the model and the machine that hbp_cost_create was given, what the file
 * of a loaded cost says, what the prior of a fitted one has; "" when there are none. Owned by the cost.
 * Thread: shareable. */
HBP_API const char *hbp_cost_get_model_name(const hbp_cost *cost);
HBP_API const char *hbp_cost_get_machine_name(const hbp_cost *cost);

/* What a trainer measured: columns of `count` packs, and what steps took beside their packs (the optimiser,
 * data, whatever stands between the last pack of one and the first of the next). peak_bytes and step_ns may
 * be NULL. */
typedef struct hbp_measurements {
    uint32_t struct_size;
    int64_t count; /* [1..HBP_MAX_SAMPLES] */
    const int32_t *sp;
    const int32_t *recompute;
    const int64_t *tokens;
    const int64_t *sum_squares;
    const int64_t *time_ns;
    const int64_t *peak_bytes;
    int64_t steps;          /* [0..HBP_MAX_SAMPLES] */
    const int64_t *step_ns; /* [steps] each at least 0 */
} hbp_measurements;

/* Where a fitted cost's times are from: the packs; the prior, all its times scaled by one number that the
 * packs say; the prior itself. */
enum { HBP_FIT_PACKS = 0, HBP_FIT_SCALED = 1, HBP_FIT_PRIOR = 2 };

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
    int32_t times;                  /* [HBP_FIT_*] */
    double held_out_time_error; /* median over packs, each fifth predicted from the others, where times are
                                   from the packs; 0: not tried, below 10 packs; -1: most of these fits
                                   were refused */
    double scaled_time_error;   /* the same of the scaled prior */
} hbp_fit_report;

/* A run whose speed is known: every rank runs so many micro-batches a step, each pack of equal samples. */
typedef struct hbp_anchor {
    uint32_t struct_size;
    int32_t sp;                        /* [0..HBP_MAX_RANKS] 0: 1 */
    int32_t recompute;                 /* [0..2^24] layers */
    int64_t sequence_tokens;           /* [1..HBP_MAX_LENGTH] of each sample */
    int64_t sequences_per_micro_batch; /* [0..HBP_MAX_LENGTH] of a pack; 0: 1 */
    int64_t micro_batches_per_step;    /* [0..2^20] 0: 1 */
    double tokens_per_s_per_gpu;       /* measured */
} hbp_anchor;

/* Reads an anchor from a text of fields, "tokens_per_s_per_gpu=5600,sequence_tokens=8K". HBP_E_INVALID names
 * the text and what is wrong with it. Thread: one per context. */
HBP_API hbp_status hbp_anchor_read(hbp_context *context, const char *text, hbp_anchor *anchor);

/* Scales all times of `prior` by measured / predicted of one run, so that a cost that analysis made is right
 * for a cluster on which that is known; memory stays. HBP_E_INVALID names what is wrong with the anchor: not
 * a degree or a number of layers of the prior, or a speed at which the products alone would pass the GPU's
 * peak, where the prior knows it. Thread: one per context. */
HBP_API hbp_status hbp_cost_anchor(hbp_context *context, const hbp_cost *prior, const hbp_anchor *anchor,
                                   hbp_cost **out);

/* Fits a1, a2, B and each measured degree's v_d, and with peak_bytes static, act and, where the numbers of
 * recomputed layers differ, kept: non-negative regression on relative errors in which a pack that took three
 * times as long as its like hardly matters (Huber). B and v_d keep the prior's proportion to a1, static and
 * kept to act, where the packs cannot separate them from it (all of one length, all on one degree); r1, r2,
 * l_d, work, logits and buffer are fitted where the packs show that the prior's are wrong; what a step costs
 * is the median of the steps, where there are any. All else is the prior's; the sources of the result say
 * which is which. From 10 packs on, each fifth is predicted from the others: where the prior, or the prior
 * scaled by one number, predicts them better than a fit, the times are those, and the report says so. Returns
 * HBP_E_INFEASIBLE with two terms' names when the measurements cannot separate them (a1 and a2 when every
 * document has one length, any with fewer packs than terms), HBP_E_INVALID for a row that makes no sense,
 * HBP_E_CANCELLED. `report` may be NULL. O(count). Thread: one per context. */
HBP_API hbp_status hbp_cost_fit(hbp_context *context, const hbp_cost *prior,
                                const hbp_measurements *measurements, hbp_cost **out, hbp_fit_report *report);

/* Frees the cost; NULL is allowed. Thread: any. */
HBP_API void hbp_cost_free(hbp_cost *cost);

/* Predicted time in ns and peak bytes per rank of one pack, of `tokens` tokens and `vision` vision units (0
 * where the cost charges none); -1 when `sp` is not an allowed degree, `recompute` is outside [0, layers] or
 * a size is negative. Thread: shareable. */
HBP_API int64_t hbp_cost_predict_pack_ns(const hbp_cost *cost, int32_t sp, int32_t recompute, int64_t tokens,
                                         double sum_squares, int64_t vision);
HBP_API int64_t hbp_cost_predict_pack_bytes(const hbp_cost *cost, int32_t sp, int32_t recompute,
                                            int64_t tokens, int64_t vision);

/* What the predicted time of a pack is made of: whole ns that add up to hbp_cost_predict_pack_ns (docs: cost
 * model). */
typedef struct hbp_pack_parts {
    uint32_t struct_size;
    int64_t compute_ns;    /* tokens, attention, recomputation, and what rounding the others left */
    int64_t vision_ns;     /* vision units */
    int64_t all_to_all_ns; /* sequence parallelism, where compute does not hide it */
    int64_t fixed_ns;      /* once a pack: ZeRO traffic that compute does not hide, launches */
} hbp_pack_parts;

/* Fills *parts for the pack that hbp_cost_predict_pack_ns has the time of. HBP_E_INVALID where that is -1.
 * Thread: shareable, with a context of the thread's own. */
HBP_API hbp_status hbp_cost_predict_pack_parts(hbp_context *context, const hbp_cost *cost, int32_t sp,
                                               int32_t recompute, int64_t tokens, double sum_squares,
                                               int64_t vision, hbp_pack_parts *parts);

/* The most tokens that a pack on `sp` ranks with `recompute` layers recomputed may hold, at most
 * HBP_MAX_LENGTH; 0 when none fits. */
HBP_API int64_t hbp_cost_predict_capacity(const hbp_cost *cost, int32_t sp, int32_t recompute);

/* The fewest layers to recompute so that a pack of `tokens` fits on `sp` ranks (HBP, Algorithm 4), -1 when
 * even all layers do not suffice or the degree is not allowed. Thread: shareable. */
HBP_API int32_t hbp_cost_predict_recompute(const hbp_cost *cost, int32_t sp, int64_t tokens);

/* ---- Timelines ---- */

/* What a run measured: a row for each pack that it ran, beside what the plan predicted. A trainer or the
 * executor writes it; hbp_cost_fit learns from it. Immutable once made; shareable. */

typedef struct hbp_timeline hbp_timeline;

/* Columns [count], a row a pack: the time is that of the SP group's slowest rank, from when all its ranks
 * could begin to its end. The columns that say so may be NULL: not known. Rows come in any order. */
typedef struct hbp_timeline_columns {
    uint32_t struct_size;
    int32_t ranks; /* of the run */
    int64_t count;
    const int64_t *step;        /* of the epoch */
    const int32_t *micro_batch; /* of the step, from 0 */
    const int32_t *first_rank;
    const int32_t *sp;
    const int32_t *recompute;
    const int64_t *samples; /* 0: a padding pack; NULL: what has no tokens is one */
    const int64_t *tokens;  /* padding included: what was computed */
    const int64_t *sum_squares;
    const int64_t *start_ns;         /* since the run began; may be NULL */
    const int64_t *time_ns;          /* at least 1, a padding pack's at least 0 */
    const int64_t *communication_ns; /* of it in all-to-alls, at most all of it; may be NULL */
    const int64_t *peak_bytes;       /* of the fullest rank; may be NULL */
    const char *device;              /* what it ran on, "NVIDIA H100 80GB HBM3"; NULL: not known */
    const char *date;                /* "2026-11-22"; NULL: not known */
} hbp_timeline_columns;

/* Copies the columns. HBP_E_INVALID names a row and a value that make no sense. Thread: one per context, as
 * for every function here that takes one. */
HBP_API hbp_status hbp_timeline_create(hbp_context *context, const hbp_timeline_columns *columns,
                                       hbp_timeline **out);

/* The columns, owned by the timeline. Thread: shareable. */
HBP_API hbp_status hbp_timeline_get_columns(hbp_context *context, const hbp_timeline *timeline,
                                            hbp_timeline_columns *columns);

/* The same rows for hbp_cost_fit, padding packs left out, and with start_ns the time between each two
 * neighbouring steps whose micro-batches are there from the first on; owned by the timeline. Thread:
 * shareable. */
HBP_API hbp_status hbp_timeline_get_measurements(hbp_context *context, const hbp_timeline *timeline,
                                                 hbp_measurements *measurements);

/* Frees the timeline; NULL is allowed. Thread: any. */
HBP_API void hbp_timeline_free(hbp_timeline *timeline);

/* How far a cost's predictions are from what was measured: |predicted - measured| / measured. */
typedef struct hbp_timeline_report {
    uint32_t struct_size;
    int32_t ranks;
    int64_t packs; /* padding packs left out */
    int64_t steps;
    double median_pack_error;
    double p95_pack_error;
    double max_pack_error;
    double
        median_step_error; /* of steps by their packs' times and the cost's lockstep sets, without step_ns */
    double p95_step_error;
    double max_step_error;
    double median_bytes_error; /* of peak bytes; 0 without that column */
    double max_bytes_error;
    int64_t measured_ns; /* sum over steps */
    int64_t predicted_ns;
    double measured_idle;  /* share of rank-time in steps without a pack: packs of the measured times, run
                              as the cost's lockstep sets let them (docs: lockstep) */
    double predicted_idle; /* the same of the predicted times */
} hbp_timeline_report;

/* Compares each pack and step of a timeline with what `cost` predicts; of a step measured in part, the same
 * part. HBP_E_INVALID for an SP degree that the cost does not allow or more recomputed layers than it has.
 * O(count). */
HBP_API hbp_status hbp_timeline_compare(hbp_context *context, const hbp_timeline *timeline,
                                        const hbp_cost *cost, hbp_timeline_report *report);

HBP_END_DECLS

#endif
