#include "io/value/value_out.h"

#include <math.h>

#include "base/decimal.h"
#include "base/number.h"
#include "io/file/atomic_file.h"

static void put_line(hbp__value_out *out)
{
    hbp__json_put_bytes(&out->json, "\n                ", 1 + 2 * out->depth);
}

/* Before a key, or a value in a list: what parts it from the one before. */
static void begin_item(hbp__value_out *out)
{
    if (!out->lines || !out->depth)
        return;
    /* The sign of `left` tells the first. */
    if (out->left[out->depth - 1] < 0)
        out->left[out->depth - 1] = -out->left[out->depth - 1];
    else
        hbp__json_put(&out->json, out->depth > out->lines ? ", " : ",");
    if (out->depth <= out->lines)
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
        if (!out->lines)
            continue;
        if (out->depth < out->lines)
            put_line(out);
        hbp__json_put(&out->json, out->map[out->depth] ? "}" : "]");
    }
    if (out->lines && !out->depth)
        hbp__json_put(&out->json, "\n");
}

static void open_container(hbp__value_out *out, int64_t count, int map)
{
    begin_value(out);
    if (out->lines)
        hbp__json_put(&out->json, map ? "{" : "[");
    else
        (map ? hbp__pack_map : hbp__pack_list)(out->json.buffer, (uint64_t)count);
    if (!count) {
        if (out->lines)
            hbp__json_put(&out->json, map ? "}" : "]");
        end_value(out);
        return;
    }
    if (out->depth == HBP__VALUE_DEPTH) {
        out->json.buffer->failed = 1;
        return;
    }
    out->left[out->depth] = out->lines ? -count : count;
    out->map[out->depth++] = map;
}

void hbp__put_map(hbp__value_out *out, int64_t count)
{
    open_container(out, count, 1);
}

void hbp__put_list(hbp__value_out *out, int64_t count)
{
    open_container(out, count, 0);
}

static void put_text(hbp__value_out *out, const char *text)
{
    if (out->lines)
        hbp__json_put_string(&out->json, text);
    else
        hbp__pack_text(out->json.buffer, text);
}

void hbp__put_key(hbp__value_out *out, const char *key)
{
    begin_item(out);
    put_text(out, key);
    if (out->lines)
        hbp__json_put(&out->json, ": ");
}

void hbp__put_text(hbp__value_out *out, const char *text)
{
    begin_value(out);
    put_text(out, text);
    end_value(out);
}

void hbp__put_i64(hbp__value_out *out, int64_t value)
{
    begin_value(out);
    if (out->lines)
        hbp__json_put_i64(&out->json, value);
    else
        hbp__pack_i64(out->json.buffer, value);
    end_value(out);
}

static void put_real(hbp__value_out *out, double value)
{
    char text[HBP__DECIMAL_BYTES];
    double back;
    int bytes = hbp__decimal_print(value, out->digits ? out->digits : 17, text);
    out->lossy |= !hbp__read_decimal(text, bytes, &back) || back != value;
    hbp__json_put(&out->json, text);
}

void hbp__put_real(hbp__value_out *out, double value)
{
    begin_value(out);
    if (!out->lines)
        hbp__pack_f64(out->json.buffer, value);
    /* Below 2^53 every whole number is a double; -0 is not the whole number 0. */
    else if (fabs(value) < 9007199254740992.0 && value == floor(value) && !(value == 0 && signbit(value)))
        hbp__json_put_i64(&out->json, (int64_t)value);
    else
        put_real(out, value);
    end_value(out);
}

hbp_status hbp__json_save(hbp_context *context, const char *what,
                          void (*put)(hbp__value_out *out, const void *object), const void *object,
                          const char *path)
{
    hbp__buffer buffer = {.memory = context->memory};
    int lossy = 1;
    for (int digits = 15; lossy && digits <= 17; digits += 2) {
        hbp__value_out out = {.json = {.context = context, .buffer = &buffer, .escapes = HBP__ESCAPE_ASCII},
                              .lines = HBP__LINES_ALL,
                              .digits = digits};
        hbp__buffer_clear(&buffer);
        put(&out, object);
        lossy = out.lossy && !buffer.failed;
    }
    hbp_status status = buffer.failed ? hbp__fail_memory(context, what)
                                      : hbp__atomic_save(context, path, buffer.data, (int64_t)buffer.bytes);
    hbp__buffer_free(&buffer);
    return status;
}
