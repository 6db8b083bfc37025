/* Every SP group that a run may use, known before it begins: a trainer makes its communicators once. */
#ifndef HBP_COMMUNICATORS_H
#define HBP_COMMUNICATORS_H

#include <stdint.h>

#include "hbp/context.h"
#include "hbp/cost.h"
#include "hbp/step.h"

HBP_BEGIN_DECLS

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
 * there, for idle ranks run dummy packs alone. Plans of an epoch may hold any degree of the cost: list them
 * with HBP_STEP_ANY_DEGREE.
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
