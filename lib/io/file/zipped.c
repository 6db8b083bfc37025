#include "io/file/zipped.h"

#include <stdio.h>
#include <string.h>

uint32_t hbp__crc32(const uint8_t *data, uint64_t bytes)
{
    uLong crc = crc32(0, NULL, 0);
    while (bytes) {
        uInt piece = bytes < 1 << 30 ? (uInt)bytes : 1 << 30;
        crc = crc32(crc, data, piece);
        data += piece;
        bytes -= piece;
    }
    return (uint32_t)crc;
}

static voidpf zlib_alloc(voidpf user, uInt count, uInt size)
{
    return hbp__new(user, count, size);
}

static void zlib_free(voidpf user, voidpf block)
{
    hbp__delete(user, block);
}

z_stream hbp__zlib_stream(hbp__memory *memory)
{
    return (z_stream){.zalloc = zlib_alloc, .zfree = zlib_free, .opaque = memory};
}

enum { DEFLATING = 1, INFLATING = 2 };

/* Bytes that come out of zlib between two looks at a request to cancel: deflated, a few ms of the quickest
 * level and some ten of the slowest; inflated. */
#define DEFLATED_BYTES (UINT64_C(1) << 17)
#define INFLATED_BYTES HBP__TICK_BYTES

/* Calls zlib until it has no more to say, or `room` bytes for its output are used up. */
static hbp_status run_zlib(hbp__zip *zip, int (*call)(z_streamp, int), int flush, uint64_t room,
                           uint64_t piece, int *answer)
{
    for (uint64_t given = 0;;) {
        const uint64_t more = room - given < piece ? room - given : piece;
        zip->z.avail_out = (uInt)more;
        given += more;
        *answer = call(&zip->z, flush);
        if ((*answer != Z_OK && *answer != Z_BUF_ERROR) || zip->z.avail_out || given == room) {
            zip->z.avail_out += (uInt)(room - given);
            return HBP_OK;
        }
        HBP__TRY(hbp__tick(zip->context, "zlib", (int64_t)given, (int64_t)room));
    }
}

void hbp__zip_close(hbp__zip *zip)
{
    if (zip->ready == DEFLATING)
        deflateEnd(&zip->z);
    else if (zip->ready == INFLATING)
        inflateEnd(&zip->z);
    zip->ready = 0;
}

hbp_status hbp__zip_deflate(hbp__zip *zip, int level, const hbp__buffer *from, hbp__buffer *to,
                            const char *what)
{
    if (!zip->ready) {
        zip->z = hbp__zlib_stream(&zip->context->memory);
        if (deflateInit(&zip->z, level) != Z_OK)
            return hbp__fail_memory(zip->context, "zlib");
        zip->ready = DEFLATING;
    }
    int answer;
    hbp__buffer_clear(to);
    uint64_t bound = deflateBound(&zip->z, (uLong)from->bytes);
    uint8_t *out = hbp__buffer_extend(to, bound);
    if (!out)
        return hbp__fail_memory(zip->context, what);
    deflateReset(&zip->z);
    zip->z.next_in = from->data;
    zip->z.avail_in = (uInt)from->bytes;
    zip->z.next_out = out;
    /* Where nothing is compressed, blocks end with the room. */
    HBP__TRY(run_zlib(zip, deflate, Z_FINISH, bound, level ? DEFLATED_BYTES : bound, &answer));
    if (answer != Z_STREAM_END)
        return hbp__fail(zip->context, HBP_E_INTERNAL, "zlib answers %d", answer);
    to->bytes -= zip->z.avail_out;
    return HBP_OK;
}

hbp_status hbp__zip_inflate(hbp__zip *zip, const uint8_t *data, uint64_t bytes, uint64_t raw, hbp__buffer *to,
                            const char *what, int *whole)
{
    if (!zip->ready) {
        zip->z = hbp__zlib_stream(&zip->context->memory);
        if (inflateInit(&zip->z) != Z_OK)
            return hbp__fail_memory(zip->context, "zlib");
        zip->ready = INFLATING;
    }
    int answer;
    hbp__buffer_clear(to);
    uint8_t *out = hbp__buffer_extend(to, raw);
    if (!out)
        return hbp__fail_memory(zip->context, what);
    inflateReset(&zip->z);
    zip->z.next_in = (Bytef *)(uintptr_t)data;
    zip->z.avail_in = (uInt)bytes;
    zip->z.next_out = out;
    HBP__TRY(run_zlib(zip, inflate, Z_NO_FLUSH, raw, INFLATED_BYTES, &answer));
    if (answer == Z_MEM_ERROR)
        return hbp__fail_memory(zip->context, "zlib");
    *whole = answer == Z_STREAM_END && !zip->z.avail_out && !zip->z.avail_in;
    return HBP_OK;
}

hbp_status hbp__zip_entries(hbp__zip *zip, int level, const hbp__buffer *columns, hbp__buffer *packed,
                            hbp__buffer *buffer, const char *what)
{
    HBP__TRY(hbp__zip_deflate(zip, level, columns, packed, what));
    hbp__pack_named_i64(buffer, "bytes", (int64_t)columns->bytes);
    hbp__pack_named_i64(buffer, "crc32", hbp__crc32(packed->data, packed->bytes));
    hbp__pack_text(buffer, "data");
    uint8_t *at = hbp__pack_bin(buffer, packed->bytes);
    if (at)
        memcpy(at, packed->data, packed->bytes);
    return HBP_OK;
}

static hbp_status fail_column(const hbp__zip *zip, const hbp__file_bytes *file, int64_t offset,
                              const char *what, const char *wrong)
{
    char text[128];
    snprintf(text, sizeof text, "%s%s", what, wrong);
    return hbp__file_fail(zip->context, file, offset, text);
}

hbp_status hbp__unzip_entries(hbp__zip *zip, const hbp__file_bytes *file, int64_t offset, const char *what,
                              const hbp__value *map, int64_t columns, hbp__buffer *to)
{
    int64_t raw, crc;
    int whole;
    const hbp__value *data = hbp__value_find(map, "data");
    if (!hbp__unpack_i64(map, "bytes", &raw) || raw < columns || raw > columns + HBP__COLUMNS_OVERHEAD)
        return fail_column(zip, file, offset, what, "'s bytes are not those of its rows");
    if (!hbp__value_is(data, HBP__BYTES) || !hbp__unpack_i64(map, "crc32", &crc))
        return fail_column(zip, file, offset, what, " lacks 'data' or 'crc32'");
    const uint8_t *bytes = data->of.bytes;
    if (columns / HBP__INFLATE_RATIO > data->count)
        return fail_column(zip, file, offset, what, " is smaller than its rows");
    if (hbp__crc32(bytes, data->count) != (uint64_t)crc)
        return fail_column(zip, file, offset, what, "'s CRC-32 differs");
    HBP__TRY(hbp__zip_inflate(zip, bytes, data->count, (uint64_t)raw, to, what, &whole));
    return whole ? HBP_OK
                 : fail_column(zip, file, offset, what, "'s columns do not decompress to what it says");
}
