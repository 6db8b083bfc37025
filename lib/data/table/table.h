/* Objects whose content is tables: numbers, columns and lists of names, described once. The description is
 * what allocation, digests and files (io/table/table_file.h) follow; they know no object. */
#ifndef HBP_DATA_TABLE_H
#define HBP_DATA_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/context.h"
#include "base/digest.h"
#include "base/memory.h"

typedef enum hbp__cell {
    HBP__CELL_I32,
    HBP__CELL_I64,
    HBP__CELL_U64,
    HBP__CELL_F64,
    HBP__CELL_COUNT, /* a number of rows, int64_t, of what the former number says: it is read with that one */
    HBP__CELL_NAME   /* char *, each a block of its own */
} hbp__cell;

/* A number of an object, or a column or a list of names: a pointer in it to as many cells as a count says. */
typedef struct hbp__member {
    const char *name;
    hbp__cell cell;
    int64_t extra;  /* rows beyond the count */
    size_t at;      /* offset of the number or the pointer in the object */
    size_t rows_at; /* offset of the count, an int64_t; columns and names */
} hbp__member;

/* One kind of object. Column and names are in the order of digests and files. */
typedef struct hbp__table {
    const char *what; /* for messages: "the schedule of tasks" */
    size_t bytes;     /* of the object */
    const hbp__member *numbers;
    const hbp__member *columns;
    const hbp__member *names;
    int32_t number_count;
    int32_t column_count;
    int32_t name_count;
} hbp__table;

#define HBP__CELL_AS(value)                                                                                  \
    _Generic((value), int32_t                                                                                \
             : HBP__CELL_I32, int64_t                                                                        \
             : HBP__CELL_I64, uint64_t                                                                       \
             : HBP__CELL_U64, double                                                                         \
             : HBP__CELL_F64)

/* Members of descriptions. */
#define HBP__MEMBER_NUMBER(object, type, field)                                                              \
    {                                                                                                        \
#field, HBP__CELL_AS((type)0), 0, offsetof(object, field), 0                                         \
    }
/* A number that stands in the object's summary. */
#define HBP__MEMBER_SUMMARY(object, field)                                                                   \
    {                                                                                                        \
#field, HBP__CELL_AS(((object *)0)->summary.field), 0, offsetof(object, summary.field), 0            \
    }
/* The count of what the former number of that name says. */
#define HBP__MEMBER_COUNT(object, name, field)                                                               \
    {                                                                                                        \
        name, HBP__CELL_COUNT, 0, offsetof(object, field), 0                                                 \
    }
#define HBP__MEMBER_COLUMN(object, type, field, count, more)                                                 \
    {                                                                                                        \
#field, HBP__CELL_AS((type)0), more, offsetof(object, field), offsetof(object, count)                \
    }
#define HBP__MEMBER_NAMES(object, field, count)                                                              \
    {                                                                                                        \
#field, HBP__CELL_NAME, 0, offsetof(object, field), offsetof(object, count)                          \
    }

/* Rows of a column or a list of names. */
int64_t hbp__table_rows(const void *object, const hbp__member *member);

/* The cells of a column or list. */
void *hbp__table_cells(const void *object, const hbp__member *member);

/* Bytes of a cell in memory. */
uint64_t hbp__cell_bytes(hbp__cell cell);

/* Bytes of all columns of an object whose counts are those of `shape`; -1 when a count is negative, or so
 * large that no file holds it. */
int64_t hbp__table_bytes(const hbp__table *table, const void *shape);

/* An object in one block: a copy of `shape`, its columns and lists of names zeroed. NULL when memory is
 * short. The counts must not change while it lives. */
void *hbp__table_new(const hbp__memory *memory, const hbp__table *table, const void *shape);

/* The same of the columns whose bit is set in `present`, the first one's the lowest, and uninitialised; the
 * others are NULL, and so are all lists of names. */
void *hbp__table_new_some(const hbp__memory *memory, const hbp__table *table, const void *shape,
                          uint64_t present);

/* Releases an object of either and its names; NULL is allowed. */
void hbp__table_free(const hbp__memory *memory, const hbp__table *table, void *object);

/* Rows [from, from + rows) of a column of one object to `to` .. of another's. */
void hbp__column_copy(const hbp__member *column, void *object, int64_t to, const void *source, int64_t from,
                      int64_t rows);

/* A column into a digest; one that is absent counts as no rows. All columns, then all names. */
void hbp__column_digest(const hbp__member *column, const void *object, hbp__digest *digest);
void hbp__table_digest(const hbp__table *table, const void *object, hbp__digest *digest);

/* Two objects of one shape: HBP_E_INVALID names the first cell of `told`, or else its first number, that is
 * not what `found` has: "stage_bytes 3 is 5; the layers make it 6". `whose`: "the layers make". */
hbp_status hbp__table_compare(hbp_context *context, const hbp__table *table, const void *told,
                              const void *found, const char *whose);

#endif
