/* What a call works on: pieces of memory that are taken one by one and released together.
 *
 * A public call marks, works, and ends with hbp__leave, which releases whatever was taken since; so nothing
 * below it deletes, not even where it fails. A phase that takes much marks, too, and releases once it has
 * succeeded. A take that fails returns NULL and is remembered: take all that is needed, then ask
 * hbp__scratch_check once, before any of it is used. What outlives the call is not taken but made by
 * hbp__new.
 *
 * Every piece is a block of the context's allocator, and so one that sanitizers and failing allocators see
 * (docs/decisions/scratch.md). */
#ifndef HBP_BASE_SCRATCH_H
#define HBP_BASE_SCRATCH_H

#include "base/context.h"

/* Room for count x size bytes, uninitialised, aligned to 16; NULL when there is none, the product overflows,
 * or a take failed before and was not asked about. A count of 0 yields a piece that may not be read. */
void *hbp__take(hbp_context *context, uint64_t count, uint64_t size);

/* The same, zeroed. Large ones look at a request to cancel, which then is what a take failed with. */
void *hbp__take_zero(hbp_context *context, uint64_t count, uint64_t size);

/* HBP_OK when every take since the last check succeeded; else HBP_E_NO_MEMORY, with a message about `what`,
 * or HBP_E_CANCELLED. */
hbp_status hbp__scratch_check(hbp_context *context, const char *what);

/* How many pieces are taken: what hbp__scratch_release goes back to. */
int64_t hbp__scratch_mark(const hbp_context *context);

/* Releases the pieces taken since `mark`. */
void hbp__scratch_release(hbp_context *context, int64_t mark);

/* Last line of a public call that takes: releases what was taken since `mark`, forgets a take that failed,
 * returns `status`. */
hbp_status hbp__leave(hbp_context *context, int64_t mark, hbp_status status);

#endif
