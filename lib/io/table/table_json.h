/* Objects of tables as JSON. */
#ifndef HBP_IO_TABLE_JSON_H
#define HBP_IO_TABLE_JSON_H

#include "data/table/table.h"
#include "io/json/json_out.h"

/* Numbers and lists of names, or columns, as members of an object under the keys that files have: `before`
 * the first one, a comma before each other. Digests are texts: many readers hold numbers as doubles. */
hbp_status hbp__json_put_numbers(hbp__json_out *out, const hbp__table *table, const void *object,
                                 const char *before);
hbp_status hbp__json_put_columns(hbp__json_out *out, const hbp__table *table, const void *object,
                                 const char *before);

/* A file of one object: numbers and names, and under "columns" the columns. */
hbp_status hbp__table_write_json(hbp_context *context, const hbp__table *table, const void *object,
                                 const char *path);

#endif
