#include "io/pipeline/layer_rows.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "io/json/json_tree.h"
#include "io/lengths/length_rows.h"
#include "io/text/columns.h"

#define MOST_LAYERS 1000000

static const char *const names[] = {
#define NAME(column) #column,
    HBP__LAYER_COLUMNS(NAME)
#undef NAME
        "kind",
    "cut_kind", "name"};

static int is_text(const char *text, int64_t bytes, const char *word)
{
    return strlen(word) == (size_t)bytes && memcmp(text, word, (size_t)bytes) == 0;
}

int32_t hbp__layer_field(const char *name, int64_t bytes, double *unit)
{
    return hbp__column_find(names, HBP__LAYER_FIELDS, HBP__LAYER_KIND, name, bytes, unit);
}

hbp_status hbp__layer_check_name(const hbp__layer_rows *rows, int64_t line, const char *name, int64_t bytes)
{
    char raw[48], shown[48];
    if (!hbp__column_has_unit(name, bytes))
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
    hbp__column_trim(&text, &bytes);
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
    int read = hbp__column_number(text, bytes, unit, &row->value[field]);
    if (!read)
        return bad_value(rows, line, name, text, bytes, "it is a number from 0 up");
    if (read < 0)
        return bad_value(rows, line, name, text, bytes, "it is at most 2^62 ns or bytes");
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
