/* Saving, loading and opening a plan of 10M samples, beside zlib on the same columns in the same run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "common.h"
#include "hbp/io.h"

enum { PAIRS = 5, READS = 1000, COLUMNS = 18 };

typedef struct column {
    const void *data;
    int64_t bytes;
} column;

/* The columns of a plan as they lie in memory. */
static int64_t list_columns(const hbp_plan *plan, column columns[COLUMNS])
{
    hbp_plan_view v = {.struct_size = sizeof v};
    (void)hbp_plan_get_view(plan, &v);
    const column all[COLUMNS] = {
        {v.step_offsets, (v.steps + 1) * 8},
        {v.step_ns, v.steps * 8},
        {v.step_loss_tokens, v.steps * 8},
        {v.step_samples, v.steps * 8},
        {v.step_tokens, v.steps * 8},
        {v.micro_batch_offsets, (v.micro_batches + 1) * 8},
        {v.micro_batch_ns, v.micro_batches * 8},
        {v.pack_offsets, (v.packs + 1) * 8},
        {v.pack_capacity, v.packs * 8},
        {v.pack_tokens, v.packs * 8},
        {v.pack_squares, v.packs * 8},
        {v.pack_ns, v.packs * 8},
        {v.pack_bytes, v.packs * 8},
        {v.sample_ids, v.samples * 8},
        {v.pack_ranks, v.packs * 4},
        {v.pack_sp, v.packs * 4},
        {v.pack_recompute, v.packs * 4},
        {v.sample_tokens, v.samples * 4},
    };
    int64_t bytes = 0;
    for (int k = 0; k < COLUMNS; k++) {
        columns[k] = all[k];
        bytes += all[k].bytes;
    }
    return bytes;
}

/* One zlib stream a column, level 1; the seconds it takes, and the bytes it comes to. */
static double time_zlib(const column columns[COLUMNS], int64_t *compressed)
{
    int64_t most = 0;
    for (int k = 0; k < COLUMNS; k++)
        most = columns[k].bytes > most ? columns[k].bytes : most;
    unsigned char *out = bench_allocate((int64_t)compressBound((uLong)most), 1);
    *compressed = 0;
    double start = bench_cpu();
    for (int k = 0; k < COLUMNS; k++) {
        uLongf room = compressBound((uLong)most);
        if (compress2(out, &room, columns[k].data, (uLong)columns[k].bytes, 1) != Z_OK) {
            fprintf(stderr, "zlib failed\n");
            exit(1);
        }
        *compressed += (int64_t)room;
    }
    double seconds = bench_cpu() - start;
    free(out);
    return seconds;
}

static hbp_plan *make_plan(hbp_context *context, int64_t count)
{
    uint32_t *length = bench_draw_standin(count, 0);
    hbp_cost *cost = bench_cost(context, "llama-3.1-8b", 4, NULL);
    hbp_lengths *lengths = NULL;
    hbp_plan *plan = NULL;
    bench_need(context, hbp_lengths_create_u32(context, length, count, NULL, &lengths), "lengths");
    bench_need(context, hbp_plan_epoch(context, lengths, cost, NULL, &plan), "plan");
    hbp_lengths_free(lengths);
    hbp_cost_free(cost);
    free(length);
    return plan;
}

static int64_t file_size(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 ? (int64_t)status.st_size : -1;
}

static void compare_zlib(hbp_context *context, const hbp_plan *plan, const char *path)
{
    column columns[COLUMNS];
    int64_t bytes = list_columns(plan, columns), compressed = 0;
    double zlib[PAIRS], save[PAIRS], save_wall[PAIRS], load[PAIRS], load_wall[PAIRS], ratio[PAIRS];
    for (int k = 0; k < PAIRS; k++) {
        zlib[k] = time_zlib(columns, &compressed);
        double cpu = bench_cpu(), wall = bench_wall();
        bench_need(context, hbp_plan_save(context, plan, path, NULL), "saving");
        save[k] = bench_cpu() - cpu;
        save_wall[k] = bench_wall() - wall;
        hbp_plan *loaded = NULL;
        cpu = bench_cpu();
        wall = bench_wall();
        bench_need(context, hbp_plan_load(context, path, &loaded), "loading");
        load[k] = bench_cpu() - cpu;
        load_wall[k] = bench_wall() - wall;
        if (bench_digest(context, loaded) != bench_digest(context, plan)) {
            fprintf(stderr, "the plan read is not the plan written\n");
            exit(1);
        }
        hbp_plan_free(loaded);
        ratio[k] = zlib[k] / save[k];
    }
    double megabytes = (double)bytes * 1e-6;
    bench_line("columns, file, zlib's streams", "%.1f MB, %.1f MB, %.1f MB", megabytes,
               (double)file_size(path) * 1e-6, (double)compressed * 1e-6);
    double zlib_rate = megabytes / bench_median(zlib, PAIRS);
    bench_line("zlib level 1", "%.0f MB/s", zlib_rate);
    bench_line("saving", "%.0f MB/s of the CPU, %.0f MB/s on the wall clock",
               megabytes / bench_median(save, PAIRS), megabytes / bench_median(save_wall, PAIRS));
    bench_line("saving / zlib, in speed", "%.2f", bench_median(ratio, PAIRS));
    bench_metric_beside("", "saving", BENCH_HIGHER, megabytes / bench_median(save, PAIRS), "MB/s",
                        "zlib level 1", bench_median(ratio, PAIRS));
    bench_metric("", "loading", BENCH_HIGHER, megabytes / bench_median(load, PAIRS), "MB/s");
    bench_metric("", "file", BENCH_LOWER, (double)file_size(path) * 1e-6, "MB");
    bench_line("loading", "%.0f MB/s of the CPU, %.0f MB/s on the wall clock",
               megabytes / bench_median(load, PAIRS), megabytes / bench_median(load_wall, PAIRS));
}

static void time_steps(hbp_context *context, const char *path)
{
    hbp_plan_file *file = NULL;
    hbp_plan_summary summary = {.struct_size = sizeof summary};
    double start = bench_wall();
    bench_need(context, hbp_plan_file_open(context, path, &file), "opening");
    double opened = bench_wall() - start;
    bench_need(context, hbp_plan_file_get_summary(context, file, &summary), "summary");
    static double wall[READS], cpu[READS];
    uint64_t state = 0;
    for (int k = 0; k < READS; k++) {
        int64_t step = (int64_t)(bench_random(&state) % (uint64_t)summary.steps);
        hbp_plan *part = NULL;
        start = bench_wall();
        double cpu_start = bench_cpu();
        bench_need(context, hbp_plan_file_read(context, file, step, 1, &part), "reading a step");
        cpu[k] = 1e3 * (bench_cpu() - cpu_start);
        wall[k] = 1e3 * (bench_wall() - start);
        hbp_plan_free(part);
    }
    hbp_plan_file_free(file);
    bench_line("opening", "%.2f ms; %lld steps", 1e3 * opened, (long long)summary.steps);
    double middle = bench_median(wall, READS), cpu_middle = bench_median(cpu, READS);
    bench_check(middle < 1, "a random step, wall clock, median", "< 1 ms", "%.3f ms", middle);
    bench_check(wall[READS - 1] < 1, "a random step, wall clock, most of 1000", "< 1 ms", "%.3f ms",
                wall[READS - 1]);
    bench_metric("", "a random step, median", BENCH_LOWER, middle, "ms");
    bench_metric("", "opening", BENCH_LOWER, 1e3 * opened, "ms");
    bench_line("a random step, CPU", "median %.3f ms, most %.3f ms", cpu_middle, cpu[READS - 1]);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: bench_file FILE    (written and removed)\n");
        return 2;
    }
    hbp_context *context = bench_context(NULL);
    bench_section("A plan of 10M samples on disk, medians of %d", (int)PAIRS);
    hbp_plan *plan = make_plan(context, 10000000);
    compare_zlib(context, plan, argv[1]);
    hbp_plan_free(plan);
    time_steps(context, argv[1]);
    remove(argv[1]);
    hbp_context_free(context);
    return bench_end();
}
