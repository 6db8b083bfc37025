#include "io/json/json_save.h"

#include <math.h>
#include <string.h>

#include "io/file/atomic_file.h"
#include "io/json/json_tree.h"

int hbp__json_give(json_t *parent, const char *key, json_t *value)
{
    return json_object_set_new(parent, key, value) == 0;
}

json_t *hbp__json_text(const hbp__memory *memory, const char *text)
{
    json_t *value = json_string(text);
    if (value)
        return value;
    const int64_t room = (int64_t)strlen(text) + 1;
    char *copy = hbp__new(memory, (uint64_t)room, 1);
    if (!copy)
        return NULL;
    hbp__printable(copy, room, text);
    value = json_string(copy);
    hbp__delete(memory, copy);
    return value;
}

json_t *hbp__json_double(double value)
{
    /* Below 2^53 every whole number is a double; -0 is not the whole number 0. */
    if (fabs(value) < 9007199254740992.0 && value == floor(value) && !(value == 0 && signbit(value)))
        return json_integer((json_int_t)value);
    return json_real(value);
}

/* The document as text in a fresh block, each double with `digits` digits. */
static hbp_status print(hbp_context *context, const json_t *root, const char *what, size_t digits,
                        char **text, size_t *bytes)
{
    size_t flags = JSON_INDENT(2) | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(digits);
    *text = NULL;
    *bytes = json_dumpb(root, NULL, 0, flags);
    if (*bytes)
        *text = hbp__new(&context->memory, *bytes + 1, 1);
    if (!*text || json_dumpb(root, *text, *bytes, flags) != *bytes) {
        hbp__delete(&context->memory, *text);
        return hbp__fail_memory(context, what);
    }
    (*text)[(*bytes)++] = '\n';
    return HBP_OK;
}

/* 15 digits where all numbers survive them, so that 0.45 is written as that; else 17, which always do. */
static hbp_status print_shortest(hbp_context *context, const json_t *root, const char *what, char **text,
                                 size_t *bytes)
{
    HBP__TRY(print(context, root, what, 15, text, bytes));
    json_t *again = json_loadb(*text, *bytes, 0, NULL);
    int same = again && json_equal(root, again);
    json_decref(again);
    if (same)
        return HBP_OK;
    hbp__delete(&context->memory, *text);
    return print(context, root, what, 17, text, bytes);
}

hbp_status hbp__json_save(hbp_context *context, const json_t *root, const char *what, const char *path)
{
    char *text;
    size_t bytes;
    if (!root)
        return hbp__fail_memory(context, what);
    HBP__TRY(print_shortest(context, root, what, &text, &bytes));
    hbp_status status = hbp__atomic_save(context, path, text, (int64_t)bytes);
    hbp__delete(&context->memory, text);
    return status;
}
