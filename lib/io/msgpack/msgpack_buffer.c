#include "io/msgpack/msgpack_buffer.h"

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

static int append_bytes(void *user, const char *data, size_t bytes)
{
    uint8_t *at = hbp__buffer_extend(user, bytes);
    if (!at)
        return -1;
    if (bytes)
        memcpy(at, data, bytes);
    return 0;
}

msgpack_packer hbp__buffer_packer(hbp__buffer *buffer)
{
    msgpack_packer packer;
    msgpack_packer_init(&packer, buffer, append_bytes);
    return packer;
}

void hbp__pack_text(msgpack_packer *packer, const char *text)
{
    size_t bytes = strlen(text);
    msgpack_pack_str(packer, bytes);
    msgpack_pack_str_body(packer, text, bytes);
}

void hbp__pack_named_i64(msgpack_packer *packer, const char *name, int64_t value)
{
    hbp__pack_text(packer, name);
    msgpack_pack_int64(packer, value);
}

void hbp__pack_named_double(msgpack_packer *packer, const char *name, double value)
{
    hbp__pack_text(packer, name);
    msgpack_pack_double(packer, value);
}

static uint8_t *begin_column(hbp__buffer *buffer, const char *name, const char *dtype, int64_t bytes)
{
    msgpack_packer packer = hbp__buffer_packer(buffer);
    hbp__pack_text(&packer, name);
    msgpack_pack_map(&packer, 2);
    hbp__pack_text(&packer, "dtype");
    hbp__pack_text(&packer, dtype);
    hbp__pack_text(&packer, "data");
    msgpack_pack_bin(&packer, (size_t)bytes);
    return hbp__buffer_extend(buffer, (uint64_t)bytes);
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

const msgpack_object *hbp__unpack_find(const msgpack_object *map, const char *key)
{
    if (!map || map->type != MSGPACK_OBJECT_MAP)
        return NULL;
    size_t bytes = strlen(key);
    for (uint32_t i = 0; i < map->via.map.size; i++) {
        const msgpack_object *name = &map->via.map.ptr[i].key;
        if (name->type == MSGPACK_OBJECT_STR && name->via.str.size == bytes &&
            memcmp(name->via.str.ptr, key, bytes) == 0)
            return &map->via.map.ptr[i].val;
    }
    return NULL;
}

int hbp__unpack_u64(const msgpack_object *map, const char *key, uint64_t *out)
{
    const msgpack_object *value = hbp__unpack_find(map, key);
    if (!value || value->type != MSGPACK_OBJECT_POSITIVE_INTEGER)
        return 0;
    *out = value->via.u64;
    return 1;
}

int hbp__unpack_i64(const msgpack_object *map, const char *key, int64_t *out)
{
    uint64_t value;
    if (!hbp__unpack_u64(map, key, &value) || value > INT64_MAX)
        return 0;
    *out = (int64_t)value;
    return 1;
}

int hbp__unpack_i32(const msgpack_object *map, const char *key, int32_t *out)
{
    uint64_t value;
    if (!hbp__unpack_u64(map, key, &value) || value > INT32_MAX)
        return 0;
    *out = (int32_t)value;
    return 1;
}

const uint8_t *hbp__unpack_column(const msgpack_object *map, const char *key, int64_t count, int size)
{
    const msgpack_object *column = hbp__unpack_find(map, key);
    const msgpack_object *dtype = hbp__unpack_find(column, "dtype"), *data = hbp__unpack_find(column, "data");
    if (!dtype || dtype->type != MSGPACK_OBJECT_STR || dtype->via.str.size != 3 ||
        memcmp(dtype->via.str.ptr, size == 8 ? "<i8" : "<i4", 3) != 0)
        return NULL;
    if (!data || data->type != MSGPACK_OBJECT_BIN || data->via.bin.size % (uint32_t)size ||
        data->via.bin.size / (uint32_t)size != (uint64_t)count)
        return NULL;
    return (const uint8_t *)(data->via.bin.size ? data->via.bin.ptr : "");
}

int hbp__unpack_column_i64(const msgpack_object *map, const char *key, int64_t count, int64_t *to)
{
    const uint8_t *from = hbp__unpack_column(map, key, count, 8);
    for (int64_t i = 0; from && i < count; i++)
        to[i] = (int64_t)hbp__get_le(from + 8 * i, 8);
    return from != NULL;
}

int hbp__unpack_column_i32(const msgpack_object *map, const char *key, int64_t count, int32_t *to)
{
    const uint8_t *from = hbp__unpack_column(map, key, count, 4);
    for (int64_t i = 0; from && i < count; i++)
        to[i] = (int32_t)(uint32_t)hbp__get_le(from + 4 * i, 4);
    return from != NULL;
}
