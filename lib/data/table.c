#include "data/table.h"

#include <string.h>

#include "base/checked.h"

/* Bytes between two columns; sanitizers see a row too many there. */
#if defined(__SANITIZE_ADDRESS__)
#define WATCHED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WATCHED 1
#endif
#endif
#ifdef WATCHED
#include <sanitizer/asan_interface.h>
#define GAP            UINT64_C(32)
#define WATCH(at, n)   __asan_poison_memory_region(at, n)
#define UNWATCH(at, n) __asan_unpoison_memory_region(at, n)
#else
#define GAP            UINT64_C(0)
#define WATCH(at, n)   ((void)(at), (void)(n))
#define UNWATCH(at, n) ((void)(at), (void)(n))
#endif

#define ALIGNMENT UINT64_C(16)

/* No table of a file has more rows: the sum over all columns cannot overflow. */
#define MOST_ROWS (INT64_C(1) << 32)

int64_t hbp__table_rows(const void *object, const hbp__member *member)
{
    int64_t rows;
    memcpy(&rows, (const char *)object + member->rows_at, sizeof rows);
    return rows + member->extra;
}

void *hbp__table_cells(const void *object, const hbp__member *member)
{
    void *cells;
    memcpy(&cells, (const char *)object + member->at, sizeof cells);
    return cells;
}

uint64_t hbp__cell_bytes(hbp__cell cell)
{
    return cell == HBP__CELL_I32 ? 4 : cell == HBP__CELL_NAME ? sizeof(char *) : 8;
}

int64_t hbp__table_bytes(const hbp__table *table, const void *shape)
{
    int64_t bytes = 0;
    for (int32_t i = 0; i < table->column_count; i++) {
        const hbp__member *column = &table->columns[i];
        int64_t rows = hbp__table_rows(shape, column);
        if (rows < column->extra || rows > MOST_ROWS + column->extra)
            return -1;
        bytes += rows * (int64_t)hbp__cell_bytes(column->cell);
    }
    return bytes;
}

/* Adds room for a column and the gap behind it. */
static int add_room(const void *shape, const hbp__member *member, uint64_t *total)
{
    uint64_t bytes;
    return hbp__mul_u64((uint64_t)hbp__table_rows(shape, member), hbp__cell_bytes(member->cell), &bytes) &&
           hbp__add_u64(bytes, ALIGNMENT - 1 + GAP, &bytes) &&
           hbp__add_u64(*total, bytes - bytes % ALIGNMENT, total);
}

/* Lays a column out at *at, which moves behind it and its gap. */
static void lay(void *object, const hbp__member *member, char **at)
{
    uint64_t bytes = (uint64_t)hbp__table_rows(object, member) * hbp__cell_bytes(member->cell);
    uint64_t room = bytes + ALIGNMENT - 1 + GAP;
    room -= room % ALIGNMENT;
    void *cells = *at;
    memcpy((char *)object + member->at, &cells, sizeof cells);
    WATCH(*at + bytes, room - bytes);
    *at += room;
}

static uint64_t object_room(const hbp__table *table)
{
    return table->bytes + ALIGNMENT - 1 - (table->bytes + ALIGNMENT - 1) % ALIGNMENT;
}

void *hbp__table_new(const hbp__memory *memory, const hbp__table *table, const void *shape)
{
    uint64_t total = object_room(table);
    for (int32_t i = 0; i < table->column_count; i++)
        if (!add_room(shape, &table->columns[i], &total))
            return NULL;
    for (int32_t i = 0; i < table->name_count; i++)
        if (!add_room(shape, &table->names[i], &total))
            return NULL;
    void *object = hbp__new_zero(memory, total, 1);
    if (!object)
        return NULL;
    memcpy(object, shape, table->bytes);
    char *at = (char *)object + object_room(table);
    for (int32_t i = 0; i < table->column_count; i++)
        lay(object, &table->columns[i], &at);
    for (int32_t i = 0; i < table->name_count; i++)
        lay(object, &table->names[i], &at);
    return object;
}

static void free_names(const hbp__memory *memory, const void *object, const hbp__member *names)
{
    char **name = hbp__table_cells(object, names);
    int64_t rows = hbp__table_rows(object, names);
    for (int64_t i = 0; i < rows; i++)
        hbp__delete(memory, name[i]);
}

void hbp__table_free(const hbp__memory *memory, const hbp__table *table, void *object)
{
    if (!object)
        return;
    uint64_t total = object_room(table);
    for (int32_t i = 0; i < table->column_count; i++)
        add_room(object, &table->columns[i], &total);
    for (int32_t i = 0; i < table->name_count; i++) {
        free_names(memory, object, &table->names[i]);
        add_room(object, &table->names[i], &total);
    }
    UNWATCH(object, total);
    hbp__delete(memory, object);
}

/* Eight characters a word, the first one lowest, and the length: the same on every byte order. */
static void digest_text(hbp__digest *digest, const char *text)
{
    uint64_t word = 0, length = 0;
    for (; text && text[length]; length++) {
        word |= (uint64_t)(unsigned char)text[length] << 8 * (length % 8);
        if (length % 8 == 7) {
            hbp__digest_u64(digest, word);
            word = 0;
        }
    }
    hbp__digest_u64(digest, word);
    hbp__digest_u64(digest, length);
}

void hbp__table_digest(const hbp__table *table, const void *object, hbp__digest *digest)
{
    for (int32_t i = 0; i < table->column_count; i++) {
        const hbp__member *column = &table->columns[i];
        const void *cells = hbp__table_cells(object, column);
        int64_t rows = hbp__table_rows(object, column);
        if (column->cell == HBP__CELL_I32)
            hbp__digest_column_i32(digest, cells, rows);
        else
            hbp__digest_column_i64(digest, cells, rows);
    }
    for (int32_t i = 0; i < table->name_count; i++) {
        char *const *name = hbp__table_cells(object, &table->names[i]);
        int64_t rows = hbp__table_rows(object, &table->names[i]);
        hbp__digest_u64(digest, (uint64_t)rows);
        for (int64_t k = 0; k < rows; k++)
            digest_text(digest, name[k]);
    }
}
