#include "graphs.h"
#include "harm.h"
#include "hbp/io.h"
#include "io/graph/graph_file.h"
#include "unpacked.h"

#include <jansson.h>

#define HEAD "{\"format\": \"hbp-graph\", \"version\": 1, "

static hbp_graph *read_text(hbp_context *context, const char *text)
{
    hbp_graph *graph = NULL;
    OK(context, hbp__graph_read(context, "x.json", text, (int64_t)strlen(text), &graph));
    return graph;
}

/* A tree as msgpack, numbers in the shortest form. */
static void pack(msgpack_packer *packer, const json_t *value)
{
    const char *key;
    json_t *member;
    if (json_is_object(value)) {
        msgpack_pack_map(packer, json_object_size(value));
        json_object_foreach((json_t *)(uintptr_t)value, key, member)
        {
            unpacked_text(packer, key);
            pack(packer, member);
        }
    } else if (json_is_array(value)) {
        msgpack_pack_array(packer, json_array_size(value));
        for (size_t i = 0; i < json_array_size(value); i++)
            pack(packer, json_array_get(value, i));
    } else if (json_is_string(value)) {
        unpacked_text(packer, json_string_value(value));
    } else if (json_is_integer(value)) {
        msgpack_pack_int64(packer, json_integer_value(value));
    } else if (json_is_real(value)) {
        msgpack_pack_double(packer, json_real_value(value));
    } else if (json_is_boolean(value)) {
        (json_is_true(value) ? msgpack_pack_true : msgpack_pack_false)(packer);
    } else {
        msgpack_pack_nil(packer);
    }
}

/* Reading fails with `message`, as JSON and, where it is JSON at all, as msgpack. */
static void refuse(hbp_context *context, hbp_status status, const char *text, const char *message)
{
    hbp_graph *graph = (hbp_graph *)context;
    FAILS(context, status, message, hbp__graph_read(context, "x.json", text, (int64_t)strlen(text), &graph));
    ck_assert_ptr_null(graph);
    json_t *tree = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    if (!json_is_object(tree)) {
        json_decref(tree);
        return;
    }
    hbp__buffer buffer = {.memory = hbp__memory_default()};
    msgpack_packer packer = unpacked_packer(&buffer);
    pack(&packer, tree);
    FAILS(context, status, message,
          hbp__graph_read(context, "x.json", (char *)buffer.data, (int64_t)buffer.bytes, &graph));
    hbp__buffer_free(&buffer);
    json_decref(tree);
}

START_TEST(everything_that_can_be_said)
{
    hbp_context *context = test_context();
    hbp_graph *graph = read_text(
        context, HEAD
        "\"comment\": 1, \"_mine\": {}, \"edges\": [[\"b\", \"x\"], [\"x\", \"c\", 5], [\"a[0]\", "
        "\"c\", 6.0]], \"profiles\": {\"_none\": 7, \"in ns\": [[1, 4000], [2, 2100.0]], \"in us\": "
        "{\"us\": [[1, 4], [2, 2.1004]], \"comment on it\": 1}, \"in ms\": {\"ms\": [[3, 0.0015]]}, "
        "\"in s\": {\"s\": [[3, 2]]}}, \"operators\": ["
        "{\"name\": \"a\", \"type\": \"t\", \"task\": \"u\", \"count\": 3, \"profile\": \"in us\", "
        "\"shape\": [8, 77, 768], \"degrees\": \"profiled\", \"least_gpus\": 2, \"split\": 12, "
        "\"state_bytes\": 1e9, \"sharded_bytes\": 2, \"activation_bytes\": 3, \"output_bytes\": 4, "
        "\"gradient_bytes\": 5, \"parameters\": \"w\", \"_note\": null, \"comments\": []},"
        "{\"name\": \"b\", \"type\": \"t\", \"task\": \"v\", \"count\": 2, \"profile\": [[1, 7]]},"
        "{\"name\": \"c\", \"type\": \"t\", \"task\": \"v\", \"count\": 2, \"shape\": [3], \"degrees\": "
        "\"divisors\"},"
        "{\"name\": \"x\", \"type\": \"t\", \"task\": \"v\", \"batch\": 2, \"sequence\": 3, \"width\": 4, "
        "\"profile\": {\"ms\": [[1, 1]]}, \"count\": 1, \"degrees\": 1},"
        "{\"type\": \"t\", \"task\": \"v\"}]}");
    static const int64_t times[][2] = {{4000, 2100}, {4000, 2100}, {1500}, {2000000000}, {7}, {1000000}};
    ck_assert_int_eq(graph->profile_count, 6);
    for (int p = 0; p < 6; p++) {
        const hbp__profile profile = hbp__graph_profile(graph, p);
        ck_assert_mem_eq(profile.ns, times[p], (size_t)profile.points * 8);
    }
    ck_assert_int_eq(graph->operator_count, 9);
    const hbp__operator *a = &graph->operators[1];
    ck_assert_str_eq(a->name, "a[1]");
    ck_assert_str_eq(graph_view(graph).parameter_names[a->parameters], "w[1]");
    ck_assert_int_eq(a->profile, 1);
    ck_assert(a->batch == 8 && a->sequence == 77 && a->width == 768 && a->split == 12);
    ck_assert(a->degrees == HBP_DEGREES_PROFILED && a->least_gpus == 2);
    ck_assert(a->state_bytes == 1000000000 && a->sharded_bytes == 2 && a->activation_bytes == 3 &&
              a->output_bytes == 4 && a->gradient_bytes == 5);
    ck_assert_int_eq(graph->operators[3].profile, 4);
    const hbp__operator *c = &graph->operators[5];
    ck_assert(c->profile == -1 && c->batch == 3 && c->sequence == 1 && c->width == 1 && c->split == 1);
    const hbp__operator *x = &graph->operators[7];
    ck_assert(x->profile == 5 && x->batch == 2 && x->sequence == 3 && x->width == 4 && x->degrees == 1);
    ck_assert_str_eq(graph->operators[8].name, "operator 8");
    /* Edges of chains, then those listed: from the last of b, to the first of c. */
    static const hbp__edge edges[] = {{0, 1, 4}, {1, 2, 4}, {3, 4, 0}, {5, 6, 0},
                                      {4, 7, 0}, {7, 5, 5}, {0, 5, 6}};
    ck_assert_int_eq(graph->edge_count, 7);
    for (int e = 0; e < 7; e++) {
        ck_assert_int_eq(graph->edge_from[e], edges[e].from);
        ck_assert_int_eq(graph->edge_to[e], edges[e].to);
        ck_assert_int_eq(graph->edge_bytes[e], edges[e].bytes);
    }
    hbp_graph_free(graph);
    graph = read_text(context, HEAD "\"operators\": []}");
    ck_assert_int_eq(graph->operator_count, 0);
    hbp_graph_free(graph);
    hbp_context_free(context);
}
END_TEST

START_TEST(files_that_are_none)
{
    hbp_context *context = test_context();
    refuse(context, HBP_E_FORMAT, "", "x.json, line 1: ");
    refuse(context, HBP_E_FORMAT, "{\n\"a\" 1}", "x.json, line 2: ");
    refuse(context, HBP_E_FORMAT, "[]", "x.json is not a JSON object");
    refuse(context, HBP_E_FORMAT, "{}", "x.json: 'format' is not \"hbp-graph\"");
    refuse(context, HBP_E_FORMAT, "{\"format\": 1}", "x.json: 'format' is not \"hbp-graph\"");
    refuse(context, HBP_E_FORMAT, "{\"format\": \"hbp-machine\"}", "x.json: 'format' is not \"hbp-graph\"");
    refuse(context, HBP_E_FORMAT, "{\"format\": \"hbp-graph\"}",
           "x.json: the file: 'version' is missing; it must be a whole number");
    refuse(context, HBP_E_VERSION, "{\"format\": \"hbp-graph\", \"version\": 2, \"new\": 1}",
           "x.json: version is 2; this library reads up to 1");
    refuse(context, HBP_E_FORMAT, "{\"format\": \"hbp-graph\", \"version\": 0}",
           "x.json: the file: 'version' is 0; it must be in 1..");
    refuse(context, HBP_E_FORMAT, HEAD "\"edge\": []}",
           "x.json: the file has an unknown key 'edge'; did you mean 'edges'?");
    refuse(context, HBP_E_FORMAT, HEAD "\"format\": \"hbp-graph\"}",
           "x.json, line 1: an object that ends here has the key");
    refuse(context, HBP_E_FORMAT, HEAD "\"operators\": [\"\\u0000\"]}", "x.json, line 1: ");
    refuse(context, HBP_E_FORMAT, HEAD "\"edges\": []}", "x.json: 'operators' is missing; it must be a list");
    refuse(context, HBP_E_FORMAT, HEAD "\"operators\": {}}",
           "x.json: 'operators' is a map; it must be a list");
    refuse(context, HBP_E_FORMAT, HEAD "\"operators\": [], \"edges\": null}",
           "x.json: 'edges' is no value; it must be a list");
    refuse(context, HBP_E_FORMAT, HEAD "\"operators\": [], \"profiles\": []}",
           "x.json: 'profiles' is a list; it must be a map of profiles by name");
    hbp_context_free(context);
}
END_TEST

/* A file with profile `points` under the name "p". */
static void refuse_profile(hbp_context *context, const char *points, const char *message)
{
    char text[512];
    snprintf(text, sizeof text, HEAD "\"operators\": [], \"profiles\": {\"p\": %s}}", points);
    refuse(context, HBP_E_FORMAT, text, message);
}

START_TEST(profiles_that_are_none)
{
    hbp_context *context = test_context();
    static const char neither[] = "x.json: profile 'p' is neither a list of points nor a map with one such "
                                  "list under 'ns', 'us', 'ms' or 's'";
    refuse_profile(context, "7", neither);
    refuse_profile(context, "\"p\"", neither);
    refuse_profile(context, "{}", neither);
    refuse_profile(context, "{\"us\": 7}", neither);
    refuse_profile(context, "{\"min\": [[1, 1]]}", neither);
    refuse_profile(context, "{\"us\": [[1, 1]], \"ms\": [[1, 1]]}", neither);
    refuse_profile(context, "{\"us\": [[1, 1]], \"extra\": 1}", neither);
    refuse_profile(context, "[]", "x.json: profile 'p': points is 0; a profile has at least 1");
    refuse_profile(context, "[1]", "x.json: profile 'p', point 0 is not a list of two, GPUs and time");
    refuse_profile(context, "[[1, 2], [1]]",
                   "x.json: profile 'p', point 1 is not a list of two, GPUs and time");
    refuse_profile(context, "[[1.5, 2]]",
                   "x.json: profile 'p', point 0: 'GPUs' is 1.5; it must be a whole number");
    refuse_profile(context, "[[\"1\", 2]]",
                   "x.json: profile 'p', point 0: 'GPUs' is text; it must be a whole number");
    refuse_profile(context, "[[5000000000, 2]]",
                   "x.json: profile 'p', point 0: 'GPUs' is 5000000000; it must be in 1..1048576");
    refuse_profile(context, "[[1, null]]",
                   "x.json: profile 'p', point 0: the time is no value; it must be a number");
    refuse_profile(context, "[[1, -2.5]]",
                   "x.json: profile 'p', point 0: the time is -2.5; it must not be negative");
    refuse_profile(
        context, "[[1, 9.71]]",
        "x.json: profile 'p', point 0: the time is 9.71 ns, a fraction; name its unit, as in {\"ms\":");
    refuse_profile(context, "[[1, 0]]", "x.json: profile 'p': ns of point 0 is 0; it must be in 1..2^53");
    refuse_profile(context, "{\"s\": [[1, 9223372036854775807]]}",
                   "x.json: profile 'p': ns of point 0 is 9223372036854775807; it must be in 1..2^53");
    refuse_profile(context, "{\"s\": [[1, 1e300]]}",
                   "x.json: profile 'p': ns of point 0 is 9223372036854775807; it must be in 1..2^53");
    refuse_profile(context, "[[2, 1], [2, 1]]",
                   "x.json: profile 'p': gpus of point 1 is 2, after 2; points must come with rising gpus");
    hbp_context_free(context);
}
END_TEST

/* A file with an operator "x" that has these fields beside its type and task. */
static void refuse_operator(hbp_context *context, const char *fields, const char *message)
{
    char text[1024], expected[512];
    snprintf(text, sizeof text,
             HEAD "\"profiles\": {\"p\": [[1, 1]]}, \"operators\": [{\"name\": \"before\", \"count\": 2, "
                  "\"type\": \"t\", \"task\": \"u\"}, {\"type\": \"t\", \"task\": \"u\", %s}]}",
             fields);
    snprintf(expected, sizeof expected, "x.json: operators[1] %s", message);
    refuse(context, HBP_E_FORMAT, text, expected);
}

START_TEST(operators_that_are_none)
{
    hbp_context *context = test_context();
    refuse(context, HBP_E_FORMAT, HEAD "\"operators\": [7]}",
           "x.json: operators[0] is a number; it must be a map");
    refuse(context, HBP_E_FORMAT, HEAD "\"operators\": [{\"name\": \"x\", \"type\": \"t\"}]}",
           "x.json: operators[0] 'x': task of operator 'x' is missing");
    refuse(context, HBP_E_FORMAT, HEAD "\"operators\": [{\"type\": 5}]}",
           "x.json: operators[0]: 'type' is a number; it must be text");
    refuse(context, HBP_E_FORMAT, HEAD "\"operators\": [{\"name\": 5}]}",
           "x.json: operators[0]: 'name' is a number; it must be text");
#define REFUSE(fields, message) refuse_operator(context, "\"name\": \"x\", " fields, "'x'" message)
    REFUSE("\"sate_bytes\": 5", " has an unknown key 'sate_bytes'; did you mean 'state_bytes'?");
    REFUSE("\"_x\": 5, \"Comment\": 5", " has an unknown key 'Comment'");
    REFUSE("\"parameters\": []", ": 'parameters' is a list; it must be text");
    REFUSE("\"parameters\": \"\"", ": parameters of operator 'x' is empty");
    REFUSE("\"batch\": -1", ": 'batch' is -1; it must be in 0..9223372036854775807");
    REFUSE("\"least_gpus\": 3000000000", ": 'least_gpus' is 3000000000; it must be in 0..2147483647");
    REFUSE("\"state_bytes\": 1.5", ": 'state_bytes' is 1.5; it must be a whole number");
    REFUSE("\"state_bytes\": 1e16", ": 'state_bytes' is 10000000000000000; it must be a whole number");
    REFUSE("\"state_bytes\": true", ": 'state_bytes' is no value; it must be a whole number");
    REFUSE("\"state_bytes\": 4611686018427387905",
           ": with operator 'x' all sizes sum to more than 2^62 bytes");
    REFUSE("\"count\": 0", ": 'count' is 0; it must be in 1..1048576");
    REFUSE("\"count\": 1048577", ": 'count' is 1048577; it must be in 1..1048576");
    REFUSE("\"count\": 1048575", ": there are more than 1048576 operators");
    REFUSE("\"degrees\": \"all\"", ": 'degrees' is 'all'; it must be 'divisors' or 'profiled'");
    REFUSE("\"degrees\": 2", ": 'degrees' is 2; it must be in 0..1");
    REFUSE("\"profile\": \"q\"", ": there is no profile 'q'");
    REFUSE("\"profile\": 0", " is neither a list of points nor a map");
    REFUSE("\"profile\": [[0, 1]]", ", point 0: 'GPUs' is 0; it must be in 1..1048576");
    REFUSE("\"shape\": 5", ": 'shape' must be a list of one to three numbers: batch, sequence, width");
    REFUSE("\"shape\": []", ": 'shape' must be a list of one to three numbers");
    REFUSE("\"shape\": [1, 2, 3, 4]", ": 'shape' must be a list of one to three numbers");
    REFUSE("\"shape\": [1, 0]", ": 'sequence' is 0; it must be in 1..");
    REFUSE("\"shape\": [1], \"width\": 2", " has both 'shape' and 'width'");
#undef REFUSE
    refuse_operator(context, "\"name\": \"before\"",
                    "'before': the name is taken by an operator or a chain before");
    refuse_operator(context, "\"name\": \"before\", \"count\": 3",
                    "'before': the name is taken by an operator or a chain before");
    refuse_operator(context, "\"name\": \"before[1]\"",
                    "'before[1]': name of operator 2 is 'before[1]'; operator 1 has it already");
    refuse_operator(context, "\"name\": \"\\u001b[31m\"",
                    "'?[31m': name of operator 2 must be UTF-8 without control characters");
    refuse(context, HBP_E_FORMAT,
           HEAD "\"operators\": [{\"name\": \"x\", \"type\": \"t\", \"task\": \"u\"}, {\"name\": \"x\", "
                "\"type\": \"t\", \"task\": \"u\", \"count\": 2}]}",
           "x.json: operators[1] 'x': the name is taken by an operator or a chain before");
    hbp_context_free(context);
}
END_TEST

static void refuse_edge(hbp_context *context, const char *edge, const char *message)
{
    char text[512], expected[256];
    snprintf(text, sizeof text,
             HEAD "\"operators\": [{\"name\": \"a\", \"type\": \"t\", \"task\": \"u\"}, {\"name\": \"b\", "
                  "\"type\": \"t\", \"task\": \"u\", \"count\": 2}], \"edges\": [[\"a\", \"b\"], %s]}",
             edge);
    snprintf(expected, sizeof expected, "x.json: edges[1]%s", message);
    refuse(context, HBP_E_FORMAT, text, expected);
}

START_TEST(edges_that_are_none)
{
    hbp_context *context = test_context();
    refuse_edge(context, "7", " is not a list of two names, and bytes at will");
    refuse_edge(context, "[\"a\"]", " is not a list of two names, and bytes at will");
    refuse_edge(context, "[\"a\", \"b\", 1, 2]", " is not a list of two names, and bytes at will");
    refuse_edge(context, "[0, \"b\"]", ": 'from' is a number; it must be an operator's name");
    refuse_edge(context, "[\"a\", null]", ": 'to' is no value; it must be an operator's name");
    refuse_edge(context, "[\"a\", \"c\"]", ": there is no operator 'c'");
    refuse_edge(context, "[\"b[2]\", \"a\"]", ": there is no operator 'b[2]'");
    refuse_edge(context, "[\"a\", \"b[1]\", -1]", ": 'bytes' is -1; it must be in 0..");
    refuse_edge(context, "[\"a\", \"b[1]\", \"1\"]", ": 'bytes' is text; it must be a whole number");
    refuse_edge(context, "[\"a\", \"a\"]", ": an edge goes from operator 'a' to itself");
    refuse_edge(context, "[\"a\", \"b[0]\"]", ": the edge from operator 'a' to 'b[0]' is there already");
    refuse_edge(context, "[\"a\", \"b[1]\", 4611686018427387905]",
                ": with the edge from operator 'a' to 'b[1]' all sizes sum to more than 2^62 bytes");
    hbp_context_free(context);
}
END_TEST

START_TEST(deep_and_large_files)
{
    enum { DEEP = 100000 };
    hbp_context *context = test_context();
    hbp_graph *graph = NULL;
    char *text = malloc(DEEP + 1);
    ck_assert_ptr_nonnull(text);
    memset(text, '[', DEEP);
    text[0] = '{', text[1] = '"', text[2] = '"', text[3] = ':', text[DEEP] = '\0';
    refuse(context, HBP_E_FORMAT, text, "x.json, line 1: ");
    memset(text, '\x91', DEEP);
    text[0] = '\x81', text[1] = '\xa0';
    FAILS(context, HBP_E_FORMAT, "not msgpack", hbp__graph_read(context, "x", text, DEEP, &graph));
    free(text);
    FAILS(context, HBP_E_FORMAT, "x has 67108865 bytes; at most 67108864",
          hbp__graph_read(context, "x", " ", HBP__GRAPH_MOST + 1, &graph));
    hbp_context_free(context);
}
END_TEST

START_TEST(paths)
{
    hbp_context *context = test_context();
    char folder[64], path[128];
    hbp_graph *graph = (hbp_graph *)context;
    folder_make(folder);
    folder_path(path, folder, "graph.json");
    FAILS(context, HBP_E_SYSTEM, "graph.json", hbp_graph_load(context, path, &graph));
    ck_assert_ptr_null(graph);
    file_write(path, "{}", 2);
    FAILS(context, HBP_E_FORMAT, "graph.json: 'format'", hbp_graph_load(context, path, &graph));
    FAILS(context, HBP_E_INVALID, "out", hbp_graph_load(context, path, NULL));
    FAILS(context, HBP_E_INVALID, "path", hbp_graph_load(context, NULL, &graph));
    ck_assert_int_eq(hbp_graph_load(NULL, path, &graph), HBP_E_INVALID);
    folder_remove(folder);
    hbp_context_free(context);
}
END_TEST

/* The example that the command's page plans. */
START_TEST(the_example_can_be_planned)
{
    hbp_context *context = test_context();
    hbp_graph *graph = NULL;
    OK(context, hbp_graph_load(context, HBP_TESTS_DIR "/../examples/data/tasks.json", &graph));
    OK(context, hbp_graph_validate(context, graph));
    ck_assert_int_eq(graph_view(graph).tasks, 3);
    ck_assert_int_eq(graph_view(graph).operators, 24 + 12 + 1 + 12 + 12 + 1 + 24 + 24);
    /* The vision and the text tower serve two tasks each. */
    ck_assert_int_eq(graph_view(graph).parameters, 24 + 12 + 1 + 12 + 1 + 24);
    hbp_graph_free(graph);
    hbp_context_free(context);
}
END_TEST

static hbp_status load_bytes(hbp_context *context, const void *user, const void *data, size_t bytes,
                             void **out)
{
    hbp_graph *graph = NULL;
    (void)user;
    hbp_status status = hbp__graph_read(context, "x", data, (int64_t)bytes, &graph);
    *out = graph;
    return status;
}

static void free_graph(hbp_context *context, const void *user, void *graph)
{
    (void)context, (void)user;
    hbp_graph_free(graph);
}

/* What people write, longer than what is saved (test_graph_save.c). */
START_TEST(short_memory_and_cancelling_leave_nothing)
{
    const harm_kind kind = {.load = load_bytes, .release = free_graph};
    size_t bytes;
    char *text = file_read(HBP_TESTS_DIR "/../examples/data/tasks.json", &bytes);
    harm_survived(&kind, text, bytes);
    free(text);
}
END_TEST

TEST_MAIN("graph_read", everything_that_can_be_said, files_that_are_none, profiles_that_are_none,
          operators_that_are_none, edges_that_are_none, deep_and_large_files, paths,
          the_example_can_be_planned, short_memory_and_cancelling_leave_nothing)
