#include "data/graph/meta_graph.h"

#include "data/graph/graph_check.h"
#include "failing.h"
#include "graphs.h"
#include "keep.h"

START_TEST_IN_CONTEXT(seven_meta_ops)
{
    hbp_graph *graph = keep(page_graph(context));
    hbp__meta_graph meta;
    OK(context, hbp__meta_graph_open(context, graph, &meta));
    static const char *const chains[] = {"ABC", "DE", "IJ", "KL", "MN", "FGH", "OPQ"};
    ck_assert_int_eq(meta.count, 7);
    ck_assert_int_eq(meta.levels, 2);
    ck_assert_int_eq(meta.operator_count, 17);
    for (int32_t m = 0; m < 7; m++) {
        ck_assert_int_eq(meta.meta_op[m].count, (int)strlen(chains[m]));
        ck_assert_int_eq(meta.meta_op[m].level, m >= 5);
        for (int32_t k = 0; k < meta.meta_op[m].count; k++) {
            int32_t i = meta.operators[meta.meta_op[m].first + k];
            ck_assert_int_eq(graph->operators[i].name[0], chains[m][k]);
            ck_assert_int_eq(meta.meta_of[i], m);
            ck_assert_int_eq(meta.place_of[i], k);
        }
    }
    static const int32_t level_first[] = {0, 5, 7};
    ck_assert_mem_eq(meta.level_first, level_first, sizeof level_first);
    ck_assert_int_eq(meta.edge_count, 5);
    static const int32_t to[] = {5, 5, 6, 6, 6};
    for (int32_t e = 0; e < 5; e++) {
        ck_assert_int_eq(meta.edges[e].from, e);
        ck_assert_int_eq(meta.edges[e].to, to[e]);
        ck_assert_int_eq(meta.edges[e].bytes, hbp__meta_operator(graph, &meta, e)->output_bytes);
        ck_assert_int_eq(meta.in_edges[e], e);
    }
    hbp__meta_graph_close(&meta);
}
END_TEST

START_TEST_IN_CONTEXT(three_meta_ops_of_one_level)
{
    hbp_graph *graph = keep(figure_graph(context));
    hbp__meta_graph meta;
    OK(context, hbp_graph_validate(context, graph));
    OK(context, hbp__meta_graph_open(context, graph, &meta));
    static const int32_t counts[] = {8, 12, 6};
    ck_assert_int_eq(meta.count, 3);
    ck_assert_int_eq(meta.levels, 1);
    ck_assert_int_eq(meta.edge_count, 0);
    for (int32_t m = 0; m < 3; m++)
        ck_assert_int_eq(meta.meta_op[m].count, counts[m]);
    hbp__meta_graph_close(&meta);
}
END_TEST

enum { MOST = 12 };

/* Groups of operators and how many edges lead from one to another, and of how many bytes. */
typedef struct groups {
    const hbp_graph *graph;
    int count;
    int size[MOST];
    int member[MOST][MOST];
    int edges[MOST][MOST];
    int64_t bytes[MOST][MOST];
} groups;

/* The definition, word for word. */
static int mergeable(const groups *g, int i, int j)
{
    int out = 0, in = 0;
    for (int k = 0; k < g->count; k++) {
        out += g->edges[i][k];
        in += g->edges[k][j];
    }
    const hbp__operator *a = &g->graph->operators[g->member[i][0]];
    const hbp__operator *b = &g->graph->operators[g->member[j][0]];
    return i != j && g->edges[i][j] == 1 && out == 1 && in == 1 && a->type == b->type && a->task == b->task &&
           a->batch == b->batch && a->sequence == b->sequence && a->width == b->width &&
           a->profile == b->profile && a->degrees == b->degrees && a->least_gpus == b->least_gpus &&
           a->split == b->split;
}

/* Group j follows at the end of group i; the last group takes its number. */
static void merge(groups *g, int i, int j)
{
    for (int k = 0; k < g->size[j]; k++)
        g->member[i][g->size[i]++] = g->member[j][k];
    for (int k = 0; k < g->count; k++) {
        g->edges[i][k] = g->edges[j][k];
        g->bytes[i][k] = g->bytes[j][k];
    }
    int last = --g->count;
    memcpy(g->member[j], g->member[last], sizeof g->member[j]);
    g->size[j] = g->size[last];
    for (int k = 0; k <= last; k++) {
        g->edges[j][k] = g->edges[last][k];
        g->bytes[j][k] = g->bytes[last][k];
    }
    for (int k = 0; k <= last; k++) {
        g->edges[k][j] = g->edges[k][last];
        g->bytes[k][j] = g->bytes[k][last];
    }
}

/* Merges a random pair while there is one. */
static void contract_anyhow(groups *g, hbp__rng *rng)
{
    for (;;) {
        int pairs[MOST * MOST][2], found = 0;
        for (int i = 0; i < g->count; i++)
            for (int j = 0; j < g->count; j++)
                if (mergeable(g, i, j)) {
                    pairs[found][0] = i;
                    pairs[found++][1] = j;
                }
        if (!found)
            return;
        int at = (int)hbp__rng_below(rng, (uint64_t)found);
        merge(g, pairs[at][0], pairs[at][1]);
    }
}

/* Edges of the longest path to group j, all paths tried. */
static int longest(const groups *g, int j)
{
    int most = 0;
    for (int i = 0; i < g->count; i++)
        if (g->edges[i][j]) {
            int path = longest(g, i) + 1;
            most = path > most ? path : most;
        }
    return most;
}

/* Operators of few kinds in a random order, with random edges along it. */
static hbp_graph *random_dag(hbp_context *context, hbp__rng *rng)
{
    hbp_graph *graph = new_graph(context);
    uint32_t place[MOST];
    uint64_t count = 1 + hbp__rng_below(rng, MOST);
    int64_t density = random_between(rng, 1, 3);
    add_falling_profile(context, graph, 1000, 1, 8);
    add_falling_profile(context, graph, 2000, 1, 8);
    for (uint32_t i = 0; i < count; i++) {
        hbp_operator o = {.struct_size = sizeof o};
        int64_t other = random_between(rng, 0, 60); /* one in twelve differs in some field */
        o.profile = other == 0;
        o.batch = 4 + 4 * (other == 1);
        o.sequence = 7 + (other == 2);
        o.width = 64 + (other == 3);
        o.degrees = other == 4;
        o.split = 2 + (other == 5);
        o.least_gpus = 1 + (other == 6);
        o.output_bytes = random_between(rng, 0, 1000);
        o.state_bytes = random_between(rng, 0, 1000);
        add_chain(context, graph, &o, NULL, other == 7 ? "u" : "t", other == 8 ? "v" : "w", 1);
        place[i] = i;
    }
    hbp__rng_shuffle_u32(rng, place, count);
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t j = i + 1; j < count; j++)
            if (random_between(rng, 0, (int64_t)count) < (j == i + 1 ? 4 * density : density) / 2)
                OK(context, hbp_graph_add_edge(context, graph, (int32_t)place[i], (int32_t)place[j],
                                               random_between(rng, -1, 50)));
    return graph;
}

static void check_edges(const hbp__meta_graph *meta, const groups *g, const int *group_of)
{
    int64_t e = 0;
    for (int32_t m = 0; m < meta->count; m++) {
        ck_assert_int_eq(meta->out_first[m], e);
        for (int32_t to = 0; to < meta->count; to++) {
            int i = group_of[m], j = group_of[to];
            if (!g->edges[i][j])
                continue;
            ck_assert_int_eq(meta->edges[e].from, m);
            ck_assert_int_eq(meta->edges[e].to, to);
            ck_assert_int_eq(meta->edges[e].bytes, g->bytes[i][j]);
            ck_assert_int_lt(m, to);
            e++;
        }
    }
    ck_assert_int_eq(meta->out_first[meta->count], e);
    ck_assert_int_eq(meta->edge_count, e);
    int64_t at = 0;
    for (int32_t to = 0; to < meta->count; to++) {
        ck_assert_int_eq(meta->in_first[to], at);
        for (e = 0; e < meta->edge_count; e++) /* edges are by `from` */
            if (meta->edges[e].to == to)
                ck_assert_int_eq(meta->in_edges[at++], e);
    }
    ck_assert_int_eq(meta->in_first[meta->count], at);
}

static void check_meta(const hbp__meta_graph *meta, const groups *g)
{
    int group_of[MOST], least_before = -1;
    ck_assert_int_eq(meta->count, g->count);
    int64_t first = 0;
    int32_t levels = 0;
    for (int32_t m = 0; m < meta->count; m++) {
        const hbp__meta_op *op = &meta->meta_op[m];
        int i = 0, least = MOST;
        ck_assert_int_eq(op->first, first);
        while (g->member[i][0] != meta->operators[op->first])
            ck_assert_int_lt(++i, g->count);
        group_of[m] = i;
        ck_assert_int_eq(op->count, g->size[i]);
        ck_assert_int_eq(op->level, longest(g, i));
        ck_assert_int_eq(op->task, g->graph->operators[g->member[i][0]].task);
        for (int k = 0; k < op->count; k++) {
            int o = g->member[i][k];
            ck_assert_int_eq(meta->operators[op->first + k], o);
            ck_assert_int_eq(meta->meta_of[o], m);
            ck_assert_int_eq(meta->place_of[o], k);
            least = o < least ? o : least;
        }
        int same = m && op->level == meta->meta_op[m - 1].level;
        ck_assert(!m || same || op->level == meta->meta_op[m - 1].level + 1);
        ck_assert(!same || least > least_before);
        if (!same)
            ck_assert_int_eq(meta->level_first[levels++], m);
        least_before = least;
        first += op->count;
    }
    ck_assert_int_eq(meta->levels, levels);
    ck_assert_int_eq(meta->level_first[levels], meta->count);
    ck_assert_int_eq(meta->operator_count, first);
    check_edges(meta, g, group_of);
}

START_TEST_IN_CONTEXT(merging_in_any_order_gives_the_same)
{
    hbp__rng rng = hbp__rng_make(11, 0, 0);
    int merged = 0, deep = 0;
    for (int round = 0; round < 4000; round++) {
        hbp_graph *graph = random_dag(context, &rng);
        hbp__meta_graph meta;
        OK(context, hbp__meta_graph_open(context, graph, &meta));
        for (int again = 0; again < 3; again++) {
            groups g = {.graph = graph, .count = graph->operator_count};
            for (int i = 0; i < g.count; i++) {
                g.size[i] = 1;
                g.member[i][0] = i;
            }
            for (int64_t e = 0; e < graph->edge_count; e++) {
                g.edges[graph->edge_from[e]][graph->edge_to[e]] = 1;
                g.bytes[graph->edge_from[e]][graph->edge_to[e]] = graph->edge_bytes[e];
            }
            contract_anyhow(&g, &rng);
            check_meta(&meta, &g);
        }
        merged += meta.count < graph->operator_count;
        deep += meta.levels > 3;
        hbp__meta_graph_close(&meta);
        hbp_graph_free(graph);
    }
    ck_assert_int_gt(merged, 1000);
    ck_assert_int_gt(deep, 300);
}
END_TEST

/* Graphs for other tests: fit to be planned, of every size asked for, and not all the same. */
START_TEST_IN_CONTEXT(random_graphs_of_tasks)
{
    hbp__rng rng = hbp__rng_make(1, 0, 0);
    int tasks[7] = {0}, levels[9] = {0}, shared = 0, profiled = 0, least[5] = {0};
    for (int round = 0; round < 2000; round++) {
        hbp_graph *graph = random_graph(context, &rng, NULL);
        hbp__meta_graph meta;
        OK(context, hbp__meta_graph_open(context, graph, &meta));
        tasks[graph_view(graph).tasks]++;
        levels[meta.levels < 8 ? meta.levels : 8]++;
        shared += graph_view(graph).parameters < graph_view(graph).operators;
        profiled += graph->operators[0].degrees == HBP_DEGREES_PROFILED;
        least[graph->operators[0].least_gpus]++;
        for (int32_t i = 0; i < graph->operator_count; i++) {
            const hbp__operator *o = &graph->operators[i];
            const hbp__profile profile = hbp__graph_profile(graph, o->profile);
            ck_assert(hbp__operator_suits(o, &profile, o->least_gpus));
        }
        hbp__meta_graph_close(&meta);
        hbp_graph_free(graph);
    }
    for (int t = 1; t <= 6; t++)
        ck_assert_int_gt(tasks[t], 200);
    for (int l = 1; l <= 5; l++)
        ck_assert_int_gt(levels[l], 20);
    ck_assert_int_gt(shared, 500);
    ck_assert_int_gt(profiled, 300);
    ck_assert(least[1] > 300 && least[2] > 100 && least[4] > 100);
    hbp_graph *graph = random_graph(
        context, &rng,
        &(graph_sizes){.tasks = 3, .encoders = 1, .heads = 1, .chain = 2, .most_gpus = 1, .all_tasks = 1});
    ck_assert_int_eq(graph_view(graph).tasks, 3);
    hbp_graph_free(graph);
}
END_TEST

/* Work grows with the graph's size: a chain, and stars of edges, each added backwards. */
START_TEST_IN_CONTEXT(a_hundred_thousand_operators)
{
    enum { COUNT = 100000 };
    hbp_graph *graph = keep(new_graph(context));
    hbp__meta_graph meta;
    add_falling_profile(context, graph, 1000, 1, 1);
    for (int32_t i = 0; i < COUNT; i++)
        add_chain(context, graph, NULL, NULL, "t", "u", 1);
    for (int32_t i = COUNT - 1; i > 0; i--)
        OK(context, hbp_graph_add_edge(context, graph, i, i - 1, -1));
    OK(context, hbp_graph_validate(context, graph));
    OK(context, hbp__meta_graph_open(context, graph, &meta));
    ck_assert_int_eq(meta.count, 1);
    ck_assert_int_eq(meta.operators[0], COUNT - 1);
    ck_assert_int_eq(meta.place_of[0], COUNT - 1);
    hbp__meta_graph_close(&meta);
    for (int32_t i = 2; i < COUNT; i++) /* now the last operator feeds all others */
        OK(context, hbp_graph_add_edge(context, graph, COUNT - 1, COUNT - 1 - i, 5));
    OK(context, hbp_graph_validate(context, graph));
    OK(context, hbp__meta_graph_open(context, graph, &meta));
    ck_assert_int_eq(meta.count, COUNT);
    ck_assert_int_eq(meta.levels, COUNT);
    ck_assert_int_eq(meta.edge_count, 2 * COUNT - 3);
    ck_assert_int_eq(meta.out_first[1], COUNT - 1);
    hbp__meta_graph_close(&meta);
    OK(context, hbp_graph_add_edge(context, graph, 0, COUNT - 1, 5));
    FAILS(context, HBP_E_INVALID, "the graph has a cycle: 'operator 0' -> 'operator 99999' -> 'operator 0'",
          hbp__meta_graph_open(context, graph, &meta));
}
END_TEST

START_TEST_IN_CONTEXT(graphs_of_nothing_and_of_cycles)
{
    hbp_graph *graph = keep(new_graph(context));
    hbp__meta_graph meta;
    OK(context, hbp__meta_graph_open(context, graph, &meta));
    ck_assert_int_eq(meta.count, 0);
    ck_assert_int_eq(meta.levels, 0);
    ck_assert_int_eq(meta.level_first[0], 0);
    hbp__meta_graph_close(&meta);
    add_chain(context, graph, &(hbp_operator){.struct_size = sizeof(hbp_operator), .profile = -1}, "x", "t",
              "u", 3);
    OK(context, hbp_graph_add_edge(context, graph, 2, 0, -1));
    FAILS(context, HBP_E_INVALID, "the graph has a cycle: 'x[0]' -> 'x[1]' -> 'x[2]' -> 'x[0]'",
          hbp__meta_graph_open(context, graph, &meta));
    hbp__meta_graph_close(&meta);
}
END_TEST

static hbp_status open_and_close(hbp_context *context, void *user)
{
    hbp__meta_graph meta;
    hbp_status status = hbp__meta_graph_open(context, user, &meta);
    hbp__meta_graph_close(&meta);
    return status;
}

START_TEST_IN_CONTEXT(failing_allocations_leave_nothing)
{
    hbp_graph *graph = keep(page_graph(context));
    failing_sweep(open_and_close, graph);
}
END_TEST

TEST_MAIN("meta_graph", seven_meta_ops, three_meta_ops_of_one_level, merging_in_any_order_gives_the_same,
          random_graphs_of_tasks, a_hundred_thousand_operators, graphs_of_nothing_and_of_cycles,
          failing_allocations_leave_nothing)
