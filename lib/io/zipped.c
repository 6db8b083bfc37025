#include "io/zipped.h"

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
    hbp__buffer_clear(to);
    uint64_t bound = deflateBound(&zip->z, (uLong)from->bytes);
    uint8_t *out = hbp__buffer_extend(to, bound);
    if (!out)
        return hbp__fail_memory(zip->context, what);
    deflateReset(&zip->z);
    zip->z.next_in = from->data;
    zip->z.avail_in = (uInt)from->bytes;
    zip->z.next_out = out;
    zip->z.avail_out = (uInt)bound;
    int answer = deflate(&zip->z, Z_FINISH);
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
    hbp__buffer_clear(to);
    uint8_t *out = hbp__buffer_extend(to, raw);
    if (!out)
        return hbp__fail_memory(zip->context, what);
    inflateReset(&zip->z);
    zip->z.next_in = (Bytef *)(uintptr_t)data;
    zip->z.avail_in = (uInt)bytes;
    zip->z.next_out = out;
    zip->z.avail_out = (uInt)raw;
    int answer = inflate(&zip->z, Z_FINISH);
    if (answer == Z_MEM_ERROR)
        return hbp__fail_memory(zip->context, "zlib");
    *whole = answer == Z_STREAM_END && !zip->z.avail_out && !zip->z.avail_in;
    return HBP_OK;
}
