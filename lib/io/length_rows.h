/* What every reader of lengths shares: where rows go, and how their failures are told. */
#ifndef HBP_IO_LENGTH_ROWS_H
#define HBP_IO_LENGTH_ROWS_H

#include <stdint.h>

#include "base/context.h"
#include "data/lengths.h"
#include "io/stream.h"

#define HBP__ROWS_BATCH 4096

typedef struct hbp__length_rows {
    hbp_context *context;
    hbp__stream *in;
    const hbp_lengths_read_options *options;
    const char *unit; /* what a row's number counts: "line", "item" */
    int has_loss;
    int has_tie;
    int histogram; /* rows are (length, count) */
    int64_t added; /* rows so far */
    hbp_lengths_builder *builder;
    int64_t pending; /* rows of the batch */
    int64_t *length; /* [HBP__ROWS_BATCH] */
    int64_t *loss;
    int64_t *tie;
    int64_t bins; /* of a histogram */
    int64_t room;
    int64_t *bin_length;
    int64_t *bin_count;
} hbp__length_rows;

typedef struct hbp__length_row {
    int64_t length;
    int64_t count; /* of a histogram */
    int64_t loss;
    int64_t tie;
} hbp__length_row;

hbp_status hbp__rows_begin(hbp__length_rows *rows, hbp_context *context, hbp__stream *in,
                           const hbp_lengths_read_options *options);

/* Adds a row that stands at `number` (line or item) of the file. HBP_E_INVALID, HBP_E_OVERFLOW with that
 * place. */
hbp_status hbp__rows_add(hbp__length_rows *rows, const hbp__length_row *row, int64_t number);

/* Makes the data set of all rows. */
hbp_status hbp__rows_finish(hbp__length_rows *rows, hbp_lengths **out);

void hbp__rows_end(hbp__length_rows *rows);

/* Parses a whole number with optional sign and blanks around it, in decimal. 1: *out is set; 0: not a whole
 * number; -1: it does not fit. */
int hbp__parse_i64(const char *text, int64_t bytes, int64_t *out);

/* hbp__parse_i64 of a field called `name`, its failures told with the place. */
hbp_status hbp__rows_parse(const hbp__length_rows *rows, const char *name, const char *text, int64_t bytes,
                           int64_t number, int64_t *out);

#endif
