#include "io/layer_rows.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/number.h"
#include "io/json_tree.h"
#include "io/length_rows.h"

#define MOST_LAYERS 1000000

static const char *const names[] = {
#define NAME(column) #column,
    HBP__LAYER_COLUMNS(NAME)
#undef NAME
        "kind",
    "cut_kind", "name"};

static const struct {
    const char *of;   /* names that end so ... */
    const char *unit; /* may end so instead */
    double factor;
} units[] = {{"_ns", "_us", 1e3},      {"_ns", "_ms", 1e6},         {"_ns", "_s", 1e9},
             {"_bytes", "_kib", 1024}, {"_bytes", "_mib", 1048576}, {"_bytes", "_gib", 1073741824}};

static int is_text(const char *text, int64_t bytes, const char *word)
{
    return strlen(word) == (size_t)bytes && memcmp(text, word, (size_t)bytes) == 0;
}

/* Whether the text is `name` with its ending `of` replaced by `unit`. */
static int is_converted(const char *text, int64_t bytes, const char *name, const char *of, const char *unit)
{
    int64_t stem = (int64_t)strlen(name) - (int64_t)strlen(of);
    return stem > 0 && strcmp(name + stem, of) == 0 && bytes > stem &&
           memcmp(text, name, (size_t)stem) == 0 && is_text(text + stem, bytes - stem, unit);
}

int32_t hbp__layer_field(const char *name, int64_t bytes, double *unit)
{
    *unit = 1;
    for (int32_t field = 0; field < HBP__LAYER_FIELDS; field++)
        if (is_text(name, bytes, names[field]))
            return field;
    for (size_t u = 0; u < sizeof units / sizeof *units; u++)
        for (int32_t field = 0; field < HBP__LAYER_KIND; field++)
            if (is_converted(name, bytes, names[field], units[u].of, units[u].unit)) {
                *unit = units[u].factor;
                return field;
            }
    return -1;
}

hbp_status hbp__layer_check_name(const hbp__layer_rows *rows, int64_t line, const char *name, int64_t bytes)
{
    char raw[48], shown[48];
    int ends = 0;
    for (size_t u = 0; u < sizeof units / sizeof *units; u++) {
        int64_t of = (int64_t)strlen(units[u].of), unit = (int64_t)strlen(units[u].unit);
        ends |= bytes > of && is_text(name + bytes - of, of, units[u].of);
        ends |= bytes > unit && is_text(name + bytes - unit, unit, units[u].unit);
    }
    if (!ends)
        return HBP_OK;
    int64_t length = bytes < (int64_t)sizeof raw - 1 ? bytes : (int64_t)sizeof raw - 1;
    memcpy(raw, name, (size_t)length);
    raw[length] = '\0';
    hbp__printable(shown, sizeof shown, raw);
    return hbp__fail(
        rows->context, HBP_E_FORMAT,
        "%s, line %lld: no column of layers is called '%s'; a time or a size of that name would count "
        "for nothing",
        hbp__stream_name(rows->in), (long long)line, shown);
}

const char *hbp__layer_field_name(int32_t field)
{
    return names[field];
}

static hbp_status bad_value(const hbp__layer_rows *rows, int64_t line, const char *name, const char *text,
                            int64_t bytes, const char *limit)
{
    char raw[48], shown[48];
    int64_t length = bytes < (int64_t)sizeof raw - 1 ? bytes : (int64_t)sizeof raw - 1;
    memcpy(raw, text, (size_t)length);
    raw[length] = '\0';
    hbp__printable(shown, sizeof shown, raw);
    return hbp__fail(rows->context, HBP_E_FORMAT, "%s, line %lld: %s is '%s'; %s", hbp__stream_name(rows->in),
                     (long long)line, name, shown, limit);
}

/* language, vision, fixed, or their numbers. */
static int read_kind(const char *text, int64_t bytes, int64_t *out)
{
    static const char *const kinds[] = {"language", "vision", "fixed"};
    for (int64_t k = 0; k < HBP_LAYER_KINDS; k++)
        if (is_text(text, bytes, kinds[k])) {
            *out = k;
            return 1;
        }
    return hbp__parse_i64(text, bytes, out) == 1 && *out >= 0 && *out < HBP_LAYER_KINDS;
}

hbp_status hbp__layer_put(const hbp__layer_rows *rows, int64_t line, int32_t field, double unit,
                          const char *name, const char *text, int64_t bytes, hbp__layer_row *row)
{
    double number;
    while (bytes && (*text == ' ' || *text == '\t'))
        text++, bytes--;
    while (bytes && (text[bytes - 1] == ' ' || text[bytes - 1] == '\t'))
        bytes--;
    if (row->seen >> field & 1)
        return hbp__fail(rows->context, HBP_E_FORMAT,
                         "%s, line %lld: %s is given twice, the second time as %s",
                         hbp__stream_name(rows->in), (long long)line, names[field], name);
    row->seen |= 1u << field;
    if (field == HBP__LAYER_NAME) {
        int64_t length = hbp__min_i64(bytes, HBP__LAYER_NAME_BYTES - 1);
        memcpy(row->name, text, (size_t)length);
        row->name[length] = '\0';
        return HBP_OK;
    }
    if (field == HBP__LAYER_KIND || field == HBP__LAYER_CUT_KIND) {
        if (read_kind(text, bytes, &row->value[field]))
            return HBP_OK;
        return bad_value(rows, line, name, text, bytes, "it is language, vision, fixed, or 0, 1, 2");
    }
    if (hbp__read_whole(text, bytes, &row->value[field]) && !(unit > 1))
        return HBP_OK;
    if (!hbp__read_decimal(text, bytes, &number) || number < 0)
        return bad_value(rows, line, name, text, bytes, "it is a number from 0 up");
    if (number * unit > 4611686018427387904.0)
        return bad_value(rows, line, name, text, bytes, "it is at most 2^62 ns or bytes");
    row->value[field] = hbp__round_i64(number * unit);
    return HBP_OK;
}

hbp_status hbp__layer_add(hbp__layer_rows *rows, int64_t line, const hbp__layer_row *row)
{
    if (!rows->count)
        rows->fields = row->seen;
    for (int32_t field = 0; field < HBP__LAYER_FIELDS; field++)
        if ((row->seen ^ rows->fields) >> field & 1)
            return hbp__fail(rows->context, HBP_E_FORMAT,
                             row->seen >> field & 1 ? "%s, line %lld: %s was not given for the first layer"
                                                    : "%s, line %lld: %s is missing",
                             hbp__stream_name(rows->in), (long long)line, names[field]);
    if (rows->count == MOST_LAYERS)
        return hbp__fail(rows->context, HBP_E_FORMAT, "%s, line %lld: more than %d layers",
                         hbp__stream_name(rows->in), (long long)line, MOST_LAYERS);
    if (rows->count == rows->room) {
        int64_t room = hbp__max_i64(64, 2 * rows->room);
        hbp__layer_row *more = hbp__renew(&rows->context->memory, rows->row, (uint64_t)room, sizeof *more);
        if (!more)
            return hbp__fail_memory(rows->context, "rows of layers");
        rows->row = more;
        rows->room = room;
    }
    rows->row[rows->count++] = *row;
    return HBP_OK;
}
