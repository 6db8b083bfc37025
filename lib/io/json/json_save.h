/* Small JSON documents built as trees and saved whole, their doubles so that they are read back bit for bit.
 */
#ifndef HBP_IO_JSON_SAVE_H
#define HBP_IO_JSON_SAVE_H

#include <jansson.h>

#include "base/context.h"

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
