/* Waves of all levels, the shorter of two ways (lib/tasks/waves/waves.c, lib/tasks/waves/level_waves.c). */
#include "tasks/waves/waves.h"

#include "hbp/tasks.h"
#include "keep.h"
#include "nodes.h"
#include "tasks/waved.h"

static double relaxed_of(const planned *p)
{
    double sum = 0;
    for (int32_t v = 0; v < p->meta.levels; v++) {
        const hbp__curve *curves[64];
        int32_t operators[64], first = p->meta.level_first[v], end = p->meta.level_first[v + 1];
        ck_assert_int_le(end - first, 64);
        for (int32_t m = first; m < end; m++) {
            curves[m - first] = hbp__meta_curve(&p->scaling, m);
            operators[m - first] = p->meta.meta_op[m].count;
        }
        sum += hbp__relax(curves, operators, end - first, p->problem.gpus, NULL);
    }
    return sum;
}

/* Levels follow one another; slices of a wave start together, when the wave before has ended, in order of
 * GPUs or of choice, each MetaOp once; at most 2 M waves a level. */
static void check_levels(const planned *p, const hbp__task_slices *s)
{
    int64_t start = 0, end = 0, i = 0;
    int32_t wave = 0, own_waves = 0, level = 0;
    for (; i < s->count; wave++) {
        int32_t its = p->meta.meta_op[s->slice[i].meta_op].level;
        own_waves = its == level ? own_waves + 1 : 1;
        ck_assert(its == level || its == level + 1);
        ck_assert_int_le(own_waves, 2 * (p->meta.level_first[its + 1] - p->meta.level_first[its]));
        level = its;
        start = end;
        for (; i < s->count && s->slice[i].wave == wave; i++) {
            ck_assert_int_eq(s->slice[i].start_ns, start);
            ck_assert_int_eq(p->meta.meta_op[s->slice[i].meta_op].level, level);
            end = s->slice[i].end_ns > end ? s->slice[i].end_ns : end;
        }
        ck_assert_int_gt(end, start);
    }
    ck_assert_int_eq(s->waves, wave);
    ck_assert_int_eq(s->makespan_ns, end);
}

static int64_t published_ns(hbp_context *context, const planned *p)
{
    int64_t sum = 0;
    for (int32_t v = 0; v < p->meta.levels; v++) {
        hbp__level_waves w;
        OK(context, hbp__level_waves_open(context, &p->problem, v, &w));
        OK(context, hbp__fill_waves(context, &w));
        sum += w.length_ns;
        hbp__level_waves_close(&w);
    }
    return sum;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void report(const char *what, double *ratio, int count)
{
    qsort(ratio, (size_t)count, sizeof *ratio, compare_doubles);
    printf("%s / sum of C*: median %.3f, 90 %% %.3f, 99 %% %.3f, most %.3f\n", what, ratio[count / 2],
           ratio[count * 9 / 10], ratio[count * 99 / 100], ratio[count - 1]);
}

START_TEST_IN_CONTEXT(invariants_on_random_graphs)
{
    enum { TRIALS = 3000 };
    static double ratio[TRIALS], published[TRIALS];
    hbp__rng rng = hbp__rng_make(1, 0, 0);
    int shorter = 0, trials = TEST_FEW(TRIALS, 300);
    for (int trial = 0; trial < trials; trial++) {
        hbp_graph *graph = random_graph(context, &rng, &(graph_sizes){.chain = 24});
        planned p;
        open_planned(context, graph, (int32_t)random_between(&rng, 4, 32), &p);
        hbp__task_slices s = {0}, again = {0};
        OK(context, hbp__plan_waves(context, &p.problem, &s));
        check_slices(&p, &s);
        check_levels(&p, &s);
        OK(context, hbp__plan_waves(context, &p.problem, &again));
        ck_assert_int_eq(again.count, s.count);
        for (int64_t i = 0; i < s.count; i++) {
            ck_assert_int_eq(again.slice[i].meta_op, s.slice[i].meta_op);
            ck_assert_int_eq(again.slice[i].first, s.slice[i].first);
            ck_assert_int_eq(again.slice[i].gpus, s.slice[i].gpus);
            ck_assert_int_eq(again.slice[i].end_ns, s.slice[i].end_ns);
        }
        int64_t page = published_ns(context, &p);
        ck_assert_int_le(s.makespan_ns, page);
        shorter += s.makespan_ns < page;
        double relaxed = relaxed_of(&p);
        ratio[trial] = (double)s.makespan_ns / relaxed;
        published[trial] = (double)page / relaxed;
        hbp__task_slices_close(&s);
        hbp__task_slices_close(&again);
        close_planned(&p);
        hbp_graph_free(graph);
    }
    report("as published", published, trials);
    report("the shorter", ratio, trials);
    ck_assert_int_gt(shorter, trials / 10);
    ck_assert_double_lt(ratio[trials / 2], 1.1);
}
END_TEST

/* The figure of section 5: never more than 7 % above the sum of C*. */
START_TEST_IN_CONTEXT(workloads_are_near_the_optimum)
{
    double most = 0, page = 0;
    for (int64_t i = 0; hbp_preset_get_name("workload", i); i++)
        for (int32_t nodes = 1; nodes <= 8; nodes *= 2) {
            hbp_machine *machine = NULL;
            hbp_graph *graph = NULL;
            const char *name = hbp_preset_get_name("workload", i);
            OK(context, make_nodes(context, "a800-80", nodes, &machine));
            OK(context, hbp_graph_create_workload(context, name, machine, &graph));
            planned p;
            open_planned(context, graph, 8 * nodes, &p);
            hbp__task_slices s = {0};
            OK(context, hbp__plan_waves(context, &p.problem, &s));
            check_slices(&p, &s);
            check_levels(&p, &s);
            double relaxed = relaxed_of(&p), ratio = (double)s.makespan_ns / relaxed;
            double published = (double)published_ns(context, &p) / relaxed;
            most = ratio > most ? ratio : most;
            page = published > page ? published : page;
            ck_assert_double_le(ratio, 1.07);
            hbp__task_slices_close(&s);
            close_planned(&p);
            hbp_graph_free(graph);
            hbp_machine_free(machine);
        }
    printf("workloads / sum of C*: at most %.4f, as published %.4f\n", most, page);
}
END_TEST

/* Three items by hand: the second wave repeats the first's MetaOps and GPUs, the third does not. */
START_TEST_IN_CONTEXT(equal_waves_are_one)
{
    hbp_graph *graph = keep(figure_graph(context));
    planned p;
    open_planned(context, graph, 4, &p);
    hbp__level_waves w;
    OK(context, hbp__level_waves_open(context, &p.problem, 0, &w));
    static const int32_t counts[][2] = {{3, 4}, {4, 2}, {1, 6}};
    for (int wave = 0; wave < 3; wave++) {
        hbp__wave_item *item;
        OK(context, hbp__level_waves_reserve(context, &w, 2, &item));
        for (int i = 0; i < 2; i++) {
            item[i] = (hbp__wave_item){.meta_op = wave == 1 ? 1 - i : i};
            item[i].count = counts[wave][item[i].meta_op];
            hbp__wave_item_resize(&p.problem, &item[i], wave == 2 ? 0 : 1);
        }
        hbp__level_waves_push(&w, 2);
    }
    ck_assert_int_eq(w.count, 2);
    ck_assert_int_eq(w.used, 4);
    ck_assert_int_eq(w.item[0].count, 7);
    ck_assert_int_eq(w.item[1].count, 6);
    ck_assert_int_eq(w.length_ns, 7 * INT64_C(120000000) + 6 * INT64_C(118333333));
    hbp__task_slices s = {0};
    OK(context, hbp__level_waves_append(context, &w, &s));
    ck_assert_int_eq(s.count, 4);
    ck_assert_int_eq(s.waves, 2);
    ck_assert_int_eq(s.slice[2].first, 7);
    ck_assert_int_eq(s.slice[3].first, 6);
    ck_assert_int_eq(s.slice[3].start_ns, 840000000);
    ck_assert_int_eq(s.makespan_ns, w.length_ns);
    hbp__task_slices_close(&s);
    hbp__level_waves_close(&w);
    close_planned(&p);
}
END_TEST

static hbp_status plan_once(hbp_context *context, void *user)
{
    const planned *p = user;
    hbp__task_slices s = {.makespan_ns = -1};
    hbp_status status = hbp__plan_waves(context, &p->problem, &s);
    if (status == HBP_OK)
        hbp__task_slices_close(&s);
    else
        ck_assert_int_eq(s.makespan_ns, -1);
    return status;
}

START_TEST_IN_CONTEXT(no_allocation_is_taken_for_granted)
{
    hbp__rng rng = hbp__rng_make(5, 0, 0);
    hbp_graph *graph = keep(random_graph(context, &rng, &(graph_sizes){.tasks = 5, .all_tasks = 1}));
    planned p;
    open_planned(context, graph, 8, &p);
    failing_sweep(plan_once, &p);
    ck_assert_int_ge(cancel_sweep(plan_once, &p), 3);
    close_planned(&p);
}
END_TEST

TEST_MAIN("waves", invariants_on_random_graphs, workloads_are_near_the_optimum, equal_waves_are_one,
          no_allocation_is_taken_for_granted)
