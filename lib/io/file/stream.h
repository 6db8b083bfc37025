/* Bytes from a file, standard input or memory; decompressed where they are gzip's or zstd's. */
#ifndef HBP_IO_STREAM_H
#define HBP_IO_STREAM_H

#include <stddef.h>
#include <stdint.h>

#include "base/context.h"

/* The most that can be looked at ahead. */
#define HBP__STREAM_AHEAD INT64_C(4096)

/* Lives within one call and keeps its context. */
typedef struct hbp__stream hbp__stream;

/* Opens a file; "-" is standard input, which stays open. What waits for a writer or its bytes can be
 * cancelled. HBP_E_SYSTEM for what cannot be read, directories
 * included. */
hbp_status hbp__stream_open(hbp_context *context, const char *path, hbp__stream **out);

/* Reads `bytes` of `data` in place, under the name `name`. */
hbp_status hbp__stream_open_memory(hbp_context *context, const char *name, const void *data, int64_t bytes,
                                   hbp__stream **out);

void hbp__stream_close(hbp__stream *stream);

/* What messages call it: the path, or "standard input". */
const char *hbp__stream_name(const hbp__stream *stream);

/* The path as opened; "" for memory. */
const char *hbp__stream_path(const hbp__stream *stream);

/* Bytes of a name without the .gz, .zst or .zstd of what is compressed. */
size_t hbp__stem_bytes(const char *name);

/* Bytes taken so far, after decompressing. */
int64_t hbp__stream_offset(const hbp__stream *stream);

/* Looks ahead: *bytes is at least `want` [1, HBP__STREAM_AHEAD] unless the end is nearer. *data holds until
 * the next call. HBP_E_FORMAT for damaged or truncated gzip or zstd, HBP_E_SYSTEM for a failed read,
 * HBP_E_CANCELLED. */
hbp_status hbp__stream_peek(hbp__stream *stream, int64_t want, const unsigned char **data, int64_t *bytes);

/* Steps over `bytes` that a peek has shown. */
void hbp__stream_take(hbp__stream *stream, int64_t bytes);

/* Copies exactly `bytes` [0, ...), or fails with HBP_E_FORMAT: the file ends within `what`. */
hbp_status hbp__stream_read(hbp__stream *stream, void *to, int64_t bytes, const char *what);

/* Steps over exactly `bytes` [0, ...), shown or not, or fails likewise; a file that can is not read there. */
hbp_status hbp__stream_skip(hbp__stream *stream, int64_t bytes, const char *what);

/* Reads what is left into a block that the caller deletes from the context's memory, also after a failure.
 * HBP_E_FORMAT when it is more than `most` bytes. */
hbp_status hbp__stream_read_all(hbp__stream *stream, int64_t most, char **data, int64_t *bytes);

/* Reads all of `path`, decompressed as a stream's ("-": standard input), into a block that the caller
 * deletes from the context's memory. HBP_E_FORMAT when it holds more than `most` bytes. */
hbp_status hbp__read_file(hbp_context *context, const char *path, int64_t most, char **data, int64_t *bytes);

#endif
