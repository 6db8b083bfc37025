/* Where a file that is written goes: what the symbolic links at the end of its path lead to. */
#ifndef HBP_IO_WRITE_PLACE_H
#define HBP_IO_WRITE_PLACE_H

#include <stdint.h>
#include <sys/stat.h>

#include "base/context.h"

typedef struct hbp__write_place {
    char *path;       /* what the links lead to; NULL: no file of a folder, written in place */
    int descriptor;   /* one of this process's own, which the path names; -1: none */
    int exists;       /* whether anything is there */
    struct stat info; /* of that */
} hbp__write_place;

/* A path of a regular file, or of what is not there yet, maybe behind links. HBP_E_SYSTEM for a folder, for
 * links in a circle, for what the system does not follow. `place->path` is the caller's, also after a
 * failure, by hbp__delete. */
hbp_status hbp__find_write_place(hbp_context *context, const char *path, hbp__write_place *place);

#endif
