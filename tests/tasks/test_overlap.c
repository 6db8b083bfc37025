#include "tasks/overlap/overlap.h"

#include "graphs.h"
#include "keep.h"
#include "nodes.h"
#include "simulate/tasks/task_bound.h"
#include "tasks/baselines/baselines.h"
#include "tasks/planned.h"
#include "tasks/waves/waves.h"
#include "tasks_oracle.h"

enum { GIVEN = 5 };

/* Published waves and the four baselines. */
static void make_given(hbp_context *context, const planned *p, hbp__task_slices *slices)
{
    memset(slices, 0, GIVEN * sizeof *slices);
    OK(context, hbp__plan_waves(context, &p->problem, &slices[0]));
    OK(context, hbp__plan_sequential(context, &p->problem, &slices[1]));
    OK(context, hbp__plan_uniform(context, &p->problem, &slices[2]));
    OK(context, hbp__plan_optimus(context, &p->problem, &slices[3]));
    OK(context, hbp__plan_distmm(context, &p->problem, &slices[4]));
}

static hbp__task_bounds bounds_of(hbp_context *context, const planned *p)
{
    hbp__task_bounds bounds;
    OK(context, hbp__task_bound(context, &p->meta, &p->scaling, &bounds, NULL));
    return bounds;
}

/* No two slices of a MetaOp that could be one. */
static void check_joined(const hbp__task_slices *slices)
{
    for (int64_t a = 0; a < slices->count; a++)
        for (int64_t b = 0; b < slices->count; b++) {
            const hbp__task_slice *x = &slices->slice[a], *y = &slices->slice[b];
            ck_assert(x->meta_op != y->meta_op || x->gpus != y->gpus || x->end_ns != y->start_ns);
        }
}

START_TEST(never_longer_than_given)
{
    hbp__rng rng = hbp__rng_make(41, 0, 0);
    int64_t shorter = 0, trials = TEST_FEW(2000, 200);
    double sum = 0;
    for (int trial = 0; trial < trials; trial++) {
        hbp_context *context = test_context();
        hbp_graph *graph = random_graph(context, &rng, NULL);
        planned p;
        open_planned(context, graph, (int32_t)random_between(&rng, 4, 16), &p);
        p.problem.seed = (uint64_t)trial;
        hbp__task_bounds bounds = bounds_of(context, &p);
        hbp__task_slices given[GIVEN], made = {0};
        const hbp__task_slices *list[GIVEN];
        make_given(context, &p, given);
        int64_t least = INT64_MAX;
        int32_t givens = (int32_t)random_between(&rng, 0, GIVEN);
        for (int32_t g = 0; g < givens; g++) {
            list[g] = &given[g];
            least = given[g].makespan_ns < least ? given[g].makespan_ns : least;
        }
        OK(context, hbp__plan_overlap(context, &p.problem, list, givens, bounds.bound_ns, 1, &made));
        check_slices(&p, &made);
        check_joined(&made);
        ck_assert_int_le(made.makespan_ns, least);
        ck_assert_int_ge(made.makespan_ns, bounds.bound_ns);
        shorter += made.makespan_ns < least;
        sum += (double)made.makespan_ns / (double)bounds.bound_ns;
        hbp__task_slices_close(&made);
        for (int32_t g = 0; g < GIVEN; g++)
            hbp__task_slices_close(&given[g]);
        close_planned(&p);
        hbp_graph_free(graph);
        hbp_context_free(context);
    }
    ck_assert_int_gt(shorter, trials * 8 / 10);
    ck_assert_double_lt(sum / (double)trials, 1.05);
}
END_TEST

/* A few operators in a few MetaOps, on few GPUs: `width` MetaOps at most, 6 operators at most. */
static hbp_graph *tiny_graph(hbp_context *context, hbp__rng *rng)
{
    for (;;) {
        hbp_graph *graph = random_graph(
            context, rng, &(graph_sizes){.tasks = 3, .encoders = 2, .heads = 1, .chain = 3, .most_gpus = 4});
        if (graph_view(graph).operators <= 6)
            return graph;
        hbp_graph_free(graph);
    }
}

START_TEST(near_the_shortest_of_all)
{
    hbp__rng rng = hbp__rng_make(42, 0, 0);
    int32_t optimal = 0, trials = 400;
    double sum = 0;
    for (int trial = 0; trial < trials; trial++) {
        hbp_context *context = test_context();
        hbp_graph *graph = tiny_graph(context, &rng);
        planned p;
        open_planned(context, graph, 4, &p);
        hbp__task_slices made = {0};
        oracle o;
        int64_t best = oracle_makespan(&p.meta, &p.scaling, &o);
        OK(context,
           hbp__plan_overlap(context, &p.problem, NULL, 0, bounds_of(context, &p).bound_ns, 5, &made));
        check_slices(&p, &made);
        ck_assert_int_ge(made.makespan_ns, best);
        ck_assert_int_le(made.makespan_ns, best + best / 10);
        optimal += made.makespan_ns == best;
        sum += (double)made.makespan_ns / (double)best;
        hbp__task_slices_close(&made);
        close_planned(&p);
        hbp_graph_free(graph);
        hbp_context_free(context);
    }
    ck_assert_int_ge(optimal, trials * 95 / 100);
    ck_assert_double_lt(sum / trials, 1.001);
}
END_TEST

START_TEST(more_effort_is_as_good)
{
    hbp__rng rng = hbp__rng_make(43, 0, 0);
    double sum[3] = {0};
    static const int32_t efforts[] = {1, 5, 8};
    for (int trial = 0; trial < 30; trial++) {
        hbp_context *context = test_context();
        hbp_graph *graph =
            random_graph(context, &rng, &(graph_sizes){.tasks = 8, .all_tasks = 1, .chain = 24});
        planned p;
        open_planned(context, graph, 16, &p);
        int64_t bound = bounds_of(context, &p).bound_ns;
        for (int e = 0; e < 3; e++) {
            hbp__task_slices made = {0};
            OK(context, hbp__plan_overlap(context, &p.problem, NULL, 0, bound, efforts[e], &made));
            check_slices(&p, &made);
            sum[e] += (double)made.makespan_ns / (double)bound;
            hbp__task_slices_close(&made);
        }
        close_planned(&p);
        hbp_graph_free(graph);
        hbp_context_free(context);
    }
    ck_assert_double_le(sum[1], sum[0]);
    ck_assert_double_le(sum[2], sum[1]);
    ck_assert_double_lt(sum[1] / 30, 1.05);
}
END_TEST

/* The shapes of published models, within 4 % of the sum of C*: no such schedule is published. */
START_TEST(workloads_are_near_the_continuous_optimum)
{
    static const char *const names[] = {"clip-4", "clip-7", "clip-10", "ofasys-4", "ofasys-7", "qwen-val-3"};
    for (int w = 0; w < 6; w++)
        for (int32_t nodes = 1; nodes <= 8; nodes *= 2) {
            hbp_context *context = test_context();
            hbp_machine *machine = NULL;
            hbp_graph *graph = NULL;
            OK(context, make_nodes(context, "a800-80", nodes, &machine));
            OK(context, hbp_graph_create_workload(context, names[w], machine, &graph));
            planned p;
            open_planned(context, graph, 8 * nodes, &p);
            hbp__task_bounds bounds = bounds_of(context, &p);
            hbp__task_slices waves = {0}, made = {0};
            OK(context, hbp__plan_waves(context, &p.problem, &waves));
            const hbp__task_slices *given[] = {&waves};
            OK(context, hbp__plan_overlap(context, &p.problem, given, 1, bounds.bound_ns, 5, &made));
            check_slices(&p, &made);
            ck_assert_int_le(made.makespan_ns, waves.makespan_ns);
            ck_assert_msg((double)made.makespan_ns <= 1.04 * (double)bounds.relaxed_ns,
                          "%s on %d GPUs: %f of C*", names[w], 8 * nodes,
                          (double)made.makespan_ns / (double)bounds.relaxed_ns);
            hbp__task_slices_close(&made);
            hbp__task_slices_close(&waves);
            close_planned(&p);
            hbp_graph_free(graph);
            hbp_machine_free(machine);
            hbp_context_free(context);
        }
}
END_TEST

/* A digest of these slices, and of what came before. */
static uint64_t mix_slices(uint64_t digest, const hbp__task_slices *made)
{
    for (int64_t s = 0; s < made->count; s++) {
        const hbp__task_slice *x = &made->slice[s];
        const int64_t column[] = {x->meta_op, x->first, x->count, x->gpus, x->wave, x->start_ns, x->end_ns};
        for (int c = 0; c < 7; c++)
            digest = hbp__splitmix64(&digest) ^ (uint64_t)column[c];
    }
    return digest;
}

START_TEST(the_same_again)
{
    hbp__rng rng = hbp__rng_make(44, 0, 0);
    for (int trial = 0; trial < 20; trial++) {
        hbp_context *context = test_context(), *other = test_context();
        hbp_graph *graph = random_graph(context, &rng, NULL);
        planned p;
        open_planned(context, graph, 8, &p);
        p.problem.seed = 12345 + (uint64_t)trial;
        int64_t bound = bounds_of(context, &p).bound_ns;
        hbp__task_slices a = {0}, b = {0};
        OK(context, hbp__plan_overlap(context, &p.problem, NULL, 0, bound, 4, &a));
        OK(other, hbp__plan_overlap(other, &p.problem, NULL, 0, bound, 4, &b));
        ck_assert_int_eq(a.count, b.count);
        ck_assert_uint_eq(mix_slices(0, &a), mix_slices(0, &b));
        hbp__task_slices_close(&a);
        hbp__task_slices_close(&b);
        close_planned(&p);
        hbp_graph_free(graph);
        hbp_context_free(other);
        hbp_context_free(context);
    }
}
END_TEST

/* And on every compiler: ranks that plan for themselves must agree. The digest changes when the planner does.
 */
START_TEST(the_same_everywhere)
{
    hbp__rng rng = hbp__rng_make(46, 0, 0);
    uint64_t digest = 0;
    for (int trial = 0; trial < 40; trial++) {
        hbp_context *context = test_context();
        hbp_graph *graph = random_graph(context, &rng, NULL);
        planned p;
        open_planned(context, graph, 12, &p);
        hbp__task_slices made = {0};
        OK(context,
           hbp__plan_overlap(context, &p.problem, NULL, 0, bounds_of(context, &p).bound_ns, 3, &made));
        digest = mix_slices(digest, &made);
        hbp__task_slices_close(&made);
        close_planned(&p);
        hbp_graph_free(graph);
        hbp_context_free(context);
    }
    ck_assert_msg(digest == UINT64_C(0x1370cf1c135a1cf2), "digest %#llx", (unsigned long long)digest);
}
END_TEST

/* One MetaOp alone runs as fast as it can; beside one that does not scale it only needs to be done in time.
 */
START_TEST_IN_CONTEXT(simple_ones_are_optimal)
{
    hbp_graph *graph = keep(new_graph(context));
    hbp_operator o = {.struct_size = sizeof o};
    o.degrees = HBP_DEGREES_PROFILED;
    o.profile = add_falling_profile(context, graph, 8000, 100, 8);
    add_chain(context, graph, &o, "alone", "layer", "task", 10);
    planned p;
    open_planned(context, graph, 8, &p);
    hbp__task_slices made = {0};
    OK(context, hbp__plan_overlap(context, &p.problem, NULL, 0, bounds_of(context, &p).bound_ns, 1, &made));
    ck_assert_int_eq(made.count, 1);
    ck_assert_int_eq(made.slice[0].gpus, 8);
    ck_assert_int_eq(made.makespan_ns, 10 * 1100);
    hbp__task_slices_close(&made);
    close_planned(&p);
    const int32_t one = 1;
    const int64_t ns = 5000;
    OK(context, hbp_graph_add_profile(context, graph, &one, &ns, 1, &o.profile));
    add_chain(context, graph, &o, "other", "layer", "other task", 3);
    open_planned(context, graph, 9, &p);
    made = (hbp__task_slices){0};
    OK(context, hbp__plan_overlap(context, &p.problem, NULL, 0, bounds_of(context, &p).bound_ns, 1, &made));
    ck_assert_int_eq(made.makespan_ns, 15000);
    hbp__task_slices_close(&made);
    close_planned(&p);
}
END_TEST

static hbp_status plan_once(hbp_context *context, void *user)
{
    const planned *p = user;
    hbp__task_slices waves = {0}, made = {0};
    hbp_status status = hbp__plan_waves(context, &p->problem, &waves);
    const hbp__task_slices *given[] = {&waves};
    if (status == HBP_OK)
        status = hbp__plan_overlap(context, &p->problem, given, 1, 1, 1, &made);
    if (status == HBP_OK)
        check_slices(p, &made);
    else
        ck_assert_ptr_null(made.slice);
    hbp__task_slices_close(&made);
    hbp__task_slices_close(&waves);
    return status;
}

START_TEST_IN_CONTEXT(memory_may_run_out_and_users_may_cancel)
{
    hbp__rng rng = hbp__rng_make(45, 0, 0);
    hbp_graph *graph = keep(random_graph(context, &rng, &(graph_sizes){.tasks = 4, .all_tasks = 1}));
    planned p;
    open_planned(context, graph, 8, &p);
    failing_sweep(plan_once, &p);
    ck_assert_int_gt(cancel_sweep(plan_once, &p), 10);
    close_planned(&p);
}
END_TEST

TEST_MAIN("overlap", never_longer_than_given, near_the_shortest_of_all, more_effort_is_as_good,
          workloads_are_near_the_continuous_optimum, the_same_again, the_same_everywhere,
          simple_ones_are_optimal, memory_may_run_out_and_users_may_cancel)
