/* Reads any bytes as a file of a graph; what comes out is written in both formats and read again the same,
 * and its order or cycle is found. */
#include "data/graph/meta_graph.h"
#include "fuzz.h"
#include "hbp/io.h"
#include "io/graph/graph_file.h"

/* So many operators at most are looked at further: a few bytes can ask for a million. */
enum { MANY = 2000 };

static void check_round_trip(hbp_context *context, const hbp_graph *graph, int32_t format)
{
    hbp__buffer buffer = {.memory = hbp__memory_default()};
    hbp_graph *again;
    CHECK(hbp__graph_write(context, graph, format, &buffer) == HBP_OK);
    CHECK(hbp__graph_read(context, "again", (const char *)buffer.data, (int64_t)buffer.bytes, &again) ==
          HBP_OK);
    CHECK(hbp__graph_digest(again) == hbp__graph_digest(graph));
    hbp_graph_free(again);
    hbp__buffer_free(&buffer);
}

static void check_graph(hbp_context *context, const hbp_graph *graph)
{
    for (int64_t e = 0; e < graph->edge_count; e++) {
        int32_t from = graph->edge_from[e], to = graph->edge_to[e];
        CHECK(from >= 0 && from < graph->operator_count && from != to);
        CHECK(to >= 0 && to < graph->operator_count && graph->edge_bytes[e] >= 0);
    }
    hbp__meta_graph meta;
    hbp_status status = hbp__meta_graph_open(context, graph, &meta);
    CHECK(status == HBP_OK || status == HBP_E_INVALID);
    hbp__meta_graph_close(&meta);
    status = hbp_graph_validate(context, graph);
    CHECK(status == HBP_OK || (status == HBP_E_INVALID && hbp_context_message(context)[0]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hbp_context *context;
    hbp_graph *graph;
    CHECK(hbp_context_create(NULL, &context) == HBP_OK);
    hbp_status status = hbp__graph_read(context, "fuzz", (const char *)data, (int64_t)size, &graph);
    CHECK((status == HBP_OK) == (graph != NULL));
    CHECK(graph || status == HBP_E_FORMAT || status == HBP_E_VERSION || status == HBP_E_NO_MEMORY);
    CHECK(graph || hbp_context_message(context)[0]);
    if (graph && graph->operator_count <= MANY) {
        check_graph(context, graph);
        check_round_trip(context, graph, HBP_GRAPH_JSON);
        check_round_trip(context, graph, HBP_GRAPH_MSGPACK);
    }
    hbp_graph_free(graph);
    hbp_context_free(context);
    return 0;
}
