/* Small msgpack documents as the trees that JSON makes, so that one reader does for both. */
#ifndef HBP_IO_MSGPACK_TREE_H
#define HBP_IO_MSGPACK_TREE_H

#include <jansson.h>
#include <stdint.h>

#include "base/context.h"

/* Whether bytes begin as a msgpack map does; no JSON text does. */
int hbp__msgpack_map(const char *data, int64_t bytes);

/* Reads `data` [bytes], one map and nothing after it, under the name `name`; the caller releases it by
 * json_decref. HBP_E_FORMAT with the offset, or the key, for what is not msgpack, repeats a key, or is
 * nothing that JSON has: binary data, extensions, numbers above 2^63 - 1, keys that are no text. */
hbp_status hbp__msgpack_tree(hbp_context *context, const char *name, const char *data, int64_t bytes,
                             json_t **out);

#endif
