/* Three tasks of one model on two nodes: what runs where and when, from measured times.
 *
 *   cc tasks.c $(pkg-config --cflags --libs hbp) && ./a.out */
#include <hbp/hbp.h>
#include <stdio.h>

#define TRY(call)                                                                                            \
    do {                                                                                                     \
        if ((call) < 0) {                                                                                    \
            fprintf(stderr, "%s\n", hbp_context_message(ctx));                                               \
            return 1;                                                                                        \
        }                                                                                                    \
    } while (0)

/* A chain of layers; those of one type share their weights between tasks. Times are made up. */
typedef struct chain {
    const char *type;
    const char *task;
    int64_t layers;
    int64_t width;
    int64_t tokens;
    int64_t ns[6]; /* of a layer, forward and backward, on 1, 2, 4, 8, 16, 32 GPUs */
} chain;

static const chain chains[] = {
    {"image", "image-text", 24, 1024, 257, {9800000, 5000000, 2600000, 1400000, 800000, 500000}},
    {"text", "image-text", 12, 768, 77, {2100000, 1150000, 675000, 440000, 320000, 260000}},
    {"audio", "audio-text", 12, 768, 229, {5400000, 2800000, 1500000, 850000, 520000, 360000}},
    {"text", "audio-text", 12, 768, 77, {2100000, 1150000, 675000, 440000, 320000, 260000}},
    {"image", "captions", 24, 1024, 257, {4900000, 2550000, 1400000, 800000, 480000, 330000}},
    {"decoder", "captions", 24, 1024, 334, {17600000, 8900000, 4600000, 2500000, 1400000, 900000}},
};

int main(void)
{
    static const int32_t gpus[] = {1, 2, 4, 8, 16, 32};
    hbp_context *ctx = NULL;
    hbp_graph *graph = NULL;
    hbp_machine *machine = NULL;
    hbp_task_schedule *schedule = NULL;
    if (hbp_context_create(NULL, &ctx) < 0)
        return 1;
    TRY(hbp_graph_create(ctx, &graph));
    TRY(hbp_machine_create_preset(ctx, "h100:2", &machine));
    int32_t first[6];
    for (int i = 0; i < 6; i++) {
        const chain *c = &chains[i];
        hbp_operator layer = {.struct_size = sizeof layer};
        TRY(hbp_graph_add_profile(ctx, graph, gpus, c->ns, 6, &layer.profile));
        int64_t parameters = 12 * c->width * c->width, batch = 64;
        char name[64];
        snprintf(name, sizeof name, "%s/%s", c->task, c->type);
        layer.name = name;
        layer.type = layer.parameters = c->type;
        layer.task = c->task;
        layer.batch = batch;
        layer.sequence = c->tokens;
        layer.width = c->width;
        layer.split = c->width / 64;           /* heads */
        layer.state_bytes = 4 * parameters;    /* bf16 weights and gradients, on each GPU */
        layer.sharded_bytes = 12 * parameters; /* masters and moments, shared out */
        layer.gradient_bytes = 2 * parameters;
        layer.output_bytes = 2 * batch * c->tokens * c->width;
        layer.activation_bytes = 16 * layer.output_bytes;
        TRY(hbp_graph_add_operators(ctx, graph, &layer, c->layers, &first[i]));
    }
    TRY(hbp_graph_add_edge(ctx, graph, first[4] + 23, first[5], -1)); /* the picture goes to the decoder */
    TRY(hbp_plan_tasks(ctx, graph, machine, NULL, &schedule));

    hbp_task_summary summary = {.struct_size = sizeof summary};
    TRY(hbp_task_schedule_get_summary(ctx, schedule, &summary));
    printf("%.2f ms a step on %d GPUs, at most %.2f %% above the best there can be\n",
           1e-6 * (double)summary.makespan_ns, (int)summary.gpus, 100 * summary.gap);

    /* What rank 3 runs, in its order. */
    hbp_task_schedule_view view = {.struct_size = sizeof view};
    hbp_task_schedule_get_view(schedule, &view);
    int64_t slices = view.slices;
    for (int64_t s = 0; s < slices; s++)
        for (int64_t r = view.group_offsets[view.slice_groups[s]];
             r < view.group_offsets[view.slice_groups[s] + 1]; r++)
            if (view.group_ranks[r] == 3)
                printf("rank 3: %-20s layers %2d to %2d with %d GPUs\n",
                       view.meta_op_names[view.slice_meta_ops[s]], (int)view.slice_firsts[s],
                       (int)(view.slice_firsts[s] + view.slice_operators[s] - 1),
                       (int)(view.group_offsets[view.slice_groups[s] + 1] -
                             view.group_offsets[view.slice_groups[s]]));

    hbp_task_schedule_free(schedule);
    hbp_machine_free(machine);
    hbp_graph_free(graph);
    hbp_context_free(ctx);
    return 0;
}
