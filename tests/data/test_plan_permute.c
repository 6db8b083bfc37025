#include "failing.h"
#include "keep.h"
#include "plans.h"
#include "views.h"

/* Each step's micro-batches in an order drawn at random. */
static int32_t *draw_order(const hbp_plan *plan, uint64_t seed)
{
    hbp__rng rng = hbp__rng_make(seed, 7, 0);
    int32_t *order = malloc((size_t)plan->micro_batches * sizeof *order);
    ck_assert(order != NULL);
    for (int64_t s = 0; s < plan->steps; s++) {
        int64_t first = plan->step_offsets[s];
        uint64_t count = (uint64_t)(plan->step_offsets[s + 1] - first);
        for (uint64_t i = 0; i < count; i++)
            order[first + (int64_t)i] = (int32_t)(first + (int64_t)i);
        hbp__rng_shuffle_u32(&rng, (uint32_t *)order + first, count);
    }
    return order;
}

START_TEST_IN_CONTEXT(micro_batches_change_places)
{
    int mark = keep_mark();
    for (uint64_t seed = 0; seed < 40; keep_release(mark), seed++) {
        plans_shape shape = plans_draw(seed);
        hbp_lengths *lengths = keep(plans_lengths(context, seed, 90, 500, 0, 0));
        hbp_plan *plan = keep(plans_make(&shape, lengths));
        int32_t *order = keep(draw_order(plan, seed));
        hbp_plan *other = NULL;
        MAKES(context, other, hbp__plan_permute(context, plan, order, &other));
        OK(context, hbp_plan_validate(context, other, lengths, NULL));
        for (int64_t m = 0; m < plan->micro_batches; m++) {
            int64_t from = plan->micro_batch_offsets[order[m]], to = other->micro_batch_offsets[m];
            int64_t packs = plan->micro_batch_offsets[order[m] + 1] - from;
            ck_assert_int_eq(packs, other->micro_batch_offsets[m + 1] - to);
            ck_assert_int_eq(other->micro_batch_ns[m], plan->micro_batch_ns[order[m]]);
            for (int64_t p = 0; p < packs; p++) {
                ck_assert_int_eq(other->pack_ranks[to + p], plan->pack_ranks[from + p]);
                ck_assert_int_eq(other->pack_tokens[to + p], plan->pack_tokens[from + p]);
                int64_t samples = plan->pack_offsets[from + p + 1] - plan->pack_offsets[from + p];
                ck_assert_int_eq(samples, other->pack_offsets[to + p + 1] - other->pack_offsets[to + p]);
                for (int64_t i = 0; i < samples; i++)
                    ck_assert_int_eq(other->sample_ids[other->pack_offsets[to + p] + i],
                                     plan->sample_ids[plan->pack_offsets[from + p] + i]);
            }
        }
    }
}
END_TEST

START_TEST_IN_CONTEXT(the_order_there_is_changes_nothing)
{
    plans_shape shape = plans_draw(5);
    hbp_lengths *lengths = keep(plans_lengths(context, 5, 90, 500, 0, 0));
    hbp_plan *plan = keep(plans_make(&shape, lengths));
    int32_t *order = keep(malloc((size_t)plan->micro_batches * sizeof *order));
    for (int32_t m = 0; m < plan->micro_batches; m++)
        order[m] = m;
    hbp_plan *same = NULL;
    MAKES(context, same, hbp__plan_permute(context, plan, order, &same));
    ck_assert_uint_eq(plan_digest(same), plan_digest(plan));
}
END_TEST

typedef struct permuted {
    const hbp_plan *plan;
    const int32_t *order;
} permuted;

static hbp_status permute(hbp_context *context, void *user)
{
    const permuted *p = user;
    hbp_plan *other = NULL;
    hbp_status status = hbp__plan_permute(context, p->plan, p->order, &other);
    ck_assert((status < 0) == (other == NULL));
    hbp_plan_free(other);
    return status;
}

START_TEST_IN_CONTEXT(nothing_is_left_behind)
{
    enum { DROPPED = 100000 };
    plans_shape shape = plans_draw(5);
    hbp_lengths *lengths = plans_lengths(context, 5, 90, 500, 0, 0);
    hbp_plan *plan = keep(plans_make(&shape, lengths));
    int32_t *order = draw_order(plan, 5);
    permuted p = {plan, order};
    failing_sweep(permute, &p);
    free(order);
    hbp_lengths_free(lengths);
    plan = keep(hbp__plan_new(&context->memory, 0, 0, 0, 0, DROPPED, 0));
    ck_assert_ptr_nonnull(plan);
    for (int i = 0; i < DROPPED; i++) {
        plan->dropped_ids[i] = i;
        plan->dropped_reasons[i] = HBP_DROPPED_LEFTOVER;
    }
    plan->step_offsets[0] = plan->micro_batch_offsets[0] = plan->pack_offsets[0] = 0;
    hbp__plan_seal(plan);
    hbp_plan *other = NULL;
    MAKES(context, other, hbp__plan_permute(context, plan, NULL, &other));
    ck_assert_uint_eq(plan_digest(other), plan_digest(plan));
    ck_assert_int_eq(other->dropped_ids[DROPPED - 1], DROPPED - 1);
    p = (permuted){plan, NULL};
    ck_assert_int_gt(cancel_sweep(permute, &p), 1);
}
END_TEST

TEST_MAIN("plan_permute", micro_batches_change_places, the_order_there_is_changes_nothing,
          nothing_is_left_behind)
