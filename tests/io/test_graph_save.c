#include "graphs.h"
#include "harm.h"
#include "hbp/io.h"
#include "io/graph/graph_file.h"

static char folder[64], path[128];

static void check_round_trip(hbp_context *context, const hbp_graph *graph, int32_t format)
{
    hbp_graph *read = NULL;
    OK(context, hbp_graph_save(context, graph, path, format));
    OK(context, hbp_graph_load(context, path, &read));
    ck_assert_uint_eq(hbp__graph_digest(read), hbp__graph_digest(graph));
    hbp_graph_free(read);
}

START_TEST(what_is_saved_is_read)
{
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(5, 0, 0);
    folder_make(folder);
    folder_path(path, folder, "graph");
    hbp_graph *examples[] = {new_graph(context), page_graph(context), figure_graph(context)};
    for (int i = 0; i < 3; i++) {
        check_round_trip(context, examples[i], HBP_GRAPH_JSON);
        check_round_trip(context, examples[i], HBP_GRAPH_MSGPACK);
        hbp_graph_free(examples[i]);
    }
    for (int round = 0; round < 200; round++) {
        hbp_graph *graph = random_graph(context, &rng, NULL);
        check_round_trip(context, graph, round % 2);
        hbp_graph_free(graph);
    }
    ck_assert_int_eq(folder_count(folder), 1);
    folder_remove(folder);
    hbp_context_free(context);
}
END_TEST

/* Everything at its limit, names with every letter that needs care, a cycle, no profile. */
START_TEST(odd_graphs_are_saved_too)
{
    hbp_context *context = test_context();
    folder_make(folder);
    folder_path(path, folder, "graph");
    hbp_graph *graph = new_graph(context);
    static const int32_t gpus[] = {1, 7, 1 << 20};
    static const int64_t ns[] = {1, INT64_C(1) << 53, (INT64_C(1) << 53) - 1};
    OK(context, hbp_graph_add_profile(context, graph, gpus, ns, 3, NULL));
    OK(context, hbp_graph_add_profile(context, graph, gpus, ns, 1, NULL));
    hbp_operator o = {.struct_size = sizeof o,
                      .profile = 1,
                      .name = "\"quoted\" \\ /slash\\",
                      .type = "\xc3\xa9t\xc3\xa9 \xf0\x9f\x98\x80",
                      .task = "profile 0",
                      .parameters = "\\\"",
                      .batch = INT64_MAX,
                      .sequence = INT64_MAX,
                      .width = (INT64_C(1) << 53) + 1,
                      .degrees = HBP_DEGREES_PROFILED,
                      .least_gpus = INT32_MAX,
                      .split = INT64_MAX,
                      .state_bytes = INT64_C(1) << 60,
                      .sharded_bytes = 1,
                      .activation_bytes = (INT64_C(1) << 53) + 1,
                      .output_bytes = 3,
                      .gradient_bytes = 4};
    OK(context, hbp_graph_add_operators(context, graph, &o, 1, NULL));
    o = (hbp_operator){.struct_size = sizeof o, .profile = -1, .type = "t", .task = "u"};
    OK(context, hbp_graph_add_operators(context, graph, &o, 2, NULL));
    o.name = "operator 1"; /* what the two before are called without their [0] and [1] */
    OK(context, hbp_graph_add_operators(context, graph, &o, 1, NULL));
    OK(context, hbp_graph_add_edge(context, graph, 2, 1, INT64_C(1) << 60));
    OK(context, hbp_graph_add_edge(context, graph, 0, 1, 0));
    check_round_trip(context, graph, HBP_GRAPH_JSON);
    check_round_trip(context, graph, HBP_GRAPH_MSGPACK);
    hbp_graph_free(graph);
    folder_remove(folder);
    hbp_context_free(context);
}
END_TEST

/* Saved bytes and the files in golden/, which earlier versions must be able to read. */
START_TEST(files_are_as_they_were)
{
    hbp_context *context = test_context();
    hbp_graph *graph = page_graph(context), *read = NULL;
    static const char *const names[] = {HBP_TESTS_DIR "/golden/graph.json",
                                        HBP_TESTS_DIR "/golden/graph.msgpack"};
    for (int32_t format = 0; format < 2; format++) {
        hbp__buffer buffer = {.memory = hbp__memory_default()};
        size_t bytes;
        OK(context, hbp__graph_write(context, graph, format, &buffer));
        char *golden = file_read(names[format], &bytes);
        ck_assert_uint_eq(buffer.bytes, bytes);
        ck_assert_mem_eq(buffer.data, golden, bytes);
        free(golden);
        hbp__buffer_free(&buffer);
        OK(context, hbp_graph_load(context, names[format], &read));
        ck_assert_uint_eq(hbp__graph_digest(read), hbp__graph_digest(graph));
        hbp_graph_free(read);
    }
    hbp_graph_free(graph);
    hbp_context_free(context);
}
END_TEST

START_TEST(bad_calls_are_refused)
{
    hbp_context *context = test_context();
    hbp_graph *graph = page_graph(context);
    folder_make(folder);
    folder_path(path, folder, "graph");
    FAILS(context, HBP_E_INVALID, "graph", hbp_graph_save(context, NULL, path, HBP_GRAPH_JSON));
    FAILS(context, HBP_E_INVALID, "path", hbp_graph_save(context, graph, NULL, HBP_GRAPH_JSON));
    FAILS(context, HBP_E_INVALID, "format is 2; it must be in 0..1", hbp_graph_save(context, graph, path, 2));
    FAILS(context, HBP_E_SYSTEM, "/nowhere/",
          hbp_graph_save(context, graph, "/nowhere/graph.json", HBP_GRAPH_JSON));
    ck_assert_int_eq(hbp_graph_save(NULL, graph, path, HBP_GRAPH_JSON), HBP_E_INVALID);
    FAILS(context, HBP_E_SYSTEM, "/dev/full", hbp_graph_save(context, graph, "/dev/full", HBP_GRAPH_JSON));
    ck_assert_int_eq(folder_count(folder), 0);
    hbp_graph_free(graph);
    folder_remove(folder);
    hbp_context_free(context);
}
END_TEST

/* A name of a mebibyte in every operator: over the limit of a file long before memory ends. */
START_TEST(files_that_could_not_be_read_are_not_written)
{
    enum { LENGTH = 1 << 20, COUNT = 33 };
    hbp_context *context = test_context();
    hbp_graph *graph = new_graph(context);
    char *name = malloc(LENGTH + 1);
    ck_assert_ptr_nonnull(name);
    memset(name, 'x', LENGTH);
    name[LENGTH] = '\0';
    hbp_operator o = {.struct_size = sizeof o, .profile = -1, .name = name, .type = "t", .task = "u"};
    OK(context, hbp_graph_add_operators(context, graph, &o, COUNT, NULL));
    folder_make(folder);
    folder_path(path, folder, "graph");
    for (int32_t format = 0; format < 2; format++)
        FAILS(context, HBP_E_OVERFLOW, "the graph's file would have more than 67108864 bytes",
              hbp_graph_save(context, graph, path, format)); /* in its edges */
    ck_assert_int_eq(folder_count(folder), 0);
    hbp_graph_free(graph);
    free(name);
    graph = new_graph(context);
    o.name = "y";
    OK(context, hbp_graph_add_operators(context, graph, &o, HBP__GRAPH_OPERATORS + 1, NULL));
    FAILS(context, HBP_E_OVERFLOW, "the graph has 1048577 operators; a file holds at most 1048576",
          hbp_graph_save(context, graph, path, HBP_GRAPH_JSON));
    hbp_graph_free(graph);
    folder_remove(folder);
    hbp_context_free(context);
}
END_TEST

/* Many operators pass, and can be cancelled. */
START_TEST(large_graphs_are_saved)
{
    hbp_context *context = test_context();
    hbp_graph *graph = new_graph(context);
    add_falling_profile(context, graph, 1000, 1, 8);
    add_chain(context, graph, NULL, "layer", "t", "u", 20000);
    folder_make(folder);
    folder_path(path, folder, "graph");
    check_round_trip(context, graph, HBP_GRAPH_JSON);
    check_round_trip(context, graph, HBP_GRAPH_MSGPACK);
    hbp_context_cancel(context);
    hbp_graph *read = NULL;
    FAILS(context, HBP_E_CANCELLED, "", hbp_graph_save(context, graph, path, HBP_GRAPH_JSON));
    hbp_context_cancel(context);
    FAILS(context, HBP_E_CANCELLED, "", hbp_graph_load(context, path, &read));
    ck_assert_ptr_null(read);
    OK(context, hbp_graph_load(context, path, &read));
    hbp_graph_free(read);
    hbp_graph_free(graph);
    folder_remove(folder);
    hbp_context_free(context);
}
END_TEST

typedef struct graph_file {
    const hbp_graph *graph;
    int32_t format;
} graph_file;

static hbp_status load_bytes(hbp_context *context, const void *user, const void *data, size_t bytes,
                             void **out)
{
    hbp_graph *graph = NULL;
    (void)user;
    hbp_status status = hbp__graph_read(context, "x", data, (int64_t)bytes, &graph);
    *out = graph;
    return status;
}

static hbp_status open_graph(hbp_context *context, const void *user, const char *from, void **out)
{
    hbp_graph *graph = NULL;
    (void)user;
    hbp_status status = hbp_graph_load(context, from, &graph);
    *out = graph;
    return status;
}

static hbp_status save_graph(hbp_context *context, const void *user, const char *to)
{
    const graph_file *file = user;
    return hbp_graph_save(context, file->graph, to, file->format);
}

static void free_graph(hbp_context *context, const void *user, void *graph)
{
    (void)context, (void)user;
    hbp_graph_free(graph);
}

/* One that can be written and read. */
static void expect_written(hbp_context *context, const void *user, void *graph)
{
    hbp__buffer buffer = {.memory = hbp__memory_default()};
    hbp_graph *again = NULL;
    OK(context, hbp__graph_write(context, graph, ((const graph_file *)user)->format, &buffer));
    OK(context, hbp__graph_read(context, "x", (const char *)buffer.data, (int64_t)buffer.bytes, &again));
    ck_assert_uint_eq(hbp__graph_digest(again), hbp__graph_digest(graph));
    hbp_graph_free(again);
    hbp__buffer_free(&buffer);
}

/* Few bytes that say everything once: every one of them is harmed. */
static hbp_graph *small_graph(hbp_context *context)
{
    hbp_graph *graph = new_graph(context);
    hbp_operator o = {.struct_size = sizeof o,
                      .parameters = "w",
                      .batch = 8,
                      .sequence = 77,
                      .width = 768,
                      .degrees = HBP_DEGREES_PROFILED,
                      .least_gpus = 2,
                      .split = 12,
                      .state_bytes = 100000,
                      .sharded_bytes = 3,
                      .activation_bytes = 4,
                      .output_bytes = 5,
                      .gradient_bytes = 6};
    o.profile = add_falling_profile(context, graph, 4000, 50, 4);
    int32_t last = add_chain(context, graph, &o, "a", "t", "u", 2);
    o = (hbp_operator){.struct_size = sizeof o, .profile = -1};
    int32_t other = add_chain(context, graph, &o, "b", "t", "v", 1);
    OK(context, hbp_graph_add_edge(context, graph, last, other, 70000));
    return graph;
}

START_TEST(harm_is_found_or_makes_another_graph)
{
    hbp_context *context = test_context();
    hbp_graph *graph = small_graph(context), *larger = page_graph(context);
    for (int32_t format = 0; format < 2; format++) {
        const graph_file file = {graph, format}, larger_file = {larger, format};
        harm_kind kind = {.load = load_bytes,
                          .release = free_graph,
                          .expect = expect_written,
                          .save = save_graph,
                          .open = open_graph,
                          .user = &file};
        hbp__buffer buffer = {.memory = hbp__memory_default()}, more = buffer;
        OK(context, hbp__graph_write(context, graph, format, &buffer));
        size_t whole = buffer.bytes - (format == HBP_GRAPH_JSON); /* the text ends with a line end */
        harm_done(&kind, buffer.data, buffer.bytes, whole);
        kind.user = &larger_file;
        OK(context, hbp__graph_write(context, larger, format, &more));
        harm_survived(&kind, more.data, more.bytes);
        hbp__buffer_free(&buffer);
        hbp__buffer_free(&more);
    }
    hbp_graph_free(larger);
    hbp_graph_free(graph);
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("graph_save", what_is_saved_is_read, odd_graphs_are_saved_too, files_are_as_they_were,
          bad_calls_are_refused, files_that_could_not_be_read_are_not_written, large_graphs_are_saved,
          harm_is_found_or_makes_another_graph)
