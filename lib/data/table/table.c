#include "data/table/table.h"

#include <stdio.h>
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

/* Of `present`: every column, and the lists of names. A table has fewer columns than bits. */
#define ALL UINT64_MAX

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

/* What a column and the gap behind it take, in *room; 0 when that is more than there can be. */
static int room_of(const void *object, const hbp__member *member, uint64_t *room)
{
    uint64_t bytes;
    if (!hbp__mul_u64((uint64_t)hbp__table_rows(object, member), hbp__cell_bytes(member->cell), &bytes) ||
        !hbp__add_u64(bytes, ALIGNMENT - 1 + GAP, &bytes))
        return 0;
    *room = bytes - bytes % ALIGNMENT;
    return 1;
}

/* Columns and lists of names in a row, of those that `present` names (all lists above its bits). */
static const hbp__member *member_at(const hbp__table *table, int32_t i)
{
    return i < table->column_count ? &table->columns[i] : &table->names[i - table->column_count];
}

static int is_present(const hbp__table *table, int32_t i, uint64_t present)
{
    return i < table->column_count ? present >> i & 1 : present == ALL;
}

static uint64_t object_room(const hbp__table *table)
{
    return table->bytes + ALIGNMENT - 1 - (table->bytes + ALIGNMENT - 1) % ALIGNMENT;
}

static int total_room(const hbp__table *table, const void *object, uint64_t present, uint64_t *total)
{
    uint64_t room;
    *total = object_room(table);
    for (int32_t i = 0; i < table->column_count + table->name_count; i++)
        if (is_present(table, i, present) &&
            (!room_of(object, member_at(table, i), &room) || !hbp__add_u64(*total, room, total)))
            return 0;
    return 1;
}

/* Lays the object's columns out behind it. */
static void lay_columns(const hbp__table *table, void *object, uint64_t present)
{
    char *at = (char *)object + object_room(table);
    for (int32_t i = 0; i < table->column_count + table->name_count; i++) {
        const hbp__member *member = member_at(table, i);
        void *cells = NULL;
        uint64_t room = 0;
        if (is_present(table, i, present)) {
            uint64_t bytes = (uint64_t)hbp__table_rows(object, member) * hbp__cell_bytes(member->cell);
            (void)room_of(object, member, &room);
            cells = at;
            WATCH(at + bytes, room - bytes);
        }
        memcpy((char *)object + member->at, &cells, sizeof cells);
        at += room;
    }
}

static void *new_object(const hbp__memory *memory, const hbp__table *table, const void *shape,
                        uint64_t present, int is_zero)
{
    uint64_t total;
    if (!total_room(table, shape, present, &total))
        return NULL;
    void *object = is_zero ? hbp__new_zero(memory, total, 1) : hbp__new(memory, total, 1);
    if (!object)
        return NULL;
    memcpy(object, shape, table->bytes);
    lay_columns(table, object, present);
    return object;
}

void *hbp__table_new(const hbp__memory *memory, const hbp__table *table, const void *shape)
{
    return new_object(memory, table, shape, ALL, 1);
}

void *hbp__table_new_some(const hbp__memory *memory, const hbp__table *table, const void *shape,
                          uint64_t present)
{
    return new_object(memory, table, shape, present & ~(UINT64_C(1) << 63), 0);
}

static void free_names(const hbp__memory *memory, const void *object, const hbp__member *names)
{
    char **name = hbp__table_cells(object, names);
    int64_t rows = name ? hbp__table_rows(object, names) : 0;
    for (int64_t i = 0; i < rows; i++)
        hbp__delete(memory, name[i]);
}

void hbp__table_free(const hbp__memory *memory, const hbp__table *table, void *object)
{
    uint64_t room, total = object_room(table);
    if (!object)
        return;
    for (int32_t i = 0; i < table->column_count + table->name_count; i++)
        if (hbp__table_cells(object, member_at(table, i)) && room_of(object, member_at(table, i), &room))
            total += room;
    for (int32_t i = 0; i < table->name_count; i++)
        free_names(memory, object, &table->names[i]);
    UNWATCH(object, total);
    hbp__delete(memory, object);
}

void hbp__column_copy(const hbp__member *column, void *object, int64_t to, const void *source, int64_t from,
                      int64_t rows)
{
    uint64_t size = hbp__cell_bytes(column->cell);
    char *cells = hbp__table_cells(object, column);
    const char *others = hbp__table_cells(source, column);
    memcpy(cells + (uint64_t)to * size, others + (uint64_t)from * size, (uint64_t)rows * size);
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

void hbp__column_digest(const hbp__member *column, const void *object, hbp__digest *digest)
{
    const void *cells = hbp__table_cells(object, column);
    int64_t rows = hbp__table_rows(object, column);
    if (column->cell == HBP__CELL_I32)
        hbp__digest_column_i32(digest, cells, rows);
    else
        hbp__digest_column_i64(digest, cells, rows);
}

void hbp__table_digest(const hbp__table *table, const void *object, hbp__digest *digest)
{
    for (int32_t i = 0; i < table->column_count; i++)
        hbp__column_digest(&table->columns[i], object, digest);
    for (int32_t i = 0; i < table->name_count; i++) {
        char *const *name = hbp__table_cells(object, &table->names[i]);
        int64_t rows = hbp__table_rows(object, &table->names[i]);
        hbp__digest_u64(digest, (uint64_t)rows);
        for (int64_t k = 0; k < rows; k++)
            digest_text(digest, name[k]);
    }
}

static void print_cell(hbp__cell cell, const void *at, char text[32])
{
    union {
        int32_t i32;
        int64_t i64;
        uint64_t u64;
        double f64;
    } value;
    memcpy(&value, at, hbp__cell_bytes(cell));
    if (cell == HBP__CELL_F64)
        snprintf(text, 32, "%.17g", value.f64);
    else if (cell == HBP__CELL_U64)
        snprintf(text, 32, "%016llx", (unsigned long long)value.u64);
    else
        snprintf(text, 32, "%lld", cell == HBP__CELL_I32 ? value.i32 : (long long)value.i64);
}

/* Fails where a cell is not what was found. */
static hbp_status compare_cell(hbp_context *context, const hbp__member *member, int64_t row, const void *told,
                               const void *found, const char *whose)
{
    char place[32] = "", is[32], makes[32];
    if (memcmp(told, found, hbp__cell_bytes(member->cell)) == 0)
        return HBP_OK;
    if (row >= 0)
        snprintf(place, sizeof place, " %lld", (long long)row);
    print_cell(member->cell, told, is);
    print_cell(member->cell, found, makes);
    return hbp__fail(context, HBP_E_INVALID, "%s%s is %s; %s it %s", member->name, place, is, whose, makes);
}

hbp_status hbp__table_compare(hbp_context *context, const hbp__table *table, const void *told,
                              const void *found, const char *whose)
{
    for (int32_t i = 0; i < table->column_count; i++) {
        const hbp__member *column = &table->columns[i];
        const uint64_t bytes = hbp__cell_bytes(column->cell);
        const char *these = hbp__table_cells(told, column), *those = hbp__table_cells(found, column);
        for (int64_t row = 0; row < hbp__table_rows(found, column); row++)
            HBP__TRY(compare_cell(context, column, row, these + (uint64_t)row * bytes,
                                  those + (uint64_t)row * bytes, whose));
    }
    for (int32_t i = 0; i < table->number_count; i++) {
        const hbp__member *number = &table->numbers[i];
        HBP__TRY(compare_cell(context, number, -1, (const char *)told + number->at,
                              (const char *)found + number->at, whose));
    }
    return HBP_OK;
}
