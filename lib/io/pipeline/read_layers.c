/* Layers out of CSV or JSON lines: values go into rows by the names of their columns, rows become columns. */
#include "io/pipeline/read_layers.h"
#include "hbp/io.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/number.h"
#include "data/pipeline/layers.h"
#include "io/file/file_error.h"
#include "io/json/json_scan.h"
#include "io/text/columns.h"
#include "io/text/csv_table.h"

#define MOST_LAYERS 1000000

/* Fields of a row: the int64 columns in the order of HBP__LAYER_COLUMNS, then these. */
#define COUNT_COLUMN(name) +1
#define FIELD_TYPE         (0 HBP__LAYER_COLUMNS(COUNT_COLUMN))
#define FIELD_CUT_TYPE     (FIELD_TYPE + 1)
#define FIELD_NAME         (FIELD_TYPE + 2)
#define FIELDS             (FIELD_TYPE + 3)

#define NAME_BYTES 64 /* longer names are cut off */

typedef struct layer_row {
    uint32_t seen; /* a bit for each field */
    int64_t value[FIELD_NAME];
    char name[NAME_BYTES];
} layer_row;

typedef struct layer_rows {
    hbp_context *context;
    hbp__stream *in;
    uint32_t fields; /* that every row has */
    int64_t count;
    int64_t room;
    layer_row *row;
} layer_rows;

static const char *const field_names[] = {
#define NAME(column) #column,
    HBP__LAYER_COLUMNS(NAME)
#undef NAME
        "type",
    "cut_type", "name"};

static int is_text(const char *text, int64_t bytes, const char *word)
{
    return strlen(word) == (size_t)bytes && memcmp(text, word, (size_t)bytes) == 0;
}

/* The field that a column's name means, and what its numbers are multiplied by: forward_us and the like are
 * converted, of sizes forms in kib, mib and gib. -1: no field's name. */
static int32_t find_field(const char *name, int64_t bytes, double *unit)
{
    return hbp__column_find(field_names, FIELDS, FIELD_TYPE, name, bytes, unit);
}

/* HBP_E_FORMAT for a name that is no field and ends in a unit of time or size: a misspelling, most likely. */
static hbp_status check_name(const layer_rows *rows, int64_t line, const char *name, int64_t bytes)
{
    char shown[48];
    /* The old names, which passed over would make every layer a language layer; the short is the long's end.
     */
    const char *old = "cut_kind", *now = "cut_type";
    int64_t skip = bytes == 4 ? 4 : 0;
    if (bytes == 8 - skip && memcmp(name, old + skip, (size_t)bytes) == 0)
        return hbp__fail(rows->context, HBP_E_FORMAT, "%s, line %lld: column '%s' is called '%s'",
                         hbp__stream_name(rows->in), (long long)line, old + skip, now + skip);
    if (!hbp__column_has_unit(name, bytes))
        return HBP_OK;
    hbp__printable_text(shown, sizeof shown, name, bytes);
    return hbp__fail(
        rows->context, HBP_E_FORMAT,
        "%s, line %lld: no column of layers is called '%s'; a time or a size of that name would count "
        "for nothing",
        hbp__stream_name(rows->in), (long long)line, shown);
}

static const char *field_name(int32_t field)
{
    return field_names[field];
}

static hbp_status bad_value(const layer_rows *rows, int64_t line, const char *name, const char *text,
                            int64_t bytes, const char *limit)
{
    char shown[48];
    hbp__printable_text(shown, sizeof shown, text, bytes);
    return hbp__fail(rows->context, HBP_E_FORMAT, "%s, line %lld: %s is '%s'; %s", hbp__stream_name(rows->in),
                     (long long)line, name, shown, limit);
}

/* language, vision, fixed, or their numbers. */
static int read_kind(const char *text, int64_t bytes, int64_t *out)
{
    static const char *const types[] = {"language", "vision", "fixed"};
    for (int64_t k = 0; k < HBP_LAYER_TYPES; k++)
        if (is_text(text, bytes, types[k])) {
            *out = k;
            return 1;
        }
    return hbp__read_i64(text, bytes, out) == 1 && *out >= 0 && *out < HBP_LAYER_TYPES;
}

/* Puts a value's text into a row. HBP_E_FORMAT with file and line; `name` is the column's. */
static hbp_status put_value(const layer_rows *rows, int64_t line, int32_t field, double unit,
                            const char *name, const char *text, int64_t bytes, layer_row *row)
{
    hbp__column_trim(&text, &bytes);
    if (row->seen >> field & 1)
        return hbp__fail(rows->context, HBP_E_FORMAT,
                         "%s, line %lld: %s is given twice, the second time as %s",
                         hbp__stream_name(rows->in), (long long)line, field_names[field], name);
    row->seen |= 1u << field;
    if (field == FIELD_NAME) {
        int64_t length = hbp__min_i64(bytes, NAME_BYTES - 1);
        memcpy(row->name, text, (size_t)length);
        row->name[length] = '\0';
        return HBP_OK;
    }
    if (field == FIELD_TYPE || field == FIELD_CUT_TYPE) {
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

/* Adds a row, which must have the fields that the first has. */
static hbp_status add_row(layer_rows *rows, int64_t line, const layer_row *row)
{
    if (!rows->count)
        rows->fields = row->seen;
    for (int32_t field = 0; field < FIELDS; field++)
        if ((row->seen ^ rows->fields) >> field & 1)
            return hbp__fail(rows->context, HBP_E_FORMAT,
                             row->seen >> field & 1 ? "%s, line %lld: %s was not given for the first layer"
                                                    : "%s, line %lld: %s is missing",
                             hbp__stream_name(rows->in), (long long)line, field_names[field]);
    if (rows->count == MOST_LAYERS)
        return hbp__fail(rows->context, HBP_E_FORMAT, "%s, line %lld: more than %d layers",
                         hbp__stream_name(rows->in), (long long)line, MOST_LAYERS);
    if (rows->count == rows->room) {
        int64_t room = hbp__max_i64(64, 2 * rows->room);
        layer_row *more = hbp__renew(&rows->context->memory, rows->row, (uint64_t)room, sizeof *more);
        if (!more)
            return hbp__fail_memory(rows->context, "rows of layers");
        rows->row = more;
        rows->room = room;
    }
    rows->row[rows->count++] = *row;
    return HBP_OK;
}

/* Rows of CSV, and the one at hand. */
typedef struct csv_rows {
    layer_rows *rows;
    layer_row row;
} csv_rows;

static hbp_status csv_column(void *user, int64_t line, const char *name, int64_t bytes, int32_t *field,
                             double *unit)
{
    const csv_rows *csv = user;
    *field = find_field(name, bytes, unit);
    return *field < 0 ? check_name(csv->rows, line, name, bytes) : HBP_OK;
}

static hbp_status csv_value(void *user, int64_t line, int32_t field, double unit, const char *text,
                            int64_t bytes)
{
    csv_rows *csv = user;
    return put_value(csv->rows, line, field, unit, field_name(field), text, bytes, &csv->row);
}

static hbp_status csv_row(void *user, int64_t line)
{
    csv_rows *csv = user;
    hbp_status status = add_row(csv->rows, line, &csv->row);
    csv->row = (layer_row){.seen = 0};
    return status;
}

static hbp_status read_csv(layer_rows *rows)
{
    csv_rows csv = {.rows = rows};
    uint64_t fields;
    const hbp__csv_table table = {.context = rows->context,
                                  .in = rows->in,
                                  .user = &csv,
                                  .column = csv_column,
                                  .field_name = field_name,
                                  .value = csv_value,
                                  .row = csv_row};
    return hbp__csv_table_read(&table, &fields);
}

/* A key has been read: its colon and value. */
static hbp_status read_member(const layer_rows *rows, hbp__json_scan *scan, layer_row *row)
{
    double unit;
    int byte;
    int32_t field = scan->bytes <= HBP__JSON_TEXT ? find_field(scan->text, scan->bytes, &unit) : -1;
    if (field < 0 && scan->bytes <= HBP__JSON_TEXT)
        HBP__TRY(check_name(rows, scan->line, scan->text, scan->bytes));
    HBP__TRY(hbp__json_next(scan, &byte));
    if (byte != ':')
        return hbp__json_fail(scan, "a colon is missing after a key");
    hbp__json_take(scan);
    HBP__TRY(hbp__json_value(scan));
    if (field < 0)
        return HBP_OK;
    int fits = field == FIELD_NAME   ? scan->kind == HBP__JSON_STRING
               : field >= FIELD_TYPE ? scan->kind == HBP__JSON_STRING || scan->kind == HBP__JSON_NUMBER
                                     : scan->kind == HBP__JSON_NUMBER;
    if (!fits)
        return hbp__fail(rows->context, HBP_E_FORMAT, "%s, line %lld: %s is not a %s",
                         hbp__stream_name(rows->in), (long long)scan->line, field_name(field),
                         field >= FIELD_TYPE ? "string" : "number");
    int64_t bytes = scan->bytes < HBP__JSON_TEXT ? scan->bytes : HBP__JSON_TEXT;
    return put_value(rows, scan->line, field, unit, field_name(field), scan->text, bytes, row);
}

/* The object whose opening brace is next. */
static hbp_status read_object(layer_rows *rows, hbp__json_scan *scan)
{
    layer_row row = {.seen = 0};
    int64_t line = scan->line;
    int byte;
    hbp__json_take(scan);
    HBP__TRY(hbp__json_next(scan, &byte));
    for (int first = 1; byte != '}'; first = 0) {
        if (!first) {
            if (byte != ',')
                return hbp__json_fail(scan, "a comma or } is missing");
            hbp__json_take(scan);
            HBP__TRY(hbp__json_next(scan, &byte));
        }
        if (byte != '"')
            return hbp__json_fail(scan, "a key is missing");
        HBP__TRY(hbp__json_string(scan));
        HBP__TRY(read_member(rows, scan, &row));
        HBP__TRY(hbp__json_next(scan, &byte));
    }
    hbp__json_take(scan);
    return add_row(rows, line, &row);
}

static hbp_status read_jsonl(layer_rows *rows)
{
    const unsigned char *data;
    int64_t bytes;
    HBP__TRY(hbp__stream_peek(rows->in, 3, &data, &bytes));
    if (bytes >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0) /* a byte order mark */
        hbp__stream_take(rows->in, 3);
    hbp__json_scan scan;
    hbp__json_begin(&scan, rows->context, rows->in);
    for (;;) {
        int byte;
        HBP__TRY(hbp__json_next(&scan, &byte));
        if (byte < 0)
            return HBP_OK;
        if (byte != '{')
            return hbp__json_fail(&scan, "not a JSON object; each line holds one");
        HBP__TRY(read_object(rows, &scan));
    }
}

/* Rows turned into columns. */
static hbp_status make_layers(const layer_rows *rows, hbp_layers **out)
{
    const hbp__memory *memory = &rows->context->memory;
    uint64_t count = (uint64_t)rows->count;
    int64_t *values = hbp__new(memory, count * FIELD_TYPE, sizeof *values);
    int32_t *types = hbp__new(memory, count * 2, sizeof *types);
    const char **names = hbp__new(memory, count, sizeof *names);
    hbp_status status = HBP_OK;
    if (values && types && names) {
        for (int64_t i = 0; i < rows->count; i++) {
            const layer_row *row = &rows->row[i];
            for (int64_t field = 0; field < FIELD_TYPE; field++)
                values[field * rows->count + i] = row->value[field];
            types[i] = (int32_t)row->value[FIELD_TYPE];
            types[rows->count + i] = (int32_t)row->value[FIELD_CUT_TYPE];
            names[i] = row->name[0] ? row->name : NULL;
        }
        hbp_layer_columns columns = {.struct_size = sizeof columns, .count = (int32_t)rows->count};
        int64_t field = 0;
#define POINT(column)                                                                                        \
    columns.column = rows->fields >> field & 1 ? values + field * rows->count : NULL;                        \
    field++;
        HBP__LAYER_COLUMNS(POINT)
#undef POINT
        columns.type = rows->fields >> FIELD_TYPE & 1 ? types : NULL;
        columns.cut_type = rows->fields >> FIELD_CUT_TYPE & 1 ? types + rows->count : NULL;
        columns.names = names;
        status = hbp__blame_file(rows->context, hbp__stream_name(rows->in),
                                 hbp__layers_create(rows->context, &columns, out));
    } else {
        status = hbp__fail_memory(rows->context, "the columns of layers");
    }
    hbp__delete(memory, values);
    hbp__delete(memory, types);
    hbp__delete(memory, names);
    return status;
}

/* JSON by its brace, else CSV. */
static hbp_status read_rows(layer_rows *rows)
{
    const unsigned char *data;
    int64_t bytes;
    HBP__TRY(hbp__stream_peek(rows->in, HBP__STREAM_AHEAD, &data, &bytes));
    int64_t i = bytes >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    while (i < bytes && data[i] <= ' ')
        i++;
    int is_json = i < bytes && (data[i] == '{' || data[i] == '[');
    HBP__TRY(is_json ? read_jsonl(rows) : read_csv(rows));
    if (!rows->count)
        return hbp__fail(rows->context, HBP_E_FORMAT, "%s holds no layers", hbp__stream_name(rows->in));
    if (!(rows->fields & 1))
        return hbp__fail(rows->context, HBP_E_FORMAT, "%s has no column forward_ns (or forward_us, _ms, _s)",
                         hbp__stream_name(rows->in));
    return HBP_OK;
}

hbp_status hbp__layers_read_stream(hbp_context *context, hbp__stream *in, hbp_layers **out)
{
    layer_rows rows = {.context = context, .in = in};
    hbp_status status = read_rows(&rows);
    if (status >= 0)
        status = make_layers(&rows, out);
    hbp__delete(&context->memory, rows.row);
    return status;
}

hbp_status hbp_layers_load(hbp_context *context, const char *path, hbp_layers **out)
{
    HBP__ENTER_OUT(context, out);
    HBP__TRY(hbp__require(context, path, "path"));
    hbp__stream *in;
    HBP__TRY(hbp__stream_open(context, path, &in));
    hbp_status status = hbp__layers_read_stream(context, in, out);
    hbp__stream_close(in);
    return status;
}
