#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "report.h"

static void end_column(report_columns *c)
{
    if (c->name && !c->failed)
        json_array_append_new(c->list,
                              json_pack("{s:s,s:I}", "name", c->name, "count", (json_int_t)c->count));
    c->name = NULL;
    c->count = 0;
}

void report_column(report_columns *c, const char *name)
{
    if (!c->list)
        c->list = json_array();
    end_column(c);
    c->name = name;
}

static void put_byte(report_columns *c, unsigned char byte)
{
    if (c->used == c->room) {
        size_t room = c->room ? 2 * c->room : 65536;
        unsigned char *more = realloc(c->bytes, room);
        if (!more) {
            c->failed = 1;
            return;
        }
        c->bytes = more;
        c->room = room;
    }
    c->bytes[c->used++] = byte;
}

void report_put(report_columns *c, int64_t value)
{
    uint64_t left = value < 0 ? 0 : (uint64_t)value;
    for (c->count++; left > 127 && !c->failed; left >>= 7)
        put_byte(c, (unsigned char)(left | 128));
    put_byte(c, (unsigned char)left);
}

void report_put_signed(report_columns *c, int64_t value)
{
    report_put(c, value < 0 ? -2 * value - 1 : 2 * value);
}

/* Base64 of `bytes`, to be freed. */
static char *encode(const unsigned char *bytes, size_t count)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *text = malloc((count + 2) / 3 * 4 + 1), *at = text;
    for (size_t i = 0; text && i < count; i += 3) {
        const size_t left = count - i;
        const unsigned three = (unsigned)bytes[i] << 16 | (left > 1 ? (unsigned)bytes[i + 1] << 8 : 0) |
                               (left > 2 ? bytes[i + 2] : 0U);
        *at++ = letters[three >> 18];
        *at++ = letters[three >> 12 & 63];
        *at++ = left > 1 ? letters[three >> 6 & 63] : '=';
        *at++ = left > 2 ? letters[three & 63] : '=';
    }
    if (text)
        *at = '\0';
    return text;
}

hbp_status report_pack_columns(report_columns *c, json_t *page, char **text)
{
    end_column(c);
    uLongf bytes = compressBound((uLong)c->used);
    unsigned char *packed = malloc(bytes);
    const int is_packed =
        !c->failed && packed &&
        compress2(packed, &bytes, c->bytes ? c->bytes : (const unsigned char *)"", (uLong)c->used, 6) == Z_OK;
    *text = is_packed ? encode(packed, bytes) : NULL;
    free(packed);
    if (!*text)
        return cli_own_failure("out of memory for the page");
    json_object_set_new(page, "columns", c->list ? c->list : json_array());
    c->list = NULL;
    return HBP_OK;
}

void report_free_columns(report_columns *c)
{
    free(c->bytes);
    json_decref(c->list);
    *c = (report_columns){0};
}
