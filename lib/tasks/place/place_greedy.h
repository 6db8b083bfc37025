/* Ways to place all slices of a board, one after another. */
#ifndef HBP_TASKS_PLACE_GREEDY_H
#define HBP_TASKS_PLACE_GREEDY_H

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

#endif
