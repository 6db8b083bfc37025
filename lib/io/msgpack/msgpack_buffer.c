#include "io/msgpack/msgpack_buffer.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "io/file/little_endian.h"

void hbp__buffer_free(hbp__buffer *buffer)
{
    hbp__delete(&buffer->memory, buffer->data);
    *buffer = (hbp__buffer){.memory = buffer->memory};
}

void hbp__buffer_clear(hbp__buffer *buffer)
{
    buffer->bytes = 0;
    buffer->failed = 0;
}

uint8_t *hbp__buffer_extend(hbp__buffer *buffer, uint64_t bytes)
{
    uint64_t end;
    if (buffer->failed || !hbp__add_u64(buffer->bytes, bytes, &end)) {
        buffer->failed = 1;
        return NULL;
    }
    if (end > buffer->room || !buffer->data) {
        uint64_t room = end < 2 * buffer->room ? 2 * buffer->room : end + 256;
        uint8_t *data = hbp__renew(&buffer->memory, buffer->data, room, 1);
        if (!data) {
            buffer->failed = 1;
            return NULL;
        }
        buffer->data = data;
        buffer->room = room;
    }
    uint8_t *at = buffer->data + buffer->bytes;
    buffer->bytes = end;
    return at;
}

static void put_byte(hbp__buffer *buffer, unsigned byte)
{
    uint8_t *at = hbp__buffer_extend(buffer, 1);
    if (at)
        *at = (uint8_t)byte;
}

/* A first byte and a number of `bytes` bytes, big-endian. */
static void put_head(hbp__buffer *buffer, unsigned first, uint64_t number, int bytes)
{
    uint8_t *at = hbp__buffer_extend(buffer, 1 + (uint64_t)bytes);
    for (int i = bytes; at && i; i--, number >>= 8)
        at[i] = (uint8_t)number;
    if (at)
        at[0] = (uint8_t)first;
}

/* Of a map or a list: in the first byte up to 15, else in 2 or 4 more. */
static void put_count(hbp__buffer *buffer, unsigned small, unsigned wide, uint64_t count)
{
    if (count < 16)
        put_byte(buffer, small | (unsigned)count);
    else
        put_head(buffer, wide + (count > UINT16_MAX), count, count > UINT16_MAX ? 4 : 2);
}

void hbp__pack_map(hbp__buffer *buffer, uint64_t count)
{
    put_count(buffer, 0x80, 0xde, count);
}

void hbp__pack_list(hbp__buffer *buffer, uint64_t count)
{
    put_count(buffer, 0x90, 0xdc, count);
}

/* log2 of the bytes that hold `value`: 0 to 3. */
static int width_of(uint64_t value)
{
    return value <= UINT8_MAX ? 0 : value <= UINT16_MAX ? 1 : value <= UINT32_MAX ? 2 : 3;
}

void hbp__pack_u64(hbp__buffer *buffer, uint64_t value)
{
    const int width = width_of(value);
    if (value < 0x80)
        put_byte(buffer, (unsigned)value);
    else
        put_head(buffer, 0xcc + (unsigned)width, value, 1 << width);
}

void hbp__pack_i64(hbp__buffer *buffer, int64_t value)
{
    if (value >= 0) {
        hbp__pack_u64(buffer, (uint64_t)value);
        return;
    }
    const int width = value >= INT8_MIN ? 0 : value >= INT16_MIN ? 1 : value >= INT32_MIN ? 2 : 3;
    if (value >= -32)
        put_byte(buffer, (uint8_t)value);
    else
        put_head(buffer, 0xd0 + (unsigned)width, (uint64_t)value, 1 << width);
}

void hbp__pack_f64(hbp__buffer *buffer, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_head(buffer, 0xcb, bits, 8);
}

void hbp__pack_text(hbp__buffer *buffer, const char *text)
{
    const uint64_t bytes = strlen(text);
    if (bytes < 32)
        put_byte(buffer, 0xa0 | (unsigned)bytes);
    else
        put_head(buffer, 0xd9 + (unsigned)width_of(bytes), bytes, 1 << width_of(bytes));
    uint8_t *at = hbp__buffer_extend(buffer, bytes);
    if (at && bytes)
        memcpy(at, text, bytes);
}

uint8_t *hbp__pack_bin(hbp__buffer *buffer, uint64_t bytes)
{
    put_head(buffer, 0xc4 + (unsigned)width_of(bytes), bytes, 1 << width_of(bytes));
    return hbp__buffer_extend(buffer, bytes);
}

void hbp__pack_named_i64(hbp__buffer *buffer, const char *name, int64_t value)
{
    hbp__pack_text(buffer, name);
    hbp__pack_i64(buffer, value);
}

void hbp__pack_named_double(hbp__buffer *buffer, const char *name, double value)
{
    hbp__pack_text(buffer, name);
    hbp__pack_f64(buffer, value);
}

static uint8_t *begin_column(hbp__buffer *buffer, const char *name, const char *dtype, int64_t bytes)
{
    hbp__pack_text(buffer, name);
    hbp__pack_map(buffer, 2);
    hbp__pack_text(buffer, "dtype");
    hbp__pack_text(buffer, dtype);
    hbp__pack_text(buffer, "data");
    return hbp__pack_bin(buffer, (uint64_t)bytes);
}

void hbp__pack_column_i64(hbp__buffer *buffer, const char *name, const int64_t *values, int64_t count,
                          int64_t base)
{
    uint8_t *at = begin_column(buffer, name, "<i8", count * 8);
    for (int64_t i = 0; at && i < count; i++)
        hbp__put_le(at + 8 * i, (uint64_t)(values[i] - base), 8);
}

void hbp__pack_column_i32(hbp__buffer *buffer, const char *name, const int32_t *values, int64_t count,
                          int64_t base)
{
    uint8_t *at = begin_column(buffer, name, "<i4", count * 4);
    for (int64_t i = 0; at && i < count; i++)
        hbp__put_le(at + 4 * i, (uint64_t)(values[i] - base), 4);
}

/* Not negative. */
int hbp__unpack_u64(const hbp__value *map, const char *key, uint64_t *out)
{
    const hbp__value *value = hbp__value_find(map, key);
    if (!hbp__value_is(value, HBP__LARGE) && !(hbp__value_is(value, HBP__WHOLE) && value->of.whole >= 0))
        return 0;
    *out = value->of.large;
    return 1;
}

int hbp__unpack_i64(const hbp__value *map, const char *key, int64_t *out)
{
    uint64_t value;
    if (!hbp__unpack_u64(map, key, &value) || value > INT64_MAX)
        return 0;
    *out = (int64_t)value;
    return 1;
}

int hbp__unpack_i32(const hbp__value *map, const char *key, int32_t *out)
{
    uint64_t value;
    if (!hbp__unpack_u64(map, key, &value) || value > INT32_MAX)
        return 0;
    *out = (int32_t)value;
    return 1;
}

const uint8_t *hbp__unpack_column(const hbp__value *map, const char *key, int64_t count, int size)
{
    const hbp__value *column = hbp__value_find(map, key);
    const char *dtype = hbp__value_text(hbp__value_find(column, "dtype"));
    const hbp__value *data = hbp__value_find(column, "data");
    if (!dtype || strcmp(dtype, size == 8 ? "<i8" : "<i4") != 0)
        return NULL;
    if (!hbp__value_is(data, HBP__BYTES) || data->count % (uint32_t)size ||
        data->count / (uint32_t)size != (uint64_t)count)
        return NULL;
    return data->of.bytes;
}

int hbp__unpack_column_i64(const hbp__value *map, const char *key, int64_t count, int64_t *to)
{
    const uint8_t *from = hbp__unpack_column(map, key, count, 8);
    for (int64_t i = 0; from && i < count; i++)
        to[i] = (int64_t)hbp__get_le(from + 8 * i, 8);
    return from != NULL;
}

int hbp__unpack_column_i32(const hbp__value *map, const char *key, int64_t count, int32_t *to)
{
    const uint8_t *from = hbp__unpack_column(map, key, count, 4);
    for (int64_t i = 0; from && i < count; i++)
        to[i] = (int32_t)(uint32_t)hbp__get_le(from + 4 * i, 4);
    return from != NULL;
}

void hbp__say_entry(char *text, size_t bytes, const hbp__value *map, const char *whose, const char *what,
                    const char *key)
{
    if (hbp__value_find(map, key))
        snprintf(text, bytes, "%s has a %s '%s' of another type, range or length", whose, what, key);
    else
        snprintf(text, bytes, "%s lacks the %s '%s'", whose, what, key);
}
