/* msgpack by msgpack-c: what the library writes is read by it, and what the library reads is written by it.
 */
#ifndef HBP_TESTS_UNPACKED_H
#define HBP_TESTS_UNPACKED_H

#include <msgpack.h>
#include <string.h>

#include "io/msgpack/msgpack_buffer.h"

/* The value under `key` of a map; NULL when there is none, or no map. */
static inline const msgpack_object *unpacked_find(const msgpack_object *map, const char *key)
{
    if (!map || map->type != MSGPACK_OBJECT_MAP)
        return NULL;
    for (uint32_t i = 0; i < map->via.map.size; i++) {
        const msgpack_object_kv *pair = &map->via.map.ptr[i];
        if (pair->key.type == MSGPACK_OBJECT_STR && pair->key.via.str.size == strlen(key) &&
            memcmp(pair->key.via.str.ptr, key, strlen(key)) == 0)
            return &pair->val;
    }
    return NULL;
}

/* The bytes of the column under `key`; NULL when it is not of `bytes` bytes. */
static inline const void *unpacked_column(const msgpack_object *map, const char *key, size_t bytes)
{
    const msgpack_object *data = unpacked_find(unpacked_find(map, key), "data");
    return data && data->type == MSGPACK_OBJECT_BIN && data->via.bin.size == bytes ? data->via.bin.ptr : NULL;
}

static inline int unpacked_append(void *user, const char *data, size_t bytes)
{
    uint8_t *at = hbp__buffer_extend(user, bytes);
    if (at && bytes)
        memcpy(at, data, bytes);
    return at ? 0 : -1;
}

static inline void unpacked_text(msgpack_packer *packer, const char *text)
{
    msgpack_pack_str(packer, strlen(text));
    msgpack_pack_str_body(packer, text, strlen(text));
}

/* A packer that appends to the buffer. */
static inline msgpack_packer unpacked_packer(hbp__buffer *buffer)
{
    msgpack_packer packer;
    msgpack_packer_init(&packer, buffer, unpacked_append);
    return packer;
}

#endif
