#include "io/json_out.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"

#define NUMBER_BYTES 32

void hbp__json_put(hbp__json_out *out, const char *text)
{
    if (out->status == HBP_OK)
        out->status = hbp__atomic_write(out->context, out->file, text, (int64_t)strlen(text));
}

/* Bytes of the UTF-8 character that `text` begins with; 0: none, as overlong forms, surrogates and what lies
 * past U+10FFFF are (RFC 3629, section 4). */
static int utf8_bytes(const unsigned char *text)
{
    unsigned char first = text[0], low = 0x80, high = 0xbf;
    int bytes = first < 0x80   ? 1
                : first < 0xc2 ? 0
                : first < 0xe0 ? 2
                : first < 0xf0 ? 3
                : first < 0xf5 ? 4
                               : 0;
    if (first == 0xe0 || first == 0xf0)
        low = first == 0xe0 ? 0xa0 : 0x90;
    if (first == 0xed || first == 0xf4)
        high = first == 0xed ? 0x9f : 0x8f;
    for (int i = 1; i < bytes; i++, low = 0x80, high = 0xbf)
        if (text[i] < low || text[i] > high)
            return 0;
    return bytes;
}

void hbp__json_put_escaped(hbp__json_out *out, const char *text)
{
    const char *plain = text; /* what has not been written yet */
    for (const char *at = text; out->status == HBP_OK;) {
        const unsigned char *byte = (const unsigned char *)at;
        int bytes = utf8_bytes(byte);
        if (*byte >= 0x20 && *byte != '"' && *byte != '\\' && bytes) {
            at += bytes;
            continue;
        }
        if (at > plain)
            out->status = hbp__atomic_write(out->context, out->file, plain, at - plain);
        if (!*byte)
            break;
        char escape[8];
        if (bytes)
            snprintf(escape, sizeof escape, "\\u%04x", (unsigned)*byte);
        hbp__json_put(out, bytes ? escape : "\\ufffd");
        plain = ++at;
    }
}

void hbp__json_put_string(hbp__json_out *out, const char *text)
{
    hbp__json_put(out, "\"");
    hbp__json_put_escaped(out, text);
    hbp__json_put(out, "\"");
}

void hbp__json_put_i64(hbp__json_out *out, int64_t value)
{
    char text[NUMBER_BYTES];
    snprintf(text, sizeof text, "%" PRId64, value);
    hbp__json_put(out, text);
}

void hbp__json_put_u64(hbp__json_out *out, uint64_t value)
{
    char text[NUMBER_BYTES];
    snprintf(text, sizeof text, "%" PRIu64, value);
    hbp__json_put(out, text);
}

void hbp__json_member(hbp__json_out *out, const char *text, int64_t value)
{
    hbp__json_put(out, text);
    hbp__json_put_i64(out, value);
}

void hbp__json_put_us(hbp__json_out *out, int64_t ns)
{
    char text[NUMBER_BYTES];
    snprintf(text, sizeof text, "%" PRId64 ".%03d", ns / 1000, (int)(ns % 1000));
    hbp__json_put(out, text);
}

void hbp__json_put_share(hbp__json_out *out, double share)
{
    char text[NUMBER_BYTES];
    int64_t millionths = hbp__round_i64(share * 1e6);
    snprintf(text, sizeof text, "%" PRId64 ".%06d", millionths / 1000000, (int)(millionths % 1000000));
    hbp__json_put(out, text);
}
