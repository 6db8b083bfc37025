/* A file that is read at any place, and the objects of msgpack in it. */
#ifndef HBP_IO_FILE_BYTES_H
#define HBP_IO_FILE_BYTES_H

#include <stdint.h>

#include "io/file/file_error.h"
#include "io/value/value.h"

typedef struct hbp__file_bytes {
    hbp__shown_path name; /* for messages */
    int descriptor;       /* -1: memory */
    const uint8_t *data;  /* the file in memory */
    int64_t bytes;
} hbp__file_bytes;

/* Opens a regular file; what else there is cannot be read at any place. HBP_E_SYSTEM. Closing is for the
 * caller, also after a failure. */
hbp_status hbp__file_open(hbp_context *context, const char *path, hbp__file_bytes *file);

/* The same of `bytes` of `data`, which stay the caller's and must outlive the file. */
void hbp__file_open_memory(const void *data, int64_t bytes, hbp__file_bytes *file);

void hbp__file_close(hbp__file_bytes *file);

/* HBP_E_FORMAT: "name: byte offset: what". */
hbp_status hbp__file_fail(hbp_context *context, const hbp__file_bytes *file, int64_t offset,
                          const char *what);

/* Copies bytes [offset, offset + bytes), which lie inside the file. HBP_E_SYSTEM, or HBP_E_FORMAT when it
 * shrank. */
hbp_status hbp__file_read(hbp_context *context, const hbp__file_bytes *file, int64_t offset, int64_t bytes,
                          uint8_t *to);

/* Unpacks one msgpack object that takes all of `data` [bytes], read at `offset`, in place of what
 * `object` held; its bins point into `data`. HBP_E_FORMAT when it is more than `max_objects` objects, or not
 * whole. `what` is for messages: "the index". */
hbp_status hbp__file_unpack(hbp_context *context, const hbp__file_bytes *file, int64_t offset,
                            const char *what, const uint8_t *data, uint64_t bytes, uint64_t max_objects,
                            hbp__document *object);

#endif
