/* Zstandard's decompression, of frame after frame; a build without HBP_HAS_ZSTD says so where it is met. */
#ifndef HBP_IO_ZSTD_H
#define HBP_IO_ZSTD_H

#include <stdint.h>

#include "base/context.h"

/* A frame that wants a larger window than 2 to this is refused, since a few bytes can ask for it. `zstd -d`
 * takes as much without --long. */
#define HBP__ZSTD_WINDOW_LOG 27

/* Zero but for `context` and `name` to begin with. */
typedef struct hbp__zstd {
    hbp_context *context;
    const char *name;          /* of the file, for messages */
    void *z;                   /* libzstd's */
    const unsigned char *data; /* [unused] stored bytes to go on with */
    int64_t unused;
    int in_frame; /* a frame has begun and not ended */
    int has_more; /* more comes out before more has to go in */
} hbp__zstd;

/* Whether `data` [bytes] begins a frame, be it one to be skipped. */
int hbp__zstd_begins(const unsigned char *data, int64_t bytes);

/* HBP_E_SYSTEM from a build without zstd. Closing is for the caller, also after a failure. */
hbp_status hbp__zstd_open(hbp__zstd *zstd);

void hbp__zstd_close(hbp__zstd *zstd);

/* Decompresses up to `room` bytes into `to`, maybe none; `stored` is where the bytes to go on with end in the
 * file. HBP_E_FORMAT for damage, HBP_E_NO_MEMORY. */
hbp_status hbp__zstd_unpack(hbp__zstd *zstd, unsigned char *to, int64_t room, int64_t stored, int64_t *got);

#endif
