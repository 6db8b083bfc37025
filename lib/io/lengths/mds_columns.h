/* The columns of an MDS shard, as its index describes them. */
#ifndef HBP_IO_MDS_COLUMNS_H
#define HBP_IO_MDS_COLUMNS_H

#include <stdint.h>

#include "io/lengths/length_rows.h"
#include "io/value/value.h"

enum { HBP__MDS_ARRAY, HBP__MDS_BYTES, HBP__MDS_INTEGER, HBP__MDS_DIGITS, HBP__MDS_OTHER };

typedef struct hbp__mds_column {
    const char *name; /* in the index, as is the encoding */
    const char *encoding;
    int kind;
    int item; /* bytes of an element, or of the integer; 0: its samples say, or the name that is asked for */
    int is_signed;
    int64_t elements; /* of an array whose shape all samples share; 0: each says its own */
    int64_t fixed;    /* bytes in every sample; 0: each sample says its own */
    int64_t bytes;    /* in the sample that is read */
} hbp__mds_column;

/* What a row is made of. */
enum { HBP__MDS_LENGTH, HBP__MDS_LOSS, HBP__MDS_LINK, HBP__MDS_VISION, HBP__MDS_MODALITY, HBP__MDS_ROLES };

typedef struct hbp__mds_columns {
    int64_t count;
    int64_t room;
    hbp__mds_column *column;    /* [room] */
    int64_t of[HBP__MDS_ROLES]; /* which column is what; -1: none is */
} hbp__mds_columns;

/* Takes the columns of `shard` out of the index in place of those before, and finds those that the options
 * ask for. HBP_E_FORMAT, HBP_E_INVALID; `columns` is all zero to begin with, its array the caller's. */
hbp_status hbp__mds_columns_read(hbp__length_rows *rows, const hbp__value *shard, hbp__mds_columns *columns);

/* Bytes of an element of an array that says its type by NumPy's code; 0 of an unknown one. */
int hbp__mds_item_of_code(int code);

#endif
