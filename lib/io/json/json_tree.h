/* Small JSON documents as trees, by Jansson, and what readers of any format say about a bad one. */
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

/* After a failed check of what a file says: puts "NAME: " before the message and turns HBP_E_INVALID and
 * HBP_E_OVERFLOW into HBP_E_FORMAT. */
hbp_status hbp__blame_file(hbp_context *context, const char *name, hbp_status status);

/* The path's last part. */
const char *hbp__file_name(const char *path);

/* Copies at most room - 1 bytes of foreign text for a message, '?' for what is not printable ASCII. */
void hbp__printable(char *to, int64_t room, const char *text);

#endif
