/* Small JSON documents as trees, by Jansson: read within bounds, built, and saved whole, their doubles so
 * that they are read back bit for bit. */
#ifndef HBP_IO_JSON_TREE_H
#define HBP_IO_JSON_TREE_H

#include <jansson.h>
#include <stdint.h>

#include "base/context.h"

/* Larger files are refused; a tree takes some twenty times the text. */
#define HBP__JSON_MOST (INT64_C(4) << 20)

/* Arrays and objects inside one another; Jansson recurses, and a thread may have a small stack. */
#define HBP__JSON_TREE_DEPTH 64

/* Parses `text` [bytes], an object, under the name `name`; the caller releases it by json_decref.
 * HBP_E_FORMAT with the line for what is not JSON, nests deeper than HBP__JSON_TREE_DEPTH, repeats a key or
 * is no object. */
hbp_status hbp__json_tree(hbp_context *context, const char *name, const char *text, int64_t bytes,
                          json_t **out);

/* The same for files that may be larger, of at most `most` bytes. */
hbp_status hbp__json_tree_of(hbp_context *context, const char *name, const char *text, int64_t bytes,
                             int64_t most, json_t **out);

/* Gives `value` to `parent`, which releases it also on failure; 0 when either is NULL or memory is short. */
int hbp__json_give(json_t *parent, const char *key, json_t *value);

/* The caller's bytes as text; what is not UTF-8 becomes '?'. NULL when memory is short, here and below. */
json_t *hbp__json_text(const hbp__memory *memory, const char *text);

/* A finite double; whole numbers are written as such. */
json_t *hbp__json_double(double value);

/* Writes the tree, NULL where building it failed for memory, to `path`, atomically. `what` is for messages,
 * "a cost". The tree stays the caller's. */
hbp_status hbp__json_save(hbp_context *context, const json_t *root, const char *what, const char *path);

#endif
