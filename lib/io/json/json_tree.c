#include "io/json/json_tree.h"

#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "base/utf8.h"
#include "io/file/file_error.h"
#include "io/json/json_scan.h"

#define FIRST_VALUES 64

typedef struct parsing {
    hbp_context *context;
    hbp__document *out;
    hbp__json_scan scan;
    uint64_t values; /* so far */
    uint64_t room;
    uint64_t open[HBP__JSON_TREE_DEPTH]; /* the lists and maps that have not ended */
    int depth;
} parsing;

/* NULL when memory is short, which has then been said. */
static hbp__value *add_value(parsing *p, hbp__kind kind)
{
    if (p->values == p->room) {
        const uint64_t room = p->room ? 2 * p->room : FIRST_VALUES;
        hbp__value *larger = hbp__renew(&p->out->memory, p->out->values, room, sizeof *larger);
        if (!larger) {
            hbp__fail_memory(p->context, "JSON");
            return NULL;
        }
        p->out->values = larger;
        p->room = room;
    }
    hbp__value *value = &p->out->values[p->values++];
    *value = (hbp__value){.kind = kind, .span = 1};
    return value;
}

/* The string that was read, which stays where it is; texts go on behind it. There is room: a string has two
 * quotes around it, and no escape is shorter than what it stands for. */
static hbp_status add_text(parsing *p)
{
    hbp__json_scan *scan = &p->scan;
    scan->text[scan->bytes] = '\0';
    if (!hbp__utf8(scan->text))
        return hbp__json_fail(scan, "a string is not UTF-8");
    hbp__value *value = add_value(p, HBP__TEXT);
    if (!value)
        return HBP_E_NO_MEMORY;
    value->count = (uint32_t)scan->bytes;
    value->of.text = scan->text;
    scan->text += scan->bytes + 1;
    scan->room -= scan->bytes + 1;
    return HBP_OK;
}

static hbp_status add_number(parsing *p)
{
    const hbp__json_scan *scan = &p->scan;
    int whole = 1;
    for (int64_t i = 0; i < scan->bytes; i++)
        whole = whole && (scan->text[i] == '-' || (scan->text[i] >= '0' && scan->text[i] <= '9'));
    hbp__value *value = add_value(p, whole ? HBP__WHOLE : HBP__REAL);
    if (!value)
        return HBP_E_NO_MEMORY;
    if (whole ? hbp__read_i64(scan->text, scan->bytes, &value->of.whole) == 1
              : hbp__read_decimal(scan->text, scan->bytes, &value->of.real))
        return HBP_OK;
    return hbp__json_fail(scan, "a number is too large");
}

static hbp_status add_scalar(parsing *p)
{
    HBP__TRY(hbp__json_scalar(&p->scan));
    if (p->scan.kind == HBP__JSON_STRING)
        return add_text(p);
    if (p->scan.kind == HBP__JSON_NUMBER)
        return add_number(p);
    const char first = p->scan.text[0]; /* null, true or false */
    hbp__value *value = add_value(p, first == 'n' ? HBP__NOTHING : HBP__BOOLEAN);
    if (!value)
        return HBP_E_NO_MEMORY;
    value->of.whole = first == 't';
    return HBP_OK;
}

/* The list or map that was opened last is whole. */
static hbp_status close_container(parsing *p)
{
    hbp__value *value = &p->out->values[p->open[--p->depth]];
    value->span = p->values - p->open[p->depth];
    hbp__json_take(&p->scan);
    if (value->kind == HBP__LIST)
        return HBP_OK;
    const char *key;
    HBP__TRY(hbp__value_twice(p->context, value, &key));
    if (!key)
        return HBP_OK;
    char printable[64], text[128];
    hbp__printable(printable, sizeof printable, key);
    snprintf(text, sizeof text, "an object that ends here has the key '%s' twice", printable);
    return hbp__json_fail(&p->scan, text);
}

/* A value begins; *ended says that it is over, too. */
static hbp_status begin_value(parsing *p, int *ended)
{
    int byte;
    HBP__TRY(hbp__json_next(&p->scan, &byte));
    *ended = byte != '{' && byte != '[';
    if (*ended)
        return add_scalar(p);
    if (p->depth == HBP__JSON_TREE_DEPTH)
        return hbp__json_fail(&p->scan, "values nest more than 64 deep");
    p->open[p->depth++] = p->values;
    if (!add_value(p, byte == '{' ? HBP__MAP : HBP__LIST))
        return HBP_E_NO_MEMORY;
    hbp__json_take(&p->scan);
    int close = byte == '{' ? '}' : ']';
    HBP__TRY(hbp__json_next(&p->scan, &byte));
    *ended = byte == close;
    return *ended ? close_container(p) : HBP_OK;
}

/* Behind a value: what it was the last of ends. *more says that another one follows. */
static hbp_status end_value(parsing *p, int *more)
{
    int byte;
    for (*more = 0; p->depth && !*more;) {
        const int map = p->out->values[p->open[p->depth - 1]].kind == HBP__MAP;
        HBP__TRY(hbp__json_next(&p->scan, &byte));
        *more = byte == ',';
        if (*more)
            hbp__json_take(&p->scan);
        else if (byte == (map ? '}' : ']'))
            HBP__TRY(close_container(p));
        else
            return hbp__json_fail(&p->scan, map ? "a comma or } is missing" : "a comma or ] is missing");
    }
    return HBP_OK;
}

/* In a map, the key of the value to come. */
static hbp_status begin_member(parsing *p)
{
    hbp__value *container = p->depth ? &p->out->values[p->open[p->depth - 1]] : NULL;
    if (!container)
        return HBP_OK;
    container->count++;
    if (container->kind == HBP__LIST)
        return HBP_OK;
    HBP__TRY(hbp__json_key(&p->scan));
    return add_text(p);
}

static hbp_status parse_values(parsing *p)
{
    int byte, ended, more = 1;
    while (more) {
        HBP__TRY(begin_member(p));
        HBP__TRY(begin_value(p, &ended));
        if (ended)
            HBP__TRY(end_value(p, &more));
    }
    HBP__TRY(hbp__json_next(&p->scan, &byte));
    return byte < 0 ? HBP_OK : hbp__json_fail(&p->scan, "something follows the value");
}

hbp_status hbp__json_tree(hbp_context *context, const char *name, const char *text, int64_t bytes,
                          hbp__document *out)
{
    return hbp__json_tree_of(context, name, text, bytes, HBP__JSON_MOST, out);
}

hbp_status hbp__json_tree_of(hbp_context *context, const char *name, const char *text, int64_t bytes,
                             int64_t most, hbp__document *out)
{
    parsing p = {.context = context, .out = out};
    *out = (hbp__document){.memory = context->memory};
    if (bytes < 0)
        return hbp__fail(context, HBP_E_INVALID, "bytes is %lld; it must be at least 0", (long long)bytes);
    if (bytes > most)
        return hbp__fail(context, HBP_E_FORMAT, "%s has %lld bytes; at most %lld", name, (long long)bytes,
                         (long long)most);
    out->texts = hbp__new(&context->memory, (uint64_t)bytes + 1, 1);
    if (!out->texts)
        return hbp__fail_memory(context, "JSON");
    hbp__json_begin_text(&p.scan, context, name, bytes ? text : "", bytes);
    p.scan.text = out->texts;
    p.scan.room = bytes + 1;
    hbp_status status = parse_values(&p);
    if (status == HBP_OK && out->values->kind != HBP__MAP)
        status = hbp__fail(context, HBP_E_FORMAT, "%s is not a JSON object", name);
    if (status < 0)
        hbp__document_free(out);
    return status;
}
