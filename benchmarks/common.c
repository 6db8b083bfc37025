#include "common.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int checks, misses;

static void *count_alloc(void *user, uint64_t bytes)
{
    bench_memory *memory = user;
    void *block = malloc((size_t)bytes);
    if (!block)
        return NULL;
    memory->live += (int64_t)bytes;
    if (memory->live > memory->peak)
        memory->peak = memory->live;
    return block;
}

static void *count_resize(void *user, void *block, uint64_t old_bytes, uint64_t new_bytes)
{
    bench_memory *memory = user;
    void *moved = realloc(block, (size_t)new_bytes);
    if (!moved)
        return NULL;
    memory->live += (int64_t)new_bytes - (int64_t)old_bytes;
    if (memory->live > memory->peak)
        memory->peak = memory->live;
    return moved;
}

static void count_release(void *user, void *block, uint64_t bytes)
{
    bench_memory *memory = user;
    memory->live -= (int64_t)bytes;
    free(block);
}

hbp_context *bench_context(bench_memory *memory)
{
    hbp_allocator allocator = {sizeof allocator, count_alloc, count_resize, count_release, memory};
    hbp_context_options options = {.struct_size = sizeof options};
    if (memory)
        options.allocator = &allocator;
    hbp_context *context = NULL;
    bench_need(NULL, hbp_context_create(&options, &context), "a context");
    return context;
}

void bench_need(hbp_context *context, hbp_status status, const char *what)
{
    if (status >= 0)
        return;
    fflush(stdout);
    fprintf(stderr, "%s: %s (%s)\n", what, context ? hbp_context_message(context) : "",
            hbp_status_name(status));
    exit(1);
}

void *bench_allocate(int64_t count, int64_t size)
{
    void *block = malloc((size_t)(count > 0 ? count : 1) * (size_t)size);
    if (!block)
        bench_need(NULL, HBP_E_NO_MEMORY, "the benchmark's own arrays");
    return block;
}

static double seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

double bench_cpu(void)
{
    return seconds(CLOCK_PROCESS_CPUTIME_ID);
}

double bench_wall(void)
{
    return seconds(CLOCK_MONOTONIC);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(double *values, int64_t count)
{
    qsort(values, (size_t)count, sizeof *values, compare);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

double bench_sort(const uint32_t *length, int64_t count)
{
    typedef struct item {
        uint32_t length, index;
    } item;
    double start = bench_cpu();
    item *from = bench_allocate(count, sizeof *from), *to = bench_allocate(count, sizeof *to);
    int64_t start_at[4][256] = {{0}};
    for (int64_t i = 0; i < count; i++) {
        from[i] = (item){length[i], (uint32_t)i};
        for (int pass = 0; pass < 4; pass++)
            start_at[pass][length[i] >> (8 * pass) & 255]++;
    }
    for (int pass = 0; pass < 4; pass++) {
        int64_t *at = start_at[pass];
        for (int64_t value = 0, sum = 0; value < 256; value++) {
            int64_t here = at[value];
            at[value] = sum;
            sum += here;
        }
        for (int64_t i = 0; i < count; i++)
            to[at[from[i].length >> (8 * pass) & 255]++] = from[i];
        item *other = from;
        from = to;
        to = other;
    }
    double seconds = bench_cpu() - start;
    for (int64_t i = 1; i < count; i++)
        if (from[i - 1].length > from[i].length) {
            fprintf(stderr, "the sort failed at %lld\n", (long long)i);
            exit(1);
        }
    free(from);
    free(to);
    return seconds;
}

uint64_t bench_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

void bench_section(const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    printf("\n== %s\n", text);
    fflush(stdout);
    bench_metrics_section(text);
}

void bench_check(int met, const char *name, const char *target, const char *format, ...)
{
    char text[160];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    checks++;
    misses += !met;
    printf("%-44s %-34s target %-28s %s\n", name, text, target, met ? "met" : "MISSED");
    fflush(stdout);
}

void bench_line(const char *name, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    printf("%-44s ", name);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n");
    fflush(stdout);
}

int bench_end(void)
{
    printf("\n%d of %d figures met\n", checks - misses, checks);
    int failed = bench_metrics_write();
    return failed || ferror(stdout) || fflush(stdout) ? 1 : 0;
}

hbp_machine *bench_nodes(hbp_context *context, const char *preset, int32_t nodes)
{
    hbp_machine *machine = NULL;
    char text[64];
    snprintf(text, sizeof text, "%s:%d", preset, (int)nodes);
    bench_need(context, hbp_machine_create_preset(context, text, &machine), text);
    return machine;
}

hbp_cost *bench_cost(hbp_context *context, const char *model_name, int32_t nodes, const char **reason)
{
    hbp_model *model = NULL;
    hbp_machine *machine = bench_nodes(context, "h100", nodes);
    hbp_cost *cost = NULL;
    bench_need(context, hbp_model_create_preset(context, model_name, &model), model_name);
    hbp_status status = hbp_cost_create(context, model, machine, NULL, &cost);
    if (status != HBP_E_INFEASIBLE || !reason)
        bench_need(context, status, "the cost");
    hbp_model_free(model);
    hbp_machine_free(machine);
    if (reason)
        *reason = cost ? "" : hbp_context_message(context);
    return cost;
}

uint64_t bench_digest(hbp_context *context, const hbp_plan *plan)
{
    hbp_plan_summary summary = {.struct_size = sizeof summary};
    bench_need(context, hbp_plan_get_summary(context, plan, &summary), "summary");
    return summary.digest;
}

int64_t bench_packs_bound(const hbp_packs *packs)
{
    hbp_packs_view view = {.struct_size = sizeof view};
    (void)hbp_packs_get_view(packs, &view);
    return view.group_bounds[0];
}

int64_t bench_count_packs(const hbp_packs *packs)
{
    hbp_packs_view view = {.struct_size = sizeof view};
    (void)hbp_packs_get_view(packs, &view);
    return view.packs;
}

int64_t bench_tokens_per_step(const hbp_groups *groups)
{
    hbp_groups_view view = {.struct_size = sizeof view};
    (void)hbp_groups_get_view(groups, &view);
    return view.tokens_per_step;
}
