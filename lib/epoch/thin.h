/* Very many samples planned as few: samples in order of length are cut into runs of `times`, each run stands
 * as one sample of its longest, and a pack of such samples stands for `times` packs, the i-th of which takes
 * the i-th sample of each run. Their lengths are nearly the run's where samples are many. */
#ifndef HBP_EPOCH_THIN_H
#define HBP_EPOCH_THIN_H

#include "data/packs/packs.h"
#include "solve/packing/patterns.h"

typedef struct hbp__thin {
    hbp_context *context;
    const hbp_lengths *lengths; /* of all samples */
    hbp_lengths *few;           /* histogram of the runs' longest samples; samples of it are runs, the run of
                                   the shortest samples first, which alone may be short */
    int64_t times;
    int32_t *bin; /* [few->count] of the longest sample of each run; scratch */
} hbp__thin;

/* Runs of so many samples, a power of two, that there are at most `most` of them. Close in any case. O(bins +
 * most). */
hbp_status hbp__thin_open(hbp_context *context, const hbp_lengths *lengths, int64_t most, hbp__thin *thin);
void hbp__thin_close(hbp__thin *thin);

/* The packs of all samples that packs of `few` stand for, whose samples are put in order of length on the
 * way: patterns[g] of their groups, runs of bins of `lengths`. The caller opens and closes them. A run that
 * goes over from one length to the next cuts its pack's pattern in two. O(samples of few + bins x samples of
 * a pack). */
hbp_status hbp__thin_patterns(const hbp__thin *thin, hbp_packs *packs, hbp__patterns *patterns);

#endif
