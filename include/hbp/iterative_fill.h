/* Packs under two budgets, vision units and tokens (OmniBal, section 3.2: iterative sampling and filtering).
 */
#ifndef HBP_ITERATIVE_FILL_H
#define HBP_ITERATIVE_FILL_H

#include <stdint.h>

#include "hbp/context.h"
#include "hbp/lengths.h"
#include "hbp/packs.h"

enum {
    HBP_ISF_DEFAULT = 0,  /* vector packing: fewer packs, no sample lost (docs: vision) */
    HBP_ISF_REFERENCE = 1 /* the authors' order, sample by sample, with numpy's generator; loses the samples
                             that theirs loses */
};

enum {
    HBP_BUDGETS_PLANE = 0, /* over both budgets, with the default fill (docs: vision) */
    HBP_BUDGETS_LINE = 1   /* the published line search, with the reference fill */
};

HBP_BEGIN_DECLS

typedef struct hbp_iterative_fill_options {
    uint32_t struct_size;
    int32_t mode;        /* HBP_ISF_* */
    int32_t rounds;      /* T, reference mode; 0: 50 */
    int32_t effort;      /* default mode: 0..9, search for fewer packs at growing cost; 0: 1 */
    int32_t max_samples; /* per pack, default mode; 0: no cap */
    int32_t over_long;  /* a sample over a budget: HBP_OVERLONG_ERROR or _DROP; reference mode drops it always
                         */
    int64_t max_tokens; /* Q_t, of a pack, after padding; needed */
    int64_t max_vision; /* Q_v, of a pack; needed where the lengths have vision units */
    int64_t full_tokens; /* Q'_t, reference mode: a pack of as many tokens is kept; 0: max_tokens - 128 */
    int64_t
        full_vision; /* Q'_v, reference mode: a pack of just so many vision units is kept; 0: max_vision */
    int64_t sequence_multiple; /* as in hbp_fill_options; reference mode: 1 */
    int64_t pack_multiple;
    uint64_t seed; /* reference mode: of numpy.random.RandomState, below 2^32 */
    uint64_t epoch;
} hbp_iterative_fill_options;

HBP_API void hbp_iterative_fill_options_init(hbp_iterative_fill_options *options, uint32_t struct_size);

/* Fills packs of one group (row 0 of hbp_packs_get_groups) under both budgets. Default mode: every sample is
 * in one pack, ties share a pack, hbp_packs_get_bound(packs, 0) is a lower bound on the number of packs; the
 * packs stand in no order of size. Reference mode (docs: isf): packs and samples in the authors' order, the
 * same in every epoch; samples over a budget, and those that the authors lose, are in hbp_packs_get_dropped;
 * ties, padding and caps are refused. Without a second size tokens alone count, and max_vision is not read.
 * HBP_E_INVALID for a budget <= 0, under HBP_OVERLONG_ERROR for samples over a budget (the message counts
 * them and names the first, its size and the budget), and when no sample is left; HBP_E_INFEASIBLE for tied
 * samples that fit no pack; HBP_E_CANCELLED. Default: O(n log n) at effort 1. Reference: O(T n). Thread: one
 * per context.
 */
HBP_API hbp_status hbp_iterative_fill(hbp_context *context, const hbp_lengths *lengths,
                                      const hbp_iterative_fill_options *options, hbp_packs **out);

typedef struct hbp_budgets_options {
    uint32_t struct_size;
    int32_t mode;           /* HBP_BUDGETS_* */
    int32_t samples;        /* a pack shall hold so many samples on average, or up to one more; 0: 4 */
    int32_t ranks;          /* packs of a micro-batch (data parallel size); 0: 8 */
    int32_t rounds;         /* T of the line search's fills; 0: 50 */
    int32_t effort;         /* of the plane's fills; 0: 1 */
    int64_t max_tokens;     /* no budget above it; 0: no limit */
    int64_t max_vision;     /* no budget above it; 0: no limit */
    int64_t token_multiple; /* Q_t is a multiple of it, plane; 0: 64 */
    uint64_t seed;
    double most_samples; /* plane: a pack holds at most so many on average; 0: samples + 1 */
} hbp_budgets_options;

HBP_API void hbp_budgets_options_init(hbp_budgets_options *options, uint32_t struct_size);

/* A pair of budgets and what packs under them come to. The DistRatios are OmniBal's over packs as its
 * samplers deal them out: of `ranks` equal stretches of the packs in their order each rank has one,
 * micro-batch k is the k-th pack of each, and what is left over counts nowhere (docs: isf). */
typedef struct hbp_budgets {
    uint32_t struct_size;
    int32_t considered;  /* pairs tried */
    int64_t max_vision;  /* Q_v */
    int64_t max_tokens;  /* Q_t */
    int64_t full_tokens; /* Q'_t of the line search */
    int64_t packs;
    double samples_per_pack;
    double padding; /* of samples in a micro-batch; 0, for packs have none */
    double dist_vision;
    double dist_tokens;
    double unused_vision; /* share of the vision budget that packs leave free */
    double unused_tokens;
    double score; /* what was minimised: the line: padding + dist_vision + dist_tokens; the plane: those and
                     both unused shares */
} hbp_budgets;

/* Chooses Q_v and Q_t for a data set so that a pack holds `samples` of them on average. *budgets is written
 * on success. HBP_E_INFEASIBLE when no pair of budgets within the limits gives packs of that many samples;
 * HBP_E_INVALID for lengths without vision units. Thread: one per context. */
HBP_API hbp_status hbp_choose_budgets(hbp_context *context, const hbp_lengths *lengths,
                                      const hbp_budgets_options *options, hbp_budgets *budgets);

HBP_END_DECLS

#endif
