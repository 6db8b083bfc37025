/* JSON written piece by piece into a file, gzipped or not, or a buffer, the same bytes in every locale. */
#ifndef HBP_IO_JSON_OUT_H
#define HBP_IO_JSON_OUT_H

#include <stdint.h>

#include "io/file/atomic_file.h"
#include "io/file/gzip_out.h"
#include "io/msgpack/msgpack_buffer.h"

/* What stands for a byte of a string that cannot stand for itself. */
enum {
    HBP__ESCAPE_HEX,   /* \u0022 */
    HBP__ESCAPE_SHORT, /* \" and its like where JSON has one */
    HBP__ESCAPE_ASCII, /* the same, and \u for all that is not ASCII; texts that are not UTF-8 are made
                          printable */
};

typedef struct hbp__json_out {
    hbp_context *context;
    hbp__atomic_file *file;
    hbp_status status;   /* of the first write that failed; later ones do nothing */
    hbp__buffer *buffer; /* where it goes instead of a file; NULL: the file */
    hbp__gzip_out *gzip; /* on the way into the file; NULL: as it is */
    int escapes;         /* HBP__ESCAPE_* */
} hbp__json_out;

/* Bytes as they are. */
void hbp__json_put_bytes(hbp__json_out *out, const char *text, int64_t bytes);

/* Text as it is: punctuation, keys, words. */
void hbp__json_put(hbp__json_out *out, const char *text);

/* Any text as a JSON string, quotes included; bytes that are not UTF-8 become U+FFFD. The second writes what
 * stands between the quotes. */
void hbp__json_put_string(hbp__json_out *out, const char *text);
void hbp__json_put_escaped(hbp__json_out *out, const char *text);

void hbp__json_put_i64(hbp__json_out *out, int64_t value);
void hbp__json_put_u64(hbp__json_out *out, uint64_t value);
/* A text of 16 hexadecimal digits, as messages have it: many readers hold numbers as doubles. */
void hbp__json_put_digest(hbp__json_out *out, uint64_t digest);

/* `text` and then the number: hbp__json_member(out, ",\"sp\":", 8). */
void hbp__json_member(hbp__json_out *out, const char *text, int64_t value);

/* Non-negative nanoseconds as microseconds, 1234.567. */
void hbp__json_put_us(hbp__json_out *out, int64_t ns);

/* Any double, so that it is read back bit for bit, in as few digits as do; null where it is no number. */
void hbp__json_put_f64(hbp__json_out *out, double value);

/* A non-negative share to six places, 0.012345. */
void hbp__json_put_share(hbp__json_out *out, double share);

#endif
