#include "io/file/gzip_out.h"

#include <string.h>

#include "base/checked.h"
#include "io/file/zipped.h"

#define BUFFER 65536
/* zlib's default. A trace of 64 ranks shrinks to a ninth of its bytes, at level 1 to an eighth in half the
 * time. */
#define LEVEL 6
/* The largest window, with gzip's head and end around it. */
#define GZIP_WINDOW (15 + 16)
#define MEMORY      8 /* zlib's default */

int hbp__gzip_wanted(const char *path)
{
    size_t bytes = strlen(path);
    return bytes > 3 && strcmp(path + bytes - 3, ".gz") == 0;
}

hbp_status hbp__gzip_open(hbp_context *context, hbp__atomic_file *file, hbp__gzip_out *out)
{
    out->context = context;
    out->file = file;
    out->held = 0;
    out->buffer = hbp__new(&context->memory, 2, BUFFER);
    if (!out->buffer)
        return hbp__fail_memory(context, "gzip");
    out->z = hbp__zlib_stream(&context->memory);
    if (deflateInit2(&out->z, LEVEL, Z_DEFLATED, GZIP_WINDOW, MEMORY, Z_DEFAULT_STRATEGY) != Z_OK) {
        hbp__delete(&context->memory, out->buffer);
        out->buffer = NULL;
        return hbp__fail_memory(context, "gzip");
    }
    return HBP_OK;
}

/* Deflates what is held, to the end where `flush` is Z_FINISH. */
static hbp_status deflate_held(hbp__gzip_out *out, int flush)
{
    unsigned char *zipped = out->buffer + BUFFER;
    int answer;
    out->z.next_in = out->buffer;
    out->z.avail_in = (uInt)out->held;
    out->held = 0;
    do {
        out->z.next_out = zipped;
        out->z.avail_out = BUFFER;
        answer = deflate(&out->z, flush);
        if (answer == Z_STREAM_ERROR)
            return hbp__fail(out->context, HBP_E_INTERNAL, "zlib answers %d", answer);
        HBP__TRY(hbp__atomic_write(out->context, out->file, zipped, BUFFER - (int64_t)out->z.avail_out));
    } while (flush == Z_FINISH ? answer != Z_STREAM_END : !out->z.avail_out);
    return HBP_OK;
}

hbp_status hbp__gzip_write(hbp__gzip_out *out, const void *data, int64_t bytes)
{
    const unsigned char *next = data;
    while (bytes) {
        int64_t part = hbp__min_i64(bytes, BUFFER - out->held);
        memcpy(out->buffer + out->held, next, (size_t)part);
        out->held += part;
        next += part;
        bytes -= part;
        if (out->held == BUFFER)
            HBP__TRY(deflate_held(out, Z_NO_FLUSH));
    }
    return HBP_OK;
}

hbp_status hbp__gzip_end(hbp__gzip_out *out)
{
    return deflate_held(out, Z_FINISH);
}

void hbp__gzip_close(hbp__gzip_out *out)
{
    if (!out->buffer)
        return;
    deflateEnd(&out->z);
    hbp__delete(&out->context->memory, out->buffer);
    out->buffer = NULL;
}
