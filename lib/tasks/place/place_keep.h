/* Numbers of ranks for which states stay where the schedule before had them. */
#ifndef HBP_TASKS_PLACE_KEEP_H
#define HBP_TASKS_PLACE_KEEP_H

#include "tasks/place/place_board.h"

/* Renumbers ranks within domains, and domains of a size, so that more of the states that ranks held before
 * stay; flows and memory remain as they are. Does nothing without a schedule before, and above
 * HBP__MOST_KEPT GPUs. O(gpus^2 x groups), for a few rounds. Measures the board. */
#define HBP__MOST_KEPT 2048
hbp_status hbp__board_keep(hbp__board *board);

#endif
