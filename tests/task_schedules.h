/* Sound schedules of random graphs, made without a planner: any MetaOp that is ready, some of its operators,
 * any size and any ranks, as soon as these are free or a little later. */
#ifndef HBP_TESTS_TASK_SCHEDULES_H
#define HBP_TESTS_TASK_SCHEDULES_H

#include "cost/scaling.h"
#include "data/machine/machine.h"
#include "data/tasks/task_schedule.h"
#include "graphs.h"

/* A schedule and all that it was made of. */
typedef struct drawn {
    hbp_context *context;
    hbp_graph *graph;
    hbp_machine *machine;
    hbp__meta_graph meta;
    hbp__scaling scaling;
    hbp__task_slices slices;
    int32_t *ranks; /* as in hbp__task_schedule_build */
    hbp_task_summary summary;
    hbp_task_schedule *schedule;
} drawn;

/* Nodes of `gpus_per_node` GPUs with links of 100 GB/s and 10 GB/s and latencies of 1 and 10 us. */
static inline hbp_machine *drawn_machine(hbp_context *context, int32_t nodes, int32_t gpus_per_node,
                                         int32_t domain_gpus)
{
    hbp_machine_fields fields = {.struct_size = sizeof fields};
    fields.nodes = nodes;
    fields.gpus_per_node = gpus_per_node;
    fields.domain_gpus = domain_gpus;
    fields.hbm_bytes = INT64_C(80) << 30;
    fields.nvlink_bytes_per_s = 1e11;
    fields.network_bytes_per_s = 1e10;
    fields.nvlink_latency_ns = 1000;
    fields.network_latency_ns = 10000;
    hbp_machine *machine = NULL;
    OK(context, hbp_machine_create(context, &fields, &machine));
    return machine;
}

/* Begins with a graph, which it takes, on nodes x gpus_per_node GPUs; slices are still to be added. */
static inline void drawn_open(drawn *d, hbp_context *context, hbp_graph *graph, int32_t nodes,
                              int32_t gpus_per_node, int32_t domain_gpus)
{
    *d = (drawn){.context = context, .graph = graph};
    d->machine = drawn_machine(context, nodes, gpus_per_node, domain_gpus);
    d->summary = (hbp_task_summary){.struct_size = sizeof d->summary};
    OK(context, hbp__task_machine(context, d->machine, &d->summary.gpus, &d->summary.domain_gpus));
    OK(context, hbp__meta_graph_open(context, graph, &d->meta));
    OK(context, hbp__scaling_open(context, graph, &d->meta, d->summary.gpus, &d->scaling));
}

static inline void drawn_close(drawn *d)
{
    hbp_task_schedule_free(d->schedule);
    hbp__task_slices_close(&d->slices);
    free(d->ranks);
    hbp__scaling_close(&d->scaling);
    hbp__meta_graph_close(&d->meta);
    hbp_machine_free(d->machine);
    hbp_graph_free(d->graph);
    hbp_context_free(d->context);
}

static inline int64_t drawn_rank_count(const drawn *d)
{
    int64_t count = 0;
    for (int64_t s = 0; s < d->slices.count; s++)
        count += d->slices.slice[s].gpus;
    return count;
}

/* Adds a slice on consecutive ranks from `rank`, of operators that take what their curve says. Slices come in
 * order of waves. */
static inline void drawn_add(drawn *d, int32_t meta_op, int32_t first, int32_t count, int32_t rank,
                             int32_t gpus, int32_t wave, int64_t start_ns)
{
    const hbp__curve *curve = hbp__meta_curve(&d->scaling, meta_op);
    int32_t size = hbp__curve_find(curve, gpus);
    ck_assert_int_ge(size, 0);
    int64_t at = drawn_rank_count(d);
    d->ranks = realloc(d->ranks, (size_t)(at + gpus) * sizeof *d->ranks);
    for (int32_t i = 0; i < gpus; i++)
        d->ranks[at + i] = rank + i;
    OK(d->context, hbp__task_slices_add(d->context, &d->slices,
                                        &(hbp__task_slice){meta_op, first, count, gpus, wave, start_ns,
                                                           start_ns + count * curve->time_ns[size]}));
}

static inline void drawn_build(drawn *d)
{
    OK(d->context, hbp__task_schedule_build(d->context, d->graph, &d->meta, &d->slices, d->ranks, NULL,
                                            &d->summary, &d->schedule));
}

/* Random slices on random ranks, sorted by wave. */
static inline void drawn_fill(drawn *d, hbp__rng *rng)
{
    enum { MOST_RANKS = 64 };
    int32_t gpus = d->summary.gpus, metas = d->meta.count, left = d->meta.operator_count;
    int32_t *done = calloc((size_t)metas, sizeof *done), *wave = calloc((size_t)metas, sizeof *wave);
    int64_t *end = calloc((size_t)metas, sizeof *end), rank_end[MOST_RANKS] = {0};
    int32_t rank_wave[MOST_RANKS] = {0};
    hbp__task_slice *made = calloc((size_t)left, sizeof *made);
    int32_t(*on)[MOST_RANKS] = calloc((size_t)left, sizeof *on), count = 0, waves = 0;
    ck_assert_int_le(gpus, MOST_RANKS);
    while (left) {
        int32_t m = (int32_t)hbp__rng_below(rng, (uint64_t)metas), ready = done[m] < d->meta.meta_op[m].count;
        int32_t next = wave[m];
        int64_t start = end[m];
        for (int64_t e = d->meta.in_first[m]; e < d->meta.in_first[m + 1]; e++) {
            int32_t from = d->meta.edges[d->meta.in_edges[e]].from;
            ready = ready && done[from] == d->meta.meta_op[from].count;
            next = wave[from] > next ? wave[from] : next;
            start = end[from] > start ? end[from] : start;
        }
        if (!ready)
            continue;
        const hbp__curve *curve = hbp__meta_curve(&d->scaling, m);
        int32_t size = (int32_t)hbp__rng_below(rng, (uint64_t)curve->sizes), n = curve->size[size];
        int32_t operators = (int32_t)random_between(rng, 1, d->meta.meta_op[m].count - done[m]), at = 0;
        uint32_t all[MOST_RANKS];
        for (int32_t r = 0; r < gpus; r++)
            all[r] = (uint32_t)r;
        hbp__rng_shuffle_u32(rng, all, (uint64_t)gpus);
        int consecutive = random_between(rng, 0, 1) == 0;
        for (int32_t r = 0; r < gpus; r++)
            for (int32_t i = 0; i < n; i++)
                if (consecutive ? r == i + (int32_t)all[0] % (gpus - n + 1) : (int32_t)all[i] == r) {
                    on[count][at++] = r;
                    next = rank_wave[r] > next ? rank_wave[r] : next;
                    start = rank_end[r] > start ? rank_end[r] : start;
                }
        ck_assert_int_eq(at, n);
        start += random_between(rng, 0, 3) ? 0 : random_between(rng, 0, 1000);
        made[count] = (hbp__task_slice){
            m, done[m], operators, n, next, start, start + operators * curve->time_ns[size]};
        waves = next + 1 > waves ? next + 1 : waves;
        done[m] += operators;
        wave[m] = next + 1;
        end[m] = made[count].end_ns;
        for (int32_t i = 0; i < n; i++) {
            rank_wave[on[count][i]] = next + 1;
            rank_end[on[count][i]] = end[m];
        }
        left -= operators;
        count++;
    }
    for (int32_t w = 0; w < waves; w++)
        for (int32_t s = 0; s < count; s++)
            if (made[s].wave == w) {
                int64_t at = drawn_rank_count(d);
                d->ranks = realloc(d->ranks, (size_t)(at + made[s].gpus) * sizeof *d->ranks);
                memcpy(&d->ranks[at], on[s], (size_t)made[s].gpus * sizeof **on);
                OK(d->context, hbp__task_slices_add(d->context, &d->slices, &made[s]));
            }
    free(done);
    free(wave);
    free(end);
    free(made);
    free(on);
}

/* A random graph with a random schedule on up to 12 GPUs. */
static inline void drawn_random(drawn *d, hbp__rng *rng)
{
    static const int32_t machines[][3] = {{1, 4, 4}, {1, 8, 8}, {2, 4, 4}, {2, 6, 3}, {3, 4, 1}, {1, 5, 8}};
    const int32_t *m = machines[hbp__rng_below(rng, 6)];
    hbp_context *context = test_context();
    graph_sizes sizes = {.most_gpus = 4};
    drawn_open(d, context, random_graph(context, rng, &sizes), m[0], m[1], m[2]);
    drawn_fill(d, rng);
    drawn_build(d);
}

/* Ranks of slice s of a schedule. */
static inline const int32_t *drawn_ranks(const hbp_task_schedule *schedule, int64_t s)
{
    return &schedule->group_ranks[schedule->group_offsets[schedule->slice_groups[s]]];
}

#endif
