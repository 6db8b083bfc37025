#include "simulate/tasks/task_bound.h"

#include "failing.h"
#include "graphs.h"
#include "keep.h"
#include "tasks_oracle.h"

typedef struct many {
    hbp_graph *graph;
    hbp__meta_graph meta;
    hbp__scaling scaling;
} many;

static void many_open(hbp_context *context, hbp_graph *graph, int32_t gpus, many *t)
{
    t->graph = graph;
    OK(context, hbp__meta_graph_open(context, graph, &t->meta));
    OK(context, hbp__scaling_open(context, graph, &t->meta, gpus, &t->scaling));
}

static void many_close(many *t)
{
    hbp__scaling_close(&t->scaling);
    hbp__meta_graph_close(&t->meta);
    hbp_graph_free(t->graph);
}

static hbp__task_bounds bounds_of(hbp_context *context, const many *t)
{
    hbp__task_bounds bounds;
    OK(context, hbp__task_bound(context, &t->meta, &t->scaling, &bounds, NULL));
    ck_assert_int_ge(bounds.bound_ns, bounds.critical_path_ns);
    ck_assert_int_ge(bounds.bound_ns, bounds.area_ns);
    return bounds;
}

/* Of all graphs the generator makes, those of at most `most` operators. */
static hbp_graph *small_graph(hbp_context *context, hbp__rng *rng, const graph_sizes *sizes, int64_t most)
{
    for (;;) {
        hbp_graph *graph = random_graph(context, rng, sizes);
        if (graph_view(graph).operators <= most)
            return graph;
        hbp_graph_free(graph);
    }
}

/* Of few operators it is the optimum, for every number of GPUs from 1 to 8. */
START_TEST_IN_CONTEXT(is_the_optimum_of_few)
{
    static oracle o;
    hbp__rng rng = hbp__rng_make(1, 0, 0);
    int above = 0, trials = TEST_FEW(10000, 800);
    for (int trial = 0; trial < trials; trial++) {
        int32_t gpus = 1 + trial % 8;
        graph_sizes sizes = {.tasks = 3, .encoders = 2, .heads = 1, .chain = 3, .most_gpus = gpus};
        hbp_graph *graph = small_graph(context, &rng, &sizes, trial % 20 ? 5 : 6);
        many t;
        many_open(context, graph, gpus, &t);
        hbp__task_bounds bounds = bounds_of(context, &t);
        int64_t best = oracle_makespan(&t.meta, &t.scaling, &o);
        ck_assert_msg(bounds.bound_ns == best, "trial %d: bound %lld, optimum %lld", trial,
                      (long long)bounds.bound_ns, (long long)best);
        ck_assert(bounds.few);
        ck_assert_int_eq(bounds.best.makespan_ns, best);
        int64_t plain = hbp__max_i64(bounds.critical_path_ns, bounds.area_ns);
        above += bounds.bound_ns > plain;
        many_close(&t);
    }
    ck_assert(above > .05 * trials);
}
END_TEST

static many chains_of(hbp_context *context, int32_t gpus, int64_t work, int64_t latency, int32_t most_gpus,
                      int32_t least_gpus, int64_t operators, int chains)
{
    static const char *const names[] = {"a", "b", "c", "d", "e", "f"};
    hbp_graph *graph = new_graph(context);
    hbp_operator o = {.struct_size = sizeof o};
    many t;
    o.profile = add_falling_profile(context, graph, work, latency, most_gpus);
    o.degrees = HBP_DEGREES_PROFILED;
    o.least_gpus = least_gpus;
    for (int c = 0; c < chains; c++)
        add_chain(context, graph, &o, names[c], "layer", names[c], operators);
    many_open(context, graph, gpus, &t);
    return t;
}

/* Where everything packs, the bound is what it takes. */
START_TEST_IN_CONTEXT(equals_the_optimum)
{
    static oracle o;
    /* One chain: as fast as it goes. */
    many t = chains_of(context, 4, 1000, 10, 4, 1, 5, 1);
    hbp__task_bounds bounds = bounds_of(context, &t);
    ck_assert_int_eq(bounds.critical_path_ns, 5 * 260);
    ck_assert_int_eq(bounds.area_ns, (5 * 1010 + 3) / 4);
    ck_assert_int_eq(bounds.bound_ns, 5 * 260);
    ck_assert_int_eq(oracle_makespan(&t.meta, &t.scaling, &o), bounds.bound_ns);
    many_close(&t);
    /* Four chains on one GPU each. */
    t = chains_of(context, 4, 1000, 10, 4, 1, 2, 4);
    bounds = bounds_of(context, &t);
    ck_assert_int_eq(bounds.area_ns, 2 * 1010);
    ck_assert_int_eq(bounds.bound_ns, 2 * 1010);
    ck_assert_int_eq(oracle_makespan(&t.meta, &t.scaling, &o), bounds.bound_ns);
    many_close(&t);
    /* Two chains share four GPUs: two each, where neither area (one each) nor critical path (four each) can
     * stay. */
    t = chains_of(context, 4, 1000, 10, 4, 1, 3, 2);
    bounds = bounds_of(context, &t);
    ck_assert_int_eq(bounds.critical_path_ns, 3 * 260);
    ck_assert_int_eq(bounds.area_ns, 3 * 2 * 1010 / 4);
    ck_assert_int_eq(bounds.bound_ns, 3 * 510);
    ck_assert_int_eq(oracle_makespan(&t.meta, &t.scaling, &o), bounds.bound_ns);
    many_close(&t);
}
END_TEST

/* Sizes of which fewer fit side by side than their GPUs say. */
START_TEST_IN_CONTEXT(sees_sizes_that_do_not_pack)
{
    static oracle o;
    /* On 4 GPUs only, of 6: one after the other, though the area is 2/3 of that. */
    many t = chains_of(context, 6, 4000, 0, 4, 4, 1, 3);
    hbp__task_bounds bounds = bounds_of(context, &t);
    ck_assert_int_eq(bounds.area_ns, 2000);
    ck_assert_int_eq(bounds.bound_ns, 3000);
    ck_assert_int_eq(oracle_makespan(&t.meta, &t.scaling, &o), 3000);
    many_close(&t);
    /* On 2 GPUs, of 5: two at a time. */
    t = chains_of(context, 5, 2000, 0, 2, 2, 1, 6);
    bounds = bounds_of(context, &t);
    ck_assert_int_eq(bounds.area_ns, 2400);
    ck_assert_int_eq(bounds.bound_ns, 3000);
    ck_assert_int_eq(oracle_makespan(&t.meta, &t.scaling, &o), 3000);
    many_close(&t);
    /* On 4, of 19: four at a time. */
    t = chains_of(context, 19, 4000, 0, 4, 4, 2, 6);
    bounds = bounds_of(context, &t);
    ck_assert_int_eq(bounds.area_ns, 2 * 6 * 4000 / 19 + 1);
    ck_assert_int_eq(bounds.bound_ns, 2 * 6 * 1000 / 4);
    many_close(&t);
}
END_TEST

START_TEST_IN_CONTEXT(adds_up_levels)
{
    many t;
    /* Figure 5a: C* is 1 s with everything on one level; times there are rounded to ns. */
    many_open(context, figure_graph(context), 4, &t);
    int64_t level_ns[8];
    hbp__task_bounds bounds;
    OK(context, hbp__task_bound(context, &t.meta, &t.scaling, &bounds, level_ns));
    ck_assert_int_eq(t.meta.levels, 1);
    ck_assert_int_eq(bounds.relaxed_ns, level_ns[0]);
    ck_assert_int_eq(bounds.critical_path_ns, 8 * 120000000);
    ck_assert_int_eq(bounds.area_ns, (8 * 220000000LL + 12 * 118333333LL + 6 * 100000000LL + 3) / 4);
    ck_assert_int_eq(level_ns[0], 1009027612);
    /* An operator of the first chain on one GPU, .22 s beside seven of .12 s, would end later than that, so
     * all are on two; x = (1.42 s - C) / .6 s of the second chain is, and 4 C = 8 x 2 x .12 + 1.42 + .22 x +
     * .6 s. Without windows it is 1018832116. Whole GPUs take longer than C*, which shares them. */
    ck_assert_int_eq(bounds.bound_ns, 1021526716);
    many_close(&t);
    many_open(context, page_graph(context), 8, &t);
    OK(context, hbp__task_bound(context, &t.meta, &t.scaling, &bounds, level_ns));
    ck_assert_int_eq(t.meta.levels, 2);
    ck_assert_int_eq(bounds.relaxed_ns, level_ns[0] + level_ns[1]);
    for (int32_t l = 0; l < 2; l++) {
        const hbp__curve *curves[7];
        int32_t operators[7], first = t.meta.level_first[l], count = t.meta.level_first[l + 1] - first;
        for (int32_t k = 0; k < count; k++) {
            curves[k] = hbp__meta_curve(&t.scaling, first + k);
            operators[k] = t.meta.meta_op[first + k].count;
        }
        double optimum = hbp__relax(curves, operators, count, 8, NULL);
        ck_assert_int_eq(level_ns[l], hbp__round_i64(optimum));
    }
    many_close(&t);
}
END_TEST

/* More GPUs never raise the bound; more work never lowers it. */
START_TEST_IN_CONTEXT(is_monotone)
{
    for (uint64_t seed = 0; seed < 300; seed++) {
        hbp__rng rng = hbp__rng_make(seed, 2, 0);
        int64_t before = INT64_MAX;
        for (int32_t gpus = 8; gpus <= 64; gpus *= 2) {
            hbp__rng again = rng;
            graph_sizes sizes = {.tasks = 10, .chain = 30, .most_gpus = 8};
            many t;
            many_open(context, random_graph(context, &again, &sizes), gpus, &t);
            hbp__task_bounds bounds = bounds_of(context, &t);
            ck_assert_int_le(bounds.bound_ns, before);
            before = bounds.bound_ns;
            many_close(&t);
        }
    }
}
END_TEST

/* Times near the largest that hbp__scaling_open lets through: no sum overflows. */
START_TEST_IN_CONTEXT(stands_long_times)
{
    many t = chains_of(context, 6, INT64_C(1) << 53, 0, 1, 1, 80, 6);
    hbp__task_bounds bounds = bounds_of(context, &t);
    ck_assert_int_eq(bounds.bound_ns, 80 * (INT64_C(1) << 53));
    many_close(&t);
    t = chains_of(context, 5, INT64_C(1) << 53, 0, 2, 2, 80, 6); /* two at a time do not add up to 2^62 */
    bounds = bounds_of(context, &t);
    ck_assert_int_ge(bounds.bound_ns, bounds.area_ns);
    ck_assert_int_le(bounds.bound_ns, 3 * 80 * (INT64_C(1) << 52));
    many_close(&t);
}
END_TEST

static hbp_status bound_one(hbp_context *context, void *user)
{
    const many *t = user;
    hbp__task_bounds bounds;
    return hbp__task_bound(context, &t->meta, &t->scaling, &bounds, NULL);
}

START_TEST_IN_CONTEXT(keeps_its_word_when_memory_fails_or_it_is_cancelled)
{
    hbp__rng rng = hbp__rng_make(3, 0, 0);
    graph_sizes sizes = {.tasks = 6, .all_tasks = 1};
    many t;
    many_open(context, random_graph(context, &rng, &sizes), 8, &t);
    failing_sweep(bound_one, &t);
    ck_assert_int_gt(cancel_sweep(bound_one, &t), 0);
    many_close(&t);
}
END_TEST

TEST_MAIN("task_bound", is_the_optimum_of_few, equals_the_optimum, sees_sizes_that_do_not_pack,
          adds_up_levels, is_monotone, stands_long_times, keeps_its_word_when_memory_fails_or_it_is_cancelled)
