#include "io/file/zstd.h"

#ifdef HBP_HAS_ZSTD
/* The hooks for memory stand behind it; shared libraries export them. */
#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>
#include <zstd_errors.h>
#endif

int hbp__zstd_begins(const unsigned char *data, int64_t bytes)
{
    if (bytes < 4)
        return 0;
    uint32_t magic = data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16 | (uint32_t)data[3] << 24;
    return magic == 0xfd2fb528 || (magic & 0xfffffff0) == 0x184d2a50;
}

#ifdef HBP_HAS_ZSTD

static void *zstd_alloc(void *memory, size_t bytes)
{
    return hbp__new(memory, bytes, 1);
}

static void zstd_free(void *memory, void *block)
{
    hbp__delete(memory, block);
}

hbp_status hbp__zstd_open(hbp__zstd *zstd)
{
    zstd->z = ZSTD_createDCtx_advanced((ZSTD_customMem){zstd_alloc, zstd_free, &zstd->context->memory});
    if (!zstd->z)
        return hbp__fail_memory(zstd->context, "zstd");
    size_t answer = ZSTD_DCtx_setParameter(zstd->z, ZSTD_d_windowLogMax, HBP__ZSTD_WINDOW_LOG);
    if (ZSTD_isError(answer))
        return hbp__fail(zstd->context, HBP_E_INTERNAL, "zstd answers '%s'", ZSTD_getErrorName(answer));
    return HBP_OK;
}

void hbp__zstd_close(hbp__zstd *zstd)
{
    ZSTD_freeDCtx(zstd->z);
    zstd->z = NULL;
}

static hbp_status fail_unpack(const hbp__zstd *zstd, size_t answer, int64_t at)
{
    ZSTD_ErrorCode code = ZSTD_getErrorCode(answer);
    if (code == ZSTD_error_memory_allocation)
        return hbp__fail_memory(zstd->context, "zstd");
    if (code == ZSTD_error_frameParameter_windowTooLarge)
        return hbp__fail(zstd->context, HBP_E_FORMAT,
                         "%s wants a zstd window of more than %d MiB; read what `zstd -dc --long=31` writes",
                         zstd->name, (1 << HBP__ZSTD_WINDOW_LOG) >> 20);
    if (code == ZSTD_error_dictionary_wrong)
        return hbp__fail(
            zstd->context, HBP_E_FORMAT,
            "%s wants the dictionary that it was compressed with; read what `zstd -dc -D` writes",
            zstd->name);
    if (code == ZSTD_error_prefix_unknown && !zstd->in_frame)
        return hbp__fail(zstd->context, HBP_E_FORMAT,
                         "%s: bytes after the end of the zstd data, at byte %lld", zstd->name, (long long)at);
    return hbp__fail(zstd->context, HBP_E_FORMAT, "%s: damaged zstd data near byte %lld", zstd->name,
                     (long long)at);
}

hbp_status hbp__zstd_unpack(hbp__zstd *zstd, unsigned char *to, int64_t room, int64_t stored, int64_t *got)
{
    ZSTD_inBuffer in = {zstd->data, (size_t)zstd->unused, 0};
    ZSTD_outBuffer out = {to, (size_t)room, 0};
    size_t answer = ZSTD_decompressStream(zstd->z, &out, &in);
    if (ZSTD_isError(answer))
        return fail_unpack(zstd, answer, stored - zstd->unused + (int64_t)in.pos);
    zstd->data += in.pos;
    zstd->unused -= (int64_t)in.pos;
    zstd->in_frame = answer != 0;
    zstd->has_more = answer != 0 && out.pos == out.size;
    *got = (int64_t)out.pos;
    return HBP_OK;
}

#else

static hbp_status fail_absent(const hbp__zstd *zstd)
{
    return hbp__fail(zstd->context, HBP_E_SYSTEM,
                     "%s is compressed with zstd, and this build has no zstd: install libzstd-dev and build "
                     "again, or read what `zstd -dc` writes",
                     zstd->name);
}

hbp_status hbp__zstd_open(hbp__zstd *zstd)
{
    return fail_absent(zstd);
}

void hbp__zstd_close(hbp__zstd *zstd)
{
    (void)zstd;
}

hbp_status hbp__zstd_unpack(hbp__zstd *zstd, unsigned char *to, int64_t room, int64_t stored, int64_t *got)
{
    (void)to;
    (void)room;
    (void)stored;
    *got = 0;
    return fail_absent(zstd);
}

#endif
