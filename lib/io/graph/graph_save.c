/* A graph as JSON or msgpack; what reading fills in by itself is left out. */
#include <stdio.h>
#include <string.h>

#include "hbp/io.h"
#include "io/file/atomic_file.h"
#include "io/graph/graph_file.h"
#include "io/value/value_out.h"

#define TICK 4096

/* What reading fills in where a file says nothing. */
static int is_default(const char *field, int64_t value)
{
    static const char *const ones[] = {"least_gpus", "batch", "sequence", "width", "split"};
    for (size_t i = 0; i < sizeof ones / sizeof *ones; i++)
        if (strcmp(field, ones[i]) == 0)
            return value == 1;
    return value == 0;
}

/* Numbers beside profile, which is written by its name, and batch, sequence and width, which are the shape.
 */
static int is_plain(const char *field)
{
    return strcmp(field, "profile") != 0 && strcmp(field, "batch") != 0 && strcmp(field, "sequence") != 0 &&
           strcmp(field, "width") != 0;
}

static void put_text(hbp__value_out *out, const char *key, const char *text)
{
    hbp__put_key(out, key);
    hbp__put_text(out, text);
}

/* Profiles have no names in memory. */
static void profile_name(char *text, size_t room, int32_t profile)
{
    snprintf(text, room, "profile %d", (int)profile);
}

static void put_profiles(hbp__value_out *out, const hbp_graph *graph)
{
    char name[32];
    hbp__put_map(out, graph->profile_count);
    for (int32_t i = 0; i < graph->profile_count; i++) {
        const hbp__profile profile = hbp__graph_profile(graph, i);
        profile_name(name, sizeof name, i);
        hbp__put_key(out, name);
        hbp__put_list(out, profile.points);
        for (int64_t k = 0; k < profile.points; k++) {
            hbp__put_list(out, 2);
            hbp__put_i64(out, profile.gpus[k]);
            hbp__put_i64(out, profile.ns[k]);
        }
    }
}

static void put_operator(hbp__value_out *out, const hbp_graph *graph, const hbp__operator *o)
{
    const char *parameters = graph->parameters.name[o->parameters];
    int own = strcmp(parameters, o->name) == 0;
    int64_t keys = 4 + !own + (o->profile >= 0); /* with name, type, task, shape */
#define COUNT(field, type) keys += is_plain(#field) && !is_default(#field, o->field);
    HBP__OPERATOR_NUMBERS(COUNT)
#undef COUNT
    hbp__put_map(out, keys);
    put_text(out, "name", o->name);
    put_text(out, "type", graph->types.name[o->type]);
    put_text(out, "task", graph->tasks.name[o->task]);
    if (!own)
        put_text(out, "parameters", parameters);
    if (o->profile >= 0) {
        char name[32];
        profile_name(name, sizeof name, o->profile);
        put_text(out, "profile", name);
    }
    hbp__put_key(out, "shape");
    hbp__put_list(out, 3);
    hbp__put_i64(out, o->batch);
    hbp__put_i64(out, o->sequence);
    hbp__put_i64(out, o->width);
#define PUT(field, type)                                                                                     \
    if (is_plain(#field) && !is_default(#field, o->field)) {                                                 \
        hbp__put_key(out, #field);                                                                           \
        if (strcmp(#field, "degrees") == 0)                                                                  \
            hbp__put_text(out, "profiled");                                                                  \
        else                                                                                                 \
            hbp__put_i64(out, o->field);                                                                     \
    }
    HBP__OPERATOR_NUMBERS(PUT)
#undef PUT
}

static void put_edge(hbp__value_out *out, const hbp_graph *graph, int64_t e)
{
    const hbp__operator *from = &graph->operators[graph->edge_from[e]];
    int plain = graph->edge_bytes[e] == from->output_bytes;
    hbp__put_list(out, 3 - plain);
    hbp__put_text(out, from->name);
    hbp__put_text(out, graph->operators[graph->edge_to[e]].name);
    if (!plain)
        hbp__put_i64(out, graph->edge_bytes[e]);
}

static hbp_status check_size(hbp_context *context, const hbp__value_out *out, int64_t done, int64_t total)
{
    if (out->json.buffer->failed)
        return hbp__fail_memory(context, "a graph's file");
    if (out->json.buffer->bytes > (uint64_t)HBP__GRAPH_MOST)
        return hbp__fail(context, HBP_E_OVERFLOW, "the graph's file would have more than %lld bytes",
                         (long long)HBP__GRAPH_MOST);
    return done % TICK == TICK - 1 ? hbp__tick(context, "graph", done, total) : HBP_OK;
}

static hbp_status put_graph(hbp_context *context, hbp__value_out *out, const hbp_graph *graph)
{
    int64_t total = graph->operator_count + graph->edge_count;
    hbp__put_map(out, 5);
    put_text(out, "format", HBP__GRAPH_FORMAT);
    hbp__put_key(out, "version");
    hbp__put_i64(out, HBP__GRAPH_VERSION);
    hbp__put_key(out, "profiles");
    put_profiles(out, graph);
    hbp__put_key(out, "operators");
    hbp__put_list(out, graph->operator_count);
    for (int32_t i = 0; i < graph->operator_count; i++) {
        put_operator(out, graph, &graph->operators[i]);
        HBP__TRY(check_size(context, out, i, total));
    }
    hbp__put_key(out, "edges");
    hbp__put_list(out, graph->edge_count);
    for (int64_t e = 0; e < graph->edge_count; e++) {
        put_edge(out, graph, e);
        HBP__TRY(check_size(context, out, graph->operator_count + e, total));
    }
    return check_size(context, out, 0, total);
}

hbp_status hbp__graph_write(hbp_context *context, const hbp_graph *graph, int32_t format, hbp__buffer *buffer)
{
    if (graph->operator_count > HBP__GRAPH_OPERATORS)
        return hbp__fail(context, HBP_E_OVERFLOW, "the graph has %d operators; a file holds at most %lld",
                         (int)graph->operator_count, (long long)HBP__GRAPH_OPERATORS);
    hbp__value_out out = {.json = {.context = context, .buffer = buffer, .escapes = HBP__ESCAPE_SHORT},
                          .lines = format == HBP_GRAPH_JSON ? HBP__LINES_OUTER : 0};
    return put_graph(context, &out, graph);
}

hbp_status hbp_graph_save(hbp_context *context, const hbp_graph *graph, const char *path, int32_t format)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, graph, "graph"));
    HBP__TRY(hbp__require(context, path, "path"));
    if (format != HBP_GRAPH_JSON && format != HBP_GRAPH_MSGPACK)
        return hbp__fail(context, HBP_E_INVALID, "format is %d; it must be in 0..1", (int)format);
    hbp__buffer buffer = {.memory = context->memory};
    hbp_status status = hbp__graph_write(context, graph, format, &buffer);
    if (status == HBP_OK)
        status = hbp__atomic_save(context, path, buffer.data, (int64_t)buffer.bytes);
    hbp__buffer_free(&buffer);
    return status;
}
