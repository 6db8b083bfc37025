/* Large pages: a large array that is written in no order takes a fault for every page, and a miss of the
 * address cache for every other write. */
#ifndef HBP_BASE_PAGES_H
#define HBP_BASE_PAGES_H

#include <stdint.h>

/* A block as from malloc, for free and realloc; one that is large enough for two large pages begins on one
 * and is advised. NULL when there is no memory. */
void *hbp__pages_alloc(uint64_t bytes);

/* Asks the system to back a block of hbp__pages_alloc, or what realloc made of it, by large pages. A hint:
 * nothing fails, and where there are none nothing happens. */
void hbp__pages_advise(void *block, uint64_t bytes);

#endif
