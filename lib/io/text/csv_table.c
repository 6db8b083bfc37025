#include "io/text/csv_table.h"

#include "io/text/columns.h"
#include "io/text/fields.h"

typedef struct reading {
    const hbp__csv_table *table;
    hbp__fields fields;
    uint64_t seen; /* fields of the header */
    int64_t columns;
    int32_t field[HBP__CSV_COLUMNS]; /* -1: none */
    double unit[HBP__CSV_COLUMNS];
} reading;

static hbp_status bad_line(const reading *r, const char *what)
{
    return hbp__fail(r->table->context, HBP_E_FORMAT, "%s, line %lld: %s", hbp__stream_name(r->table->in),
                     (long long)r->fields.line, what);
}

/* The field at hand is the first of the header. */
static hbp_status read_header(reading *r)
{
    const hbp__csv_table *table = r->table;
    for (r->columns = 0;; r->columns++) {
        if (r->columns == HBP__CSV_COLUMNS)
            return bad_line(r, "more than 256 columns");
        const char *text = r->fields.text;
        int64_t bytes = r->fields.bytes;
        hbp__column_trim(&text, &bytes);
        int32_t field = -1;
        HBP__TRY(table->column(table->user, r->fields.line, text, bytes, &field, &r->unit[r->columns]));
        r->field[r->columns] = field;
        if (field >= 0 && r->seen >> field & 1)
            return hbp__fail(table->context, HBP_E_FORMAT, "%s, line %lld: two columns for %s",
                             hbp__stream_name(table->in), (long long)r->fields.line,
                             table->field_name(field));
        r->seen |= field >= 0 ? UINT64_C(1) << field : 0;
        if (r->fields.last)
            break;
        HBP__TRY(hbp__fields_next(&r->fields));
    }
    r->columns++;
    return table->header ? table->header(table->user, r->seen) : HBP_OK;
}

/* The field at hand, which is the first of its record, and those after it. */
static hbp_status read_record(reading *r)
{
    const hbp__csv_table *table = r->table;
    for (;;) {
        if (r->fields.index >= r->columns)
            return bad_line(r, "more fields than the header has");
        int32_t field = r->field[r->fields.index];
        const char *text = r->fields.text;
        int64_t bytes = r->fields.bytes;
        hbp__column_trim(&text, &bytes);
        if (field >= 0)
            HBP__TRY(table->value(table->user, r->fields.line, field, r->unit[r->fields.index], text, bytes));
        if (r->fields.last)
            break;
        HBP__TRY(hbp__fields_next(&r->fields));
    }
    if (r->fields.index + 1 < r->columns)
        return bad_line(r, "fewer fields than the header has");
    return table->row(table->user, r->fields.line);
}

/* Steps over comments; the delimiter is that of the header, so it is looked for behind them. */
static hbp_status read_comments(reading *r)
{
    const hbp__csv_table *table = r->table;
    int delimiter = r->fields.delimiter, byte;
    for (;;) {
        HBP__TRY(hbp__fields_peek(&r->fields, &byte));
        if (byte != '#')
            return HBP_OK;
        r->fields.delimiter = -1;
        r->fields.quotes = 0;
        HBP__TRY(hbp__fields_next(&r->fields));
        r->fields.delimiter = delimiter;
        r->fields.quotes = 1;
        const char *text = r->fields.text + 1;
        int64_t bytes = r->fields.bytes - 1;
        hbp__column_trim(&text, &bytes);
        HBP__TRY(table->comment(table->user, r->fields.line, text, bytes));
    }
}

static hbp_status read_table(reading *r)
{
    HBP__TRY(hbp__fields_begin(&r->fields, r->table->context, r->table->in, ',', 1));
    for (;;) {
        if (r->table->comment)
            HBP__TRY(read_comments(r));
        if (!r->columns)
            HBP__TRY(hbp__fields_find_delimiter(&r->fields));
        HBP__TRY(hbp__fields_next(&r->fields));
        if (r->fields.end)
            return HBP_OK;
        if (hbp__fields_blank(&r->fields))
            continue;
        HBP__TRY(r->columns ? read_record(r) : read_header(r));
    }
}

hbp_status hbp__csv_table_read(const hbp__csv_table *table, uint64_t *fields)
{
    reading r = {.table = table};
    hbp_status status = read_table(&r);
    *fields = r.seen;
    return status;
}
