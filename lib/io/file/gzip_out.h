/* Bytes gzipped on their way into a file: the same bytes in, the same bytes out, for no time and no name
 * stands in the head. */
#ifndef HBP_IO_GZIP_OUT_H
#define HBP_IO_GZIP_OUT_H

#include <stdint.h>
#include <zlib.h>

#include "io/file/atomic_file.h"

/* Stays where it was opened: zlib points back at it. Zero to begin with. */
typedef struct hbp__gzip_out {
    hbp_context *context;
    hbp__atomic_file *file;
    unsigned char *buffer; /* plain bytes, then gzipped ones; NULL: nothing is open */
    int64_t held;          /* plain bytes not yet deflated */
    z_stream z;
} hbp__gzip_out;

/* Whether a path asks for it: its name ends in ".gz". */
int hbp__gzip_wanted(const char *path);

/* Begins to gzip into `file`, which is open. HBP_E_NO_MEMORY. */
hbp_status hbp__gzip_open(hbp_context *context, hbp__atomic_file *file, hbp__gzip_out *out);

/* Appends. After a failure only hbp__gzip_close makes sense. */
hbp_status hbp__gzip_write(hbp__gzip_out *out, const void *data, int64_t bytes);

/* Writes what is left and gzip's end; the file is the caller's to commit. */
hbp_status hbp__gzip_end(hbp__gzip_out *out);

/* Gives back what it took; allowed at any time, and again. */
void hbp__gzip_close(hbp__gzip_out *out);

#endif
