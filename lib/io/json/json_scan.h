/* The reader of JSON: a pass over its text, of any length, that keeps nothing: values are stepped over,
 * numbers and strings handed out, array elements counted. io/json/json_tree.h makes values of them. */
#ifndef HBP_IO_JSON_SCAN_H
#define HBP_IO_JSON_SCAN_H

#include <stdint.h>

#include "io/file/stream.h"

#define HBP__JSON_TEXT  64
#define HBP__JSON_DEPTH 512

enum { HBP__JSON_END, HBP__JSON_NUMBER, HBP__JSON_STRING, HBP__JSON_ARRAY, HBP__JSON_OBJECT, HBP__JSON_WORD };

typedef struct hbp__json_scan {
    hbp_context *context;
    const char *name; /* of the file, for messages */
    hbp__stream *in;  /* NULL: all of it is shown */
    int64_t line;
    int strict; /* no NaN, no Infinity, and strings are Unicode without a U+0000 */
    int kind;   /* of the last value: HBP__JSON_* */
    char own[HBP__JSON_TEXT];
    char *text; /* [room] the last number, word, or string with its escapes undone; cut off when longer */
    int64_t room;
    int64_t bytes;             /* of the whole of it */
    int64_t elements;          /* of the last array */
    const unsigned char *data; /* what the stream shows, and how far it has been used */
    int64_t shown;
    int64_t used;
} hbp__json_scan;

/* Begins a file; text is `own`, unless it is set to another place. */
void hbp__json_begin(hbp__json_scan *scan, hbp_context *context, hbp__stream *in);

/* Begins a text [bytes] in memory, under the name `name`, strictly. */
void hbp__json_begin_text(hbp__json_scan *scan, hbp_context *context, const char *name, const char *text,
                          int64_t bytes);

/* Steps over blanks and line ends; *byte is what follows, or -1 at the end. */
hbp_status hbp__json_next(hbp__json_scan *scan, int *byte);

/* Steps over the byte that hbp__json_next showed. */
void hbp__json_take(hbp__json_scan *scan);

/* Reads a string, whose opening quote is next, into text. */
hbp_status hbp__json_string(hbp__json_scan *scan);

/* Reads a key, which is next, into text, and steps over its colon. */
hbp_status hbp__json_key(hbp__json_scan *scan);

/* Reads a number, a word or a string. */
hbp_status hbp__json_scalar(hbp__json_scan *scan);

/* Reads any value. HBP_E_FORMAT, with the line, for what is not JSON (NaN and Infinity pass) or nests too
 * deep. */
hbp_status hbp__json_value(hbp__json_scan *scan);

/* HBP_E_FORMAT with file and line; `what` goes on from there. */
hbp_status hbp__json_fail(const hbp__json_scan *scan, const char *what);

#endif
