/* Columns compressed by zlib, and the CRC-32 over them: what files of plans and of task schedules share. */
#ifndef HBP_IO_ZIPPED_H
#define HBP_IO_ZIPPED_H

#include <stdint.h>
#include <zlib.h>

#include "base/context.h"
#include "io/file/file_bytes.h"
#include "io/msgpack/msgpack_buffer.h"

/* zlib's counters are 32 bits wide, and a msgpack bin ends at 4 GiB. */
#define HBP__ZIPPED_MAX_BYTES (INT64_C(1) << 30)
/* Deflate makes at most so many bytes of one (zlib's technical details: 1032). */
#define HBP__INFLATE_RATIO 1032

/* CRC-32 of any number of bytes. */
uint32_t hbp__crc32(const uint8_t *data, uint64_t bytes);

/* A zlib stream that takes its memory from `memory`. */
z_stream hbp__zlib_stream(hbp__memory *memory);

/* One direction of zlib, used again and again. Zero but for `context` to begin with. */
typedef struct hbp__zip {
    hbp_context *context;
    z_stream z;
    int ready; /* z is initialised; 1: to deflate, 2: to inflate */
} hbp__zip;

void hbp__zip_close(hbp__zip *zip);

/* Deflates the bytes of `from`, at most HBP__ZIPPED_MAX_BYTES, into `to`, whose earlier bytes it forgets;
 * `level` is zlib's and that of the first call. `what` is for the message when memory is short.
 * HBP_E_CANCELLED. */
hbp_status hbp__zip_deflate(hbp__zip *zip, int level, const hbp__buffer *from, hbp__buffer *to,
                            const char *what);

/* Deflates `columns` into `packed` and packs the three entries of a map that hold them: "bytes", "crc32",
 * "data". */
hbp_status hbp__zip_entries(hbp__zip *zip, int level, const hbp__buffer *columns, hbp__buffer *packed,
                            hbp__buffer *buffer, const char *what);

/* Most bytes of msgpack around columns. */
#define HBP__COLUMNS_OVERHEAD 4096

/* Inflates what such entries of `map`, read at `offset`, hold into `to`: the msgpack of columns that take
 * `columns` bytes in all. HBP_E_FORMAT when they are not that large, could not be inflated from so few bytes,
 * or differ from their CRC-32. `what` is for messages: "the chunk". */
hbp_status hbp__unzip_entries(hbp__zip *zip, const hbp__file_bytes *file, int64_t offset, const char *what,
                              const hbp__value *map, int64_t columns, hbp__buffer *to);

/* Inflates `data` [bytes] into `to` likewise; *whole says whether it came to `raw` bytes, neither one less
 * nor one more, and `data` had no more either. */
hbp_status hbp__zip_inflate(hbp__zip *zip, const uint8_t *data, uint64_t bytes, uint64_t raw, hbp__buffer *to,
                            const char *what, int *whole);

#endif
