/* From a plan's pack to what one rank runs: tokens, targets, positions, loss weights, borders. */
#ifndef EX_WALK_BATCH_H
#define EX_WALK_BATCH_H

#include <hbp/hbp.h>
#include <stdint.h>

#include "base/fault.h"
#include "model/transformer.h"
#include "walk/tokens.h"

/* Host memory of one pack, used again for the next. */
typedef struct ex_batch {
    ex_pack pack;
    int32_t *tokens, *targets, *positions;
    float *weights;
    int32_t *borders;
    int32_t *sample; /* scratch: a document's tokens and its last target */
    int64_t token_room, border_room, sample_room;
    int32_t shifted_loss; /* of the plan: the last token of a sample predicts nothing; set by the caller */
    int64_t real_tokens;  /* of the pack, without padding */
    int64_t sum_squares;  /* of its documents as they are run, padding included */
} ex_batch;

/* The tokens that rows [first, first + count) of the plan's samples come to on `sp` ranks when run as pack
 * `pack` of the plan (-1: as a pack of their own without the plan's padding): a multiple of sp, at least one
 * a rank. */
int64_t ex_batch_tokens(const hbp_plan *plan, int64_t pack, int64_t first, int64_t count, int32_t sp);

/* Fills `batch` with the chunk of rank group->rank. `weights` has a factor for each sample of the step, whose
 * first row is `step_first`. A piece of a split sample is a document of its own. Samples with fewer loss
 * tokens than tokens carry loss on their last ones. Padding has weight 0, and its positions go on counting.
 */
int ex_batch_fill(ex_batch *batch, hbp_context *context, const hbp_plan *plan, int64_t pack, int64_t first,
                  int64_t count, const double *weights, int64_t step_first, const ex_tokens *source,
                  const ex_group *group, int32_t recompute, ex_fault *fault);

void ex_batch_free(ex_batch *batch);

#endif
