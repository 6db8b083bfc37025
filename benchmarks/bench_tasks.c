/* Many tasks on one machine: how near waves and overlapping slices come to the continuous optimum and to the
 * bound, the speed-ups that Spindle publishes, what placement leaves to move, and the time to plan. */
#include <stdio.h>
#include <string.h>

#include "common.h"

enum { SIZES = 4, RUNS = 7 };

/* Of ways and of placements, in their order. */
enum { OVERLAP, SPINDLE, SEQUENTIAL, UNIFORM, OPTIMUS, DISTMM, WAYS };
enum { FLOWS, RELEASED, CONSECUTIVE, PLACEMENTS };

static const int32_t sizes[SIZES] = {8, 16, 32, 64};
static const char *const ways[WAYS] = {"overlap", "spindle", "sequential", "uniform", "optimus", "distmm"};
static const char *const placements[PLACEMENTS] = {"flows", "spindle", "sequential"};

/* Spindle, section 5: speed-ups over DeepSpeed, which runs task after task; 0: not printed. */
static const struct published {
    const char *workload;
    double speed_up[SIZES];
} published[] = {
    {"clip-4", {1.21, 1.22, 1.52, 0}},
    {"clip-7", {1.31, 1.26, 1.54, 0}},
    {"clip-10", {1.37, 1.33, 1.71, 0}},
    {"qwen-val-3", {0, 0, 1.16, 1.63}},
};

/* What one plan comes to. */
typedef struct planned {
    hbp_status status;
    hbp_task_summary summary;
    hbp_task_run_summary run;
    double seconds;
} planned;

static planned plan(hbp_context *context, const hbp_graph *graph, const hbp_machine *machine, int way,
                    int placement, int64_t limit_bytes)
{
    planned p = {.summary = {.struct_size = sizeof p.summary}, .run = {.struct_size = sizeof p.run}};
    hbp_tasks_options options = {.struct_size = sizeof options};
    options.method = ways[way];
    options.placement_method = placements[placement];
    options.limit_bytes = limit_bytes;
    hbp_task_schedule *schedule = NULL;
    p.seconds = bench_cpu();
    p.status = hbp_plan_tasks(context, graph, machine, &options, &schedule);
    p.seconds = bench_cpu() - p.seconds;
    if (p.status < 0) {
        if (p.status != HBP_E_INFEASIBLE)
            bench_need(context, p.status, "a plan");
        return p;
    }
    bench_need(context, hbp_task_schedule_validate(context, schedule, graph, machine), "a valid schedule");
    bench_need(context, hbp_task_schedule_get_summary(context, schedule, &p.summary), "summary");
    hbp_task_run *run = NULL;
    bench_need(context, hbp_simulate_tasks(context, graph, machine, schedule, NULL, &run), "a run");
    bench_need(context, hbp_task_run_get_summary(context, run, &p.run), "summary of a run");
    hbp_task_run_free(run);
    hbp_task_schedule_free(schedule);
    return p;
}

/* One workload on one machine, every way. */
typedef struct results {
    planned way[WAYS];
    planned placed[PLACEMENTS]; /* of the published waves */
    double seconds;             /* median of planning by the default method */
    int32_t operators;
} results;

static void measure(hbp_context *context, const char *name, int32_t gpus, results *r)
{
    hbp_machine *machine = bench_nodes(context, "a800-80", gpus / 8);
    hbp_graph *graph = NULL;
    bench_need(context, hbp_graph_create_workload(context, name, machine, &graph), name);
    hbp_graph_view view = {.struct_size = sizeof view};
    (void)hbp_graph_get_view(graph, &view);
    r->operators = (int32_t)view.operators;
    for (int way = 0; way < WAYS; way++)
        r->way[way] = plan(context, graph, machine, way, FLOWS, 0);
    for (int placement = 0; placement < PLACEMENTS; placement++)
        r->placed[placement] = plan(context, graph, machine, SPINDLE, placement, 0);
    double seconds[RUNS];
    for (int i = 0; i < RUNS; i++)
        seconds[i] = plan(context, graph, machine, OVERLAP, FLOWS, 0).seconds;
    r->seconds = bench_median(seconds, RUNS);
    hbp_graph_free(graph);
    hbp_machine_free(machine);
}

static double over(int64_t ns, int64_t least)
{
    return (double)ns / (double)least;
}

static const char *heading(const char *name, int32_t gpus)
{
    static char text[48];
    snprintf(text, sizeof text, "%s, %d GPUs", name, (int)gpus);
    return text;
}

static void tell_quality(const char *name, int32_t gpus, const results *r)
{
    const planned *overlap = &r->way[OVERLAP], *paper = &r->way[SPINDLE];
    if (overlap->status < 0 || paper->status < 0) {
        bench_line(heading(name, gpus), "%s",
                   overlap->status < 0 ? "does not fit in memory" : "published waves do not fit in memory");
        return;
    }
    double ours = over(overlap->summary.makespan_ns, overlap->summary.relaxed_ns);
    double theirs = over(paper->summary.makespan_ns, paper->summary.relaxed_ns);
    bench_check(ours <= 1.04 && theirs <= 1.07, heading(name, gpus), "<= 1.04, paper <= 1.07",
                "%.3f (%.3f of bound), paper %.3f", ours,
                over(overlap->summary.makespan_ns, overlap->summary.bound_ns), theirs);
    bench_metric_beside(heading(name, gpus), "step", BENCH_LOWER, 1e-6 * (double)overlap->summary.makespan_ns,
                        "predicted ms", "bound",
                        over(overlap->summary.makespan_ns, overlap->summary.bound_ns));
}

static double speed_up(const results *r, int way)
{
    if (r->way[way].status < 0 || r->way[SEQUENTIAL].status < 0)
        return 0;
    return over(r->way[SEQUENTIAL].summary.makespan_ns, r->way[way].summary.makespan_ns);
}

/* "optimus 1.054", or "optimus -" where it does not fit in memory. */
static int put_speed_up(char *text, size_t room, const results *r, int way)
{
    double times = speed_up(r, way);
    return times > 0 ? snprintf(text, room, "%s %.3f, ", ways[way], times)
                     : snprintf(text, room, "%s -, ", ways[way]);
}

static void tell_speed_ups(const char *name, int size, const results *r)
{
    char text[120];
    int used = 0;
    static const int order[] = {SPINDLE, OVERLAP, OPTIMUS, UNIFORM, DISTMM};
    for (int i = 0; i < 5; i++)
        used += put_speed_up(text + used, sizeof text - (size_t)used, r, order[i]);
    text[used - 2] = '\0';
    double target = 0;
    for (size_t i = 0; i < sizeof published / sizeof *published; i++)
        if (strcmp(published[i].workload, name) == 0)
            target = published[i].speed_up[size];
    double off = target > 0 ? speed_up(r, SPINDLE) / target - 1 : 0;
    char wanted[40];
    snprintf(wanted, sizeof wanted, "%.2f +- 20 %%, %+.0f %%", target, 100 * off);
    if (target > 0)
        bench_check(off >= -.2 && off <= .2, heading(name, sizes[size]), wanted, "%s", text);
    else
        bench_line(heading(name, sizes[size]), "%s", text);
}

/* What transfers add to a schedule's time, a share of it. */
static double added(const planned *p)
{
    return over(p->run.slices_ns, p->summary.makespan_ns) - 1;
}

/* Shares of what consecutive ranks come to, summed over rows. */
typedef struct traffic {
    double moved;
    double added;
    double added_plain;
    double crossing;
    int rows;
    int wide_rows; /* of more than one domain */
} traffic;

/* Of schedules made the published way: bytes that leave a GPU, and its domain, beside the sequential
 * placement's, and what transfers add in each. */
static void tell_placement(const char *name, int32_t gpus, const results *r, traffic *sum)
{
    const planned *flows = &r->placed[FLOWS], *released = &r->placed[RELEASED],
                  *plain = &r->placed[CONSECUTIVE];
    if (flows->status < 0 || released->status < 0 || plain->status < 0 || plain->summary.moved_bytes == 0)
        return;
    double least = (double)plain->summary.moved_bytes;
    double ours = (double)flows->summary.moved_bytes / least;
    double wide = (double)plain->summary.crossing_bytes;
    bench_line(heading(name, gpus),
               "moved %5.3f (released %5.3f) of %8.1f MB, across domains %5.3f of %8.1f MB; adds %5.2f %% "
               "(released %5.2f, consecutive %5.2f); run with gradients %.3f",
               ours, (double)released->summary.moved_bytes / least, 1e-6 * least,
               wide > 0 ? (double)flows->summary.crossing_bytes / wide : 0, 1e-6 * wide, 100 * added(flows),
               100 * added(released), 100 * added(plain), over(flows->run.total_ns, plain->run.total_ns));
    sum->added += added(flows);
    sum->added_plain += added(plain);
    sum->moved += ours;
    sum->rows++;
    if (wide > 0) {
        sum->crossing += (double)flows->summary.crossing_bytes / wide;
        sum->wide_rows++;
    }
}

static void tell_times(const char *name, int32_t gpus, const results *r)
{
    double paper = 1e3 * r->way[SPINDLE].seconds;
    bench_metric(heading(name, gpus), "planning", BENCH_LOWER, 1e3 * r->seconds, "ms");
    if (gpus == 64)
        bench_check(r->seconds < .02, heading(name, gpus), "< 20 ms (3 s published)",
                    "%.2f ms, paper %.2f ms", 1e3 * r->seconds, paper);
    else
        bench_line(heading(name, gpus), "%.2f ms, paper %.2f ms", 1e3 * r->seconds, paper);
}

/* With transfers and gradients. */
static void tell_runs(const char *name, int32_t gpus, const results *r)
{
    char text[160];
    int used = 0;
    for (int way = 0; way < WAYS; way++)
        if (r->way[way].status >= 0)
            used += snprintf(text + used, sizeof text - (size_t)used, "%s%s %.1f", way ? ", " : "", ways[way],
                             1e-6 * (double)r->way[way].run.total_ns);
    if (used)
        bench_line(heading(name, gpus), "%s ms", text);
}

static void whole_table(hbp_context *context)
{
    static results all[16][SIZES];
    int64_t workloads = 0;
    while (workloads < 16 && hbp_preset_get_name("workload", workloads))
        workloads++;
    for (int64_t w = 0; w < workloads; w++)
        for (int s = 0; s < SIZES; s++)
            measure(context, hbp_preset_get_name("workload", w), sizes[s], &all[w][s]);
    traffic sum = {0};
    static const char *const sections[] = {
        "Makespan over the sum of C*, the continuous optimum of levels one after another",
        "Speed-ups over sequential, transfers left out",
        "One step with transfers and gradients",
        "Placement of the published waves: bytes between GPUs beside consecutive ranks",
        "Planning, on the CPU, median of 7",
    };
    for (int section = 0; section < 5; section++) {
        bench_section("%s", sections[section]);
        for (int64_t w = 0; w < workloads; w++)
            for (int s = 0; s < SIZES; s++) {
                const char *name = hbp_preset_get_name("workload", w);
                if (section == 0)
                    tell_quality(name, sizes[s], &all[w][s]);
                else if (section == 1)
                    tell_speed_ups(name, s, &all[w][s]);
                else if (section == 2)
                    tell_runs(name, sizes[s], &all[w][s]);
                else if (section == 3)
                    tell_placement(name, sizes[s], &all[w][s], &sum);
                else
                    tell_times(name, sizes[s], &all[w][s]);
            }
        if (section == 3 && sum.wide_rows) {
            bench_metric("", "across domains / consecutive ranks", BENCH_LOWER, sum.crossing / sum.wide_rows,
                         "x");
            bench_metric("", "transfers' time / consecutive ranks", BENCH_LOWER, sum.added / sum.added_plain,
                         "x");
            bench_check(sum.crossing / sum.wide_rows <= 1. / 3, "across domains, mean", "<= .333",
                        "%.3f of consecutive ranks", sum.crossing / sum.wide_rows);
            bench_check(sum.added / sum.added_plain <= 1. / 3, "time that transfers add, all together",
                        "<= .333", "%.3f of consecutive ranks", sum.added / sum.added_plain);
            bench_line("moved, mean", "%.3f of consecutive ranks", sum.moved / sum.rows);
        }
    }
}

/* Tasks drawn for a machine of so many GPUs: their shape, and what sizes their operators run on. */
typedef struct drawing {
    const char *name;
    int32_t chains;    /* a task's: 4: two encoders, what joins them, a head; 1: one chain */
    int32_t operators; /* a chain's, drawn up to so many */
    int32_t batch;     /* sizes are its divisors */
    int32_t step;      /* profiled on 1, and on so many times what was before, or 1: on all sizes */
} drawing;

static const drawing drawings[] = {
    {"four chains", 4, 48, 1024, 2},
    {"one chain, many sizes", 1, 24, 960, 1},
    {"one operator", 1, 1, 1024, 2},
};

enum { DRAWINGS = sizeof drawings / sizeof *drawings };

/* The times of one chain's operators: work that GPUs share and a part that they do not. */
static int32_t draw_profile(hbp_context *context, hbp_graph *graph, const drawing *d, int32_t gpus,
                            uint64_t *state)
{
    int32_t points = 0, at[1024], profile;
    int64_t ns[1024];
    int64_t work = 2000000 + (int64_t)(bench_random(state) % 60000000);
    int64_t fixed = 200000 + (int64_t)(bench_random(state) % 500000);
    for (int32_t n = 1; n <= gpus && points<1024; n = d->step> 1 ? n * d->step : n + 1) {
        if (d->batch % n)
            continue;
        at[points] = n;
        ns[points++] = work / n + fixed;
    }
    bench_need(context, hbp_graph_add_profile(context, graph, at, ns, points, &profile), "a profile");
    return profile;
}

static hbp_graph *draw_tasks(hbp_context *context, const drawing *d, int32_t tasks, int32_t gpus,
                             uint64_t seed)
{
    hbp_graph *graph = NULL;
    uint64_t state = seed;
    bench_need(context, hbp_graph_create(context, &graph), "a graph");
    for (int32_t t = 0; t < tasks; t++) {
        int32_t first[4], count[4];
        char task[16];
        snprintf(task, sizeof task, "task %d", (int)t);
        for (int c = 0; c < d->chains; c++) {
            static const char *const types[] = {"vision", "text", "joint", "head"};
            hbp_operator o = {.struct_size = sizeof o};
            char name[32];
            snprintf(name, sizeof name, "%s %s", task, types[c]);
            o.profile = draw_profile(context, graph, d, gpus, &state);
            o.name = name;
            o.type = types[c];
            o.task = task;
            o.parameters = types[c];
            o.batch = d->batch;
            o.state_bytes = INT64_C(1) << 27;
            o.activation_bytes = INT64_C(1) << 30;
            o.output_bytes = INT64_C(1) << 25;
            o.gradient_bytes = INT64_C(1) << 24;
            int32_t least = d->operators / 8;
            count[c] = least + 1 - (least > 0) +
                       (int32_t)(bench_random(&state) % (uint64_t)(d->operators - least + (least > 0)));
            bench_need(context, hbp_graph_add_operators(context, graph, &o, count[c], &first[c]),
                       "operators");
        }
        for (int c = 0; c + 1 < d->chains; c++)
            bench_need(context,
                       hbp_graph_add_edge(context, graph, first[c] + count[c] - 1, first[c < 2 ? 2 : 3], -1),
                       "an edge");
    }
    return graph;
}

/* CPU time and the gap to the bound, memory aside, with tasks. */
static void scale(hbp_context *context)
{
    static const int32_t counts[] = {10, 100, 1000, 4000};
    bench_section("Many tasks on 512 GPUs: planning on the CPU, and the gap to the bound");
    hbp_machine *machine = bench_nodes(context, "a800-80", 64);
    for (int k = 0; k < DRAWINGS; k++)
        for (int i = 0; i < 4; i++) {
            char name[64];
            hbp_graph *graph = draw_tasks(context, &drawings[k], counts[i], 512, 1);
            planned p = plan(context, graph, machine, OVERLAP, FLOWS, -1);
            double gap = 100 * (over(p.summary.makespan_ns, p.summary.bound_ns) - 1);
            snprintf(name, sizeof name, "%d tasks, %s", (int)counts[i], drawings[k].name);
            bench_metric(name, "planning", BENCH_LOWER, p.seconds, "s");
            bench_check(p.seconds < 5, name, "< 5 s", "%.3f s, gap %.3f %% (%.3f ms; with transfers %.3f ms)",
                        p.seconds, gap, 1e-6 * (double)p.summary.makespan_ns, 1e-6 * (double)p.run.total_ns);
            hbp_graph_free(graph);
        }
    hbp_machine_free(machine);
}

/* Gaps of few tasks on many GPUs. */
static void few(hbp_context *context)
{
    enum { DRAWS = 20 };
    static const int32_t counts[] = {1, 2, 3, 4, 6, 8};
    bench_section("Few tasks on many GPUs: mean and largest gap to the bound, of %d", DRAWS);
    for (int32_t gpus = 64; gpus <= 512; gpus *= 2) {
        hbp_machine *machine = bench_nodes(context, "a800-80", gpus / 8);
        for (int k = 0; k < DRAWINGS; k++)
            for (int i = 0; i < 6; i++) {
                char name[64];
                double sum = 0, most = 0, seconds = 0;
                for (uint64_t seed = 1; seed <= DRAWS; seed++) {
                    hbp_graph *graph = draw_tasks(context, &drawings[k], counts[i], gpus, seed);
                    planned p = plan(context, graph, machine, OVERLAP, FLOWS, -1);
                    double gap = 100 * (over(p.summary.makespan_ns, p.summary.bound_ns) - 1);
                    sum += gap;
                    most = gap > most ? gap : most;
                    seconds += p.seconds;
                    hbp_graph_free(graph);
                }
                snprintf(name, sizeof name, "%d on %d, %s", (int)counts[i], (int)gpus, drawings[k].name);
                bench_metric(name, "mean gap", BENCH_LOWER, sum / DRAWS, "%");
                bench_line(name, "%.3f %%, %.3f %%, %.1f ms a plan", sum / DRAWS, most,
                           1e3 * seconds / DRAWS);
            }
        hbp_machine_free(machine);
    }
}

static void largest(hbp_context *context)
{
    bench_section("100 tasks of four chains on 1,024 GPUs");
    hbp_graph *graph = draw_tasks(context, &drawings[0], 100, 1024, 1);
    hbp_machine *machine = bench_nodes(context, "a800-80", 128);
    planned p = plan(context, graph, machine, OVERLAP, FLOWS, 0);
    planned paper = plan(context, graph, machine, SPINDLE, FLOWS, 0);
    if (p.status < 0 || paper.status < 0)
        bench_line("it", "does not fit in memory");
    else
        bench_metric("", "planning", BENCH_LOWER, p.seconds, "s");
    if (p.status >= 0 && paper.status >= 0)
        bench_check(p.seconds < 1, "planning", "< 1 s", "%.3f s (paper %.3f s), %.3f of bound, paper %.3f",
                    p.seconds, paper.seconds, over(p.summary.makespan_ns, p.summary.bound_ns),
                    over(paper.summary.makespan_ns, paper.summary.bound_ns));
    hbp_machine_free(machine);
    hbp_graph_free(graph);
}

/* All sections; or "scale", the drawn tasks alone. */
int main(int count, char **arguments)
{
    hbp_context *context = bench_context(NULL);
    if (count < 2 || strcmp(arguments[1], "scale") != 0) {
        whole_table(context);
        largest(context);
    }
    scale(context);
    few(context);
    hbp_context_free(context);
    return bench_end();
}
