#include "io/graph/value_out.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define OUTER 2 /* depths whose values have lines of their own */

static void put_bytes(hbp__value_out *out, const char *text, size_t bytes)
{
    uint8_t *at = hbp__buffer_extend(&out->buffer, bytes);
    if (at && bytes)
        memcpy(at, text, bytes);
}

static void put_line(hbp__value_out *out)
{
    put_bytes(out, "\n                ", 1 + 2 * (size_t)out->depth);
}

/* Before a key, or a value in a list: what parts it from the one before. */
static void begin_item(hbp__value_out *out)
{
    if (!out->json || !out->depth)
        return;
    /* The sign of `left` tells the first. */
    if (out->left[out->depth - 1] < 0)
        out->left[out->depth - 1] = -out->left[out->depth - 1];
    else
        put_bytes(out, ", ", out->depth > OUTER ? 2 : 1);
    if (out->depth <= OUTER)
        put_line(out);
}

static void begin_value(hbp__value_out *out)
{
    if (out->depth && !out->map[out->depth - 1])
        begin_item(out);
}

/* After a value: ends what it was the last of. */
static void end_value(hbp__value_out *out)
{
    while (out->depth && --out->left[out->depth - 1] == 0) {
        out->depth--;
        if (!out->json)
            continue;
        if (out->depth < OUTER)
            put_line(out);
        put_bytes(out, out->map[out->depth] ? "}" : "]", 1);
    }
    if (out->json && !out->depth)
        put_bytes(out, "\n", 1);
}

static void open_container(hbp__value_out *out, int64_t count, int map)
{
    begin_value(out);
    if (out->json) {
        put_bytes(out, map ? "{" : "[", 1);
    } else {
        msgpack_packer packer = hbp__buffer_packer(&out->buffer);
        (map ? msgpack_pack_map : msgpack_pack_array)(&packer, (size_t)count);
    }
    if (!count) {
        if (out->json)
            put_bytes(out, map ? "}" : "]", 1);
        end_value(out);
        return;
    }
    if (out->depth == HBP__VALUE_DEPTH) {
        out->buffer.failed = 1;
        return;
    }
    out->left[out->depth] = out->json ? -count : count;
    out->map[out->depth++] = map;
}

void hbp__value_map(hbp__value_out *out, int64_t count)
{
    open_container(out, count, 1);
}

void hbp__value_list(hbp__value_out *out, int64_t count)
{
    open_container(out, count, 0);
}

static void put_text(hbp__value_out *out, const char *text)
{
    if (!out->json) {
        msgpack_packer packer = hbp__buffer_packer(&out->buffer);
        hbp__pack_text(&packer, text);
        return;
    }
    put_bytes(out, "\"", 1);
    for (size_t plain; *text; text += plain) {
        plain = strcspn(text, "\"\\");
        put_bytes(out, text, plain);
        for (; text[plain] == '"' || text[plain] == '\\'; plain++) {
            put_bytes(out, "\\", 1);
            put_bytes(out, text + plain, 1);
        }
    }
    put_bytes(out, "\"", 1);
}

void hbp__value_key(hbp__value_out *out, const char *key)
{
    begin_item(out);
    put_text(out, key);
    if (out->json)
        put_bytes(out, ": ", 2);
}

void hbp__value_text(hbp__value_out *out, const char *text)
{
    begin_value(out);
    put_text(out, text);
    end_value(out);
}

void hbp__value_i64(hbp__value_out *out, int64_t value)
{
    begin_value(out);
    if (out->json) {
        char text[32];
        put_bytes(out, text, (size_t)snprintf(text, sizeof text, "%" PRId64, value));
    } else {
        msgpack_packer packer = hbp__buffer_packer(&out->buffer);
        msgpack_pack_int64(&packer, value);
    }
    end_value(out);
}
