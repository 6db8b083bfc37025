/* The readers of lengths, one a format; each reads the whole stream into rows. */
#ifndef HBP_IO_READ_LENGTHS_H
#define HBP_IO_READ_LENGTHS_H

#include "hbp/io.h"
#include "io/lengths/length_rows.h"

/* One length a line; blank lines and lines that begin with # are skipped. */
hbp_status hbp__read_text(hbp__length_rows *rows);

/* RFC 4180 with comma, tab or semicolon, whichever comes first in the first line. */
hbp_status hbp__read_csv(hbp__length_rows *rows);

/* Objects one after another, usually one a line. The length is a number, or an array whose elements are
 * counted. */
hbp_status hbp__read_jsonl(hbp__length_rows *rows);

/* NumPy's format, versions 1 to 3: a vector of integers of 1 to 8 bytes in either byte order. */
hbp_status hbp__read_npy(hbp__length_rows *rows);

/* The index of a Megatron or DeepSpeed data set: a sample is a sequence. */
hbp_status hbp__read_idx(hbp__length_rows *rows);

/* The index of a MosaicML StreamingDataset, whose shards lie beside it. */
hbp_status hbp__read_mds(hbp__length_rows *rows);

/* hbp_lengths_load from a stream, and from one of vision units unless that is NULL. */
hbp_status hbp__lengths_read_stream(hbp_context *context, hbp__stream *in, hbp__stream *vision,
                                    const hbp_lengths_load_options *options, hbp_lengths **out);

#endif
