#include "objects.h"
#include "hbp/io.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 64

static hbp_status fail(char *message, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, OBJECTS_MESSAGE_BYTES, format, arguments);
    va_end(arguments);
    return HBP_E_INVALID;
}

/* The library's own message, where it has failed. */
static hbp_status pass(hbp_context *context, hbp_status status, char *message)
{
    if (status < 0)
        snprintf(message, OBJECTS_MESSAGE_BYTES, "%s", hbp_context_message(context));
    return status;
}

static int ends_in(const char *text, size_t length, const char *tail)
{
    return length >= strlen(tail) && memcmp(text + length - strlen(tail), tail, strlen(tail)) == 0;
}

/* One field of a list: `target` is what it belongs to. */
typedef hbp_status setter(hbp_context *context, void *target, const char *name, double value, char *message);

/* Calls `set` for each "name=number" of a list separated by commas. */
static hbp_status each_field(hbp_context *context, const char *list, setter *set, void *target, char *message)
{
    for (const char *at = list; *at;) {
        size_t length = strcspn(at, ",");
        char name[NAME_BYTES];
        const char *equals = memchr(at, '=', length);
        char *end = NULL;
        double value = equals ? strtod(equals + 1, &end) : 0;
        if (!equals || (size_t)(equals - at) >= sizeof name || end == equals + 1 || end != at + length)
            return fail(message, "'%.*s' is not FIELD=NUMBER", (int)length, at);
        memcpy(name, at, (size_t)(equals - at));
        name[equals - at] = 0;
        hbp_status status = set(context, target, name, value, message);
        if (status < 0)
            return status;
        at += length;
        at += *at == ',';
    }
    return HBP_OK;
}

static hbp_status set_model_field(hbp_context *context, void *target, const char *name, double value,
                                  char *message)
{
#define FIELD(field)                                                                                         \
    {                                                                                                        \
#field, offsetof(hbp_model_fields, field)                                                            \
    }
    static const struct {
        const char *name;
        size_t offset;
    } fields[] = {FIELD(mlp),
                  FIELD(tied_embeddings),
                  FIELD(learned_positions),
                  FIELD(layers),
                  FIELD(dense_layers),
                  FIELD(hidden),
                  FIELD(ffn),
                  FIELD(heads),
                  FIELD(kv_heads),
                  FIELD(head_dim),
                  FIELD(vocab),
                  FIELD(experts),
                  FIELD(experts_active),
                  FIELD(experts_shared),
                  FIELD(moe_ffn),
                  FIELD(mla_q_lora),
                  FIELD(mla_kv_lora),
                  FIELD(mla_nope_dim),
                  FIELD(mla_rope_dim),
                  FIELD(mla_v_dim),
                  FIELD(qkv_bias)};
#undef FIELD
    (void)context;
    if (!(value >= 0 && value <= INT32_MAX) || value != (double)(int32_t)value)
        return fail(message, "--model: %s is %g; it takes a whole number", name, value);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (strcmp(fields[i].name, name) == 0) {
            int32_t integer = (int32_t)value;
            memcpy((char *)target + fields[i].offset, &integer, sizeof integer);
            return HBP_OK;
        }
    return fail(message, "--model: there is no field '%s'", name);
}

/* A preset or a config.json, its name the first `length` characters of `text`. */
static hbp_status make_base(hbp_context *context, const char *text, size_t length, hbp_model **out,
                            char *message)
{
    char *name = malloc(length + 1);
    if (!name)
        return fail(message, "out of memory");
    memcpy(name, text, length);
    name[length] = 0;
    hbp_status status = ends_in(text, length, ".json") ? hbp_model_load(context, name, out)
                                                       : hbp_model_create_preset(context, name, out);
    free(name);
    return pass(context, status, message);
}

hbp_status objects_make_model(hbp_context *context, const char *text, hbp_model **out, char *message)
{
    *out = NULL;
    /* A comma may be part of a file's name: the whole text is one when it ends as one. */
    size_t length = ends_in(text, strlen(text), ".json") ? strlen(text) : strcspn(text, ",");
    int based = ends_in(text, length, ".json") || !memchr(text, '=', length);
    if (based && !text[length])
        return make_base(context, text, length, out, message);
    hbp_model_fields fields = {.struct_size = sizeof fields};
    if (based) {
        hbp_model *base;
        hbp_status status = make_base(context, text, length, &base, message);
        if (status < 0)
            return status;
        status = pass(context, hbp_model_get_fields(context, base, &fields), message);
        hbp_model_free(base);
        if (status < 0)
            return status;
        text += length + 1;
    }
    hbp_status status = each_field(context, text, set_model_field, &fields, message);
    return status < 0 ? status : pass(context, hbp_model_create(context, &fields, out), message);
}

/* "h100:4" is four nodes of preset h100. */
static hbp_status make_preset(hbp_context *context, const char *text, hbp_machine **out, char *message)
{
    char name[NAME_BYTES];
    size_t length = strcspn(text, ":");
    int64_t nodes = 1;
    if (length >= sizeof name)
        return fail(message, "--machine is '%s'; it takes a preset such as h100:4 or a profile.json", text);
    memcpy(name, text, length);
    name[length] = 0;
    if (text[length] == ':') {
        char *end;
        const char *number = text + length + 1;
        errno = 0;
        nodes = strtoll(number, &end, 10);
        if (end == number || *end || errno || nodes < 1 || nodes > INT32_MAX)
            return fail(message, "--machine is '%s'; ':%s' is not a number of nodes", text, number);
    }
    return pass(context, hbp_machine_create_preset(context, name, (int32_t)nodes, out), message);
}

hbp_status objects_make_machine(hbp_context *context, const char *text, hbp_machine **out, char *message)
{
    *out = NULL;
    return ends_in(text, strlen(text), ".json") ? pass(context, hbp_machine_load(context, text, out), message)
                                                : make_preset(context, text, out, message);
}

static hbp_status set_machine_field(hbp_context *context, void *target, const char *name, double value,
                                    char *message)
{
    return pass(context, hbp_machine_set_field(context, target, name, value, "given"), message);
}

hbp_status objects_set_machine(hbp_context *context, hbp_machine *machine, int64_t nodes, const char *set,
                               char *message)
{
    hbp_status status = HBP_OK;
    if (nodes > 0)
        status = set_machine_field(context, machine, "nodes", (double)nodes, message);
    return status < 0 || !set ? status : each_field(context, set, set_machine_field, machine, message);
}
