/* Methods that place the slices of a board: greedy ones, the published one, a search under a limit of memory;
 * exchanges of ranks that improve a placement; ranks numbered so that states are reused. */
#ifndef HBP_TASKS_PLACE_METHODS_H
#define HBP_TASKS_PLACE_METHODS_H

#include "tasks/place/place_board.h"

/* What a slice looks for among the ranks that are free. */
enum {
    HBP__GREEDY_FIRST = 0,    /* lowest numbers */
    HBP__GREEDY_FLOWS = 1,    /* what it needs from slices before, in few domains; weights that are there */
    HBP__GREEDY_BACKWARD = 2, /* the same from the last slice to the first */
    HBP__GREEDY_SPREAD = 3,   /* ranks that are least full with it */
    HBP__GREEDY_THRIFT = 4    /* ranks on which it takes fewest bytes, of these the least full */
};

/* Places every slice anew and measures the board. Ranks on which a slice would pass limit_bytes come last
 * (but for FIRST): over_bytes says whether it fits. O(slices x (ranks x log domain_gpus + overlapping slices
 * x words)). */
hbp_status hbp__board_greedy(hbp__board *board, int32_t how);

/* Slices that start together lie on consecutive free ranks in some order. The order is climbed to, by swaps
 * of two and by moving one, from the one they come in, at the price of 1 / size for each GPU of a slice whose
 * MetaOp changes and of -1 for a slice none of whose GPUs change. No look at bytes, nor at memory. Measures
 * the board. A round is O(slices that start together ^ 3), rounds are bounded. */
hbp_status hbp__board_paper(hbp__board *board);

/* Where a search came to a stop. */
typedef struct hbp__tight_slice {
    int32_t slice;       /* that did not fit; -1: none */
    int32_t fitting;     /* free ranks on which it did */
    int64_t needs_bytes; /* on the free rank where it takes fewest; */
    int64_t left_bytes;  /* and what the freest has left */
} hbp__tight_slice;

/* Slices in order of start, each on all sets of free ranks that it fits on, those on which it takes fewest
 * bytes first; sets of ranks that hold the same count once. Complete when it ends within `nodes` slices
 * placed. *found 1 leaves the placement on the measured board; 0 leaves the board empty, and *tight says
 * which slice, of those that the search came to, it got no further than. */
hbp_status hbp__board_backtrack(hbp__board *board, int64_t nodes, int32_t *found, hbp__tight_slice *tight);

/* Improves the placement on a measured board until no exchange helps or `work` (see hbp__board.work) is done.
 * Never worse: first less over_bytes, then less cost. */
hbp_status hbp__board_improve(hbp__board *board, int64_t work);

/* Then leaves such a placement by exchanges drawn at random and improves again, and keeps the best that was
 * found. */
hbp_status hbp__board_perturb(hbp__board *board, uint64_t seed, int64_t work);

/* Renumbers ranks within domains, and domains of a size, so that more of the states that ranks held before
 * stay; flows and memory remain as they are. Does nothing without a schedule before, and above
 * HBP__REUSE_MOST_GPUS GPUs. O(gpus^2 x groups), for a few rounds. Measures the board. */
hbp_status hbp__board_reuse(hbp__board *board);

#endif
