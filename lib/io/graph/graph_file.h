/* The project's own files of graphs: one format, as JSON and as msgpack (docs/explanation/tasks-file.md). */
#ifndef HBP_IO_GRAPH_FILE_H
#define HBP_IO_GRAPH_FILE_H

#include <stdint.h>

#include "data/graph/graph.h"
#include "io/msgpack/msgpack_buffer.h"

#define HBP__GRAPH_FORMAT    "hbp-graph"
#define HBP__GRAPH_VERSION   1
#define HBP__GRAPH_MOST      (INT64_C(64) << 20) /* bytes; a tree takes some twenty times the text */
#define HBP__GRAPH_OPERATORS (INT64_C(1) << 20)

/* Reads a graph out of `data` [bytes], JSON or msgpack; `name` is for messages. HBP_E_FORMAT, HBP_E_VERSION.
 */
hbp_status hbp__graph_read(hbp_context *context, const char *name, const char *data, int64_t bytes,
                           hbp_graph **out);

/* Appends the file's bytes to `buffer`. HBP_E_OVERFLOW when they are more than reading allows. */
hbp_status hbp__graph_write(hbp_context *context, const hbp_graph *graph, int32_t format,
                            hbp__buffer *buffer);

#endif
