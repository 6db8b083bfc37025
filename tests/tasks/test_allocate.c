/* Shares of a level as tuples (lib/tasks/waves/allocate.c). */
#include "tasks/waves/level_waves.h"

#include "cost/curves.h"
#include "graphs.h"
#include "keep.h"
#include "tasks/planned.h"

/* Figure 5a as the page has it: C* = 1 s, n* = 1.9, 1.5 and .6. */
START_TEST_IN_CONTEXT(the_figure)
{
    hbp_graph *graph = keep(figure_graph(context));
    planned p;
    open_planned(context, graph, 4, &p);
    static const double share[] = {1.9, 1.5, .6};
    static const hbp__two_points before[] = {{2, 1, 7.6, .4}, {2, 1, 8.4, 3.6}, {1, 0, 6, 0}};
    static const hbp__tuple after[3][2] = {{{0, 2, 8}}, {{1, 2, 8}, {1, 1, 4}}, {{2, 1, 6}}};
    static const int32_t number[] = {1, 2, 1};
    static const double span_s[] = {.96, 1.02, .6};
    ck_assert_int_eq(p.meta.count, 3);
    for (int32_t m = 0; m < 3; m++) {
        const hbp__curve *c = hbp__meta_curve(&p.scaling, m);
        int32_t operators = p.meta.meta_op[m].count;
        hbp__tuple tuple[2];
        hbp__two_points points = hbp__two_points_of(c, operators, 1e9, share[m]);
        ck_assert_int_eq(points.high_gpus, before[m].high_gpus);
        ck_assert_int_eq(points.low_gpus, before[m].low_gpus);
        ck_assert_double_eq_tol(points.high_count, before[m].high_count, 1e-6);
        ck_assert_double_eq_tol(points.low_count, before[m].low_count, 1e-6);
        ck_assert_int_eq(hbp__round_tuples(&points, operators, m, tuple), number[m]);
        int64_t span = 0;
        for (int32_t i = 0; i < number[m]; i++) {
            ck_assert_mem_eq(&tuple[i], &after[m][i], sizeof *tuple);
            span += tuple[i].count * c->time_ns[hbp__curve_find(c, tuple[i].gpus)];
        }
        ck_assert_double_eq_tol((double)span * 1e-9, span_s[m], .001);
    }
    close_planned(&p);
}
END_TEST

/* What two points and their rounding must be for a share n* and its C* = T(n*) L. */
static void check_points(const hbp__curve *c, int32_t operators, double optimum, double share, int *kinds)
{
    hbp__two_points points = hbp__two_points_of(c, operators, optimum, share);
    int32_t least = c->size[0], largest = c->size[c->sizes - 1];
    int32_t high = hbp__curve_find(c, points.high_gpus), low = hbp__curve_find(c, points.low_gpus);
    ck_assert_int_ge(high, 0);
    ck_assert_double_ge(points.high_count, 0);
    ck_assert_double_ge(points.low_count, 0);
    ck_assert_double_eq_tol(points.high_count + points.low_count, operators, 1e-9);
    if (share < least || share >= largest) {
        ck_assert_int_eq(points.low_gpus, 0);
        ck_assert_int_eq(points.high_gpus, share < least ? least : largest);
        ck_assert(points.high_count == operators);
        kinds[share < least ? 0 : 1]++;
    } else {
        ck_assert_int_eq(high, low + 1);
        ck_assert_double_le(points.low_gpus, share);
        ck_assert_double_gt(points.high_gpus, share);
        double sum =
            points.high_count * (double)c->time_ns[high] + points.low_count * (double)c->time_ns[low];
        ck_assert_double_eq_tol(sum / optimum, 1, 1e-9);
        kinds[2]++;
    }
    hbp__tuple tuple[2];
    int32_t number = hbp__round_tuples(&points, operators, 7, tuple), sum = 0;
    ck_assert_int_ge(number, 1);
    ck_assert_int_le(number, 2);
    for (int32_t i = 0; i < number; i++) {
        double exact = tuple[i].gpus == points.high_gpus ? points.high_count : points.low_count;
        ck_assert(tuple[i].gpus == points.high_gpus || tuple[i].gpus == points.low_gpus);
        ck_assert_int_eq(tuple[i].meta_op, 7);
        ck_assert_int_ge(tuple[i].count, 1);
        ck_assert_double_le(tuple[i].count, exact + .5 + 1e-9);
        ck_assert_double_ge(tuple[i].count, exact - .5 - 1e-9);
        sum += tuple[i].count;
    }
    ck_assert_int_eq(sum, operators);
    if (number == 2)
        ck_assert_int_gt(tuple[0].gpus, tuple[1].gpus);
    kinds[2 + number]++;
}

START_TEST(identities_on_random_curves)
{
    hbp__rng rng = hbp__rng_make(1, 0, 0);
    int kinds[5] = {0};
    for (int trial = 0; trial < 20000; trial++) {
        made_curve made;
        curve_draw(&made, &rng);
        const hbp__curve *c = &made.curve;
        int32_t operators = 1 + (int32_t)hbp__rng_below(&rng, 40), largest = c->size[c->sizes - 1];
        double share = (double)(1 + hbp__rng_below(&rng, 1500)) / 1000 * largest;
        if (trial % 4 == 0) /* a size itself */
            share = c->size[hbp__rng_below(&rng, (uint64_t)c->sizes)];
        check_points(c, operators, hbp__curve_time(c, share) * operators, share, kinds);
    }
    for (int i = 0; i < 5; i++)
        ck_assert_int_gt(kinds[i], 1000);
}
END_TEST

/* The level's C* and shares are hbp__relax's, and the tuples those of the two points. */
START_TEST_IN_CONTEXT(levels_of_random_graphs)
{
    hbp__rng rng = hbp__rng_make(2, 0, 0);
    for (int trial = 0; trial < 2000; trial++) {
        hbp_graph *graph = random_graph(context, &rng, NULL);
        planned p;
        open_planned(context, graph, (int32_t)random_between(&rng, 4, 32), &p);
        for (int32_t v = 0; v < p.meta.levels; v++) {
            int32_t first = p.meta.level_first[v], end = p.meta.level_first[v + 1], count = -1, at = 0;
            const hbp__curve *curves[64];
            int32_t operators[64];
            double share[64], optimum = 0;
            hbp__tuple tuples[128], expected[2];
            ck_assert_int_le(end - first, 64);
            for (int32_t m = first; m < end; m++) {
                curves[m - first] = hbp__meta_curve(&p.scaling, m);
                operators[m - first] = p.meta.meta_op[m].count;
            }
            OK(context, hbp__allocate_level(context, &p.problem, first, end, &optimum, tuples, &count));
            ck_assert(optimum == hbp__relax(curves, operators, end - first, p.problem.gpus, share));
            for (int32_t m = 0; m < end - first; m++) {
                hbp__two_points points = hbp__two_points_of(curves[m], operators[m], optimum, share[m]);
                int32_t number = hbp__round_tuples(&points, operators[m], first + m, expected);
                ck_assert_int_le(at + number, count);
                ck_assert_mem_eq(tuples + at, expected, (size_t)number * sizeof *expected);
                at += number;
            }
            ck_assert_int_eq(at, count);
        }
        close_planned(&p);
        hbp_graph_free(graph);
    }
}
END_TEST

static hbp_status allocate_once(hbp_context *context, void *user)
{
    const planned *p = user;
    hbp__tuple tuples[128];
    double optimum = -1;
    int32_t count = -1;
    hbp_status status =
        hbp__allocate_level(context, &p->problem, 0, p->meta.level_first[1], &optimum, tuples, &count);
    ck_assert((status == HBP_OK) == (optimum > 0));
    ck_assert((status == HBP_OK) == (count > 0));
    return status;
}

START_TEST_IN_CONTEXT(no_allocation_is_taken_for_granted)
{
    hbp_graph *graph = keep(page_graph(context));
    planned p;
    open_planned(context, graph, 8, &p);
    failing_sweep(allocate_once, &p);
    close_planned(&p);
}
END_TEST

TEST_MAIN("allocate", the_figure, identities_on_random_curves, levels_of_random_graphs,
          no_allocation_is_taken_for_granted)
