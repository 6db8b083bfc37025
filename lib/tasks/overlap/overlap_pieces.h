/* Lists of pieces, and the schedule that a list stands for: the serial scheme of project scheduling with one
 * resource (Kelley, 1963), forwards and backwards. */
#ifndef HBP_TASKS_OVERLAP_LIST_H
#define HBP_TASKS_OVERLAP_LIST_H

#include "tasks/problem.h"

/* Some operators of a MetaOp in a row on one size. */
typedef struct hbp__piece {
    int32_t meta_op;
    int32_t size; /* index into the curve's sizes */
    int32_t gpus;
    int32_t count;    /* operators */
    int64_t start_ns; /* as last placed */
    int64_t end_ns;
} hbp__piece;

/* Pieces in the order in which they are placed; those of a MetaOp run in this order. */
typedef struct hbp__piece_list {
    hbp__piece *piece; /* [room] */
    int32_t count;
    int64_t makespan_ns;
    int64_t area_ns; /* GPU time */
    int64_t ends_ns; /* sum of ends; both saturate */
} hbp__piece_list;

/* GPUs and durations by powers of two, for what is known of where nothing fits. */
enum { HBP__GAP_GPUS = 17, HBP__GAP_TIMES = 64 };

/* What placing needs. */
typedef struct hbp__scheduler {
    const hbp__task_problem *problem;
    const hbp__curve **curve; /* [MetaOps] */
    int32_t meta_ops;
    int32_t room;          /* pieces that a list may have */
    int32_t least_gpus;    /* no piece takes less */
    int64_t *ready;        /* [MetaOps] when the next piece may start; in the end: the end */
    int32_t *left;         /* [MetaOps] operators not yet placed */
    int32_t *waits;        /* [MetaOps] neighbours not yet done */
    int32_t *next_first;   /* [MetaOps + 1] */
    int32_t *next;         /* [edges] MetaOps that need one */
    int32_t *before_first; /* [MetaOps + 1] */
    int32_t *before;       /* [edges] MetaOps that one needs */
    int64_t *point_ns;     /* [2 room + 2] breakpoints, rising */
    int32_t *point_used;   /* [2 room + 2] GPUs in use from there on to the next */
    int32_t points;        /* the last of them starts what never ends: nothing used */
    int32_t full;          /* breakpoints before this one have no GPU to give */
    int64_t *no_gap; /* [HBP__GAP_GPUS x HBP__GAP_TIMES] nothing of 2^g GPUs or more for 2^t ns or more can
                        start before; NULL: not kept, for short lists */
    hbp__piece *scratch; /* [room] */
    int64_t placed;      /* pieces so far, the measure of work */
} hbp__scheduler;

/* In scratch, as lists are. */
hbp_status hbp__scheduler_open(hbp_context *context, const hbp__task_problem *problem, int32_t room,
                               hbp__scheduler *scheduler);

/* An empty list with the scheduler's room. */
hbp_status hbp__pieces_open(hbp_context *context, const hbp__scheduler *scheduler, hbp__piece_list *list);
void hbp__pieces_copy(hbp__piece_list *to, const hbp__piece_list *from);

/* Places pieces in order, each as early as GPUs and what it needs allow. Zero, times then undefined, when the
 * order breaks precedence or a piece would end after `latest_ns`. Placing a list again in order of its starts
 * never makes anything later. O(pieces x breakpoints), in practice near the number of pieces. */
int hbp__pieces_schedule(hbp__scheduler *scheduler, hbp__piece_list *list, int64_t latest_ns);

/* The same, but pieces that come first in the order and start before `floor_ns` stay where they are, and none
 * of the others starts before it: what a change of later pieces leaves alone. */
int hbp__pieces_schedule_from(hbp__scheduler *scheduler, hbp__piece_list *list, int64_t floor_ns,
                              int64_t latest_ns);

/* Sorts by start and places again, first from the end backwards, then forwards, as long as that shortens it
 * and at most `rounds` times (Li and Willis, 1992: never longer). The list is sorted by start afterwards. */
void hbp__pieces_justify(hbp__scheduler *scheduler, hbp__piece_list *list, int32_t rounds);

/* Stable, by start. */
void hbp__pieces_sort(hbp__scheduler *scheduler, hbp__piece_list *list);

/* Negative when `a` is better: shorter, then less GPU time, then earlier ends. */
int hbp__pieces_compare(const hbp__piece_list *a, const hbp__piece_list *b);

/* Joins neighbouring pieces of a MetaOp on one size that follow without a gap. The list is sorted by start.
 */
void hbp__pieces_join(hbp__scheduler *scheduler, hbp__piece_list *list);

#endif
