/* A schedule made forwards in time: whenever GPUs are free, MetaOps that are ready get as many as they need
 * to end when all shall end. */
#ifndef HBP_TASKS_OVERLAP_ROLL_H
#define HBP_TASKS_OVERLAP_ROLL_H

#include "tasks/overlap/overlap_allot.h"

typedef struct hbp__roll {
    hbp__allot *allot;
    int64_t *asked_ns;  /* [parts] when the part's shares were last found; -1: out of date */
    int64_t *busy_ns;   /* [MetaOps] end of the piece that runs; 0: none does */
    int32_t *busy_gpus; /* [MetaOps] */
    int32_t *waits;     /* [MetaOps] MetaOps it needs that are not done */
    int32_t *ready;     /* [MetaOps] those that may start a piece, most urgent first */
    int32_t *size;      /* [MetaOps] what each of these gets; -1: nothing now */
    int32_t readies;
} hbp__roll;

/* In scratch. */
hbp_status hbp__roll_open(hbp_context *context, hbp__allot *allot, hbp__roll *roll);

/* Fills the list with pieces that aim at ending by `aim_ns`, none longer than needed for `spans` of them
 * until then, start times set. Shares of connected parts are found anew as time goes on. The allotment is
 * used up. Zero when the list is too short for the pieces. O(pieces x (MetaOps + shares of a part)). */
int hbp__roll_fill(hbp__roll *roll, int64_t aim_ns, int32_t spans, hbp__list *list);

#endif
