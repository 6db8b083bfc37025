/* Large pages: a large array that is written in no order takes a fault for every page, and a miss of the
 * address cache for every other write. */
#ifndef HBP_BASE_PAGES_H
#define HBP_BASE_PAGES_H

#include <stdint.h>

/* The size of a large page where a block of so many bytes is worth beginning and ending on one, else 0. */
uint64_t hbp__pages_for(uint64_t bytes);

/* Asks the system to back a block by large pages where it is large enough for two. A hint: nothing fails, and
 * where there are none nothing happens. */
void hbp__pages_advise(void *block, uint64_t bytes);

#endif
