/* Small msgpack documents that say what JSON can, so that one reader does for both. */
#ifndef HBP_IO_MSGPACK_TREE_H
#define HBP_IO_MSGPACK_TREE_H

#include <stdint.h>

#include "io/value/value.h"

/* Whether bytes begin as a msgpack map does; no JSON text does. */
int hbp__msgpack_map(const char *data, int64_t bytes);

/* Reads `data` [bytes], one map and nothing after it, under the name `name`; the caller frees `out`; a
 * failure leaves nothing in it. HBP_E_FORMAT with the offset, or the key, for what is not msgpack, repeats a
 * key, or is nothing that JSON has: binary data, extensions, numbers above 2^63 - 1, keys that are no text.
 */
hbp_status hbp__msgpack_tree(hbp_context *context, const char *name, const char *data, int64_t bytes,
                             hbp__document *out);

#endif
