#include "base/fields.h"

#include <string.h>

#include "base/nearest.h"
#include "base/number.h"

const char *hbp__take_name(const char *text, const char *ends, char name[HBP__FIELD_NAME_BYTES])
{
    size_t length = strcspn(text, ends);
    size_t kept = length < HBP__FIELD_NAME_BYTES ? length : HBP__FIELD_NAME_BYTES - 1;
    memcpy(name, text, kept);
    name[kept] = '\0';
    return text + length;
}

hbp_status hbp__fail_in_text(hbp_context *context, hbp_status status, const char *what, const char *text)
{
    return hbp__fail(context, status, "%s '%.200s': %s", what, text, context->message);
}

/* One "FIELD=NUMBER" of `bytes` bytes. */
static hbp_status read_field(hbp_context *context, const hbp__field_names *names, const char *at,
                             int64_t bytes, hbp__field_values *out)
{
    char name[HBP__FIELD_NAME_BYTES];
    const char *number = hbp__take_name(at, "=,", name);
    if (*number != '=' || number == at)
        return hbp__fail(context, HBP_E_INVALID, "'%.*s' is not FIELD=NUMBER", (int)(bytes < 64 ? bytes : 64),
                         at);
    number++;
    int32_t i = 0;
    while (i < names->count && strcmp(names->get(i), name) != 0)
        i++;
    if (i == names->count)
        return hbp__fail(context, HBP_E_INVALID, "there is no field '%s'; the nearest is '%s'", name,
                         hbp__nearest(name, names->get, names->count));
    if (out->given >> i & 1)
        return hbp__fail(context, HBP_E_INVALID, "%s is given twice", name);
    int64_t digits = bytes - (number - at);
    if (!hbp__read_decimal(number, digits, &out->value[i]))
        return hbp__fail(context, HBP_E_INVALID, "%s is '%.*s'; it must be a finite decimal number", name,
                         (int)(digits < 64 ? digits : 64), number);
    out->given |= UINT32_C(1) << i;
    return HBP_OK;
}

hbp_status hbp__read_fields(hbp_context *context, const hbp__field_names *names, const char *text,
                            const char *at, hbp__field_values *out)
{
    *out = (hbp__field_values){0};
    for (;; at++) {
        size_t bytes = strcspn(at, ",");
        hbp_status status = read_field(context, names, at, (int64_t)bytes, out);
        if (status < 0)
            return hbp__fail_in_text(context, status, names->what, text);
        at += bytes;
        if (!*at)
            return HBP_OK;
    }
}
