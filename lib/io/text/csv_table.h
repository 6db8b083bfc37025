/* CSV with a header of column names, read a row at a time. */
#ifndef HBP_IO_CSV_TABLE_H
#define HBP_IO_CSV_TABLE_H

#include <stdint.h>

#include "io/file/stream.h"

#define HBP__CSV_COLUMNS 256 /* most of them */

/* The caller's part. Names, values and comments come without the blanks around them. */
typedef struct hbp__csv_table {
    hbp_context *context;
    hbp__stream *in;
    void *user;
    /* A line that begins with #, less that; NULL: no line is a comment. */
    hbp_status (*comment)(void *user, int64_t line, const char *text, int64_t bytes);
    /* Which field, 0..63, a column holds, -1: none, and the unit of its numbers. */
    hbp_status (*column)(void *user, int64_t line, const char *name, int64_t bytes, int32_t *field,
                         double *unit);
    const char *(*field_name)(int32_t field);
    /* After the header, with a bit for each field that it has: a file of another kind is refused before its
     * rows are read. NULL: any will do. */
    hbp_status (*header)(void *user, uint64_t fields);
    hbp_status (*value)(void *user, int64_t line, int32_t field, double unit, const char *text,
                        int64_t bytes);
    hbp_status (*row)(void *user, int64_t line); /* after its values */
} hbp__csv_table;

/* Reads the whole stream. HBP_E_FORMAT names file and line for two columns of one field and for a row with
 * more or fewer fields than the header. *fields gets a bit for each field that the header has. */
hbp_status hbp__csv_table_read(const hbp__csv_table *table, uint64_t *fields);

#endif
