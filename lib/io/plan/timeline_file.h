/* Timeline files: CSV behind comment lines (docs: timeline file). */
#ifndef HBP_IO_TIMELINE_FILE_H
#define HBP_IO_TIMELINE_FILE_H

#include "data/plan/timeline.h"
#include "io/file/stream.h"

/* hbp_timeline_load from a stream. */
hbp_status hbp__timeline_load_stream(hbp_context *context, hbp__stream *in, hbp_timeline **out);

#endif
