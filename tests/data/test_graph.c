#include "data/graph/graph.h"

#include "failing.h"
#include "graphs.h"
#include "keep.h"

static int32_t add_profile(hbp_context *context, hbp_graph *graph)
{
    static const int32_t gpus[] = {1, 2, 4};
    static const int64_t ns[] = {400, 210, 220};
    int32_t profile = -1;
    OK(context, hbp_graph_add_profile(context, graph, gpus, ns, 3, &profile));
    return profile;
}

/* Every field given. */
static hbp_operator full_operator(void)
{
    return (hbp_operator){.struct_size = sizeof(hbp_operator),
                          .profile = 0,
                          .name = "layer",
                          .type = "attention",
                          .task = "captions",
                          .parameters = "weights",
                          .batch = 8,
                          .sequence = 77,
                          .width = 768,
                          .degrees = HBP_DEGREES_PROFILED,
                          .least_gpus = 2,
                          .split = 12,
                          .state_bytes = 1000,
                          .sharded_bytes = 2000,
                          .activation_bytes = 3000,
                          .output_bytes = 4000,
                          .gradient_bytes = 5000};
}

static void check_operator(hbp_context *context, const hbp_graph *graph, int64_t index,
                           const hbp_operator *expected)
{
    hbp_operator o = {.struct_size = sizeof o};
    OK(context, hbp_graph_get_operator(context, graph, index, &o));
    ck_assert_str_eq(o.name, expected->name);
    ck_assert_str_eq(o.type, expected->type);
    ck_assert_str_eq(o.task, expected->task);
    ck_assert_str_eq(o.parameters, expected->parameters);
#define COMPARE(field, type) ck_assert_int_eq(o.field, expected->field);
    HBP__OPERATOR_NUMBERS(COMPARE)
#undef COMPARE
}

START_TEST_IN_CONTEXT(operators_are_copied)
{
    hbp_graph *graph = new_graph(context);
    ck_assert_int_eq(add_profile(context, graph), 0);
    ck_assert_int_eq(add_profile(context, graph), 1);
    char name[] = "layer", type[] = "attention", task[] = "captions", weights[] = "weights";
    hbp_operator given = full_operator(), expected = given;
    given.name = name, given.type = type, given.task = task, given.parameters = weights;
    int32_t first = 7;
    OK(context, hbp_graph_add_operators(context, graph, &given, 1, &first));
    ck_assert_int_eq(first, 0);
    name[0] = type[0] = task[0] = weights[0] = '?';
    check_operator(context, graph, 0, &expected);
    hbp_graph_view view = graph_view(graph);
    ck_assert_int_eq(view.profile_offsets[0], 0);
    ck_assert_int_eq(view.profile_offsets[1], 3);
    ck_assert_int_eq(view.profile_offsets[2], 6);
    ck_assert_int_eq(view.point_gpus[5], 4);
    ck_assert_int_eq(view.point_ns[5], 220); /* as given, though it rises */
    hbp_graph_free(graph);
    hbp_graph_free(NULL);
}
END_TEST

START_TEST_IN_CONTEXT(what_is_left_out_has_its_default)
{
    hbp_graph *graph = keep(new_graph(context));
    add_profile(context, graph);
    hbp_operator o, expected = {.name = "operator 0", .type = "t", .task = "u", .parameters = "operator 0"};
    expected.batch = expected.sequence = expected.width = expected.split = expected.least_gpus = 1;
    expected.degrees = HBP_DEGREES_PROFILED; /* nothing says what divides it */
    o = (hbp_operator){.struct_size = sizeof o};
    o.type = "t";
    o.task = "u";
    OK(context, hbp_graph_add_operators(context, graph, &o, 1, NULL));
    check_operator(context, graph, 0, &expected);
    OK(context, hbp_graph_add_operators(context, graph, &o, 2, NULL));
    expected.name = expected.parameters = "operator 1[1]";
    check_operator(context, graph, 2, &expected);
    o.profile = -1; /* may come in; hbp_graph_validate refuses it */
    o.name = "without";
    OK(context, hbp_graph_add_operators(context, graph, &o, 1, NULL));
    expected.profile = -1;
    expected.name = expected.parameters = "without";
    check_operator(context, graph, 3, &expected);
}
END_TEST

START_TEST_IN_CONTEXT(chains_have_names_weights_and_edges)
{
    hbp_graph *graph = keep(new_graph(context));
    add_profile(context, graph);
    hbp_operator given = full_operator(), expected = given;
    int32_t first = -1;
    OK(context, hbp_graph_add_operators(context, graph, &given, 3, &first));
    ck_assert_int_eq(first, 0);
    given.name = "other";
    given.task = "sounds";
    OK(context, hbp_graph_add_operators(context, graph, &given, 2, &first));
    ck_assert_int_eq(first, 3);
    given.name = "third";
    given.parameters = NULL;
    OK(context, hbp_graph_add_operators(context, graph, &given, 2, &first));
    static const char *const names[] = {"layer[0]", "layer[1]", "layer[2]", "other[0]",
                                        "other[1]", "third[0]", "third[1]"};
    static const int32_t weights[] = {0, 1, 2, 0, 1, 3, 4}, tasks[] = {0, 0, 0, 1, 1, 1, 1};
    static const char *const weight_names[] = {"weights[0]", "weights[1]", "weights[2]", "third[0]",
                                               "third[1]"};
    for (int i = 0; i < 7; i++) {
        expected.name = names[i];
        expected.task = tasks[i] ? "sounds" : "captions";
        expected.parameters = weight_names[weights[i]];
        check_operator(context, graph, i, &expected);
    }
    ck_assert_mem_eq(graph_view(graph).operator_parameters, weights, sizeof weights);
    ck_assert_mem_eq(graph_view(graph).operator_tasks, tasks, sizeof tasks);
    ck_assert_int_eq(graph_view(graph).operators, 7);
    ck_assert_int_eq(graph_view(graph).tasks, 2);
    ck_assert_int_eq(graph_view(graph).parameters, 5);
    ck_assert_int_eq(graph_view(graph).profiles, 1);
    ck_assert_int_eq(graph_view(graph).edges, 4);
    for (int p = 0; p < 5; p++)
        ck_assert_str_eq(graph_view(graph).parameter_names[p], weight_names[p]);
    ck_assert_str_eq(graph_view(graph).task_names[1], "sounds");
    static const int32_t from[] = {0, 1, 3, 5};
    for (int e = 0; e < 4; e++) {
        ck_assert_int_eq(graph_view(graph).edge_from[e], from[e]);
        ck_assert_int_eq(graph_view(graph).edge_to[e], from[e] + 1);
        ck_assert_int_eq(graph_view(graph).edge_bytes[e], 4000);
    }
}
END_TEST

START_TEST_IN_CONTEXT(getters_of_nothing)
{
    hbp_graph *graph = keep(page_graph(context));
    hbp_operator o = {.struct_size = sizeof o};
    hbp_graph_view none, zeros = {.struct_size = sizeof zeros};
    memset(&none, 0x5a, sizeof none);
    none.struct_size = sizeof none;
    ck_assert_int_eq(hbp_graph_get_view(NULL, &none), HBP_E_INVALID);
    ck_assert_mem_eq(&none, &zeros, sizeof none);
    ck_assert_int_eq(hbp_graph_get_view(graph, NULL), HBP_E_INVALID);
    FAILS(context, HBP_E_INVALID, "there is no operator 17; there are 17",
          hbp_graph_get_operator(context, graph, 17, &o));
    FAILS(context, HBP_E_INVALID, "there is no operator -1; there are 17",
          hbp_graph_get_operator(context, graph, -1, &o));
    FAILS(context, HBP_E_INVALID, "graph", hbp_graph_get_operator(context, NULL, 0, &o));
    FAILS(context, HBP_E_INVALID, "hbp_operator", hbp_graph_get_operator(context, graph, 0, NULL));
    ck_assert_int_eq(hbp_graph_get_operator(NULL, graph, 0, &o), HBP_E_INVALID);
    FAILS(context, HBP_E_INVALID, "out", hbp_graph_create(context, NULL));
}
END_TEST

START_TEST_IN_CONTEXT(bad_profiles_are_refused)
{
    hbp_graph *graph = keep(new_graph(context));
    int32_t gpus[] = {1, 2, 4}, profile = 7;
    int64_t ns[] = {400, 210, 220};
#define REFUSE(text, points)                                                                                 \
    FAILS(context, HBP_E_INVALID, text, hbp_graph_add_profile(context, graph, gpus, ns, points, &profile))
    REFUSE("points is 0; a profile has at least 1", 0);
    REFUSE("points is -1; a profile has at least 1", -1);
    gpus[0] = 0;
    REFUSE("gpus of point 0 is 0; it must be in 1..1048576", 3);
    gpus[0] = 2;
    REFUSE("gpus of point 1 is 2, after 2; points must come with rising gpus", 3);
    gpus[0] = 1;
    gpus[2] = (1 << 20) + 1;
    REFUSE("gpus of point 2 is 1048577; it must be in 1..1048576", 3);
    gpus[2] = 4;
    ns[1] = 0;
    REFUSE("ns of point 1 is 0; it must be in 1..2^53", 3);
    ns[1] = (INT64_C(1) << 53) + 1;
    REFUSE("ns of point 1 is 9007199254740993; it must be in 1..2^53", 3);
#undef REFUSE
    FAILS(context, HBP_E_INVALID, "gpus", hbp_graph_add_profile(context, graph, NULL, ns, 3, &profile));
    FAILS(context, HBP_E_INVALID, "ns", hbp_graph_add_profile(context, graph, gpus, NULL, 3, &profile));
    FAILS(context, HBP_E_INVALID, "graph", hbp_graph_add_profile(context, NULL, gpus, ns, 3, &profile));
    ck_assert_int_eq(hbp_graph_add_profile(NULL, graph, gpus, ns, 3, &profile), HBP_E_INVALID);
    ck_assert_int_eq(profile, 7);
    ck_assert_int_eq(graph_view(graph).profiles, 0);
    ns[1] = INT64_C(1) << 53;
    gpus[2] = 1 << 20;
    OK(context, hbp_graph_add_profile(context, graph, gpus, ns, 3, NULL));
}
END_TEST

/* Adding fails with `text`, and the graph stays as it is. */
static void refuse(hbp_context *context, hbp_graph *graph, const hbp_operator *o, int64_t count,
                   hbp_status status, const char *text)
{
    uint64_t before = hbp__graph_digest(graph);
    int32_t first = 7;
    FAILS(context, status, text, hbp_graph_add_operators(context, graph, o, count, &first));
    ck_assert_int_eq(first, 7);
    ck_assert_uint_eq(hbp__graph_digest(graph), before);
}

START_TEST_IN_CONTEXT(bad_operators_are_refused)
{
    hbp_graph *graph = keep(new_graph(context));
    add_profile(context, graph);
    hbp_operator good = full_operator(), o = good;
    OK(context, hbp_graph_add_operators(context, graph, &good, 2, NULL));
    good.name = "next";
#define REFUSE(change, count, text)                                                                          \
    o = good;                                                                                                \
    change;                                                                                                  \
    refuse(context, graph, &o, count, HBP_E_INVALID, text)
#define NEGATIVE(field, type)                                                                                \
    if (strcmp(#field, "profile") != 0 && strcmp(#field, "degrees") != 0) {                                  \
        REFUSE(o.field = -5, 1, #field " of operator 'next' is -5; it must not be negative");                \
    }
    HBP__OPERATOR_NUMBERS(NEGATIVE)
#undef NEGATIVE
    REFUSE(o.profile = 1, 1, "profile of operator 'next' is 1; there are 1 profiles, from 0; -1: none");
    REFUSE(o.profile = -2, 1, "profile of operator 'next' is -2; there are 1 profiles");
    REFUSE(o.degrees = 2, 1, "`degrees` is 2; it must be in 0..1");
    REFUSE(o.degrees = -1, 1, "`degrees` is -1; it must be in 0..1");
    REFUSE((void)0, 0, "count of operator 'next' is 0; it must be at least 1");
    REFUSE(o.type = NULL, 1, "type of operator 'next' is missing");
    REFUSE(o.task = NULL, 1, "task of operator 'next' is missing");
    REFUSE(o.task = "", 1, "task of operator 'next' is empty");
    REFUSE(o.name = "", 1, "name of operator 2 is empty");
    REFUSE(o.name = NULL; o.type = NULL, 1, "type of operator 2 is missing");
    REFUSE(o.parameters = "", 1, "parameters of operator 'next' is empty");
    REFUSE(o.name = "a\nb", 1, "name of operator 2 must be UTF-8 without control characters");
    REFUSE(o.name = "\xff", 1, "name of operator 2 must be UTF-8 without control characters");
    REFUSE(o.type = "\x7f", 1, "type of operator 'next' must be UTF-8 without control characters");
    REFUSE(o.name = "layer[1]", 1, "name of operator 2 is 'layer[1]'; operator 1 has it already");
    REFUSE(o.name = "layer"; o.type = "fresh"; o.task = "fresh";
           o.parameters = "fresh", 3, "name of operator 2 is 'layer[0]'; operator 0 has it already");
    REFUSE(o.struct_size = 3, 1, "hbp_operator.struct_size is 3");
#undef REFUSE
    o = good;
    refuse(context, graph, &o, INT32_MAX - 1, HBP_E_OVERFLOW,
           "count of operator 'next' is 2147483646; after 2 operators at most 2147483645 can follow");
    o.gradient_bytes = INT64_MAX;
    refuse(context, graph, &o, 1, HBP_E_OVERFLOW,
           "with operator 'next' all sizes sum to more than 2^62 bytes");
    o.gradient_bytes = (INT64_C(1) << 62) / 4;
    refuse(context, graph, &o, 4, HBP_E_OVERFLOW,
           "with operator 'next' all sizes sum to more than 2^62 bytes");
    FAILS(context, HBP_E_INVALID, "fields", hbp_graph_add_operators(context, graph, NULL, 1, NULL));
    FAILS(context, HBP_E_INVALID, "graph", hbp_graph_add_operators(context, NULL, &good, 1, NULL));
    ck_assert_int_eq(hbp_graph_add_operators(NULL, graph, &good, 1, NULL), HBP_E_INVALID);
    OK(context, hbp_graph_add_operators(context, graph, &o, 3, NULL));
}
END_TEST

/* A chain whose third name is taken leaves names, weights and edges as they were. */
START_TEST_IN_CONTEXT(half_a_chain_is_taken_back)
{
    hbp_graph *graph = keep(new_graph(context));
    add_profile(context, graph);
    hbp_operator o = full_operator();
    o.name = "x[200]";
    OK(context, hbp_graph_add_operators(context, graph, &o, 1, NULL));
    o.name = "x";
    o.type = "fresh";
    o.parameters = "fresh";
    refuse(context, graph, &o, 300, HBP_E_INVALID, "operator 0 has it already");
    ck_assert_int_eq(graph_view(graph).operators, 1);
    ck_assert_int_eq(graph_view(graph).edges, 0);
    hbp_context_cancel(context);
    o.name = "y";
    refuse(context, graph, &o, 70000, HBP_E_CANCELLED, "");
    OK(context, hbp_graph_add_operators(context, graph, &o, 300, NULL));
    o.name = "x";
    OK(context, hbp_graph_add_operators(context, graph, &o, 200, NULL));
    ck_assert_int_eq(graph_view(graph).parameters, 301);
    ck_assert_int_eq(graph_view(graph).edges, 498);
}
END_TEST

START_TEST_IN_CONTEXT(bad_edges_are_refused)
{
    hbp_graph *graph = keep(new_graph(context));
    add_profile(context, graph);
    hbp_operator o = full_operator();
    OK(context, hbp_graph_add_operators(context, graph, &o, 3, NULL));
    uint64_t before = hbp__graph_digest(graph);
#define REFUSE(from, to, bytes, text)                                                                        \
    FAILS(context, HBP_E_INVALID, text, hbp_graph_add_edge(context, graph, from, to, bytes))
    REFUSE(0, 3, -1, "an edge goes from operator 0 to 3; there are 3 operators");
    REFUSE(-1, 0, -1, "an edge goes from operator -1 to 0; there are 3 operators");
    REFUSE(1, 1, -1, "an edge goes from operator 'layer[1]' to itself");
    REFUSE(0, 1, -1, "the edge from operator 'layer[0]' to 'layer[1]' is there already");
    REFUSE(0, 2, -2,
           "bytes of the edge from operator 'layer[0]' to 'layer[2]' is -2; it must be at least -1");
#undef REFUSE
    FAILS(context, HBP_E_OVERFLOW,
          "with the edge from operator 'layer[0]' to 'layer[2]' all sizes sum to more than 2^62 bytes",
          hbp_graph_add_edge(context, graph, 0, 2, INT64_C(1) << 62));
    FAILS(context, HBP_E_INVALID, "graph", hbp_graph_add_edge(context, NULL, 0, 1, -1));
    ck_assert_int_eq(hbp_graph_add_edge(NULL, graph, 0, 2, -1), HBP_E_INVALID);
    ck_assert_uint_eq(hbp__graph_digest(graph), before);
    OK(context, hbp_graph_add_edge(context, graph, 0, 2, -1));
    OK(context, hbp_graph_add_edge(context, graph, 2, 1, 0)); /* a cycle may come in */
    ck_assert_int_eq(graph_view(graph).edge_bytes[2], 4000);
    ck_assert_int_eq(graph_view(graph).edge_bytes[3], 0);
}
END_TEST

/* All pairs of 150 operators, each refused the second time. */
START_TEST_IN_CONTEXT(many_edges_are_told_apart)
{
    hbp_graph *graph = keep(new_graph(context));
    for (int32_t i = 0; i < 150; i++)
        add_chain(context, graph, &(hbp_operator){.struct_size = sizeof(hbp_operator), .profile = -1}, NULL,
                  "t", "u", 1);
    for (int32_t from = 0; from < 150; from++)
        for (int32_t to = 0; to < 150; to++)
            if (from != to)
                OK(context, hbp_graph_add_edge(context, graph, from, to, from));
    for (int32_t from = 0; from < 150; from++)
        for (int32_t to = 0; to < 150; to++)
            if (from != to)
                FAILS(context, HBP_E_INVALID, "is there already",
                      hbp_graph_add_edge(context, graph, from, to, from));
    ck_assert_int_eq(graph_view(graph).edges, 150 * 149);
}
END_TEST

START_TEST_IN_CONTEXT(an_older_caller_has_fewer_fields)
{
    hbp_graph *graph = keep(new_graph(context));
    add_profile(context, graph);
    hbp_operator o = full_operator(), read;
    o.struct_size = offsetof(hbp_operator, batch);
    OK(context, hbp_graph_add_operators(context, graph, &o, 1, NULL));
    ck_assert_int_eq(graph->operators[0].batch, 1);
    ck_assert_int_eq(graph->operators[0].output_bytes, 0);
    memset(&read, 0x55, sizeof read);
    read.struct_size = o.struct_size;
    OK(context, hbp_graph_get_operator(context, graph, 0, &read));
    ck_assert_str_eq(read.parameters, "weights");
    ck_assert_int_eq(read.batch, INT64_C(0x5555555555555555));
    ck_assert_uint_eq(sizeof(hbp_operator), 8 + 4 * sizeof(void *) + 3 * 8 + 2 * 4 + 6 * 8);
}
END_TEST

/* Two profiles, three operators, two edges; one detail is another when `which` says so. */
static uint64_t digest_of(hbp_context *context, int which)
{
    static const int32_t gpus[] = {1, 2};
    static const char *const other[] = {"another, longer than eight bytes", "layer"};
    hbp_graph *graph = new_graph(context);
    int64_t ns[] = {100, which == 0 ? 61 : 60};
    OK(context, hbp_graph_add_profile(context, graph, gpus, ns, 2, NULL));
    OK(context, hbp_graph_add_profile(context, graph, gpus, ns, which == 1 ? 1 : 2, NULL));
    hbp_operator o = full_operator();
    OK(context, hbp_graph_add_operators(context, graph, &o, 2, NULL));
    int at = 2;
    o.name = "last";
#define CHANGE(field, type) o.field += which == at++;
    HBP__OPERATOR_NUMBERS(CHANGE)
#undef CHANGE
    if (which == 3) /* the only other value of degrees */
        o.degrees = HBP_DEGREES_DIVISORS;
    o.name = which == at++ ? other[0] : o.name;
    o.type = which == at++ ? other[1] : o.type;
    o.task = which == at++ ? other[1] : o.task;
    o.parameters = which == at++ ? NULL : o.parameters;
    OK(context, hbp_graph_add_operators(context, graph, &o, 1, NULL));
    if (which != at++)
        OK(context, hbp_graph_add_edge(context, graph, 1, 2, which == at ? 7 : -1));
    uint64_t digest = hbp__graph_digest(graph);
    hbp_graph_free(graph);
    return digest;
}

START_TEST_IN_CONTEXT(digests_tell_graphs_apart)
{
    enum { WAYS = 2 + 12 + 4 + 2 };
    uint64_t digest[WAYS + 1];
    for (int which = 0; which <= WAYS; which++) {
        digest[which] = digest_of(context, which == WAYS ? -1 : which);
        for (int before = 0; before < which; before++)
            ck_assert_uint_ne(digest[which], digest[before]);
    }
    ck_assert_uint_eq(digest_of(context, -1), digest[WAYS]);
    ck_assert_uint_eq(digest[WAYS], UINT64_C(0xc0b02f4aa905c844));
}
END_TEST

static hbp_status build(hbp_context *context, void *user)
{
    static const int32_t gpus[] = {1, 2};
    static const int64_t ns[] = {100, 60};
    (void)user;
    hbp_graph *graph = NULL;
    hbp_status status = hbp_graph_create(context, &graph);
    hbp_operator o = full_operator();
    if (status >= 0)
        status = hbp_graph_add_profile(context, graph, gpus, ns, 2, NULL);
    for (int i = 0; i < 3 && status >= 0; i++) {
        uint64_t before = hbp__graph_digest(graph);
        char name[16];
        snprintf(name, sizeof name, "chain %d", i);
        o.name = o.parameters = o.type = o.task = name;
        status = hbp_graph_add_operators(context, graph, &o, 40, NULL);
        if (status < 0)
            ck_assert_uint_eq(hbp__graph_digest(graph), before);
    }
    for (int i = 0; i < 38 && status >= 0; i++)
        status = hbp_graph_add_edge(context, graph, i, i + 2, -1);
    hbp_graph_free(graph);
    return status;
}

START_TEST(failing_allocations_leave_nothing)
{
    failing_sweep(build, NULL);
}
END_TEST

TEST_MAIN("graph", operators_are_copied, what_is_left_out_has_its_default,
          chains_have_names_weights_and_edges, getters_of_nothing, bad_profiles_are_refused,
          bad_operators_are_refused, half_a_chain_is_taken_back, bad_edges_are_refused,
          many_edges_are_told_apart, an_older_caller_has_fewer_fields, digests_tell_graphs_apart,
          failing_allocations_leave_nothing)
