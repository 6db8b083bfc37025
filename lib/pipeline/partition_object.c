/* A partition as an object: its candidates, their order, and its view. */
#include <string.h>

#include "base/options.h"
#include "pipeline/partition.h"

hbp_status hbp__partition_new(hbp_context *context, const hbp__stages *stages, int32_t room,
                              hbp_partition **out)
{
    const hbp__memory *memory = &context->memory;
    hbp_partition *made = hbp__new_zero(memory, 1, sizeof *made);
    if (!made)
        return hbp__fail_memory(context, "a partition");
    made->memory = *memory;
    made->stages = stages->stages;
    made->chunks = stages->chunks;
    made->micro_batches = stages->pipeline->micro_batches;
    made->room = room;
    uint64_t count = (uint64_t)stages->stages, row = (uint64_t)stages->chunks + 1;
    made->candidate = hbp__new(memory, (uint64_t)room, sizeof *made->candidate);
    made->cuts = hbp__new(memory, (uint64_t)room * row, sizeof *made->cuts);
    made->stage_ns = hbp__new(memory, count, sizeof *made->stage_ns);
    made->stage_busy_ns = hbp__new(memory, count, sizeof *made->stage_busy_ns);
    made->stage_bytes = hbp__new(memory, count, sizeof *made->stage_bytes);
    made->order = hbp__new(memory, (uint64_t)made->micro_batches, sizeof *made->order);
    if (!made->candidate || !made->cuts || !made->stage_ns || !made->stage_busy_ns || !made->stage_bytes ||
        !made->order) {
        hbp_partition_free(made);
        return hbp__fail_memory(context, "a partition");
    }
    for (int32_t m = 0; m < made->micro_batches; m++)
        made->order[m] = m;
    *out = made;
    return HBP_OK;
}

void hbp_partition_free(hbp_partition *partition)
{
    if (!partition)
        return;
    hbp__memory memory = partition->memory;
    void *blocks[] = {partition->candidate,
                      partition->cuts,
                      partition->stage_ns,
                      partition->stage_busy_ns,
                      partition->stage_bytes,
                      partition->order,
                      partition};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        hbp__delete(&memory, blocks[i]);
}

void hbp__partition_add(hbp_partition *partition, const hbp__stages *stages, const int32_t *cuts,
                        int32_t ranked)
{
    size_t bytes = ((size_t)partition->chunks + 1) * sizeof *cuts;
    for (int32_t i = 0; i < partition->candidates; i++)
        if (memcmp(hbp__partition_cuts(partition, i), cuts, bytes) == 0) {
            partition->candidate[i].ranked |= ranked;
            return;
        }
    hbp_partition_candidate *candidate = &partition->candidate[partition->candidates];
    memcpy(hbp__partition_cuts(partition, partition->candidates++), cuts, bytes);
    *candidate = (hbp_partition_candidate){.struct_size = sizeof *candidate, .ranked = ranked};
    candidate->predicted_ns =
        hbp__stages_predict(stages, hbp__stages_weigh(stages, cuts, partition->stage_ns));
    candidate->stage_variance = hbp__stages_variance(stages, partition->stage_ns);
    candidate->cut_bytes = hbp__stages_cut_bytes(stages, cuts);
}

/* Whether candidate b goes before a. */
static int goes_before(const hbp_partition *partition, int32_t b, int32_t a)
{
    const hbp_partition_candidate *x = &partition->candidate[b], *y = &partition->candidate[a];
    if (x->simulated_ns != y->simulated_ns)
        return x->simulated_ns < y->simulated_ns;
    if (x->predicted_ns != y->predicted_ns)
        return x->predicted_ns < y->predicted_ns;
    const int32_t *these = hbp__partition_cuts(partition, b), *those = hbp__partition_cuts(partition, a);
    for (int32_t p = 1; p < partition->chunks; p++)
        if (these[p] != those[p])
            return these[p] < those[p];
    return 0;
}

static void swap_candidates(hbp_partition *partition, int32_t a, int32_t b)
{
    hbp_partition_candidate swap = partition->candidate[a];
    partition->candidate[a] = partition->candidate[b];
    partition->candidate[b] = swap;
    int32_t *these = hbp__partition_cuts(partition, a), *those = hbp__partition_cuts(partition, b);
    for (int32_t p = 0; p <= partition->chunks; p++) {
        int32_t cut = these[p];
        these[p] = those[p];
        those[p] = cut;
    }
}

void hbp__partition_sort(hbp_partition *partition, int32_t first)
{
    for (int32_t i = first + 1; i < partition->candidates; i++)
        for (int32_t j = i; j > first && goes_before(partition, j, j - 1); j--)
            swap_candidates(partition, j, j - 1);
}

hbp_status hbp_partition_get_summary(hbp_context *context, const hbp_partition *partition,
                                     hbp_partition_summary *summary)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, partition, "partition"));
    return hbp__struct_write(context, summary, &partition->summary, sizeof partition->summary, "summary");
}

hbp_status hbp_partition_get_view(const hbp_partition *partition, hbp_partition_view *view)
{
    hbp_partition_view all = {0};
    if (partition)
        all = (hbp_partition_view){.stages = partition->stages,
                                   .chunks = partition->chunks,
                                   .micro_batches = partition->micro_batches,
                                   .cuts = partition->cuts,
                                   .stage_ns = partition->stage_ns,
                                   .stage_busy_ns = partition->stage_busy_ns,
                                   .stage_bytes = partition->stage_bytes,
                                   .order = partition->order};
    return hbp__view_write(view, partition, &all, sizeof all);
}

int64_t hbp_partition_count_candidates(const hbp_partition *partition)
{
    return partition ? partition->candidates : 0;
}

hbp_status hbp_partition_get_candidate(hbp_context *context, const hbp_partition *partition, int64_t index,
                                       hbp_partition_candidate *candidate, const int32_t **cuts)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, partition, "partition"));
    if (index < 0 || index >= partition->candidates)
        return hbp__fail(context, HBP_E_INVALID, "index is %lld; there are %d candidates", (long long)index,
                         (int)partition->candidates);
    const hbp_partition_candidate *from = &partition->candidate[index];
    HBP__TRY(hbp__struct_write(context, candidate, from, sizeof *from, "candidate"));
    if (cuts)
        *cuts = hbp__partition_cuts(partition, index);
    return HBP_OK;
}
