/* The nearest of the known names, for messages about an unknown one. */
#ifndef HBP_BASE_NEAREST_H
#define HBP_BASE_NEAREST_H

#include <stdint.h>

/* The name among get(0), ..., get(count - 1) with the least edit distance (Levenshtein, with swaps of
 * neighbours; case is none) to `name`, the first of equals, but before others one of which `name` is the
 * beginning, or which is the beginning of `name`, of three letters or more; NULL when count is 0. Only the
 * first 64 bytes of a name count. O(count x 64 x 64). */
const char *hbp__nearest(const char *name, const char *(*get)(int64_t index), int64_t count);

/* The same where `name` resembles it, for "did you mean": at most a third of its letters, one to three, are
 * other ones, or one is the beginning of the other, of three letters or more; else NULL. */
const char *hbp__resembling(const char *name, const char *(*get)(int64_t index), int64_t count);

#endif
