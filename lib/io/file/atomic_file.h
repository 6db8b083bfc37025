/* A file that is there whole or not at all: written beside its place, then renamed over it. Symbolic links
 * are followed and stay. */
#ifndef HBP_IO_ATOMIC_FILE_H
#define HBP_IO_ATOMIC_FILE_H

#include <stdint.h>

#include "base/context.h"

typedef struct hbp__atomic_file {
    hbp__memory memory;
    int file;              /* descriptor; -1: none */
    char *path;            /* as given; NULL: nothing is open */
    char *target;          /* what links lead to; NULL: written in place */
    char *temporary;       /* beside the target */
    unsigned char *buffer; /* bytes not yet written */
    int64_t held;          /* of them */
} hbp__atomic_file;

/* Opens a file to be `path`; what lies there stays until the commit, and its permissions pass on. A device, a
 * pipe or an open descriptor (/dev/stdout) is written in place; behind a symbolic link the file is the one
 * that it leads to, there or not. Waiting for who reads a named pipe can be cancelled. HBP_E_SYSTEM with the
 * path and the system's reason. */
hbp_status hbp__atomic_open(hbp_context *context, const char *path, hbp__atomic_file *file);

/* Appends; waiting for who reads a pipe can be cancelled. After a failure only hbp__atomic_discard makes
 * sense. */
hbp_status hbp__atomic_write(hbp_context *context, hbp__atomic_file *file, const void *data, int64_t bytes);

/* Writes out, syncs, renames and syncs the folder; the file is closed also on failure, which leaves nothing
 * behind. (Only when the folder cannot be synced is the file there, and the failure says so.) A process that
 * is killed leaves its ".hbp-*.tmp" in the folder: whose it is nobody can tell, so it stays, in nobody's way.
 */
hbp_status hbp__atomic_commit(hbp_context *context, hbp__atomic_file *file);

/* Removes what was written; allowed after any of the above, and again. */
void hbp__atomic_discard(hbp__atomic_file *file);

/* What ends every writer: commits where `status` is HBP_OK, else discards and returns it. */
hbp_status hbp__atomic_end(hbp_context *context, hbp__atomic_file *file, hbp_status status);

/* A file of these bytes, from open to end. */
hbp_status hbp__atomic_save(hbp_context *context, const char *path, const void *data, int64_t bytes);

#endif
