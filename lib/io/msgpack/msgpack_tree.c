#include "io/msgpack/msgpack_tree.h"

#include <math.h>
#include <string.h>

#include "base/utf8.h"
#include "io/file/file_error.h"
#include "io/msgpack/msgpack_read.h"

int hbp__msgpack_map(const char *data, int64_t bytes)
{
    unsigned first = bytes ? (unsigned char)data[0] : 0;
    return (first >= 0x80 && first < 0x90) || first == 0xde || first == 0xdf;
}

/* What the value is that JSON has not; NULL: nothing. */
static const char *foreign_part(const hbp__value *value)
{
    switch (value->kind) {
    case HBP__LARGE:
        return "a number above 2^63 - 1";
    case HBP__REAL:
        return isfinite(value->of.real) ? NULL : "a number that is not finite";
    case HBP__TEXT:
        return strlen(value->of.text) != value->count ? "a text with a zero byte"
               : !hbp__utf8(value->of.text)           ? "a text that is not UTF-8"
                                                      : NULL;
    case HBP__BYTES:
    case HBP__EXTENSION:
        return "binary data or an extension";
    case HBP__MAP:
        HBP__EACH_KEY(value, key)
        {
            if (key->kind != HBP__TEXT)
                return "a key that is no text";
        }
        return NULL;
    default:
        return NULL;
    }
}

/* In the order of the file. */
static hbp_status check_values(hbp_context *context, const char *name, const hbp__value *root)
{
    for (const hbp__value *value = root; value < hbp__value_next(root); value++) {
        const char *foreign = foreign_part(value), *twice = NULL;
        if (foreign)
            return hbp__fail(context, HBP_E_FORMAT, "%s has %s", name, foreign);
        if (value->kind == HBP__MAP)
            HBP__TRY(hbp__value_twice(context, value, &twice));
        if (!twice)
            continue;
        char printable[64];
        hbp__printable(printable, sizeof printable, twice);
        return hbp__fail(context, HBP_E_FORMAT, "%s has the key '%s' twice in one map", name, printable);
    }
    return HBP_OK;
}

hbp_status hbp__msgpack_tree(hbp_context *context, const char *name, const char *data, int64_t bytes,
                             hbp__document *out)
{
    *out = (hbp__document){.memory = context->memory};
    hbp__msgpack_extent extent;
    const uint8_t *from = (const uint8_t *)data;
    if (!hbp__msgpack_scan(from, (uint64_t)bytes, (uint64_t)bytes, &extent))
        return hbp__fail(context, HBP_E_FORMAT, "%s, byte %llu: not msgpack, or nested more than %d deep",
                         name, (unsigned long long)extent.bytes, HBP__MSGPACK_DEPTH);
    if (extent.bytes != (uint64_t)bytes)
        return hbp__fail(context, HBP_E_FORMAT, "%s, byte %llu: not msgpack, or more than one object", name,
                         (unsigned long long)extent.bytes);
    if (!hbp__msgpack_map(data, bytes))
        return hbp__fail(context, HBP_E_FORMAT, "%s is not a msgpack map", name);
    hbp_status status = hbp__msgpack_read(context, "msgpack", from, &extent, out);
    if (status == HBP_OK)
        status = check_values(context, name, out->values);
    if (status < 0)
        hbp__document_free(out);
    return status;
}
