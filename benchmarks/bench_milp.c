/* Single micro-batches by mixed-integer programming: what GLPK finds in a minute, with the library's plan to
 * beat and without, beside that plan. Seconds are of the CPU. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hbp/glpk.h>

#include "../tests/flexsp.h"
#include "batches.h"
#include "plain_milp.h"

enum { INSTANCES = 30, SAMPLES = 256, LIMIT_K = 192 };

/* How the solver is asked: the library's exact mode, which begins with its plan as the one to beat; a plainer
 * program with the same plan to beat; that program alone. */
enum { EXACT = 0, PLAIN = 1, ALONE = 2, WAYS = 3 };

static const char *const way_name[WAYS] = {"exact", "plain", "alone"};

/* A plan to beat is beaten by this part at least. */
#define CUTOFF_PART 1e-6

/* In the place of a ratio. */
#define FAILED (-1.0)

static bench_data set[BENCH_BATCH_SETS];

typedef struct settings {
    int64_t first; /* instances first to end are run */
    int64_t end;
    double seconds; /* for each run of the solver */
    int32_t effort; /* of the library */
    int32_t buckets;
    int32_t way; /* WAYS: all */
    uint64_t seed;
} settings;

/* A micro-batch. */
typedef struct instance {
    const char *model;
    bench_batches batches;
    hbp_cost *cost;
    uint32_t length[SAMPLES];
} instance;

/* The solver behind the context's: without the library's limits on iterations, with one on the CPU, and with
 * a record of what it said. */
typedef struct watched {
    double seconds;
    double start;
    int32_t is_told;
    double took;
    int32_t status;
    double bound; /* over the time of the plan to beat */
} watched;

/* Says to stop once: a solver that is told again may leave its best point behind. */
static int32_t is_over(void *user)
{
    watched *w = user;
    if (w->is_told || bench_cpu() - w->start < w->seconds)
        return 0;
    return w->is_told = 1;
}

/* The only column with a price is the time, and its upper bound is the plan to beat. */
static double cutoff_of(const hbp_program *program)
{
    for (int32_t c = 0; c < program->columns; c++)
        if (program->objective[c] > 0)
            return program->column_upper[c];
    return INFINITY;
}

static hbp_status solve_watched(void *user, const hbp_program *program, const hbp_solver_limits *limits,
                                hbp_solver_answer *answer)
{
    watched *w = user;
    const hbp_solver *glpk = hbp_glpk_solver();
    hbp_solver_limits own = *limits;
    own.nodes = own.iterations = 0;
    own.poll = is_over;
    own.poll_user = w;
    w->start = bench_cpu();
    hbp_status status = glpk->solve(glpk->user, program, &own, answer);
    w->took = bench_cpu() - w->start;
    w->status = answer->status;
    w->bound = answer->bound / cutoff_of(program);
    return status;
}

/* "proven": that there is no better plan than the one to beat. */
static const char *name_status(int32_t status)
{
    static const char *const names[] = {"stopped", "optimal", "found", "proven", "unbounded"};
    return status >= 0 && status <= HBP_SOLVER_UNBOUNDED ? names[status] : "failed";
}

/* Groups of each degree 2^j as the paper writes them: <32,16,8x2>. */
static void write_groups(const int32_t groups[16], char text[64])
{
    int at = snprintf(text, 64, "<");
    for (int j = 15; j >= 0; j--)
        if (groups[j] && at < 56)
            at += snprintf(text + at, (size_t)(64 - at), groups[j] > 1 ? "%s%dx%d" : "%s%d",
                           at > 1 ? "," : "", 1 << j, (int)groups[j]);
    snprintf(text + at, (size_t)(64 - at), ">");
}

static void write_plan(const hbp_plan *plan, char text[64])
{
    hbp_plan_view view = {.struct_size = sizeof view};
    (void)hbp_plan_get_view(plan, &view);
    int64_t packs = view.packs;
    int32_t groups[16] = {0};
    for (int64_t i = 0; i < packs; i++)
        for (int j = 0; j < 16 && view.pack_offsets[i + 1] > view.pack_offsets[i]; j++)
            groups[j] += view.pack_sp[i] == 1 << j;
    write_groups(groups, text);
}

static hbp_status plan(hbp_context *context, const settings *options, const instance *i, int32_t exact,
                       hbp_plan **out, hbp_plan_summary *summary)
{
    hbp_step_options step = {.struct_size = sizeof step};
    step.effort = options->effort;
    step.exact = exact;
    step.buckets = options->buckets;
    step.max_micro_batches = 1;
    step.sequence_multiple = bench_batches_multiple(i->batches.ranks);
    hbp_lengths *lengths = NULL;
    bench_need(context, hbp_lengths_create_u32(context, i->length, i->batches.samples, NULL, &lengths),
               "lengths");
    *out = NULL;
    *summary = (hbp_plan_summary){.struct_size = sizeof *summary};
    hbp_status status = hbp_plan_step(context, lengths, i->cost, &step, out);
    if (status >= 0) {
        bench_need(context, hbp_plan_validate(context, *out, lengths, i->cost), "a plan");
        bench_need(context, hbp_plan_get_summary(context, *out, summary), "a plan");
    }
    hbp_lengths_free(lengths);
    return status;
}

/* A line for what a way came to; its time over `own_ns`, 0 for none. */
static double print_way(int way, const char *outcome, int64_t ns, int64_t own_ns, double bound_ns,
                        double seconds, const char *groups)
{
    double ratio = (double)ns / (double)own_ns;
    char text[64] = "";
    if (ns)
        snprintf(text, sizeof text, "%lld ns, ratio %.6f", (long long)ns, ratio);
    printf("    %-7s %-8s %-34s bound %12.0f  %5.1f s  %s\n", way_name[way], outcome, text, bound_ns, seconds,
           ns ? groups : "");
    fflush(stdout);
    return ratio;
}

static double solve_exact(hbp_context *context, const settings *options, const instance *i, int64_t own_ns)
{
    hbp_plan *found = NULL;
    hbp_plan_summary summary;
    char groups[64];
    watched w = {.seconds = options->seconds};
    hbp_solver solver = {sizeof solver, solve_watched, &w};
    bench_need(context, hbp_context_set_solver(context, &solver), "the solver");
    hbp_status status = plan(context, options, i, 1, &found, &summary);
    bench_need(context, hbp_context_set_solver(context, NULL), "the solver");
    if (status < 0) {
        printf("    %-7s failed   %s\n", way_name[EXACT], hbp_context_message(context));
        return FAILED;
    }
    write_plan(found, groups);
    double bound_ns = w.status == HBP_SOLVER_INFEASIBLE ? (double)own_ns
                      : w.bound > 0                     ? w.bound * (double)own_ns
                                                        : 0;
    int is_better = summary.predicted_ns < own_ns;
    double ratio = print_way(EXACT, name_status(w.status), is_better ? summary.predicted_ns : 0, own_ns,
                             bound_ns, w.took, groups);
    hbp_plan_free(found);
    return ratio;
}

static int descending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

static double solve_plain(const settings *options, const instance *i, int way, int64_t own_ns)
{
    int64_t length[SAMPLES];
    char groups[64];
    watched w = {.seconds = options->seconds, .start = bench_cpu()};
    for (int64_t k = 0; k < i->batches.samples; k++)
        length[k] = i->length[k];
    qsort(length, (size_t)i->batches.samples, sizeof *length, descending);
    bench_milp milp = {.cost = i->cost,
                       .ranks = i->batches.ranks,
                       .count = i->batches.samples,
                       .length = length,
                       .multiple = bench_batches_multiple(i->batches.ranks),
                       .unit_ns = (double)own_ns,
                       .cutoff_ns = way == PLAIN ? (double)own_ns * (1 - CUTOFF_PART) : INFINITY,
                       .limits = {.struct_size = sizeof milp.limits, .poll = is_over, .poll_user = &w}};
    hbp_status status = bench_milp_solve(hbp_glpk_solver(), &milp);
    write_groups(milp.groups, groups);
    double ratio = print_way(way, status < 0 ? "failed" : name_status(milp.status), milp.ns, own_ns,
                             milp.bound_ns, bench_cpu() - w.start, groups);
    return status < 0 ? FAILED : ratio;
}

/* Fills ratio[WAYS]: the solver's time over the library's, 0 where it has none, or FAILED. */
static void run(hbp_context *context, const settings *options, const instance *i, double *ratio)
{
    hbp_plan *own = NULL;
    hbp_plan_summary summary;
    char groups[64], ns[64];
    bench_need(context, plan(context, options, i, 0, &own, &summary), "the library's plan");
    write_plan(own, groups);
    snprintf(ns, sizeof ns, "%lld ns", (long long)summary.predicted_ns);
    printf("  %s %s, %d GPUs x %lld\n", i->model, i->batches.data->name, (int)i->batches.ranks,
           (long long)i->batches.samples);
    printf("    library          %-34s bound %12lld           %s\n", ns, (long long)summary.bound_ns, groups);
    for (int way = 0; way < WAYS; way++)
        if (options->way == WAYS || options->way == way)
            ratio[way] = way == EXACT ? solve_exact(context, options, i, summary.predicted_ns)
                                      : solve_plain(options, i, way, summary.predicted_ns);
    hbp_plan_free(own);
}

static void summarise(const settings *options, int64_t count, double (*ratio)[INSTANCES])
{
    for (int way = 0; way < WAYS; way++) {
        int64_t found = 0, better = 0, failed = 0;
        double of[INSTANCES], least = 1;
        if (options->way != WAYS && options->way != way)
            continue;
        for (int64_t k = 0; k < count; k++) {
            failed += ratio[way][k] < 0;
            if (ratio[way][k] > 0) {
                better += ratio[way][k] < 1;
                least = ratio[way][k] < least ? ratio[way][k] : least;
                of[found++] = ratio[way][k];
            }
        }
        bench_check(!better && !failed, way_name[way], "never better",
                    "better in %lld of %lld, by %.4f %% at most", (long long)better, (long long)count,
                    100 * (1 / least - 1));
        if (failed)
            bench_line("  the solver failed", "in %lld", (long long)failed);
        if (way == ALONE && found) {
            double median = bench_median(of, found);
            bench_line("  its time over the library's", "median %.4f, most %.4f, in the %lld with a solution",
                       median, of[found - 1], (long long)found);
        } else if (way == ALONE) {
            bench_line("  its time over the library's", "no solution in any");
        }
    }
}

/* The largest micro-batches first. */
static void run_all(hbp_context *context, const settings *options)
{
    enum { MODELS = 2, KINDS = MODELS * BENCH_BATCH_SETS };
    static const char *const models[MODELS] = {"7B", "13B"};
    static double ratio[WAYS][INSTANCES];
    int64_t count = 0, drawn = 0;
    bench_section("Single micro-batches, GLPK with %g s each", options->seconds);
    for (int32_t ranks = 32; ranks <= 64; ranks *= 2)
        for (int64_t samples = SAMPLES; samples >= 32; samples /= 2)
            for (int k = 0; k < KINDS && drawn < options->end; k++) {
                instance i = {.model = models[k / BENCH_BATCH_SETS],
                              .batches = {.data = &set[k % BENCH_BATCH_SETS],
                                          .limit_k = LIMIT_K,
                                          .ranks = ranks,
                                          .is_single = 1,
                                          .samples = samples,
                                          .seed = options->seed}};
                i.cost = flexsp_cost(context, i.model, LIMIT_K, 0, ranks);
                if (!i.cost)
                    bench_need(context, HBP_E_INVALID, i.model);
                if (bench_batches_draw(&i.batches, i.cost, 0, i.length) && drawn++ >= options->first) {
                    double of[WAYS] = {0};
                    run(context, options, &i, of);
                    for (int way = 0; way < WAYS; way++)
                        ratio[way][count] = of[way];
                    count++;
                }
                hbp_cost_free(i.cost);
            }
    summarise(options, count, ratio);
}

static int find_way(const char *name)
{
    int way = 0;
    while (way < WAYS && strcmp(way_name[way], name) != 0)
        way++;
    return way;
}

static int usage(void)
{
    fprintf(stderr, "usage: bench_milp [--way exact|plain|alone] [--seconds S] [--first N] [--end N]\n"
                    "                  [--effort E] [--buckets Q] [--seed S]\n"
                    "Runs micro-batches N to before N of 0 to 30. Buckets are those of the exact way.\n");
    return 2;
}

int main(int argc, char **argv)
{
    settings options = {.end = INSTANCES, .seconds = 60, .way = WAYS};
    for (int a = 1; a < argc; a++) {
        double number = a + 1 < argc ? strtod(argv[a + 1], NULL) : 0;
        if (!strcmp(argv[a], "--way") && a + 1 < argc)
            options.way = find_way(argv[++a]);
        else if (!strcmp(argv[a], "--seconds") && number > 0 && number < 1e6)
            options.seconds = number, a++;
        else if (!strcmp(argv[a], "--first") && number >= 0 && number < INSTANCES)
            options.first = (int64_t)number, a++;
        else if (!strcmp(argv[a], "--end") && number >= 1 && number <= INSTANCES)
            options.end = (int64_t)number, a++;
        else if (!strcmp(argv[a], "--effort") && number >= 1 && number <= 9)
            options.effort = (int32_t)number, a++;
        else if (!strcmp(argv[a], "--seed") && number >= 0 && number < 1e9)
            options.seed = (uint64_t)number, a++;
        else if (!strcmp(argv[a], "--buckets") && number >= 1 && number <= SAMPLES)
            options.buckets = (int32_t)number, a++;
        else
            return usage();
    }
    hbp_context *context = bench_context(NULL);
    bench_batches_open(context, set);
    run_all(context, &options);
    bench_batches_close(set);
    hbp_context_free(context);
    return bench_end();
}
