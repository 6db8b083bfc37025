#include "data/plan/plan.h"

#include "base/checked.h"
#include "base/digest.h"
#include "base/options.h"

#define COLUMN(name, type, count, extra) HBP__MEMBER_COLUMN(hbp_plan, type, name, count, extra),

static const hbp__member all_columns[] = {HBP__PLAN_COLUMNS(COLUMN)};

const hbp__table hbp__plan_table = {
    .what = "the plan",
    .bytes = sizeof(hbp_plan),
    .columns = all_columns,
    .column_count = sizeof all_columns / sizeof *all_columns,
};

/* HBP__PLAN_* of a column; 0 for one that every plan has. */
static int32_t option_of(const hbp__member *column)
{
#define OPTION(name, flag, type, table)                                                                      \
    if (column->at == offsetof(hbp_plan, name))                                                              \
        return flag;
    HBP__PLAN_OPTIONAL(OPTION)
#undef OPTION
    return 0;
}

/* A plan of this shape, with the optional columns that `optional` names, uninitialised but for first offsets.
 */
static hbp_plan *new_of(const hbp_plan *shape, int32_t optional)
{
    uint64_t present = 0;
    optional &= shape->dropped ? optional : ~HBP__PLAN_PIECES;
    for (int32_t i = 0; i < hbp__plan_table.column_count; i++)
        present |= (option_of(&all_columns[i]) & ~optional ? UINT64_C(0) : 1) << i;
    hbp_plan *plan = hbp__table_new_some(&shape->memory, &hbp__plan_table, shape, present);
    if (plan)
        plan->step_offsets[0] = plan->micro_batch_offsets[0] = plan->pack_offsets[0] = 0;
    return plan;
}

hbp_plan *hbp__plan_new(const hbp__memory *memory, int64_t steps, int64_t micro_batches, int64_t packs,
                        int64_t samples, int64_t dropped, int32_t optional)
{
    const hbp_plan shape = {
        .memory = *memory,
        .complete = 1,
        .steps = steps,
        .micro_batches = micro_batches,
        .packs = packs,
        .samples = samples,
        .dropped = dropped,
        .sequence_multiple = 1,
        .pack_multiple = 1,
        .micro_batch_multiple = 1,
    };
    return new_of(&shape, optional);
}

void hbp_plan_free(hbp_plan *plan)
{
    if (!plan)
        return;
    hbp__memory memory = plan->memory;
    hbp__table_free(&memory, &hbp__plan_table, plan);
}

/* Columns that came after the first plans: where they are absent, the digest is what it was. */
#define LATER (HBP__PLAN_VISION | HBP__PLAN_MODALITIES | HBP__PLAN_PIECES)

/* Without a context nobody asks to cancel. */
static hbp_status seal_plan(hbp_context *context, hbp_plan *plan)
{
    hbp__digest digest = hbp__digest_begin();
    const int64_t fields[] = {plan->ranks,
                              plan->domain_ranks,
                              plan->complete,
                              plan->first_step,
                              plan->pack_multiple,
                              plan->sequence_multiple,
                              plan->micro_batch_multiple,
                              plan->overlong_samples,
                              plan->overlong_tokens};
    hbp__digest_column_i64(&digest, fields, sizeof fields / sizeof *fields);
    hbp__digest_u64(&digest, plan->seed);
    hbp__digest_u64(&digest, plan->epoch);
    hbp__digest_u64(&digest, plan->lengths_digest);
    if (plan->sequence_multiple_per_sp || plan->pack_multiple_per_sp) {
        hbp__digest_u64(&digest, (uint64_t)plan->sequence_multiple_per_sp);
        hbp__digest_u64(&digest, (uint64_t)plan->pack_multiple_per_sp);
    }
    if (plan->lockstep_ranks)
        hbp__digest_u64(&digest, (uint64_t)plan->lockstep_ranks);
    int32_t later = hbp__plan_optional(plan) & LATER;
    if (later)
        hbp__digest_u64(&digest, (uint64_t)later);
    for (int32_t i = 0; i < hbp__plan_table.column_count; i++) {
        const hbp__member *column = &all_columns[i];
        if (context && hbp__table_rows(plan, column) > HBP__TICK_ROWS)
            HBP__TRY(hbp__tick(context, "digest", 0, 0));
        if (hbp__table_cells(plan, column) || !(option_of(column) & LATER))
            hbp__column_digest(column, plan, &digest);
    }
    plan->digest = hbp__digest_end(&digest);
    return HBP_OK;
}

void hbp__plan_seal(hbp_plan *plan)
{
    seal_plan(NULL, plan);
}

hbp_status hbp__plan_seal_long(hbp_context *context, hbp_plan *plan)
{
    return seal_plan(context, plan);
}

int32_t hbp__plan_optional(const hbp_plan *plan)
{
    int32_t optional = 0;
#define HAS(name, flag, type, table) optional |= plan->name ? (flag) : 0;
    HBP__PLAN_OPTIONAL(HAS)
#undef HAS
    return optional;
}

const char *hbp_composition_name(int32_t composition)
{
    static const char *const names[] = {"auto", "random", "stratified", "hierarchy", "given"};
    return composition >= 0 && composition <= HBP_COMPOSITION_GIVEN ? names[composition] : NULL;
}

int64_t hbp__plan_ns(const hbp_plan *plan)
{
    int64_t ns = 0;
    for (int64_t i = 0; i < plan->steps; i++)
        ns = hbp__add_saturating(ns, plan->step_ns[i]);
    return ns;
}

void hbp__plan_keep_faster(hbp_plan **plan, hbp_plan **other)
{
    if (*other && (!*plan || hbp__plan_ns(*other) < hbp__plan_ns(*plan))) {
        hbp_plan *slower = *plan;
        *plan = *other;
        *other = slower;
    }
    hbp_plan_free(*other);
    *other = NULL;
}

void hbp__plan_summarise(const hbp_plan *plan, hbp_plan_summary *summary)
{
    *summary = (hbp_plan_summary){
        .struct_size = sizeof *summary,
        .ranks = plan->ranks,
        .domain_ranks = plan->domain_ranks,
        .complete = plan->complete,
        .steps = plan->steps,
        .micro_batches = plan->micro_batches,
        .packs = plan->packs,
        .samples = plan->samples,
        .dropped = plan->dropped,
        .sequence_multiple = plan->sequence_multiple,
        .pack_multiple = plan->pack_multiple,
        .micro_batch_multiple = plan->micro_batch_multiple,
        .first_step = plan->first_step,
        .epoch_steps = plan->epoch_steps,
        .overlong_samples = plan->overlong_samples,
        .overlong_tokens = plan->overlong_tokens,
        .seed = plan->seed,
        .epoch = plan->epoch,
        .digest = plan->digest,
        .lengths_digest = plan->lengths_digest,
        .bound_ns = plan->bound_ns,
        .vision = plan->pack_vision ? 0 : -1,
        .composition = plan->composition,
        .samples_per_step = plan->samples_per_step,
        .tokens_per_step = plan->tokens_per_step,
        .sequence_multiple_per_sp = plan->sequence_multiple_per_sp,
        .pack_multiple_per_sp = plan->pack_multiple_per_sp,
        .predicted_ns = hbp__plan_ns(plan),
        .hierarchy_ns = plan->hierarchy_ns,
        .mixture_ns = plan->mixture_ns,
        .lockstep_ranks = plan->lockstep_ranks,
        .free_bound_ns = plan->free_bound_ns,
        .shifted_loss = plan->shifted_loss,
    };
    for (int64_t i = 0; i < plan->steps; i++) {
        summary->tokens = hbp__add_saturating(summary->tokens, plan->step_tokens[i]);
        summary->loss_tokens = hbp__add_saturating(summary->loss_tokens, plan->step_loss_tokens[i]);
    }
    for (int64_t i = 0; i < plan->packs; i++) {
        summary->padded_tokens = hbp__add_saturating(summary->padded_tokens, plan->pack_padded_tokens[i]);
        summary->padding_packs += plan->pack_offsets[i] == plan->pack_offsets[i + 1];
        if (plan->pack_vision)
            summary->vision = hbp__add_saturating(summary->vision, plan->pack_vision[i]);
    }
    for (int64_t i = 0; plan->micro_batch_modalities && i < plan->micro_batches; i++)
        summary->modalities |= plan->micro_batch_modalities[i];
    summary->gap = hbp__plan_gap(summary->predicted_ns, plan->bound_ns);
    summary->proven = hbp__plan_is_proven(summary->predicted_ns, plan->bound_ns);
}

hbp_status hbp_plan_get_summary(hbp_context *context, const hbp_plan *plan, hbp_plan_summary *summary)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, plan, "plan"));
    hbp_plan_summary all;
    hbp__plan_summarise(plan, &all);
    return hbp__struct_write(context, summary, &all, sizeof all, "hbp_plan_summary");
}

hbp_status hbp_plan_get_view(const hbp_plan *plan, hbp_plan_view *view)
{
    hbp_plan_view all = {0};
    if (plan) {
        all.steps = plan->steps;
        all.micro_batches = plan->micro_batches;
        all.packs = plan->packs;
        all.samples = plan->samples;
        all.dropped = plan->dropped;
#define SHOW(name, type, table, extra) all.name = plan->name;
        HBP__PLAN_COLUMNS(SHOW)
#undef SHOW
    }
    return hbp__view_write(view, plan, &all, sizeof all);
}

int64_t hbp_plan_get_rank_pack(const hbp_plan *plan, int64_t step, int64_t micro_batch, int32_t rank)
{
    if (!plan || step < 0 || step >= plan->steps || rank < 0 || rank >= plan->ranks || micro_batch < 0 ||
        micro_batch >= plan->step_offsets[step + 1] - plan->step_offsets[step])
        return -1;
    int64_t row = plan->step_offsets[step] + micro_batch;
    int64_t low = plan->micro_batch_offsets[row], high = plan->micro_batch_offsets[row + 1];
    /* The last pack whose first rank is not above `rank`; packs are in order of first rank. */
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (plan->pack_ranks[middle] <= rank)
            low = middle;
        else
            high = middle;
    }
    if (low == high || rank < plan->pack_ranks[low] || rank - plan->pack_ranks[low] >= plan->pack_sp[low])
        return -1;
    return low;
}

hbp_plan *hbp__plan_copy(const hbp__memory *memory, const hbp_plan *plan)
{
    hbp_plan shape = *plan;
    shape.memory = *memory;
    hbp_plan *copy = new_of(&shape, hbp__plan_optional(plan));
    for (int32_t i = 0; copy && i < hbp__plan_table.column_count; i++)
        if (hbp__table_cells(copy, &all_columns[i]))
            hbp__column_copy(&all_columns[i], copy, 0, plan, 0, hbp__table_rows(plan, &all_columns[i]));
    return copy;
}

/* Copies rows [first, first + rows) of an offset column so that they begin at 0. */
static void copy_offsets(int64_t *to, const int64_t *from, int64_t first, int64_t rows)
{
    for (int64_t i = 0; i <= rows; i++)
        to[i] = from[first + i] - from[first];
}

hbp_status hbp__plan_slice(hbp_context *context, const hbp_plan *plan, int64_t first, int64_t count,
                           hbp_plan **out)
{
    hbp_status status = HBP_OK;
    const int64_t steps = first;
    const int64_t micro_batches = plan->step_offsets[first];
    const int64_t packs = plan->micro_batch_offsets[micro_batches];
    const int64_t samples = plan->pack_offsets[packs];
    const int64_t dropped = 0;
    const int64_t micro_batch_end = plan->step_offsets[first + count];
    const int64_t pack_end = plan->micro_batch_offsets[micro_batch_end];
    const int64_t sample_end = plan->pack_offsets[pack_end];
    hbp_plan shape = *plan;
    shape.memory = context->memory;
    shape.steps = count;
    shape.micro_batches = micro_batch_end - micro_batches;
    shape.packs = pack_end - packs;
    shape.samples = sample_end - samples;
    shape.dropped = 0;
    shape.first_step += first;
    shape.epoch_steps = hbp__plan_epoch_steps(plan->epoch_steps, plan->first_step, plan->steps, count);
    shape.bound_ns = shape.free_bound_ns = shape.hierarchy_ns = shape.mixture_ns = 0; /* of the whole plan */
    hbp_plan *part = new_of(&shape, hbp__plan_optional(plan));
    if (!part)
        return hbp__fail_memory(context, "a part of the plan");
#define COPY(name, type, table, extra)                                                                       \
    if (status >= 0 && part->name && part->table)                                                            \
        status = hbp__copy(context, part->name, plan->name + table, (uint64_t)part->table * sizeof(type));
    HBP__PLAN_COLUMNS(COPY)
#undef COPY
    if (status < 0) {
        hbp_plan_free(part);
        return status;
    }
    copy_offsets(part->step_offsets, plan->step_offsets, steps, count);
    copy_offsets(part->micro_batch_offsets, plan->micro_batch_offsets, micro_batches, part->micro_batches);
    copy_offsets(part->pack_offsets, plan->pack_offsets, packs, part->packs);
    status = hbp__plan_seal_long(context, part);
    if (status >= 0)
        *out = part;
    else
        hbp_plan_free(part);
    return status;
}
