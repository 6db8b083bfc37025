#include "data/meta_graph.h"

#include "data/graph_check.h"
#include "failing.h"
#include "graphs.h"

START_TEST(seven_meta_ops)
{
    hbp_context *context = test_context();
    hbp_graph *graph = page_graph(context);
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
    hbp_graph_free(graph);
    hbp_context_free(context);
}
END_TEST

START_TEST(three_meta_ops_of_one_level)
{
    hbp_context *context = test_context();
    hbp_graph *graph = figure_graph(context);
    hbp__meta_graph meta;
    OK(context, hbp_graph_check(context, graph));
    OK(context, hbp__meta_graph_open(context, graph, &meta));
    static const int32_t counts[] = {8, 12, 6};
    ck_assert_int_eq(meta.count, 3);
    ck_assert_int_eq(meta.levels, 1);
    ck_assert_int_eq(meta.edge_count, 0);
    for (int32_t m = 0; m < 3; m++)
        ck_assert_int_eq(meta.meta_op[m].count, counts[m]);
    hbp__meta_graph_close(&meta);
    hbp_graph_free(graph);
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("meta_graph", seven_meta_ops, three_meta_ops_of_one_level)
