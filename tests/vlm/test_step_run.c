/* The run of a replica's step against the plan's own numbers, and against the validator of runs. */
#include "vlm_files.h"

/* The time of all operations; they stand by stage. */
static int64_t work_of(const hbp_pipeline_run_view *v)
{
    int64_t work = 0;
    for (int64_t i = 0; i < v->operations; i++)
        work += v->operation_ends[i] - v->operation_starts[i];
    return work;
}

/* Every replica of the step; returns what all operations take. */
static int64_t check_step(hbp_context *context, const hbp_vlm_plan *plan, int64_t step)
{
    const hbp_plan *data = plan->data;
    int64_t slowest = 0, work = 0;
    for (int32_t r = 0; r < plan->summary.replicas; r++) {
        hbp_pipeline_run *run = NULL;
        hbp_pipeline_summary s = {.struct_size = sizeof s};
        hbp_pipeline_run_view v = {.struct_size = sizeof v};
        MAKES(context, run, hbp_vlm_plan_run_step(context, plan, step, r, &run));
        OK(context, hbp_pipeline_run_validate(context, run, NULL, NULL, NULL));
        OK(context, hbp_pipeline_run_get_summary(context, run, &s));
        OK(context, hbp_pipeline_run_get_view(run, &v));
        ck_assert_int_eq(s.micro_batches, data->step_offsets[step + 1] - data->step_offsets[step]);
        ck_assert_int_eq(s.stages, plan->stages);
        ck_assert_int_eq(s.virtual_stages, plan->summary.virtual_stages);
        ck_assert_int_le(s.bound_ns, s.total_ns);
        for (int64_t i = 0; i < v.stages; i++)
            ck_assert_int_le(v.stage_bytes[i], plan->stage_bytes[i]);
        slowest = s.total_ns > slowest ? s.total_ns : slowest;
        work += work_of(&v);
    }
    ck_assert_int_eq(slowest, plan->step_ns[step]);
    return work;
}

START_TEST_IN_CONTEXT(replicas_are_the_plans)
{
    int64_t steps = 0, replicas = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        fixture f;
        const int32_t stages = 1 + (int32_t)(seed % 4), turns = stages > 1 ? 1 + (int32_t)(seed / 4 % 2) : 1;
        const hbp_vlm_plan *plan =
            draw_plan(context, seed, stages, turns, (int32_t)(seed % (HBP__VLM_DATA_SORTED + 1)), &f);
        int64_t work = 0;
        for (int64_t step = 0; step < plan->steps; step++)
            work += check_step(context, plan, step);
        ck_assert_int_eq(work, plan->busy_ns);
        steps += plan->steps;
        replicas += plan->summary.replicas > 1;
    }
    ck_assert_int_gt(steps, 100);
    ck_assert_int_gt(replicas, 10);
}
END_TEST

START_TEST_IN_CONTEXT(rows_outside_are_named)
{
    fixture f;
    hbp_pipeline_run *run = (hbp_pipeline_run *)&f;
    const hbp_vlm_plan *plan = draw_plan(context, 7, 2, 2, HBP__VLM_DATA_PACKED, &f);
    const int64_t steps = plan->steps;
    ck_assert_int_eq(plan->summary.replicas, 2);
    FAILS(context, HBP_E_INVALID, "`step` is -1; it must be in 0..",
          hbp_vlm_plan_run_step(context, plan, -1, 0, &run));
    ck_assert_ptr_null(run);
    ck_assert_int_eq(hbp_vlm_plan_run_step(context, plan, steps, 0, &run), HBP_E_INVALID);
    FAILS(context, HBP_E_INVALID, "`replica` is 2; it must be in 0..1",
          hbp_vlm_plan_run_step(context, plan, 0, 2, &run));
    FAILS(context, HBP_E_INVALID, "plan is NULL", hbp_vlm_plan_run_step(context, NULL, 0, 0, &run));
}
END_TEST

TEST_MAIN("vlm_step_run", replicas_are_the_plans, rows_outside_are_named)
