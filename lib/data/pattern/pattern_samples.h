/* The samples of a plan by patterns into the packs of a plan that lists them, pattern by pattern: each one's
 * packs hold the samples that follow one another in the drawn order of its lengths, which are read in a row,
 * where steps would gather them from everywhere. The ids of all packs come first and their tokens behind
 * them, so that until then the column of tokens can hold the order: listing needs little room of its own. */
#ifndef HBP_DATA_PATTERN_SAMPLES_H
#define HBP_DATA_PATTERN_SAMPLES_H

#include "data/pattern/pattern_plan.h"

/* No row of the plan. */
#define HBP__NO_ROW UINT32_MAX

typedef struct hbp__pattern_samples {
    const hbp_pattern_plan *plan;
    const int64_t *length_first; /* [lengths] samples that are shorter */
    uint32_t *order;             /* [samples] ascending by length, those of a length as they were drawn */
    uint32_t *row; /* [packs] of each pack's first sample, HBP__NO_ROW: of none that is listed */
} hbp__pattern_samples;

/* Draws all samples, in `jobs` parts, and gives no pack a row: those of `sample` [samples], an index; NULL:
 * samples by their place in order of length; `order` itself: it holds an index, and is drawn in place.
 * Samples of the plan are at most HBP_MAX_SAMPLES. `order` [samples] may be the column of tokens of the plan
 * to be written. In scratch, 4 bytes for each pack and, drawn in place, on each thread for each sample of a
 * length. O(samples). */
hbp_status hbp__pattern_samples_open(hbp_context *context, const hbp_pattern_plan *plan,
                                     const int64_t *length_first, const uint32_t *sample, uint32_t *order,
                                     int32_t threads, int64_t jobs, hbp__pattern_samples *samples);

/* Writes the samples of all packs that have a row, and what stands beside them, by copies of `writer`; the
 * order is no longer read once ids are written. O(samples), of all packs. */
hbp_status hbp__pattern_samples_write(hbp_context *context, const hbp__pattern_samples *samples,
                                      const hbp__plan_writer *writer, int32_t threads, int64_t jobs);

#endif
