/* A small file as one block. */
#ifndef HBP_IO_WHOLE_FILE_H
#define HBP_IO_WHOLE_FILE_H

#include <stdint.h>

#include "base/context.h"

/* Reads all of `path`, gunzipped where it is gzipped ("-": standard input), into a block that the caller
 * deletes from the context's memory. HBP_E_FORMAT when it holds more than `most` bytes. */
hbp_status hbp__read_file(hbp_context *context, const char *path, int64_t most, char **data, int64_t *bytes);

#endif
