/* One step at a time: heterogeneous sequence parallelism (FlexSP, arXiv 2412.01523).
 *
 * A batch is cut into micro-batches; in each, the ranks are cut into SP groups of different degrees and every
 * sequence goes to one group. The step lasts as long as the sum over micro-batches of their slowest group. */
#ifndef HBP_STEP_H
#define HBP_STEP_H

#include <stdint.h>

#include "hbp/context.h"
#include "hbp/cost.h"
#include "hbp/lengths.h"
#include "hbp/plan.h"

/* How a step is planned: this library's way, the published one, and the ones it is compared with. */
enum {
    HBP_STEP_DEFAULT = 0,
    HBP_STEP_PAPER = 1,          /* FlexSP as published: buckets, blaster, one MILP a micro-batch */
    HBP_STEP_STATIC_SP = 2,      /* one degree for every step: the least that holds `longest_tokens` */
    HBP_STEP_HOMOGENEOUS_SP = 3, /* the best single degree for this batch (BatchAda) */
    HBP_STEP_HYBRID_CP = 4,      /* Megatron's hybrid context parallelism */
    HBP_STEP_DYNAMIC_CP = 5,     /* Megatron's dynamic context parallelism */
    HBP_STEP_MODE_COUNT = 6
};

enum {
    HBP_STEP_SEARCH = 0, /* the direct search: milliseconds */
    HBP_STEP_EXACT = 1   /* the MILP through the context's solver, from the direct search's plan */
};

enum {
    HBP_STEP_POWERS_OF_TWO = 0, /* of the cost's degrees, those that are powers of two */
    HBP_STEP_ANY_DEGREE = 1     /* every degree of the cost */
};

enum {
    HBP_STEP_RECOMPUTE_AUTO = 0, /* each group as few layers as fit */
    HBP_STEP_RECOMPUTE_NONE = 1,
    HBP_STEP_RECOMPUTE_ALL = 2
};

HBP_BEGIN_DECLS

typedef struct hbp_step_options {
    uint32_t struct_size;
    int32_t mode;              /* HBP_STEP_* mode */
    int32_t solver;            /* HBP_STEP_SEARCH, HBP_STEP_EXACT; modes default and paper */
    int32_t effort;            /* 1..9, each about three times the work of the one before; 0: 1. More effort
                                  never makes a plan slower */
    int32_t degrees;           /* HBP_STEP_POWERS_OF_TWO, HBP_STEP_ANY_DEGREE */
    int32_t min_sp;            /* smallest degree used; 0: 1 */
    int32_t max_sp;            /* largest degree used; 0: the cost's */
    int32_t recompute;         /* HBP_STEP_RECOMPUTE_* */
    int32_t min_micro_batches; /* 0: as few as fit */
    int32_t max_micro_batches; /* 0: as many as help */
    int32_t micro_batch_multiple; /* micro-batches of the step are a multiple of it; 0: 1. In mode default
                                     none is of dummies alone unless the samples are fewer */
    int32_t buckets;              /* of lengths, in the MILP; 0: 16 in mode paper, none otherwise; -1: none */
    int64_t sequence_multiple;    /* each sample is padded to a multiple of it; 0: 1 */
    int64_t pack_multiple;        /* each pack is padded to a multiple of it; 0: 1 */
    int64_t longest_tokens;       /* static SP: the longest sample of the whole run; 0: of this batch */
    int64_t tokens_per_rank;      /* the most padded tokens on a rank, in every mode; 0: what memory holds */
    int64_t time_limit_ms;   /* 0: none. A plan cut short by it has `complete` 0 in its summary and may differ
                                between ranks: hand one rank's plan to the others */
    int64_t max_pack_length; /* the most padded tokens of a pack, whatever its degree; 0: what memory holds */
    int64_t sequence_multiple_per_sp; /* each sample of a pack of degree d > 1 is padded to a multiple of d
                                         times it as well (2 x tensor-parallel for ring attention); 0: none */
    int64_t pack_multiple_per_sp;     /* the same of the whole pack; 0: none */
    int32_t max_samples;              /* the most samples of a pack; 0: any number */
    int32_t equal_samples; /* nonzero: all packs have one degree d, and ranks [i d, (i + 1) d) get the same
                              number of samples over the step for every i, or one more where they do not
                              divide; with tied samples as equal as moving one sequence at a time makes them.
                              Mode default, solver search */
    int64_t sequence_tokens_per_rank; /* hybrid CP: a sample's degree is the least at which a rank has at most
                                         so many of its padded tokens, as with Megatron's
                                         max_seqlen_per_dp_cp_rank; 0: at which a pack of it fits */
    int64_t max_vision;               /* the most vision units of a pack; 0: what memory holds */
} hbp_step_options;

HBP_API void hbp_step_options_init(hbp_step_options *options, uint32_t struct_size);

/* "default", "paper", "static-sp", ...; NULL for no such mode. Static text. Thread: any. */
HBP_API const char *hbp_step_mode_name(int32_t mode);

/* Plans one step for the samples of `batch_lengths`: a plan of one step, sample ids being the indices of the
 * batch. Tied samples share a pack. The summary's `bound_ns` is a lower bound, proven for every plan that the
 * options allow (docs: step bound), and `gap` how far the plan is from it. A pure function of its arguments
 * unless time_limit_ms is set. In mode default no rank of a micro-batch is without samples while there are
 * samples to spread (docs: step). Returns HBP_NOT_PROVEN with a plan when the exact solver stops before its
 * proof (which holds to a few ns in a ms); HBP_E_INFEASIBLE names a sequence that no group can hold and the
 * tokens that would fit; HBP_E_INVALID for options without sense, degrees that the cost does not have, or
 * vision units that count (the cost charges them, or max_vision is set) in mode paper and for HBP_STEP_EXACT;
 * HBP_E_SOLVER when HBP_STEP_EXACT finds no solver or it fails; HBP_E_CANCELLED. Thread: one per context. */
HBP_API hbp_status hbp_plan_step(hbp_context *context, const hbp_lengths *batch_lengths, const hbp_cost *cost,
                                 const hbp_step_options *options, hbp_plan **out);

HBP_END_DECLS

#endif
