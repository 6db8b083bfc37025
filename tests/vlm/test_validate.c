/* The validator of vision-language plans: every number and column that something else decides is held to it.
 */
#include "base/methods.h"
#include "vlm_files.h"

#define EXPECT(change, undo, ...)                                                                            \
    do {                                                                                                     \
        change;                                                                                              \
        FAILS(context, HBP_E_INVALID, __VA_ARGS__, hbp_vlm_plan_validate(context, p, f.lengths));            \
        undo;                                                                                                \
        OK(context, hbp_vlm_plan_validate(context, p, f.lengths));                                           \
    } while (0)

/* A number `what` more. */
#define MORE(field, what, text) EXPECT(p->field += (what), p->field -= (what), text)

START_TEST_IN_CONTEXT(every_breach_is_named)
{
    fixture f;
    hbp_vlm_plan *p = draw_plan(context, 7, 2, 2, HBP__VLM_DATA_PACKED, &f);
    OK(context, hbp_vlm_plan_validate(context, p, NULL));
    MORE(summary.stages, -2, "`stages` is 0; it must be in 1..2147483647");
    MORE(summary.virtual_stages, 1, "`chunks` is 4; it must be in 6..6");
    MORE(layer_count, -6, "`layers` is 3; it must be in 4..2147483647");
    MORE(summary.replicas, 1, "`replicas` is 3; it must be in 2..2");
    MORE(summary.samples, 1, "`samples` is 65; it must be in 64..64");
    MORE(summary.dropped, 1, "`dropped` is 1; it must be in 0..0");
    MORE(padded, 2, "`padded` is 2; it must be in 0..1");
    double vision = p->reference_vision;
    EXPECT(p->reference_vision = 0, p->reference_vision = vision, "reference_vision is 0");
    MORE(square_ns, -1, "square_ns is -1; it must be in 0..1e30");
    MORE(cuts[0], 1, "cut 0 is 1; it must be in 0..0");
    int32_t cut = p->cuts[1];
    EXPECT(p->cuts[1] = 0, p->cuts[1] = cut, "cut 1 is 0; it must be in 1..");
    MORE(cuts[4], -1, "cut 4 is 8; it must be in 9..9");
    MORE(recompute[3], 9, "recompute of layer 3 is");
    MORE(stage_ns[1], 1, "stage_ns of stage 1 is");
    MORE(stage_bytes[0], -1, "stage_bytes of stage 0 is");
    MORE(step_ns[0], 1, "step_ns of step 0 is");
    MORE(busy_ns, 1, "busy_ns of plan 0 is");
    MORE(summary.epoch_ns, 1, "epoch_ns is");
    MORE(summary.peak_bytes, 1, "peak_bytes is");
    MORE(summary.digest, 1, "the digest is not that");
    int64_t limit = p->summary.limit_bytes, bound = p->summary.bound_ns;
    EXPECT(p->summary.limit_bytes = 1, p->summary.limit_bytes = limit, "the limit is 1");
    EXPECT(p->summary.bound_ns = p->summary.epoch_ns + 1, p->summary.bound_ns = bound, "all steps take");
    /* Another choice, and layers of other times: stages and steps are no longer theirs. */
    int32_t choice = p->recompute[2];
    EXPECT(p->recompute[2] = choice == HBP_RECOMPUTE_LAYER ? 0 : HBP_RECOMPUTE_LAYER,
           p->recompute[2] = choice, "stage_");
    MORE(layers->forward_ns[0], 50000, "stage_ns of stage 0 is");
    MORE(link_latency_ns, 1000000, "step_ns of step 0 is");
    MORE(data->pack_vision[0], 1, "vision"); /* the data's own promises */
    FAILS(context, HBP_E_INVALID, "plan is NULL", hbp_vlm_plan_validate(context, NULL, NULL));
    hbp_lengths *others = keep(draw_samples(context, 99, f.lengths->count, 0));
    ck_assert_int_eq(hbp_vlm_plan_validate(context, p, others), HBP_E_INVALID);
}
END_TEST

TEST_MAIN("vlm_validate", every_breach_is_named)
