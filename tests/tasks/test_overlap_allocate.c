#include "tasks/overlap/overlap_search.h"

#include "keep.h"
#include "simulate/tasks/task_bound.h"
#include "tasks/lists.h"

/* The longest path, by the shares. */
static int64_t longest_path(const hbp__allocation *a)
{
    const hbp__meta_graph *meta = a->scheduler->problem->meta;
    int64_t *end = calloc((size_t)meta->count, sizeof *end), longest = 0;
    for (int32_t m = 0; m < meta->count; m++) {
        for (int64_t e = 0; e < meta->edge_count; e++)
            if (meta->edges[e].to == m && end[meta->edges[e].from] > end[m])
                end[m] = end[meta->edges[e].from];
        end[m] += a->time_ns[m];
        longest = end[m] > longest ? end[m] : longest;
    }
    free(end);
    return longest;
}

/* Shares are whole operators on neighbouring sizes of the hull, and times and GPU time what these take. */
static void check_shares(const hbp__allocation *a)
{
    int64_t area = 0;
    for (int32_t m = 0; m < a->scheduler->meta_ops; m++) {
        const hbp__curve *c = a->scheduler->curve[m];
        const hbp__bi_point *s = &a->share[m];
        int64_t time = 0;
        ck_assert_int_ge(s->step, 0);
        ck_assert_int_lt(s->step, c->tight);
        ck_assert_int_ge(s->fast, 0);
        ck_assert_int_lt(s->fast, a->count[m]);
        ck_assert(s->fast == 0 || s->step + 1 < c->tight);
        for (int fast = 0; fast < 1 + (s->fast > 0); fast++) {
            int32_t k = hbp__allocation_size(a, m, fast), count = fast ? s->fast : a->count[m] - s->fast;
            ck_assert_int_eq(k, c->hull[s->step + fast]);
            time += count * c->time_ns[k];
            area += count * c->time_ns[k] * c->size[k];
        }
        ck_assert_int_eq(time, a->time_ns[m]);
    }
    ck_assert_int_eq(area, hbp__allocation_area(a));
}

static void check_parts(const hbp__allocation *a)
{
    const hbp__meta_graph *meta = a->scheduler->problem->meta;
    int32_t seen = 0;
    for (int32_t part = 0; part < a->parts; part++)
        for (int32_t i = a->part_first[part]; i < a->part_first[part + 1]; i++, seen++) {
            ck_assert_int_eq(a->part_of[a->part[i]], part);
            ck_assert(i == a->part_first[part] || a->part[i - 1] < a->part[i]);
        }
    ck_assert_int_eq(seen, meta->count);
    for (int64_t e = 0; e < meta->edge_count; e++)
        ck_assert_int_eq(a->part_of[meta->edges[e].from], a->part_of[meta->edges[e].to]);
    for (int32_t part = 0; part < a->parts; part++) { /* each is connected: its edges reach all of it */
        int32_t begin = a->part_first[part], end = a->part_first[part + 1], reached = 1, more = 1;
        char *mark = calloc((size_t)meta->count, 1);
        mark[a->part[begin]] = 1;
        while (more) {
            more = 0;
            for (int64_t e = 0; e < meta->edge_count; e++) {
                int32_t x = meta->edges[e].from, y = meta->edges[e].to;
                if (mark[x] != mark[y]) {
                    mark[x] = mark[y] = 1;
                    reached++;
                    more = 1;
                }
            }
        }
        ck_assert_int_eq(reached, end - begin);
        free(mark);
    }
}

START_TEST(paths_are_as_short_as_asked)
{
    hbp__rng rng = hbp__rng_make(61, 0, 0);
    for (int trial = 0; trial < TEST_FEW(1000, 150); trial++) {
        bench b;
        bench_open(&b, &rng, NULL);
        hbp__task_bounds bounds;
        OK(b.context, hbp__task_bound(b.context, &b.planned.meta, &b.planned.scaling, &bounds, NULL));
        hbp__allocation a;
        OK(b.context, hbp__allocation_open(b.context, &b.scheduler, &a));
        check_parts(&a);
        check_shares(&a);
        int64_t least = hbp__allocation_area(&a), slowest = longest_path(&a);
        for (int step = 8; step >= 0; step--) {
            int64_t aim = bounds.critical_path_ns + (slowest - bounds.critical_path_ns) / 8 * step;
            hbp__allocation_reach(&a, aim);
            check_shares(&a);
            ck_assert_int_le(longest_path(&a), aim);
            ck_assert_int_ge(hbp__allocation_area(&a), least);
        }
        hbp__allocation_reach(&a, bounds.critical_path_ns - 1);
        check_shares(&a);
        ck_assert_int_ge(longest_path(&a), bounds.critical_path_ns);
        hbp__allocation_reach(&a, slowest); /* slack goes back */
        ck_assert_int_eq(hbp__allocation_area(&a), least);
        bench_close(&b);
    }
}
END_TEST

/* The bound's trade-off of times and costs: where it says that all GPU time is needed, shares take little
 * more. Rounding to whole operators costs a little by itself. */
START_TEST(little_more_gpu_time_than_the_best_trade)
{
    hbp__rng rng = hbp__rng_make(62, 0, 0);
    graph_sizes sizes = {.tasks = 10, .all_tasks = 1, .chain = 40, .most_gpus = 16};
    double sum = 0, worst = 0;
    int32_t trials = 100;
    for (int trial = 0; trial < trials; trial++) {
        bench b;
        bench_open(&b, &rng, &sizes);
        hbp__task_bounds bounds;
        OK(b.context, hbp__task_bound(b.context, &b.planned.meta, &b.planned.scaling, &bounds, NULL));
        hbp__allocation a;
        OK(b.context, hbp__allocation_open(b.context, &b.scheduler, &a));
        hbp__allocation_reach(&a, bounds.bound_ns);
        ck_assert_int_le(longest_path(&a), bounds.bound_ns);
        double share = (double)hbp__allocation_area(&a) / ((double)bounds.bound_ns * b.planned.problem.gpus);
        sum += share;
        worst = share > worst ? share : worst;
        bench_close(&b);
    }
    ck_assert_double_lt(sum / trials, 1.01);
    ck_assert_double_lt(worst, 1.05);
}
END_TEST

/* By hand: a chain of two MetaOps; an operator of the first costs least to speed up. */
START_TEST_IN_CONTEXT(the_cheapest_on_the_path_gets_more)
{
    hbp_graph *graph = keep(new_graph(context));
    static const int32_t gpus[] = {1, 2};
    static const int64_t cheap[] = {100, 60}, dear[] = {100, 90};
    hbp_operator o = {.struct_size = sizeof o};
    o.degrees = HBP_DEGREES_PROFILED;
    OK(context, hbp_graph_add_profile(context, graph, gpus, cheap, 2, &o.profile));
    int32_t a = add_chain(context, graph, &o, "cheap", "a", "task", 4);
    OK(context, hbp_graph_add_profile(context, graph, gpus, dear, 2, &o.profile));
    int32_t b = add_chain(context, graph, &o, "dear", "b", "task", 2);
    OK(context, hbp_graph_add_edge(context, graph, a + 3, b, -1));
    planned p;
    open_planned(context, graph, 4, &p);
    hbp__scheduler scheduler;
    OK(context, hbp__scheduler_open(context, &p.problem, 8, &scheduler));
    hbp__allocation allocation;
    OK(context, hbp__allocation_open(context, &scheduler, &allocation));
    static const int32_t expected[][4] = {{600, 0, 0, 0}, {560, 0, 1, 0}, {520, 0, 2, 0}, {450, 1, 0, 0},
                                          {440, 1, 0, 0}, {430, 1, 0, 1}, {420, 1, 0, 2}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        hbp__allocation_reach(&allocation, expected[i][0]);
        ck_assert_int_le(longest_path(&allocation), expected[i][0]);
        int32_t first = allocation.share[0].step * 4 + allocation.share[0].fast;
        int32_t second = allocation.share[1].step * 2 + allocation.share[1].fast;
        ck_assert_int_eq(first, expected[i][1] * 4 + expected[i][2]);
        ck_assert_int_eq(second, expected[i][3]);
    }
    hbp__allocation_reach_part(&allocation, 0, 560);
    ck_assert_int_eq(allocation.share[0].fast, 1);
    allocation.count[1] = 0; /* done: takes no time, and gets nothing */
    hbp__allocation_reach_part(&allocation, 0, 320);
    ck_assert_int_eq(allocation.time_ns[1], 0);
    ck_assert_int_eq(allocation.share[0].fast, 2);
    close_planned(&p);
}
END_TEST

static int32_t count_ticks(void *user, const hbp_progress *progress)
{
    int *ticks = user;
    return strcmp(progress->stage, "first schedules") == 0 && ++*ticks == 3;
}

/* Edges are work, too; many of them between few MetaOps do not keep the caller waiting. */
START_TEST(edges_are_counted_and_users_may_cancel)
{
    enum { SIDE = 200, ROUNDS = 100 };
    int ticks = 0;
    hbp_context_options options = {.struct_size = sizeof options};
    options.progress = count_ticks;
    options.progress_user = &ticks;
    hbp_context *context = NULL;
    ck_assert_int_eq(hbp_context_create(&options, &context), HBP_OK);
    hbp_graph *graph = new_graph(context);
    hbp_operator o = {.struct_size = sizeof o};
    o.profile = add_falling_profile(context, graph, 1000000, 50000, 8);
    o.batch = 8;
    for (int32_t i = 0; i < 2 * SIDE; i++) {
        char name[16];
        snprintf(name, sizeof name, "o%d", (int)i);
        add_chain(context, graph, &o, name, name, "t", 1);
    }
    for (int32_t i = 0; i < SIDE; i++)
        for (int32_t j = 0; j < SIDE; j++)
            OK(context, hbp_graph_add_edge(context, graph, i, SIDE + j, 0));
    planned p;
    open_planned(context, graph, 16, &p);
    hbp__scheduler scheduler;
    OK(context, hbp__scheduler_open(context, &p.problem, 8 * SIDE, &scheduler));
    hbp__allocation a;
    OK(context, hbp__allocation_open(context, &scheduler, &a));
    ticks = 0;
    int64_t before = 0;
    for (int round = 0; round < ROUNDS && a.status >= 0; round++) {
        hbp__allocation_reach(&a, 2200000 - 1000 * round);
        ck_assert_int_ge(a.looked - before, SIDE * SIDE);
        before = a.looked;
    }
    ck_assert_int_eq(a.status, HBP_E_CANCELLED);
    ck_assert_int_eq(ticks, 3);
    ck_assert_int_lt(a.looks, 0);
    close_planned(&p);
    hbp_graph_free(graph);
    hbp_context_free(context);
}
END_TEST

static hbp_status open_shares(hbp_context *context, void *user)
{
    hbp__scheduler *scheduler = user;
    hbp__allocation a;
    return hbp__allocation_open(context, scheduler, &a);
}

START_TEST(memory_may_run_out)
{
    hbp__rng rng = hbp__rng_make(63, 0, 0);
    bench b;
    bench_open(&b, &rng, NULL);
    failing_sweep(open_shares, &b.scheduler);
    bench_close(&b);
}
END_TEST

TEST_MAIN("overlap_allocate", paths_are_as_short_as_asked, little_more_gpu_time_than_the_best_trade,
          the_cheapest_on_the_path_gets_more, edges_are_counted_and_users_may_cancel, memory_may_run_out)
