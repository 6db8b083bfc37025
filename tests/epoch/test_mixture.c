#include "epoch/epoch.h"

#include "failing.h"
#include "planned.h"

/* Two steps of one pack each. */
static hbp_plan *make(hbp_context *context)
{
    hbp_plan *plan = hbp__plan_new(&context->memory, 2, 2, 2, 6, 0, 0);
    ck_assert_ptr_nonnull(plan);
    static const int32_t tokens[6] = {4, 4, 8, 6, 6, 4};
    for (int64_t i = 0; i < 2; i++) {
        plan->step_offsets[i + 1] = plan->micro_batch_offsets[i + 1] = i + 1;
        plan->pack_offsets[i + 1] = 3 * (i + 1);
    }
    memcpy(plan->sample_tokens, tokens, sizeof tokens);
    return plan;
}

START_TEST(distance_to_the_epoch)
{
    hbp_context *context = test_context();
    hbp_plan *plan = make(context);
    double distance;
    OK(context, hbp__plan_mixture(context, plan, &distance));
    /* Step 0: 8 and 8 of 16; step 1: 16 and 0. All: 24 and 8. */
    ck_assert_double_eq_tol(distance, 0.25, 1e-12);
    plan->sample_tokens[5] = 12;
    /* Step 0: 1/2, 1/2; step 1: 12 and 12 of 24. */
    OK(context, hbp__plan_mixture(context, plan, &distance));
    ck_assert_double_eq_tol(distance, 0, 1e-12);
    hbp_plan_free(plan);
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("mixture", distance_to_the_epoch)
