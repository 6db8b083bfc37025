/* Layers out of tables. */
#ifndef HBP_IO_READ_LAYERS_H
#define HBP_IO_READ_LAYERS_H

#include "base/context.h"
#include "hbp/pipeline.h"
#include "io/file/stream.h"

/* hbp_layers_load from a stream. */
hbp_status hbp__layers_read_stream(hbp_context *context, hbp__stream *in, hbp_layers **out);

#endif
