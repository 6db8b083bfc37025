#include "io/json/json_tree.h"

#include <stdio.h>
#include <string.h>

void hbp__printable(char *to, int64_t room, const char *text)
{
    int64_t i = 0;
    for (; i < room - 1 && text[i]; i++)
        to[i] = text[i] >= 0x20 && text[i] < 0x7f ? text[i] : '?';
    to[i] = '\0';
}

const char *hbp__file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

hbp_status hbp__blame_file(hbp_context *context, const char *name, hbp_status status)
{
    if (status != HBP_E_INVALID && status != HBP_E_OVERFLOW && status != HBP_E_FORMAT)
        return status;
    char message[HBP__MESSAGE_BYTES];
    snprintf(message, sizeof message, "%s", context->message);
    return hbp__fail(context, HBP_E_FORMAT, "%.100s: %s", name, message);
}

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
