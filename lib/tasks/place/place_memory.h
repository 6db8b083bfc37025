/* A placement under a limit of memory that greedy ways did not find. */
#ifndef HBP_TASKS_PLACE_MEMORY_H
#define HBP_TASKS_PLACE_MEMORY_H

#include "tasks/place/place_board.h"

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

#endif
