/* A change of the library held against the library before: the same calls with both, in turn, seconds and
 * peak bytes of each.
 *
 * bench_change OLD NEW [WORK]: OLD and NEW are folders that hold a libhbp.so.0 each; the program runs itself
 * with one and the other, 5 pairs a work. bench_change --work WORK is one such run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common.h"
#include "hbp/io.h"

enum { PAIRS = 5, SAMPLES = 60000, BATCH = 512 };

typedef struct inputs {
    hbp_context *context;
    bench_memory memory;
    hbp_lengths *lengths; /* of wikipedia */
    hbp_lengths *batch;   /* its first BATCH */
    hbp_cost *cost;       /* llama-3.1-8b on 64 H100 */
    hbp_machine *machine;
    char path[64];
} inputs;

static void need(const inputs *in, hbp_status status, const char *what)
{
    bench_need(in->context, status, what);
}

static void plan_epoch(const inputs *in, const hbp_epoch_options *options)
{
    hbp_plan *plan = NULL;
    need(in, hbp_plan_epoch(in->context, in->lengths, in->cost, options, &plan), "epoch");
    hbp_plan_free(plan);
}

static void epoch_default(const inputs *in)
{
    plan_epoch(in, NULL);
}

static void epoch_paper(const inputs *in)
{
    plan_epoch(in, &(hbp_epoch_options){.struct_size = sizeof(hbp_epoch_options), .method = "hbp"});
}

static void epoch_hierarchy(const inputs *in)
{
    plan_epoch(in, &(hbp_epoch_options){.struct_size = sizeof(hbp_epoch_options),
                                        .composition = HBP_COMPOSITION_HIERARCHY});
}

static void epoch_drawn(const inputs *in)
{
    plan_epoch(in, &(hbp_epoch_options){.struct_size = sizeof(hbp_epoch_options), .samples_per_step = 1024});
}

static void epoch_tight(const inputs *in)
{
    plan_epoch(
        in, &(hbp_epoch_options){.struct_size = sizeof(hbp_epoch_options), .effort = 2, .max_samples = 99});
}

static void baselines(const inputs *in)
{
    static const char *const ways[] = {"next-fit", "best-fit-decreasing", "isf"};
    for (int i = 0; i < 3; i++)
        plan_epoch(in, &(hbp_epoch_options){.struct_size = sizeof(hbp_epoch_options), .method = ways[i]});
}

static void plan_step(const inputs *in, const hbp_step_options *options, int times)
{
    while (times--) {
        hbp_plan *plan = NULL;
        need(in, hbp_plan_step(in->context, in->batch, in->cost, options, &plan), "step");
        hbp_plan_free(plan);
    }
}

static void step_default(const inputs *in)
{
    plan_step(in, NULL, 10);
}

static void step_modes(const inputs *in)
{
    static const char *const ways[] = {"static-sp", "homogeneous-sp", "hybrid-cp", "dynamic-cp"};
    for (int i = 0; i < 4; i++)
        plan_step(in, &(hbp_step_options){.struct_size = sizeof(hbp_step_options), .method = ways[i]}, 20);
}

static void step_equal(const inputs *in)
{
    plan_step(in, &(hbp_step_options){.struct_size = sizeof(hbp_step_options), .equal_samples = 1}, 10);
}

/* Written, read, judged, replayed, bounded. */
static void files(const inputs *in)
{
    hbp_epoch_options options = {.struct_size = sizeof options, .method = "hbp"};
    hbp_plan *plan = NULL, *again = NULL;
    hbp_report report = {.struct_size = sizeof report};
    need(in, hbp_plan_epoch(in->context, in->lengths, in->cost, &options, &plan), "epoch");
    for (int times = 0; times < 5; times++) {
        need(in, hbp_plan_save(in->context, plan, in->path, NULL), "save");
        need(in, hbp_plan_load(in->context, in->path, &again), "load");
        hbp_plan_free(again);
        need(in, hbp_plan_validate(in->context, plan, in->lengths, in->cost), "validate");
        need(in, hbp_simulate(in->context, plan, in->cost, NULL, &report), "simulate");
    }
    need(in, hbp_plan_write_json(in->context, plan, in->path), "JSON");
    need(in, hbp_plan_trace(in->context, plan, in->path, NULL), "trace");
    hbp_plan_free(plan);
    unlink(in->path);
}

static void tasks(const inputs *in)
{
    hbp_graph *graph = NULL;
    need(in, hbp_graph_create_workload(in->context, "ofasys-7", in->machine, &graph), "graph");
    for (int times = 0; times < 5; times++) {
        hbp_task_schedule *schedule = NULL, *again = NULL;
        hbp_task_run *run = NULL;
        need(in, hbp_plan_tasks(in->context, graph, in->machine, NULL, &schedule), "tasks");
        need(in, hbp_simulate_tasks(in->context, graph, in->machine, schedule, NULL, &run), "run");
        need(in, hbp_task_schedule_save(in->context, schedule, in->path), "save");
        need(in, hbp_task_schedule_load(in->context, in->path, &again), "load");
        hbp_task_run_free(run);
        hbp_task_schedule_free(again);
        hbp_task_schedule_free(schedule);
    }
    hbp_graph_free(graph);
    unlink(in->path);
}

static void vision(const inputs *in)
{
    hbp_lengths *sized = bench_vision_lengths(in->context, 20000);
    if (!sized)
        return;
    hbp_iterative_fill_options fill = {
        .struct_size = sizeof fill, .max_tokens = 4096, .max_vision = 12, .over_long = HBP_OVERLONG_DROP};
    hbp_packs *packs = NULL;
    hbp_vlm *vlm = NULL;
    need(in, hbp_iterative_fill(in->context, sized, &fill, &packs), "fill");
    hbp_packs_free(packs);
    fill.method = "isf";
    need(in, hbp_iterative_fill(in->context, sized, &fill, &packs), "fill");
    hbp_packs_free(packs);
    need(in, hbp_vlm_create_preset(in->context, "internvl-1.5-26b", &vlm), "vlm");
    hbp_vlm_options options = {.struct_size = sizeof options,
                               .tensor_parallel = 4,
                               .pipeline_stages = 4,
                               .max_tokens = 4096,
                               .max_vision = 12,
                               .over_long = HBP_OVERLONG_DROP};
    hbp_vlm_plan *plan = NULL;
    need(in, hbp_plan_vlm(in->context, sized, vlm, in->machine, &options, &plan), "vlm plan");
    hbp_vlm_plan_free(plan);
    hbp_vlm_free(vlm);
    hbp_lengths_free(sized);
}

static const struct work {
    const char *name;
    void (*run)(const inputs *in);
} works[] = {{"epoch", epoch_default},
             {"epoch paper", epoch_paper},
             {"epoch hierarchy", epoch_hierarchy},
             {"epoch drawn", epoch_drawn},
             {"epoch tight", epoch_tight},
             {"baselines", baselines},
             {"step", step_default},
             {"step modes", step_modes},
             {"step equal", step_equal},
             {"files", files},
             {"tasks", tasks},
             {"vision", vision}};
enum { WORKS = sizeof works / sizeof *works };

/* One run, with the library that is linked: prints seconds and the most bytes held beside the inputs. */
static int run_work(const char *name)
{
    static inputs in;
    const char *reason = NULL;
    bench_data data;
    in.context = bench_context(&in.memory);
    if (!bench_data_open(in.context, 1, &data))
        return 1;
    if (data.count > SAMPLES)
        data.count = SAMPLES;
    in.lengths = bench_lengths(in.context, &data, BENCH_LONGEST);
    data.count = BATCH;
    in.batch = bench_lengths(in.context, &data, BENCH_LONGEST);
    in.cost = bench_cost(in.context, "llama-3.1-8b", 8, &reason);
    need(&in, hbp_machine_create_preset(in.context, "h100:4", &in.machine), "machine");
    snprintf(in.path, sizeof in.path, "/tmp/bench-change-%ld", (long)getpid());
    for (int w = 0; w < WORKS; w++)
        if (strcmp(works[w].name, name) == 0) {
            int64_t held = in.memory.live;
            in.memory.peak = held;
            double start = bench_cpu();
            works[w].run(&in);
            printf("%.9g %lld\n", bench_cpu() - start, (long long)(in.memory.peak - held));
        }
    hbp_machine_free(in.machine);
    hbp_cost_free(in.cost);
    hbp_lengths_free(in.batch);
    hbp_lengths_free(in.lengths);
    bench_data_close(&data);
    hbp_context_free(in.context);
    return 0;
}

static void run_with(const char *self, const char *folder, const char *name, double *seconds, double *bytes)
{
    char command[8192];
    snprintf(command, sizeof command, "LD_LIBRARY_PATH='%s' '%s' --work '%s'", folder, self, name);
    FILE *said = popen(command, "r"); /* the words come from whoever measures */
    if (!said || fscanf(said, "%lf %lf", seconds, bytes) != 2 || pclose(said) != 0) {
        fprintf(stderr, "bench_change: no run of '%s' with %s\n", name, folder);
        exit(1);
    }
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--work") == 0)
        return run_work(argv[2]);
    if (argc < 3) {
        fprintf(stderr, "usage: bench_change OLD NEW [WORK]\n");
        return 2;
    }
    bench_section("the library in %s beside the one in %s: medians of %d pairs", argv[2], argv[1], PAIRS);
    for (int w = 0; w < WORKS; w++) {
        double ratio[PAIRS], old_s = 0, new_s = 0, old_bytes = 0, new_bytes = 0;
        if (argc > 3 && strcmp(argv[3], works[w].name) != 0)
            continue;
        for (int pair = 0; pair < PAIRS; pair++) {
            run_with(argv[0], argv[1], works[w].name, &old_s, &old_bytes);
            run_with(argv[0], argv[2], works[w].name, &new_s, &new_bytes);
            ratio[pair] = new_s / old_s;
        }
        double middle = bench_median(ratio, PAIRS);
        bench_metric(works[w].name, "time, new / old", BENCH_LOWER, middle, "x");
        bench_metric(works[w].name, "bytes, new / old", BENCH_LOWER, new_bytes / old_bytes, "x");
        bench_check(middle <= 1.02 && new_bytes <= old_bytes, works[w].name, "<= 1.02 x, <= 1 x",
                    "%.3f x of %.3f s, %.3f x of %.0f bytes", middle, old_s, new_bytes / old_bytes,
                    old_bytes);
    }
    return bench_end();
}
