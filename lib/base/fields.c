#include "base/fields.h"

#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "base/quantity.h"

/* So few names are listed beside the nearest, and so many bytes of them at most. */
enum { FEW = 12, LIST_BYTES = 360 };

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

/* "a, b, c" of get(0), ..., get(count - 1); "" where they are too many for a message. */
static void list_names(char list[LIST_BYTES], const char *(*get)(int64_t index), int64_t count)
{
    size_t at = 0;
    list[0] = '\0';
    for (int64_t i = 0; i < count; i++) {
        at += (size_t)snprintf(list + at, LIST_BYTES - at, "%s%s", i ? ", " : "", get(i));
        if (at >= LIST_BYTES) {
            list[0] = '\0';
            return;
        }
    }
}

hbp_status hbp__fail_preset(hbp_context *context, const char *what, const char *name,
                            const char *(*get)(int64_t index), int64_t count)
{
    const char *meant = hbp__resembling(name, get, count);
    char list[LIST_BYTES];
    list_names(list, get, meant && count > FEW ? 0 : count);
    if (!meant && *list)
        return hbp__fail(context, HBP_E_INVALID, "no %s preset '%.64s'; there are %s", what, name, list);
    return hbp__fail(context, HBP_E_INVALID, "no %s preset '%.64s'; the nearest is '%s'%s%s", what, name,
                     meant ? meant : hbp__nearest(name, get, count), *list ? "; there are " : "", list);
}

/* The field that a name means; NULL: none. */
static const char *meant_field(const hbp__field_names *names, const char *name)
{
    for (const hbp__other_word *o = names->others; o && o->word; o++)
        if (strcmp(o->word, name) == 0)
            return o->field;
    return hbp__resembling(name, names->get, names->count);
}

hbp_status hbp__fail_field(hbp_context *context, const hbp__field_names *names, const char *whose,
                           const char *name)
{
    const char *meant = meant_field(names, name);
    char list[LIST_BYTES];
    if (meant)
        return hbp__fail(context, HBP_E_INVALID, "%s no field '%.64s'; the nearest is '%s'", whose, name,
                         meant);
    list_names(list, names->get, names->count);
    return hbp__fail(context, HBP_E_INVALID, "%s no field '%.64s'; there are %s", whose, name, list);
}

/* One "FIELD=VALUE" of `bytes` bytes. */
static hbp_status read_field(hbp_context *context, const hbp__field_names *names, const char *at,
                             int64_t bytes, hbp__field_values *out)
{
    char name[HBP__FIELD_NAME_BYTES];
    const char *number = hbp__take_name(at, "=,", name);
    if (*number != '=' || number == at)
        return hbp__fail(context, HBP_E_INVALID, "'%.*s' is not FIELD=VALUE", (int)(bytes < 64 ? bytes : 64),
                         at);
    number++;
    int32_t i = 0;
    while (i < names->count && strcmp(names->get(i), name) != 0)
        i++;
    if (i == names->count)
        return hbp__fail_field(context, names, "there is", name);
    if (out->given >> i & 1)
        return hbp__fail(context, HBP_E_INVALID, "%s is given twice", name);
    const int64_t typed = bytes - (number - at);
    HBP__TRY(hbp__read_quantity_of(context, name, number, typed, &out->value[i]));
    if (names->is_unsigned && out->value[i] < 0) /* as it was typed, not as it was read */
        return hbp__fail(context, HBP_E_INVALID, "%s is %.*s; it must be finite and at least 0", name,
                         (int)(typed < 64 ? typed : 64), number);
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
