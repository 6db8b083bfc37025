/* Fields of delimited text, one at a time, in bounded memory: RFC 4180, or plain lines. */
#ifndef HBP_IO_FIELDS_H
#define HBP_IO_FIELDS_H

#include <stdint.h>

#include "io/file/stream.h"

/* What is kept of a field; the rest of a longer one is skipped. */
#define HBP__FIELD_BYTES 256

typedef struct hbp__fields {
    hbp_context *context;
    hbp__stream *in;
    int delimiter; /* -1: none */
    int quotes;    /* "..." holds delimiters, line ends and doubled quotes */
    int64_t line;  /* of the record's first byte, from 1 */
    int64_t next_line;
    int end;       /* there is no more; the field is void */
    int last;      /* the field ends its record */
    int64_t index; /* of the field in its record, from 0 */
    char text[HBP__FIELD_BYTES];
    int64_t bytes; /* of `text` */
    int too_long;  /* the field is longer than `text` */
    int was_quoted;
    const unsigned char *data; /* what the stream shows, and how far it has been used */
    int64_t shown;
    int64_t used;
} hbp__fields;

/* The comma, tab or semicolon that comes first in the first line; a comma where there is none. */
hbp_status hbp__fields_delimiter(hbp__stream *in, int *delimiter);

/* Starts at the stream's place; a UTF-8 byte order mark is stepped over. */
hbp_status hbp__fields_begin(hbp__fields *fields, hbp_context *context, hbp__stream *in, int delimiter,
                             int quotes);

/* hbp__fields_delimiter of the line that comes next, for the fields from here on. */
hbp_status hbp__fields_find_delimiter(hbp__fields *fields);

/* The byte that comes next, -1 at the end. */
hbp_status hbp__fields_peek(hbp__fields *fields, int *byte);

/* The next field. HBP_E_FORMAT for a quote that does not end and for text after a closing quote. */
hbp_status hbp__fields_next(hbp__fields *fields);

/* Whether the field is the empty only one of its record: a blank line. */
int hbp__fields_blank(const hbp__fields *fields);

#endif
