#include "io/json/json_tree.h"

#include <math.h>
#include <string.h>

#include "io/file/atomic_file.h"
#include "io/file/file_error.h"

/* Refuses what nests too deep, before anything recurses. Brackets in strings do not count. O(bytes). */
static hbp_status check_depth(hbp_context *context, const char *name, const char *text, int64_t bytes)
{
    int64_t depth = 0, most = 0, line = 1, at = 0;
    int quoted = 0;
    for (int64_t i = 0; i < bytes; i++) {
        char c = text[i];
        line += c == '\n' && most <= HBP__JSON_TREE_DEPTH;
        if (quoted) {
            i += c == '\\';
            quoted = c != '"' && c != '\n'; /* no string goes on over a line */
            continue;
        }
        quoted = c == '"';
        depth += (c == '[' || c == '{') - (c == ']' || c == '}');
        most = depth > most ? depth : most;
        at = most > HBP__JSON_TREE_DEPTH && !at ? line : at;
    }
    if (most > HBP__JSON_TREE_DEPTH)
        return hbp__fail(context, HBP_E_FORMAT, "%.100s, line %lld: values nest %lld deep; at most %d", name,
                         (long long)at, (long long)most, HBP__JSON_TREE_DEPTH);
    return HBP_OK;
}

hbp_status hbp__json_tree(hbp_context *context, const char *name, const char *text, int64_t bytes,
                          json_t **out)
{
    return hbp__json_tree_of(context, name, text, bytes, HBP__JSON_MOST, out);
}

hbp_status hbp__json_tree_of(hbp_context *context, const char *name, const char *text, int64_t bytes,
                             int64_t most, json_t **out)
{
    *out = NULL;
    if (bytes < 0)
        return hbp__fail(context, HBP_E_INVALID, "bytes is %lld; it must be at least 0", (long long)bytes);
    if (bytes > most)
        return hbp__fail(context, HBP_E_FORMAT, "%.100s has %lld bytes; at most %lld", name, (long long)bytes,
                         (long long)most);
    HBP__TRY(check_depth(context, name, text, bytes));
    json_error_t error;
    json_t *root = json_loadb(bytes ? text : "", (size_t)bytes, JSON_REJECT_DUPLICATES, &error);
    if (!root && json_error_code(&error) == json_error_out_of_memory)
        return hbp__fail_memory(context, "JSON");
    if (!root) {
        char what[JSON_ERROR_TEXT_LENGTH];
        hbp__printable(what, sizeof what, error.text);
        return hbp__fail(context, HBP_E_FORMAT, "%.100s, line %d: %s", name, error.line < 1 ? 1 : error.line,
                         what);
    }
    if (!json_is_object(root)) {
        json_decref(root);
        return hbp__fail(context, HBP_E_FORMAT, "%.100s is not a JSON object", name);
    }
    *out = root;
    return HBP_OK;
}

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
static hbp_status print_tree(hbp_context *context, const json_t *root, const char *what, size_t digits,
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
    HBP__TRY(print_tree(context, root, what, 15, text, bytes));
    json_t *again = json_loadb(*text, *bytes, 0, NULL);
    int same = again && json_equal(root, again);
    json_decref(again);
    if (same)
        return HBP_OK;
    hbp__delete(&context->memory, *text);
    return print_tree(context, root, what, 17, text, bytes);
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
