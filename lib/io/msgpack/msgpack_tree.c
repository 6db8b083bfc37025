#include "io/msgpack/msgpack_tree.h"

#include <math.h>
#include <msgpack.h>

#include "io/file/file_error.h"
#include "io/msgpack/msgpack_scan.h"

typedef struct reading {
    hbp_context *context;
    const char *name;
} reading;

int hbp__msgpack_map(const char *data, int64_t bytes)
{
    unsigned first = bytes ? (unsigned char)data[0] : 0;
    return (first >= 0x80 && first < 0x90) || first == 0xde || first == 0xdf;
}

static hbp_status convert_object(const reading *r, const msgpack_object *from, json_t **out);

static hbp_status fail_object(const reading *r, const char *what)
{
    return hbp__fail(r->context, HBP_E_FORMAT, "%.100s has %s", r->name, what);
}

static hbp_status put_member(const reading *r, json_t *map, const msgpack_object_kv *member)
{
    if (member->key.type != MSGPACK_OBJECT_STR)
        return fail_object(r, "a key that is no text");
    json_t *key, *value;
    HBP__TRY(convert_object(r, &member->key, &key));
    const char *text = json_string_value(key);
    hbp_status status = HBP_OK;
    if (json_object_get(map, text)) {
        char printable[64];
        hbp__printable(printable, sizeof printable, text);
        status = hbp__fail(r->context, HBP_E_FORMAT, "%.100s has the key '%s' twice in one map", r->name,
                           printable);
    }
    if (status == HBP_OK)
        status = convert_object(r, &member->val, &value);
    if (status == HBP_OK && json_object_set_new(map, text, value) != 0)
        status = hbp__fail_memory(r->context, "msgpack");
    json_decref(key);
    return status;
}

static hbp_status fill_map(const reading *r, const msgpack_object_map *from, json_t *map)
{
    for (uint32_t i = 0; i < from->size; i++)
        HBP__TRY(put_member(r, map, &from->ptr[i]));
    return HBP_OK;
}

static hbp_status fill_list(const reading *r, const msgpack_object_array *from, json_t *list)
{
    for (uint32_t i = 0; i < from->size; i++) {
        json_t *value;
        HBP__TRY(convert_object(r, &from->ptr[i], &value));
        if (json_array_append_new(list, value) != 0)
            return hbp__fail_memory(r->context, "msgpack");
    }
    return HBP_OK;
}

/* json_stringn asks for UTF-8, and texts with a 0 inside would end there. */
static hbp_status make_text(const reading *r, const msgpack_object_str *from, json_t **out)
{
    for (uint32_t i = 0; i < from->size; i++)
        if (!from->ptr[i])
            return fail_object(r, "a text with a zero byte");
    *out = json_stringn(from->size ? from->ptr : "", from->size);
    return *out ? HBP_OK : fail_object(r, "a text that is not UTF-8");
}

/* A value without others in it. */
static hbp_status convert_plain(const reading *r, const msgpack_object *from, json_t **out)
{
    switch (from->type) {
    case MSGPACK_OBJECT_NIL:
        *out = json_null();
        return HBP_OK;
    case MSGPACK_OBJECT_BOOLEAN:
        *out = json_boolean(from->via.boolean);
        return HBP_OK;
    case MSGPACK_OBJECT_POSITIVE_INTEGER:
        if (from->via.u64 > INT64_MAX)
            return fail_object(r, "a number above 2^63 - 1");
        *out = json_integer((json_int_t)from->via.u64);
        break;
    case MSGPACK_OBJECT_NEGATIVE_INTEGER:
        *out = json_integer(from->via.i64);
        break;
    case MSGPACK_OBJECT_FLOAT32:
    case MSGPACK_OBJECT_FLOAT64:
        if (!isfinite(from->via.f64))
            return fail_object(r, "a number that is not finite");
        *out = json_real(from->via.f64);
        break;
    case MSGPACK_OBJECT_STR:
        return make_text(r, &from->via.str, out);
    default:
        return fail_object(r, "binary data or an extension");
    }
    return *out ? HBP_OK : hbp__fail_memory(r->context, "msgpack");
}

/* As deep as hbp__msgpack_scan let through. */
static hbp_status convert_object(const reading *r, const msgpack_object *from, json_t **out)
{
    int map = from->type == MSGPACK_OBJECT_MAP;
    *out = NULL;
    if (!map && from->type != MSGPACK_OBJECT_ARRAY)
        return convert_plain(r, from, out);
    *out = map ? json_object() : json_array();
    if (!*out)
        return hbp__fail_memory(r->context, "msgpack");
    hbp_status status = map ? fill_map(r, &from->via.map, *out) : fill_list(r, &from->via.array, *out);
    if (status < 0) {
        json_decref(*out);
        *out = NULL;
    }
    return status;
}

hbp_status hbp__msgpack_tree(hbp_context *context, const char *name, const char *data, int64_t bytes,
                             json_t **out)
{
    reading r = {context, name};
    *out = NULL;
    uint64_t used = 0;
    int whole =
        bytes > 0 && hbp__msgpack_scan((const uint8_t *)data, (uint64_t)bytes, (uint64_t)bytes, &used);
    if (!whole)
        return hbp__fail(context, HBP_E_FORMAT, "%.100s, byte %llu: not msgpack, or nested more than %d deep",
                         name, (unsigned long long)used, HBP__MSGPACK_DEPTH);
    if (used != (uint64_t)bytes)
        return hbp__fail(context, HBP_E_FORMAT, "%.100s, byte %llu: not msgpack, or more than one object",
                         name, (unsigned long long)used);
    if (!hbp__msgpack_map(data, bytes))
        return hbp__fail(context, HBP_E_FORMAT, "%.100s is not a msgpack map", name);
    msgpack_unpacked unpacked;
    msgpack_unpacked_init(&unpacked);
    size_t at = 0;
    msgpack_unpack_return result = msgpack_unpack_next(&unpacked, data, (size_t)bytes, &at);
    hbp_status status = HBP_OK;
    if (result == MSGPACK_UNPACK_NOMEM_ERROR)
        status = hbp__fail_memory(context, "msgpack");
    else if (result != MSGPACK_UNPACK_SUCCESS)
        status = fail_object(&r, "bytes that are not msgpack");
    if (status == HBP_OK)
        status = convert_object(&r, &unpacked.data, out);
    msgpack_unpacked_destroy(&unpacked);
    return status;
}
