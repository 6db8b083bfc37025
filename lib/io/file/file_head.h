/* How every checked file begins: a map of 16 bits of count, "format": its name, "version": one byte; then
 * what the format says. */
#ifndef HBP_IO_FILE_HEAD_H
#define HBP_IO_FILE_HEAD_H

#include <string.h>

#include "io/file/file_bytes.h"
#include "io/msgpack/msgpack_buffer.h"

/* Where the version stands in a file of this format. */
static inline int64_t hbp__format_version_at(const char *format)
{
    return 3 + 1 + (int64_t)strlen("format") + 1 + (int64_t)strlen(format) + 1 + (int64_t)strlen("version");
}

/* Opens a map of `entries` entries, below 65,536 and these two among them. Names of formats stay below 32
 * bytes, versions below 128. */
void hbp__pack_format(hbp__buffer *buffer, uint32_t entries, const char *format, int32_t version);

/* One kind of such files, and what reads it. */
typedef struct hbp__file_kind {
    const char *format;
    const char *what;
    const char *call; /* of the library, of Python and of the command */
    const char *python;
    const char *command;
} hbp__file_kind;

/* The kind that the file begins as, whatever its version; NULL: none. HBP_E_SYSTEM for a failed read. */
hbp_status hbp__file_find_kind(hbp_context *context, const hbp__file_bytes *file,
                               const hbp__file_kind **kind);

/* HBP_E_FORMAT: what the file is, that it is not `what` ("a plan file"), and what reads it. */
hbp_status hbp__file_fail_kind(hbp_context *context, const hbp__file_bytes *file, const hbp__file_kind *kind,
                               const char *what);

/* *version gets the file's. HBP_E_FORMAT when it is of another format (`what`: "a plan file"), HBP_E_VERSION
 * for a version above `newest`. */
hbp_status hbp__file_version(hbp_context *context, const hbp__file_bytes *file, const char *format,
                             const char *what, int32_t newest, int32_t *version);

#endif
