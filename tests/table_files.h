/* Files of one object (io/table/table_file.h) as bytes, and the harm that is done to them: whatever the
 * object, a reader finds it, takes little memory and leaves nothing behind. */
#ifndef HBP_TESTS_TABLE_FILES_H
#define HBP_TESTS_TABLE_FILES_H

#include "harm.h"
#include "keep.h"
#include "reseal.h"

#include "io/table/table_file.h"

/* Saves the object at a level of zlib and returns the file's bytes; the test frees them. */
static inline uint8_t *table_saved(hbp_context *context, const hbp__table_format *format, const void *object,
                                   int level, size_t *bytes)
{
    char folder[64], path[128];
    folder_make(folder);
    folder_path(path, folder, "object.msgpack");
    OK(context, hbp__table_save(context, format, object, path, level));
    ck_assert_int_eq(folder_count(folder), 1);
    uint8_t *data = (uint8_t *)file_read(path, bytes);
    folder_remove(folder);
    return data;
}

/* hbp__table_load from memory; *out is NULL where it fails. */
static inline hbp_status table_load(hbp_context *context, const hbp__table_format *format, const void *data,
                                    size_t bytes, void **out)
{
    hbp__file_bytes file;
    *out = NULL;
    HBP__TRY(hbp__enter(context));
    hbp__file_open_memory(data, (int64_t)bytes, &file);
    return hbp__table_load(context, format, &file, out);
}

/* Two objects of a kind: numbers, columns and names. */
static inline void table_expect_same(const hbp__table *table, const void *a, const void *b)
{
    for (int32_t i = 0; i < table->number_count; i++) {
        const hbp__member *number = &table->numbers[i];
        ck_assert_msg(memcmp((const char *)a + number->at, (const char *)b + number->at,
                             hbp__cell_bytes(number->cell)) == 0,
                      "%s", number->name);
    }
    for (int32_t i = 0; i < table->column_count; i++) {
        const hbp__member *column = &table->columns[i];
        ck_assert_msg(memcmp(hbp__table_cells(a, column), hbp__table_cells(b, column),
                             (size_t)hbp__table_rows(a, column) * hbp__cell_bytes(column->cell)) == 0,
                      "%s", column->name);
    }
    for (int32_t i = 0; i < table->name_count; i++)
        for (int64_t row = 0; row < hbp__table_rows(a, &table->names[i]); row++)
            ck_assert_str_eq(((char *const *)hbp__table_cells(a, &table->names[i]))[row],
                             ((char *const *)hbp__table_cells(b, &table->names[i]))[row]);
}

/* Files of an object. */
typedef struct table_file {
    const hbp__table_format *format;
    const void *object;
} table_file;

static inline hbp_status table_load_harmed(hbp_context *context, const void *user, const void *data,
                                           size_t bytes, void **out)
{
    return table_load(context, ((const table_file *)user)->format, data, bytes, out);
}

static inline void table_release(hbp_context *context, const void *user, void *object)
{
    hbp__table_free(&context->memory, ((const table_file *)user)->format->table, object);
}

/* Columns and names are what they were. What may change is what nobody relies on: sums, and keys that are
 * passed over. */
static inline void table_expect_cells(hbp_context *context, const void *user, void *object)
{
    const table_file *file = user;
    hbp__table cells = *file->format->table;
    cells.number_count = 0;
    OK(context, file->format->check(context, object));
    table_expect_same(&cells, file->object, object);
}

static inline hbp_status table_save_harmed(hbp_context *context, const void *user, const char *path)
{
    const table_file *file = user;
    HBP__TRY(hbp__enter(context));
    return hbp__table_save(context, file->format, file->object, path, 1);
}

static inline harm_kind table_kind(const table_file *file)
{
    return (harm_kind){.load = table_load_harmed,
                       .release = table_release,
                       .reseal = reseal_tasks,
                       .expect = table_expect_cells,
                       .save = table_save_harmed,
                       .user = file};
}

/* Every changed byte, every cut and a byte more. */
static inline void table_finds_changes(hbp_context *context, const hbp__table_format *format,
                                       const void *object)
{
    const table_file file = {format, object};
    const harm_kind kind = table_kind(&file);
    for (int level = 0; level < 2; level++) {
        size_t bytes;
        uint8_t *data = table_saved(context, format, object, level, &bytes);
        void *back;
        OK(context, table_load(context, format, data, bytes, &back));
        table_expect_same(format->table, object, back);
        hbp__table_free(&context->memory, format->table, back);
        harm_found(&kind, data, bytes);
        free(data);
    }
}

/* Every changed byte behind right checksums. */
static inline void table_bears_changes(hbp_context *context, const hbp__table_format *format,
                                       const void *object)
{
    const table_file file = {format, object};
    const harm_kind kind = table_kind(&file);
    size_t bytes, refused;
    uint8_t *data = table_saved(context, format, object, 0, &bytes);
    size_t loaded = harm_borne(&kind, data, bytes, bytes, &refused);
    ck_assert_uint_gt(loaded, 0);
    ck_assert_uint_gt(refused, 5 * loaded);
    free(data);
}

/* The number behind `key` in [data, data + bytes) as any other, in as many bytes as it takes. */
static inline uint8_t *with_number(const uint8_t *data, size_t bytes, const char *key, uint64_t value,
                                   size_t *grown)
{
    size_t length = strlen(key), at = 1;
    while (memcmp(data + at, key, length) != 0 || data[at - 1] != (0xa0 | length))
        at++;
    at += length;
    size_t old = data[at] < 0x80 ? 1 : data[at] == 0xcc ? 2 : data[at] == 0xcd ? 3 : data[at] == 0xce ? 5 : 9;
    uint8_t *changed = malloc(bytes + 9);
    ck_assert_ptr_nonnull(changed);
    memcpy(changed, data, at);
    changed[at] = 0xcf;
    for (size_t i = 0; i < 8; i++)
        changed[at + 1 + i] = (uint8_t)(value >> (56 - 8 * i));
    memcpy(changed + at + 9, data + at + old, bytes - at - old);
    *grown = bytes + 9 - old;
    return changed;
}

/* The header's length has changed, too: the body must tell it. */
static inline uint8_t *rehead(uint8_t *data, size_t *bytes)
{
    uint64_t header;
    ck_assert(reseal_scan(data, *bytes, &header));
    uint8_t *changed = with_number(data, *bytes, "header_bytes", header, bytes);
    free(data);
    reseal_tasks(changed, *bytes);
    return changed;
}

/* The name under which a file gives a column's rows; NULL: it is not this number. */
static inline const char *table_count_name(const hbp__table *table, int32_t number)
{
    const hbp__member *n = &table->numbers[number];
    for (int32_t i = 0; i < table->column_count + table->name_count; i++) {
        const hbp__member *column =
            i < table->column_count ? &table->columns[i] : &table->names[i - table->column_count];
        if (column->rows_at == n->at && n->cell >= HBP__CELL_I64 && n->cell != HBP__CELL_F64)
            return n->name;
    }
    return NULL;
}

/* A small file that claims many rows, or many bytes, of each column. */
static inline void table_takes_what_it_can_fill(const hbp__table_format *format, const void *object)
{
    const table_file file = {format, object};
    const harm_kind kind = table_kind(&file);
    failing f;
    hbp_context *context = failing_context(&f, NULL, NULL);
    size_t bytes, grown;
    int counts = 0;
    uint8_t *data = table_saved(context, format, object, 1, &bytes);
    for (int32_t n = -1; n < format->table->number_count; n++) {
        const char *key = n < 0 ? "bytes" : table_count_name(format->table, n);
        counts += key != NULL;
        for (int power = n < 0 ? 0 : 8; key && power < 64; power++) {
            uint8_t *changed = with_number(data, bytes, key, UINT64_C(1) << power, &grown);
            changed = rehead(changed, &grown);
            harm_refused(context, &f, &kind, changed, grown, key, (size_t)power);
            free(changed);
        }
    }
    ck_assert_int_gt(counts, 1);
    free(data);
    hbp_context_free(context);
}

/* Every allocation that fails and every request to cancel, in reading and writing. */
static inline void table_leaves_nothing(hbp_context *context, const hbp__table_format *format,
                                        const void *object)
{
    const table_file file = {format, object};
    const harm_kind kind = table_kind(&file);
    size_t bytes;
    uint8_t *data = table_saved(context, format, object, 1, &bytes);
    harm_looks looks = harm_survived(&kind, data, bytes);
    ck_assert_int_ge(looks.load, 2);
    ck_assert_int_ge(looks.save, 1);
    free(data);
}

/* All of it. */
static inline void table_bears_harm(hbp_context *context, const hbp__table_format *format, const void *object)
{
    table_finds_changes(context, format, object);
    table_bears_changes(context, format, object);
    table_takes_what_it_can_fill(format, object);
    table_leaves_nothing(context, format, object);
}

#endif
