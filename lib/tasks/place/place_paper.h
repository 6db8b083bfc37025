/* Placement as in Spindle's released code. */
#ifndef HBP_TASKS_PLACE_PAPER_H
#define HBP_TASKS_PLACE_PAPER_H

#include "tasks/place/place_board.h"

/* Slices that start together lie on consecutive free ranks in some order. The order is climbed to, by swaps
 * of two and by moving one, from the one they come in, at the price of 1 / size for each GPU of a slice whose
 * MetaOp changes and of -1 for a slice none of whose GPUs change. No look at bytes, nor at memory. Measures
 * the board. A round is O(slices that start together ^ 3), rounds are bounded. */
hbp_status hbp__board_paper(hbp__board *board);

#endif
