/* What every reader of lengths shares: where rows go, and how their failures are told. */
#ifndef HBP_IO_LENGTH_ROWS_H
#define HBP_IO_LENGTH_ROWS_H

#include <stdint.h>

#include "base/context.h"
#include "data/lengths/lengths.h"
#include "hbp/io.h"
#include "io/file/stream.h"

#define HBP__ROWS_BATCH 4096

/* The numbers of vision units that stand in a file of their own. */
typedef struct hbp__unit_list {
    const char *name; /* of the file */
    int64_t count;
    int64_t room;
    uint32_t *unit; /* [room] */
} hbp__unit_list;

typedef struct hbp__length_rows {
    hbp_context *context;
    hbp__stream *in;
    const hbp_lengths_load_options *options;
    const char *unit;   /* what a row's number counts: "line", "item" */
    const char *noun;   /* what a row's length is called; it holds vision units where they are listed */
    const char *column; /* found by this name, none was given; NULL */
    int has_loss;
    int has_link;
    int has_vision;
    int has_modality;
    int histogram;                /* rows are (length, count) */
    hbp__unit_list *list;         /* rows are vision units and go here; NULL: rows are lengths */
    const hbp__unit_list *beside; /* the vision units of the rows, from another file; NULL: none */
    int64_t added;                /* rows so far */
    hbp_lengths_builder *builder;
    int64_t pending; /* rows of the batch */
    int64_t *length; /* [HBP__ROWS_BATCH] */
    int64_t *loss;
    int64_t *link;
    int64_t *vision;
    int32_t *modality;
    /* Opens a file beside `in`, *out NULL where there is none; NULL: those in its folder. */
    hbp_status (*open_beside)(hbp_context *context, void *user, const char *name, hbp__stream **out);
    void *open_user;
    int64_t bins; /* of a histogram */
    int64_t room;
    int64_t *bin_length;
    int64_t *bin_count;
} hbp__length_rows;

typedef struct hbp__length_row {
    int64_t length;
    int64_t count; /* of a histogram */
    int64_t loss;
    int64_t link;
    int64_t vision;
    int64_t modality;
} hbp__length_row;

hbp_status hbp__rows_begin(hbp__length_rows *rows, hbp_context *context, hbp__stream *in,
                           const hbp_lengths_load_options *options);

/* From here on rows are (length, count). HBP_E_INVALID where more is wished for than a histogram has. */
hbp_status hbp__rows_histogram(hbp__length_rows *rows);

/* Adds a row that stands at `number` (line or item) of the file. HBP_E_INVALID, HBP_E_OVERFLOW with that
 * place. */
hbp_status hbp__rows_add(hbp__length_rows *rows, const hbp__length_row *row, int64_t number);

/* Makes the data set of all rows, or with a list only sees that there are any. */
hbp_status hbp__rows_finish(hbp__length_rows *rows, hbp_lengths **out);

void hbp__rows_end(hbp__length_rows *rows);

/* The i-th name, in order of preference, under which a length, or with a list the vision units, is looked
 * for; NULL after the last. */
const char *hbp__length_name(const hbp__length_rows *rows, int i);

/* hbp__read_i64 of a field called `name`, its failures told with the place. */
hbp_status hbp__rows_parse(const hbp__length_rows *rows, const char *name, const char *text, int64_t bytes,
                           int64_t number, int64_t *out);

#endif
