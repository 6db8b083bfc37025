/* The same steps with their micro-batches in another order. */
#include <string.h>

#include "data/plan/plan.h"

/* Samples and dropped rows copied between two looks at a request to cancel. */
#define TICK_ROWS 65536

/* Rows of a table as they are copied. */
typedef struct span {
    int64_t from, to, rows;
} span;

typedef struct spans {
    span steps, micro_batches, packs, samples, dropped;
} spans;

/* All columns but offsets. */
static void copy_rows(hbp_plan *to, const hbp_plan *from, const spans *rows)
{
#define COPY(name, type, table, extra)                                                                       \
    if (to->name && !(extra) && rows->table.rows)                                                            \
        memcpy(to->name + rows->table.to, from->name + rows->table.from,                                     \
               (size_t)rows->table.rows * sizeof(type));
    HBP__PLAN_COLUMNS(COPY)
#undef COPY
}

/* The plan with columns of its own, which are empty. */
static hbp_plan *new_alike(const hbp__memory *memory, const hbp_plan *plan)
{
    hbp_plan *alike = hbp__plan_new(memory, plan->steps, plan->micro_batches, plan->packs, plan->samples,
                                    plan->dropped, hbp__plan_optional(plan));
    if (!alike)
        return NULL;
    hbp_plan all = *plan;
    all.memory = *memory;
#define KEEP(name, type, table, extra) all.name = alike->name;
    HBP__PLAN_COLUMNS(KEEP)
#undef KEEP
    *alike = all;
    return alike;
}

/* What no order of micro-batches changes. */
static hbp_status copy_others(hbp_context *context, hbp_plan *to, const hbp_plan *from)
{
    copy_rows(to, from, &(spans){.steps = {0, 0, from->steps}});
    memcpy(to->step_offsets, from->step_offsets, (size_t)(from->steps + 1) * sizeof *to->step_offsets);
    for (int64_t at = 0; at < from->dropped; at += TICK_ROWS) {
        int64_t rows = from->dropped - at < TICK_ROWS ? from->dropped - at : TICK_ROWS;
        copy_rows(to, from, &(spans){.dropped = {at, at, rows}});
        HBP__TRY(hbp__tick(context, "order", at, from->dropped));
    }
    return HBP_OK;
}

/* Micro-batch by micro-batch, its packs and samples with it. */
static hbp_status permute_rows(hbp_context *context, hbp_plan *to, const hbp_plan *from, const int32_t *order)
{
    int64_t pack = 0, sample = 0, told = 0;
    for (int64_t m = 0; m < from->micro_batches; m++) {
        int64_t first = from->micro_batch_offsets[order[m]];
        span packs = {first, pack, from->micro_batch_offsets[order[m] + 1] - first};
        span samples = {from->pack_offsets[first], sample,
                        from->pack_offsets[first + packs.rows] - from->pack_offsets[first]};
        copy_rows(to, from, &(spans){.micro_batches = {order[m], m, 1}, .packs = packs, .samples = samples});
        for (int64_t p = 0; p < packs.rows; p++)
            to->pack_offsets[pack + p] = sample + from->pack_offsets[first + p] - samples.from;
        to->micro_batch_offsets[m] = pack;
        pack += packs.rows;
        sample += samples.rows;
        if (pack + sample - told >= TICK_ROWS) {
            told = pack + sample;
            HBP__TRY(hbp__tick(context, "order", m, from->micro_batches));
        }
    }
    to->micro_batch_offsets[from->micro_batches] = pack;
    to->pack_offsets[from->packs] = sample;
    return hbp__plan_seal_long(context, to);
}

hbp_status hbp__plan_permute(hbp_context *context, const hbp_plan *plan, const int32_t *order, hbp_plan **out)
{
    hbp_plan *result = new_alike(&context->memory, plan);
    if (!result)
        return hbp__fail_memory(context, "the ordered plan");
    hbp_status status = copy_others(context, result, plan);
    if (status >= 0)
        status = permute_rows(context, result, plan, order);
    if (status < 0)
        hbp_plan_free(result);
    else
        *out = result;
    return status;
}
