/* Sizes for every MetaOp at once, such that no path of the graph takes longer than a given time and little
 * GPU time is spent: the time-cost trade-off by Siemens' method (1971), and its slack given back. */
#ifndef HBP_TASKS_OVERLAP_ALLOT_H
#define HBP_TASKS_OVERLAP_ALLOT_H

#include "tasks/overlap/overlap_list.h"

/* A MetaOp runs `fast` of its operators on hull size `step` + 1 and the others on hull size `step`. */
typedef struct hbp__share {
    int32_t step;
    int32_t fast;
} hbp__share;

typedef struct hbp__allot {
    const hbp__placer *placer;
    hbp_context *context;
    int32_t *count;      /* [MetaOps] operators that are left to run: all */
    hbp__share *share;   /* [MetaOps] */
    int64_t *time_ns;    /* [MetaOps] */
    int64_t *head_ns;    /* [MetaOps] longest path before it */
    int64_t *tail_ns;    /* [MetaOps] longest path after it */
    int32_t *part_first; /* [parts + 1] */
    int32_t *part;       /* [MetaOps] by connected part, ascending within it */
    int32_t *part_of;    /* [MetaOps] */
    int32_t parts;
    int64_t looked;    /* MetaOps, or edges where there are more, looked at so far: the measure of work */
    int64_t looks;     /* at most so many, shares then stay as they are; INT64_MAX: no limit */
    int64_t tick;      /* of looked, when to ask whether to go on */
    hbp_status status; /* below 0: cancelled, and no more is looked at */
} hbp__allot;

/* In scratch; everything on the size of least GPU time. */
hbp_status hbp__allot_open(hbp_context *context, const hbp__placer *placer, hbp__allot *allot);

/* Makes every path at most `ns` where that can be: while a path is longer, the MetaOp on it whose time costs
 * least gets more; then those off the longest paths give back what they can. Calls with falling times go on
 * from the last one. O(MetaOps x hull x (MetaOps + edges) of a part). */
void hbp__allot_reach(hbp__allot *allot, int64_t ns);

/* The same for one connected part, from the size of least GPU time on. */
void hbp__allot_reach_part(hbp__allot *allot, int32_t part, int64_t ns);

/* Counts work, and asks now and then whether to go on; `status` has the answer. */
void hbp__allot_look(hbp__allot *allot, int64_t more);

/* GPU time over all. */
int64_t hbp__allot_area(const hbp__allot *allot);

/* Index into the curve's sizes of the fast operators (`fast`) or the others of MetaOp m. */
int32_t hbp__allot_size(const hbp__allot *allot, int32_t m, int fast);

#endif
