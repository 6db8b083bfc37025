/* Exchanges ranks of placed slices for as long as that pays. */
#ifndef HBP_TASKS_PLACE_IMPROVE_H
#define HBP_TASKS_PLACE_IMPROVE_H

#include "tasks/place/place_board.h"

/* Improves the placement on a measured board until no exchange helps or `work` (see hbp__board.work) is done.
 * Never worse: first less over_bytes, then less cost. */
hbp_status hbp__board_improve(hbp__board *board, int64_t work);

/* Then leaves such a placement by exchanges drawn at random and improves again, and keeps the best that was
 * found. */
hbp_status hbp__board_wander(hbp__board *board, uint64_t seed, int64_t work);

#endif
