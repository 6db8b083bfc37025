#include "io/read_layers.h"

#include <string.h>

#include "io/fields.h"
#include "io/json_scan.h"
#include "io/json_tree.h"
#include "io/layer_rows.h"

#define MOST_COLUMNS 256

/* What the header's columns mean; -1: nothing here. */
typedef struct header {
    int64_t count;
    int32_t field[MOST_COLUMNS];
    double unit[MOST_COLUMNS];
} header;

static hbp_status bad_line(const hbp__layer_rows *rows, int64_t line, const char *what)
{
    return hbp__fail(rows->context, HBP_E_FORMAT, "%s, line %lld: %s", hbp__stream_name(rows->in),
                     (long long)line, what);
}

static void trim(const char **text, int64_t *bytes)
{
    while (*bytes && **text == ' ')
        ++*text, --*bytes;
    while (*bytes && (*text)[*bytes - 1] == ' ')
        --*bytes;
}

static hbp_status read_header(const hbp__layer_rows *rows, hbp__fields *fields, header *h)
{
    uint32_t seen = 0;
    for (h->count = 0;; h->count++) {
        if (h->count == MOST_COLUMNS)
            return bad_line(rows, fields->line, "more than 256 columns");
        const char *text = fields->text;
        int64_t bytes = fields->bytes;
        trim(&text, &bytes);
        int32_t field = hbp__layer_field(text, bytes, &h->unit[h->count]);
        h->field[h->count] = field;
        if (field < 0)
            HBP__TRY(hbp__layer_check_name(rows, fields->line, text, bytes));
        if (field >= 0 && seen >> field & 1)
            return hbp__fail(rows->context, HBP_E_FORMAT, "%s, line %lld: two columns for %s",
                             hbp__stream_name(rows->in), (long long)fields->line,
                             hbp__layer_field_name(field));
        seen |= field >= 0 ? 1u << field : 0;
        if (fields->last)
            break;
        HBP__TRY(hbp__fields_next(fields));
    }
    h->count++;
    return HBP_OK;
}

/* The field at hand, which is the first of its record, and those after it. */
static hbp_status read_record(hbp__layer_rows *rows, hbp__fields *fields, const header *h)
{
    hbp__layer_row row = {.seen = 0};
    int64_t line = fields->line;
    for (;;) {
        if (fields->index >= h->count)
            return bad_line(rows, line, "more fields than the header has");
        int32_t field = h->field[fields->index];
        if (field >= 0)
            HBP__TRY(hbp__layer_put(rows, line, field, h->unit[fields->index], hbp__layer_field_name(field),
                                    fields->text, fields->bytes, &row));
        if (fields->last)
            break;
        HBP__TRY(hbp__fields_next(fields));
    }
    if (fields->index + 1 < h->count)
        return bad_line(rows, line, "fewer fields than the header has");
    return hbp__layer_add(rows, line, &row);
}

hbp_status hbp__layers_csv(hbp__layer_rows *rows)
{
    int delimiter;
    hbp__fields fields;
    header h = {.count = 0};
    HBP__TRY(hbp__fields_delimiter(rows->in, &delimiter));
    HBP__TRY(hbp__fields_begin(&fields, rows->context, rows->in, delimiter, 1));
    for (;;) {
        HBP__TRY(hbp__fields_next(&fields));
        if (fields.end)
            return HBP_OK;
        if (hbp__fields_blank(&fields))
            continue;
        HBP__TRY(h.count ? read_record(rows, &fields, &h) : read_header(rows, &fields, &h));
    }
}

/* A key has been read: its colon and value. */
static hbp_status read_member(const hbp__layer_rows *rows, hbp__json_scan *scan, hbp__layer_row *row)
{
    double unit;
    int byte;
    int32_t field = scan->bytes <= HBP__JSON_TEXT ? hbp__layer_field(scan->text, scan->bytes, &unit) : -1;
    if (field < 0 && scan->bytes <= HBP__JSON_TEXT)
        HBP__TRY(hbp__layer_check_name(rows, scan->line, scan->text, scan->bytes));
    HBP__TRY(hbp__json_next(scan, &byte));
    if (byte != ':')
        return hbp__json_fail(scan, "a colon is missing after a key");
    hbp__json_take(scan);
    HBP__TRY(hbp__json_value(scan));
    if (field < 0)
        return HBP_OK;
    int fits = field == HBP__LAYER_NAME   ? scan->kind == HBP__JSON_STRING
               : field >= HBP__LAYER_KIND ? scan->kind == HBP__JSON_STRING || scan->kind == HBP__JSON_NUMBER
                                          : scan->kind == HBP__JSON_NUMBER;
    if (!fits)
        return hbp__fail(rows->context, HBP_E_FORMAT, "%s, line %lld: %s is not a %s",
                         hbp__stream_name(rows->in), (long long)scan->line, hbp__layer_field_name(field),
                         field >= HBP__LAYER_KIND ? "string" : "number");
    int64_t bytes = scan->bytes < HBP__JSON_TEXT ? scan->bytes : HBP__JSON_TEXT;
    return hbp__layer_put(rows, scan->line, field, unit, hbp__layer_field_name(field), scan->text, bytes,
                          row);
}

/* The object whose opening brace is next. */
static hbp_status read_object(hbp__layer_rows *rows, hbp__json_scan *scan)
{
    hbp__layer_row row = {.seen = 0};
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
    return hbp__layer_add(rows, line, &row);
}

hbp_status hbp__layers_jsonl(hbp__layer_rows *rows)
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
static hbp_status make_layers(const hbp__layer_rows *rows, hbp_layers **out)
{
    const hbp__memory *memory = &rows->context->memory;
    uint64_t count = (uint64_t)rows->count;
    int64_t *values = hbp__new(memory, count * HBP__LAYER_KIND, sizeof *values);
    int32_t *kinds = hbp__new(memory, count * 2, sizeof *kinds);
    const char **names = hbp__new(memory, count, sizeof *names);
    hbp_status status = HBP_OK;
    if (values && kinds && names) {
        for (int64_t i = 0; i < rows->count; i++) {
            const hbp__layer_row *row = &rows->row[i];
            for (int64_t field = 0; field < HBP__LAYER_KIND; field++)
                values[field * rows->count + i] = row->value[field];
            kinds[i] = (int32_t)row->value[HBP__LAYER_KIND];
            kinds[rows->count + i] = (int32_t)row->value[HBP__LAYER_CUT_KIND];
            names[i] = row->name[0] ? row->name : NULL;
        }
        hbp_layer_columns columns = {.struct_size = sizeof columns, .count = (int32_t)rows->count};
        int64_t field = 0;
#define POINT(column)                                                                                        \
    columns.column = rows->fields >> field & 1 ? values + field * rows->count : NULL;                        \
    field++;
        HBP__LAYER_COLUMNS(POINT)
#undef POINT
        columns.kind = rows->fields >> HBP__LAYER_KIND & 1 ? kinds : NULL;
        columns.cut_kind = rows->fields >> HBP__LAYER_CUT_KIND & 1 ? kinds + rows->count : NULL;
        columns.names = names;
        status = hbp__blame_file(rows->context, hbp__stream_name(rows->in),
                                 hbp_layers_create(rows->context, &columns, out));
    } else {
        status = hbp__fail_memory(rows->context, "the columns of layers");
    }
    hbp__delete(memory, values);
    hbp__delete(memory, kinds);
    hbp__delete(memory, names);
    return status;
}

/* JSON by its brace, else CSV. */
static hbp_status read_rows(hbp__layer_rows *rows)
{
    const unsigned char *data;
    int64_t bytes;
    HBP__TRY(hbp__stream_peek(rows->in, HBP__STREAM_AHEAD, &data, &bytes));
    int64_t i = bytes >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    while (i < bytes && data[i] <= ' ')
        i++;
    int is_json = i < bytes && (data[i] == '{' || data[i] == '[');
    HBP__TRY(is_json ? hbp__layers_jsonl(rows) : hbp__layers_csv(rows));
    if (!rows->count)
        return hbp__fail(rows->context, HBP_E_FORMAT, "%s holds no layers", hbp__stream_name(rows->in));
    if (!(rows->fields & 1))
        return hbp__fail(rows->context, HBP_E_FORMAT, "%s has no column forward_ns (or forward_us, _ms, _s)",
                         hbp__stream_name(rows->in));
    return HBP_OK;
}

hbp_status hbp__layers_read_stream(hbp_context *context, hbp__stream *in, hbp_layers **out)
{
    hbp__layer_rows rows = {.context = context, .in = in};
    hbp_status status = read_rows(&rows);
    if (status >= 0)
        status = make_layers(&rows, out);
    hbp__delete(&context->memory, rows.row);
    return status;
}

hbp_status hbp_layers_read(hbp_context *context, const char *path, hbp_layers **out)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, out, "out"));
    *out = NULL;
    HBP__TRY(hbp__require(context, path, "path"));
    hbp__stream *in;
    HBP__TRY(hbp__stream_open(context, path, &in));
    hbp_status status = hbp__layers_read_stream(context, in, out);
    hbp__stream_close(in);
    return status;
}
