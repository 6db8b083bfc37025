/* Plain 1F1B (Narayanan et al., PipeDream, 2019) and the interleaved 1F1B of Megatron-LM (Narayanan et al.,
 * 2021, section 2.2): stage s runs so many forwards to warm up, then a forward and a backward in turns, then
 * the backwards that are left. Interleaved, the i-th forward of every stage is that of micro-batch
 * i div (S V) S + i mod S on the stage's chunk i mod (S V) div S; backwards go the same way with the chunks
 * reversed.
 *
 * Neither order can wait for itself. Give the i-th forward of stage s the rank 2 (s + i) and the j-th
 * backward, which follows forward w_s + j of the warm-up w_s, one more than that forward's. In the
 * interleaved order every input comes from an operation of lower rank, because w_s falls by 2 from stage to
 * stage; in the plain one, where w_s falls by 1, a backward's comes from a backward of the same rank on a
 * later stage. */
#include "simulate/pipeline/pipeline.h"

#include "base/checked.h"

/* The i-th forward, or backward, of stage `stage`. */
static hbp__operation operation(const hbp__schedule *schedule, int32_t stage, int32_t direction, int64_t i)
{
    int64_t stages = schedule->stages, virtual_stages = schedule->chunks / stages;
    hbp__operation operation = {stage, stage, (int32_t)i, direction};
    if (virtual_stages > 1) {
        int64_t round = stages * virtual_stages, v = i % round / stages;
        v = direction == HBP_FORWARD ? v : virtual_stages - 1 - v;
        operation.chunk = (int32_t)(v * stages + stage);
        operation.place = (int32_t)(i / round * stages + i % stages);
    }
    return operation;
}

static void fill_slots(hbp__schedule *schedule, int32_t stage)
{
    int64_t stages = schedule->stages, virtual_stages = schedule->chunks / stages;
    int64_t all = schedule->micro_batches * virtual_stages, after = stages - stage - 1;
    int64_t warm_up = virtual_stages > 1 ? 2 * after + (virtual_stages - 1) * stages : after;
    int64_t forward = 0, backward = 0;
    hbp__operation *slot = schedule->slot + stage * 2 * all;
    while (backward < all) {
        if (forward < all && forward <= warm_up + backward)
            *slot++ = operation(schedule, stage, HBP_FORWARD, forward++);
        else
            *slot++ = operation(schedule, stage, HBP_BACKWARD, backward++);
    }
}

/* 1 where an operation's input has been made; ready_* serve as marks. */
static int64_t *mark(hbp__schedule *schedule, int32_t direction, int32_t chunk, int32_t place)
{
    int64_t *ready = direction == HBP_FORWARD ? schedule->ready_forward : schedule->ready_backward;
    return &ready[(int64_t)chunk * schedule->micro_batches + place];
}

/* Runs stage `stage` as far as places 0 .. `last` and its inputs allow; returns where the line ends then.
 * free_at counts its operations. */
static int64_t drain(hbp__schedule *schedule, int32_t stage, int32_t last, int64_t end)
{
    int64_t each = 2 * (int64_t)schedule->micro_batches * (schedule->chunks / schedule->stages);
    while (schedule->free_at[stage] < each) {
        const hbp__operation *next = &schedule->slot[stage * each + schedule->free_at[stage]];
        if (next->place > last || !*mark(schedule, next->direction, next->chunk, next->place))
            break;
        schedule->line[end++] = *next;
        schedule->free_at[stage]++;
        if (next->direction == HBP_BACKWARD && next->chunk > 0)
            *mark(schedule, HBP_BACKWARD, next->chunk - 1, next->place) = 1;
        else if (next->direction == HBP_FORWARD && next->chunk < schedule->chunks - 1)
            *mark(schedule, HBP_FORWARD, next->chunk + 1, next->place) = 1;
        else if (next->direction == HBP_FORWARD)
            *mark(schedule, HBP_BACKWARD, next->chunk, next->place) = 1;
    }
    return end;
}

/* Lines operations up, place by place. Within a place forwards go up the stages and backwards down, so that
 * sweeps in both directions end after few rounds. */
static void line_up(hbp__schedule *schedule)
{
    int32_t stages = schedule->stages;
    for (int32_t s = 0; s < stages; s++)
        schedule->free_at[s] = 0;
    for (int64_t i = 0; i < (int64_t)schedule->chunks * schedule->micro_batches; i++) {
        schedule->ready_forward[i] = i < schedule->micro_batches;
        schedule->ready_backward[i] = 0;
    }
    int64_t end = 0;
    for (int32_t p = 0; p < schedule->micro_batches; p++) {
        int64_t before;
        schedule->segment[p] = end;
        do {
            before = end;
            for (int32_t s = 0; s < stages; s++)
                end = drain(schedule, s, p, end);
            for (int32_t s = stages - 1; s >= 0; s--)
                end = drain(schedule, s, p, end);
        } while (end > before);
    }
    schedule->segment[schedule->micro_batches] = end;
}

hbp_status hbp__schedule_open(hbp_context *context, int32_t stages, int32_t virtual_stages,
                              int32_t micro_batches, hbp__schedule *schedule)
{
    int32_t chunks = stages * (virtual_stages > 1 ? virtual_stages : 1);
    *schedule = (hbp__schedule){
        .memory = context->memory, .stages = stages, .chunks = chunks, .micro_batches = micro_batches};
    const hbp__memory *memory = &schedule->memory;
    uint64_t cells = (uint64_t)chunks * (uint64_t)micro_batches;
    schedule->slot = hbp__new(memory, cells, 2 * sizeof *schedule->slot);
    schedule->line = hbp__new(memory, cells, 2 * sizeof *schedule->line);
    schedule->segment = hbp__new(memory, (uint64_t)micro_batches + 1, sizeof *schedule->segment);
    schedule->ready_forward = hbp__new(memory, cells, sizeof *schedule->ready_forward);
    schedule->ready_backward = hbp__new(memory, cells, sizeof *schedule->ready_backward);
    schedule->free_at = hbp__new(memory, (uint64_t)stages, sizeof *schedule->free_at);
    schedule->waited = hbp__new(memory, (uint64_t)stages, sizeof *schedule->waited);
    if (!schedule->slot || !schedule->line || !schedule->segment || !schedule->ready_forward ||
        !schedule->ready_backward || !schedule->free_at || !schedule->waited) {
        hbp__schedule_close(schedule);
        return hbp__fail_memory(context, "the schedule of a pipeline");
    }
    for (int32_t s = 0; s < stages; s++)
        fill_slots(schedule, s);
    line_up(schedule);
    return HBP_OK;
}

void hbp__schedule_close(hbp__schedule *schedule)
{
    const hbp__memory memory = schedule->memory;
    hbp__delete(&memory, schedule->waited);
    hbp__delete(&memory, schedule->free_at);
    hbp__delete(&memory, schedule->ready_backward);
    hbp__delete(&memory, schedule->ready_forward);
    hbp__delete(&memory, schedule->segment);
    hbp__delete(&memory, schedule->line);
    hbp__delete(&memory, schedule->slot);
    *schedule = (hbp__schedule){.memory = memory};
}
