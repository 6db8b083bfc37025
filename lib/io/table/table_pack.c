#include "io/table/table_pack.h"

#include <float.h>
#include <stdio.h>
#include <string.h>

#include "io/file/zipped.h"

/* Names packed between two looks at a request to cancel. */
#define TICK_NAMES 65536

uint32_t hbp__count_numbers(const hbp__table *table)
{
    uint32_t count = 0;
    for (int32_t i = 0; i < table->number_count; i++)
        count += table->numbers[i].cell != HBP__CELL_COUNT;
    return count;
}

static void pack_number(hbp__buffer *buffer, hbp__cell cell, const void *at)
{
    switch (cell) {
    case HBP__CELL_I32:
        hbp__pack_i64(buffer, *(const int32_t *)at);
        break;
    case HBP__CELL_I64:
        hbp__pack_i64(buffer, *(const int64_t *)at);
        break;
    case HBP__CELL_U64:
        hbp__pack_u64(buffer, *(const uint64_t *)at);
        break;
    default:
        hbp__pack_f64(buffer, *(const double *)at);
    }
}

void hbp__pack_numbers(hbp__buffer *buffer, const hbp__table *table, const void *object)
{
    for (int32_t i = 0; i < table->number_count; i++) {
        const hbp__member *number = &table->numbers[i];
        if (number->cell == HBP__CELL_COUNT)
            continue;
        hbp__pack_text(buffer, number->name);
        pack_number(buffer, number->cell, (const char *)object + number->at);
    }
}

hbp_status hbp__pack_names(hbp_context *context, hbp__buffer *buffer, const hbp__table *table,
                           const void *object)
{
    for (int32_t i = 0; i < table->name_count; i++) {
        char *const *name = hbp__table_cells(object, &table->names[i]);
        int64_t rows = hbp__table_rows(object, &table->names[i]);
        hbp__pack_text(buffer, table->names[i].name);
        hbp__pack_list(buffer, (size_t)rows);
        for (int64_t k = 0; k < rows; k++) {
            if (k % TICK_NAMES == 0)
                HBP__TRY(hbp__tick(context, "save", k, rows));
            hbp__pack_text(buffer, name[k]);
        }
    }
    return HBP_OK;
}

void hbp__pack_columns(hbp__buffer *buffer, const hbp__table *table, const void *object)
{
    for (int32_t i = 0; i < table->column_count; i++) {
        const hbp__member *column = &table->columns[i];
        const void *cells = hbp__table_cells(object, column);
        int64_t rows = hbp__table_rows(object, column);
        if (column->cell == HBP__CELL_I32)
            hbp__pack_column_i32(buffer, column->name, cells, rows, 0);
        else
            hbp__pack_column_i64(buffer, column->name, cells, rows, 0);
    }
}

static hbp_status fail_entry(const hbp__map_read *from, const char *what)
{
    return hbp__file_fail(from->context, from->file, from->offset, what);
}

static hbp_status fail_lacking(const hbp__map_read *from, const char *what, const char *name)
{
    char text[192];
    hbp__say_entry(text, sizeof text, from->map, from->what, what, name);
    return fail_entry(from, text);
}

static int unpack_finite(const hbp__value *map, const char *key, double *out)
{
    const hbp__value *value = hbp__value_find(map, key);
    if (!hbp__value_is(value, HBP__REAL))
        return 0;
    *out = value->of.real;
    return *out >= -DBL_MAX && *out <= DBL_MAX;
}

static int unpack_number(const hbp__value *map, const hbp__member *number, void *to)
{
    switch (number->cell) {
    case HBP__CELL_I32:
        return hbp__unpack_i32(map, number->name, to);
    case HBP__CELL_I64:
    case HBP__CELL_COUNT:
        return hbp__unpack_i64(map, number->name, to);
    case HBP__CELL_U64:
        return hbp__unpack_u64(map, number->name, to);
    default:
        return unpack_finite(map, number->name, to);
    }
}

/* The number that says how many rows there are. */
static const char *count_name(const hbp__table *table, const hbp__member *member)
{
    for (int32_t i = 0; i < table->number_count; i++)
        if (table->numbers[i].at == member->rows_at)
            return table->numbers[i].name;
    return "rows";
}

hbp_status hbp__unpack_shape(const hbp__map_read *from, const hbp__table *table, void *shape, int64_t *bytes)
{
    char text[192];
    for (int32_t i = 0; i < table->number_count; i++)
        if (!unpack_number(from->map, &table->numbers[i], (char *)shape + table->numbers[i].at))
            return fail_lacking(from, "number", table->numbers[i].name);
    for (int32_t i = 0; i < table->name_count; i++) {
        const hbp__member *list = &table->names[i];
        const hbp__value *names = hbp__value_find(from->map, list->name);
        if (!hbp__value_is(names, HBP__LIST) || names->count != hbp__table_rows(shape, list)) {
            snprintf(text, sizeof text, "%s's '%s' are not as many as its '%s'", from->what, list->name,
                     count_name(table, list));
            return fail_entry(from, text);
        }
    }
    *bytes = hbp__table_bytes(table, shape);
    if (*bytes < 0 || *bytes > HBP__ZIPPED_MAX_BYTES) {
        snprintf(text, sizeof text, "%s's tables are too large", from->what);
        return fail_entry(from, text);
    }
    return HBP_OK;
}

static hbp_status unpack_list(const hbp__map_read *from, const hbp__memory *memory, const hbp__member *list,
                              void *object)
{
    const hbp__value *names = hbp__value_find(from->map, list->name);
    char **to = hbp__table_cells(object, list);
    int64_t i = 0;
    HBP__EACH(names, name)
    {
        char text[128];
        if (name->kind != HBP__TEXT || strlen(name->of.text) != name->count) {
            snprintf(text, sizeof text, "number %lld of '%s' is not a name", (long long)i, list->name);
            return fail_entry(from, text);
        }
        to[i] = hbp__new_text(memory, name->of.text, name->count);
        if (!to[i++])
            return hbp__fail_memory(from->context, "the names of a file");
    }
    return HBP_OK;
}

hbp_status hbp__unpack_names(const hbp__map_read *from, const hbp__memory *memory, const hbp__table *table,
                             void *object)
{
    for (int32_t i = 0; i < table->name_count; i++)
        HBP__TRY(unpack_list(from, memory, &table->names[i], object));
    return HBP_OK;
}

hbp_status hbp__unpack_columns(const hbp__map_read *from, const hbp__table *table, void *object)
{
    for (int32_t i = 0; i < table->column_count; i++) {
        const hbp__member *column = &table->columns[i];
        void *cells = hbp__table_cells(object, column);
        int64_t rows = hbp__table_rows(object, column);
        int found = column->cell == HBP__CELL_I32
                        ? hbp__unpack_column_i32(from->map, column->name, rows, cells)
                        : hbp__unpack_column_i64(from->map, column->name, rows, cells);
        if (!found)
            return fail_lacking(from, "column", column->name);
    }
    return HBP_OK;
}
