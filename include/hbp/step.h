/* One step at a time: heterogeneous sequence parallelism (FlexSP, arXiv 2412.01523); a planner for a whole
 * run; every SP group that a run may use.
 *
 * A batch is cut into micro-batches; in each, the ranks are cut into SP groups of different degrees and every
 * sequence goes to one group. The step lasts as long as the sum over micro-batches of their slowest group.
 *
 * Stability: stable; `exact` is advanced and may change. */
#ifndef HBP_STEP_H
#define HBP_STEP_H

#include <stdint.h>

#include "hbp/plan.h"

HBP_BEGIN_DECLS

/* ---- Step ---- */

/* How a step is planned. */
#define HBP_STEP_METHODS(X)                                                                                  \
    X(SEARCH, "search", "", "direct search with a proven bound")                                             \
    X(FLEXSP, "flexsp", "FlexSP, arXiv 2412.01523",                                                          \
      "as published: buckets, blaster, one MILP a micro-batch")                                              \
    X(STATIC_SP, "static-sp", "DeepSpeed-Ulysses, arXiv 2309.14509",                                         \
      "one degree for every step: the least that holds the longest sample")                                  \
    X(HOMOGENEOUS_SP, "homogeneous-sp", "FlexSP, arXiv 2412.01523",                                          \
      "the best single degree for this step (BatchAda)")                                                     \
    X(HYBRID_CP, "hybrid-cp", "Megatron-LM", "hybrid context parallelism")                                   \
    X(DYNAMIC_CP, "dynamic-cp", "Megatron-LM", "dynamic context parallelism")

enum {
    HBP_STEP_RECOMPUTE_AUTO = 0, /* each group as few layers as fit */
    HBP_STEP_RECOMPUTE_NONE = 1,
    HBP_STEP_RECOMPUTE_ALL = 2
};

typedef struct hbp_step_options {
    uint32_t struct_size;
    const char *method; /* [HBP_STEP_METHODS] */
    int32_t effort;     /* [0..9] each about three times the work of the one before; 0: 1. More effort never
                           makes a plan slower */
    int32_t exact;      /* [flag] nonzero: the MILP through the context's solver; method search improves and
                           proves its plan, flexsp solves each micro-batch. Others refuse it */
    int32_t any_degree; /* [flag] nonzero: every degree of the cost; 0: those that are powers of two */
    int32_t min_sp;     /* [0..INT32_MAX] smallest degree used; 0: 1 */
    int32_t max_sp;     /* [0..INT32_MAX] largest degree used; 0: the cost's */
    int32_t recompute;  /* [HBP_STEP_RECOMPUTE_*] */
    int32_t min_micro_batches;    /* [0..65536] 0: as few as fit */
    int32_t max_micro_batches;    /* [0..65536] 0: as many as help */
    int32_t micro_batch_multiple; /* [0..65536] micro-batches of the step are a multiple of it; 0: 1. With
                                     method search none is of padding packs alone unless samples are fewer */
    int32_t equal_samples; /* [flag] nonzero: all packs have one degree d, and ranks [i d, (i + 1) d) get
                              the same number of samples over the step for every i, or one more where
                              they do not divide; with linked samples as equal as moving one sequence at a
                              time makes them. Method search without `exact` */
    int32_t max_samples;   /* [0..INT32_MAX] the most samples of a pack; 0: any number */
    int32_t
        buckets; /* [-1..4096] of lengths, in the MILP; 0: 16 with method flexsp, none otherwise; -1: none */
    int64_t max_pack_length; /* [0..HBP_MAX_LENGTH] the most padded tokens of a pack, whatever its degree; 0:
                                what memory holds */
    int64_t tokens_per_rank; /* [0..HBP_MAX_LENGTH] the most padded tokens on a rank, whatever the method; 0:
                                what memory holds */
    int64_t max_vision;      /* [0..HBP_MAX_VISION] the most vision units of a pack; 0: what memory holds */
    int64_t sequence_multiple; /* [0..HBP_MAX_LENGTH] each sample is padded to a multiple of it; 0: 1 */
    int64_t pack_multiple;     /* [0..HBP_MAX_LENGTH] each pack is padded to a multiple of it; 0: 1 */
    int64_t sequence_multiple_per_sp; /* [0..HBP_MAX_LENGTH] each sample of a pack of degree d > 1 is padded
                                         to a multiple of d times it as well (2 x tensor-parallel for ring
                                         attention); 0: none */
    int64_t pack_multiple_per_sp;     /* [0..HBP_MAX_LENGTH] the same of the whole pack; 0: none */
    int64_t longest_tokens; /* [0..HBP_MAX_LENGTH] static SP: the longest sample of the whole run; 0: of this
                               batch */
    int64_t
        sequence_tokens_per_rank; /* [0..HBP_MAX_LENGTH] hybrid CP: a sample's degree is the least at which a
                                     rank has at most so many of its padded tokens, as with Megatron's
                                     max_seqlen_per_dp_cp_rank; 0: at which a pack of it fits */
    int64_t time_limit_ms;        /* [0..2^40] 0: none. A plan cut short by it has `complete` 0 in its summary
                                     and may differ between ranks: hand one rank's plan to the others */
} hbp_step_options;

/* Plans one step for the samples of `batch_lengths`: a plan of one step, sample ids being the indices of the
 * batch. Linked samples share a pack. The summary's `bound_ns` is a lower bound, proven for every plan that
 * the options allow (docs: step bound), and `gap` how far the plan is from it. A pure function of its
 * arguments unless time_limit_ms is set. With method search no rank of a micro-batch is without samples while
 * there are samples to spread (docs: step). Returns HBP_NOT_PROVEN with a plan when the exact solver stops
 * before its proof (which holds to a few ns in a ms); HBP_E_INFEASIBLE names a sequence that no group can
 * hold and the tokens that would fit; HBP_E_INVALID for options without sense, degrees that the cost does not
 * have, or vision units that count (the cost charges them, or max_vision is set) with method flexsp or
 * `exact`; HBP_E_SOLVER when `exact` finds no solver or it fails; HBP_E_CANCELLED. Thread: one per context.
 */
HBP_API hbp_status hbp_plan_step(hbp_context *context, const hbp_lengths *batch_lengths, const hbp_cost *cost,
                                 const hbp_step_options *options, hbp_plan **out);

/* ---- Stepper ---- */

/* A planner for a whole run: a thread of its own plans the next step while the trainer runs this one. */

typedef struct hbp_stepper hbp_stepper;

typedef struct hbp_stepper_options {
    uint32_t struct_size;
    int32_t depth; /* [0..1024] most steps that are submitted and not taken; 0: 2 */
    int32_t
        wait; /* [flag] zero: submit refuses a step past the depth, and take a step that was not submitted.
                 Nonzero: they wait, for a program in which one thread submits and another takes */
} hbp_stepper_options;

/* Makes a planner whose every step is planned as hbp_plan_step plans it with `cost` and the step options, and
 * with the solver that `context` has now. The options are copied; cost and solver must outlive the stepper.
 * Its thread takes memory from the context's allocator, and keeps it from step to step: the allocator must be
 * callable from two threads at once. The thread calls nothing else of the caller's but the solver, and blocks
 * every signal. It does not survive a fork: a child process must not use or free the stepper.
 *
 * One thread may submit and another take, each with a context of its own. Returns the errors of
 * hbp_plan_step's options; HBP_E_SYSTEM when there is no thread to be had; HBP_E_NO_MEMORY. Thread: one per
 * context. */
HBP_API hbp_status hbp_stepper_create(hbp_context *context, const hbp_cost *cost,
                                      const hbp_step_options *step_options,
                                      const hbp_stepper_options *options, hbp_stepper **out);

/* Cancels the step that is being planned, drops the others and ends the thread; NULL is allowed. Plans that
 * were taken stay valid. Thread: any, while no other uses the stepper. */
HBP_API void hbp_stepper_free(hbp_stepper *stepper);

/* Submits the next step: a batch given as hbp_lengths_create_i64 takes it. Everything is copied, and the call
 * returns before the step is planned. Returns the errors of hbp_lengths_create_i64, and HBP_E_INVALID for a
 * step past the depth unless `wait`; the step is not submitted then. HBP_E_CANCELLED while it waits. Thread:
 * one at a time submits. */
HBP_API hbp_status hbp_stepper_submit(hbp_context *context, hbp_stepper *stepper, const int64_t *lengths,
                                      int64_t count, const hbp_lengths_options *options);

/* The same for a data set, which is shared, not copied: it may be freed at once, but an array that it borrows
 * must stay until the step is taken. */
HBP_API hbp_status hbp_stepper_submit_lengths(hbp_context *context, hbp_stepper *stepper,
                                              const hbp_lengths *batch_lengths);

/* Takes the plan of the oldest submitted step, waiting until it is made. It is the very plan that
 * hbp_plan_step makes of the batch, digest included, whatever the timing and on every rank: a whole plan of
 * one step, whose `first_step` is 0. The caller frees it; it may outlive the stepper.
 *
 * Returns what planning returned, with "step 17: " and its message after a failure; the steps that follow are
 * not affected. HBP_E_CANCELLED when the waiting is cancelled: the step can be taken later. HBP_E_INVALID
 * when no step is submitted that was not taken, unless `wait`. Progress: stage "take", then "wait" (steps
 * planned, of those submitted). Thread: one at a time takes. */
HBP_API hbp_status hbp_stepper_take(hbp_context *context, hbp_stepper *stepper, hbp_plan **out);

typedef struct hbp_stepper_summary {
    uint32_t struct_size;
    int32_t depth;
    int64_t submitted;
    int64_t planned;
    int64_t taken;
    int64_t waited;     /* steps whose plan was not ready when it was to be taken */
    int64_t kept_bytes; /* for the planning of later steps; as of the step taken last */
    uint64_t digest;    /* over the plans taken so far, and the failures: ranks that compare it now and then
                           need not compare each plan's */
} hbp_stepper_summary;

/* Fills *summary. Thread: any, one per context. */
HBP_API hbp_status hbp_stepper_get_summary(hbp_context *context, hbp_stepper *stepper,
                                           hbp_stepper_summary *summary);

/* ---- Communicators ---- */

/* Every SP group that a run may use, known before it begins: a trainer makes its communicators once. */

/* Ranks first_rank to first_rank + sp - 1. */
typedef struct hbp_communicator {
    uint32_t struct_size;
    int32_t sp;
    int32_t first_rank;
    int32_t color; /* first_rank / sp: which of the groups of its degree, as MPI_Comm_split takes it */
    int64_t index; /* in the table of all ranks; the same on every rank and in every list */
} hbp_communicator;

/* Lists the SP groups that plans under `cost` and `options` may hold, ascending in degree, then in first
 * rank: the groups of rank `rank`, one a degree, or of all ranks when it is -1. Powers of two: at most
 * log2(ranks) + 1 a rank. Groups are aligned to their degree and lie inside a domain when they fit one. The
 * degrees are those of the options that hold a token; degree 1, which needs no communicator, is always
 * there, for idle ranks run padding packs alone. Plans of an epoch may hold any degree of the cost: list them
 * with any_degree.
 *
 * Writes at most `capacity` entries of `communicator_size` bytes each (the caller's sizeof) and sets *count
 * to how many there are; call with capacity 0 to learn it. Returns HBP_E_INVALID for a rank that is not
 * there, and the errors of hbp_plan_step's options. O(entries). Thread: one per context. */
HBP_API hbp_status hbp_list_communicators(hbp_context *context, const hbp_cost *cost,
                                          const hbp_step_options *options, int32_t rank,
                                          hbp_communicator *communicators, uint32_t communicator_size,
                                          int64_t capacity, int64_t *count);

/* The row of a list [count] in which the group of a pack stands, given its first rank and SP degree; -1 when
 * it is not there. O(log count). Thread: any. */
HBP_API int64_t hbp_find_communicator(const hbp_communicator *communicators, uint32_t communicator_size,
                                      int64_t count, int32_t first_rank, int32_t sp);

HBP_END_DECLS

#endif
