#include "data/graph/graph_check.h"

#include "failing.h"
#include "graphs.h"
#include "keep.h"

/* An operator with a profile of times 1 on these numbers of GPUs. */
static hbp_operator one_of(hbp_context *context, hbp_graph *graph, const int32_t *gpus, int64_t points)
{
    int64_t ns[64];
    hbp_operator o = {.struct_size = sizeof o};
    for (int64_t i = 0; i < points; i++)
        ns[i] = 1;
    OK(context, hbp_graph_add_profile(context, graph, gpus, ns, points, &o.profile));
    return o;
}

/* The definition, tried out: some p and q. */
static int suits(const hbp_operator *o, const int32_t *gpus, int points, int n)
{
    if (n < gpus[0] || n > gpus[points - 1] || n % o->least_gpus)
        return 0;
    for (int i = 0; i < points && o->degrees == HBP_DEGREES_PROFILED; i++)
        if (gpus[i] == n)
            return 1;
    for (int p = 1; p <= n && o->degrees == HBP_DEGREES_DIVISORS; p++)
        for (int q = 1; q <= n; q++)
            if (p * q == n && o->batch % p == 0 && o->split % q == 0)
                return 1;
    return 0;
}

START_TEST_IN_CONTEXT(degrees_as_defined)
{
    hbp__rng rng = hbp__rng_make(3, 0, 0);
    int accepted = 0, refused = 0;
    for (int round = 0; round < 3000; round++) {
        hbp_graph *graph = new_graph(context);
        int32_t gpus[8], points = 0, n = 0;
        int64_t most = random_between(&rng, 1, 8);
        while (points < most)
            gpus[points++] = n += (int32_t)random_between(&rng, 1, 6);
        hbp_operator o = one_of(context, graph, gpus, points);
        o.degrees = (int32_t)random_between(&rng, 0, 1);
        o.least_gpus = (int32_t)random_between(&rng, 1, 5);
        o.batch = random_between(&rng, 1, 24);
        o.split = random_between(&rng, 1, 12);
        add_chain(context, graph, &o, "x", "type", "task", 1);
        int any = 0;
        for (n = 1; n <= 50; n++) {
            int expected = suits(&o, gpus, points, n);
            const hbp__profile profile = hbp__graph_profile(graph, 0);
            ck_assert_int_eq(hbp__operator_suits(&graph->operators[0], &profile, n), expected);
            any |= expected;
        }
        if (any)
            OK(context, hbp_graph_validate(context, graph));
        else
            FAILS(context, HBP_E_INVALID,
                  o.degrees ? "none of these is a multiple of its least_gpus" : "and a divisor of its batch",
                  hbp_graph_validate(context, graph));
        accepted += any;
        refused += !any;
        hbp_graph_free(graph);
    }
    ck_assert_int_gt(accepted, 500);
    ck_assert_int_gt(refused, 500);
}
END_TEST

START_TEST_IN_CONTEXT(graphs_that_cannot_be_planned)
{
    hbp_graph *graph = keep(new_graph(context));
    ck_assert_int_eq(hbp_graph_validate(NULL, graph), HBP_E_INVALID);
    FAILS(context, HBP_E_INVALID, "graph", hbp_graph_validate(context, NULL));
    FAILS(context, HBP_E_INVALID, "the graph has no operators", hbp_graph_validate(context, graph));
    int32_t gpus[] = {3, 5};
    hbp_operator o = one_of(context, graph, gpus, 2), plain = o;
    o.batch = 15;
    add_chain(context, graph, &o, "good", "type", "task", 3);
    OK(context, hbp_graph_validate(context, graph));
    plain.profile = -1;
    add_chain(context, graph, &plain, "bare", "type", "task", 1);
    FAILS(context, HBP_E_INVALID, "operator 'bare' has no profile", hbp_graph_validate(context, graph));
    graph = keep(new_graph(context));
    o = one_of(context, graph, gpus, 2);
    o.batch = 6;
    o.least_gpus = 4;
    add_chain(context, graph, &o, "x", "type", "task", 2);
    FAILS(context, HBP_E_INVALID,
          "operator 'x[0]' is profiled on 3..5 GPUs; none of these is a multiple of its least_gpus, 4, and a "
          "divisor of its batch, 6, times one of its split, 1",
          hbp_graph_validate(context, graph));
    graph = keep(new_graph(context));
    o = one_of(context, graph, gpus, 2);
    o.degrees = HBP_DEGREES_PROFILED;
    o.least_gpus = 4;
    add_chain(context, graph, &o, "x", "type", "task", 1);
    FAILS(context, HBP_E_INVALID,
          "operator 'x' is profiled on 3..5 GPUs; none of these is a multiple of its least_gpus, 4",
          hbp_graph_validate(context, graph));
}
END_TEST

/* An operator that suits, then one that differs in a single field and does not. */
START_TEST_IN_CONTEXT(each_operator_is_looked_at)
{
    static const int32_t gpus[] = {2, 4}, three[] = {3};
    static const struct {
        hbp_operator good, bad;
    } pairs[] = {
        {{.profile = 0, .split = 2}, {.profile = 1, .split = 2}},
        {{.batch = 2}, {.batch = 5}},
        {{.split = 2}, {.split = 5}},
        {{.least_gpus = 2, .split = 4}, {.least_gpus = 3, .split = 4}},
        {{.degrees = HBP_DEGREES_PROFILED, .batch = 5}, {.degrees = HBP_DEGREES_DIVISORS, .batch = 5}}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        hbp_graph *graph = new_graph(context);
        hbp_operator good = pairs[i].good, bad = pairs[i].bad;
        one_of(context, graph, gpus, 2);
        one_of(context, graph, three, 1);
        good.struct_size = bad.struct_size = sizeof good;
        add_chain(context, graph, &good, "good", "type", "task", 2);
        OK(context, hbp_graph_validate(context, graph));
        add_chain(context, graph, &bad, "bad", "type", "task", 1);
        FAILS(context, HBP_E_INVALID, "operator 'bad' is profiled on", hbp_graph_validate(context, graph));
        hbp_graph_free(graph);
    }
}
END_TEST

/* The widest profile there may be, and nothing that suits it. */
START_TEST_IN_CONTEXT(wide_profiles_end)
{
    hbp_graph *graph = keep(new_graph(context));
    int32_t gpus[] = {2, 1 << 20};
    hbp_operator o = one_of(context, graph, gpus, 2);
    o.batch = INT64_MAX; /* 7^2 73 127 337 92737 649657: 7 suits */
    add_chain(context, graph, &o, "x", "type", "task", 1);
    OK(context, hbp_graph_validate(context, graph));
    o.batch = INT64_C(2305843009213693951); /* 2^61 - 1 is prime */
    o.split = o.batch;
    add_chain(context, graph, &o, "y", "type", "task", 1);
    FAILS(context, HBP_E_INVALID, "operator 'y' is profiled on 2..1048576 GPUs",
          hbp_graph_validate(context, graph));
}
END_TEST

START_TEST_IN_CONTEXT(cycles_are_named)
{
    hbp_graph *graph = keep(new_graph(context));
    add_falling_profile(context, graph, 1000, 1, 4);
    add_chain(context, graph, NULL, "a", "type", "task", 1);
    add_chain(context, graph, NULL, "b", "type", "task", 1);
    add_chain(context, graph, NULL, "c", "type", "task", 9);
    OK(context, hbp_graph_add_edge(context, graph, 1, 0, -1));
    OK(context, hbp_graph_validate(context, graph));
    OK(context, hbp_graph_add_edge(context, graph, 0, 1, -1));
    FAILS(context, HBP_E_INVALID, "the graph has a cycle: 'a' -> 'b' -> 'a'",
          hbp_graph_validate(context, graph));
    graph = keep(new_graph(context));
    add_falling_profile(context, graph, 1000, 1, 4);
    add_chain(context, graph, NULL, "c", "type", "task", 9);
    OK(context, hbp_graph_add_edge(context, graph, 8, 1, -1));
    FAILS(
        context, HBP_E_INVALID,
        "the graph has a cycle: 'c[1]' -> 'c[2]' -> 'c[3]' -> 'c[4]' -> 'c[5]' -> 'c[6]' -> 2 more -> 'c[1]'",
        hbp_graph_validate(context, graph));
    graph = keep(new_graph(context));
    add_chain(context, graph, &(hbp_operator){.struct_size = sizeof(hbp_operator), .profile = -1}, "c",
              "type", "task", 6);
    OK(context, hbp_graph_add_edge(context, graph, 5, 0, -1));
    hbp__graph_order order;
    FAILS(context, HBP_E_INVALID,
          "the graph has a cycle: 'c[0]' -> 'c[1]' -> 'c[2]' -> 'c[3]' -> 'c[4]' -> 'c[5]' -> 'c[0]'",
          hbp__graph_order_open(context, graph, &order));
}
END_TEST

static int has_edge(const hbp_graph *graph, int32_t from, int32_t to)
{
    for (int64_t e = 0; e < graph->edge_count; e++)
        if (graph->edge_from[e] == from && graph->edge_to[e] == to)
            return 1;
    return 0;
}

/* Whether an operator reaches itself (Warshall). */
static int cyclic(const hbp_graph *graph)
{
    int reach[8][8] = {{0}}, n = graph->operator_count, found = 0;
    for (int64_t e = 0; e < graph->edge_count; e++)
        reach[graph->edge_from[e]][graph->edge_to[e]] = 1;
    for (int k = 0; k < n; k++)
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++)
                reach[i][j] |= reach[i][k] && reach[k][j];
    for (int i = 0; i < n; i++)
        found |= reach[i][i];
    return found;
}

/* The message's operators, numbers in quotes, are a cycle of distinct ones from the least. */
static void check_cycle(const hbp_graph *graph, const char *message)
{
    int32_t first = -1, before = -1, seen = 0;
    for (const char *at = strchr(message, '\''); at; at = strchr(at + 1, '\'')) {
        int32_t i = (int32_t)strtol(at + 1, NULL, 10);
        ck_assert_int_ge(i, first);
        if (before >= 0)
            ck_assert(has_edge(graph, before, i));
        ck_assert(!(seen & 1 << i) || i == first);
        seen |= 1 << i;
        first = first < 0 ? i : first;
        before = i;
        at = strchr(at + 1, '\'');
    }
    ck_assert_int_ge(first, 0);
    ck_assert_int_eq(before, first);
}

START_TEST_IN_CONTEXT(orders_and_cycles_of_random_graphs)
{
    hbp__rng rng = hbp__rng_make(7, 0, 0);
    int cycles = 0, orders = 0;
    for (int round = 0; round < 3000; round++) {
        hbp_graph *graph = new_graph(context);
        add_falling_profile(context, graph, 1000, 1, 4);
        int32_t n = (int32_t)random_between(&rng, 1, 6);
        char name[16];
        for (int32_t i = 0; i < n; i++) {
            snprintf(name, sizeof name, "%d", (int)i);
            add_chain(context, graph, NULL, name, "type", "task", 1);
        }
        for (int64_t k = random_between(&rng, 0, 2 * n); k > 0; k--) {
            int32_t from = (int32_t)random_between(&rng, 0, n - 1),
                    to = (int32_t)random_between(&rng, 0, n - 1);
            if (from != to && !has_edge(graph, from, to))
                OK(context, hbp_graph_add_edge(context, graph, from, to, -1));
        }
        if (cyclic(graph)) {
            cycles++;
            FAILS(context, HBP_E_INVALID, "the graph has a cycle: ", hbp_graph_validate(context, graph));
            check_cycle(graph, hbp_context_message(context));
        } else {
            orders++;
            OK(context, hbp_graph_validate(context, graph));
            hbp__graph_order order;
            int32_t place[6], entering[6] = {0};
            OK(context, hbp__graph_order_open(context, graph, &order));
            for (int32_t k = 0; k < n; k++)
                place[order.order[k]] = k;
            for (int64_t e = 0; e < graph->edge_count; e++) {
                ck_assert_int_lt(place[graph->edge_from[e]], place[graph->edge_to[e]]);
                entering[graph->edge_to[e]]++;
            }
            ck_assert_mem_eq(order.needs, entering, (size_t)n * sizeof *entering);
            ck_assert_int_eq(order.out_first[0], 0);
            ck_assert_int_eq(order.out_first[n], graph->edge_count);
            for (int32_t i = 0; i < n; i++)
                for (int64_t k = order.out_first[i]; k < order.out_first[i + 1]; k++) {
                    ck_assert_int_eq(graph->edge_from[order.out_edge[k]], i);
                    if (k > order.out_first[i])
                        ck_assert_int_gt(order.out_edge[k], order.out_edge[k - 1]);
                }
            hbp__graph_order_close(&order);
        }
        hbp_graph_free(graph);
    }
    ck_assert_int_gt(cycles, 500);
    ck_assert_int_gt(orders, 500);
}
END_TEST

static hbp_status check(hbp_context *context, void *user)
{
    return hbp_graph_validate(context, user);
}

START_TEST_IN_CONTEXT(failing_allocations_leave_nothing)
{
    hbp_graph *graph = keep(page_graph(context));
    failing_sweep(check, graph);
}
END_TEST

TEST_MAIN("graph_check", degrees_as_defined, graphs_that_cannot_be_planned, each_operator_is_looked_at,
          wide_profiles_end, cycles_are_named, orders_and_cycles_of_random_graphs,
          failing_allocations_leave_nothing)
