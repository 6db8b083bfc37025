#include "io/json/json_out.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/utf8.h"

#define NUMBER_BYTES 32

void hbp__json_put(hbp__json_out *out, const char *text)
{
    if (out->status == HBP_OK)
        out->status = hbp__atomic_write(out->context, out->file, text, (int64_t)strlen(text));
}

void hbp__json_put_escaped(hbp__json_out *out, const char *text)
{
    const char *plain = text; /* what has not been written yet */
    for (const char *at = text; out->status == HBP_OK;) {
        unsigned char byte = (unsigned char)*at;
        int bytes = hbp__utf8_bytes(at);
        if (byte >= 0x20 && byte != '"' && byte != '\\' && bytes) {
            at += bytes;
            continue;
        }
        if (at > plain)
            out->status = hbp__atomic_write(out->context, out->file, plain, at - plain);
        if (!byte)
            break;
        char escape[8];
        if (bytes)
            snprintf(escape, sizeof escape, "\\u%04x", (unsigned)byte);
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

/* The number with so many digits; whether that is it. Nothing is printed when memory is short. */
static int print_double(double value, size_t digits, char text[NUMBER_BYTES])
{
    json_t *number = json_real(value);
    size_t bytes = json_dumpb(number, text, NUMBER_BYTES - 1, JSON_ENCODE_ANY | JSON_REAL_PRECISION(digits));
    text[bytes < NUMBER_BYTES ? bytes : 0] = '\0';
    json_decref(number);
    json_t *back = json_loads(text, JSON_DECODE_ANY, NULL);
    int same = json_is_real(back) && json_real_value(back) == value;
    json_decref(back);
    return same;
}

void hbp__json_put_f64(hbp__json_out *out, double value)
{
    char text[NUMBER_BYTES] = "null";
    int same = !isfinite(value);
    for (size_t digits = 15; !same && digits <= 17; digits++)
        same = print_double(value, digits, text);
    if (same)
        hbp__json_put(out, text);
    else if (out->status == HBP_OK)
        out->status = hbp__fail_memory(out->context, "a number");
}
