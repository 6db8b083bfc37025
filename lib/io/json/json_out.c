#include "io/json/json_out.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/decimal.h"
#include "base/utf8.h"

#define NUMBER_BYTES 32

void hbp__json_put_bytes(hbp__json_out *out, const char *text, int64_t bytes)
{
    if (out->status != HBP_OK || !bytes)
        return;
    if (!out->buffer) {
        out->status = out->gzip ? hbp__gzip_write(out->gzip, text, bytes)
                                : hbp__atomic_write(out->context, out->file, text, bytes);
        return;
    }
    uint8_t *at = hbp__buffer_extend(out->buffer, (uint64_t)bytes);
    if (at)
        memcpy(at, text, (size_t)bytes);
    else
        out->status = hbp__fail_memory(out->context, "JSON");
}

void hbp__json_put(hbp__json_out *out, const char *text)
{
    hbp__json_put_bytes(out, text, (int64_t)strlen(text));
}

/* The letter of \" and its like; 0: there is none. */
static char short_escape(unsigned char byte)
{
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    const char *known = byte ? strchr(from, byte) : NULL;
    return known ? to[known - from] : 0;
}

/* The code point of a character of UTF-8. */
static unsigned decode_utf8(const char *text, int bytes)
{
    unsigned code = (unsigned char)text[0] & (bytes == 1 ? 0x7f : 0x7f >> bytes);
    for (int i = 1; i < bytes; i++)
        code = code << 6 | ((unsigned char)text[i] & 0x3f);
    return code;
}

/* A character [bytes] that cannot stand for itself; 0 bytes: what is no character. */
static void put_escape(hbp__json_out *out, const char *at, int bytes)
{
    char escape[16];
    const unsigned code = bytes ? decode_utf8(at, bytes) : 0xfffd;
    const char letter = out->escapes != HBP__ESCAPE_HEX && bytes == 1 ? short_escape((unsigned char)*at) : 0;
    const char *hex = out->escapes == HBP__ESCAPE_ASCII ? "\\u%04X" : "\\u%04x";
    if (letter)
        snprintf(escape, sizeof escape, "\\%c", letter);
    else if (code < 0x10000)
        snprintf(escape, sizeof escape, hex, code);
    else
        snprintf(escape, sizeof escape, "\\u%04X\\u%04X", 0xd800 + ((code - 0x10000) >> 10),
                 0xdc00 + (code & 0x3ff));
    hbp__json_put(out, escape);
}

void hbp__json_put_escaped(hbp__json_out *out, const char *text)
{
    const int ascii = out->escapes == HBP__ESCAPE_ASCII, foreign = ascii && !hbp__utf8(text);
    const char *plain = text; /* what has not been written yet */
    for (const char *at = text; out->status == HBP_OK;) {
        const unsigned char byte = (unsigned char)*at;
        const int bytes = foreign ? 1 : hbp__utf8_bytes(at);
        if (byte >= 0x20 && byte != '"' && byte != '\\' && bytes && (bytes == 1 || !ascii) &&
            !(foreign && byte > 0x7e)) {
            at += bytes;
            continue;
        }
        hbp__json_put_bytes(out, plain, at - plain);
        if (!byte)
            break;
        if (foreign && (byte < 0x20 || byte > 0x7e))
            hbp__json_put(out, "?");
        else
            put_escape(out, at, bytes);
        at += bytes ? bytes : 1;
        plain = at;
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

void hbp__json_put_digest(hbp__json_out *out, uint64_t digest)
{
    char text[24];
    snprintf(text, sizeof text, "\"%016" PRIx64 "\"", digest);
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

void hbp__json_put_f64(hbp__json_out *out, double value)
{
    char text[HBP__DECIMAL_BYTES] = "null";
    if (isfinite(value))
        hbp__decimal_shortest(value, text);
    hbp__json_put(out, text);
}
