/* Makes the checksums of a changed file of a plan or a task schedule right again, so that what lies behind
 * them gets tested. */
#ifndef HBP_TESTS_RESEAL_H
#define HBP_TESTS_RESEAL_H

#include <string.h>

#include "io/file/little_endian.h"
#include "io/file/zipped.h"
#include "io/msgpack/msgpack_buffer.h"
#include "io/msgpack/msgpack_read.h"
#include "io/plan/plan_format.h"

/* Writes `crc` behind the short text `key` in [at, end), where a 32-bit number stands there. */
static inline void reseal_number(uint8_t *at, const uint8_t *end, const char *key, uint32_t crc)
{
    size_t bytes = strlen(key);
    for (; end - at > (ptrdiff_t)bytes + 6; at++)
        if (at[0] == (0xa0 | bytes) && memcmp(at + 1, key, bytes) == 0 && at[bytes + 1] == 0xce) {
            for (int i = 0; i < 4; i++)
                at[bytes + 2 + (size_t)i] = (uint8_t)(crc >> (24 - 8 * i));
            return;
        }
}

/* Whether `data` [bytes] begins with a whole object, of *used bytes. */
static inline int reseal_scan(const uint8_t *data, uint64_t bytes, uint64_t *used)
{
    hbp__msgpack_extent extent;
    int whole = hbp__msgpack_scan(data, bytes, 4096, &extent);
    *used = extent.bytes;
    return whole;
}

/* CRC-32 of a chunk's data, and the Adler-32 at the end of a stored zlib stream of one block. */
static inline void reseal_chunk(uint8_t *chunk, uint64_t bytes)
{
    hbp__document object = {.memory = hbp__memory_default()};
    hbp__msgpack_extent extent;
    if (hbp__msgpack_scan(chunk, bytes, 4096, &extent) &&
        hbp__msgpack_read(NULL, "", chunk, &extent, &object) == HBP_OK) {
        const hbp__value *data = hbp__value_find(object.values, "data");
        if (hbp__value_is(data, HBP__BYTES) && data->count > 11) {
            uint32_t size = data->count;
            uint8_t *stream = chunk + (data->of.bytes - chunk);
            if (stream[2] == 1) {
                uLong sum = adler32(1, stream + 7, size - 11);
                for (int i = 0; i < 4; i++)
                    stream[size - 4 + (uint32_t)i] = (uint8_t)(sum >> (24 - 8 * i));
            }
            reseal_number(chunk, chunk + bytes, "crc32", hbp__crc32(stream, size));
        }
    }
    hbp__document_free(&object);
}

/* Does what it can with any bytes. */
static inline void reseal(uint8_t *file, uint64_t bytes)
{
    uint64_t used, at;
    if (bytes < HBP__PLAN_TAIL_BYTES)
        return;
    uint8_t *tail = file + bytes - HBP__PLAN_TAIL_BYTES;
    uint64_t index = hbp__get_le(tail + 10, 8);
    uint64_t end = bytes - HBP__PLAN_TAIL_BYTES;
    if (index < end && reseal_scan(file, index, &used)) {
        reseal_number(file + index, tail, "header_crc32", hbp__crc32(file, used));
        for (at = used; at < index && reseal_scan(file + at, index - at, &used); at += used)
            reseal_chunk(file + at, used);
    }
    if (index < end)
        hbp__put_le(tail + 26, hbp__crc32(file + index, end - index), 4);
    hbp__put_le(tail + 30, hbp__crc32(tail, 30), 4);
}

/* The same for a file of a task schedule: header, then body. */
static inline void reseal_tasks(uint8_t *file, uint64_t bytes)
{
    uint64_t header, body;
    if (!reseal_scan(file, bytes, &header))
        return;
    reseal_number(file + header, file + bytes, "header_crc32", hbp__crc32(file, header));
    if (reseal_scan(file + header, bytes - header, &body))
        reseal_chunk(file + header, body);
}

#endif
