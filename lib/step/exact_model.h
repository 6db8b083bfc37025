/* A step with a given number of micro-batches as a mixed-integer program.
 *
 * Sequences of like size are a kind, and a slot is a group that a micro-batch may open. Columns: how long
 * each micro-batch takes, which slots are open, how many of each kind are in each slot, how far each slot
 * recomputes. Symmetric solutions are cut off: open slots of a degree come first and their longest sequences
 * descend, and so do the micro-batches' times (docs/decisions/glpk.md has the formulation). */
#ifndef HBP_STEP_EXACT_MODEL_H
#define HBP_STEP_EXACT_MODEL_H

#include <stdint.h>

#include "solve/program.h"
#include "step/step.h"

typedef struct hbp__step_kinds {
    int64_t count;
    int64_t *tokens; /* [count] descending */
    double *squares; /* [count] */
    int64_t *number; /* [count] sequences of the kind, > 0 */
    int64_t *of;     /* [members] */
} hbp__step_kinds;

/* Kinds of `members` sequences with the sizes given, tokens descending. O(members x squares of one size).
 * Close releases, also after a failed open. */
hbp_status hbp__step_kinds_open(const hbp__step *step, const int64_t *tokens, const double *squares,
                                int64_t members, hbp__step_kinds *kinds);

typedef struct hbp__step_model {
    const hbp__step *step;
    const hbp__step_kinds *kinds;
    int64_t micro_batches;
    double unit_ns;   /* ns in a unit of the program */
    double cutoff_ns; /* what solutions take at most; infinite: any time */
    int64_t total_tokens;
    int32_t slots;
    int32_t *slot_degree; /* [slots] index in step->degree, ascending */
    int32_t *slot_index;  /* [slots] among those of its degree */
    int32_t
        *slot_ways; /* [slots] of the micro-batch built last: the column of its first step to more layers */
    hbp__program program;
} hbp__step_model;

/* Columns that the program would have, to be asked before it is built. O(slots). */
int64_t hbp__step_model_columns(const hbp__step *step, const hbp__step_kinds *kinds, int64_t micro_batches);

/* The program whose solutions take at most `cutoff_ns` (infinite: any). Close releases, also after a failed
 * open. */
hbp_status hbp__step_model_open(const hbp__step *step, const hbp__step_kinds *kinds, int64_t micro_batches,
                                double cutoff_ns, hbp__step_model *model);
void hbp__step_model_close(hbp__step_model *model);

/* The solution that `values` is: an opened one, not priced, `group` [members]. */
hbp_status hbp__step_model_read(const hbp__step_model *model, const double *values, int64_t members,
                                hbp__step_solution *solution);

/* A time that no solution with so many micro-batches beats: their fixed costs, and what all sequences take on
 * their best degree spread over all ranks. ns. O(kinds x degrees). */
double hbp__step_model_least(const hbp__step *step, const hbp__step_kinds *kinds, int64_t micro_batches);

#endif
