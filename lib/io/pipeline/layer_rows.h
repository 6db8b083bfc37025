/* What the readers of layers share: which column a name means, and where values go. */
#ifndef HBP_IO_LAYER_ROWS_H
#define HBP_IO_LAYER_ROWS_H

#include <stdint.h>

#include "data/pipeline/layers.h"
#include "io/file/stream.h"

/* Fields of a row: the int64 columns in the order of HBP__LAYER_COLUMNS, then these. */
#define HBP__COUNT_COLUMN(name) +1
#define HBP__LAYER_KIND         (0 HBP__LAYER_COLUMNS(HBP__COUNT_COLUMN))
#define HBP__LAYER_CUT_KIND     (HBP__LAYER_KIND + 1)
#define HBP__LAYER_NAME         (HBP__LAYER_KIND + 2)
#define HBP__LAYER_FIELDS       (HBP__LAYER_KIND + 3)

#define HBP__LAYER_NAME_BYTES 64 /* longer names are cut off */

typedef struct hbp__layer_row {
    uint32_t seen; /* a bit for each field */
    int64_t value[HBP__LAYER_NAME];
    char name[HBP__LAYER_NAME_BYTES];
} hbp__layer_row;

typedef struct hbp__layer_rows {
    hbp_context *context;
    hbp__stream *in;
    uint32_t fields; /* that every row has */
    int64_t count;
    int64_t room;
    hbp__layer_row *row;
} hbp__layer_rows;

/* The field that a column's name means, and what its numbers are multiplied by: forward_us and the like are
 * converted, of sizes forms in kib, mib and gib. -1: no field's name. */
int32_t hbp__layer_field(const char *name, int64_t bytes, double *unit);

/* HBP_E_FORMAT for a name that is no field and ends in a unit of time or size: a misspelling, most likely. */
hbp_status hbp__layer_check_name(const hbp__layer_rows *rows, int64_t line, const char *name, int64_t bytes);

/* A field's own name. */
const char *hbp__layer_field_name(int32_t field);

/* Puts a value's text into a row. HBP_E_FORMAT with file and line; `name` is the column's. */
hbp_status hbp__layer_put(const hbp__layer_rows *rows, int64_t line, int32_t field, double unit,
                          const char *name, const char *text, int64_t bytes, hbp__layer_row *row);

/* Adds a row, which must have the fields that the first has. */
hbp_status hbp__layer_add(hbp__layer_rows *rows, int64_t line, const hbp__layer_row *row);

/* The readers: each reads the whole stream into rows. */
hbp_status hbp__layers_csv(hbp__layer_rows *rows);
hbp_status hbp__layers_jsonl(hbp__layer_rows *rows);

#endif
