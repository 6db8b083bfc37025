#include "io/pipeline/read_layers.h"

#include <string.h>

#include "io/json/json_scan.h"
#include "io/json/json_tree.h"
#include "io/pipeline/layer_rows.h"
#include "io/text/csv_table.h"

/* Rows of CSV, and the one at hand. */
typedef struct csv_rows {
    hbp__layer_rows *rows;
    hbp__layer_row row;
} csv_rows;

static hbp_status csv_column(void *user, int64_t line, const char *name, int64_t bytes, int32_t *field,
                             double *unit)
{
    const csv_rows *csv = user;
    *field = hbp__layer_field(name, bytes, unit);
    return *field < 0 ? hbp__layer_check_name(csv->rows, line, name, bytes) : HBP_OK;
}

static hbp_status csv_value(void *user, int64_t line, int32_t field, double unit, const char *text,
                            int64_t bytes)
{
    csv_rows *csv = user;
    return hbp__layer_put(csv->rows, line, field, unit, hbp__layer_field_name(field), text, bytes, &csv->row);
}

static hbp_status csv_row(void *user, int64_t line)
{
    csv_rows *csv = user;
    hbp_status status = hbp__layer_add(csv->rows, line, &csv->row);
    csv->row = (hbp__layer_row){.seen = 0};
    return status;
}

hbp_status hbp__layers_csv(hbp__layer_rows *rows)
{
    csv_rows csv = {.rows = rows};
    uint64_t fields;
    const hbp__csv_table table = {.context = rows->context,
                                  .in = rows->in,
                                  .user = &csv,
                                  .column = csv_column,
                                  .field_name = hbp__layer_field_name,
                                  .value = csv_value,
                                  .row = csv_row};
    return hbp__csv_table_read(&table, &fields);
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
    HBP__ENTER_OUT(context, out);
    HBP__TRY(hbp__require(context, path, "path"));
    hbp__stream *in;
    HBP__TRY(hbp__stream_open(context, path, &in));
    hbp_status status = hbp__layers_read_stream(context, in, out);
    hbp__stream_close(in);
    return status;
}
