/* Files of one object (io/table/table_file.h) as bytes, and the harm that is done to them: whatever the
 * object, a reader finds it, takes little memory and leaves nothing behind. */
#ifndef HBP_TESTS_TABLE_FILES_H
#define HBP_TESTS_TABLE_FILES_H

#include "failing.h"
#include "files.h"
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

/* A load that fails as it should: a status of bad files, a message, nothing left, little memory taken. */
static inline void table_expect_bad(hbp_context *context, failing *f, const hbp__table_format *format,
                                    const void *data, size_t bytes, const char *what, size_t at)
{
    void *object;
    uint8_t *copy = malloc(bytes ? bytes : 1); /* so that a sanitizer sees a read past the end */
    ck_assert_ptr_nonnull(copy);
    memcpy(copy, data, bytes);
    int64_t live = f->live;
    f->peak_bytes = f->bytes;
    hbp_status status = table_load(context, format, copy, bytes, &object);
    ck_assert_msg(status == HBP_E_FORMAT || status == HBP_E_VERSION, "%s at %d: %s", what, (int)at,
                  hbp_status_name(status));
    ck_assert_ptr_null(object);
    ck_assert_str_ne(hbp_context_message(context), "");
    ck_assert_int_eq(f->live, live);
    ck_assert_int_lt(f->peak_bytes - f->bytes, 1 << 20);
    free(copy);
}

static const uint8_t table_masks[] = {0x01, 0x80, 0xff, 0x20};

/* Every changed byte, every cut and a byte more. */
static inline void table_finds_changes(const hbp__table_format *format, const void *object)
{
    for (int level = 0; level < 2; level++) {
        failing f;
        hbp_context *context = failing_context(&f, NULL, NULL);
        size_t bytes;
        uint8_t *data = table_saved(context, format, object, level, &bytes);
        void *back;
        OK(context, table_load(context, format, data, bytes, &back));
        table_expect_same(format->table, object, back);
        hbp__table_free(&context->memory, format->table, back);
        for (size_t at = 0; at < bytes; at++)
            for (size_t m = 0; m < sizeof table_masks; m++) {
                data[at] ^= table_masks[m];
                table_expect_bad(context, &f, format, data, bytes, "changed byte", at);
                data[at] ^= table_masks[m];
            }
        for (size_t cut = 0; cut < bytes; cut++)
            table_expect_bad(context, &f, format, data, cut, "cut", cut);
        uint8_t *longer = malloc(bytes + 1);
        ck_assert_ptr_nonnull(longer);
        memcpy(longer, data, bytes);
        longer[bytes] = 0;
        table_expect_bad(context, &f, format, longer, bytes + 1, "one byte more", bytes);
        free(longer);
        free(data);
        hbp_context_free(context);
    }
}

/* Every changed byte behind right checksums: columns and names are what they were, or the file is refused.
 * What may change is what nobody relies on: sums, and keys that are passed over. */
static inline void table_bears_changes(const hbp__table_format *format, const void *object)
{
    failing f;
    hbp_context *context = failing_context(&f, NULL, NULL);
    size_t bytes, loaded = 0, refused = 0;
    void *back;
    uint8_t *data = table_saved(context, format, object, 0, &bytes), *changed = malloc(bytes);
    hbp__table cells = *format->table;
    cells.number_count = 0;
    ck_assert_ptr_nonnull(changed);
    for (size_t at = 0; at < bytes; at++)
        for (size_t m = 0; m < sizeof table_masks; m++) {
            memcpy(changed, data, bytes);
            changed[at] ^= table_masks[m];
            reseal_tasks(changed, bytes);
            int64_t live = f.live;
            f.peak_bytes = f.bytes;
            hbp_status status = table_load(context, format, changed, bytes, &back);
            ck_assert_int_lt(f.peak_bytes - f.bytes, 1 << 20);
            if (status == HBP_OK) {
                OK(context, format->check(context, back));
                table_expect_same(&cells, object, back);
                loaded++;
            } else {
                ck_assert_msg(status == HBP_E_FORMAT || status == HBP_E_VERSION, "byte %d: %s", (int)at,
                              hbp_status_name(status));
                refused++;
            }
            hbp__table_free(&context->memory, format->table, back);
            ck_assert_int_eq(f.live, live);
        }
    ck_assert_uint_gt(loaded, 0);
    ck_assert_uint_gt(refused, 5 * loaded);
    free(changed);
    free(data);
    hbp_context_free(context);
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
    ck_assert(hbp__msgpack_scan(data, *bytes, 4096, &header));
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
            table_expect_bad(context, &f, format, changed, grown, key, (size_t)power);
            free(changed);
        }
    }
    ck_assert_int_gt(counts, 1);
    free(data);
    hbp_context_free(context);
}

typedef struct table_stored {
    const hbp__table_format *format;
    const void *object;
    uint8_t *data;
    size_t bytes;
    char path[128];
} table_stored;

static inline hbp_status table_load_stored(hbp_context *context, void *user)
{
    table_stored *s = user;
    void *object;
    hbp_status status = table_load(context, s->format, s->data, s->bytes, &object);
    ck_assert_int_eq(status == HBP_OK, object != NULL);
    hbp__table_free(&context->memory, s->format->table, object);
    return status;
}

static inline hbp_status table_save_stored(hbp_context *context, void *user)
{
    table_stored *s = user;
    HBP__TRY(hbp__enter(context));
    return hbp__table_save(context, s->format, s->object, s->path, 1);
}

/* Every allocation that fails and every request to cancel, in reading and writing. */
static inline void table_leaves_nothing(hbp_context *context, const hbp__table_format *format,
                                        const void *object)
{
    char folder[64];
    table_stored s = {.format = format, .object = object};
    s.data = table_saved(context, format, object, 1, &s.bytes);
    folder_make(folder);
    folder_path(s.path, folder, "object.msgpack");
    failing_sweep(table_load_stored, &s);
    ck_assert_int_ge(cancel_sweep(table_load_stored, &s), 2);
    failing_sweep(table_save_stored, &s);
    ck_assert_int_ge(cancel_sweep(table_save_stored, &s), 1);
    ck_assert_int_le(folder_count(folder), 1);
    folder_remove(folder);
    free(s.data);
}

#endif
