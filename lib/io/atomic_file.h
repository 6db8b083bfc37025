/* A file that is there whole or not at all: written beside its place, synced, renamed. */
#ifndef HBP_IO_ATOMIC_FILE_H
#define HBP_IO_ATOMIC_FILE_H

#include <stdint.h>

#include "base/context.h"

/* Lives within one call and keeps its context. */
typedef struct hbp__atomic_file hbp__atomic_file;

/* Begins a file that commit puts at `path`. A path that names a device or a pipe is written directly.
 * HBP_E_SYSTEM. */
hbp_status hbp__atomic_open(hbp_context *context, const char *path, hbp__atomic_file **out);

/* Appends `bytes` of `data`; buffered. HBP_E_SYSTEM for a full disk. */
hbp_status hbp__atomic_write(hbp__atomic_file *file, const void *data, uint64_t bytes);

/* Bytes appended so far. */
uint64_t hbp__atomic_offset(const hbp__atomic_file *file);

/* Syncs and renames. The file is freed in any case; on failure nothing is left at its temporary place. */
hbp_status hbp__atomic_commit(hbp__atomic_file *file);

/* Frees the file and removes what was written; NULL is allowed. */
void hbp__atomic_discard(hbp__atomic_file *file);

#endif
