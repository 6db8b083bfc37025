/* How one pack is run: sequence-parallel degree and layers to recompute (HBP, section 4.1, Algorithms 3 and
 * 4). */
#ifndef HBP_SP_H
#define HBP_SP_H

#include <stdint.h>

#include "hbp/context.h"
#include "hbp/cost.h"

/* Why a candidate is out. */
enum {
    HBP_SP_FEASIBLE = 0,
    HBP_SP_OUT_OF_MEMORY = 1, /* does not fit even with every layer recomputed */
    HBP_SP_ILLEGAL_HEADS = 2, /* heads or kv heads do not divide */
    HBP_SP_TOO_FEW_RANKS = 3  /* the degree does not divide the machine's ranks, or exceeds a limit */
};

HBP_BEGIN_DECLS

typedef struct hbp_sp_options {
    uint32_t struct_size;
    int32_t reserved;
    int64_t tokens_per_step;  /* T_global; 0: as many packs as ranks, so that degrees compare at equal work */
    double squares_per_token; /* Q / S of the packs; 0: one document fills the pack (Q = S^2) */
} hbp_sp_options;

HBP_API void hbp_sp_options_init(hbp_sp_options *options, uint32_t struct_size);

/* One (degree, recomputed layers), with what it costs. */
typedef struct hbp_sp_choice {
    uint32_t struct_size;
    int32_t sp;
    int32_t recompute;     /* fewest layers that fit; all layers when none fits */
    int32_t reason;        /* HBP_SP_* */
    int64_t micro_batches; /* a step needs */
    int64_t pack_ns;       /* one pack */
    int64_t step_ns;       /* one step of tokens_per_step, compute and communication */
    int64_t peak_bytes;    /* per rank */
    int64_t limit_bytes;   /* what a rank has */
} hbp_sp_choice;

/* The feasible choice with the least step_ns for packs of `pack_length` tokens; ties go to the smaller
 * degree. *choice is written only on success. HBP_E_INFEASIBLE says how much memory the best degree lacks;
 * HBP_E_INVALID for a length outside [1, HBP_MAX_LENGTH]. O(degrees). Thread: one per context. */
HBP_API hbp_status hbp_choose_sp(hbp_context *context, const hbp_cost *cost, int64_t pack_length,
                                 const hbp_sp_options *options, hbp_sp_choice *choice);

/* Every power of two up to the number of ranks, and every allowed degree, ascending, with the reason when it
 * is out. Writes at most `capacity` choices of `choice_size` bytes each (the caller's sizeof) and sets *count
 * to how many there are; call with capacity 0 to learn it. Thread: one per context. */
HBP_API hbp_status hbp_list_sp_choices(hbp_context *context, const hbp_cost *cost, int64_t pack_length,
                                       const hbp_sp_options *options, hbp_sp_choice *choices,
                                       uint32_t choice_size, int64_t capacity, int64_t *count);

HBP_END_DECLS

#endif
