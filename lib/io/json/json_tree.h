/* Small JSON documents as values. */
#ifndef HBP_IO_JSON_TREE_H
#define HBP_IO_JSON_TREE_H

#include <stdint.h>

#include "io/value/value.h"

/* Larger files are refused; values take some twenty times the text. */
#define HBP__JSON_MOST (INT64_C(4) << 20)

/* Arrays and objects inside one another. */
#define HBP__JSON_TREE_DEPTH 64

/* Parses `text` [bytes], an object, under the name `name`; the caller frees `out`; a failure
 * leaves nothing in it.
 * HBP_E_FORMAT with the line for what is not JSON, nests deeper than HBP__JSON_TREE_DEPTH, repeats a key or
 * is no object. Whole numbers lie in int64, others are the nearest double. O(bytes). */
hbp_status hbp__json_tree(hbp_context *context, const char *name, const char *text, int64_t bytes,
                          hbp__document *out);

/* The same for files that may be larger, of at most `most` bytes. */
hbp_status hbp__json_tree_of(hbp_context *context, const char *name, const char *text, int64_t bytes,
                             int64_t most, hbp__document *out);

#endif
