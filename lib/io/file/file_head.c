#include "io/file/file_head.h"

#include <string.h>

#include "base/checked.h"
#include "io/msgpack/msgpack_buffer.h"

#define HEAD_BYTES 64

void hbp__pack_format(hbp__buffer *buffer, uint32_t entries, const char *format, int32_t version)
{
    /* Of 16 bits even where fewer would do: the version then stands at the same place in all files. */
    const unsigned char head[3] = {0xde, (unsigned char)(entries >> 8), (unsigned char)entries};
    uint8_t *at = hbp__buffer_extend(buffer, sizeof head);
    if (at)
        memcpy(at, head, sizeof head);
    hbp__pack_text(buffer, "format");
    hbp__pack_text(buffer, format);
    hbp__pack_text(buffer, "version");
    hbp__pack_u64(buffer, (uint8_t)version);
}

/* Whether the short text stands at *at, which moves behind it. */
static int take_text(const uint8_t *head, int64_t *at, const char *text)
{
    size_t bytes = strlen(text);
    int same = head[*at] == (0xa0 | bytes) && memcmp(head + *at + 1, text, bytes) == 0;
    *at += 1 + (int64_t)bytes;
    return same;
}

/* Where the version stands in a file of this format; 0: it is of another. */
static hbp_status find_version(hbp_context *context, const hbp__file_bytes *file, const char *format,
                               uint8_t head[HEAD_BYTES], int64_t *at)
{
    int64_t next = 3;
    memset(head, 0, HEAD_BYTES);
    HBP__TRY(hbp__file_read(context, file, 0, hbp__min_i64(file->bytes, HEAD_BYTES), head));
    int same = file->bytes > hbp__format_version_at(format) && head[0] == 0xde &&
               take_text(head, &next, "format") && take_text(head, &next, format) &&
               take_text(head, &next, "version");
    *at = same ? next : 0;
    return HBP_OK;
}

hbp_status hbp__file_is(hbp_context *context, const hbp__file_bytes *file, const char *format, int *is)
{
    uint8_t head[HEAD_BYTES];
    int64_t at;
    HBP__TRY(find_version(context, file, format, head, &at));
    *is = at > 0;
    return HBP_OK;
}

hbp_status hbp__file_version(hbp_context *context, const hbp__file_bytes *file, const char *format,
                             const char *what, int32_t newest, int32_t *version)
{
    uint8_t head[HEAD_BYTES];
    int64_t at;
    HBP__TRY(find_version(context, file, format, head, &at));
    if (!at)
        return hbp__fail(context, HBP_E_FORMAT, "%s: byte 0: its %lld bytes are not %s", file->name.text,
                         (long long)file->bytes, what);
    if (head[at] < 1 || head[at] > newest)
        return hbp__fail(context, HBP_E_VERSION,
                         "%s is of format version %d; this library reads versions 1 to %d", file->name.text,
                         (int)head[at], (int)newest);
    *version = head[at];
    return HBP_OK;
}
