#include "io/table/table_json.h"

#include <string.h>

static void put_cell(hbp__json_out *out, hbp__cell cell, const void *at)
{
    union {
        int32_t i32;
        int64_t i64;
        uint64_t u64;
        double f64;
        const char *name;
    } value;
    memcpy(&value, at, hbp__cell_bytes(cell));
    switch (cell) {
    case HBP__CELL_I32:
        hbp__json_put_i64(out, value.i32);
        break;
    case HBP__CELL_U64:
        hbp__json_put_digest(out, value.u64);
        break;
    case HBP__CELL_F64:
        hbp__json_put_f64(out, value.f64);
        break;
    case HBP__CELL_NAME:
        hbp__json_put_string(out, value.name);
        break;
    default:
        hbp__json_put_i64(out, value.i64);
    }
}

static void put_key(hbp__json_out *out, const char *before, const char *key)
{
    hbp__json_put(out, before);
    hbp__json_put(out, "\"");
    hbp__json_put(out, key);
    hbp__json_put(out, "\":");
}

/* A column or a list of names. */
static hbp_status put_rows(hbp__json_out *out, const hbp__member *column, const void *object,
                           const char *before)
{
    const char *cells = hbp__table_cells(object, column);
    const int64_t rows = hbp__table_rows(object, column);
    const uint64_t bytes = hbp__cell_bytes(column->cell);
    put_key(out, before, column->name);
    hbp__json_put(out, "[");
    for (int64_t row = 0; row < rows && out->status == HBP_OK; row++) {
        if (row % HBP__TICK_ROWS == 0)
            HBP__TRY(hbp__tick(out->context, "json", row, rows));
        if (row)
            hbp__json_put(out, ",");
        put_cell(out, column->cell, cells + (uint64_t)row * bytes);
    }
    hbp__json_put(out, "]");
    return out->status;
}

hbp_status hbp__json_put_numbers(hbp__json_out *out, const hbp__table *table, const void *object,
                                 const char *before)
{
    for (int32_t i = 0; i < table->number_count; i++) {
        const hbp__member *number = &table->numbers[i];
        if (number->cell == HBP__CELL_COUNT)
            continue; /* said by the number before */
        put_key(out, before, number->name);
        put_cell(out, number->cell, (const char *)object + number->at);
        before = ",\n";
    }
    for (int32_t i = 0; i < table->name_count; i++, before = ",\n")
        HBP__TRY(put_rows(out, &table->names[i], object, before));
    return out->status;
}

hbp_status hbp__json_put_columns(hbp__json_out *out, const hbp__table *table, const void *object,
                                 const char *before)
{
    for (int32_t i = 0; i < table->column_count; i++, before = ",\n")
        HBP__TRY(put_rows(out, &table->columns[i], object, before));
    return out->status;
}

static hbp_status put_object(hbp__json_out *out, const hbp__table *table, const void *object)
{
    hbp__json_put(out, "{");
    HBP__TRY(hbp__json_put_numbers(out, table, object, ""));
    hbp__json_put(out, ",\n\"columns\":{");
    HBP__TRY(hbp__json_put_columns(out, table, object, ""));
    hbp__json_put(out, "}}\n");
    return out->status;
}

hbp_status hbp__table_write_json(hbp_context *context, const hbp__table *table, const void *object,
                                 const char *path)
{
    hbp__atomic_file file;
    hbp__json_out out = {.context = context, .file = &file};
    HBP__TRY(hbp__require(context, path, "path"));
    HBP__TRY(hbp__atomic_open(context, path, &file));
    return hbp__atomic_end(context, &file, put_object(&out, table, object));
}
