/* A partition as an object: its candidates, their order, and its view. */
#include <string.h>

#include "base/options.h"
#include "pipeline/partition.h"

hbp_status hbp__partition_new(hbp_context *context, const hbp__stages *stages, int32_t room,
                              hbp_layer_partition **out)
{
    const hbp__memory *memory = &context->memory;
    hbp_layer_partition *made = hbp__new_zero(memory, 1, sizeof *made);
    if (!made)
        return hbp__fail_memory(context, "a partition");
    made->memory = *memory;
    made->stages = stages->stages;
    made->chunks = stages->chunks;
    made->micro_batches = stages->pipeline->micro_batches;
    made->room = room;
    uint64_t count = (uint64_t)stages->stages, row = (uint64_t)stages->chunks + 1;
    made->ranked = hbp__new(memory, (uint64_t)room, sizeof *made->ranked);
    made->predicted_ns = hbp__new(memory, (uint64_t)room, sizeof *made->predicted_ns);
    made->simulated_ns = hbp__new(memory, (uint64_t)room, sizeof *made->simulated_ns);
    made->cut_bytes = hbp__new(memory, (uint64_t)room, sizeof *made->cut_bytes);
    made->variance = hbp__new(memory, (uint64_t)room, sizeof *made->variance);
    made->cuts = hbp__new(memory, (uint64_t)room * row, sizeof *made->cuts);
    made->stage_ns = hbp__new(memory, count, sizeof *made->stage_ns);
    made->stage_busy_ns = hbp__new(memory, count, sizeof *made->stage_busy_ns);
    made->stage_bytes = hbp__new(memory, count, sizeof *made->stage_bytes);
    made->order = hbp__new(memory, (uint64_t)made->micro_batches, sizeof *made->order);
    if (!made->ranked || !made->predicted_ns || !made->simulated_ns || !made->cut_bytes || !made->variance ||
        !made->cuts || !made->stage_ns || !made->stage_busy_ns || !made->stage_bytes || !made->order) {
        hbp_layer_partition_free(made);
        return hbp__fail_memory(context, "a partition");
    }
    for (int32_t m = 0; m < made->micro_batches; m++)
        made->order[m] = m;
    *out = made;
    return HBP_OK;
}

void hbp_layer_partition_free(hbp_layer_partition *partition)
{
    if (!partition)
        return;
    hbp__memory memory = partition->memory;
    void *blocks[] = {partition->ranked,
                      partition->predicted_ns,
                      partition->simulated_ns,
                      partition->cut_bytes,
                      partition->variance,
                      partition->cuts,
                      partition->stage_ns,
                      partition->stage_busy_ns,
                      partition->stage_bytes,
                      partition->order,
                      partition};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        hbp__delete(&memory, blocks[i]);
}

void hbp__partition_add(hbp_layer_partition *partition, const hbp__stages *stages, const int32_t *cuts,
                        int32_t ranked)
{
    size_t bytes = ((size_t)partition->chunks + 1) * sizeof *cuts;
    for (int32_t i = 0; i < partition->candidates; i++)
        if (memcmp(hbp__partition_cuts(partition, i), cuts, bytes) == 0) {
            partition->ranked[i] |= ranked;
            return;
        }
    int32_t at = partition->candidates++;
    memcpy(hbp__partition_cuts(partition, at), cuts, bytes);
    partition->ranked[at] = ranked;
    partition->predicted_ns[at] =
        hbp__stages_predict(stages, hbp__stages_weigh(stages, cuts, partition->stage_ns));
    partition->simulated_ns[at] = 0;
    partition->variance[at] = hbp__stages_variance(stages, partition->stage_ns);
    partition->cut_bytes[at] = hbp__stages_cut_bytes(stages, cuts);
}

/* Whether candidate b goes before a. */
static int goes_before(const hbp_layer_partition *partition, int32_t b, int32_t a)
{
    if (partition->simulated_ns[b] != partition->simulated_ns[a])
        return partition->simulated_ns[b] < partition->simulated_ns[a];
    if (partition->predicted_ns[b] != partition->predicted_ns[a])
        return partition->predicted_ns[b] < partition->predicted_ns[a];
    const int32_t *these = hbp__partition_cuts(partition, b), *those = hbp__partition_cuts(partition, a);
    for (int32_t p = 1; p < partition->chunks; p++)
        if (these[p] != those[p])
            return these[p] < those[p];
    return 0;
}

#define SWAP(type, column, a, b)                                                                             \
    do {                                                                                                     \
        type swap = (column)[a];                                                                             \
        (column)[a] = (column)[b];                                                                           \
        (column)[b] = swap;                                                                                  \
    } while (0)

static void swap_candidates(hbp_layer_partition *partition, int32_t a, int32_t b)
{
    SWAP(int32_t, partition->ranked, a, b);
    SWAP(int64_t, partition->predicted_ns, a, b);
    SWAP(int64_t, partition->simulated_ns, a, b);
    SWAP(int64_t, partition->cut_bytes, a, b);
    SWAP(double, partition->variance, a, b);
    int32_t row = partition->chunks + 1;
    for (int32_t p = 0; p < row; p++)
        SWAP(int32_t, partition->cuts, a * row + p, b * row + p);
}

void hbp__partition_sort(hbp_layer_partition *partition, int32_t first)
{
    for (int32_t i = first + 1; i < partition->candidates; i++)
        for (int32_t j = i; j > first && goes_before(partition, j, j - 1); j--)
            swap_candidates(partition, j, j - 1);
}

hbp_status hbp_layer_partition_get_summary(hbp_context *context, const hbp_layer_partition *partition,
                                           hbp_layer_partition_summary *summary)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, partition, "partition"));
    return hbp__struct_write(context, summary, &partition->summary, sizeof partition->summary, "summary");
}

hbp_status hbp_layer_partition_get_view(const hbp_layer_partition *partition, hbp_layer_partition_view *view)
{
    hbp_layer_partition_view all = {0};
    if (partition)
        all = (hbp_layer_partition_view){.stages = partition->stages,
                                         .chunks = partition->chunks,
                                         .micro_batches = partition->micro_batches,
                                         .cuts = partition->cuts,
                                         .stage_ns = partition->stage_ns,
                                         .stage_busy_ns = partition->stage_busy_ns,
                                         .stage_bytes = partition->stage_bytes,
                                         .order = partition->order,
                                         .candidates = partition->candidates,
                                         .candidate_cuts = partition->cuts,
                                         .candidate_ranked = partition->ranked,
                                         .candidate_predicted_ns = partition->predicted_ns,
                                         .candidate_simulated_ns = partition->simulated_ns,
                                         .candidate_cut_bytes = partition->cut_bytes,
                                         .candidate_variance = partition->variance};
    return hbp__view_write(view, partition, &all, sizeof all);
}
