/* The inside of hbp__plan_overlap: sizes for the whole graph, a schedule forwards in time by them, schedules
 * to start from, and the search for shorter ones. */
#ifndef HBP_TASKS_OVERLAP_SEARCH_H
#define HBP_TASKS_OVERLAP_SEARCH_H

#include "tasks/overlap/overlap_pieces.h"

/* Sizes for every MetaOp at once, such that no path of the graph takes longer than a given time and little
 * GPU time is spent: the time-cost trade-off by Siemens' method (1971), and its slack given back. */

/* A MetaOp runs `fast` of its operators on hull size `step` + 1 and the others on hull size `step`. */
typedef struct hbp__bi_point {
    int32_t step;
    int32_t fast;
} hbp__bi_point;

typedef struct hbp__allocation {
    const hbp__scheduler *scheduler;
    hbp_context *context;
    int32_t *count;       /* [MetaOps] operators that are left to run: all */
    hbp__bi_point *share; /* [MetaOps] */
    int64_t *time_ns;     /* [MetaOps] */
    int64_t *head_ns;     /* [MetaOps] longest path before it */
    int64_t *tail_ns;     /* [MetaOps] longest path after it */
    int32_t *part_first;  /* [parts + 1] */
    int32_t *part;        /* [MetaOps] by connected part, ascending within it */
    int32_t *part_of;     /* [MetaOps] */
    int32_t parts;
    int64_t looked;    /* MetaOps, or edges where there are more, looked at so far: the measure of work */
    int64_t looks;     /* at most so many, shares then stay as they are; INT64_MAX: no limit */
    int64_t tick;      /* of looked, when to ask whether to go on */
    hbp_status status; /* below 0: cancelled, and no more is looked at */
} hbp__allocation;

/* In scratch; everything on the size of least GPU time. */
hbp_status hbp__allocation_open(hbp_context *context, const hbp__scheduler *scheduler,
                                hbp__allocation *allocation);

/* Makes every path at most `ns` where that can be: while a path is longer, the MetaOp on it whose time costs
 * least gets more; then those off the longest paths give back what they can. Calls with falling times go on
 * from the last one. O(MetaOps x hull x (MetaOps + edges) of a part). */
void hbp__allocation_reach(hbp__allocation *allocation, int64_t ns);

/* The same for one connected part, from the size of least GPU time on. */
void hbp__allocation_reach_part(hbp__allocation *allocation, int32_t part, int64_t ns);

/* Counts work, and asks now and then whether to go on; `status` has the answer. */
void hbp__allocation_look(hbp__allocation *allocation, int64_t more);

/* GPU time over all. */
int64_t hbp__allocation_area(const hbp__allocation *allocation);

/* Index into the curve's sizes of the fast operators (`fast`) or the others of MetaOp m. */
int32_t hbp__allocation_size(const hbp__allocation *allocation, int32_t m, int fast);

/* List scheduling: whenever GPUs are free, MetaOps that are ready get as many as they need to end when all
 * shall end. */
typedef struct hbp__list_scheduling {
    hbp__allocation *allocation;
    int64_t *asked_ns;  /* [parts] when the part's shares were last found; -1: out of date */
    int64_t *busy_ns;   /* [MetaOps] end of the piece that runs; 0: none does */
    int32_t *busy_gpus; /* [MetaOps] */
    int32_t *waits;     /* [MetaOps] MetaOps it needs that are not done */
    int32_t *ready;     /* [MetaOps] those that may start a piece, most urgent first */
    int32_t *size;      /* [MetaOps] what each of these gets; -1: nothing now */
    int32_t readies;
} hbp__list_scheduling;

/* In scratch. */
hbp_status hbp__list_scheduling_open(hbp_context *context, hbp__allocation *allocation,
                                     hbp__list_scheduling *scheduling);

/* Fills the list with pieces that aim at ending by `aim_ns`, none longer than needed for `spans` of them
 * until then, start times set. Shares of connected parts are found anew as time goes on. The allocation is
 * used up. Zero when the list is too short for the pieces. O(pieces x (MetaOps + shares of a part)). */
int hbp__list_schedule(hbp__list_scheduling *scheduling, int64_t aim_ns, int32_t spans,
                       hbp__piece_list *list);

/* Offers a list for each of `given`, without barriers, and for shares of the whole graph that end together;
 * *best gets the best of them, placed, sorted by start. `spare` is scratch. */
hbp_status hbp__overlap_seeds(hbp_context *context, hbp__scheduler *scheduler,
                              const hbp__task_slices *const *given, int32_t givens, int64_t bound_ns,
                              hbp__piece_list *best, hbp__piece_list *spare);

/* Improves `best` by small changes until some number of pieces were placed, which `effort` and the size of
 * the problem set, or its makespan is `bound_ns`. */
hbp_status hbp__overlap_improve(hbp_context *context, hbp__scheduler *scheduler, int64_t bound_ns,
                                int32_t effort, hbp__piece_list *best);

#endif
